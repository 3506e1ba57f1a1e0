// The life of one delegated piece of work.
//
//   spawning ──▶ ready ⇄ running ⇄ waiting_for_input
//       │          │        │             │
//       └──────────┴────────┴─────────────┴──▶ completed | failed | cancelled   (final)
//
//   running: deciding ─▶ thinking ─▶ deciding ─▶ acting ─▶ deciding …
//
// Owns:     which of these it is in, the step count, which calls of the step are
//           still unsettled, and what is left of the run's time.
// Does not: call a model or a tool, hold messages, read a clock, know other subagents.
//
// Invariants
//   S1. It ends once: nothing leaves completed, failed or cancelled.
//   S2. The run's clock runs in `running` only; waiting for a slot or the user costs nothing.
//   S3. While it waits for the user nothing else of the step runs: ordinary calls
//       settle first, then its questions are asked in call order, one at a time.
//   S4. A step begins only when every call of the step before is settled.
//   S5. An approval gates its own call: that call runs once approved, never otherwise.
//   S6. `maxInputRetries` unanswered questions in a row end it with INPUT_TIMEOUT;
//       an answer starts the count again.
//   S7. At most `maxSteps` steps: calls of the last step are not run (STEP_LIMIT).
//   S8. It holds a run slot exactly while it is `running`.
//   S9. A question that it gives up is withdrawn.

import { assign, setup, type SnapshotFrom } from 'xstate';
import { activity, effect, machineOptions, type DeadlineInput, type Stamped } from './effect.ts';
import type { Ending } from './outcome.ts';
import {
  cancelled,
  inputTimeout,
  PREPARATION_TIMEOUT_MS,
  requestIdOf,
  stepLimit,
  type StepCall,
  type SubagentEvent,
  type SubagentInput,
} from './subagent-events.ts';

type CallState = StepCall & { readonly settled: boolean };

interface SubagentContext {
  readonly id: string;
  readonly maxSteps: number;
  readonly maxInputRetries: number;
  readonly step: number;
  readonly remainingMs: number;
  readonly dueAt: number;
  readonly calls: readonly CallState[];
  /** Questions asked so far; numbers the requests. */
  readonly asked: number;
  /** Unanswered questions in a row. */
  readonly missed: number;
  readonly ending: Ending | null;
}

const isAsk = (call: CallState): boolean => call.kind !== 'tool' && !call.settled;
const isRunnable = (call: CallState): boolean => call.kind === 'tool' && !call.settled;

export const subagentMachine = setup({
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
    modelStep: activity<{ readonly id: string; readonly step: number }>('modelStep'),
    /** Runs these calls side by side; sends `tool.settled` for each, with the step it was given. */
    toolCalls: activity<{
      readonly id: string;
      readonly step: number;
      readonly callIds: readonly string[];
    }>('toolCalls'),
    deadline: activity<DeadlineInput>('deadline'),
  },
  actions: {
    /** Wants to run; the supervisor sends `slot.granted`. `resumed` ones go first. */
    requestSlot: effect<{ readonly id: string; readonly resumed: boolean }>(),
    /** Has a slot, or waits for one, and wants it no more. */
    releaseSlot: effect<{ readonly id: string }>(),
    /** Asks the user; one of `question.answered / expired / withdrawn` comes back. */
    ask: effect<{
      readonly id: string;
      readonly requestId: string;
      readonly callId: string;
      readonly kind: 'question' | 'approval';
    }>(),
    /** The question is pointless now. */
    withdraw: effect<{ readonly id: string; readonly requestId: string }>(),
    startClock: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.remainingMs })),
    stopClock: assign(({ context }, { at }: Stamped) => ({
      remainingMs: Math.max(0, context.dueAt - at),
    })),
    keepCalls: assign((_, { calls }: { calls: readonly StepCall[] }) => ({
      calls: calls.map((call) => ({ ...call, settled: false })),
    })),
    settleCall: assign(({ context }, { callId }: { callId: string }) => ({
      calls: context.calls.map((call) =>
        call.callId === callId ? { ...call, settled: true } : call,
      ),
    })),
    /** The head of the asks is over. An approved call becomes an ordinary one. */
    settleAsk: assign(({ context }, { approved }: { approved: boolean }) => {
      const head = context.calls.find(isAsk);
      return {
        calls: context.calls.map((call) => {
          if (call !== head) return call;
          return approved && call.kind === 'approval'
            ? { ...call, kind: 'tool' as const }
            : { ...call, settled: true };
        }),
      };
    }),
    countMiss: assign(({ context }) => ({ missed: context.missed + 1 })),
    forgetMisses: assign({ missed: 0 }),
    end: assign(({ context }, { status, error }: Omit<Ending, 'steps'>) => ({
      calls: [],
      ending: { status, steps: context.step, ...(error ? { error } : {}) },
    })),
  },
  guards: {
    isThisStep: ({ context }, { step }: { step: number }) => step === context.step,
    isUnsettled: ({ context }, { step, callId }: { step: number; callId: string }) =>
      step === context.step &&
      context.calls.some((call) => call.callId === callId && isRunnable(call)),
    isThisQuestion: ({ context }, { requestId }: { requestId: string }) =>
      requestId === requestIdOf(context.id, context.asked),
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    hasRunnable: ({ context }) => context.calls.some(isRunnable),
    hasAsk: ({ context }) => context.calls.some(isAsk),
    isLastStep: ({ context }) => context.step >= context.maxSteps,
    wasLastMiss: ({ context }) => context.missed + 1 >= context.maxInputRetries,
  },
}).createMachine({
  id: 'subagent',
  context: ({ input }) => ({
    id: input?.id ?? '',
    maxSteps: input?.maxSteps ?? 1,
    maxInputRetries: input?.maxInputRetries ?? 1,
    step: 0,
    remainingMs: input?.timeoutMs ?? 0,
    dueAt: (input?.at ?? 0) + PREPARATION_TIMEOUT_MS,
    calls: [],
    asked: 0,
    missed: 0,
    ending: null,
  }),
  initial: 'spawning',
  options: machineOptions,
  output: ({ context }) => context.ending ?? { status: 'lost', steps: context.step },
  states: {
    spawning: {
      tags: ['live'],
      invoke: [
        { id: 'prepare', src: 'prepare', input: ({ context }) => ({ id: context.id }) },
        {
          id: 'deadline',
          src: 'deadline',
          input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.preparation' }),
        },
      ],
      on: {
        'subagent.prepared': 'ready',
        'subagent.unprepared': {
          target: 'failed',
          actions: {
            type: 'end',
            params: ({ event }) => ({ status: 'failed', error: event.error }),
          },
        },
        'deadline.preparation': {
          target: 'failed',
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          actions: {
            type: 'end',
            params: {
              status: 'timed_out',
              error: {
                code: 'PREPARATION_TIMEOUT',
                message: `The subagent was not ready within ${PREPARATION_TIMEOUT_MS} ms`,
                retryable: true,
              },
            },
          },
        },
        'subagent.cancel': {
          target: 'cancelled',
          actions: {
            type: 'end',
            params: ({ event }) => ({ status: 'cancelled', error: cancelled(event.reason) }),
          },
        },
      },
    },
    ready: {
      tags: ['live', 'waiting'],
      entry: {
        type: 'requestSlot',
        params: ({ context }) => ({ id: context.id, resumed: context.step > 0 }),
      },
      on: {
        'slot.granted': 'running',
        'subagent.cancel': {
          target: 'cancelled',
          actions: [
            { type: 'releaseSlot', params: ({ context }) => ({ id: context.id }) },
            {
              type: 'end',
              params: ({ event }) => ({ status: 'cancelled', error: cancelled(event.reason) }),
            },
          ],
        },
      },
    },
    running: {
      tags: ['live', 'active'],
      entry: { type: 'startClock', params: ({ event }) => event },
      exit: [
        { type: 'stopClock', params: ({ event }) => event },
        { type: 'releaseSlot', params: ({ context }) => ({ id: context.id }) },
      ],
      invoke: {
        id: 'deadline',
        src: 'deadline',
        input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.run' }),
      },
      on: {
        'deadline.run': {
          target: 'failed',
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          actions: {
            type: 'end',
            params: {
              status: 'timed_out',
              error: {
                code: 'TIMEOUT',
                message: 'The run used up its time',
                retryable: true,
              },
            },
          },
        },
        'subagent.cancel': {
          target: 'cancelled',
          actions: {
            type: 'end',
            params: ({ event }) => ({ status: 'cancelled', error: cancelled(event.reason) }),
          },
        },
      },
      initial: 'deciding',
      states: {
        deciding: {
          always: [
            { guard: 'hasRunnable', target: 'acting' },
            { guard: 'hasAsk', target: '#subagent.waiting_for_input' },
            { target: 'thinking' },
          ],
        },
        thinking: {
          entry: assign(({ context }) => ({ step: context.step + 1, calls: [] })),
          invoke: {
            id: 'modelStep',
            src: 'modelStep',
            input: ({ context }) => ({ id: context.id, step: context.step }),
          },
          on: {
            'model.responded': [
              {
                guard: ({ context, event }) =>
                  event.step === context.step && event.calls.length === 0 && !event.again,
                target: '#subagent.completed',
                actions: { type: 'end', params: { status: 'completed' } },
              },
              {
                guard: ({ context, event }) =>
                  event.step === context.step && context.step >= context.maxSteps,
                target: '#subagent.failed',
                actions: {
                  type: 'end',
                  params: ({ context }) => ({
                    status: 'failed',
                    error: stepLimit(context.maxSteps),
                  }),
                },
              },
              {
                guard: { type: 'isThisStep', params: ({ event }) => event },
                target: 'deciding',
                actions: { type: 'keepCalls', params: ({ event }) => event },
              },
            ],
            'model.failed': {
              guard: { type: 'isThisStep', params: ({ event }) => event },
              target: '#subagent.failed',
              actions: {
                type: 'end',
                params: ({ event }) => ({ status: 'failed', error: event.error }),
              },
            },
          },
        },
        acting: {
          invoke: {
            id: 'toolCalls',
            src: 'toolCalls',
            input: ({ context }) => ({
              id: context.id,
              step: context.step,
              callIds: context.calls.filter(isRunnable).map((call) => call.callId),
            }),
          },
          on: {
            'tool.settled': {
              guard: { type: 'isUnsettled', params: ({ event }) => event },
              actions: { type: 'settleCall', params: ({ event }) => event },
            },
          },
          always: { guard: ({ context }) => !context.calls.some(isRunnable), target: 'deciding' },
        },
      },
    },
    waiting_for_input: {
      tags: ['live', 'waiting'],
      entry: [
        assign(({ context }) => ({ asked: context.asked + 1 })),
        {
          type: 'ask',
          params: ({ context }) => {
            const call = context.calls.find(isAsk);
            return {
              id: context.id,
              requestId: requestIdOf(context.id, context.asked),
              callId: call?.callId ?? '',
              kind: call?.kind === 'approval' ? 'approval' : 'question',
            };
          },
        },
      ],
      initial: 'asking',
      states: {
        asking: {
          on: {
            'question.answered': {
              guard: { type: 'isThisQuestion', params: ({ event }) => event },
              target: 'settled',
              actions: [
                'forgetMisses',
                {
                  type: 'settleAsk',
                  params: ({ event }) => ({ approved: event.approved === true }),
                },
              ],
            },
            'question.expired': [
              {
                guard: ({ context, event }) =>
                  event.requestId === requestIdOf(context.id, context.asked) &&
                  context.missed + 1 >= context.maxInputRetries,
                target: '#subagent.failed',
                actions: {
                  type: 'end',
                  params: ({ context }) => ({
                    status: 'failed',
                    error: inputTimeout(context.maxInputRetries),
                  }),
                },
              },
              {
                guard: { type: 'isThisQuestion', params: ({ event }) => event },
                target: 'settled',
                actions: ['countMiss', { type: 'settleAsk', params: { approved: false } }],
              },
            ],
            'question.withdrawn': {
              guard: { type: 'isThisQuestion', params: ({ event }) => event },
              target: 'settled',
              actions: { type: 'settleAsk', params: { approved: false } },
            },
          },
        },
        // Further questions of the step follow at once; anything else needs a slot again.
        settled: {
          always: [
            { guard: 'hasRunnable', target: '#subagent.ready' },
            { guard: 'hasAsk', target: '#subagent.waiting_for_input', reenter: true },
            { target: '#subagent.ready' },
          ],
        },
      },
      on: {
        'subagent.cancel': {
          target: 'cancelled',
          actions: [
            {
              type: 'withdraw',
              params: ({ context }) => ({
                id: context.id,
                requestId: requestIdOf(context.id, context.asked),
              }),
            },
            {
              type: 'end',
              params: ({ event }) => ({ status: 'cancelled', error: cancelled(event.reason) }),
            },
          ],
        },
      },
    },
    completed: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

export type SubagentSnapshot = SnapshotFrom<typeof subagentMachine>;
