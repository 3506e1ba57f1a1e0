// One machine as a function: it takes a state and an event, and returns a state and effects. It uses XState's own
// `machine.transition` with one inert scope for all steps. The exported `transition()` would create an actor for each
// call and run the context factory again.
//
// Owns:     the states that its actor has reached, each only once, and the steps between them.
// Does not: know other actors, messages or properties.
//
// Invariants
//   PURE-ACTOR-1. Nothing is executed: actions are only listed, and invoked actors are never started.
//   PURE-ACTOR-2. Each state is represented by one object (`ActorState`), so that `===` compares states. Each step is
//       computed only once, because a machine is pure: the same event always has the same result.
//   PURE-ACTOR-3. Like a real actor, an actor that has ended does not handle any event. (`wouldLeave` returns the final
//       states that the pure transition would leave.)
//   PURE-ACTOR-4. Delayed events (`after`, `raise` and `sendTo` self with a delay) are armed and cancelled as in the
//       interpreter and fire once. If a machine sends an event to itself without a delay, the event is handled within
//       the same step.
//   PURE-ACTOR-5. An invoked or spawned actor completes (`xstate.done.actor.<id>`, `xstate.error.actor.<id>`) at most
//       once, and only while it is running.

import type {
  AnyActorRef,
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  AnyStateNode,
} from 'xstate';
import { ConfigurationError } from '../../values/errors.ts';
import { effectsOf, type ListedAction } from './effects.ts';
import { inertMachine, inertScope, type Scope } from './inert.ts';
import { completedBy, nothingPending, pendingAfter, type Pending, type Timer } from './pending.ts';
import { canonical } from './plain-data.ts';
import type { ActorDefinition, Delivery, Effect, Outcome } from './types.ts';

/** A state of one actor. Two states are equal if and only if they are the same object. */
export interface ActorState extends Pending {
  readonly snapshot: AnyMachineSnapshot;
  /** A number that stands for the actor's `key` in this state. */
  readonly keyNumber: number;
  /** The part of the key that is always included: the status, the armed timers and the running actors. */
  readonly life: string;
}

/** How an actor reacts to an event. */
export interface Move {
  readonly outcome: Outcome;
  readonly next: ActorState;
  readonly effects: readonly Effect[];
  /** The value that was thrown, if the outcome is `threw`. */
  readonly cause?: unknown;
}

/** The maximum number of events that a machine may send itself in one step; a machine that sends more never settles. */
const maxOwnMail = 1000;

export class PureActor {
  readonly id: string;
  readonly #machine: AnyStateMachine;
  readonly #definition: ActorDefinition<AnyStateMachine>;
  readonly #scope: Scope;
  readonly #timers: boolean;
  readonly #states = new Map<string, ActorState>();
  readonly #keyNumbers = new Map<string, number>();
  readonly #moves = new WeakMap<ActorState, Map<string, Move>>();
  readonly #eventsSeen = new Map<string, AnyEventObject>();
  #begun: Move | undefined;

  constructor(
    id: string,
    definition: ActorDefinition<AnyStateMachine>,
    options: { readonly timers: boolean; readonly peers: ReadonlyMap<string, AnyActorRef> },
  ) {
    this.id = id;
    this.#definition = definition;
    this.#machine = inertMachine(id, definition.machine);
    this.#scope = inertScope(id, options.peers);
    this.#timers = options.timers;
  }

  /** Returns whether the machine's root has a final state. A machine without a final state runs forever. */
  get canEnd(): boolean {
    return canEnd(this.#machine.root);
  }

  /** The number of different states that this actor has reached. */
  get stateCount(): number {
    return this.#states.size;
  }

  /** Computes the first step. Its outcome is `threw` if the machine cannot start, for example without its input. */
  begin(): Move {
    return (this.#begun ??= this.#begin());
  }

  #begin(): Move {
    const { start, input } = this.#definition;
    if (start !== undefined) {
      const snapshot: AnyMachineSnapshot = this.#machine.resolveState(start);
      const running = snapshot._nodes.flatMap((node) => node.invoke.map(({ id }) => id));
      return {
        outcome: 'taken',
        next: this.#stateOf(snapshot, { timers: [], running }),
        effects: [],
      };
    }
    const effects: Effect[] = [];
    const mail: AnyEventObject[] = [];
    const unbegun = { value: {}, context: {} } as AnyMachineSnapshot;
    let snapshot = unbegun;
    try {
      snapshot = this.#listing(undefined, effects, mail, () =>
        this.#machine.getInitialSnapshot(this.#scope, input),
      );
      snapshot = this.#takeMail(snapshot, effects, mail);
    } catch (error) {
      snapshot = Object.assign(this.#machine.resolveState(snapshot), { status: 'error', error });
    }
    if (snapshot.status === 'error') {
      const next = { snapshot, ...nothingPending, keyNumber: -1, life: 'error' };
      return { outcome: 'threw', next, effects, cause: snapshot.error };
    }
    return this.#moveTo(snapshot, nothingPending, 'xstate.init', effects);
  }

  /** Returns whether the event is possible: an actor that is not running cannot complete. */
  isPossible({ running }: ActorState, { type }: AnyEventObject): boolean {
    const id = completedBy(type);
    return id === undefined || running.includes(id);
  }

  /** Returns the step that `event` causes in `state`. `eventKey` is the canonical text of the event. */
  take(state: ActorState, event: AnyEventObject, eventKey: string): Move {
    let moves = this.#moves.get(state);
    if (moves === undefined) this.#moves.set(state, (moves = new Map<string, Move>()));
    let move = moves.get(eventKey);
    if (move === undefined) {
      this.#eventsSeen.set(eventKey, event);
      moves.set(eventKey, (move = this.#compute(state, event)));
    }
    return move;
  }

  /** Returns the state after `timer` has fired but before the actor handles the timer's event. */
  withoutTimer({ snapshot, timers, running }: ActorState, timer: Timer): ActorState {
    return this.#stateOf(snapshot, { timers: timers.filter((armed) => armed !== timer), running });
  }

  /** Yields the reached final states that the pure transition would still leave, each with an event that leaves it. */
  *wouldLeave(): Iterable<{ readonly state: ActorState; readonly event: AnyEventObject }> {
    for (const state of this.#states.values()) {
      if (state.snapshot.status !== 'done') continue;
      for (const event of this.#eventsSeen.values()) {
        if (!this.#leaves(state.snapshot, event)) continue;
        yield { state, event };
        break;
      }
    }
  }

  #leaves(snapshot: AnyMachineSnapshot, event: AnyEventObject): boolean {
    try {
      return answerTo(this.#machine, snapshot, event) === 'taken';
    } catch {
      return false; // A guard that throws for an event of another state counts as false.
    }
  }

  #compute(state: ActorState, event: AnyEventObject): Move {
    const stay = (outcome: Outcome, cause?: unknown): Move => ({
      outcome,
      next: state,
      effects: [],
      cause,
    });
    if (state.snapshot.status !== 'active') return stay('ended');
    const effects: Effect[] = [];
    let snapshot: AnyMachineSnapshot;
    try {
      snapshot = this.#takeMail(state.snapshot, effects, [event]);
    } catch (cause) {
      if (cause instanceof ConfigurationError && cause.code === 'SPAWN_WITHOUT_ID') throw cause;
      return stay('threw', cause);
    }
    if (snapshot.status === 'error') return stay('threw', snapshot.error);
    if (snapshot === state.snapshot && effects.length === 0) {
      return stay(answerTo(this.#machine, snapshot, event));
    }
    return this.#moveTo(snapshot, state, event.type, effects);
  }

  #moveTo(
    snapshot: AnyMachineSnapshot,
    before: Pending,
    eventType: string,
    effects: readonly Effect[],
  ): Move {
    let pending = nothingPending;
    if (snapshot.status === 'active') {
      pending = pendingAfter(before, eventType, effects, this.id);
      if (!this.#timers) pending = { ...pending, timers: [] };
    }
    return { outcome: 'taken', next: this.#stateOf(snapshot, pending), effects };
  }

  /** Handles the events in `mail` and those that the machine sends to itself in the process. */
  #takeMail(
    from: AnyMachineSnapshot,
    effects: Effect[],
    mail: AnyEventObject[],
  ): AnyMachineSnapshot {
    let snapshot = from;
    for (let count = 0; snapshot.status === 'active'; count++) {
      const event = mail.shift();
      if (event === undefined) break;
      if (count > maxOwnMail) throw new Error(`"${this.id}" sends itself events without end`);
      snapshot = this.#listing(snapshot, effects, mail, (before) =>
        this.#machine.transition(before, event, this.#scope),
      );
    }
    return snapshot;
  }

  /** Computes a step. Adds its effects to `effects`, and the events that the machine sends to itself to `mail`. */
  #listing<Before extends AnyMachineSnapshot | undefined>(
    before: Before,
    effects: Effect[],
    mail: AnyEventObject[],
    step: (before: Before) => AnyMachineSnapshot,
  ): AnyMachineSnapshot {
    const listed: ListedAction[] = [];
    this.#scope.actionExecutor = (action) => listed.push(action);
    const after = step(before);
    for (const effect of effectsOf(listed, after, before, this.#scope.self)) {
      const { to, event, delayMs } = (effect.params ?? {}) as Delivery & { delayMs?: number };
      if (effect.type === 'xstate.sendTo' && to === this.id && delayMs === undefined) {
        mail.push(event);
      } else {
        effects.push(effect);
      }
    }
    return after;
  }

  /** Returns the object that represents this state. Creates it when the state is reached for the first time. */
  #stateOf(snapshot: AnyMachineSnapshot, { timers, running }: Pending): ActorState {
    const whose = `the snapshot of "${this.id}"`;
    const { key } = this.#definition;
    const armed = timers.map(({ id, event }) => id ?? canonical(event, whose)).toSorted();
    const life = `${snapshot.status}(${armed.join()};${running.toSorted().join()})`;
    // States are distinguished by all their data even if a `key` merges worlds. Otherwise, another state with the same
    // key but different numbers could take its place.
    const exact = exactKey(snapshot, whose, key !== undefined);
    const chosen = key === undefined ? exact : canonical(key(snapshot), `the key of "${this.id}"`);
    const name = `${life} ${exact ?? chosen}`;
    let state = this.#states.get(name);
    if (state === undefined) {
      const keyName = `${life} ${chosen}`;
      const keyNumber = this.#keyNumbers.get(keyName) ?? this.#keyNumbers.size;
      this.#keyNumbers.set(keyName, keyNumber);
      this.#states.set(name, (state = { snapshot, timers, running, keyNumber, life }));
    }
    return state;
  }
}

function canEnd(node: AnyStateNode): boolean {
  const states = Object.values(node.states);
  return node.type === 'parallel'
    ? states.every(canEnd)
    : states.some(({ type }) => type === 'final');
}

/** Returns all data of a snapshot as text, or undefined if the snapshot is not plain data and `lenient` is set. */
function exactKey(
  snapshot: AnyMachineSnapshot,
  whose: string,
  lenient: boolean,
): string | undefined {
  try {
    return canonical(snapshotData(snapshot), whose);
  } catch (error) {
    if (lenient && error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

/**
 * Returns the data that distinguishes two snapshots in addition to their status and timers. Also accepts a persisted
 * snapshot.
 */
export function snapshotData(snapshot: AnyMachineSnapshot): unknown {
  const history: Record<string, unknown> = {};
  for (const [id, nodes] of Object.entries(snapshot.historyValue ?? {})) {
    history[id] = nodes.map((node) => node.id).toSorted();
  }
  const children = Object.keys(snapshot.children ?? {}).toSorted();
  return [snapshot.value, snapshot.context, children, history];
}

/** Returns how the pure machine would react to the event in this state. */
function answerTo(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
): 'taken' | 'ignored' | 'unhandled' {
  const transitions = machine.getTransitionData(snapshot, event);
  if (transitions.length === 0) return 'unhandled';
  return transitions.some(({ target, actions }) => target !== undefined || actions.length > 0)
    ? 'taken'
    : 'ignored';
}
