// The view for screens: each change is an immediate event, and the state comes in batches.

import { describe, expect, test } from 'vitest';
import { Projection } from '../../../../src/actors/session/state/projection.ts';
import type { SessionEvent, TranscriptItem } from '../../../../src/index.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';

const line = (id: string, at: number, final = true): SessionEvent => ({
  type: 'transcript.changed',
  item: { id, role: 'user', text: id, final, at } satisfies TranscriptItem,
});

function projected() {
  const environment = simulatedEnvironment();
  const errors: string[] = [];
  const projection = new Projection({ environment, report: (_, where) => errors.push(where) });
  const events: SessionEvent[] = [];
  projection.events.subscribe((event) => events.push(event));
  let states = 0;
  projection.store.subscribe(() => (states += 1));
  return { environment, projection, events, errors, states: () => states };
}

test('combines all changes of one event loop turn into one new state', async () => {
  const { projection, events, states, environment } = projected();
  for (let index = 0; index < 1000; index += 1) projection.emit(line(`l${index}`, index, false));
  expect(events).toHaveLength(1000);
  expect(states()).toBe(0);
  await environment.settle();
  expect(states()).toBe(1);
});

test('does not emit an event for an update without changes', () => {
  const { projection, events } = projected();
  projection.emit({ type: 'connection.changed', state: 'active' });
  projection.emit({ type: 'connection.changed', state: 'active' });
  projection.emit({ type: 'floor.changed', floor: 'nobody' });
  expect(events).toHaveLength(1);
});

test('sorts the transcript by start time, and keeps only its latest lines', async () => {
  const { projection, environment } = projected();
  projection.emit(line('late', 5000));
  projection.emit(line('early', 1));
  for (let index = 0; index < 600; index += 1) projection.emit(line(`l${index}`, 10 + index));
  projection.emit(line('open', 2, false));
  await environment.settle();
  const { transcript } = projection.store.getSnapshot().context;
  expect(transcript).toHaveLength(501);
  expect(transcript[0]?.id).toBe('open');
  expect(transcript.at(-1)?.id).toBe('l599');
});

describe('EVENT-ORDER-1: an event that a subscriber causes', () => {
  test('follows the event that caused it, for every subscriber', () => {
    const environment = simulatedEnvironment();
    const projection = new Projection({ environment, report: () => {} });
    const floors: string[] = [];
    projection.events.subscribe((event) => {
      if (event.type === 'floor.changed' && event.floor === 'user')
        projection.emit({ type: 'floor.changed', floor: 'nobody' });
    });
    projection.events.subscribe((event) => {
      if (event.type === 'floor.changed') floors.push(event.floor);
    });
    projection.emit({ type: 'floor.changed', floor: 'user' });
    expect(floors).toEqual(['user', 'nobody']);
  });

  test("precedes the session's end, even if the subscriber ends the session", () => {
    const environment = simulatedEnvironment();
    const projection = new Projection({ environment, report: () => {} });
    const seen: string[] = [];
    projection.events.subscribe(({ type }) => {
      if (type !== 'floor.changed') return;
      projection.emit({ type: 'session.ended', error: null });
      projection.complete();
    });
    projection.events.subscribe({
      next: ({ type }) => seen.push(type),
      complete: () => seen.push('complete'),
    });
    projection.emit({ type: 'floor.changed', floor: 'user' });
    expect(seen).toEqual(['floor.changed', 'session.ended', 'complete']);
  });
});

test('emits an event, but no new state, for a fact that the store does not contain', async () => {
  const { projection, events, states, environment } = projected();
  projection.emit({ type: 'client.json', data: 1 });
  await environment.settle();
  expect([events.length, states()]).toEqual([1, 0]);
});

test('reports a store listener that throws, without affecting others', async () => {
  const { projection, errors, environment } = projected();
  let isComplete = false;
  projection.events.subscribe({ complete: () => (isComplete = true) });
  projection.store.subscribe(() => {
    throw new Error('the screen broke');
  });
  projection.emit(line('a', 1));
  await environment.settle();
  projection.complete();
  expect(isComplete).toBe(true);
  expect(new Set(errors)).toEqual(new Set(['listener of the store']));
});

test('ignores all changes after the session has ended', async () => {
  const { projection, events, environment } = projected();
  projection.emit(line('one', 1));
  projection.complete();
  projection.emit(line('two', 2));
  await environment.settle();
  expect(events).toHaveLength(1);
  expect(projection.store.getSnapshot().context.transcript).toHaveLength(1);
});
