// Run slots: never too many, first come, first served, and no session is delayed by another session's limit.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Slots } from '../../../src/actors/admission/supervisor.ts';

function slotsOf(total: number, sessions: Record<string, number>) {
  const slots = new Slots(total);
  const granted: string[] = [];
  for (const [session, limit] of Object.entries(sessions)) slots.open(session, limit);
  return {
    slots,
    granted,
    ask: (session: string, id: string, resumed = false) =>
      slots.request(session, id, resumed, () => granted.push(id)),
  };
}

describe('SLOTS-1: limits', () => {
  test('allow at most n slots per session', { tags: ['R12', 'RW6'] }, () => {
    const { slots, granted, ask } = slotsOf(10, { a: 2 });
    ask('a', 'a1');
    expect(slots.isFree('a')).toBe(true);
    ask('a', 'a2');
    expect(slots.isFree('a')).toBe(false);
    ask('a', 'a3');
    expect(granted).toEqual(['a1', 'a2']);
    slots.release('a', 'a1');
    expect(granted).toEqual(['a1', 'a2', 'a3']);
    expect(slots.held).toBe(2);
  });

  test('apply to all sessions together', () => {
    const { slots, granted, ask } = slotsOf(2, { a: 5, b: 5 });
    for (const [session, id] of [
      ['a', 'a1'],
      ['b', 'b1'],
      ['b', 'b2'],
    ] as const)
      ask(session, id);
    expect(granted).toEqual(['a1', 'b1']);
    expect(slots.isFree('a')).toBe(false);
    slots.release('a', 'a1');
    expect(granted).toEqual(['a1', 'b1', 'b2']);
  });
});

describe('SLOTS-2: order', () => {
  test('serves first come, first served, across sessions', () => {
    const { slots, granted, ask } = slotsOf(1, { a: 1, b: 1 });
    ask('a', 'a1');
    for (const id of ['b1', 'b2']) ask('b', id);
    ask('a', 'a2');
    ask('b', 'b3');
    for (const [session, id] of [
      ['a', 'a1'],
      ['b', 'b1'],
      ['b', 'b2'],
      ['a', 'a2'],
    ] as const)
      slots.release(session, id);
    expect(granted).toEqual(['a1', 'b1', 'b2', 'a2', 'b3']);
  });

  test('serves resuming subagents before new ones', () => {
    const { slots, granted, ask } = slotsOf(1, { a: 1 });
    ask('a', 'a1');
    ask('a', 'a2');
    ask('a', 'a3', true);
    ask('a', 'a4', true);
    for (const id of ['a1', 'a3', 'a4']) slots.release('a', id);
    expect(granted).toEqual(['a1', 'a3', 'a4', 'a2']);
  });

  test('does not let a session at its own limit delay the others', () => {
    const { granted, ask } = slotsOf(10, { a: 1, b: 2 });
    for (const id of ['a1', 'a2']) ask('a', id);
    for (const id of ['b1', 'b2']) ask('b', id);
    expect(granted).toEqual(['a1', 'b1', 'b2']);
  });
});

describe('SLOTS-3: a subagent that leaves the queue', () => {
  test('does not receive a slot afterwards', () => {
    const { slots, granted, ask } = slotsOf(1, { a: 1 });
    for (const id of ['a1', 'a2', 'a3']) ask('a', id);
    slots.release('a', 'a2');
    slots.release('a', 'a1');
    expect(granted).toEqual(['a1', 'a3']);
  });

  test('returns only one slot when it leaves twice', () => {
    const { slots, granted, ask } = slotsOf(2, { a: 2 });
    for (const id of ['a1', 'a2', 'a3', 'a4']) ask('a', id);
    slots.release('a', 'a1');
    slots.release('a', 'a1');
    expect(granted).toEqual(['a1', 'a2', 'a3']);
  });

  test('frees the slot of a closed session for other sessions', () => {
    const { slots, granted, ask } = slotsOf(1, { a: 1, b: 1 });
    ask('a', 'a1');
    ask('b', 'b1');
    slots.close('a');
    slots.release('a', 'a1');
    expect(granted).toEqual(['a1', 'b1']);
  });
});

test('does not grant a second slot when the holder of a slot asks again', () => {
  const { slots, granted, ask } = slotsOf(2, { a: 2 });
  ask('a', 'a1');
  ask('a', 'a1');
  expect(granted).toEqual(['a1']);
  expect(slots.held).toBe(1);
});

test('SLOTS-1 to SLOTS-3: hold for any sequence of events', () => {
  const step = fc.record({
    session: fc.constantFrom('a', 'b', 'c'),
    number: fc.nat(7),
    act: fc.constantFrom('fresh', 'resume', 'release'),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      (steps, total) => {
        const limits = { a: 1, b: 2, c: 3 };
        const slots = new Slots(total);
        for (const [session, limit] of Object.entries(limits)) slots.open(session, limit);
        const holding = new Map<string, string>();
        const waiting = new Map<string, { session: string; resumed: boolean; number: number }>();
        let numbers = 0;
        for (const { session, number, act } of steps) {
          const id = `${session}${number}`;
          if (act === 'release') {
            holding.delete(id);
            waiting.delete(id);
            slots.release(session, id);
          } else if (!holding.has(id) && !waiting.has(id)) {
            const resumed = act === 'resume';
            waiting.set(id, { session, resumed, number: (numbers += 1) });
            slots.request(session, id, resumed, () => {
              const own = waiting.get(id);
              // No earlier or resumed subagent of the same session is still waiting.
              for (const other of waiting.values())
                if (own && other.session === session && other !== own)
                  expect(
                    own.resumed === other.resumed ? own.number < other.number : own.resumed,
                  ).toBe(true);
              waiting.delete(id);
              holding.set(id, session);
            });
          }
          expect(holding.size).toBeLessThanOrEqual(total);
          expect(slots.held).toBe(holding.size);
          for (const [name, limit] of Object.entries(limits)) {
            const held = [...holding.values()].filter((holder) => holder === name).length;
            expect(held).toBeLessThanOrEqual(limit);
            // No subagent is waiting while a slot is free.
            const someoneWaits = [...waiting.values()].some((waiter) => waiter.session === name);
            if (someoneWaits) expect(held === limit || holding.size === total).toBe(true);
          }
        }
      },
    ),
    { numRuns: 300, seed: 7 },
  );
});
