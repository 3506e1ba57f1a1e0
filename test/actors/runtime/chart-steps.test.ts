// A stored snapshot takes the same steps as the original, which is checked at every step of the machines' model checks.

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  StateMachine,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
} from 'xstate';
import { accepts, moved, restored } from '../../../src/actors/runtime/chart-steps.ts';
import { plain } from '../../../src/actors/runtime/hosting.ts';
import * as machines from '../../../src/machines/index.ts';
import { checkBatch } from '../../machines/support/batch-check.ts';
import { checkEventSource } from '../../machines/support/event-source-check.ts';
import { checkInteraction } from '../../machines/support/interaction-check.ts';
import { checkOutbox } from '../../machines/support/outbox-check.ts';
import { checkQuestion } from '../../machines/support/question-check.ts';
import { checkRotation } from '../../machines/support/rotation-check.ts';
import { checkService } from '../../machines/support/service-check.ts';
import { checkSession } from '../../machines/support/session-check.ts';
import { checkSubagent } from '../../machines/support/subagent-check.ts';
import { checkToolCall } from '../../machines/support/tool-call-check.ts';
import { checkTurn } from '../../machines/support/turn-check.ts';

type Scope = Parameters<AnyStateMachine['transition']>[2];

const { transition } = StateMachine.prototype;

/** The number of compared steps, and the first one that differed. */
let compared = 0;
let other: object | null = null;

const stateOf = ({ value, context, status, output, tags }: AnyMachineSnapshot) => ({
  value,
  context,
  status,
  output,
  tags,
});

/** Takes a step with the runtime, from the snapshot and from its stored form. */
function compare(machine: AnyStateMachine, before: AnyMachineSnapshot, event: never): void {
  const took = (from: AnyMachineSnapshot) => {
    const [after, effects] = moved(machine, from, event);
    return { accepts: accepts(from, event), ...stateOf(after as AnyMachineSnapshot), effects };
  };
  const live = took(before);
  const stored = took(restored(machine, structuredClone(plain(before))) as AnyMachineSnapshot);
  compared += 1;
  if (!isDeepStrictEqual(live, stored)) other ??= { event, before: stateOf(before), live, stored };
}

beforeAll(() => {
  let isComparing = false;
  StateMachine.prototype.transition = function taken(
    this: AnyStateMachine,
    before: AnyMachineSnapshot,
    event: never,
    scope: Scope,
  ) {
    if (!isComparing) {
      isComparing = true;
      compare(this, before, event);
      isComparing = false;
    }
    return transition.call(this, before as never, event, scope);
  };
});

afterAll(() => {
  StateMachine.prototype.transition = transition;
});

const checks: Readonly<Record<string, () => unknown>> = {
  'a batch': () => [checkBatch(undefined, 'deliver'), checkBatch(undefined, 'cancel')],
  'an event source': () => checkEventSource(),
  'an interaction': () => checkInteraction(),
  'an outbox': () => checkOutbox(undefined, 'notices that expire'),
  'a question': () => checkQuestion(),
  'a rotation': () => checkRotation(),
  'a service': () => checkService(),
  'a session': () => checkSession(),
  'a subagent': () => checkSubagent('budget'),
  'a tool call': () => checkToolCall(),
  'a turn of a text model': () => checkTurn('a text model', 'everything'),
};

describe('CHART-2: takes the same steps from a restored snapshot as from the stored one', () => {
  it.each(Object.entries(checks))('%s', { timeout: 300_000 }, (_name, check) => {
    compared = 0;
    other = null;
    check();
    expect(other).toBeNull();
    expect(compared).toBeGreaterThan(20);
  });
});

const nameOf = (use: string | { readonly type: string }): string =>
  typeof use === 'string' ? use : use.type;

/** Returns a state of a chart, together with its nested states. */
const statesIn = (node: AnyStateNode): readonly AnyStateNode[] => [
  node,
  ...Object.values(node.states).flatMap(statesIn),
];

describe('CHART-1: a chart', () => {
  const charts = Object.values(machines).filter((machine) => machine instanceof StateMachine);

  it.each(charts.map((machine) => [machine.id, machine as AnyStateMachine]))(
    '%s invokes no actor and has no delay',
    (_id, { root }) => {
      const states = statesIn(root).filter(({ invoke, after }) => invoke.length + after.length > 0);
      expect(states.map(({ id }) => id)).toEqual([]);
    },
  );

  it.each(charts.map((machine) => [machine.id, machine as AnyStateMachine]))(
    '%s has no action of XState but `assign`',
    (_id, { root, implementations }) => {
      const used = statesIn(root).flatMap((state) => [
        ...state.entry,
        ...state.exit,
        ...(state.always ?? []).flatMap(({ actions }) => actions),
        ...[...state.transitions.values()].flat().flatMap(({ actions }) => actions),
      ]);
      const others = used
        .map((use) => (typeof use === 'function' ? use : implementations.actions[nameOf(use)]))
        .filter((action) => action && 'resolve' in action && !('assignment' in action));
      expect(used.length).toBeGreaterThan(0);
      expect(others).toEqual([]);
    },
  );
});
