// What screens see: each change as an event at once, the state in bulk.

import { expect, test } from 'vitest';
import { Projection } from '../../../src/actors/session/projection.ts';
import type { SessionEvent, TranscriptItem } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const line = (id: string, at: number, final = true): SessionEvent => ({
  type: 'transcript.changed',
  item: { id, role: 'user', text: id, final, at } satisfies TranscriptItem,
});

function projected() {
  const environment = simulatedEnvironment();
  const projection = new Projection(environment);
  const events: SessionEvent[] = [];
  projection.events.subscribe((event) => events.push(event));
  let states = 0;
  projection.store.subscribe(() => (states += 1));
  return { environment, projection, events, states: () => states };
}

test('many changes of one turn of the event loop are one new state', async () => {
  const { projection, events, states, environment } = projected();
  for (let index = 0; index < 1000; index += 1) projection.emit(line(`l${index}`, index, false));
  expect(events).toHaveLength(1000);
  expect(states()).toBe(0);
  await environment.settle();
  expect(states()).toBe(1);
});

test('what changes nothing is no event', () => {
  const { projection, events } = projected();
  projection.emit({ type: 'connection.changed', state: 'active' });
  projection.emit({ type: 'connection.changed', state: 'active' });
  projection.emit({ type: 'floor.changed', floor: 'nobody' });
  expect(events).toHaveLength(1);
});

test('the transcript stands in the order of beginning, and its end is kept', async () => {
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

test('after the end nothing changes any more', async () => {
  const { projection, events, environment } = projected();
  projection.emit(line('one', 1));
  projection.complete();
  projection.emit(line('two', 2));
  await environment.settle();
  expect(events).toHaveLength(1);
  expect(projection.store.getSnapshot().context.transcript).toHaveLength(1);
});
