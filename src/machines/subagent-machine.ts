// The life of one delegated piece of work.
//
//   spawning ──▶ ready ⇄ running ⇄ waiting_for_children ─▶ waiting_for_input
//       │          │        │ ▲─────────────────────────────────┘ (through ready, as after sleeping)
//       └──────────┴────────┴──▶ completed | failed | cancelled    (final)
//
//   running: deciding ─▶ thinking ─▶ deciding ─▶ acting ─▶ deciding … ─▶ sleeping
//
// Owns:     the subagent's state, the step count, the step's unsettled calls, the unread messages, and the remaining
//           time of the run.
// Does not: call a model or a tool, store texts, read a clock, or access other subagents.
//
// Invariants
//   SUBAGENT-MACHINE-1. A subagent ends exactly once: it never leaves completed, failed or cancelled.
//   SUBAGENT-MACHINE-2. The run's clock runs only in `running`; time spent waiting for a slot, the user or another
//       agent does not count.
//   SUBAGENT-MACHINE-3. While the subagent is waiting for an answer, none of the step's other calls run. The order is:
//       ordinary calls; then delegations, in parallel; then questions, one at a time in call order; then sleep. The
//       completion call comes last.
//   SUBAGENT-MACHINE-4. A step starts only after every call of the previous step has been settled or abandoned.
//   SUBAGENT-MACHINE-5. A call that needs an approval runs only if it is approved.
//   SUBAGENT-MACHINE-6. After `maxInputRetries` consecutive questions without an answer from the user, the subagent
//       ends with INPUT_TIMEOUT; an answer restarts the count. Questions that another agent left unanswered do not
//       count.
//   SUBAGENT-MACHINE-7. At most `maxSteps` steps run. The calls of the last step do not run (STEP_LIMIT), except its
//       completion call.
//   SUBAGENT-MACHINE-8. The subagent holds a run slot exactly while it is in `running`.
//   SUBAGENT-MACHINE-9. A question that the subagent abandons is withdrawn.
//   SUBAGENT-MACHINE-10. Each message is read by at most one model call, in order of arrival. A `queue` message is read
//       when the model would otherwise have ended, and the model then continues. Any other message is read at the next
//       step. The first step reads all messages that arrived before it. A subagent can complete with unread messages
//       only in its last step.
//   SUBAGENT-MACHINE-11. A message with `interrupt` aborts the current work (model call, tools, waiting) and drops
//       calls that have not started. The next step reads the message. If no step is left, an `interrupt` message is
//       treated like `steer`.
//   SUBAGENT-MACHINE-12. Once the budget is exhausted, no further call of the step starts. At most one more model call
//       is made, which is the final one. The subagent then fails with BUDGET_EXHAUSTED. A result that arrives in the
//       meantime is still accepted. If a step's model call was refused, that step is the final one.
//   SUBAGENT-MACHINE-13. The machine only records a budget increase. An increase after the budget is exhausted is
//       ignored.
//   SUBAGENT-MACHINE-14. A retry of a model call is recorded for readers of the journal; it has no other effect.
//   SUBAGENT-MACHINE-15. The subagent sleeps without a run slot until the latest wake time of the step's calls. It
//       wakes once, either at that time or when a message arrives whose mode is not `queue`.

import type { SnapshotFrom } from 'xstate';
import { activity, deadline, machineOptions, stopActivity } from './effect.ts';
import {
  PREPARATION_TIMEOUT_MS,
  askOf,
  idsOf,
  inputTimeout,
  isDelegation,
  isRunnable,
  openRequest,
  sleepsUntil,
  stepLimit,
  subagentSetup,
  whileLive,
} from './subagent-setup.ts';

/** A subagent's life: preparation, model steps, tool calls, questions and budget. The output states how it ended. */
export const subagentMachine = subagentSetup.createMachine({
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
    unread: [],
    reading: [],
    exhausted: null,
    isFinal: false,
    ending: null,
  }),
  initial: 'spawning',
  options: machineOptions,
  output: ({ context }) => context.ending ?? { status: 'lost', steps: context.step },
  states: {
    spawning: {
      tags: ['live'],
      entry: [
        { type: 'startActivity', params: ({ context }) => activity('prepare', { id: context.id }) },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.preparation', context.dueAt),
        },
      ],
      exit: [stopActivity('prepare'), stopActivity('deadline')],
      on: {
        ...whileLive,
        'subagent.prepared': 'ready',
        'subagent.unprepared': {
          target: 'failed',
          actions: { type: 'fail', params: ({ event }) => event },
        },
        'deadline.preparation': {
          target: 'failed',
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          actions: {
            type: 'timeOut',
            params: {
              code: 'PREPARATION_TIMEOUT',
              message: `The subagent was not ready within ${PREPARATION_TIMEOUT_MS} ms`,
            },
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
        'budget.raised': whileLive['budget.raised'],
        'subagent.message': [
          {
            guard: { type: 'breaksOff', params: ({ event }) => event },
            actions: ['dropStep', { type: 'keepMessage', params: ({ event }) => event }],
          },
          whileLive['subagent.message'],
        ],
        'budget.exhausted': [
          {
            guard: { type: 'isAtOnce', params: ({ event }) => event },
            target: 'failed',
            actions: [
              { type: 'releaseSlot', params: ({ context }) => ({ id: context.id }) },
              { type: 'failExhausted', params: ({ event }) => event },
            ],
          },
          { actions: [{ type: 'exhaust', params: ({ event }) => event }, 'dropCalls'] },
        ],
        'subagent.cancel': {
          target: 'cancelled',
          actions: [
            { type: 'releaseSlot', params: ({ context }) => ({ id: context.id }) },
            { type: 'cancel', params: ({ event }) => event },
          ],
        },
      },
    },
    running: {
      tags: ['live', 'active'],
      entry: [
        { type: 'startClock', params: ({ event }) => event },
        { type: 'startActivity', params: ({ context }) => deadline('deadline.run', context.dueAt) },
      ],
      exit: [
        { type: 'stopClock', params: ({ event }) => event },
        { type: 'releaseSlot', params: ({ context }) => ({ id: context.id }) },
        stopActivity('deadline'),
      ],
      on: {
        ...whileLive,
        'deadline.run': {
          target: 'failed',
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          actions: {
            type: 'timeOut',
            params: { code: 'TIMEOUT', message: 'The run used up its time' },
          },
        },
      },
      initial: 'deciding',
      states: {
        deciding: {
          always: [
            { guard: 'hasRunnable', target: 'acting' },
            { guard: 'hasDelegation', target: '#subagent.waiting_for_children' },
            { guard: 'hasAsk', target: '#subagent.waiting_for_input' },
            { guard: 'hasSleep', target: '#subagent.sleeping' },
            { guard: 'isHandedIn', target: '#subagent.completed', actions: 'complete' },
            { target: 'thinking' },
          ],
        },
        thinking: {
          entry: [
            'beginStep',
            {
              type: 'startActivity',
              params: ({ context: { id, step, maxSteps, reading: messageIds, isFinal: final } }) =>
                activity('modelStep', {
                  id,
                  step,
                  messageIds,
                  final,
                  last: step > 1 && step >= maxSteps,
                }),
            },
          ],
          exit: stopActivity('modelStep'),
          on: {
            'model.responded': [
              {
                guard: { type: 'isFinalStep', params: ({ event }) => event },
                target: '#subagent.failed',
                actions: 'failExhausted',
              },
              {
                guard: { type: 'isResult', params: ({ event }) => event },
                target: '#subagent.completed',
                actions: 'complete',
              },
              {
                guard: { type: 'isBeyondLastStep', params: ({ event }) => event },
                target: '#subagent.failed',
                actions: {
                  type: 'fail',
                  params: ({ context }) => ({ error: stepLimit(context.maxSteps) }),
                },
              },
              {
                guard: { type: 'isThisStep', params: ({ event }) => event },
                target: 'deciding',
                actions: { type: 'keepCalls', params: ({ event }) => event },
              },
            ],
            'model.failed': [
              {
                guard: { type: 'isFinalStep', params: ({ event }) => event },
                target: '#subagent.failed',
                actions: 'failExhausted',
              },
              {
                guard: { type: 'isThisStep', params: ({ event }) => event },
                target: '#subagent.failed',
                actions: { type: 'fail', params: ({ event }) => event },
              },
            ],
            'model.retried': {
              guard: { type: 'isThisStep', params: ({ event }) => event },
              actions: { type: 'keepRetry', params: ({ event }) => event },
            },
            'subagent.message': {
              guard: { type: 'breaksOff', params: ({ event }) => event },
              target: 'thinking',
              reenter: true,
              actions: { type: 'keepMessage', params: ({ event }) => event },
            },
            'budget.exhausted': {
              guard: { type: 'isRefusal', params: ({ event }) => event },
              actions: [{ type: 'exhaust', params: ({ event }) => event }, 'makeFinal'],
            },
          },
        },
        acting: {
          entry: {
            type: 'startActivity',
            params: ({ context }) =>
              activity('toolCalls', {
                id: context.id,
                step: context.step,
                callIds: idsOf(context.calls.filter(isRunnable)),
              }),
          },
          exit: stopActivity('toolCalls'),
          on: {
            'tool.settled': {
              guard: { type: 'isUnsettledTool', params: ({ event }) => event },
              actions: { type: 'settleCall', params: ({ event }) => event },
            },
            'subagent.message': {
              guard: { type: 'breaksOff', params: ({ event }) => event },
              target: 'thinking',
              actions: ['dropStep', { type: 'keepMessage', params: ({ event }) => event }],
            },
            'budget.exhausted': {
              guard: { type: 'isGraceful', params: ({ event }) => event },
              actions: [{ type: 'exhaust', params: ({ event }) => event }, 'dropUnbegun'],
            },
          },
          always: { guard: ({ context }) => !context.calls.some(isRunnable), target: 'deciding' },
        },
      },
    },
    // The subagent holds no slot, because a parent that waits for a child must not block the child.
    waiting_for_children: {
      tags: ['live', 'waiting'],
      entry: {
        type: 'startActivity',
        params: ({ context }) =>
          activity('toolCalls', {
            id: context.id,
            step: context.step,
            callIds: idsOf(context.calls.filter(isDelegation)),
          }),
      },
      exit: stopActivity('toolCalls'),
      on: {
        ...whileLive,
        'tool.settled': {
          guard: { type: 'isUnsettledDelegation', params: ({ event }) => event },
          actions: { type: 'settleCall', params: ({ event }) => event },
        },
        'subagent.message': [
          {
            guard: { type: 'breaksOff', params: ({ event }) => event },
            target: 'ready',
            actions: ['dropStep', { type: 'keepMessage', params: ({ event }) => event }],
          },
          whileLive['subagent.message'],
        ],
        'budget.exhausted': [
          whileLive['budget.exhausted'][0],
          {
            target: 'ready',
            actions: [{ type: 'exhaust', params: ({ event }) => event }, 'dropCalls'],
          },
        ],
      },
      always: [
        { guard: 'asksNext', target: 'waiting_for_input' },
        { guard: ({ context }) => !context.calls.some(isDelegation), target: 'ready' },
      ],
    },
    sleeping: {
      tags: ['live', 'waiting'],
      entry: {
        type: 'startActivity',
        params: ({ context }) => ({
          name: 'deadline',
          id: 'deadline',
          input: { dueAt: sleepsUntil(context.calls), event: 'deadline.sleep', byClock: true },
        }),
      },
      exit: stopActivity('deadline'),
      on: {
        ...whileLive,
        'deadline.sleep': {
          target: 'ready',
          guard: { type: 'isWakeTime', params: ({ event }) => event },
          actions: 'wake',
        },
        'subagent.message': [
          {
            guard: { type: 'breaksOff', params: ({ event }) => event },
            target: 'ready',
            actions: ['dropStep', { type: 'keepMessage', params: ({ event }) => event }],
          },
          {
            guard: { type: 'wakes', params: ({ event }) => event },
            target: 'ready',
            actions: ['wake', { type: 'keepMessage', params: ({ event }) => event }],
          },
          whileLive['subagent.message'],
        ],
        'budget.exhausted': [
          whileLive['budget.exhausted'][0],
          {
            target: 'ready',
            actions: [{ type: 'exhaust', params: ({ event }) => event }, 'dropCalls'],
          },
        ],
      },
    },
    waiting_for_input: {
      tags: ['live', 'waiting'],
      entry: [
        'countAsk',
        {
          type: 'ask',
          params: ({ context }) => ({
            ...openRequest({ context }),
            callId: askOf(context.calls)?.callId ?? '',
          }),
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
                guard: { type: 'isLastMiss', params: ({ event }) => event },
                target: '#subagent.failed',
                actions: {
                  type: 'fail',
                  params: ({ context }) => ({ error: inputTimeout(context.maxInputRetries) }),
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
        // Further questions of the step follow immediately. Any other call needs a slot again.
        settled: {
          always: [
            { guard: 'hasRunnable', target: '#subagent.ready' },
            { guard: 'hasDelegation', target: '#subagent.waiting_for_children' },
            { guard: 'hasAsk', target: '#subagent.waiting_for_input', reenter: true },
            { target: '#subagent.ready' },
          ],
        },
      },
      on: {
        'budget.raised': whileLive['budget.raised'],
        'subagent.message': [
          {
            guard: { type: 'breaksOff', params: ({ event }) => event },
            target: 'ready',
            actions: [
              { type: 'withdraw', params: openRequest },
              'dropStep',
              { type: 'keepMessage', params: ({ event }) => event },
            ],
          },
          whileLive['subagent.message'],
        ],
        'budget.exhausted': [
          {
            guard: { type: 'isAtOnce', params: ({ event }) => event },
            target: 'failed',
            actions: [
              { type: 'withdraw', params: openRequest },
              { type: 'failExhausted', params: ({ event }) => event },
            ],
          },
          {
            target: 'ready',
            actions: [
              { type: 'withdraw', params: openRequest },
              { type: 'exhaust', params: ({ event }) => event },
              'dropCalls',
            ],
          },
        ],
        'subagent.cancel': {
          target: 'cancelled',
          actions: [
            { type: 'withdraw', params: openRequest },
            { type: 'cancel', params: ({ event }) => event },
          ],
        },
      },
    },
    completed: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

/** A snapshot of `subagentMachine`. */
export type SubagentSnapshot = SnapshotFrom<typeof subagentMachine>;
