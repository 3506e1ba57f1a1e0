// Checks the options and arguments that callers pass to the public API. TypeScript checks most of them at
// compile time; callers without types, and JSON, are checked here.

import { z } from 'zod';
import { secretRemover } from './secrets.ts';
import { ConfigurationError, messageOf } from './errors.ts';

/** Characters of a wrong value that an error message shows. */
const MAX_SHOWN_CHARS = 80;
const MAX_LOOKED_AT_CHARS = 2000;
/** Unknown options that one message names: the given value may be any object, with a million keys. */
const MAX_UNKNOWN_KEYS = 5;

const withoutSecrets = secretRemover([]);

/**
 * Parses `value` with `schema`.
 * @param where names the function and the argument, such as `answer(requestId, answer)`; the message begins with it.
 * @param code the error's code. @defaultValue 'INVALID_OPTION'
 * @throws {ConfigurationError} that names each wrong property, the value it has and what was expected.
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
 * As `check`, for options that include secrets: the message names the expectation and shows no value.
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

/** A check for each option of `T`: one that is missing, or that `T` does not have, does not compile. */
export type ChecksOf<T> = { readonly [Option in keyof Required<T>]: z.ZodType };

/** A callback. */
export const aFunction = z.custom<(...given: never[]) => unknown>(
  (value) => typeof value === 'function',
  { error: 'expected a function' },
);

/** Checks for an object, such as a journal or a runtime, with at least these methods. */
export function anObject(what: string, ...methods: readonly string[]): z.ZodType {
  return z.custom(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      methods.every(
        (method) => typeof (value as Readonly<Record<string, unknown>>)[method] === 'function',
      ),
    { error: `expected ${what}` },
  );
}

/**
 * Checks that the options as a whole are an object, and not a promise of one, before any of them is read.
 * @param example the code to write instead, such as `new TextSession({ model, agents: [agent] })`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function checkIsObject(where: string, value: unknown, example: string): void {
  const problem = notAnObject(value);
  if (problem === null) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `${where}: expected an object, got ${problem}. Write ${example}`,
  );
}

/** Describes a value that is not a plain object; null if it is one. */
export function notAnObject(value: unknown): string | null {
  try {
    if (typeof value === 'function') return `${shown(value)}, which is not called`;
    if (typeof value !== 'object' || value === null) return shown(value);
    if (Array.isArray(value)) return 'an array';
    return typeof (value as { then?: unknown }).then === 'function'
      ? 'a promise, which is not awaited'
      : null;
  } catch {
    return shown(value);
  }
}

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
    // A getter or a Proxy that throws, or a value so deeply nested that the stack overflows.
    return { success: false, why: `the value cannot be read: ${messageOf(cause)}` };
  }
}

function described(issue: z.core.$ZodIssue, value: unknown, schema: z.ZodType): string {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    const known = optionsAt(schema, issue.path);
    const told = issue.keys
      .slice(0, MAX_UNKNOWN_KEYS)
      .map(
        (key) => `unknown option \`${[path, key].filter(Boolean).join('.')}\`${meant(key, known)}`,
      );
    const more = issue.keys.length - told.length;
    return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
  }
  const got = shown(issue.path.reduce<unknown>(property, value));
  return `${path === '' ? '' : `\`${path}\`: `}${issue.message}, got ${got}`;
}

/** Returns the options that a schema knows at this path; none if the schema does not list them. */
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

/** Returns `; did you mean …?`, or the list of all options, or nothing. */
function meant(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  if (near !== null) return `; did you mean \`${near}\`?`;
  if (known.length === 0) return '';
  return `; expected ${known.map((name) => `\`${name}\``).join(', ')}`;
}

/**
 * Returns the known name that was probably meant: equal except for case, or a few letters away; null if none
 * is near.
 */
export function nearest(key: string, known: readonly string[]): string | null {
  const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]|ms$/g, '');
  const wanted = plain(key);
  let best: string | null = null;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of known) {
    const distance = edits(wanted, plain(name));
    if (distance < least) [best, least] = [name, distance];
  }
  return best;
}

const MAX_COMPARED_CHARS = 64;

/** Counts the letters to insert, delete or replace (Levenshtein). */
function edits(one: string, other: string): number {
  const [from, to] = [one.slice(0, MAX_COMPARED_CHARS), other.slice(0, MAX_COMPARED_CHARS)];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of from.split('').entries()) {
    const next = [i + 1];
    for (const [j, against] of to.split('').entries())
      next.push(
        Math.min(
          (next[j] ?? 0) + 1,
          (row[j + 1] ?? 0) + 1,
          (row[j] ?? 0) + (letter === against ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}

function property(value: unknown, key: PropertyKey): unknown {
  return value === null || value === undefined
    ? undefined
    : (value as Readonly<Record<PropertyKey, unknown>>)[key];
}

/**
 * Returns a shallow copy of the options that a caller gave. Each is read once: an unreadable option is
 * refused here, and no later read can throw or return another value.
 * @param where names the function; the message begins with it.
 * @throws {ConfigurationError} `INVALID_OPTION` if the value is no object, or cannot be read.
 */
export function readable<Options extends object>(where: string, options: Options): Options {
  let why: string;
  try {
    if (typeof options === 'object' && options !== null && !Array.isArray(options))
      return { ...options };
    why = `expected options in an object, got ${shown(options)}`;
  } catch (cause) {
    why = `the options cannot be read: ${messageOf(cause)}`;
  }
  throw new ConfigurationError('INVALID_OPTION', `${where}: ${why}`);
}

/**
 * Checks that the environment (time and chance) is an object with all members of the port.
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

/** Formats a value for an error message: short, on one line. Never throws. */
export function shown(value: unknown): string {
  try {
    const text =
      typeof value === 'function'
        ? `function ${value.name}`
        : ((typeof value === 'object' || typeof value === 'string'
            ? JSON.stringify(value)
            : undefined) ?? String(value));
    // Before the text is cut: half of a credential no longer matches its shape.
    const clean = withoutSecrets(text.slice(0, MAX_LOOKED_AT_CHARS));
    return clean.length > MAX_SHOWN_CHARS ? `${clean.slice(0, MAX_SHOWN_CHARS)}…` : clean;
  } catch {
    // Even `Array.isArray` throws for a revoked Proxy.
    return `${typeof value} that cannot be read`;
  }
}
