// What the lead agent knows about the work until the user has heard its result.

import { expect, test } from 'vitest';
import { workNow } from '../../../../src/actors/session/lead/work.ts';

const item = (deliveryId: string, kind: 'result' | 'question' = 'result') => ({ deliveryId, kind });

const two = [
  { id: 'sub_1', definition: { name: 'report' } },
  { id: 'sub_2', definition: { name: 'ride' } },
];

/** The parts of a session that the test reads. */
function sessionWith(
  pending: readonly object[],
  current: object | null,
  live = two,
  { parts = [], progress = {} }: { parts?: string[]; progress?: Record<string, string> } = {},
) {
  const delivery = (id: string) =>
    id === 'call_1' ? { label: 'sales', text: 'Sales are up.' } : undefined;
  const batches = { ids: parts.length > 0 ? ['batch_1'] : [], contextOf: () => ({ parts }) };
  return {
    unit: { batches, outbox: { snapshot: { context: { pending, current } } } },
    tree: { live, uppermost: [] },
    records: { delivery, calls: new Map() },
    projection: { delivery, subagent: (id: string) => ({ progress: progress[id] ?? null }) },
  } as never;
}

test('lists running work, except subagents that are asking a question', () =>
  expect(workNow(sessionWith([], null), new Set(['sub_2']))).toEqual({
    running: ['report'],
    waitsToBeTold: [],
    beingTold: [],
  }));

test('lists finished work before and during its delivery, but no questions', () => {
  const waiting = sessionWith([item('call_1'), item('q', 'question')], item('q2', 'question'));
  expect(workNow(waiting)).toMatchObject({ waitsToBeTold: ['sales'], beingTold: [] });
  expect(workNow(sessionWith([], item('call_1')))).toMatchObject({
    waitsToBeTold: [],
    beingTold: ['sales'],
  });
});

test('lists a thousand subagents under at most twenty names, each with a count', () => {
  const many = (names: number) =>
    Array.from({ length: 1000 }, (_, at) => ({
      id: `sub_${at}`,
      definition: { name: `kind ${at % names}` },
    }));
  expect(workNow(sessionWith([], null, many(2))).running).toEqual([
    'kind 0 (500 of them)',
    'kind 1 (500 of them)',
  ]);
  const { running } = workNow(sessionWith([], null, many(50)));
  expect(running).toHaveLength(21);
  expect(running.at(-1)).toBe('and 30 other kinds');
});

test('shows the latest progress of running work', () =>
  expect(workNow(sessionWith([], null, two, { progress: { sub_2: '40 %' } })).running).toEqual([
    'report',
    { task: 'ride', progress: '40 %' },
  ]));

test('keeps listing a finished result while it waits for the other results of its request', () => {
  const parts = ['call_1'];
  expect(workNow(sessionWith([], null, two, { parts }))).toMatchObject({
    finished: [{ task: 'sales', result: 'Sales are up.' }],
  });
  expect(workNow(sessionWith([item('batch_1')], null, two, { parts }))).not.toHaveProperty(
    'finished',
  );
});
