// The harness of `replay` for XState's own interpreter. It runs live actors and reads their effects from the inspector.
// The check's route turns the effects into messages.
//
// Invariants
//   INTERPRETER-1. Messages are delivered in the order of the check. `sync`: in the order in which they are sent,
//       before the step ends. `async`: when the path delivers them.
//   INTERPRETER-2. A timer fires when the path fires it, and only if the live actor has armed it.

import {
  createActor,
  SimulatedClock,
  type AnyActor,
  type AnyMachineSnapshot,
  type InputFrom,
} from 'xstate';
import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { effectsOf, type ListedAction } from './effects.ts';
import { inertMachine, placeholders } from './inert.ts';
import { canonical, show } from './plain-data.ts';
import { checkReport, type CheckReport } from './report.ts';
import type { AnySystem } from './system-model.ts';
import type {
  Delivery,
  Effect,
  Machines,
  Message,
  Step,
  World,
  ReplayHarness,
  ReplayRun,
  SnapshotLike,
} from './types.ts';

type CreateActor<M extends Machines> = (
  id: string,
  options: { readonly clock: SimulatedClock; readonly input: InputFrom<M[keyof M]> },
) => AnyActor;

/** The options for `interpreter`. */
export interface InterpreterOptions<M extends Machines = Machines> {
  /**
   * Creates an actor without starting it, for example an actor of the machine with its real implementations. The
   * actor's actions have real effects, but the check's `route` still creates the messages of the system.
   * @defaultValue an actor of the checked machine, whose invoked actors do nothing
   */
  readonly create?: CreateActor<M>;
  /**
   * Makes an environment event happen in the real system, for example a completion that only the invoked actor can
   * send.
   * @defaultValue the event is sent to the actor
   */
  readonly send?: (actor: AnyActor, step: Step) => void | Promise<void>;
  /** Awaited after every step, for an implementation that settles later. @defaultValue nothing */
  readonly settle?: () => Promise<void>;
}

const optionsSchema = z.strictObject({
  create: aFunction.optional(),
  send: aFunction.optional(),
  settle: aFunction.optional(),
} satisfies ChecksOf<InterpreterOptions>);

/**
 * Runs the machines of a check as XState actors.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the report does not come from a check; `INVALID_OPTION`.
 */
export function interpreter<M extends Machines, G>(
  report: CheckReport<M, G>,
  options: InterpreterOptions<M> = {},
): ReplayHarness {
  checkReport('interpreter(report)', report);
  check('interpreter(report, options)', optionsSchema, options);
  const { system } = report.checked;
  const inert = new Map(
    Object.entries(system.actors).map(([id, { machine }]) => [id, inertMachine(id, machine)]),
  );
  const create: CreateActor<Machines> = (id, { clock, input }) => {
    const machine = inert.get(id);
    if (machine === undefined) throw noActor(id);
    const start = system.actors[id]?.start as AnyMachineSnapshot | undefined;
    return createActor(machine, {
      id,
      clock,
      input,
      snapshot: start && machine.resolveState(start),
    });
  };
  const chosen = (options.create as CreateActor<Machines> | undefined) ?? create;
  return { start: () => interpretedRun(system, { ...options, create: chosen }) };
}

type RunOptions = InterpreterOptions & { readonly create: CreateActor<Machines> };

async function interpretedRun(system: AnySystem, options: RunOptions): Promise<ReplayRun> {
  const live = new Map<string, AnyActor>();
  const inFlight: Message[] = [];
  /** The effects of the actors that have not become messages yet. */
  const actions: {
    readonly from: string;
    readonly actor: AnyActor;
    readonly action: ListedAction;
  }[] = [];

  /** Converts the effects that have occurred since the last call to messages. */
  function post(): void {
    for (const { from, actor, action } of actions.splice(0)) {
      const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
      const [effect] = effectsOf([action], snapshot, snapshot, actor);
      if (effect === undefined) continue;
      const { to, event, delayMs } = (effect.params ?? {}) as Delivery & { delayMs?: number };
      if (effect.type === 'xstate.sendTo' && live.has(to)) {
        // A message to the actor itself is really sent, because only the other actors in its system are placeholders.
        if (to !== from && delayMs === undefined) inFlight.push({ from, to, event });
        continue;
      }
      for (const sent of route(from, effect)) inFlight.push({ from, ...sent });
    }
  }

  function route(from: string, effect: Effect): readonly Delivery[] {
    const actors = Object.fromEntries(
      [...live].map(([id, actor]) => [id, actor.getSnapshot() as unknown]),
    );
    const world = { actors, inFlight, ghost: undefined };
    const routed =
      system.route?.(from, effect as Step['effects'][number], world as World<Machines, unknown>) ??
      [];
    return (Array.isArray(routed) ? routed : [routed]) as readonly Delivery[];
  }

  /** Waits until the step ends. In a `sync` system, this includes all deliveries that the step causes. */
  async function rest(): Promise<void> {
    for (;;) {
      await options.settle?.();
      post();
      const next = system.mode === 'sync' ? inFlight.shift() : undefined;
      if (next === undefined) return;
      sendTo(actorOf(next.to), next);
    }
  }

  /** Delivers the first message of a channel. It must be the message that the model expects there. */
  function deliver({ actor, from, event, kind }: Step): void {
    const index = inFlight.findIndex((message) => message.from === from && message.to === actor);
    const message = inFlight[index];
    if (message === undefined || canonical(message.event, '') !== canonical(event, '')) {
      const got = message === undefined ? 'nothing' : show(message.event);
      throw new Error(`the real message in the channel from "${from ?? ''}" is ${got}`);
    }
    if (kind === 'message') inFlight.splice(index, 1);
    sendTo(actorOf(actor), { event });
  }

  function actorOf(id: string): AnyActor {
    const actor = live.get(id);
    if (actor === undefined) throw noActor(id);
    return actor;
  }

  const { create } = options;
  const peers = placeholders(Object.keys(system.actors));
  for (const [id, { input }] of Object.entries(system.actors)) {
    const actor = create(id, { clock: new SimulatedClock(), input });
    const ownGet = actor.system.get.bind(actor.system) as (systemId: string) => unknown;
    Object.assign(actor.system, {
      get: (systemId: string): unknown => ownGet(systemId) ?? peers.get(systemId),
    });
    actor.system.inspect((event) => {
      if (event.type === '@xstate.action' && event.actorRef === actor) {
        actions.push({ from: id, actor, action: event.action });
      }
    });
    actor.subscribe({ error: () => {} });
    live.set(id, actor);
  }
  for (const actor of live.values()) actor.start();
  await rest();
  return {
    async take(step) {
      const actor = actorOf(step.actor);
      if (step.kind === 'timer') fire(actor, step);
      else if (step.kind === 'environment') await (options.send ?? sendTo)(actor, step);
      else deliver(step);
      await rest();
    },
    snapshot: (id) => actorOf(id).getSnapshot() as SnapshotLike,
    stop() {
      for (const actor of live.values()) actor.stop();
    },
  };
}

function noActor(id: string): ConfigurationError {
  return new ConfigurationError('UNKNOWN_ACTOR', `replay: unknown actor "${id}"`);
}

function sendTo(actor: AnyActor, { event }: Pick<Step, 'event'>): void {
  // An ended actor would do nothing except log a warning.
  const { status } = actor.getSnapshot() as AnyMachineSnapshot;
  if (status === 'active') actor.send(event);
}

/** Fires an armed timer now, even if others are due first, because the model has no clock. */
function fire(actor: AnyActor, { event }: Step): void {
  const armed = Object.values(actor.system.getSnapshot()._scheduledEvents).find(
    (scheduled) =>
      scheduled.source === actor && canonical(scheduled.event, '') === canonical(event, ''),
  );
  if (armed === undefined) throw new Error('the live actor has armed no such timer');
  actor.system.scheduler.cancel(actor, armed.id);
  actor.send(event);
}
