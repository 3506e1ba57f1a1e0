// The runtime's steps are those of XState: compared at every step that the model checks of the machines take.

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assign,
  fromCallback,
  raise,
  setup,
  StateMachine,
  type AnyMachineSnapshot,
  type AnyStateMachine,
} from 'xstate';
import {
  accepts,
  begun,
  moved,
  restored,
  type Effect,
} from '../../../src/actors/runtime/chart-steps.ts';
import { plain } from '../../../src/actors/runtime/hosting.ts';
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

const pure = {
  begin: StateMachine.prototype.getInitialSnapshot,
  take: StateMachine.prototype.transition,
};

/** Steps that were compared, and the first one that was another. */
let compared = 0;
let other: object | null = null;

const stateOf = ({ value, context, status, output, tags }: AnyMachineSnapshot) => ({
  value,
  context,
  status,
  output,
  tags,
});

/** Calls `step` and compares its result and its actions with those of `ours`. */
function twice(
  scope: Scope,
  step: () => AnyMachineSnapshot,
  ours: (post: (effect: Effect) => void) => AnyMachineSnapshot,
  what: object,
): AnyMachineSnapshot {
  const { actionExecutor } = scope;
  const named: unknown[] = [];
  scope.actionExecutor = (action) => {
    named.push({ name: action.type, params: action.params });
    actionExecutor(action);
  };
  const after = step();
  scope.actionExecutor = actionExecutor;
  const posted: unknown[] = [];
  const mine = ours((effect) => {
    const { kind, ...params } = effect;
    posted.push(kind === 'do' ? params : { name: `${kind}Activity`, params });
  });
  compared += 1;
  const xstate = { ...stateOf(after), actions: named };
  const runtime = { ...stateOf(mine), actions: posted };
  if (!isDeepStrictEqual(runtime, xstate)) other ??= { ...what, xstate, runtime };
  return after;
}

beforeAll(() => {
  Object.assign(StateMachine.prototype, {
    getInitialSnapshot(this: AnyStateMachine, scope: Scope, input: never) {
      const step = (): AnyMachineSnapshot => pure.begin.call(this, scope, input);
      return twice(scope, step, (post) => begun(this, input, { post }), { machine: this.id });
    },
    transition(this: AnyStateMachine, before: AnyMachineSnapshot, event: never, scope: Scope) {
      const from = restored(this, structuredClone(plain(before))) as AnyMachineSnapshot;
      const step = (): AnyMachineSnapshot => pure.take.call(this, before as never, event, scope);
      const what = { machine: this.id, before: stateOf(before), event };
      if (accepts(from, event) !== before.can(event)) other ??= { ...what, accepts: false };
      return twice(scope, step, (post) => moved(this, from, event, { post }), what);
    },
  });
});

afterAll(() => {
  Object.assign(StateMachine.prototype, {
    getInitialSnapshot: pure.begin,
    transition: pure.take,
  });
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

describe('CHART-1, CHART-3: every step is that of XState', () => {
  test.each(Object.entries(checks))('%s', { timeout: 300_000 }, (_name, check) => {
    compared = 0;
    other = null;
    check();
    expect(other).toBeNull();
    expect(compared).toBeGreaterThan(20);
  });
});

describe('CHART-2: a chart that needs more than the runtime does is refused', () => {
  const actors = { idle: fromCallback(() => {}) };
  const one = { id: 'refused', initial: 'a' } as const;
  const { createMachine } = setup({ actors });
  const charts = {
    'an invoked actor': createMachine({ ...one, states: { a: { invoke: { src: 'idle' } } } }),
    'a delay': createMachine({ ...one, states: { a: { after: { 10: 'b' } }, b: {} } }),
    history: createMachine({
      ...one,
      states: { a: { initial: 'b', states: { b: {}, h: { type: 'history' } } } },
    }),
    'a wildcard': createMachine({ ...one, states: { a: { on: { '*': 'b' } }, b: {} } }),
    'a final state': createMachine({
      ...one,
      states: { a: { initial: 'b', states: { b: { type: 'final' } } } },
    }),
    'an action of the initial state': createMachine({
      ...one,
      initial: { target: 'a', actions: assign({}) },
      states: { a: {} },
    }),
    'the action `raise`': createMachine({
      ...one,
      states: { a: { entry: raise({ type: 'more' }) } },
    }),
  };

  test.each(Object.entries(charts))('%s', (what, machine) => {
    expect(() => begun(machine, undefined, { post() {} })).toThrow(what);
  });

  test('eventless steps without end are an error', () => {
    const endless = createMachine({
      ...one,
      states: { a: { always: { guard: () => true, actions: assign({}) } } },
    });
    expect(() => begun(endless, undefined, { post() {} })).toThrow('without end');
  });
});
