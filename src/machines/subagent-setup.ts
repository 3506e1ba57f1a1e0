// The parts of a subagent's statechart: the events, the calls of the current step, the context, the effects, the
// guards, and the transitions that all states share.
//
// Does not: decide when an action applies (subagent-machine.ts).

import { assign, setup } from 'xstate';
import {
  activities,
  effect,
  type Activity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';
import type { Ending, Failure } from './outcome.ts';

/** A subagent's identity and limits. */
export interface SubagentInput {
  readonly id: string;
  /** The time at which the subagent was accepted; the time limit for its preparation starts then. */
  readonly at: number;
  readonly maxSteps: number;
  /** The maximum time that the subagent may spend in `running`, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxInputRetries: number;
}

/** A call that the model made in the current step. */
export interface StepCall {
  /** The id of the call. */
  readonly callId: string;
  /**
   * `tool`: runs in a run slot. `delegation`: only waits for other subagents. `question`: asks the user. `input`: asks
   * the agent that assigned the task. `approval`: needs the user's approval first. `sleep`: waits until a given time.
   * `completion`: submits the result.
   */
  readonly kind: 'tool' | 'delegation' | 'question' | 'approval' | 'input' | 'sleep' | 'completion';
  /** The time until which a `sleep` waits, in milliseconds since 1970. */
  readonly until?: number;
  /** Whether the call of an `approval` becomes a `delegation` when the user approves it. */
  readonly delegates?: boolean;
}

/**
 * When the subagent reads a message. `steer`: at its next step. `queue`: when it would otherwise end. `interrupt`:
 * immediately; the current step is aborted.
 */
export type MessageMode = 'queue' | 'steer' | 'interrupt';

type SubagentFact =
  | { readonly type: 'subagent.prepared' }
  | { readonly type: 'subagent.unprepared'; readonly error: Failure }
  | { readonly type: 'slot.granted' }
  /**
   * The model answered. If there are no calls, this is the result. If `again` is set, the model is called once more
   * instead.
   */
  | {
      readonly type: 'model.responded';
      readonly step: number;
      readonly calls: readonly StepCall[];
      readonly again?: boolean;
    }
  | { readonly type: 'model.failed'; readonly step: number; readonly error: Failure }
  /**
   * The model call has failed `failed` times in this step and is repeated at `retryAt`. At most `attempts` calls are
   * made in total.
   */
  | {
      readonly type: 'model.retried';
      readonly step: number;
      readonly failed: number;
      readonly attempts: number;
      readonly retryAt: number;
      readonly error: Failure;
    }
  | { readonly type: 'tool.settled'; readonly step: number; readonly callId: string }
  | {
      readonly type: 'question.answered';
      readonly requestId: string;
      /** For an approval: whether the user approved. */
      readonly approved?: boolean;
    }
  | { readonly type: 'question.expired'; readonly requestId: string }
  | { readonly type: 'question.withdrawn'; readonly requestId: string }
  /** A message to the subagent. Each message has a different id. */
  | {
      readonly type: 'subagent.message';
      readonly messageId: string;
      readonly mode: MessageMode;
    }
  /** The budget is exhausted. `graceful`: one last step submits the completed work. */
  | {
      readonly type: 'budget.exhausted';
      readonly graceful: boolean;
      readonly message: string;
      /** The model call of this step was refused before it was made, so this step is the last one. */
      readonly step?: number;
    }
  /** Budget limits have been increased to new totals. */
  | { readonly type: 'budget.raised'; readonly limits: Readonly<Record<string, number>> }
  | { readonly type: 'deadline.preparation'; readonly dueAt: number }
  | { readonly type: 'deadline.run'; readonly dueAt: number }
  | { readonly type: 'deadline.sleep'; readonly dueAt: number }
  | { readonly type: 'subagent.cancel'; readonly reason: string };

/** The events of `subagentMachine`. */
export type SubagentEvent = SubagentFact & Stamped;

/** The time limit for preparing a subagent. When it expires, the subagent fails. */
export const PREPARATION_TIMEOUT_MS = 30_000;

/** Returns the id of the question that a subagent is waiting for; the id is unique, and the same after a restart. */
export const requestIdOf = (id: string, asked: number): string => `${id}.q${asked}`;

export function cancelled(reason: string): Failure {
  return { code: 'CANCELLED', message: `Cancelled: ${reason}`, retryable: false };
}

function budgetExhausted(message: string): Failure {
  return { code: 'BUDGET_EXHAUSTED', message, retryable: false };
}

export function stepLimit(maxSteps: number): Failure {
  return {
    code: 'STEP_LIMIT',
    message: `The work was not done after ${maxSteps} steps`,
    retryable: false,
  };
}

export function inputTimeout(maxInputRetries: number): Failure {
  return {
    code: 'INPUT_TIMEOUT',
    message: `${maxInputRetries === 1 ? 'The question' : `Each of ${maxInputRetries} questions`} got no answer in time, and is closed`,
    retryable: false,
  };
}

export type CallState = StepCall & { readonly settled: boolean };

type Calls = readonly CallState[];

/** Returns whether the call runs in a run slot. */
export const isRunnable = (call: CallState): boolean => call.kind === 'tool' && !call.settled;

/** Returns whether the call only waits for other subagents. */
export const isDelegation = (call: CallState): boolean =>
  call.kind === 'delegation' && !call.settled;

/** Returns whether the call is waiting for an answer from the user or from another agent. */
const isAsk = (call: CallState): boolean =>
  !call.settled && (call.kind === 'question' || call.kind === 'approval' || call.kind === 'input');

/** Returns whether the call is an unsettled `sleep`. */
export const isSleep = (call: CallState): boolean => call.kind === 'sleep' && !call.settled;

/** Returns the latest time until which any of the calls sleeps. */
export const sleepsUntil = (calls: Calls): number =>
  Math.max(...calls.filter(isSleep).map(({ until = 0 }) => until));

export const isCompletion = ({ kind }: StepCall): boolean => kind === 'completion';

/**
 * The recipient of a call's question. The user answers an `answer` or an `approval`; the agent that assigned the task
 * answers an `input`.
 */
type AskKind = 'question' | 'approval' | 'input';

/** Returns the current question's call, which is the first unsettled call that asks a question. */
export function askOf(calls: Calls): (CallState & { readonly kind: AskKind }) | undefined {
  return calls.find(isAsk) as (CallState & { readonly kind: AskKind }) | undefined;
}

export const idsOf = (calls: readonly StepCall[]): readonly string[] =>
  calls.map(({ callId }) => callId);

export const unsettled = (calls: readonly StepCall[]): Calls =>
  calls.map((call) => ({ ...call, settled: false }));

export const settle = (calls: Calls, callId: string): Calls =>
  calls.map((call) => (call.callId === callId ? { ...call, settled: true } : call));

/** Settles the current question. An approved call becomes the tool call or the delegation that was approved. */
export function settleAsk(calls: Calls, isApproved: boolean): Calls {
  const head = askOf(calls);
  return calls.map((call) => {
    if (call !== head) return call;
    if (!isApproved || call.kind !== 'approval') return { ...call, settled: true };
    return { ...call, kind: call.delegates === true ? 'delegation' : 'tool' };
  });
}

/** An unread message. */
export interface Unread {
  /** The id of the message. */
  readonly messageId: string;
  /** The message is read only when the model would otherwise end. */
  readonly waits: boolean;
}

const messageIdsOf = (messages: readonly Unread[]): readonly string[] =>
  messages.map(({ messageId }) => messageId);

export interface SubagentContext {
  /** The id of the subagent. */
  readonly id: string;
  /** The maximum number of model steps. */
  readonly maxSteps: number;
  /** The number of consecutive questions without an answer after which the subagent fails with `INPUT_TIMEOUT`. */
  readonly maxInputRetries: number;
  /** The current model step, starting at 1; 0 before the first step. */
  readonly step: number;
  /** The time that the subagent may still spend in `running`, in milliseconds. It is updated when the clock stops. */
  readonly remainingMs: number;
  /** The deadline of the preparation or of `running`, in milliseconds since 1970. */
  readonly dueAt: number;
  /** The calls of the current step, in the model's order, including settled calls. */
  readonly calls: readonly CallState[];
  /** The number of questions asked so far, from which the next request gets its number. */
  readonly asked: number;
  /** The number of consecutive questions that the user has not answered. */
  readonly missed: number;
  /** The messages that no model call has read yet. */
  readonly unread: readonly Unread[];
  /** The messages that the current step reads. */
  readonly reading: readonly string[];
  /** The reason why the budget is exhausted; null if it is not exhausted. */
  readonly exhausted: string | null;
  /** The limits that were increased after the subagent started, with their new totals. Absent if there are none. */
  readonly raised?: Readonly<Record<string, number>>;
  /** The last model call that failed and is being repeated. Absent if there was none. */
  readonly retry?: RepeatedCall;
  /** The current step submits the work completed so far. */
  readonly isFinal: boolean;
  /** How the subagent ended; null until it has ended. */
  readonly ending: Ending | null;
}

/** A model call that failed and is being repeated. */
export interface RepeatedCall {
  /** The model step to which the call belongs, counted from 1. */
  readonly step: number;
  /** The number of calls of this step that have failed. */
  readonly failed: number;
  /** The maximum number of model calls. */
  readonly attempts: number;
  /** The time at which the call is repeated, in milliseconds since 1970. */
  readonly retryAt: number;
  /** The error code of the last failure. */
  readonly code: string;
}

export interface ModelStepInput {
  readonly id: string;
  readonly step: number;
  /** The messages that this model call reads. */
  readonly messageIds: readonly string[];
  /** Whether this is a final step, which has no tools and whose text is the result. */
  readonly final: boolean;
  /** Whether this is the last step of a subagent with several steps. */
  readonly last: boolean;
}

export interface ToolCallsInput {
  readonly id: string;
  readonly step: number;
  readonly callIds: readonly string[];
}

export interface AskInput {
  readonly id: string;
  readonly requestId: string;
  readonly callId: string;
  /** `input`: asks the agent that assigned the task. */
  readonly kind: AskKind;
}

/** The model's response. */
export interface Answered {
  readonly step: number;
  readonly calls: readonly StepCall[];
  readonly again?: boolean;
}

/** Returns whether the model has nothing more to do: it has given its result or calls a completion tool. */
const hasEnded = ({ calls, again }: Answered): boolean =>
  calls.length === 0 ? again !== true : calls.some(isCompletion);

/** Returns the current question. */
export const openRequest = ({
  context,
}: {
  context: SubagentContext;
}): Omit<AskInput, 'callId'> => ({
  id: context.id,
  requestId: requestIdOf(context.id, context.asked),
  kind: askOf(context.calls)?.kind ?? 'question',
});

type Work =
  /** Creates the agent instance and the context of the run; sends `subagent.prepared` or `subagent.unprepared`. */
  | Activity<'prepare', { readonly id: string }>
  /** Makes one model call; sends `model.responded` or `model.failed` with its step number. */
  | Activity<'modelStep', ModelStepInput>
  /** Runs these calls in parallel; sends `tool.settled` with the step number for each. */
  | Activity<'toolCalls', ToolCallsInput>
  | Deadline;

const effects = {
  /** Requests a run slot; the supervisor sends `slot.granted`. Requests with `resumed` go first. */
  requestSlot: effect<{ readonly id: string; readonly resumed: boolean }>(),
  /** Releases the slot, or the request for one. */
  releaseSlot: effect<{ readonly id: string }>(),
  /** Asks the question; `question.answered`, `question.expired` or `question.withdrawn` follows. */
  ask: effect<AskInput>(),
  /** Withdraws the question. */
  withdraw: effect<Omit<AskInput, 'callId'>>(),
};

export type SubagentEffects = EffectsOf<typeof effects>;

type Retried = Extract<SubagentEvent, { type: 'model.retried' }>;

export const subagentSetup = setup({
  types: {
    input: {} as SubagentInput,
    context: {} as SubagentContext,
    events: {} as SubagentEvent,
    output: {} as Ending,
    tags: {} as 'live' | 'active' | 'waiting',
  },
  actions: {
    ...activities<Work>(),
    ...effects,
    startClock: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.remainingMs })),
    stopClock: assign(({ context }, { at }: Stamped) => ({
      remainingMs: Math.max(0, context.dueAt - at),
    })),
    /** Reads the due messages, or all messages if the subagent would otherwise have ended. */
    beginStep: assign(({ context }) => {
      const { calls, exhausted, unread } = context;
      const readsAll = exhausted !== null || calls.some(isCompletion);
      return {
        step: context.step + 1,
        calls: [],
        unread: readsAll ? [] : unread.filter(({ waits }) => waits),
        reading: messageIdsOf(readsAll ? unread : unread.filter(({ waits }) => !waits)),
        isFinal: exhausted !== null,
      };
    }),
    keepRetry: assign((_, { step, failed, attempts, retryAt, error }: Retried) => ({
      retry: { step, failed, attempts, retryAt, code: error.code },
    })),
    /** Without a call the subagent would have ended, so it first reads all messages. */
    keepCalls: assign(({ context }, answered: Answered) => ({
      calls: context.exhausted === null ? unsettled(answered.calls) : [],
      unread:
        answered.calls.length === 0 && hasEnded(answered)
          ? context.unread.map((message) => ({ ...message, waits: false }))
          : context.unread,
    })),
    /** Drops the unsettled calls, except completion calls. */
    dropCalls: assign(({ context }) => ({
      calls: context.calls.filter((call) => call.settled || isCompletion(call)),
    })),
    /** Drops the calls that have not started, except completion calls. */
    dropUnbegun: assign(({ context }) => ({
      calls: context.calls.filter((call) => call.settled || isRunnable(call) || isCompletion(call)),
    })),
    dropStep: assign({ calls: [] }),
    settleCall: assign(({ context }, { callId }: { callId: string }) => ({
      calls: settle(context.calls, callId),
    })),
    settleAsk: assign(({ context }, { approved }: { approved: boolean }) => ({
      calls: settleAsk(context.calls, approved),
    })),
    wake: assign(({ context }) => ({
      calls: context.calls.map((call) => (isSleep(call) ? { ...call, settled: true } : call)),
    })),
    countAsk: assign(({ context }) => ({ asked: context.asked + 1 })),
    /** Counts the questions that the user has missed. Questions from another agent do not count. */
    countMiss: assign(({ context }) => ({
      missed: context.missed + (askOf(context.calls)?.kind === 'input' ? 0 : 1),
    })),
    forgetMisses: assign(({ context }) => ({
      missed: askOf(context.calls)?.kind === 'input' ? context.missed : 0,
    })),
    /** A message that arrives before the first step is read in that step. */
    keepMessage: assign(
      ({ context }, { messageId, mode }: { messageId: string; mode: MessageMode }) => ({
        unread: [...context.unread, { messageId, waits: mode === 'queue' && context.step > 0 }],
      }),
    ),
    /** If the budget is exhausted for several reasons, the first reason is kept. */
    exhaust: assign(({ context }, { message }: { message: string }) => ({
      exhausted: context.exhausted ?? message,
    })),
    keepRaise: assign(({ context }, { limits }: { limits: Readonly<Record<string, number>> }) => ({
      raised: { ...context.raised, ...limits },
    })),
    /** Marks the current step as the final one. */
    makeFinal: assign({ isFinal: true }),
    complete: assign(({ context }) => ended(context, 'completed')),
    fail: assign(({ context }, { error }: { error: Failure }) => ended(context, 'failed', error)),
    timeOut: assign(({ context }, { code, message }: { code: string; message: string }) =>
      ended(context, 'timed_out', { code, message, retryable: true }),
    ),
    failExhausted: assign(({ context }, params: { message: string } | undefined) =>
      ended(
        context,
        'failed',
        budgetExhausted(context.exhausted ?? params?.message ?? 'The budget is used up'),
      ),
    ),
    cancel: assign(({ context }, { reason }: { reason: string }) =>
      ended(context, 'cancelled', cancelled(reason)),
    ),
  },
  guards: {
    isThisStep: ({ context }, { step }: { step: number }) => step === context.step,
    isFinalStep: ({ context }, { step }: { step: number }) =>
      step === context.step && context.isFinal,
    isBeyondLastStep: ({ context }, { step }: { step: number }) =>
      step === context.step && step >= context.maxSteps,
    /** The response is the result, because no message must be read first or no step is left to read one in. */
    isResult: ({ context }, answered: Answered) =>
      answered.step === context.step &&
      hasEnded(answered) &&
      (context.step >= context.maxSteps ||
        context.exhausted !== null ||
        (answered.calls.length === 0 && context.unread.length === 0)),
    /** The step's completion call is the result. */
    isHandedIn: ({ context }) =>
      context.calls.some(isCompletion) &&
      (context.unread.length === 0 || context.exhausted !== null),
    isUnsettledTool: ({ context }, { step, callId }: { step: number; callId: string }) =>
      step === context.step &&
      context.calls.some((call) => call.callId === callId && isRunnable(call)),
    isUnsettledDelegation: ({ context }, { step, callId }: { step: number; callId: string }) =>
      step === context.step &&
      context.calls.some((call) => call.callId === callId && isDelegation(call)),
    isThisQuestion: ({ context }, { requestId }: { requestId: string }) =>
      requestId === requestIdOf(context.id, context.asked),
    /**
     * The user has left one question too many unanswered. A question that another agent did not answer does not count.
     */
    isLastMiss: ({ context }, { requestId }: { requestId: string }) =>
      requestId === requestIdOf(context.id, context.asked) &&
      askOf(context.calls)?.kind !== 'input' &&
      context.missed + 1 >= context.maxInputRetries,
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    hasRunnable: ({ context }) => context.calls.some(isRunnable),
    hasDelegation: ({ context }) => context.calls.some(isDelegation),
    hasAsk: ({ context }) => context.calls.some(isAsk),
    hasSleep: ({ context }) => context.calls.some(isSleep),
    isWakeTime: ({ context }, { dueAt }: { dueAt: number }) => dueAt === sleepsUntil(context.calls),
    wakes: (_, { mode }: { mode: MessageMode }) => mode !== 'queue',
    asksNext: ({ context }) => !context.calls.some(isDelegation) && context.calls.some(isAsk),
    isNotExhausted: ({ context }) => context.exhausted === null,
    isGraceful: (_, { graceful }: { graceful: boolean }) => graceful,
    isRefusal: ({ context }, refused: { graceful: boolean; step?: number }) =>
      refused.graceful && refused.step === context.step,
    isAtOnce: (_, { graceful }: { graceful: boolean }) => !graceful,
    /** An interruption needs another step in which the subagent can continue. */
    breaksOff: ({ context }, { mode }: { mode: MessageMode }) =>
      mode === 'interrupt' && context.step < context.maxSteps && !context.isFinal,
  },
});

type EventOf<T extends SubagentEvent['type']> = {
  readonly event: Extract<SubagentEvent, { readonly type: T }>;
};

/**
 * The transitions of a live state, unless the state defines its own. On the root, these transitions would also apply in
 * final states.
 */
export const whileLive = {
  'budget.raised': {
    // The increase is too late, because the subagent is already submitting its work.
    guard: 'isNotExhausted',
    actions: { type: 'keepRaise', params: ({ event }: EventOf<'budget.raised'>) => event },
  },
  'subagent.message': {
    actions: {
      type: 'keepMessage',
      params: ({ event }: EventOf<'subagent.message'>) => event,
    },
  },
  'budget.exhausted': [
    {
      guard: { type: 'isAtOnce', params: ({ event }: EventOf<'budget.exhausted'>) => event },
      target: '#subagent.failed',
      actions: {
        type: 'failExhausted',
        params: ({ event }: EventOf<'budget.exhausted'>) => event,
      },
    },
    {
      actions: { type: 'exhaust', params: ({ event }: EventOf<'budget.exhausted'>) => event },
    },
  ],
  'subagent.cancel': {
    target: '#subagent.cancelled',
    actions: { type: 'cancel', params: ({ event }: EventOf<'subagent.cancel'>) => event },
  },
} as const;

function ended(
  { step: steps }: SubagentContext,
  status: Ending['status'],
  error?: Failure,
): Pick<SubagentContext, 'calls' | 'ending'> {
  return { calls: [], ending: { status, steps, ...(error ? { error } : {}) } };
}
