// The steps of a statechart: state and event in, state and effects out. A step is the one that XState's own
// interpreter makes; what depends on the states alone (which are left and entered, and the actions of both) is
// worked out once for each set of active states and each transition, instead of in each step.
//
// It reads the definition that XState makes of a chart (its state nodes, their transitions, guards and actions),
// and the snapshots that it makes are XState's.
//
// Owns:     the selection of transitions, the actions of a step, the snapshot after it.
// Does not: run anything: effects are posted. Know more of SCXML than the charts of this package use (CHART-2).
//
// Invariants
//   CHART-1. A chart takes the steps that a live XState actor takes, with the same effects in the same order.
//   CHART-2. A chart that needs more than this file does (invoked actors, delays, history, raised events,
//       wildcards, final states inside of others) is refused when it begins.
//   CHART-3. Regions are in the order of the chart, whatever happened before: a restored snapshot takes the same
//       steps as the one that was stored.

import type {
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  AnyStateNode,
  AnyTransitionDefinition,
  EventObject,
  InputFrom,
  Snapshot,
  SnapshotFrom,
  StateValue,
} from 'xstate';
import { isEffect, type Activity, type ActivityStop } from '../../machines/effect.ts';
import { OffstageError } from '../../values/errors.ts';

/** An effect of a machine, as data. */
export type Effect =
  /** A named action. */
  | { readonly kind: 'do'; readonly name: string; readonly params: unknown }
  /** The start of an activity; it lasts until it is stopped. */
  | ({ readonly kind: 'start' } & Activity)
  | ({ readonly kind: 'stop' } & ActivityStop);

/** Receives the effects of a machine. */
export interface Postbox {
  post(effect: Effect): void;
}

/** Returns the first snapshot of a machine. Its effects go to `to`. */
export function begun<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M> | undefined,
  to: Postbox,
): SnapshotFrom<M> {
  const { context: make } = machine.config;
  const context: Context = typeof make === 'function' ? make({ input }) : (make ?? {});
  return chartOf(machine).begin(context, { type: 'xstate.init', input }, to) as SnapshotFrom<M>;
}

/** Returns the snapshot after an event. Its effects go to `to`. Throws the error of an action or a guard. */
export function moved<M extends AnyStateMachine>(
  machine: M,
  snapshot: SnapshotFrom<M>,
  event: AnyEventObject,
  to: Postbox,
): SnapshotFrom<M> {
  const before = snapshot as AnyMachineSnapshot;
  if (before.status !== 'active') return snapshot;
  return chartOf(machine).take(before, event, to) as SnapshotFrom<M>;
}

/** Tells whether this event would change anything. */
export function accepts(snapshot: AnyMachineSnapshot, event: EventObject): boolean {
  return snapshot.status === 'active' && chartOf(snapshot.machine).accepts(snapshot, event);
}

/** Returns the snapshot that `plain` described. */
export function restored<M extends AnyStateMachine>(
  machine: M,
  from: Snapshot<unknown>,
): SnapshotFrom<M> {
  const { value, context, status, output, error } = from as AnyMachineSnapshot;
  const { blank } = chartOf(machine).configurationOf(value);
  // A value in which the machine is done determines the status, whatever the snapshot states.
  const end = { output, error, status: blank.status === 'done' ? 'done' : (status ?? 'active') };
  return { ...blank, ...end, context: context ?? {} } as SnapshotFrom<M>;
}

type Context = AnyMachineSnapshot['context'];

interface Given {
  readonly context: Context;
  readonly event: AnyEventObject;
}

/** A guard or an action where it is used: its name, its name with params, or the function itself. */
type Use = string | { readonly type: string; readonly params?: unknown } | Implementation;

interface Implementation {
  (given: Given, params: unknown): unknown;
  /** Of a guard that XState made of others. */
  readonly check?: (snapshot: AnyMachineSnapshot, given: Given, guard: Implementation) => boolean;
  /** Of `assign`: the new values, or a function that returns them. */
  readonly assignment?: Assignment;
}

type Assigned = (given: Given, params: unknown) => unknown;
type Assignment = Assigned | Readonly<Record<string, unknown>>;

/** An action of a step: it changes the context, is a function of the chart, or else posts an effect. */
interface Action {
  readonly name: string;
  readonly params: unknown;
  readonly assignment: Assignment | null;
  readonly run: Implementation | null;
}

/** An active state with the active states in it. */
interface Active {
  readonly node: AnyStateNode;
  readonly inner: readonly Active[];
}

/** A transition, or several of different regions, from one configuration. */
interface Plan {
  /** Those of the states that are left, of the transitions, and of the states that are entered. */
  readonly actions: readonly Action[];
  readonly next: Configuration;
  /** Actions of all states that are left when the machine has ended; null: it has not. */
  readonly atEnd: readonly Action[] | null;
}

/** A set of states that are active together. */
interface Configuration {
  readonly root: Active;
  /** In the order of the chart. */
  readonly nodes: readonly AnyStateNode[];
  /** The eventless transitions of each innermost state and of the states around it, the inner ones first. */
  readonly eventless: readonly (readonly AnyTransitionDefinition[])[];
  /** A snapshot with no context. */
  readonly blank: AnyMachineSnapshot;
  /** By the transition that is taken alone, or the numbers of several. */
  readonly plans: Map<AnyTransitionDefinition | string, Plan>;
}

const MAX_STEPS = 1000;

const charts = new WeakMap<AnyStateMachine, Chart>();

function chartOf(machine: AnyStateMachine): Chart {
  let chart = charts.get(machine);
  if (!chart) charts.set(machine, (chart = new Chart(machine)));
  return chart;
}

class Chart {
  readonly #machine: AnyStateMachine;
  /** By the value of a snapshot (the value of `blank` itself is the quick way), and by its JSON. */
  readonly #configurations = new Map<unknown, Configuration>();
  readonly #numbers = new Map<AnyTransitionDefinition, number>();
  readonly #first: Plan;

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
    checkNode(machine.root);
    const next = this.#configuration([]);
    const actions = this.#actionsOf(next.nodes.flatMap(({ entry }) => entry));
    this.#first = { actions, next, atEnd: null };
  }

  begin(context: Context, event: AnyEventObject, to: Postbox): AnyMachineSnapshot {
    const first = { ...this.#first.next.blank, context };
    return this.#settle(this.#carryOut(this.#first, first, event, to), event, to);
  }

  take(snapshot: AnyMachineSnapshot, event: AnyEventObject, to: Postbox): AnyMachineSnapshot {
    const selected = this.#select(snapshot, event);
    const next = selected.length === 0 ? snapshot : this.#step(selected, snapshot, event, to);
    return this.#settle(next, event, to);
  }

  accepts(snapshot: AnyMachineSnapshot, event: EventObject): boolean {
    const selected = this.#select(snapshot, event);
    return selected.some(({ target, actions }) => target !== undefined || actions.length > 0);
  }

  configurationOf(value: StateValue): Configuration {
    const known = this.#configurations.get(value);
    if (known) return known;
    const key = JSON.stringify(value);
    let configuration = this.#configurations.get(key);
    if (!configuration) {
      const { value: whole } = this.#machine.resolveState({ value, context: {} });
      configuration = this.#configuration(nodesOf(this.#machine.root, whole));
      this.#configurations.set(key, configuration);
    }
    return configuration;
  }

  /** Returns the configuration with these states, those around them, and the initial ones of the others. */
  #configuration(states: readonly AnyStateNode[]): Configuration {
    const wanted = new Set<AnyStateNode>();
    for (const state of states)
      for (let node: AnyStateNode | undefined = state; node; node = node.parent) wanted.add(node);
    const root = activeIn(this.#machine.root, wanted);
    const value = valueOf(root);
    const key = JSON.stringify(value);
    const known = this.#configurations.get(key);
    if (known) return known;
    const blank: AnyMachineSnapshot = this.#machine.resolveState({ value, context: {} });
    const nodes: AnyStateNode[] = [];
    const eventless: AnyTransitionDefinition[][] = [];
    list(root, [], nodes, eventless);
    const made = { root, nodes, eventless, blank, plans: new Map() };
    this.#configurations.set(key, made);
    this.#configurations.set(blank.value, made);
    return made;
  }

  /** Returns the transitions for an event: one, or one for each of some regions. */
  #select(snapshot: AnyMachineSnapshot, event: EventObject): readonly AnyTransitionDefinition[] {
    const found: AnyTransitionDefinition[] = [];
    select(this.configurationOf(snapshot.value).root, snapshot, event, found);
    return found;
  }

  /** Takes eventless transitions until none is left. */
  #settle(snapshot: AnyMachineSnapshot, event: AnyEventObject, to: Postbox): AnyMachineSnapshot {
    let now = snapshot;
    for (let steps = 0; now.status === 'active'; steps += 1) {
      if (steps > MAX_STEPS)
        throw new Error(`"${this.#machine.id}" takes eventless steps without end`);
      const selected = new Set<AnyTransitionDefinition>();
      for (const transitions of this.configurationOf(now.value).eventless) {
        const first = firstOf(transitions, now, event);
        if (first) selected.add(first);
      }
      if (selected.size === 0) break;
      const next = this.#step([...selected], now, event, to);
      if (next === now) break;
      now = next;
    }
    return now;
  }

  #step(
    selected: readonly AnyTransitionDefinition[],
    snapshot: AnyMachineSnapshot,
    event: AnyEventObject,
    to: Postbox,
  ): AnyMachineSnapshot {
    const configuration = this.configurationOf(snapshot.value);
    const [first] = selected;
    const key =
      selected.length === 1 && first ? first : selected.map((one) => this.#numberOf(one)).join();
    let plan = configuration.plans.get(key);
    if (!plan) configuration.plans.set(key, (plan = this.#plan(configuration, selected)));
    return this.#carryOut(plan, snapshot, event, to);
  }

  #carryOut(
    { actions, next, atEnd }: Plan,
    snapshot: AnyMachineSnapshot,
    event: AnyEventObject,
    to: Postbox,
  ): AnyMachineSnapshot {
    const context = carriedOut(actions, snapshot.context, event, to);
    if (atEnd) {
      const output = this.#outputOf(next, context);
      const ended = { output, context: carriedOut(atEnd, context, event, to) };
      return { ...next.blank, ...ended } as AnyMachineSnapshot;
    }
    const isSame = context === snapshot.context && next.blank.value === snapshot.value;
    return isSame ? snapshot : { ...next.blank, context };
  }

  #outputOf({ nodes }: Configuration, context: Context): unknown {
    const { output } = this.#machine.root;
    const event = { type: `xstate.done.state.${nodes.at(-1)?.id ?? ''}` };
    return typeof output === 'function'
      ? (output as (given: Given) => unknown)({ context, event })
      : output;
  }

  #plan(from: Configuration, selected: readonly AnyTransitionDefinition[]): Plan {
    const taken = withoutConflicts(from, selected);
    const left = new Set(taken.flatMap((one) => leftBy(one, from)));
    const kept = from.nodes.filter((node) => !left.has(node));
    const next = this.#configuration([...kept, ...taken.flatMap(({ target }) => target ?? [])]);
    const entered = next.nodes.filter((node) => !kept.includes(node));
    const isEnd = entered.some(({ type }) => type === 'final');
    return {
      actions: this.#actionsOf([
        ...from.nodes
          .filter((node) => left.has(node))
          .toReversed()
          .flatMap(({ exit }) => exit),
        ...taken.flatMap(({ actions }) => actions),
        ...entered.flatMap(({ entry }) => entry),
      ]),
      next,
      atEnd: isEnd ? this.#actionsOf(next.nodes.toReversed().flatMap(({ exit }) => exit)) : null,
    };
  }

  #actionsOf(uses: readonly unknown[]): Action[] {
    const { actions } = this.#machine.implementations;
    return (uses as readonly Use[]).map((use) => {
      const name = nameOf(use);
      const action = (typeof use === 'function' ? use : actions[name]) as
        | Implementation
        | undefined;
      if (!action || ('resolve' in action && action.assignment === undefined))
        throw refused(this.#machine.id, `the action \`${name}\``);
      const { assignment = null } = action;
      const run = assignment === null && !isEffect(action) ? action : null;
      return { name, params: typeof use === 'object' ? use.params : undefined, assignment, run };
    });
  }

  #numberOf(transition: AnyTransitionDefinition): number {
    const number = this.#numbers.get(transition) ?? this.#numbers.size;
    this.#numbers.set(transition, number);
    return number;
  }
}

/** Adds the transitions for an event: those of inner states come before those of the states around them. */
function select(
  { node, inner }: Active,
  snapshot: AnyMachineSnapshot,
  event: EventObject,
  found: AnyTransitionDefinition[],
): void {
  const before = found.length;
  for (const active of inner) select(active, snapshot, event, found);
  if (found.length > before) return;
  const first = firstOf(node.transitions.get(event.type) ?? [], snapshot, event);
  if (first) found.push(first);
}

function firstOf(
  transitions: readonly AnyTransitionDefinition[],
  snapshot: AnyMachineSnapshot,
  event: EventObject,
): AnyTransitionDefinition | undefined {
  for (const transition of transitions)
    if (transition.guard === undefined || holds(transition.guard as Use, snapshot, event))
      return transition;
  return undefined;
}

function holds(use: Use, snapshot: AnyMachineSnapshot, event: EventObject): boolean {
  const { context, machine } = snapshot;
  const given: Given = { context, event };
  const guard = (typeof use === 'function' ? use : machine.implementations.guards[nameOf(use)]) as
    | Implementation
    | undefined;
  if (typeof guard !== 'function') throw refused(machine.id, `the guard \`${nameOf(use)}\``);
  if (guard.check) return guard.check(snapshot, given, guard);
  return guard(given, paramsOf(typeof use === 'object' ? use.params : undefined, given)) === true;
}

/** Carries out the actions of a step. Returns the context after them. */
function carriedOut(
  actions: readonly Action[],
  before: Context,
  event: AnyEventObject,
  to: Postbox,
): Context {
  let context = before;
  for (const { name, params: made, assignment, run } of actions) {
    const given = { context, event };
    const params = paramsOf(made, given);
    if (assignment) context = assigned(assignment, given, params);
    else if (run) run(given, params);
    else if (name === 'startActivity') to.post({ kind: 'start', ...(params as Activity) });
    else if (name === 'stopActivity') to.post({ kind: 'stop', ...(params as ActivityStop) });
    else to.post({ kind: 'do', name, params });
  }
  return context;
}

/** Returns the context with the values of an `assign`. */
function assigned(assignment: Assignment, given: Given, params: unknown): Context {
  if (typeof assignment === 'function')
    return { ...given.context, ...(assignment(given, params) as object) };
  const context = { ...given.context };
  for (const [key, value] of Object.entries(assignment))
    context[key] = typeof value === 'function' ? (value as Assigned)(given, params) : value;
  return context;
}

function paramsOf(params: unknown, given: Given): unknown {
  return typeof params === 'function' ? (params as (given: Given) => unknown)(given) : params;
}

function nameOf(use: Use): string {
  if (typeof use === 'string') return use;
  return typeof use === 'function' ? use.name : use.type;
}

/** Leaves out transitions that would leave a state twice: the one of an inner state counts, or the first. */
function withoutConflicts(
  from: Configuration,
  selected: readonly AnyTransitionDefinition[],
): AnyTransitionDefinition[] {
  let taken: AnyTransitionDefinition[] = [];
  for (const one of selected) {
    const left = new Set(leftBy(one, from));
    const rivals = taken.filter((other) => leftBy(other, from).some((node) => left.has(node)));
    if (rivals.some((rival) => !isInside(one.source, rival.source))) continue;
    taken = [...taken.filter((other) => !rivals.includes(other)), one];
  }
  return taken;
}

/** Returns the active states that a transition leaves. */
function leftBy(
  { source, target = [], reenter }: AnyTransitionDefinition,
  { nodes }: Configuration,
): AnyStateNode[] {
  if (target.length === 0) return [];
  const staysIn = !reenter && target.every((node) => node === source || isInside(node, source));
  let domain: AnyStateNode | undefined = source;
  if (!staysIn)
    do domain = domain.parent;
    while (domain && ![source, ...target].every((node) => isInside(node, domain)));
  if (!domain) throw refused(source.machine.id, 'a transition that enters the chart again');
  return nodes.filter((node) => isInside(node, domain));
}

function isInside(node: AnyStateNode, outer: AnyStateNode | undefined): boolean {
  let { parent } = node;
  while (parent && parent !== outer) ({ parent } = parent);
  return parent !== undefined;
}

/** Returns the state with those that are active in it: the wanted ones, or the initial ones. */
function activeIn(node: AnyStateNode, wanted: ReadonlySet<AnyStateNode>): Active {
  const states = Object.values(node.states);
  const active =
    node.type === 'compound'
      ? [states.find((state) => wanted.has(state)) ?? node.initial.target[0]]
      : states;
  return { node, inner: active.flatMap((state) => (state ? activeIn(state, wanted) : [])) };
}

/** Lists the active states, and for each innermost one the eventless transitions that concern it. */
function list(
  { node, inner }: Active,
  around: readonly AnyTransitionDefinition[],
  nodes: AnyStateNode[],
  eventless: AnyTransitionDefinition[][],
): void {
  const here = [...(node.always ?? []), ...around];
  nodes.push(node);
  for (const active of inner) list(active, here, nodes, eventless);
  if (inner.length === 0 && here.length > 0) eventless.push(here);
}

function valueOf({ node, inner }: Active): StateValue {
  const [first] = inner;
  if (node.type === 'compound' && first?.inner.length === 0) return first.node.key;
  return Object.fromEntries(inner.map((active) => [active.node.key, valueOf(active)]));
}

/** Returns the states that a value names. */
function nodesOf(node: AnyStateNode, value: StateValue | undefined): AnyStateNode[] {
  const named =
    typeof value === 'string' ? [[value, undefined] as const] : Object.entries(value ?? {});
  return named.flatMap(([key, inner]) => {
    const state = node.states[key];
    return state ? [state, ...nodesOf(state, inner)] : [];
  });
}

/** CHART-2 */
function checkNode(node: AnyStateNode): void {
  const { id, machine, type, parent } = node;
  const more =
    (type === 'history' && 'history') ||
    (node.invoke.length > 0 && 'an invoked actor') ||
    (node.after.length > 0 && 'a delay') ||
    (type === 'final' &&
      (parent !== machine.root || parent.type !== 'compound') &&
      'a final state') ||
    (type === 'compound' && node.initial.actions.length > 0 && 'an action of the initial state') ||
    ([...node.transitions.keys()].some((event) => event.includes('*')) && 'a wildcard');
  if (more) throw refused(machine.id, `${more} at "${id}"`);
  for (const state of Object.values(node.states)) checkNode(state);
}

function refused(chart: string, what: string): OffstageError {
  return new OffstageError(
    'INTERNAL',
    `The runtime has no steps for ${what} in the chart "${chart}"`,
  );
}
