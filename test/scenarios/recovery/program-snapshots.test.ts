// A program's long-lived service: it continues from its latest snapshot instead of its first entry, and can be
// hibernated.
import { THE_LEAD, createSubagentService } from '../../../src/entries/subagents.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { replaySession } from '../../../src/entries/replay.ts';
import { describe, expect, test } from 'vitest';
import { createRuntime, memoryJournal, OffstageError, type Journal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { turns, world, type World } from '../../support/crashes.ts';
import { askingOrder, programLife, type Work } from '../../support/program-life.ts';
import { never, say } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';

const ofType = ({ entries }: World, type: string): readonly JournalEntry[] =>
  entries.filter(({ event }) => event.type === type);

const nothing = { resumed: [], ended: [], lost: [] };
const quick: Work = { script: turns(say('Done.')) };

describe('snapshots of a service', () => {
  test('SCOPE-SNAPSHOTS-4: appear every few entries, delete earlier entries and do not grow', async () => {
    const of = world({ snapshots: { afterEntries: 20, trim: true } });
    const program = programLife(of, quick, { constraints: { stateRetentionMs: 1000 } });
    await program.service.recover();
    const receipts = [];
    for (let order = 1; order <= 50; order += 1) {
      const receipt = program.service.spawn({
        config: configOf('order'),
        task: { toolName: 'order', args: {}, description: `Order ${order}` },
        caller: THE_LEAD,
      });
      if (receipt.status === 'rejected') throw new Error(receipt.error.message);
      receipts.push(receipt.subagentId);
      expect(await program.resultOf(receipt.subagentId)).toBe('Done.');
      await of.environment.advance(120_000);
    }
    expect(new Set(receipts).size).toBe(50);
    expect(of.written).toBeGreaterThan(250);
    expect(of.entries.length).toBeLessThan(30);
    expect(ofType(of, 'service.snapshot')).toHaveLength(1);
    program.kill();
    const after = programLife(of, quick);
    expect(await after.service.recover()).toEqual(nothing);
    expect(after.errors).toEqual([]);
    await after.close();
  });

  test('REPLAY-SESSION-1: allow a replay of the remaining entries of a trimmed service', async () => {
    const of = world({ snapshots: { afterEntries: 1, trim: true } });
    const program = programLife(of, { script: turns(never) });
    await program.service.recover();
    const id = program.wanted();
    await of.environment.advance(1000);
    expect(of.entries[0]?.event.type).toBe('service.snapshot');
    program.service.cancel(id, THE_LEAD);
    await of.environment.advance(1000);
    program.kill();
    const steps = [...replaySession(of.entries)].map(({ changes }) => changes);
    expect(Object.keys(steps[0] ?? {})).toEqual([`subagent ${id}`]);
    expect(JSON.stringify(steps)).toContain('cancelled');
  });

  test('P1, P4: list an unread result as ended in each process until it is read', async () => {
    const of = world({ snapshots: { afterEntries: 1, trim: true } });
    const before = programLife(of, quick);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.advance(1000);
    before.kill();
    const ends: string[] = [];
    for (let process = 2; process <= 3; process += 1) {
      const program = programLife(of, quick);
      program.service.events.subscribe(({ type, subagentId }) => {
        if (type === 'ended') ends.push(`${process}: ${subagentId}`);
      });
      expect(await program.service.recover()).toEqual({ ...nothing, ended: [id] });
      await of.environment.advance(1000);
      program.kill();
    }
    expect(ends).toEqual([`2: ${id}`, `3: ${id}`]);
    const had = programLife(of, quick);
    await had.service.recover();
    expect(await had.resultOf(id)).toBe('Done.');
    had.kill();
    const last = programLife(of, quick);
    expect(await last.service.recover()).toEqual(nothing);
    expect(last.wanted()).toBe(id);
    await last.close();
  });

  test('exclude a result that was read between the snapshot and the crash', async () => {
    const of = world({ snapshots: { afterEntries: 6, trim: true } });
    const before = programLife(of, quick);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.advance(1000);
    await before.service.suspend();
    const program = programLife(of, quick);
    expect(await program.service.recover()).toEqual({ ...nothing, ended: [id] });
    await program.resultOf(id);
    program.kill();
    expect(of.entries.at(-1)?.event.type).toBe('result.had');
    const last = programLife(of, quick);
    expect(await last.service.recover()).toEqual(nothing);
    await last.close();
  });

  test('fail the recovery if they are unreadable and the journal was trimmed', async () => {
    const of = world({ snapshots: { afterEntries: 1, trim: true } });
    const before = programLife(of, askingOrder);
    await before.service.recover();
    before.wanted();
    await of.environment.advance(1000);
    await before.service.suspend();
    const entries = of.entries.map((entry) =>
      entry.event.type === 'service.snapshot'
        ? { ...entry, event: { ...entry.event, versions: { program: 1, subagent: 99 } } }
        : entry,
    );
    const environment = simulatedEnvironment();
    const journal: Journal = { append: () => {}, read: () => entries };
    const service = createSubagentService({
      runtime: createRuntime({ environment, journal }),
      id: 'orders',
    });
    await expect(service.recover()).rejects.toMatchObject({
      code: 'JOURNAL_VERSION',
      message: expect.stringContaining('a snapshot of form 1 (program 1, subagent 99)') as string,
    });
  });
});

describe('SNAPSHOT-FORMS-2: a service whose snapshot this version cannot read', () => {
  /** Creates two waiting orders and a snapshot of them in another version's format. */
  const kept = async (trim: boolean) => {
    const of = world({ snapshots: { afterEntries: 1000, trim } });
    const all: JournalEntry[] = [];
    const { process, runtime } = of.begin();
    const journal: Journal = {
      ...runtime.journal,
      append: (entry) => {
        all.push(entry);
        return runtime.journal.append(entry);
      },
    };
    const before = createSubagentService({
      runtime: { ...runtime, journal },
      id: 'orders',
      model: castOf({ subagents: { order: { script: askingOrder.script } } }),
      onQuestion: () => never(),
    });
    await before.recover();
    for (const description of ['Order one', 'Order two']) {
      before.spawn({
        config: configOf('order', askingOrder.config),
        task: { toolName: 'order', args: {}, description },
        caller: THE_LEAD,
      });
      await of.environment.settle();
    }
    await before.suspend();
    process.kill();
    return all.map((entry) =>
      entry.event.type === 'service.snapshot'
        ? { ...entry, event: { ...entry.event, versions: { program: 1, subagent: 99 } } }
        : entry,
    );
  };
  const recovered = (entries: readonly JournalEntry[]) => {
    const environment = simulatedEnvironment();
    const journal: Journal = { append: () => {}, read: () => entries };
    return createSubagentService({
      runtime: createRuntime({ environment, journal }),
      id: 'orders',
      onQuestion: () => never(),
      configs: { order: configOf('order', askingOrder.config) },
      model: castOf({ subagents: { order: { script: askingOrder.script } } }),
    }).recover();
  };

  test('resumes from its entries if none has been deleted', async () => {
    const entries = await kept(false);
    expect((await recovered(entries)).resumed).toHaveLength(2);
  });

  test('refuses to recover if entries may have been deleted', async () => {
    const entries = await kept(true);
    const spawns = entries.flatMap(({ event, seq }, index) =>
      seq === 1 && event.type !== 'service.snapshot' ? index : [],
    );
    expect(spawns).toHaveLength(2);
    await expect(recovered(entries.slice(spawns[1]))).rejects.toMatchObject({
      code: 'JOURNAL_VERSION',
    });
  });
});

describe('a suspended service', () => {
  test('OWNED-SERVICE-2, P3: interrupts waits but not subagents, and resumes with the same ids', async () => {
    const of = world({ snapshots: { afterEntries: 1000, trim: true } });
    const signals: AbortSignal[] = [];
    const before = programLife(of, askingOrder, {
      onQuestion: (_question, signal) => {
        signals.push(signal);
        return new Promise(() => {});
      },
    });
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    const waited = before.service.await([id], THE_LEAD);
    await before.service.suspend();
    expect(await waited).toMatchObject({ ok: false, error: { code: 'CANCELLED' } });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(of.entries.map(({ event }) => event.type)).toEqual(['service.snapshot']);
    expect(before.wanted).toThrow(/suspended/);
    await before.service.suspend();
    await before.service.close();
    expect(before.errors).toEqual([]);

    const asked: string[] = [];
    const after = programLife(of, askingOrder, {
      onQuestion: ({ requestId }) => {
        asked.push(requestId);
        return { text: 'comfort' };
      },
    });
    expect(await after.service.recover()).toEqual({ ...nothing, resumed: [id] });
    expect(after.wanted()).toBe(id);
    expect(await after.resultOf(id)).toContain('comfort');
    expect(asked).toEqual([`${id}.q1`]);
    await after.close();
  });

  test('leaves no timer that would keep the process alive', async () => {
    const of = world({ snapshots: { afterEntries: 1000, trim: true } });
    const work: Work = {
      ...askingOrder,
      config: { interactive: true, budget: { timeMs: 90_000 } },
    };
    const before = programLife(of, work);
    await before.service.recover();
    before.wanted();
    await of.environment.settle();
    await before.service.suspend();
    expect(of.environment.pendingTimers).toBe(0);
  });

  test('refuses to suspend without an id, because no process could resume it', async () => {
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    const service = createSubagentService({ runtime });
    await expect(service.suspend()).rejects.toMatchObject({ code: 'INVALID_STATE' });
    await service.close();
  });

  test('changes nothing if it is suspended before it has recovered', async () => {
    const of = world();
    const before = programLife(of, askingOrder);
    await before.service.recover();
    const id = before.wanted();
    await of.environment.settle();
    before.kill();
    const { length } = of.entries;
    const idle = programLife(of, askingOrder);
    await idle.service.suspend();
    expect(await idle.service.recover()).toEqual(nothing);
    expect(of.entries).toHaveLength(length);
    const after = programLife(of, askingOrder);
    expect(await after.service.recover()).toMatchObject({ resumed: [id] });
    await after.close();
  });
});

test('releases its claim after a loss, so that a new, empty service can use its id', async () => {
  const environment = simulatedEnvironment();
  const kept = memoryJournal({ keep: Infinity });
  const claims: string[] = [];
  const journal: Journal = {
    append: (entry) => kept.append(entry),
    read: (query) => kept.read(query),
    claim: (scope) => void claims.push(`claimed ${scope}`),
    release: (scope) => void claims.push(`released ${scope}`),
  };
  const service = () =>
    createSubagentService({
      runtime: createRuntime({ environment, journal, onUnfoldable: 'lose' }),
      id: 'orders',
      model: castOf({ subagents: { order: { script: askingOrder.script } } }),
      onQuestion: () => never(),
    });
  const first = service();
  await first.recover();
  await first.suspend();
  const seq = kept.read({ scope: 'orders' }).length + 1;
  const own = { scope: 'orders', unit: 'orders', actor: 'service', at: environment.clock.now() };
  // An entry without its required id.
  kept.append({ ...own, seq, definitionVersion: 1, event: { type: 'result.had' } });
  claims.length = 0;
  await expect(service().recover()).rejects.toMatchObject({
    code: 'SERVICE_LOST',
    message: expect.stringContaining('result.had') as string,
  });
  expect(claims).toEqual(['claimed orders', 'released orders']);
  const next = service();
  await expect(next.recover()).resolves.toEqual(nothing);
  await next.close();
});

describe('OWNED-SERVICE-1: a failed recovery', () => {
  const fails = (over: (journal: Journal) => Partial<Journal>) => {
    const environment = simulatedEnvironment();
    const kept = memoryJournal({ keep: Infinity });
    const released: string[] = [];
    const service = (journal: Journal) =>
      createSubagentService({
        runtime: createRuntime({ environment, journal }),
        id: 'orders',
        onQuestion: () => never(),
        configs: { order: configOf('order', askingOrder.config) },
        model: castOf({ subagents: { order: { script: askingOrder.script } } }),
      });
    const failing = service({
      append: (entry) => kept.append(entry),
      read: (query) => kept.read(query),
      release: (scope) => void released.push(scope),
      ...over(kept),
    });
    return { environment, kept, released, service, failing };
  };
  const begun = async ({ environment, kept, service }: ReturnType<typeof fails>) => {
    const before = service(kept);
    await before.recover();
    const receipt = before.spawn({
      config: configOf('order', askingOrder.config),
      task: { toolName: 'order', args: {}, description: 'Order it' },
      caller: THE_LEAD,
    });
    await environment.settle();
    // A process that continues records that it does, so there is an entry to fold.
    await service(kept).recover();
    await environment.settle();
    return receipt.status === 'accepted' ? receipt.subagentId : '';
  };
  const once = () => {
    let isFirst = true;
    return (): void => {
      if (!isFirst) return;
      isFirst = false;
      throw new OffstageError('JOURNAL_UNREACHABLE', 'it is away');
    };
  };

  test.each([
    ['claimed', (check: () => void) => () => ({ claim: check }), 0],
    [
      'read',
      (check: () => void) => (kept: Journal) => ({
        read: (query?: object) => {
          check();
          return kept.read(query);
        },
      }),
      1,
    ],
    [
      'folded',
      (check: () => void) => (kept: Journal) => ({
        read: async (query?: object) => {
          const entries = await kept.read(query);
          try {
            check();
            return entries;
          } catch {
            // The format of another version.
            return entries.map((one) => ({ ...one, definitionVersion: 99 }));
          }
        },
      }),
      1,
    ],
  ] as const)('recovers on a second try after it was %s', async (_, over, releases) => {
    const all = fails(over(once()));
    const id = await begun(all);
    const { failing, released } = all;
    const [one, same] = await Promise.allSettled([failing.recover(), failing.recover()]);
    expect([one.status, same.status]).toEqual(['rejected', 'rejected']);
    expect(released).toHaveLength(releases);
    expect(failing.list(THE_LEAD, { includeEnded: true })).toEqual([]);
    expect(await failing.recover()).toEqual({ ...nothing, resumed: [id] });
    expect(await failing.recover()).toEqual({ ...nothing, resumed: [id] });
    await failing.close();
  });

  test.each(['close', 'suspend'] as const)(
    "leaves the claim of the id's next owner in place after a %s during the recovery",
    async (leave) => {
      let read = (): void => {};
      const all = fails((kept) => ({
        read: (query) =>
          new Promise((resolve) => {
            read = () => resolve(kept.read(query));
          }),
      }));
      const { environment, failing, released } = all;
      const recovering = failing.recover();
      const left = failing[leave]();
      let hasLeft = false;
      void left.then(() => (hasLeft = true));
      await environment.settle();
      // The claim belongs to the process: losing it here would also lose it for the next service of the process.
      expect([hasLeft, released]).toEqual([false, []]);
      read();
      await environment.settle();
      expect([hasLeft, released]).toEqual([true, ['orders']]);
      expect(await recovering).toEqual(nothing);
      expect(await failing.recover()).toEqual(nothing);
    },
  );

  test('does not claim anything if it has already been closed', async () => {
    const claimed: string[] = [];
    const { failing } = fails(() => ({ claim: (scope) => void claimed.push(scope) }));
    await failing.close();
    expect(await failing.recover()).toEqual(nothing);
    expect(claimed).toEqual([]);
  });
});
