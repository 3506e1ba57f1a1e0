// TRACED-JOURNAL-10: wherever the process dies, a journal trimmed to a snapshot produces the same trace as one that
// keeps all entries, and a reader does not change a trace.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { JournalEntry } from '../../../src/actors/ports/journal.ts';
import { tracedJournal } from '../../../src/adapters/otel/index.ts';
import { memoryJournal, type Journal, type SessionState } from '../../../src/index.ts';
import { OffstageError } from '../../../src/values/errors.ts';
import { entry, withEvent } from '../../../src/testing/journal-conformance/case.ts';
import { instantsOf, textLife, turns, world } from '../../support/crashes.ts';
import { programLife } from '../../support/program-life.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import type { TalkOptions } from '../../support/text-talk.ts';
import { drawn, sdk, tracesIn } from './support/traces.ts';

/** One third of the points at which a process in the story may die. */
const INSTANTS = instantsOf(45).filter((_, at) => at % 3 === 0);
const asks = (id: string) => calls(['ask_user', { question: 'Which class?' }, id]);

/** A subagent that asks, charges a card after approval, looks twice, and asks again. */
const work = {
  script: turns(
    asks('q1'),
    calls(['charge', {}, 'c1'], ['look', {}, 'l1']),
    calls(['look', {}, 'l2']),
    asks('q2'),
    say('Booked.'),
  ),
  config: {
    interactive: true,
    maxSteps: 9,
    tools: {
      charge: {
        description: 'Charges',
        inputSchema: z.object({}),
        needsApproval: true,
        idempotent: true,
        execute: () => 'charged',
      },
      look: {
        ...tool({ inputSchema: z.object({}), execute: () => Promise.resolve('seen') }),
        idempotent: true,
      },
    },
  },
} satisfies NonNullable<TalkOptions['subagents']>[string];

const isOver = ({ deliveries }: SessionState): boolean =>
  deliveries.some(({ kind, state }) => kind === 'result' && state === 'delivered');

/** Creates a traced world in which a process dies at this entry; null if none dies. */
function tracedWorld(trim: boolean, fate: ReturnType<typeof instantsOf>[number] | null) {
  const traces: ReturnType<typeof sdk>[] = [];
  const of = world({
    snapshots: { afterEntries: 1, trim },
    wraps: (journal) => {
      const own = sdk();
      traces.push(own);
      return tracedJournal(journal, { tracerProvider: own.tracerProvider });
    },
  });
  if (fate) of.killAt(fate[1], fate[0]);
  return {
    of,
    spans: () => traces.flatMap(({ spans }) => spans()),
    open: () => traces.at(-1)?.open,
  };
}

/** Plays the story in as many processes as necessary. */
async function talked(trim: boolean, fate: ReturnType<typeof instantsOf>[number] | null) {
  const { of, spans, open } = tracedWorld(trim, fate);
  for (let lives = 1; ; lives += 1) {
    const life = textLife(of, { subagents: { ride: work } });
    void life.start().catch(() => {});
    await of.environment.settle();
    for (let rounds = 0; life.isAlive() && !isOver(life.state()) && rounds < 20; rounds += 1) {
      const { transcript, questions } = life.state();
      const asked = questions.find(({ state }) => state === 'open');
      const answer = asked?.kind === 'approval' ? { approved: true } : { text: 'comfort' };
      if (!transcript.some(({ role }) => role === 'user'))
        void life.session.sendText('use ride').catch(() => {});
      else if (asked) void life.session.answer(asked.requestId, answer).catch(() => {});
      await of.environment.advance(1_000);
    }
    if (!life.isAlive()) continue;
    expect(isOver(life.state())).toBe(true);
    await life.close();
    return { lives, spans: spans(), open: open(), written: of.written, kept: of.entries.length };
  }
}

describe('a conversation in a trimmed journal', () => {
  test('ends each span while the journal is trimmed', async () => {
    const { spans, open, kept, written } = await talked(true, null);
    expect(open).toEqual([]);
    expect(kept).toBeLessThan(written / 4);
    expect(drawn(spans)).toEqual(drawn((await talked(false, null)).spans));
  });

  test.each(INSTANTS)(
    'writes the same spans as an untrimmed journal if it dies %s entry %i',
    async (when, at) => {
      const [whole, trimmed] = [await talked(false, [when, at]), await talked(true, [when, at])];
      expect(trimmed.open).toEqual([]);
      expect(tracesIn(trimmed.spans)).toBe(1);
      expect(drawn(trimmed.spans)).toEqual(drawn(whole.spans));
    },
  );
});

describe('a service of a program', () => {
  test.each([
    ['killed', false],
    ['suspended', true],
  ] as const)(
    'continues its trace from a snapshot if it was %s during a question',
    async (_, isSuspended) => {
      const { of, spans, open } = tracedWorld(true, null);
      const first = programLife(of, work);
      await first.service.recover();
      const id = first.wanted();
      await of.environment.advance(1_000);
      if (isSuspended) await first.service.suspend();
      else first.kill();
      expect(of.entries[0]?.event.type).toBe('service.snapshot');
      const next = programLife(of, work, {
        onQuestion: ({ kind }) => (kind === 'approval' ? { approved: true } : { text: 'comfort' }),
      });
      await next.service.recover();
      await of.environment.advance(10_000);
      expect(await next.resultOf(id)).toBe('Booked.');
      await next.close();
      expect(open()).toEqual([]);
      expect(tracesIn(spans())).toBe(1);
      const links = 'invoke_agent order parked=waiting_for_input continues→invoke_agent order';
      expect(drawn(spans())).toEqual([
        'offstage.session',
        '  invoke_agent order parked=waiting_for_input',
        '    chat scripted',
        `  ${links}`,
        '    chat scripted',
        '    execute_tool look outcome=ok',
        `  ${links}`,
        '    execute_tool charge outcome=ok',
        '    chat scripted',
        '    execute_tool look outcome=ok',
        '    chat scripted',
        '  invoke_agent order outcome=completed continues→invoke_agent order',
        '    chat scripted',
      ]);
      const steps = spans()
        .filter(({ name }) => name.startsWith('chat'))
        .map(({ attributes }) => attributes['offstage.step']);
      expect(steps).toEqual([1, 2, 3, 4, 5]);
    },
  );
});

test('omits spans that are missing from a snapshot written without tracing', async () => {
  const { exporter: _, ...own } = sdk();
  let isTraced = false;
  const of = world({
    snapshots: { afterEntries: 1, trim: true },
    wraps: (journal) =>
      isTraced ? tracedJournal(journal, { tracerProvider: own.tracerProvider }) : journal,
  });
  const untilApproval = programLife(of, work, {
    onQuestion: ({ kind }) => (kind === 'approval' ? new Promise(() => {}) : { text: 'comfort' }),
  });
  await untilApproval.service.recover();
  const id = untilApproval.wanted();
  await of.environment.advance(10_000);
  untilApproval.kill();
  isTraced = true;
  const next = programLife(of, work, {
    onQuestion: ({ kind }) => (kind === 'approval' ? { approved: true } : { text: 'comfort' }),
  });
  await next.service.recover();
  await of.environment.advance(10_000);
  expect(await next.resultOf(id)).toBe('Booked.');
  await next.close();
  expect(own.open).toEqual([]);
  // The approved call came before a step that the reader has seen, so neither the call nor the step after it has a
  // span.
  expect(drawn(own.spans())).toEqual([
    'offstage.session',
    '  invoke_agent order parked=waiting_for_input',
    '    execute_tool look outcome=ok',
    '    chat scripted',
    '  invoke_agent order outcome=completed continues→invoke_agent order',
    '    chat scripted',
  ]);
});

describe('a scope with two processes', () => {
  const asked = (seq: number): JournalEntry => withEvent({ type: 'response.requested' }, { seq });
  const told = (seq: number): JournalEntry => withEvent({ type: 'response.ended' }, { seq });
  const { scope } = entry(1);

  /** A journal that several processes share. Only the last one that claimed it may write. */
  function shared() {
    const kept = memoryJournal();
    let writer: object | null = null;
    return (): Journal => {
      const own = {};
      return {
        append(given) {
          if (writer === own) return kept.append(given);
          const error = new OffstageError('FENCED', 'another process writes it');
          return Promise.reject(error);
        },
        read: (query) => kept.read(query),
        claim: () => {
          writer = own;
        },
        release: () => {
          writer = null;
        },
      };
    };
  }

  test('continues its trace in the second process after that process claims it', async () => {
    const open = shared();
    const [here, there] = [sdk(), sdk()];
    const one = tracedJournal(open(), { tracerProvider: here.tracerProvider });
    const other = tracedJournal(open(), { tracerProvider: there.tracerProvider });
    await one.claim?.(scope);
    await one.append(asked(1));
    expect(await other.read({ scope })).toHaveLength(1);
    await one.append(told(2));
    await one.append(asked(3));
    await one.release?.(scope);
    await other.claim?.(scope);
    await other.read({ scope });
    await other.append(withEvent({ type: 'session.recovered' }, { seq: 4 }));
    await other.append(asked(5));
    await other.append(told(6));
    expect(tracesIn([...here.spans(), ...there.spans()])).toBe(1);
    expect(drawn(there.spans())).toEqual(['invoke_agent lead cause=delivery', '  chat']);
  });

  test("continues with another process's entries after losing and reclaiming its lease", async () => {
    const open = shared();
    const [here, there] = [sdk(), sdk()];
    const one = tracedJournal(open(), { tracerProvider: here.tracerProvider });
    const other = tracedJournal(open(), { tracerProvider: there.tracerProvider });
    const spawned = { type: 'subagent.spawned', name: 'worker' };
    const granted = { type: 'slot.granted' };
    await one.claim?.(scope);
    await one.append(asked(1));
    await other.claim?.(scope);
    await other.read({ scope });
    await other.append(withEvent(spawned, { unit: 'sub_1', seq: 1 }));
    await expect(one.append(told(2))).rejects.toThrow('another process');
    await one.claim?.(scope);
    await one.read({ scope });
    await one.append(withEvent(granted, { unit: 'sub_1', seq: 2 }));
    await one.release?.(scope);
    expect(here.open).toEqual([]);
    const names = here.spans().map(({ name }) => name);
    expect(names).toContain('invoke_agent worker');
    expect(tracesIn([...here.spans(), ...there.spans()])).toBe(1);
  });

  test('lets a reader without claims see entries that another process appended', async () => {
    const inner = memoryJournal();
    const [here, there] = [sdk(), sdk()];
    const one = tracedJournal(inner, { tracerProvider: here.tracerProvider });
    const reader = tracedJournal(inner, { tracerProvider: there.tracerProvider });
    expect(await reader.read({ scope })).toEqual([]);
    await one.append(
      withEvent({ type: 'subagent.spawned', name: 'worker' }, { unit: 'sub_1', seq: 1 }),
    );
    await reader.read({ scope });
    await one.append(withEvent({ type: 'slot.granted' }, { unit: 'sub_1', seq: 2 }));
    await reader.read({ scope });
    await reader.append(withEvent({ type: 'subagent.cancel' }, { unit: 'sub_1', seq: 3 }));
    expect(drawn(there.spans())).toEqual([
      'invoke_agent worker outcome=cancelled continues→lost',
      '  chat outcome=cancelled continues→lost',
    ]);
  });
});
