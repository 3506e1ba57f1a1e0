// A commit unit with the smallest possible body. An accepted event is committed before its effects, whatever the
// journal does.

import { describe, expect, test } from 'vitest';
import {
  CommitUnit,
  type Message,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../../../src/actors/runtime/commit-unit.ts';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { memoryJournal, ProviderError, type Journal } from '../../../src/index.ts';
import type { Stamped } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { failingJournal, gatedJournal } from '../../support/journals.ts';

type Event = UnitEvent & Stamped & { readonly n?: number; readonly then?: readonly string[] };

/** Applies each event, and posts an effect for each name in `then`. */
class Recorder implements UnitBody {
  readonly applied: string[] = [];
  readonly released: string[] = [];
  readonly crashes: unknown[] = [];
  unit!: CommitUnit;
  routes: Record<string, readonly Message[]> = {};
  settles: Message[][] = [];
  onRelease: (posted: Posted) => void = () => {};

  take(_: string, event: Event): Event | null {
    if (event.type === 'untestable') throw new Error('a guard threw');
    if (event.type === 'unreadable') throw new Error('a reader threw');
    if (event.type === 'refused') return null;
    return event;
  }

  apply(actor: string, event: Event): void {
    if (event.type === 'poison') throw new Error('beyond repair');
    this.unit.draft.later(() => this.applied.push(`${actor}.${event.type}${event.n ?? ''}`));
    for (const name of event.then ?? [])
      this.unit.post(actor, { kind: 'do', name, params: undefined });
    if (event.type === 'arm')
      this.unit.post(actor, {
        kind: 'start',
        name: 'deadline',
        id: 'd',
        input: { dueAt: event.at + (event.n ?? 0), event: 'deadline.due' },
      });
    if (event.type === 'disarm') this.unit.post(actor, { kind: 'stop', name: 'deadline', id: 'd' });
  }

  route({ effect }: Posted): readonly Message[] {
    return this.routes[effect.name] ?? [];
  }

  settle(): readonly Message[] {
    return this.settles.shift() ?? [];
  }

  release(posted: Posted): void {
    this.released.push(posted.effect.name);
    this.onRelease(posted);
  }

  readonly refusals: unknown[] = [];

  journalRefused(error: unknown): void {
    this.refusals.push(error);
    this.unit.dispose();
  }

  crashed(error: unknown): void {
    this.crashes.push(error);
    this.unit.dispose();
  }
}

function unitWith(journal: Journal = memoryJournal()) {
  const environment = simulatedEnvironment();
  const errors: string[] = [];
  const ignored: string[] = [];
  const host = createHost({
    environment,
    journal,
    onError: (error, where) => errors.push(`${where}: ${(error as Error).message}`),
    onIgnored: (unit, actor, { type }) => ignored.push(`${unit}/${actor}.${type}`),
  });
  const body = new Recorder();
  const unit = new CommitUnit(
    { id: 'unit', scope: 'scope', kind: 'test', definitionVersion: 3 },
    host,
    body,
  );
  body.unit = unit;
  return { environment, journal, errors, ignored, body, unit };
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ type: 'go', n: index + 1, then: ['effect'] }));

describe('accepted events', () => {
  test("get an entry with a time, the machine's version and a number that starts at 1 in each unit", async () => {
    const { unit, journal, environment } = unitWith();
    unit.receive('a', { type: 'go' });
    await environment.advance(50);
    unit.receive('b', { type: 'go' });
    const at = environment.clock.now();
    expect(await journal.read()).toEqual([
      {
        scope: 'scope',
        seq: 1,
        at: at - 50,
        unit: 'unit',
        actor: 'a',
        definitionVersion: 3,
        event: { type: 'go', at: at - 50 },
      },
      {
        scope: 'scope',
        seq: 2,
        at,
        unit: 'unit',
        actor: 'b',
        definitionVersion: 3,
        event: { type: 'go', at },
      },
    ]);
  });

  test('COMMIT-UNIT-1: leave no entry and are reported as ignored if they are not accepted', async () => {
    const { unit, journal, ignored, body } = unitWith();
    unit.receive('a', { type: 'refused' });
    unit.receive('a', { type: 'go' });
    expect(ignored).toEqual(['unit/a.refused']);
    expect(body.applied).toEqual(['a.go']);
    expect((await journal.read()).map(({ seq, event }) => [seq, event.type])).toEqual([[1, 'go']]);
  });

  test(
    'COMMIT-UNIT-1: run one at a time in order of arrival, even if an effect adds another event',
    { tags: ['B83'] },
    () => {
      const { unit, body } = unitWith();
      body.onRelease = ({ effect }) => {
        if (effect.name === 'again') unit.receive('a', { type: 'go', n: 9 } as UnitEvent);
      };
      unit.receive('a', { type: 'go', n: 1, then: ['again', 'effect'] } as UnitEvent);
      expect(body.applied).toEqual(['a.go1', 'a.go9']);
      expect(body.released).toEqual(['again', 'effect']);
    },
  );

  test('COMMIT-UNIT-4: fail if their names start with "xstate."', () => {
    const { unit, body } = unitWith();
    for (const type of ['xstate.stop', 'xstate.init', 'xstate.done.actor.x'])
      expect(() => unit.receive('a', { type })).toThrow(
        expect.objectContaining({ name: 'ProtocolError', code: 'RESERVED_EVENT' }),
      );
    expect(body.applied).toEqual([]);
  });

  test('report an error when a guard throws, and leave later events unaffected', async () => {
    const journal = gatedJournal();
    const { unit, body, errors, environment } = unitWith(journal);
    journal.shut();
    unit.receive('a', { type: 'go', n: 1 } as UnitEvent);
    unit.receive('a', { type: 'untestable' });
    unit.receive('a', { type: 'go', n: 2 } as UnitEvent);
    journal.open();
    await environment.settle();
    expect(body.applied).toEqual(['a.go1', 'a.go2']);
    expect(errors).toEqual([expect.stringContaining('a guard threw')]);
  });
});

describe('an event to which no data can be added', () => {
  test('reports an error when a reader throws, and leaves later events unaffected', async () => {
    const journal = gatedJournal();
    const { unit, body, errors, ignored, environment } = unitWith(journal);
    journal.shut();
    unit.receive('a', { type: 'go', n: 1 } as UnitEvent);
    unit.receive('a', { type: 'unreadable' });
    unit.receive('a', { type: 'go', n: 2 } as UnitEvent);
    const handled = unit.whenHandled();
    journal.open();
    await environment.settle();
    expect(body.applied).toEqual(['a.go1', 'a.go2']);
    expect(errors).toEqual([expect.stringContaining('a reader threw')]);
    expect(ignored).toEqual(['unit/a.unreadable']);
    await handled;
  });
});

describe('a transaction', () => {
  test('COMMIT-UNIT-2: delivers messages within the unit before releasing effects in order', async () => {
    const { unit, journal, body } = unitWith();
    body.routes['first'] = [{ actor: 'b', event: { type: 'told', then: ['third'] } as UnitEvent }];
    body.onRelease = () => expect(body.applied).toEqual(['a.go', 'b.told', 'c.settled']);
    body.settles = [[{ actor: 'c', event: { type: 'settled', then: ['fourth'] } as UnitEvent }]];
    unit.receive('a', { type: 'go', then: ['first', 'second'] } as UnitEvent);
    expect(body.released).toEqual(['first', 'second', 'third', 'fourth']);
    // One transaction, one entry.
    expect(await journal.read()).toHaveLength(1);
  });

  test('skips a message within the unit that cannot be handled', () => {
    const { unit, body, ignored } = unitWith();
    body.routes['first'] = [{ actor: 'b', event: { type: 'refused' } }];
    unit.receive('a', { type: 'go', then: ['first', 'second'] } as UnitEvent);
    expect(body.released).toEqual(['first', 'second']);
    expect(ignored).toEqual([]);
  });

  test('COMMIT-UNIT-2: changes nothing when its step throws, and does not affect later events', async () => {
    const { unit, body, ignored, errors, journal } = unitWith();
    body.routes['first'] = [{ actor: 'b', event: { type: 'poison' } }];
    unit.receive('a', { type: 'go', then: ['first', 'second'] } as UnitEvent);
    expect(ignored).toEqual(['unit/a.go']);
    expect(errors).toEqual([expect.stringContaining('beyond repair')]);
    expect(body).toMatchObject({ applied: [], released: [], crashes: [] });
    unit.receive('a', { type: 'go' });
    expect(body.applied).toEqual(['a.go']);
    expect(await journal.read()).toHaveLength(1);
  });
});

describe('a slow journal', () => {
  test('COMMIT-UNIT-2: delays all consequences of an event until its entry has been written', async () => {
    const journal = gatedJournal();
    journal.shut();
    const { unit, body, environment } = unitWith(journal);
    for (const event of numbered(3)) unit.receive('a', event);
    await environment.advance(60_000);
    expect(body.applied).toEqual([]);
    expect(journal.waiting.map(({ seq }) => seq)).toEqual([1]);
    journal.keepOne();
    await environment.settle();
    expect(body.applied).toEqual(['a.go1']);
    expect(body.released).toEqual(['effect']);
    // Only one append runs at a time.
    expect(journal.waiting.map(({ seq }) => seq)).toEqual([2]);
    journal.open();
    await environment.settle();
    expect(body.applied).toEqual(['a.go1', 'a.go2', 'a.go3']);
    expect(journal.kept.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test('COMMIT-UNIT-2: returns any thenable, even one that is not an instance of Promise', async () => {
    const { unit, body, environment } = unitWith({
      append: () =>
        ({ then: (kept: () => void) => environment.scheduler.schedule(kept, 500) }) as never,
      read: () => [],
    });
    unit.receive('a', { type: 'go' });
    await environment.advance(499);
    expect(body.applied).toEqual([]);
    await environment.advance(1);
    expect(body.applied).toEqual(['a.go']);
  });

  test('COMMIT-UNIT-11: whenHandled resolves once the events queued so far are written or refused', async () => {
    const journal = gatedJournal();
    const { unit, environment } = unitWith(journal);
    await unit.whenHandled();
    journal.shut();
    const over: string[] = [];
    const wait = (name: string): void => void unit.whenHandled().then(() => over.push(name));
    unit.receive('a', { type: 'go' });
    unit.receive('a', { type: 'refused' });
    unit.receive('a', { type: 'go' });
    wait('three');
    await environment.settle();
    unit.receive('a', { type: 'go' });
    wait('four');
    await environment.settle();
    expect(over).toEqual([]);
    journal.keepOne();
    await environment.settle();
    // The refused one is also settled; the second `go` is waiting for the journal.
    expect(over).toEqual([]);
    wait('the last two');
    journal.keepOne();
    await environment.settle();
    expect(over).toEqual(['three']);
    journal.keepOne();
    await environment.settle();
    expect(over).toEqual(['three', 'four', 'the last two']);
  });

  test('COMMIT-UNIT-11: whenHandled rejects when the unit is disposed', async () => {
    const journal = gatedJournal();
    journal.shut();
    const { unit } = unitWith(journal);
    unit.receive('a', { type: 'go' });
    const handled = unit.whenHandled();
    unit.dispose();
    await expect(handled).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  test('COMMIT-UNIT-11: whenHandled rejects if the unit was already disposed', async () => {
    const { unit, body, environment } = unitWith(gatedJournal());
    unit.dispose();
    unit.receive('a', { type: 'go' });
    await expect(unit.whenHandled()).rejects.toMatchObject({ code: 'CANCELLED' });
    await environment.settle();
    expect(body.applied).toEqual([]);
  });

  test('COMMIT-UNIT-5: does not apply an entry that is written after the unit has been disposed', async () => {
    const journal = gatedJournal();
    journal.shut();
    const { unit, body, environment } = unitWith(journal);
    for (const event of numbered(2)) unit.receive('a', event);
    unit.dispose();
    journal.open();
    await environment.settle();
    expect(body.applied).toEqual([]);
    expect(journal.kept).toHaveLength(1);
  });

  describe('COMMIT-UNIT-8: a queue of 10,000 events', () => {
    const full = () => {
      const journal = gatedJournal();
      journal.shut();
      const made = { ...unitWith(journal), journal };
      // The journal contains the first one.
      for (let index = 0; index <= 10_000; index += 1) made.unit.receive('a', { type: 'go' });
      return made;
    };

    test('refuses a new request, and names the limit', () => {
      const { unit } = full();
      expect(() => unit.checkRoom()).toThrow(
        expect.objectContaining({
          name: 'CapacityError',
          code: 'MAILBOX_FULL',
          message: expect.stringContaining('10000'),
        }),
      );
    });

    test('accepts the consequences of accepted events, and reports the overflow once', async () => {
      const { unit, body, errors, environment, journal } = full();
      expect(errors).toEqual([]);
      for (const event of numbered(3)) unit.receive('b', event);
      expect(errors).toEqual([expect.stringContaining('10000 events wait already')]);
      journal.open();
      await environment.settle();
      expect(body.applied.slice(10_001)).toEqual(['b.go1', 'b.go2', 'b.go3']);
      expect(() => unit.checkRoom()).not.toThrow();
    });

    test('reports a later overflow again', async () => {
      const { unit, errors, environment, journal } = full();
      unit.receive('b', { type: 'go' });
      journal.open();
      await environment.settle();
      journal.shut();
      for (let index = 0; index <= 10_001; index += 1) unit.receive('a', { type: 'go' });
      expect(errors).toHaveLength(2);
    });
  });
});

describe('events that a unit has to refuse', () => {
  test("do not delay later events, even if the app's hooks throw", async () => {
    const journal = gatedJournal();
    const environment = simulatedEnvironment();
    const errors: string[] = [];
    const host = createHost({
      environment,
      journal,
      onError: (error, where) => errors.push(`${where}: ${String(error)}`),
      onIgnored: () => {
        throw new Error('the log is full');
      },
    });
    const body = new Recorder();
    const unit = new CommitUnit(
      { id: 'unit', scope: 'scope', kind: 'test', definitionVersion: 1 },
      host,
      body,
    );
    body.unit = unit;
    for (const event of [{ type: 'go' }, { type: 'refused' }, { type: 'late' }])
      unit.receive('a', event);
    await environment.settle();
    expect(body.applied).toEqual(['a.go', 'a.late']);
    expect(errors).toEqual(['onIgnored: Error: the log is full']);
  });
});

describe.each(['throws', 'rejects'] as const)('a journal that fails (%s)', (how) => {
  test('COMMIT-UNIT-3: receives its entries again after growing delays, without loss or reordering', async () => {
    const journal = failingJournal(how);
    const { unit, body, environment, errors } = unitWith(journal);
    journal.failNext(3);
    for (const event of numbered(3)) unit.receive('a', event);
    await environment.settle();
    expect(journal.failed).toHaveLength(1);
    await environment.advance(99);
    expect(journal.failed).toHaveLength(1);
    await environment.advance(1);
    expect(journal.failed).toHaveLength(2);
    await environment.advance(199);
    expect(journal.failed).toHaveLength(2);
    await environment.advance(1);
    expect(journal.failed).toHaveLength(3);
    expect(body.applied).toEqual([]);
    expect(body.released).toEqual([]);
    await environment.advance(400);
    expect(body.applied).toEqual(['a.go1', 'a.go2', 'a.go3']);
    expect(body.released).toEqual(['effect', 'effect', 'effect']);
    expect(journal.kept.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    // The time of an entry is the time of its acceptance, no matter when it was written.
    expect(journal.kept[0]?.at).toBe(journal.failed[0]?.at);
    expect(errors).toHaveLength(3);
  });

  test('COMMIT-UNIT-2: releases late effects in order, before the next event is accepted', async () => {
    const journal = failingJournal(how);
    const { unit, body, environment } = unitWith(journal);
    const order: string[] = [];
    body.onRelease = ({ effect }) => {
      order.push(`${effect.name}, applied ${body.applied.length}`);
      if (effect.name === 'first') unit.receive('a', { type: 'go', n: 2 } as UnitEvent);
    };
    journal.failNext(1);
    unit.receive('a', { type: 'go', n: 1, then: ['first', 'second', 'third'] } as UnitEvent);
    await environment.advance(100);
    expect(order).toEqual(['first, applied 1', 'second, applied 1', 'third, applied 1']);
    expect(body.applied).toEqual(['a.go1', 'a.go2']);
  });

  test('COMMIT-UNIT-3: limits the delay between its retries', async () => {
    const journal = failingJournal(how);
    const { unit, environment } = unitWith(journal);
    journal.failNext(1000);
    unit.receive('a', { type: 'go' });
    await environment.advance(100 * 2 ** 7);
    const before = journal.failed.length;
    await environment.advance(30_000);
    expect(journal.failed.length - before).toBe(3);
  });

  test('COMMIT-UNIT-5: does not delay a disposed unit', async () => {
    const journal = failingJournal(how);
    const { unit, environment, body, errors } = unitWith(journal);
    journal.failNext(1000);
    unit.receive('a', { type: 'go' });
    await environment.settle();
    unit.dispose();
    expect(environment.pendingTimers).toBe(0);
    await environment.advance(60_000);
    expect(journal.failed).toHaveLength(1);
    expect(errors).toHaveLength(1);
    expect(body.applied).toEqual([]);
  });
});

test('COMMIT-UNIT-5: has no effect when it fails after the unit has been disposed', async () => {
  let fail: (error: Error) => void = () => {};
  const { unit, environment, errors } = unitWith({
    append: () =>
      new Promise<void>((_, reject) => {
        fail = reject;
      }),
    read: () => [],
  });
  unit.receive('a', { type: 'go' });
  unit.dispose();
  fail(new Error('too late'));
  await environment.settle();
  expect(environment.pendingTimers).toBe(0);
  expect(errors).toEqual([]);
});

describe('a deadline', () => {
  const due = { type: 'arm', n: 1000 } as UnitEvent;

  test('arrives as an event that names it', { tags: ['B83'] }, async () => {
    const { unit, body, environment, journal } = unitWith();
    unit.receive('a', due);
    const dueAt = environment.clock.now() + 1000;
    await environment.advance(999);
    expect(body.applied).toEqual(['a.arm1000']);
    await environment.advance(1);
    expect(body.applied).toEqual(['a.arm1000', 'a.deadline.due']);
    expect((await journal.read()).at(-1)?.event).toMatchObject({ type: 'deadline.due', dueAt });
  });

  test('starts only once its cause has been written, and then fires on time', async () => {
    const journal = gatedJournal();
    journal.shut();
    const { unit, environment } = unitWith(journal);
    unit.receive('a', due);
    await environment.advance(600);
    expect(environment.pendingTimers).toBe(0);
    journal.keepOne();
    await environment.advance(399);
    expect(journal.waiting).toEqual([]);
    await environment.advance(1);
    expect(journal.waiting.map(({ event }) => event.type)).toEqual(['deadline.due']);
  });

  test('does not fire once it has been disarmed or rearmed', async () => {
    const { unit, body, environment } = unitWith();
    unit.receive('a', due);
    unit.receive('a', { type: 'disarm' });
    expect(environment.pendingTimers).toBe(0);
    unit.receive('a', due);
    await environment.advance(500);
    unit.receive('a', due);
    expect(environment.pendingTimers).toBe(1);
    await environment.advance(999);
    expect(body.applied).not.toContain('a.deadline.due');
    await environment.advance(1);
    expect(body.applied.filter((name) => name === 'a.deadline.due')).toHaveLength(1);
  });

  test('fires even when 10,000 events are waiting', async () => {
    const journal = gatedJournal();
    const { unit, body, environment, errors } = unitWith(journal);
    unit.receive('a', due);
    await environment.settle();
    journal.shut();
    for (let index = 0; index <= 10_000; index += 1) unit.receive('a', { type: 'go' });
    await environment.advance(1000);
    journal.open();
    await environment.settle();
    expect(errors).toEqual([expect.stringContaining('the unit still keeps every event')]);
    expect(body.applied.at(-1)).toBe('a.deadline.due');
  });

  test('COMMIT-UNIT-5: does not outlive the unit', async () => {
    const { unit, body, environment } = unitWith();
    unit.receive('a', due);
    unit.dispose();
    expect(environment.pendingTimers).toBe(0);
    await environment.advance(2000);
    expect(body.applied).toEqual(['a.arm1000']);
  });
});

describe('COMMIT-UNIT-6: a unit restored from the journal', () => {
  const kept = async (events: readonly Event[] | readonly UnitEvent[]) => {
    const first = unitWith();
    for (const event of events) first.unit.receive('a', event);
    await first.environment.settle();
    return { first, entries: await first.journal.read() };
  };

  test('has the same state, and does not execute any effect again', async () => {
    const { first, entries } = await kept(numbered(3));
    const { unit, body, environment } = unitWith();
    unit.refold(entries);
    await environment.settle();
    expect(body.applied).toEqual(first.body.applied);
    expect(first.body.released).toHaveLength(3);
    expect(body.released).toEqual([]);
  });

  test('repeats messages within the unit', async () => {
    const { unit, body } = unitWith();
    body.routes = { effect: [{ actor: 'b', event: { type: 'told' } }] };
    const { entries } = await kept(numbered(1));
    unit.refold(entries);
    expect(body.applied).toEqual(['a.go1', 'b.told']);
  });

  test('continues with the next entry number', async () => {
    const { entries } = await kept(numbered(2));
    const { unit, journal } = unitWith();
    unit.refold(entries);
    unit.receive('a', { type: 'go' });
    expect((await journal.read()).map(({ seq }) => seq)).toEqual([3]);
  });

  test('executes due effects when asked, and fires deadlines at their original times', async () => {
    const { unit, body, environment } = unitWith();
    const dueAt = environment.clock.now() + 500;
    const input = { dueAt, event: 'deadline.due' };
    unit.releaseDue([
      { actor: 'a', effect: { kind: 'start', name: 'deadline', id: 'd', input } },
      { actor: 'a', effect: { kind: 'do', name: 'again', params: undefined } },
    ]);
    expect(body.released).toEqual(['again']);
    await environment.advance(499);
    expect(body.applied).toEqual([]);
    await environment.advance(1);
    expect(body.applied).toEqual(['a.deadline.due']);
  });

  test('throws an error that names the missing entry or the entry with another version', async () => {
    const { entries } = await kept(numbered(3));
    expect(() => unitWith().unit.refold(entries.slice(1))).toThrow(/Expected entry 1 .* has 2/);
    const other = entries.map((entry) => ({ ...entry, definitionVersion: 2 }));
    expect(() => unitWith().unit.refold(other)).toThrow(/version 2 of `test`: this is version 3/);
  });

  test('handles events that arrive during the read after the earlier ones', async () => {
    const { unit, body, environment } = unitWith();
    unit.pause();
    unit.receive('a', { type: 'go', n: 2 } as UnitEvent);
    await environment.settle();
    expect(body.applied).toEqual([]);
    expect(unit.hasQueued(({ type }) => type === 'go')).toBe(true);
    unit.resume({ actor: 'a', event: { type: 'go', n: 1 } as UnitEvent });
    expect(body.applied).toEqual(['a.go1', 'a.go2']);
  });
});

describe('COMMIT-UNIT-7: a journal that refuses permanently', () => {
  test('receives an entry only once, and causes the unit to stop', async () => {
    const refusal = new ProviderError('FENCED', 'another process has it', { retryable: false });
    let appends = 0;
    const { unit, body, environment } = unitWith({
      append: () => {
        appends += 1;
        return Promise.reject(refusal);
      },
      read: () => [],
    });
    unit.receive('a', { type: 'go' });
    unit.receive('a', { type: 'go' });
    await environment.advance(60_000);
    expect(appends).toBe(1);
    expect(body.refusals).toEqual([refusal]);
    expect(body.applied).toEqual([]);
  });
});
