// Plants a fault by returning the same machine with one change.

import { createMachine, type AnyStateMachine } from 'xstate';

/** A machine with a fault, and the property of its check that must catch it. */
export interface Fault<M extends AnyStateMachine> {
  readonly fault: string;
  readonly machine: M;
  readonly property: string;
  /** The scope of the check, if the check has more than one. */
  readonly scope?: string;
}

/** A loosely typed view of a machine's configuration that can be changed in place. */
interface Chart {
  states: Record<string, Chart>;
  on: Record<string, unknown>;
  always: unknown;
  entry: unknown;
  exit: unknown;
  invoke: unknown;
  initial: unknown;
  [other: string]: unknown;
}

/** Returns the machine with a change in a copy of its chart. The implementations stay the same. */
export function mutate<M extends AnyStateMachine>(machine: M, change: (chart: Chart) => void): M {
  const chart = copy(machine.config) as Chart;
  change(chart);
  return createMachine(chart as never, machine.implementations as never) as unknown as M;
}

/** Returns the machine with other guards or actions under existing names. */
export function provide<M extends AnyStateMachine>(
  machine: M,
  kind: 'guards' | 'actions',
  named: Readonly<Record<string, unknown>>,
): M {
  for (const name of Object.keys(named))
    if (!(name in machine.implementations[kind])) throw new Error(`No ${kind} named ${name}`);
  return machine.provide({ [kind]: named } as never) as M;
}

/** Returns the state at the end of a path of names. */
export function stateOf(chart: Chart, ...path: readonly string[]): Chart {
  let node = chart;
  for (const name of path) {
    const state = node.states[name];
    if (state === undefined) throw new Error(`No state "${name}" of ${path.join('.')}`);
    state.on ??= {};
    node = state;
  }
  return node;
}

/** Returns the transitions of an event or `always` that has several. */
export function candidates(transitions: unknown): object[] {
  if (!Array.isArray(transitions)) throw new Error('Expected several transitions');
  return transitions as object[];
}

/** Removes an event from a state. Throws if the state does not have the event. */
export function forget({ on }: Chart, type: string): void {
  if (!(type in on)) throw new Error(`Nothing takes ${type} there`);
  delete on[type];
}

/** Returns the actions without the action of this name. Throws if there is none. */
export function without(actions: unknown, name: string): unknown[] {
  const all = actions as readonly (string | { readonly type: string })[];
  const rest = all.filter((action) => (typeof action === 'string' ? action : action.type) !== name);
  if (rest.length === all.length) throw new Error(`No action "${name}" there`);
  return rest;
}

/** Copies objects and lists, and shares functions. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]));
}
