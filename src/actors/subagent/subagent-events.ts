// The events of a subagent's unit: `subagent.spawned`, the events of its machine (with the fields that its log stores),
// and the shapes of these events in the journal.
//
// The first entry contains everything that is determined when a subagent is admitted and cannot be derived later. The
// parts that the author writes (tools, model, instructions) are code. The runtime finds them by the configuration's
// name, or through the recipe from the tool that spawned the subagent.

import { z } from 'zod';
import type { JSONValue, ModelMessage } from 'ai';
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
import type { SubagentInput, Carrying, SubagentEvent, Unstamped } from '../../machines/index.ts';
import { budgetLimits } from '../admission/budget.ts';
import type { BudgetLimits } from '../contracts/config.ts';
import type { ModelNames } from '../contracts/usage.ts';
import type { SubagentTask } from '../contracts/task.ts';
import type { Note } from '../notes/note.ts';
import type { ModelResponse } from '../model/model-step.ts';
import type { Answer } from '../contracts/records.ts';
import { toolError, type ToolOutcome } from '../model/tool-results.ts';
import type { OffstageError } from '../../values/errors.ts';

export const SPAWNED = 'subagent.spawned';

/** The version of the subagent's definition. Increase it when the machine or the content of its events changes. */
export const SUBAGENT_VERSION = 3;

export interface SpawnedEvent {
  readonly type: typeof SPAWNED;
  /** The `name` of the subagent's configuration. */
  readonly name: string;
  readonly task: SubagentTask;
  /** The title of the work in lists; if null, the task's description is shown. @defaultValue null */
  readonly title?: string | null;
  /** The parent's id, or null for the lead agent or a program. */
  readonly parentId: string | null;
  /** The name of the scope's ports that the subagent works for (`ScopePorts.name`). */
  readonly worksFor: string;
  /** The agent that led when the subagent was spawned. Its tools could be granted. Null if there was none. */
  readonly agentName: string | null;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  readonly idempotencyKey: string | null;
  /** A digest of the request that was made with the key (`requestDigest`). Absent in journals from earlier versions. */
  readonly requestDigest?: string;
  /** The utterance that led to the subagent. */
  readonly request: string | null;
  /** The identity of the speaker, if the app has verified it. @defaultValue null */
  readonly requestedBy?: string | null;
  readonly maxDepth: number | null;
  /** The names of the tools that the spawner granted; see `ToolGrant`. */
  readonly grant: {
    readonly tools?: readonly string[];
    readonly disallowedTools?: readonly string[];
  } | null;
  /** The data from which the tool that spawned the subagent restores its configuration. */
  readonly recipe: JSONValue | null;
  /** The conversation that the subagent continues, or null if there is none. */
  readonly messages: readonly ModelMessage[] | null;
  /** The machine's limits at its start. Later changes to the configuration apply only to later runs. */
  readonly limits: Pick<SubagentInput, 'maxSteps' | 'timeoutMs' | 'maxInputRetries'>;
  /** The limits of the subagent's budget, for readers of the journal. The runtime takes them from the configuration. */
  readonly budget?: BudgetLimits;
  /** The third-party agent that does the work (`Relay.name`), for readers of the journal. */
  readonly relay?: string;
  /** The engine that runs its model calls (`Jobs.name`), for readers of the journal. */
  readonly engine?: string;
  /** The caller's W3C trace context, for a subagent without a parent. */
  readonly traceparent?: string;
}

/** A model call that failed. */
export interface FailedCall {
  /** The model that was called. Absent if this process does not know the model. */
  readonly model?: ModelNames | undefined;
  /**
   * The duration of the call, in milliseconds. Absent if no call was made, or if the response already contains the
   * duration.
   */
  readonly tookMs?: number;
}

/** Event fields that the subagent's log stores but that the machine does not read. */
interface KeptFields {
  /** `marks`: the secret in the note markers; absent if an earlier version started the run. */
  readonly 'subagent.prepared': {
    readonly messages?: readonly ModelMessage[] | null;
    readonly marks?: string;
  };
  /** The conversation from the instance's earlier runs. */
  readonly 'slot.granted': { readonly history?: readonly ModelMessage[] };
  readonly 'model.responded': {
    readonly response: ModelResponse;
    /** A message after which the model answers again. */
    readonly retryMessage?: string | undefined;
    /** The result as converted by the output schema. */
    readonly result?: unknown;
  };
  /** `response`: an answer that cannot be used, but whose tokens are counted. */
  readonly 'model.failed': { readonly response?: ModelResponse } & FailedCall;
  readonly 'model.retried': FailedCall;
  /**
   * The time for which the tool ran, in milliseconds. Absent if the tool did not run in this process or waited for a
   * subagent.
   */
  readonly 'tool.settled': { readonly outcome: ToolOutcome; readonly tookMs?: number | undefined };
  /** `messageId`: the message that contains the parent's answer. */
  readonly 'question.answered': { readonly answer: Answer; readonly messageId?: string };
  readonly 'question.withdrawn': { readonly reason?: string };
  /** `by`: the identity of the sender, if the app has verified it. */
  readonly 'subagent.message': {
    readonly text: string;
    readonly by?: string;
    readonly note?: Note;
  };
  readonly 'subagent.cancel': { readonly by?: string };
  readonly 'budget.raised': { readonly by?: string };
}

/** The events of a subagent's unit: `subagent.spawned`, and those of its machine. */
export type SubagentUnitEvent = SpawnedEvent | Carrying<Unstamped<SubagentEvent>, KeptFields>;

/** Events for which no activity is waiting. */
const UNAWAITED: ReadonlySet<string> = new Set<SubagentUnitEvent['type']>([
  'model.retried',
  'subagent.message',
  'question.withdrawn',
  'question.expired',
]);

/**
 * Returns a replacement for a refused event. It lacks the faulty content but settles the same call or activity.
 * `crash`: there is no replacement, so the subagent would wait forever. Null if no activity is waiting for the event.
 */
export function insteadOf(
  event: SubagentUnitEvent,
  { code, message: why }: OffstageError,
): SubagentUnitEvent | 'crash' | null {
  const error = { code, message: why, retryable: false };
  if (event.type === 'model.responded') return { type: 'model.failed', step: event.step, error };
  if (event.type === 'model.failed' && event.response !== undefined)
    return { type: event.type, step: event.step, error };
  if (event.type === 'tool.settled' && event.outcome?.status !== 'error') {
    const { type, step, callId } = event;
    return { type, step, callId, outcome: toolError(why, 'FAILED') };
  }
  if (event.type === 'subagent.prepared') return { type: 'subagent.unprepared', error };
  if (event.type === 'question.answered') {
    const { requestId } = event;
    return { type: 'question.withdrawn', requestId, reason: why };
  }
  return UNAWAITED.has(event.type) ? null : 'crash';
}

const call = z.looseObject({
  callId: text,
  kind: z.enum(['tool', 'delegation', 'question', 'approval', 'input', 'sleep', 'completion']),
  delegates: maybe(flag),
  until: maybe(amount),
});

/** The arguments that may differ between the calls that an approval covers. */
export const mayDiffer = z.union([z.literal(false), z.array(text)]);

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
      approvalId: maybe(text),
      mayDiffer: maybe(mayDiffer),
      reason: maybe(text),
      job: maybe(text),
    }),
  ),
});

/** The text and usage of a failed answer. */
const saidInVain = z.looseObject({ text, usage });

const toolOutcome = z.union([
  z.looseObject({ status: z.literal('ok') }),
  z.looseObject({
    status: z.literal('error'),
    error: z.looseObject({ message: text, code: maybe(text) }),
  }),
]);

/** The arguments that a user approved in place of those in the call. */
export const changedInput = z.looseObject({ input: z.unknown(), raw: maybe(z.literal(true)) });

const question = z.looseObject({ requestId: text });

const deadline = z.looseObject({ dueAt: amount });

export const spawnedShape = z.looseObject({
  type: z.literal(SPAWNED),
  name: text,
  task: z.looseObject({ toolName: text, args: table, description: text }),
  title: maybe(text),
  parentId: maybe(text),
  worksFor: text,
  agentName: maybe(text),
  callId: maybe(text),
  workstreamId: maybe(text),
  idempotencyKey: maybe(text),
  requestDigest: maybe(text),
  request: maybe(text),
  maxDepth: maybe(amount),
  grant: maybe(
    z.looseObject({ tools: maybe(z.array(text)), disallowedTools: maybe(z.array(text)) }),
  ),
  messages: maybe(z.array(message)),
  limits: z.looseObject({ maxSteps: amount, timeoutMs: amount, maxInputRetries: amount }),
  budget: maybe(budgetLimits),
  relay: maybe(text),
  engine: maybe(text),
  traceparent: maybe(text),
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
  'model.retried': z.looseObject({
    step: amount,
    failed: amount,
    attempts: amount,
    retryAt: amount,
    error: failure,
  }),
  'tool.settled': z.looseObject({ step: amount, callId: text, outcome: toolOutcome }),
  'question.answered': z.looseObject({
    requestId: text,
    answer: maybe(
      z.looseObject({
        userResponse: text,
        optionId: maybe(text),
        approved: maybe(flag),
        changed: maybe(changedInput),
      }),
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
  'budget.raised': z.looseObject({ limits: budgetLimits }),
  'deadline.preparation': deadline,
  'deadline.run': deadline,
  'deadline.sleep': deadline,
  'subagent.cancel': z.looseObject({ reason: text }),
};

const rest = z.union([
  z.looseObject({ outcome, endedAt: amount, deliveredAt: maybe(amount), step: amount }),
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

/** The state of all subagents in a scope, as stored in a snapshot. */
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
