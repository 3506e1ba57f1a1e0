// The actors of an app's machines, as the inspector shows them. XState reports them to `inspect`.
//
// Owns:     the record of each actor, and the redaction of that record.
// Does not: keep an actor alive or lay out a chart.
//
// Invariants
//   OWN-MACHINES-1. `inspect` never throws and does not convert any data. It stores references to XState's reports, at
//       most `MAX_EVENTS` per actor. Data is converted only when the page requests the data.
//   OWN-MACHINES-2. With redaction, no text from contexts, events, outputs or errors is sent. State and event names
//       belong to the machine, so they are shown.
//   OWN-MACHINES-3. The `MAX_ENDED` actors that ended last are stored, and at most `MAX_LISTED` actors are listed.

import type { AnyStateMachine, InspectionEvent } from 'xstate';
import type { Clock } from '../actors/ports/environment.ts';
import { ActorRegistry, type ActorRecord } from '../adapters/inspect/actor-registry.ts';
import { shownValue, type Redact } from '../adapters/inspect/shown-value.ts';
import { chartOf, eventName, graphOf, type ChartState, type Graph } from './charts.ts';

/** An actor in the list. */
export interface ListedMachine {
  readonly id: string;
  readonly name: string;
  readonly parentId: string | null;
  /** The state as text, or the status if the actor has no states. */
  readonly state: string;
}

/** An actor in its current state. */
export interface ShownMachine extends ListedMachine {
  readonly status: string;
  /** The state of the actor's machine, or null if the actor has no states. */
  readonly value: unknown;
  /** The id of the machine's chart, or null if there is none. The page requests each chart once. */
  readonly chart: string | null;
  readonly context: unknown;
  readonly output: unknown;
  readonly error: unknown;
  /** The latest events, newest first. */
  readonly events: readonly {
    readonly at: number;
    readonly type: string;
    readonly event: unknown;
  }[];
  /** The latest transitions, keyed by the path of the state that handled the event. */
  readonly moves: readonly {
    readonly from: string;
    readonly event: string;
    readonly to: readonly string[];
  }[];
}

/** The chart of an app's machine, and the graph for its layout (null if the graph is too large). */
export interface OwnChart {
  readonly chart: ChartState;
  readonly graph: Graph | null;
}

interface Noted {
  readonly at: number;
  readonly event: { readonly type: string };
}

interface Transition {
  readonly eventType: string;
  readonly source: { readonly path: readonly string[] };
  readonly target?: readonly { readonly path: readonly string[] }[] | undefined;
}

/** The recent events and transitions of an actor. */
interface History {
  readonly events: Noted[];
  transitions: readonly Transition[];
}

const MAX_EVENTS = 20;
const MAX_ENDED = 200;
const MAX_LISTED = 2_000;
const MAX_NAME = 200;
const MAX_CHARTS = 1_000;
const MAX_SHOWN_BYTES = 32_768;

export class OwnMachines {
  readonly #actors = new ActorRegistry(MAX_ENDED);
  readonly #histories = new WeakMap<ActorRecord, History>();
  readonly #machines = new Map<string, WeakRef<AnyStateMachine>>();
  /** Keyed by definition, because a machine with other actions has the same chart. */
  readonly #charts = new WeakMap<object, string>();
  readonly #redact: Redact;
  readonly #clock: Clock;
  readonly #onError: (error: unknown, where: string) => void;
  /** Makes chart names unique to this process, because a page may outlive the process. */
  readonly #since: number;
  #count = 0;

  constructor(redact: Redact, clock: Clock, onError: (error: unknown, where: string) => void) {
    this.#redact = redact;
    this.#clock = clock;
    this.#onError = onError;
    this.#since = clock.now();
  }

  /** XState's inspection callback. */
  readonly inspect = (event: InspectionEvent): void => {
    try {
      this.#note(event);
    } catch (error) {
      this.#onError(error, 'inspect');
    }
  };

  list(): readonly ListedMachine[] {
    const listed: ListedMachine[] = [];
    for (const record of this.#actors.records) {
      if (listed.length >= MAX_LISTED) break;
      listed.push(listedOf(record));
    }
    return listed;
  }

  /** Returns an actor in its current state, or null if the actor is unknown or no longer stored. */
  at(id: string): ShownMachine | null {
    const record = this.#recordOf(id);
    if (!record) return null;
    const snapshot = record.snapshot() ?? {};
    const { events = [], transitions = [] } = this.#histories.get(record) ?? {};
    const chart = this.#charts.get(configOf(record)) ?? null;
    return {
      ...listedOf(record),
      status: snapshot.status ?? 'active',
      value: chart === null ? null : (snapshot['value'] ?? null),
      chart,
      context: this.#show(snapshot['context'], 'context'),
      output: this.#show(snapshot['output'], 'output'),
      error: this.#show(snapshot['error'], 'error'),
      events: events.toReversed().map(({ at, event }) => ({
        at,
        type: cut(event.type),
        event: this.#show(event, 'event'),
      })),
      moves: transitions.slice(0, MAX_EVENTS).map(({ eventType, source, target = [] }) => ({
        from: source.path.join('.'),
        event: eventName(eventType),
        to: target.map(({ path }) => path.join('.')),
      })),
    };
  }

  /** Returns the chart with this name, or null if its machine has been garbage-collected. */
  chart(name: string): OwnChart | null {
    const machine = this.#machines.get(name)?.deref();
    return machine ? { chart: chartOf(machine), graph: graphOf(machine) } : null;
  }

  #recordOf(id: string): ActorRecord | null {
    for (const record of this.#actors.records) if (record.identity.wireId === id) return record;
    return null;
  }

  #note(event: InspectionEvent): void {
    const { actorRef: actor } = event;
    if (!('sessionId' in actor)) return;
    if (!this.#actors.knows(actor)) {
      this.#actors.register(actor);
      this.#name('logic' in actor ? actor.logic : null);
    }
    if (event.type === '@xstate.event') {
      const { events } = this.#historyOf(actor);
      events.push({ at: this.#clock.now(), event: event.event });
      if (events.length > MAX_EVENTS) events.shift();
    } else if (event.type === '@xstate.microstep') {
      if (event._transitions.length > 0) this.#historyOf(actor).transitions = event._transitions;
    } else if (event.type === '@xstate.snapshot') this.#actors.observe(actor, event.snapshot);
  }

  #historyOf(actor: Parameters<ActorRegistry['find']>[0]): History {
    const record = this.#actors.find(actor);
    const history = (record && this.#histories.get(record)) ?? { events: [], transitions: [] };
    if (record) this.#histories.set(record, history);
    return history;
  }

  /** Returns the name of a machine's chart. */
  #name(logic: unknown): void {
    if (!isMachine(logic) || this.#charts.has(logic.config)) return;
    this.#count += 1;
    const chart = `${this.#since}.${this.#count}`;
    this.#charts.set(logic.config, chart);
    this.#machines.set(chart, new WeakRef(logic));
    for (const [name, machine] of this.#machines)
      if (this.#machines.size > MAX_CHARTS || !machine.deref()) this.#machines.delete(name);
  }

  #show(value: unknown, section: string): unknown {
    return value === undefined
      ? null
      : (shownValue(value, section, this.#redact, { bytesLeft: MAX_SHOWN_BYTES }) ?? null);
  }
}

const NO_DEFINITION = {};

function configOf({ identity: { config } }: ActorRecord): object {
  return typeof config === 'object' && config !== null ? config : NO_DEFINITION;
}

function isMachine(logic: unknown): logic is AnyStateMachine {
  return typeof logic === 'object' && logic !== null && 'root' in logic && 'config' in logic;
}

function listedOf(record: ActorRecord): ListedMachine {
  const { wireId: id, name, parentId = null } = record.identity;
  const snapshot = record.snapshot();
  const { status = 'active' } = snapshot ?? {};
  const isDone = status !== 'active';
  const state = isDone || snapshot?.['value'] === undefined ? status : stateText(snapshot['value']);
  return { id, name: cut(name), parentId, state: cut(state) };
}

/** Returns a state as text: `{ light: 'green', walk: { asked: {} } }` becomes `light.green, walk.asked`. */
function stateText(value: unknown): string {
  return leavesOf(value).join(', ');
}

function leavesOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value ?? {}).flatMap(([key, below]) => {
    const leaves = leavesOf(below);
    return leaves.length === 0 ? [key] : leaves.map((leaf) => `${key}.${leaf}`);
  });
}

const cut = (text: string): string =>
  text.length > MAX_NAME ? `${text.slice(0, MAX_NAME - 1)}…` : text;
