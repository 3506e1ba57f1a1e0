// The fields of the events of the journal that a trace reads, and the state that it keeps in snapshots. An event in another
// form is passed over.

import { SpanKind } from '@opentelemetry/api';
import { z } from 'zod';

const text = z.string();
const count = z.number().optional().catch(undefined);

export const opened = z.object({ inputs: z.object({ books: z.object({ agentName: text }) }) });
export const entered = z.object({ agentName: text });
export const noted = z.object({ itemId: text });
export const playing = z.object({ attempt: z.number(), deliveryIds: z.array(text) });
export const called = z.object({ callId: text, name: text });
export const ofCall = z.object({ callId: text });
export const accepted = z.object({ subagentId: text });
export const ended = z.object({
  outcome: z.object({ status: text, error: z.object({ code: text }).nullish() }),
});
export const spawned = z.object({
  name: text,
  callId: text.nullish(),
  parentId: text.nullish(),
  relay: text.nullish(),
  traceparent: text.nullish(),
});
export const usageShape = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
});
/** Absent: an earlier version wrote it. */
export const modelNames = z.object({ provider: text, modelId: text }).optional().catch(undefined);
export const reported = z.object({
  agentName: text,
  usage: usageShape,
  beganAt: z.number().nullish(),
  model: modelNames,
});
export const responded = z.object({
  step: z.number(),
  again: z.boolean().nullish(),
  calls: z.array(z.object({ callId: text, kind: text })),
  response: z.object({
    finish: text.optional(),
    calls: z.array(z.object({ callId: text, toolName: text })),
    usage: usageShape,
    model: modelNames,
  }),
});
export const failed = z.object({
  error: z.object({ code: text }),
  response: z.object({ usage: usageShape, model: modelNames }).optional().catch(undefined),
});
export const settled = z.object({
  callId: text,
  outcome: z.object({
    status: text,
    error: z.object({ code: text.nullish() }).optional(),
  }),
});
export const answered = z.object({ approved: z.boolean().nullish() });
export const fromCaller = z.object({ traceparent: text });
/** A snapshot that no traced process wrote. */
const births = z.array(
  z.object({ id: text, birth: spawned, rest: z.object({ outcome: z.unknown().optional() }) }),
);
export const snapshot = z.object({
  books: z.object({ agentName: text }).optional(),
  delegation: z.object({ subagents: births }),
});
export const contexts = z.object({ traceparents: z.record(text, text) });
/** A later process needs this where the entries before a snapshot are trimmed. */
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

/** Reads an event; null: it has another form. */
export function readAs<Schema extends z.ZodType>(
  schema: Schema,
  event: unknown,
): z.output<Schema> | null {
  const { success, data } = schema.safeParse(event);
  return success ? data : null;
}
