import {
  assign,
  createActor,
  createMachine,
  fromPromise,
  sendTo,
  setup,
  type AnyActorRef,
  type AnyMachineSnapshot,
} from 'xstate';
import { describe, expect, test } from 'vitest';
import {
  checkMachine,
  checkSystem,
  interpreter,
  replay,
  ViolationError,
  type ReplayHarness,
} from '../../../src/testing/check/index.ts';
import { floor, onePhaseSteward, speaker, twoPhaseSteward } from './floor-system.ts';

type Reply = { accepted: boolean };

const order = setup({
  types: {
    context: {} as { refusals: number },
    events: {} as { type: 'order' } | { type: 'cancel' },
  },
  actors: {
    shop: fromPromise<Reply>(async () => {
      throw new Error('not provided');
    }),
  },
  guards: { mayTryAgain: ({ context }) => context.refusals < 2 },
  actions: { celebrate: () => {} },
}).createMachine({
  id: 'order',
  context: { refusals: 0 },
  initial: 'idle',
  states: {
    idle: { on: { order: 'ordering', cancel: 'cancelled' } },
    ordering: {
      invoke: {
        id: 'shop',
        src: 'shop',
        onDone: [
          { guard: ({ event }) => event.output.accepted, target: 'bought', actions: 'celebrate' },
          {
            guard: 'mayTryAgain',
            target: 'idle',
            actions: assign({ refusals: ({ context }) => context.refusals + 1 }),
          },
          { target: 'cancelled' },
        ],
      },
      after: { 5000: 'idle', 60_000: 'cancelled' },
      on: { cancel: 'cancelled' },
    },
    bought: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

/** Invoked actors that never respond. The path supplies their completions. */
const silentShop = { shop: fromPromise(() => new Promise<Reply>(() => {})) };

const checkOrder = () =>
  checkMachine(order, {
    events: () => [
      { type: 'order' },
      { type: 'cancel' },
      { type: 'xstate.done.actor.shop', output: { accepted: true } },
      { type: 'xstate.done.actor.shop', output: { accepted: false } },
    ],
  });

const errorOf = async (run: Promise<unknown>): Promise<ViolationError> => {
  const error: unknown = await run.then(
    () => new Error('Expected a violation'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ViolationError) return error;
  throw error;
};

describe('the paths of a report', () => {
  test('cover every transition with a shortest path', () => {
    const report = checkOrder();
    const { model } = report.checked;
    const covered = new Set<string>();
    const lengths = new Map<string, number>();
    let paths = 0;
    for (const { choices } of report.paths()) {
      paths++;
      let world = model.start().at(-1)!.after;
      for (const [step, choice] of choices.entries()) {
        const from = model.keyOf(world);
        // No other path reaches the state in fewer steps.
        lengths.set(from, Math.min(lengths.get(from) ?? step, step));
        expect(step).toBe(lengths.get(from));
        world = model.apply(world, choice).at(-1)!.after;
        covered.add(`${from} ${choice.kind} ${choice.eventKey} ${model.keyOf(world)}`);
      }
    }
    expect(covered.size).toBe(report.transitions);
    expect(paths).toBeLessThan(report.transitions);
  });
});

describe('paths on the interpreter', () => {
  test('match the model of a machine, including timers', async () => {
    const report = checkOrder();
    const done = await replay(report);
    expect(done).toMatchObject({ skipped: 0, violations: [] });
    expect(done.paths).toBe([...report.paths()].length);
    expect(done.steps).toBeGreaterThan(done.paths);
  });

  test.each(['sync', 'async'] as const)('match a system with %s delivery', async (mode) => {
    const report = checkSystem(
      floor({ mode, duplicates: mode === 'async', end: false, invariants: {} }),
    );
    const done = await replay(report, { paths: [...report.paths()].slice(0, 400) });
    expect(done.steps).toBeGreaterThan(50);
  });

  test('match a machine with real implementations and real completions of its actors', async () => {
    const replies: ((reply: Reply) => void)[] = [];
    let celebrations = 0;
    const real = order.provide({
      actors: { shop: fromPromise<Reply>(() => new Promise((resolve) => replies.push(resolve))) },
      actions: { celebrate: () => celebrations++ },
    });
    const report = checkOrder();
    const harness = interpreter(report, {
      create: (id, { clock }) => createActor(real, { id, clock }),
      send: (actor, { event }) => {
        if (event.type === 'xstate.done.actor.shop') replies.at(-1)?.(event['output'] as Reply);
        else actor.send(event);
      },
      // A promise takes a few turns of the microtask queue to reach the machine.
      settle: async () => {
        for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      },
    });
    await replay(report, { harness });
    expect(celebrations).toBeGreaterThan(0);
  });

  test('report the path on which a real guard differs', async () => {
    const stubborn = order.provide({
      actors: silentShop,
      guards: { mayTryAgain: () => true },
    });
    const report = checkOrder();
    const harness = interpreter(report, {
      create: (id, { clock }) => createActor(stubborn, { id, clock }),
    });
    const { message, violation } = await errorOf(replay(report, { harness }));
    expect(violation.kind).toBe('replay');
    expect(violation.reason).toBe(
      '"order" is idle [active] {refusals: 3}, the model says cancelled [done] {refusals: 2}.',
    );
    expect(violation.trace.steps.at(-1)?.step.event).toEqual({
      type: 'xstate.done.actor.shop',
      output: { accepted: false },
    });
    expect(message).toContain('order ← xstate.done.actor.shop {output: {accepted: false}}');
  });

  test('report a real machine that stops with an error', async () => {
    const broken = order.provide({
      actors: silentShop,
      actions: {
        celebrate: () => {
          throw new Error('no champagne');
        },
      },
    });
    const report = checkOrder();
    const harness = interpreter(report, {
      create: (id, { clock }) => createActor(broken, { id, clock }),
    });
    const { violation } = await errorOf(replay(report, { harness }));
    expect(violation.reason).toContain('"order" is ordering [error: no champagne]');
    expect(violation.reason).toContain('the model says bought [done]');
  });

  test('report a timer if the real machine does not arm it', async () => {
    const { states } = order.config;
    const patient = createMachine({
      ...order.config,
      states: { ...states, ordering: { ...states?.['ordering'], after: { 5000: 'idle' } } },
    } as never).provide({ ...order.implementations, actors: silentShop } as never);
    const report = checkOrder();
    const harness = interpreter(report, {
      create: (id, { clock }) => createActor(patient, { id, clock }),
    });
    const { violation } = await errorOf(replay(report, { harness }));
    expect(violation.reason).toContain('xstate.after.60000.order.ordering');
    expect(violation.reason).toContain('the live actor has armed no such timer');
  });

  test('report a real system that is in a different state', async () => {
    const report = checkSystem(floor({ mode: 'async', steward: twoPhaseSteward }));
    const harness = interpreter(report, {
      create: (id, { clock }) =>
        createActor(id === 'steward' ? onePhaseSteward : speaker, { id, clock }),
    });
    const { violation } = await errorOf(replay(report, { harness }));
    expect(violation.reason).toMatch(/"steward" is (free|owned) .*the model says revoking/);
    const collected = await replay(report, { harness, onViolation: 'collect' });
    expect(collected.violations.length).toBeGreaterThan(1);
    expect(collected.violations.length).toBeLessThan(collected.paths);
  });

  test('report a message that is missing from the real channel', async () => {
    const mute = setup({}).createMachine({
      initial: 'listening',
      states: {
        listening: { on: { want: 'queued', leave: 'gone' } },
        queued: { tags: 'waiting', on: { leave: 'gone' } },
        gone: { type: 'final' },
      },
    });
    const report = checkSystem(floor({ mode: 'async' }));
    const harness = interpreter(report, {
      create: (id, { clock }) =>
        createActor(id === 'steward' ? twoPhaseSteward : mute, { id, clock }),
    });
    const { violation } = await errorOf(replay(report, { harness }));
    expect(violation.reason).toContain('the real message in the channel from "ann" is nothing');
  });

  test('deliver a live `sendTo` to `system.get` and to the actor itself, like the model', async () => {
    const machine = (other: string) =>
      createMachine({
        context: { balls: 0 },
        on: {
          serve: { actions: sendTo(({ self }) => self, { type: 'ball' }) },
          ball: {
            guard: ({ context }) => context.balls < 3,
            actions: [
              assign({ balls: ({ context }) => context.balls + 1 }),
              sendTo(({ system }) => system.get(other) as AnyActorRef, { type: 'ball' }),
            ],
          },
        },
      });
    for (const mode of ['sync', 'async'] as const) {
      const report = checkSystem({
        actors: { left: { machine: machine('right') }, right: { machine: machine('left') } },
        mode,
        external: (_, id) => (id === 'left' ? [{ type: 'serve' }] : []),
        end: ({ actors, inFlight }) => inFlight.length === 0 && actors.left.context.balls === 3,
      });
      expect(report.ends).toBe(1);
      await replay(report);
    }
  });

  test('deliver a message that a live actor sends to itself once', async () => {
    const machine = createMachine({
      context: { ticks: 0 },
      initial: 'on',
      states: {
        on: {
          on: {
            go: { actions: sendTo(({ self }) => self, { type: 'tick' }) },
            tick: { actions: assign({ ticks: ({ context }) => context.ticks + 1 }) },
            off: 'off',
          },
          always: { guard: ({ context }) => context.ticks > 2, target: 'off' },
        },
        off: { type: 'final' },
      },
    });
    const report = checkMachine(machine, { events: () => [{ type: 'go' }, { type: 'off' }] });
    expect(await replay(report)).toMatchObject({ violations: [], skipped: 0 });
  });

  test('start in the state in which the check started', async () => {
    const start = order.resolveState({ value: 'idle', context: { refusals: 2 } });
    const report = checkMachine(order, {
      start,
      events: () => [{ type: 'order' }, { type: 'cancel' }],
    });
    expect(await replay(report)).toMatchObject({ violations: [] });
  });
});

describe('paths in a custom harness', () => {
  /** A host that stores the snapshot as JSON between events. `spoil` changes the stored snapshot. */
  const jsonHost = (spoil: (json: string) => string): ReplayHarness => ({
    start() {
      let stored = JSON.stringify(createActor(order).getPersistedSnapshot());
      return {
        take({ event, kind }) {
          if (kind === 'timer') return 'impossible';
          const actor = createActor(order.provide({ actors: silentShop }), {
            snapshot: JSON.parse(stored),
          }).start();
          actor.send(event as { type: 'order' });
          stored = spoil(JSON.stringify(actor.getPersistedSnapshot()));
          actor.stop();
          return undefined;
        },
        snapshot: () => JSON.parse(stored) as AnyMachineSnapshot,
        stop() {},
      };
    },
  });

  test('compare persisted snapshots and count the paths that need simulated time as skipped', async () => {
    const report = checkOrder();
    const done = await replay(report, { harness: jsonHost((json) => json) });
    expect(done.skipped).toBeGreaterThan(0);
    expect(done.skipped).toBeLessThan(done.paths);
  });

  test('detect a host that alters a persisted snapshot', async () => {
    const report = checkOrder();
    const harness = jsonHost((json) => json.replace('"refusals":1', '"refusals":0'));
    const { violation } = await errorOf(replay(report, { harness }));
    expect(violation.reason).toBe(
      '"order" is idle [active] {refusals: 0}, the model says idle [active] {refusals: 1}.',
    );
  });
});
