// The shapes of the events of a subagent's unit (runtime/event-shapes.ts).

import { z } from 'zod';
import {
  amount,
  failure,
  flag,
  maybe,
  message,
  outcome,
  table,
  text,
  usage,
  type EventShapes,
} from '../runtime/event-shapes.ts';
import { SPAWNED } from './spawned-event.ts';

const call = z.looseObject({
  callId: text,
  kind: z.enum(['tool', 'delegation', 'question', 'approval', 'input', 'completion']),
  delegates: maybe(flag),
});

const response = z.looseObject({
  text,
  usage,
  assistantMessages: z.array(message),
  calls: z.array(
    z.looseObject({
      callId: text,
      toolName: text,
      invalid: maybe(z.looseObject({ message: text })),
      consent: maybe(text),
    }),
  ),
});

/** The text and usage of a model answer that failed. */
const saidInVain = z.looseObject({ text, usage });

const toolOutcome = z.union([
  z.looseObject({ status: z.literal('ok') }),
  z.looseObject({
    status: z.literal('error'),
    error: z.looseObject({ message: text, code: maybe(text) }),
  }),
]);

const question = z.looseObject({ requestId: text });
const deadline = z.looseObject({ dueAt: amount });

export const spawnedShape = z.looseObject({
  type: z.literal(SPAWNED),
  name: text,
  task: z.looseObject({ toolName: text, args: table, description: text }),
  parentId: maybe(text),
  worksFor: text,
  agentName: maybe(text),
  callId: maybe(text),
  workstreamId: maybe(text),
  idempotencyKey: maybe(text),
  request: maybe(text),
  maxDepth: maybe(amount),
  grant: maybe(
    z.looseObject({ tools: maybe(z.array(text)), disallowedTools: maybe(z.array(text)) }),
  ),
  messages: maybe(z.array(message)),
  limits: z.looseObject({ maxSteps: amount, timeoutMs: amount, maxInputRetries: amount }),
});

export const SUBAGENT_SHAPES: EventShapes = {
  [SPAWNED]: spawnedShape,
  'subagent.prepared': z.looseObject({ messages: maybe(z.array(message)), marks: maybe(text) }),
  'subagent.unprepared': z.looseObject({ error: failure }),
  'slot.granted': z.looseObject({ history: maybe(z.array(message)) }),
  'model.responded': z
    .looseObject({
      step: amount,
      calls: z.array(call),
      response,
      again: maybe(flag),
      retryMessage: maybe(text),
    })
    .refine(
      ({ calls, response: { calls: made } }) =>
        calls.every(({ callId }) => made.some((one) => one.callId === callId)),
      { path: ['response', 'calls'], message: 'expected each of `calls`' },
    ),
  'model.failed': z.looseObject({ step: amount, error: failure, response: maybe(saidInVain) }),
  'tool.settled': z.looseObject({ step: amount, callId: text, outcome: toolOutcome }),
  'question.answered': z.looseObject({
    requestId: text,
    answer: maybe(
      z.looseObject({ userResponse: text, optionId: maybe(text), approved: maybe(flag) }),
    ),
    approved: maybe(flag),
    messageId: maybe(text),
  }),
  'question.expired': question,
  'question.withdrawn': z.looseObject({ requestId: text, reason: maybe(text) }),
  'subagent.message': z.looseObject({
    messageId: text,
    mode: z.enum(['queue', 'steer', 'interrupt']),
    text,
    note: maybe(z.looseObject({ says: maybe(text) })),
  }),
  'budget.exhausted': z.looseObject({ graceful: flag, message: text, step: maybe(amount) }),
  'deadline.preparation': deadline,
  'deadline.run': deadline,
  'subagent.cancel': z.looseObject({ reason: text }),
};

const rest = z.union([
  z.looseObject({
    outcome,
    endedAt: amount,
    deliveredAt: maybe(amount),
    step: amount,
  }),
  z.looseObject({
    seq: z.int().nonnegative(),
    life: z.looseObject({
      snapshot: z.looseObject({
        value: z.union([text, z.record(z.string(), z.unknown())]),
        context: z.looseObject({
          step: amount,
          calls: z.array(call),
          unread: z.array(z.looseObject({ messageId: text })),
        }),
      }),
      log: z.looseObject({
        messages: z.array(message),
        calls: z.array(z.looseObject({ callId: text, toolName: text })),
        ledger: z.array(z.looseObject({ callId: text, toolName: text })),
        text,
        usage,
        marks: maybe(text),
        unread: z.array(z.looseObject({ messageId: text, text })),
      }),
    }),
  }),
]);

/** The state of all subagents of a scope, as a snapshot holds it. */
export const delegationShape = z.looseObject({
  subagents: z.array(
    z.looseObject({
      id: text,
      bornAt: amount,
      birth: spawnedShape,
      rest,
      deliveredAt: maybe(amount),
    }),
  ),
  gone: z.array(z.looseObject({ agents: amount, parentId: maybe(text) })),
  histories: z.record(z.string(), z.array(message)),
  awakeMs: maybe(amount),
});
