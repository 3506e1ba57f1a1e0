// Checks what callers pass to the public API: options and arguments. TypeScript checks
// most of it at compile time; callers without types, and JSON, are checked here.

import type { z } from 'zod';
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
