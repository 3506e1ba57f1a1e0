// Offstage's messages are the same as those of `@statelyai/inspect` when both watch the same machine.

import {
  createInspector as createStatelyInspector,
  type StatelyActorEvent,
  type StatelyEventEvent,
  type StatelyInspectionEvent,
  type StatelySnapshotEvent,
} from '@statelyai/inspect';
import { expect, expectTypeOf, test } from 'vitest';
import { assign, createActor, createMachine, fromPromise, setup } from 'xstate';
import {
  createInspector,
  type ActorMessage,
  type EventMessage,
  type InspectorMessage,
  type SnapshotMessage,
} from '../../../src/adapters/inspect/index.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { seen } from './support/receiver.ts';

const counter = setup({
  types: { context: {} as { count: number; label: string }, events: {} as { type: 'ADD' | 'END' } },
  actors: { look: fromPromise(async () => 'found') },
  guards: { isSmall: ({ context }) => context.count < 3 },
}).createMachine({
  id: 'counter',
  context: { count: 0, label: 'two words' },
  initial: 'counting',
  states: {
    counting: {
      tags: ['busy'],
      invoke: { id: 'look', src: 'look' },
      on: {
        ADD: { guard: 'isSmall', actions: assign({ count: ({ context }) => context.count + 1 }) },
        END: 'over',
      },
    },
    over: { type: 'final' },
  },
});

test('sends the same messages as the package, except names and parents', async () => {
  const environment = simulatedEnvironment();
  const ours: InspectorMessage[] = [];
  const inspector = await createInspector({
    environment,
    redact: false,
    to: { mode: 'sink', send: (message) => ours.push(message) },
  });
  const theirs: StatelyInspectionEvent[] = [];
  const view = seen();
  const stately = createStatelyInspector({
    send: (message) => {
      theirs.push(message);
      view.take(message as unknown as InspectorMessage);
    },
  });
  const actor = createActor(counter, {
    id: 'counter_1',
    inspect: (event) => {
      inspector.inspect(event);
      stately.inspect.next?.(event);
    },
  });
  actor.start();
  actor.send({ type: 'ADD' });
  actor.send({ type: 'END' });
  await environment.advance(50);
  await view.until(({ messages }) => messages.length >= ours.length);

  // The package reads the first snapshot late, and reports the time of sending instead of the time of the event.
  const comparable = (message: InspectorMessage | StatelyInspectionEvent) => {
    const plain = JSON.parse(JSON.stringify(message)) as Record<string, unknown>;
    const { createdAt, sessionId, parentId, sourceId, rootId, snapshot, ...rest } = plain;
    const definition = JSON.parse((rest['definition'] as string | undefined) ?? '{}') as object;
    const kinds = [createdAt, sessionId, parentId, sourceId, rootId].map((value) => typeof value);
    return {
      ...rest,
      definition,
      kinds,
      snapshot: rest['type'] === '@xstate.actor' ? typeof snapshot : snapshot,
    };
  };
  expect(ours.map(comparable)).toEqual(theirs.map(comparable));
  expect(ours.length).toBeGreaterThan(8);
  const [first] = ours;
  expect(first).toMatchObject({ snapshot: { status: 'active', value: 'counting' } });
  actor.stop();
});

test('declares the same types as the package, except the id', () => {
  expectTypeOf<Omit<EventMessage, 'id'>>().toExtend<Omit<StatelyEventEvent, 'id'>>();
  expectTypeOf<Omit<ActorMessage, 'id'>>().toExtend<Omit<StatelyActorEvent, 'id'>>();
  expectTypeOf<Omit<SnapshotMessage, 'id' | 'snapshot'>>().toExtend<
    Omit<StatelySnapshotEvent, 'id' | 'snapshot'>
  >();
});

test('names an actor that is not a machine', async () => {
  const environment = simulatedEnvironment();
  const view = seen();
  const inspector = await createInspector({ environment, to: { mode: 'sink', send: view.take } });
  createActor(
    fromPromise(async () => 'x'),
    { id: 'lookup', inspect: inspector.inspect },
  ).start();
  const unnamed = createActor(createMachine({ id: 'lamp' }), {
    inspect: inspector.inspect,
  }).start();
  await environment.advance(50);
  expect(JSON.parse(view.actor('lookup')!.definition)).toEqual({ id: 'lookup' });
  expect(view.actor(unnamed.sessionId)).toMatchObject({ name: 'lamp', parentId: undefined });
});
