// The shapes of a unit's events: the properties that folds and machines read, and their types. Each event that enters a
// mailbox, and each entry read from a journal, is checked against its shape. Other properties are ignored.
//
//   SHAPE-1. The shapes must also match events from earlier versions, so a new property is optional and a type may only
//       be widened.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';

/** Shapes by event type. An event type without a shape is not checked. */
export type EventShapes = Readonly<Record<string, z.ZodType>>;

export const text = z.string();
export const flag = z.boolean();

/** A number. JSON stores `Infinity` (no limit) as `null`. */
export const amount = z.custom<number | null>(
  (value) => value === null || (typeof value === 'number' && !Number.isNaN(value)),
  'expected a number',
);

/** Makes a shape optional, so that the property may be missing, `null` or `undefined`. */
export const maybe = <Shape extends z.ZodType>(shape: Shape) => shape.nullish();

/** A record with arbitrary values, by name. */
export const table = z.record(z.string(), z.unknown());

export const failure = z.looseObject({ code: text, message: text, retryable: maybe(flag) });

export const usage = z.looseObject({
  inputTokens: amount,
  outputTokens: amount,
  totalTokens: amount,
});

/** A message of the AI SDK. */
export const message = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: z.union([text, z.array(z.looseObject({ type: text }))]),
});

const ledgerEntry = z.looseObject({ step: amount, callId: text, toolName: text, status: text });

export const outcome = z.looseObject({
  status: z.enum(['completed', 'failed', 'cancelled', 'timed_out', 'lost']),
  text,
  summary: maybe(text),
  partial: maybe(text),
  error: maybe(failure),
  steps: amount,
  usage,
  toolLedger: z.array(ledgerEntry),
  artifacts: maybe(z.array(z.looseObject({ type: text, name: text }))),
  verification: maybe(z.looseObject({ unverified: z.array(z.looseObject({ claim: text })) })),
  diagnostics: maybe(z.looseObject({})),
  notes: maybe(z.array(text)),
});

/** Returns the reason if an event does not match the shape for its type; otherwise, returns null. */
export function misshapen(
  event: { readonly type: string },
  shapes: EventShapes | undefined,
): string | null {
  const shape = shapes && Object.hasOwn(shapes, event.type) ? shapes[event.type] : undefined;
  if (!shape) return null;
  try {
    const { error } = shape.safeParse(event);
    if (!error) return null;
    return error.issues
      .map((issue) => `\`${issue.path.map(String).join('.')}\`: ${issue.message}`)
      .join('; ');
  } catch (error) {
    // The nesting is so deep that the stack overflows.
    return messageOf(error);
  }
}
