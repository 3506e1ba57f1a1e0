// Checks what callers pass to the public API: options and arguments. TypeScript checks
// most of it at compile time; callers without types, and JSON, are checked here.

import { z } from 'zod';
import { secretRemover } from './actors/secrets.ts';
import { ConfigurationError, messageOf } from './errors.ts';

/** Characters of a wrong value that an error message shows. */
const MAX_SHOWN_CHARS = 80;
const MAX_LOOKED_AT_CHARS = 2000;

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
 * As `check`, for options among which are secrets: the message names what was expected, and shows no value.
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

type Parsed<Output> =
  | { readonly success: true; readonly data: Output }
  | { readonly success: false; readonly why: string };

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): Parsed<z.output<Schema>> {
  try {
    const { success, data, error } = schema.safeParse(value);
    if (success) return { success, data };
    return { success, why: error.issues.map((issue) => described(issue, value)).join('; ') };
  } catch (cause) {
    // A getter or a Proxy that throws, or a value so deeply nested that the stack overflows.
    return { success: false, why: `the value cannot be read: ${messageOf(cause)}` };
  }
}

function described(issue: z.core.$ZodIssue, value: unknown): string {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => `\`${[path, key].filter(Boolean).join('.')}\``);
    return `unknown option ${names.join(', ')}`;
  }
  const got = shown(issue.path.reduce<unknown>(property, value));
  return `${path === '' ? '' : `\`${path}\`: `}${issue.message}, got ${got}`;
}

function property(value: unknown, key: PropertyKey): unknown {
  return value === null || value === undefined
    ? undefined
    : (value as Readonly<Record<PropertyKey, unknown>>)[key];
}

/**
 * A shallow copy of the options that a caller gave, each read once: what cannot be read is refused here,
 * and nothing that is read later can throw or change.
 * @param where names the function; the message begins with it.
 * @throws {ConfigurationError} `INVALID_OPTION` for what is no object, or cannot be read.
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
 * Time and chance, as a port: an object with all of its parts.
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

/** A value as an error message shows it: short, on one line, never throws. */
export function shown(value: unknown): string {
  try {
    const text =
      typeof value === 'function'
        ? `function ${value.name}`
        : ((typeof value === 'object' || typeof value === 'string'
            ? JSON.stringify(value)
            : undefined) ?? String(value));
    // Before it is cut: half of a credential has no shape any more.
    const clean = withoutSecrets(text.slice(0, MAX_LOOKED_AT_CHARS));
    return clean.length > MAX_SHOWN_CHARS ? `${clean.slice(0, MAX_SHOWN_CHARS)}…` : clean;
  } catch {
    // Not even `Array.isArray` may be asked of a revoked Proxy.
    return `${typeof value} that cannot be read`;
  }
}
