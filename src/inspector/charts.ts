// The statecharts of the machines as plain data for a page: nested states, and the events that lead from one to
// another.

import type { AnyStateMachine, AnyStateNode } from 'xstate';
import {
  interactionMachine,
  outboxMachine,
  questionMachine,
  sessionMachine,
  subagentMachine,
} from '../machines/index.ts';

/** A state with its states. */
export interface ChartState {
  readonly key: string;
  readonly type: string;
  readonly states: readonly ChartState[];
  /** The events that are taken here, each with the states that it leads to; empty: it stays. */
  readonly on: readonly { readonly event: string; readonly to: readonly string[] }[];
}

export type ChartName = 'session' | 'interaction' | 'outbox' | 'question' | 'subagent';

/** The charts of the machines whose states the inspector shows. */
export function chartsOfMachines(): Readonly<Record<ChartName, ChartState>> {
  return {
    session: chartOf(sessionMachine),
    interaction: chartOf(interactionMachine),
    outbox: chartOf(outboxMachine),
    question: chartOf(questionMachine),
    subagent: chartOf(subagentMachine),
  };
}

const chartOf = ({ root }: AnyStateMachine): ChartState => stateOf(root);

function stateOf(node: AnyStateNode): ChartState {
  const on = new Map<string, Set<string>>();
  for (const { eventType, target = [] } of [
    ...[...node.transitions.values()].flat(),
    ...(node.always ?? []),
  ]) {
    const event = eventType === '' ? 'always' : eventType;
    const to = on.get(event) ?? new Set();
    for (const each of target) to.add(each.path.join('.'));
    on.set(event, to);
  }
  return {
    key: node.key,
    type: node.type,
    states: Object.values(node.states).map(stateOf),
    on: [...on].map(([event, to]) => ({ event, to: [...to] })),
  };
}
