// The shapes of the events of a unit: the properties that folds and machines read, and their types. They are
// held against each event that comes into a mailbox and each entry that comes out of a journal. Other
// properties pass.
//
// SHAPE-1. What an earlier version wrote has its shape: a new property is optional, and a type is only widened.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';

/** By the type of the event. A type without one is not looked at. */
export type EventShapes = Readonly<Record<string, z.ZodType>>;

export const text = z.string();
export const flag = z.boolean();

/** A number. JSON has `null` for `Infinity`: no limit. */
export const amount = z.custom<number | null>(
  (value) => value === null || (typeof value === 'number' && !Number.isNaN(value)),
  'expected a number',
);

/** May be missing: also as `null`, or as `undefined` before it is JSON. */
export const maybe = <Shape extends z.ZodType>(shape: Shape) => shape.nullish();

/** A table of anything, by name. */
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

/** The reason why an event does not have the shape that its type says; null: it has it. */
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
    // So deeply nested that the stack overflows.
    return messageOf(error);
  }
}
