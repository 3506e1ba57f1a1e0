// The shapes of a unit's events: the properties that folds and machines read, and their types. Each event
// that enters a mailbox and each entry read from a journal is checked against them. Other properties pass.
//
// SHAPE-1. Events of earlier versions match the shapes: a new property is optional, and a type is only
//     widened.
// SHAPE-2. The quick check of a shape says yes only where zod does. Where it does not say yes, zod decides.

import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';

/** Shapes by event type. A type without a shape is not checked. */
export type EventShapes = Readonly<Record<string, z.ZodType>>;

export const text = z.string();
export const flag = z.boolean();

/** A number. JSON writes `Infinity` (no limit) as `null`. */
export const amount = z.custom<number | null>(
  (value) => value === null || (typeof value === 'number' && !Number.isNaN(value)),
  'expected a number',
);

/** Makes a shape optional: the property may be missing, `null`, or `undefined` before it becomes JSON. */
export const maybe = <Shape extends z.ZodType>(shape: Shape) => shape.nullish();

/** A record of any values, by name. */
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

/** Returns why an event does not match the shape of its type; null if it does. */
export function misshapen(
  event: { readonly type: string },
  shapes: EventShapes | undefined,
): string | null {
  const shape = shapes && Object.hasOwn(shapes, event.type) ? shapes[event.type] : undefined;
  if (!shape) return null;
  try {
    if (quickCheckOf(shape)(event)) return null;
    const { error } = shape.safeParse(event);
    if (!error) return null;
    return error.issues
      .map((issue) => `\`${issue.path.map(String).join('.')}\`: ${issue.message}`)
      .join('; ');
  } catch (error) {
    // The value is so deeply nested that the stack overflows.
    return messageOf(error);
  }
}

/** Tells whether a value surely matches a shape. */
type QuickCheck = (value: unknown) => boolean;

const quickChecks = new WeakMap<z.core.$ZodType, QuickCheck>();

const unsure: QuickCheck = () => false;

/**
 * Returns the quick check of a shape, made once: it copies nothing and collects no issues, which is most of what
 * zod does with an event that matches. Only the kinds of shapes of this file are known to it.
 */
export function quickCheckOf(shape: z.core.$ZodType): QuickCheck {
  const known = quickChecks.get(shape);
  if (known) return known;
  const made = refined(shape, madeCheck(shape));
  quickChecks.set(shape, made);
  return made;
}

type Rule = (value: unknown) => unknown;

function refined({ _zod: { def } }: z.core.$ZodType, base: QuickCheck): QuickCheck {
  if (!def.checks || def.checks.length === 0) return base;
  const rules: Rule[] = [];
  for (const { _zod: rule } of def.checks) {
    const { check, fn } = rule.def as { readonly check: string; readonly fn?: Rule };
    if (check !== 'custom' || typeof fn !== 'function') return unsure;
    rules.push(fn);
  }
  // A promise is no answer.
  return (value) => base(value) && rules.every((rule) => rule(value) === true);
}

function madeCheck(shape: z.core.$ZodType): QuickCheck {
  const { def } = (shape as z.core.$ZodTypes)._zod;
  if (def.type === 'string') return 'format' in def ? unsure : (value) => typeof value === 'string';
  if (def.type === 'number') return 'format' in def ? unsure : (value) => Number.isFinite(value);
  if (def.type === 'null') return (value) => value === null;
  if (def.type === 'boolean') return (value) => typeof value === 'boolean';
  if (def.type === 'unknown') return () => true;
  if (def.type === 'literal') return (value) => (def.values as readonly unknown[]).includes(value);
  if (def.type === 'enum') {
    const words = Object.values(def.entries);
    return (value) => typeof value === 'string' && words.includes(value);
  }
  if (def.type === 'custom') {
    const { fn }: { readonly fn?: Rule } = def;
    return typeof fn === 'function' ? (value) => fn(value) === true : unsure;
  }
  if (def.type === 'optional') {
    const inner = quickCheckOf(def.innerType);
    return (value) => value === undefined || inner(value);
  }
  if (def.type === 'nullable') {
    const inner = quickCheckOf(def.innerType);
    return (value) => value === null || inner(value);
  }
  if (def.type === 'union') {
    const options = def.options.map(quickCheckOf);
    return (value) => options.some((option) => option(value));
  }
  if (def.type === 'array') return arrayCheck(quickCheckOf(def.element));
  if (def.type === 'record')
    return recordCheck(quickCheckOf(def.keyType), quickCheckOf(def.valueType));
  if (def.type === 'lazy') {
    // Asked when it is needed: it may lead back to itself.
    const { _zod: made } = shape as z.core.$ZodLazy;
    return (value) => quickCheckOf(made.innerType)(value);
  }
  return def.type === 'object' ? objectCheck(def) : unsure;
}

function arrayCheck(ofItem: QuickCheck): QuickCheck {
  return (value) => {
    if (!Array.isArray(value)) return false;
    // `every` skips holes, which zod does not.
    for (const item of value as readonly unknown[]) if (!ofItem(item)) return false;
    return true;
  };
}

function recordCheck(ofKey: QuickCheck, ofValue: QuickCheck): QuickCheck {
  return (value) => {
    if (typeof value !== 'object' || value === null) return false;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return false;
    if (Object.getOwnPropertySymbols(value).length > 0) return false;
    return Object.entries(value).every(([key, held]) => ofKey(key) && ofValue(held));
  };
}

function objectCheck({ shape, catchall }: z.core.$ZodObjectDef): QuickCheck {
  // Other properties pass, or are dropped from a copy that is not read.
  if (catchall && (catchall as z.core.$ZodTypes)._zod.def.type !== 'unknown') return unsure;
  const properties = Object.entries(shape).map(([key, held]) => [key, quickCheckOf(held)] as const);
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    for (const [key, check] of properties)
      if (!check((value as Readonly<Record<string, unknown>>)[key])) return false;
    return true;
  };
}
