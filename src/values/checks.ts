// Checks options and arguments of the public API with zod. TypeScript checks most of them at compile time; these checks
// cover untyped callers and JSON. `plain-checks.ts` contains the checks that need no schema.

import { z } from 'zod';
import { CapacityError, ConfigurationError, messageOf } from './errors.ts';
import { objectWith, shown, unknownOptions } from './plain-checks.ts';
import { isStorable } from './storable.ts';

// An app may have zod 3 instead of zod 4, because package managers only warn about the mismatch.
if (typeof z.looseObject !== 'function')
  throw new ConfigurationError(
    'MISSING_DEPENDENCY',
    'Expected zod 4, found an older one: npm install zod@4',
  );

/**
 * Parses `value` with `schema`.
 * @param where The function and the argument, such as `answer(requestId, answer)`. The message starts with it.
 * @param code The error's code. @defaultValue 'INVALID_OPTION'
 * @throws {ConfigurationError} that names each wrong property, its value and what was expected.
 */
export function check<Schema extends z.ZodType>(
  where: string,
  schema: Schema,
  value: unknown,
  code = 'INVALID_OPTION',
): z.output<Schema> {
  const checked = parse(schema, value);
  if (checked.success) return checked.data;
  throw new ConfigurationError(code, `${where}: ${checked.why}`);
}

/**
 * Like `check`, but for options that contain secrets: the message does not show any values.
 * @throws {ConfigurationError}
 */
export function checkUnshown<Schema extends z.ZodType>(
  where: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  let why: string;
  try {
    const { success, data, error } = schema.safeParse(value);
    if (success) return data;
    why = z.prettifyError(error);
  } catch {
    why = 'the options cannot be read';
  }
  throw new ConfigurationError('INVALID_OPTION', `${where}: ${why}`);
}

/** The maximum length of a message, answer or notice that a caller passes in one call, in UTF-16 code units. */
const LONGEST_TEXT_CHARS = 100_000;

/** @throws {CapacityError} `TEXT_TOO_LONG` */
export function checkLength(where: string, text: string): string {
  if (text.length <= LONGEST_TEXT_CHARS) return text;
  throw new CapacityError(
    'TEXT_TOO_LONG',
    `${where}: expected at most ${LONGEST_TEXT_CHARS} characters, got ${text.length}`,
  );
}

/** One check per option of `T`. A missing check, or a check for an unknown option, is a compile-time error. */
export type ChecksOf<T> = { readonly [Option in keyof Required<T>]: z.ZodType };

/** A callback. */
export const aFunction = z.custom<(...given: never[]) => unknown>(
  (value) => typeof value === 'function',
  { error: 'expected a function' },
);

/** Checks for an object that has at least these methods, such as a journal or a runtime. */
export function anObject(what: string, ...methods: readonly string[]): z.ZodType {
  const fits = objectWith(what, ...methods);
  return z.custom((value) => fits(value, true) === null, { error: `expected ${what}` });
}

/** The name that an app gives to a session or a service. The journal stores the entries under this name. */
export const scopeName = z
  .string()
  .min(1)
  .max(200)
  .refine(isStorable, 'expected text without the character 0 and halves of characters');

type Parsed<Output> =
  | { readonly success: true; readonly data: Output }
  | { readonly success: false; readonly why: string };

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): Parsed<z.output<Schema>> {
  try {
    const { success, data, error } = schema.safeParse(value);
    if (success) return { success, data };
    return {
      success,
      why: error.issues.map((issue) => described(issue, value, schema)).join('; '),
    };
  } catch (cause) {
    // A getter or a Proxy threw an error, or the value is so deeply nested that the stack overflowed.
    return { success: false, why: `the value cannot be read: ${messageOf(cause)}` };
  }
}

function described(issue: z.core.$ZodIssue, value: unknown, schema: z.ZodType): string {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys')
    return unknownOptions(issue.keys, optionsAt(schema, issue.path), path);
  const got = shown(issue.path.reduce<unknown>(property, value));
  return `${path === '' ? '' : `\`${path}\`: `}${issue.message}, got ${got}`;
}

/** Returns the options that a schema contains at this path; empty if there are none. */
function optionsAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = schema;
  for (const key of [...path, null]) {
    while (at instanceof z.ZodOptional || at instanceof z.ZodNullable || at instanceof z.ZodDefault)
      at = at.unwrap();
    if (key === null) break;
    if (at instanceof z.ZodObject) at = (at.shape as Readonly<Record<PropertyKey, unknown>>)[key];
    else if (at instanceof z.ZodArray) at = at.element;
    else if (at instanceof z.ZodRecord) at = at.valueType;
    else return [];
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}

function property(value: unknown, key: PropertyKey): unknown {
  return value === null || value === undefined
    ? undefined
    : (value as Readonly<Record<PropertyKey, unknown>>)[key];
}

/**
 * Checks that the environment (time and randomness) is an object with all members of the port.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function checkEnvironment(where: string, environment: unknown): void {
  check(where, environmentSchema, environment);
}

const method = z.custom<() => unknown>(
  (value) => typeof value === 'function',
  'expected a function',
);
const environmentSchema = z.looseObject({
  clock: z.looseObject({ now: method }),
  scheduler: z.looseObject({ schedule: method, yieldThen: method }),
  ids: z.looseObject({ next: method }),
  random: z.looseObject({ next: method }),
});
