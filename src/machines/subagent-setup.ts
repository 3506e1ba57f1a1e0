// The parts of a subagent's chart: its context, its effects, its guards, and the transitions that all of its
// states share.

import { assign, setup } from 'xstate';
import { activity, effect, type DeadlineInput, type Stamped } from './effect.ts';
import type { Ending, Failure } from './outcome.ts';
import {
  askOf,
  isAsk,
  isCompletion,
  isDelegation,
  isRunnable,
  messageIdsOf,
  settle,
  settleAsk,
  unsettled,
  type AskKind,
  type CallState,
  type Unread,
} from './subagent-calls.ts';
import {
  budgetExhausted,
  cancelled,
  requestIdOf,
  type MessageMode,
  type StepCall,
  type SubagentEvent,
  type SubagentInput,
} from './subagent-events.ts';

export interface SubagentContext {
  readonly id: string;
  readonly maxSteps: number;
  readonly maxInputRetries: number;
  readonly step: number;
  readonly remainingMs: number;
  readonly dueAt: number;
  readonly calls: readonly CallState[];
  /** Questions asked so far; numbers the requests. */
  readonly asked: number;
  /** Questions in a row that the user did not answer. */
  readonly missed: number;
  readonly unread: readonly Unread[];
  /** The messages that the step under way reads. */
  readonly reading: readonly string[];
  /** Why the budget is exhausted; null while it is not. */
  readonly exhausted: string | null;
  /** The step under way hands in the work done so far. */
  readonly isFinal: boolean;
  readonly ending: Ending | null;
}

export interface ModelStepInput {
  readonly id: string;
  readonly step: number;
  /** The messages that this model call reads. */
  readonly messageIds: readonly string[];
  /** Without tools: the text of this step is the result. */
  readonly final: boolean;
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
  /** `input`: asks the agent that gave the task. */
  readonly kind: AskKind;
}

/** The model's response. */
export interface Answered {
  readonly step: number;
  readonly calls: readonly StepCall[];
  readonly again?: boolean;
}

/** Tells whether the model has nothing more to do: it gave its result, or calls a completion tool. */
const hasEnded = ({ calls, again }: Answered): boolean =>
  calls.length === 0 ? again !== true : calls.some(isCompletion);

/** Returns the question under way. */
export const openRequest = ({
  context,
}: {
  context: SubagentContext;
}): Omit<AskInput, 'callId'> => ({
  id: context.id,
  requestId: requestIdOf(context.id, context.asked),
  kind: askOf(context.calls)?.kind ?? 'question',
});

export const subagentSetup = setup({
  types: {
    input: {} as SubagentInput,
    context: {} as SubagentContext,
    events: {} as SubagentEvent,
    output: {} as Ending,
    tags: {} as 'live' | 'active' | 'waiting',
  },
  actors: {
    /** Makes the run's own instance and context; sends `subagent.prepared` or `subagent.unprepared`. */
    prepare: activity<{ readonly id: string }>('prepare'),
    /** One model call; sends `model.responded` or `model.failed` with the step it was given. */
    modelStep: activity<ModelStepInput>('modelStep'),
    /** Runs these calls side by side; sends `tool.settled` for each, with the step it was given. */
    toolCalls: activity<ToolCallsInput>('toolCalls'),
    deadline: activity<DeadlineInput>('deadline'),
  },
  actions: {
    /** Requests a run slot; the supervisor sends `slot.granted`. `resumed` requests go first. */
    requestSlot: effect<{ readonly id: string; readonly resumed: boolean }>(),
    /** Releases the slot, or the request for one. */
    releaseSlot: effect<{ readonly id: string }>(),
    /** Asks the question; one of `question.answered / expired / withdrawn` comes back. */
    ask: effect<AskInput>(),
    /** Withdraws the question. */
    withdraw: effect<Omit<AskInput, 'callId'>>(),
    startClock: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.remainingMs })),
    stopClock: assign(({ context }, { at }: Stamped) => ({
      remainingMs: Math.max(0, context.dueAt - at),
    })),
    /** Reads the due messages; all of them where the subagent would have ended. */
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
    /** Without a call the subagent would have ended: it reads all messages first. */
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
    /** Drops the calls that have not begun, except completion calls. */
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
    countAsk: assign(({ context }) => ({ asked: context.asked + 1 })),
    /** Counts misses of the user: the answers and the silence of another agent do not count. */
    countMiss: assign(({ context }) => ({
      missed: context.missed + (askOf(context.calls)?.kind === 'input' ? 0 : 1),
    })),
    forgetMisses: assign(({ context }) => ({
      missed: askOf(context.calls)?.kind === 'input' ? context.missed : 0,
    })),
    /** A message that comes before the first step is read at once. */
    keepMessage: assign(
      ({ context }, { messageId, mode }: { messageId: string; mode: MessageMode }) => ({
        unread: [...context.unread, { messageId, waits: mode === 'queue' && context.step > 0 }],
      }),
    ),
    /** The first reason counts. */
    exhaust: assign(({ context }, { message }: { message: string }) => ({
      exhausted: context.exhausted ?? message,
    })),
    /** Marks the step under way as the final one. */
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
    /** The response is the result: no message is to be read first, or no step is left to do so. */
    isResult: ({ context }, answered: Answered) =>
      answered.step === context.step &&
      hasEnded(answered) &&
      (context.step >= context.maxSteps ||
        context.exhausted !== null ||
        (answered.calls.length === 0 && context.unread.length === 0)),
    /** The completion call of the step is the result. */
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
    /** The user missed one question too many; another agent may have its reasons for silence. */
    isLastMiss: ({ context }, { requestId }: { requestId: string }) =>
      requestId === requestIdOf(context.id, context.asked) &&
      askOf(context.calls)?.kind !== 'input' &&
      context.missed + 1 >= context.maxInputRetries,
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    hasRunnable: ({ context }) => context.calls.some(isRunnable),
    hasDelegation: ({ context }) => context.calls.some(isDelegation),
    hasAsk: ({ context }) => context.calls.some(isAsk),
    asksNext: ({ context }) => !context.calls.some(isDelegation) && context.calls.some(isAsk),
    isGraceful: (_, { graceful }: { graceful: boolean }) => graceful,
    isRefusal: ({ context }, refused: { graceful: boolean; step?: number }) =>
      refused.graceful && refused.step === context.step,
    isAtOnce: (_, { graceful }: { graceful: boolean }) => !graceful,
    /** There must be a step left to begin again with. */
    breaksOff: ({ context }, { mode }: { mode: MessageMode }) =>
      mode === 'interrupt' && context.step < context.maxSteps && !context.isFinal,
  },
});

type EventOf<T extends SubagentEvent['type']> = {
  readonly event: Extract<SubagentEvent, { readonly type: T }>;
};

/**
 * Transitions of every live state, unless it defines its own. On the root they would apply at the end, too.
 */
export const whileLive = {
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
