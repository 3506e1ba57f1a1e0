// Many small machines in one unit, each stored as a record.

import { describe, expect, test } from 'vitest';
import { CommitUnit, type Posted } from '../../../src/actors/runtime/commit-unit.ts';
import { createHost } from '../../../src/actors/runtime/host.ts';
import { Population } from '../../../src/actors/runtime/hosting.ts';
import { Batches, defaultConsolidation } from '../../../src/actors/session/state/batches.ts';
import { memoryJournal } from '../../../src/index.ts';
import { questionMachine, toolCallMachine } from '../../../src/machines/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

function populated() {
  const environment = simulatedEnvironment();
  const host = createHost({ environment, journal: memoryJournal() });
  const released: Posted[] = [];
  const unit: CommitUnit = new CommitUnit(
    { id: 'unit', scope: 'scope', kind: 'test', definitionVersion: 1 },
    host,
    {
      take: (actor, event) =>
        population.accepts(actor.slice('question:'.length), event) ? event : null,
      apply: (actor, event) => population.apply(actor.slice('question:'.length), event),
      release: (posted) => released.push(posted),
      journalRefused() {},
      crashed(error) {
        throw error;
      },
    },
  );
  const population = new Population(questionMachine, 'question', unit, host);
  unit.start(() => {});
  return {
    environment,
    host,
    population,
    unit,
    released,
    create: (id: string) =>
      unit.start(() => population.create(id, { requestId: id, timeoutMs: 1000 })),
  };
}

describe('waiting members', () => {
  test('remain plain records, even when there are thousands', () => {
    const { population, create } = populated();
    for (let index = 0; index < 3000; index += 1) create(`q${index}`);
    expect(population.ids).toHaveLength(3000);
    expect(population.stateOf('q1234')).toMatchObject({
      value: 'queued',
      context: { requestId: 'q1234', remainingMs: 1000 },
      done: false,
    });
  });

  test('handle an event from their stored state, and emit effects under their own ids', () => {
    const { create, unit, population, released } = populated();
    for (const id of ['a', 'b']) create(id);
    unit.receive('question:b', { type: 'question.granted', epoch: 4 } as never);
    expect(population.stateOf('b')).toMatchObject({ value: 'presenting', context: { epoch: 4 } });
    expect(population.stateOf('a')?.value).toBe('queued');
    expect(released).toEqual([
      {
        actor: 'question:b',
        effect: { kind: 'do', name: 'present', params: { requestId: 'b' } },
      },
    ]);
  });

  test('ignore events that are not meant for them', () => {
    const { create, unit, population, released } = populated();
    create('a');
    unit.receive('question:a', { type: 'question.heard' });
    expect(population.stateOf('a')?.value).toBe('queued');
    expect(released).toEqual([]);
  });

  test('keep their timers', async () => {
    const { create, unit, population, environment } = populated();
    create('a');
    for (const event of [
      { type: 'question.granted', epoch: 1 },
      { type: 'question.playing' },
      { type: 'question.heard' },
    ])
      unit.receive('question:a', event);
    expect(population.stateOf('a')?.value).toBe('open');
    expect(environment.pendingTimers).toBe(1);
    await environment.advance(1000);
    expect(population.stateOf('a')).toMatchObject({ value: 'expired', done: true });
    expect(environment.pendingTimers).toBe(0);
  });
});

test('deletes a member without affecting the others', () => {
  const { create, unit, population } = populated();
  for (const id of ['a', 'b']) create(id);
  population.forget('a');
  unit.receive('question:a', { type: 'question.granted', epoch: 1 } as never);
  expect(population.stateOf('a')).toBeNull();
  expect(population.has('a')).toBe(false);
  expect(population.ids).toEqual(['b']);
});

test('reaches the same state for the same events, whether or not its members sleep', () => {
  const events = [
    { type: 'call.validated', execution: 'background', acknowledge: true },
    { type: 'subagent.accepted' },
    { type: 'subagent.ended' },
    { type: 'delivery.settled' },
  ] as const;
  const states: unknown[] = [];
  const host = createHost({ environment: simulatedEnvironment(), journal: memoryJournal() });
  const calls: { population?: Population } = {};
  const unit = new CommitUnit(
    { id: 'unit', scope: 'scope', kind: 'test', definitionVersion: 1 },
    host,
    {
      take: (_, event) => (calls.population?.accepts('c', event) === true ? event : null),
      apply: (_, event) => calls.population?.apply('c', event),
      release: ({ effect }) => states.push(effect.name),
      journalRefused() {},
      crashed(error) {
        throw error;
      },
    },
  );
  calls.population = new Population(toolCallMachine, 'call', unit, host);
  unit.start(() => calls.population?.create('c', { callId: 'c', timeoutMs: 5 }));
  for (const event of events) {
    unit.receive('call:c', event);
    states.push(calls.population.stateOf('c')?.value);
  }
  expect(states).toEqual([
    'validate',
    'delegate',
    'acknowledged',
    'answer',
    'delegated',
    'deliver',
    'settled',
    'delivered',
  ]);
  expect(calls.population.stateOf('c')?.done).toBe(true);
});

test("BATCH-2: stops waiting for the current request's calls once the next request makes a call", () => {
  const { unit, host } = populated();
  const batches = new Batches(defaultConsolidation, unit, host);
  const isReplying = () =>
    ['batch_a', 'batch_b'].map((id) => batches.contextOf(id)?.isReplying ?? null);
  const join = (callId: string, requestId: string): void =>
    unit.start(() => batches.join({ callId, requestId, isConsolidated: true, at: 0 }, true));
  join('a', 'first');
  expect(isReplying()).toEqual([true, null]);
  join('b', 'second');
  expect(isReplying()).toEqual([false, true]);
});
