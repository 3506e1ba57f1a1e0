// The life of one tool call of the lead agent. Each call has its own machine, so that a slow call does not block the
// others.
//
//   received ─▶ validated ─┬─▶ executing: awaited ─────────────────────▶ answered   (inline)
//       │                  │     reserving ⇅ ─▶ detached ─▶ settled               (inline, in the background from now on)
//       │                  └─▶ acknowledged ─▶ delegated ─▶ settled ─▶ delivered    (background)
//       └─ invalid ─▶ answered             any before settled ─▶ cancelled
//
// Owns:     whether the model has its answer, and whether the result is delivered.
// Does not: run the tool, store arguments or results, or decide when the user hears the result.
//
// Invariants
//   TOOL-CALL-1. The model always receives exactly one answer to each call.
//   TOOL-CALL-2. A background call is delegated exactly once and settles exactly once.
//   TOOL-CALL-3. A settled result is kept until it is heard, shown or dismissed.
//   TOOL-CALL-4. The call never leaves answered, delivered or cancelled.
//   TOOL-CALL-5. If the lead agent has already reported a result with another tool (`known`), the result counts as
//       delivered. It is not sent to the outbox, and its reserved place is released.
//   TOOL-CALL-6. A tool that is still running at `detachAt` is detached: it continues, the model's answer says so, and
//       the result is delivered later. Detaching needs a reserved place in the outbox. If there is none, the model
//       waits for the tool. If the user starts to speak or write while the tool is running, `detachAt` becomes earlier.

import { assign, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  activity,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Activity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';
import type { DeliveryMode } from './outbox-setup.ts';

/** A call made by the lead agent. */
export interface ToolCallInput {
  readonly callId: string;
  /** The time limit of an inline tool, in milliseconds. */
  readonly timeoutMs: number;
  /** The batch in which the call's result is reported; null if it is reported separately. @defaultValue null */
  readonly batchId?: string | null;
}

interface ToolCallContext {
  /** The id of the call. */
  readonly callId: string;
  /** The time limit of an inline tool, in milliseconds. */
  readonly timeoutMs: number;
  /** The batch in which the call's result is reported; null if it is reported separately. */
  readonly batchId: string | null;
  /** The time at which an inline tool exceeds its limit, in milliseconds since 1970; 0 before it starts. */
  readonly dueAt: number;
  /**
   * The time at which the tool is detached. The tool is never detached if this is not before `dueAt`, or if it is
   * absent (in snapshots of earlier versions).
   */
  readonly detachAt?: number;
  /** The maximum time that the user's utterance waits for the tool; null if it waits until the tool has finished. */
  readonly wordsMs?: number | null;
  /** The model already has an answer ("still in progress"). */
  readonly acknowledged: boolean;
  /** How the user receives the result. */
  readonly delivery: DeliveryMode;
}

type ToolCallFact =
  | {
      readonly type: 'call.validated';
      readonly execution: 'inline' | 'background';
      /** Background: whether the model is informed immediately that the work is continuing. */
      readonly acknowledge: boolean;
      /** Background: how the user receives the result. @defaultValue 'when_idle' */
      readonly delivery?: DeliveryMode;
      /**
       * Inline: the call is detached after it has run for `afterMs`, or after the user's utterance has waited for
       * `wordsMs`. Null disables that limit. @defaultValue never
       */
      readonly detach?: { readonly afterMs: number | null; readonly wordsMs: number | null };
    }
  | { readonly type: 'call.invalid' }
  /**
   * `failed`: the tool threw an error, or its return value cannot be stored. `known`: the call was detached, and its
   * result has nothing left to report. @defaultValue false
   */
  | { readonly type: 'call.executed'; readonly failed?: boolean; readonly known?: boolean }
  /** The user has said something to the lead agent. `saidAt`: the time at which the user started to say it. */
  | { readonly type: 'call.talkedOver'; readonly saidAt: number }
  | { readonly type: 'deadline.detachment'; readonly dueAt: number }
  /** Whether the outbox has reserved a place for the result. */
  | { readonly type: 'call.placed'; readonly granted: boolean }
  | { readonly type: 'subagent.accepted' }
  /** Admission refused the work; the model's answer contains the reason. */
  | { readonly type: 'subagent.rejected' }
  /** `known`: the lead agent has already reported the result to the user. @defaultValue false */
  | { readonly type: 'subagent.ended'; readonly known?: boolean }
  | { readonly type: 'delivery.settled' }
  /** `withdrawn`: the model has withdrawn the call because the user talked over it. @defaultValue false */
  | { readonly type: 'call.cancel'; readonly reason?: string; readonly withdrawn?: boolean }
  | { readonly type: 'deadline.execution'; readonly dueAt: number };

type Started = Stamped & Pick<Extract<ToolCallFact, { type: 'call.validated' }>, 'detach'>;

/** The events of `toolCallMachine`. */
export type ToolCallEvent = ToolCallFact & Stamped;

/** Whether the call was answered directly, or its result was delivered later. */
export type ToolCallEnd = 'answered' | 'delivered' | 'cancelled';

/** The model's answer to the call. */
export type CallAnswer =
  | 'result'
  | 'failed'
  | 'invalid'
  | 'timed_out'
  | 'pending'
  | 'rejected'
  | 'cancelled';

const effects = {
  /** Checks the name and the arguments; `call.validated` or `call.invalid` follows. */
  validate: effect<{ readonly callId: string }>(),
  /** Answers the model. */
  answer: effect<{ readonly callId: string; readonly answer: CallAnswer }>(),
  /** Asks the outbox to reserve a place for the result; `call.placed` follows. */
  reserve: effect<{ readonly callId: string }>(),
  /** Requests a subagent; `subagent.accepted` or `subagent.rejected` follows. */
  delegate: effect<{ readonly callId: string }>(),
  /** Sends the result to the outbox; `delivery.settled` follows. */
  deliver: effect<{
    readonly callId: string;
    readonly acknowledged: boolean;
    readonly delivery: DeliveryMode;
  }>(),
  /** The result has already been reported, so it is not delivered and its reserved place is released. */
  known: effect<{ readonly callId: string; readonly acknowledged: boolean }>(),
  /** Cancels the subagent of this call and releases the place reserved for its result. */
  cancelSubagent: effect<{ readonly callId: string }>(),
};

export type ToolCallEffects = EffectsOf<typeof effects>;

type Work =
  /** Runs an inline tool; sends `call.executed`. */
  Activity<'execute', { readonly callId: string }> | Deadline;

/** A call made by the lead agent. It is answered directly, or by a later delivery; the output says which. */
export const toolCallMachine = setup({
  types: {
    input: {} as ToolCallInput,
    context: {} as ToolCallContext,
    events: {} as ToolCallEvent,
    output: {} as ToolCallEnd,
    tags: {} as 'inFlight',
  },
  actions: {
    ...activities<Work>(),
    ...effects,
    startClock: assign(({ context: { timeoutMs } }, { at, detach }: Started) => ({
      dueAt: at + timeoutMs,
      detachAt: at + (detach?.afterMs ?? timeoutMs),
      wordsMs: detach?.wordsMs ?? null,
    })),
  },
  guards: {
    /** True if the user started to speak or write while the tool was running. The tool may then be detached. */
    isTalkedOver: ({ context, event }) =>
      event.type === 'call.talkedOver' &&
      typeof context.wordsMs === 'number' &&
      event.saidAt >= context.dueAt - context.timeoutMs,
  },
}).createMachine({
  id: 'toolCall',
  context: ({ input }) => ({
    callId: input?.callId ?? '',
    timeoutMs: input?.timeoutMs ?? 0,
    batchId: input?.batchId ?? null,
    dueAt: 0,
    acknowledged: false,
    delivery: 'when_idle',
  }),
  initial: 'received',
  options: machineOptions,
  output: ({ event }) => event.output as ToolCallEnd,
  states: {
    received: {
      tags: ['inFlight'],
      entry: { type: 'validate', params: ({ context }) => ({ callId: context.callId }) },
      on: {
        'call.validated': [
          {
            guard: ({ event }) => event.execution === 'inline',
            target: 'executing',
            actions: { type: 'startClock', params: ({ event }) => event },
          },
          {
            target: 'acknowledged',
            actions: assign({
              acknowledged: ({ event }) => event.acknowledge,
              delivery: ({ event }) => event.delivery ?? 'when_idle',
            }),
          },
        ],
        'call.invalid': { target: 'answered', actions: answer('invalid') },
        'call.cancel': { target: 'cancelled', actions: answer('cancelled') },
      },
    },
    executing: {
      tags: ['inFlight'],
      initial: 'awaited',
      entry: [
        {
          type: 'startActivity',
          params: ({ context }) => activity('execute', { callId: context.callId }),
        },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.execution', context.dueAt),
        },
      ],
      exit: [stopActivity('execute'), stopActivity('deadline')],
      states: {
        awaited: {
          entry: {
            type: 'startActivity',
            params: ({ context: { detachAt, dueAt } }) =>
              deadline('deadline.detachment', detachAt ?? dueAt, 'detachment'),
          },
          exit: stopActivity('deadline', 'detachment'),
          on: {
            'call.executed': [
              {
                guard: ({ event }) => event.failed === true,
                target: '#toolCall.answered',
                actions: answer('failed'),
              },
              { target: '#toolCall.answered', actions: answer('result') },
            ],
            'deadline.execution': {
              guard: isDue,
              target: '#toolCall.answered',
              actions: answer('timed_out'),
            },
            'call.talkedOver': {
              guard: 'isTalkedOver',
              target: 'awaited',
              reenter: true,
              actions: assign(({ context: { detachAt = Infinity, wordsMs }, event: { at } }) => ({
                detachAt: Math.min(detachAt, at + (wordsMs ?? Infinity)),
              })),
            },
            'deadline.detachment': {
              guard: ({ context: { detachAt, dueAt }, event }) =>
                event.dueAt === detachAt && detachAt < dueAt,
              target: 'reserving',
            },
            'call.cancel': [
              {
                guard: ({ context, event }) => event.withdrawn === true && context.wordsMs === 0,
                target: 'reserving',
              },
              { target: '#toolCall.cancelled', actions: answer('cancelled') },
            ],
          },
        },
        reserving: {
          entry: { type: 'reserve', params: ({ context }) => ({ callId: context.callId }) },
          on: {
            'call.placed': [
              {
                guard: ({ event }) => event.granted,
                target: 'detached',
                actions: [assign({ acknowledged: true }), answer('pending')],
              },
              { target: 'awaited', actions: assign({ detachAt: ({ context }) => context.dueAt }) },
            ],
            'call.cancel': { target: '#toolCall.cancelled', actions: answer('cancelled') },
          },
        },
        detached: {
          on: {
            'call.executed': [
              {
                guard: ({ event }) => event.known === true,
                target: '#toolCall.delivered',
                actions: known(),
              },
              { target: '#toolCall.settled' },
            ],
            'deadline.execution': { guard: isDue, target: '#toolCall.settled' },
            'call.cancel': { target: '#toolCall.cancelled', actions: cancelSubagent() },
          },
        },
      },
    },
    acknowledged: {
      tags: ['inFlight'],
      entry: { type: 'delegate', params: ({ context }) => ({ callId: context.callId }) },
      on: {
        'subagent.accepted': [
          {
            guard: ({ context }) => context.acknowledged,
            target: 'delegated',
            actions: answer('pending'),
          },
          { target: 'delegated' },
        ],
        'subagent.rejected': { target: 'answered', actions: answer('rejected') },
        'call.cancel': { target: 'cancelled', actions: [answer('cancelled'), cancelSubagent()] },
      },
    },
    delegated: {
      tags: ['inFlight'],
      on: {
        'subagent.ended': [
          {
            guard: ({ event }) => event.known === true,
            target: 'delivered',
            actions: known(),
          },
          { target: 'settled' },
        ],
        'call.cancel': [
          {
            guard: ({ context }) => context.acknowledged,
            target: 'cancelled',
            actions: cancelSubagent(),
          },
          { target: 'cancelled', actions: [answer('cancelled'), cancelSubagent()] },
        ],
      },
    },
    settled: {
      tags: ['inFlight'],
      entry: {
        type: 'deliver',
        params: ({ context: { callId, acknowledged, delivery } }) => ({
          callId,
          acknowledged,
          delivery,
        }),
      },
      on: { 'delivery.settled': 'delivered' },
    },
    answered: { type: 'final', output: 'answered' },
    delivered: { type: 'final', output: 'delivered' },
    cancelled: { type: 'final', output: 'cancelled' },
  },
});

/** A snapshot of `toolCallMachine`. */
export type ToolCallSnapshot = SnapshotFrom<typeof toolCallMachine>;

/**
 * Returns whether the call of a running tool is awaited (as always in earlier versions) or detached; null if no tool is
 * running.
 */
export function runOf(value: unknown): 'awaited' | 'detached' | null {
  if (value === 'executing') return 'awaited';
  if (typeof value !== 'object' || value === null || !('executing' in value)) return null;
  return value.executing === 'detached' ? 'detached' : 'awaited';
}

function answer(how: CallAnswer) {
  return {
    type: 'answer',
    params: ({ context }: { context: ToolCallContext }) => ({
      callId: context.callId,
      answer: how,
    }),
  } as const;
}

function known() {
  return {
    type: 'known',
    params: ({ context: { callId, acknowledged } }: { context: ToolCallContext }) => ({
      callId,
      acknowledged,
    }),
  } as const;
}

function isDue({
  context,
  event,
}: {
  readonly context: ToolCallContext;
  readonly event: { readonly dueAt: number };
}): boolean {
  return event.dueAt === context.dueAt;
}

function cancelSubagent() {
  return {
    type: 'cancelSubagent',
    params: ({ context }: { context: ToolCallContext }) => ({ callId: context.callId }),
  } as const;
}
