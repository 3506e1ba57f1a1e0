// The checker steps machines with one scope that it reuses, so it depends on XState internals. These tests compare the
// checker, step by step, with the exported `transition()` and with a live actor, on a machine that uses the features of
// statecharts.

import fc from 'fast-check';
import {
  assign,
  createActor,
  enqueueActions,
  fromPromise,
  initialTransition,
  raise,
  setup,
  SimulatedClock,
  transition,
  type AnyMachineSnapshot,
} from 'xstate';
import { expect, test } from 'vitest';
import { placeholders } from '../../../src/testing/check/inert.ts';
import { PureActor, snapshotData } from '../../../src/testing/check/pure-actor.ts';

type Event =
  | { type: 'go'; to: number }
  | { type: 'back' }
  | { type: 'pause' }
  | { type: 'resume' }
  | { type: 'xstate.done.actor.worker'; output: number };

const machine = setup({
  types: { context: {} as { total: number; visits: string[] }, events: {} as Event },
  actors: { worker: fromPromise<number, { total: number }>(() => new Promise(() => {})) },
  actions: {
    tell: (_args, _params: { total: number }) => {},
    visit: assign(({ context }, name: string) => ({
      visits: [...context.visits.slice(-2), name],
    })),
  },
}).createMachine({
  id: 'all',
  context: { total: 0, visits: [] },
  type: 'parallel',
  states: {
    ear: {
      initial: 'on',
      states: {
        on: { on: { pause: 'off' }, exit: { type: 'visit', params: 'ear' } },
        off: { on: { resume: 'on' }, after: { 500: 'on' } },
      },
    },
    mind: {
      initial: 'calm',
      on: { pause: '.asleep' },
      states: {
        history: { type: 'history', history: 'deep' },
        calm: {
          on: {
            go: [
              {
                guard: ({ event }) => event.to > 1,
                target: 'busy.hard',
                actions: raise({ type: 'back' }),
              },
              {
                target: 'busy',
                actions: assign({ total: ({ context, event }) => context.total + event.to }),
              },
            ],
          },
        },
        busy: {
          entry: enqueueActions(({ enqueue, context }) => {
            if (context.total % 2 === 0) enqueue({ type: 'visit', params: 'even' });
            enqueue({ type: 'tell', params: { total: context.total } });
          }),
          invoke: {
            id: 'worker',
            systemId: 'the-worker',
            src: 'worker',
            input: ({ context }) => ({ total: context.total }),
            onDone: { target: 'calm', actions: { type: 'visit', params: 'done' } },
          },
          initial: 'easy',
          states: {
            easy: { always: { guard: ({ context }) => context.total > 5, target: 'hard' } },
            hard: { on: { back: 'easy' }, tags: 'hard' },
          },
          on: { back: 'calm' },
        },
        asleep: { on: { resume: 'history' } },
      },
    },
  },
});

const events: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ type: fc.constant('go' as const), to: fc.integer({ min: 0, max: 3 }) }),
  fc.constantFrom<Event>(
    { type: 'back' },
    { type: 'pause' },
    { type: 'resume' },
    { type: 'xstate.done.actor.worker', output: 1 },
  ),
);

const begin = (): PureActor =>
  new PureActor('all', { machine }, { timers: true, peers: placeholders([]) });

const custom = (effects: readonly { type: string; params?: unknown }[]): unknown[] =>
  effects
    .filter(({ type }) => !type.startsWith('xstate.'))
    .map(({ type, params }) => [type, params]);

test('PURE-ACTOR-1: takes the same steps as `transition()`, with the names of its actions', () => {
  fc.assert(
    fc.property(fc.array(events, { maxLength: 12 }), (path) => {
      const pure = begin();
      let { next: state, effects } = pure.begin();
      let [expected, actions] = initialTransition(machine);
      expect(custom(effects)).toEqual(custom(actions));
      for (const event of path) {
        const key = JSON.stringify(event);
        ({ next: state, effects } = pure.take(state, event, key));
        [expected, actions] = transition(machine, expected, event);
        expect(snapshotData(state.snapshot)).toEqual(
          snapshotData(expected as unknown as AnyMachineSnapshot),
        );
        expect([...state.snapshot.tags]).toEqual([...expected.tags]);
        expect(custom(effects)).toEqual(custom(actions));
      }
    }),
  );
});

test('PURE-ACTOR-2: has the state and outcome of a live actor, and one object for equal states', () => {
  fc.assert(
    fc.property(fc.array(events, { maxLength: 12 }), (path) => {
      const pure = begin();
      const live = createActor(machine, { clock: new SimulatedClock() }).start();
      let state = pure.begin().next;
      const met = new Map<string, unknown>([[JSON.stringify(snapshotData(state.snapshot)), state]]);
      for (const event of path) {
        const before = live.getSnapshot();
        const move = pure.take(state, event, JSON.stringify(event));
        state = move.next;
        live.send(event);
        expect(snapshotData(state.snapshot)).toEqual(snapshotData(live.getSnapshot()));
        expect(move.outcome === 'taken').toBe(before.can(event));
        const name = JSON.stringify([snapshotData(state.snapshot), state.life]);
        expect(met.get(name) ?? state).toBe(state);
        met.set(name, state);
      }
      live.stop();
    }),
  );
});

test('PURE-ACTOR-4: arms the same timers as a live actor', () => {
  fc.assert(
    fc.property(fc.array(events, { maxLength: 12 }), (path) => {
      const pure = begin();
      const live = createActor(machine, { clock: new SimulatedClock() }).start();
      let state = pure.begin().next;
      for (const event of path) {
        state = pure.take(state, event, JSON.stringify(event)).next;
        live.send(event);
        const armed = Object.values(live.system.getSnapshot()._scheduledEvents);
        expect(state.timers.map((timer) => timer.event.type)).toEqual(
          armed.map((scheduled) => scheduled.event.type),
        );
      }
      live.stop();
    }),
  );
});
