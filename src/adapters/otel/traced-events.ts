// The event fields that traces and metrics use, and the trace state that is stored in snapshots. Events that cannot be
// read are skipped.

import { SpanKind } from '@opentelemetry/api';
import { z } from 'zod';

const text = z.string();
const amount = z.number().optional().catch(undefined);

export const opened = z.object({ inputs: z.object({ books: z.object({ agentName: text }) }) });
export const entered = z.object({ agentName: text });
export const noted = z.object({ itemId: text });
export const playing = z.object({ attempt: z.number(), deliveryIds: z.array(text) });
export const called = z.object({ callId: text, name: text, agentName: text.optional() });
export const ofCall = z.object({ callId: text });
export const validated = z.object({ execution: text });
export const executed = z.object({
  failed: z.boolean().nullish(),
  output: z.object({ code: text.optional().catch(undefined) }).catch({}),
});
export const accepted = z.object({ subagentId: text });
const outcome = z.object({
  status: text,
  error: z.object({ code: text.nullish() }).nullish().catch(null),
});
export const ended = z.object({ outcome });
export const settled = z.object({ callId: text, tookMs: amount, outcome });
export const spawned = z.object({
  name: text,
  callId: text.nullish(),
  parentId: text.nullish(),
  relay: text.nullish(),
  traceparent: text.nullish(),
});
export const usageShape = z.object({
  inputTokens: amount,
  outputTokens: amount,
  cachedInputTokens: amount,
  cacheWriteTokens: amount,
  reasoningTokens: amount,
  audioInputTokens: amount,
  audioOutputTokens: amount,
  cost: amount,
});
/** Absent in events of earlier versions. */
const modelNames = z.object({ provider: text, modelId: text }).optional().catch(undefined);
const answer = z.object({ usage: usageShape, model: modelNames, tookMs: amount });
export const reported = answer.extend({ agentName: text, beganAt: z.number().nullish() });
export const responded = z.object({
  step: z.number(),
  again: z.boolean().nullish(),
  calls: z.array(z.object({ callId: text, kind: text })),
  response: answer.extend({
    finish: text.optional(),
    calls: z.array(z.object({ callId: text, toolName: text })).catch([]),
  }),
});
const withError = z.object({ error: z.object({ code: text }) });
export const failed = withError.extend({
  /** The lead agent; absent for a subagent. */
  agentName: text.optional(),
  model: modelNames,
  tookMs: amount,
  /** An unusable answer. */
  response: answer.optional().catch(undefined),
});
export const lost = withError.extend({ retryInMs: z.number().nullish() });
export const quarantined = z.object({ event: text });
export const asked = z.object({ requestId: text, kind: text });
export const closed = z.object({ requestId: text });
export const answered = z.object({ approved: z.boolean().nullish() });
export const fromCaller = z.object({ traceparent: text });
/** The unfinished subagents, whose first entries may have been trimmed. */
export const snapshot = z.object({
  books: z.object({ agentName: text }).optional(),
  delegation: z.object({
    subagents: z.array(
      z.object({
        id: text,
        bornAt: amount,
        birth: spawned,
        rest: z.object({
          outcome: z.unknown().optional(),
          life: z
            .object({ snapshot: z.object({ value: z.unknown() }) })
            .nullish()
            .catch(null),
        }),
      }),
    ),
  }),
});
export const contexts = z.object({ traceparents: z.record(text, text) });
/** The trace state that a later process needs if the entries before a snapshot have been trimmed. */
export const state = z.object({
  agentName: text,
  hasUserSpoken: z.boolean(),
  hasCaller: z.boolean(),
  running: z.array(
    z.object({
      key: text,
      name: text,
      kind: z.enum(SpanKind),
      parent: text,
      attributes: z.record(text, z.union([text, z.number()])),
    }),
  ),
  subagents: z.array(
    z.object({
      id: text,
      name: text,
      parent: text,
      home: text,
      isRemote: z.boolean(),
      isUncertain: z.boolean(),
      hasWorked: z.boolean(),
      step: z.number(),
      pending: z.array(z.object({ callId: text, toolName: text, kind: text })),
    }),
  ),
  calls: z.array(z.object({ callId: text, subagentId: text, endedAt: z.number().optional() })),
});
export const traced = z.object({ traced: state });

/** Parses an event; null if it cannot be read. */
export function readAs<Schema extends z.ZodType>(
  schema: Schema,
  event: unknown,
): z.output<Schema> | null {
  const { success, data } = schema.safeParse(event);
  return success ? data : null;
}
