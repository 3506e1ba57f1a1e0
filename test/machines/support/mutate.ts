// Plants a fault: the same machine with a change made to a copy of its chart.

import { createMachine, type AnyStateMachine } from 'xstate';

/** A loose view of a machine's configuration, to be changed in place. */
export interface Chart {
  states: Record<string, Chart>;
  on: Record<string, unknown>;
  always: unknown;
  entry: unknown;
  exit: unknown;
  invoke: unknown;
  initial: unknown;
  type: unknown;
  [other: string]: unknown;
}

/** The machine with the change; what its names stand for stays the same. */
export function mutate<M extends AnyStateMachine>(machine: M, change: (chart: Chart) => void): M {
  const chart = copy(machine.config) as unknown as Chart;
  change(chart);
  return createMachine(chart as never, machine.implementations as never) as unknown as M;
}

/** The state at the end of a path of names. */
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

/** Copies objects and lists; functions are shared. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]));
}
