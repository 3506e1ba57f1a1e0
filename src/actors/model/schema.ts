// Wraps schemas once for the AI SDK: the SDK converts a raw zod schema to JSON Schema again for every tool of
// every step, which costs more than the step itself.

import { asSchema, InvalidToolInputError, TypeValidationError, zodSchema, type Schema } from 'ai';
import { shown } from '../../values/plain-checks.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';

type Wrappable = Parameters<typeof asSchema>[0];

/** Keyed by the given schema: an app that makes a session per user passes the same schemas each time. */
const wrappedSchemas = new WeakMap<object, Schema>();

/**
 * Wraps a zod 3 or 4 schema, a Standard Schema with a JSON Schema, or the SDK's own `zodSchema()`,
 * `jsonSchema()` or lazy schema, and computes its JSON Schema now.
 * @throws {ConfigurationError} INVALID_SCHEMA, for anything else, and for a schema without a JSON Schema.
 */
export function wrapSchema(schema: unknown, where: string): Schema {
  const refuse = (why: string, cause?: unknown): never => {
    throw new ConfigurationError('INVALID_SCHEMA', `${where}: ${why}`, { cause });
  };
  if (!isSchemaLike(schema))
    return refuse(
      `expected a zod schema, a Standard Schema or jsonSchema(…), got ${describe(schema)}`,
    );
  const known = wrappedSchemas.get(schema);
  if (known) return known;
  try {
    const wrapped = isOldZod(schema)
      ? zodSchema(schema as Parameters<typeof zodSchema>[0])
      : asSchema(schema as Wrappable);
    if (isPromiseLike(wrapped)) {
      // The function returned a promise instead of a schema; its rejection must be handled.
      wrapped.then(undefined, () => undefined);
      return refuse('expected a function that returns a schema, got one that returns a promise');
    }
    // A getter: the first access converts, later ones return the same object.
    const { jsonSchema } = wrapped;
    if (!isLazy(schema)) wrappedSchemas.set(schema, wrapped);
    // The error is reported on use; until then it must not be an unhandled rejection.
    if (isPromiseLike(jsonSchema))
      jsonSchema.then(undefined, () => void wrappedSchemas.delete(schema));
    return wrapped;
  } catch (error) {
    return refuse(`the schema cannot be told to a model: ${messageOf(error)}`, error);
  }
}

/** Returns the JSON Schema if it is already known: a schema may also promise it. */
export function knownJsonSchema(schema: Schema): Readonly<Record<string, unknown>> | null {
  const { jsonSchema } = schema;
  return isPromiseLike(jsonSchema) ? null : (jsonSchema as Record<string, unknown>);
}

export type Validated =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: TypeValidationError };

/** Validates a value; never rejects. A `jsonSchema()` without `validate` accepts everything. */
export async function validateWith(schema: Schema, value: unknown): Promise<Validated> {
  if (!schema.validate) return { ok: true, value };
  let cause: unknown;
  try {
    const result = await schema.validate(value);
    if (result.success) return { ok: true, value: result.value };
    cause = result.error;
  } catch (error) {
    cause = error;
  }
  return { ok: false, error: validationError(value, cause) };
}

/** The message of the SDK's error quotes the value as JSON, which fails for some values. */
function validationError(value: unknown, cause: unknown): TypeValidationError {
  try {
    return TypeValidationError.wrap({ value, cause });
  } catch {
    return new TypeValidationError({ value: shown(value), cause: messageOf(cause) });
  }
}

/** An error that quotes a large input would fill the model's context. */
const MAX_MESSAGE_CHARACTERS = 4000;

/** Returns the message for a model about arguments that a tool's schema refuses, in the words of the SDK. */
export function invalidInputMessage(toolName: string, cause: unknown): string {
  return invalidCallMessage(new InvalidToolInputError({ toolName, toolInput: '', cause }));
}

/** Returns the message for a model about an invalid call: wrong arguments, or an unknown tool. */
export function invalidCallMessage(error: unknown): string {
  return clip(messageOf(error), MAX_MESSAGE_CHARACTERS);
}

function isSchemaLike(value: unknown): value is object {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null) return false;
  try {
    return '~standard' in value || 'jsonSchema' in value || isOldZod(value);
  } catch {
    // A Proxy that is revoked, or throws.
    return false;
  }
}

/** Returns whether the schema is a function, which may return another schema each time. */
function isLazy(schema: object): boolean {
  return typeof schema === 'function' && !('~standard' in schema);
}

/** Returns whether the schema is of zod before 3.24, which lacks Standard Schema. */
function isOldZod(value: object): boolean {
  return '_def' in value && 'safeParseAsync' in value && !('~standard' in value);
}

function isPromiseLike(value: object): value is PromiseLike<unknown> {
  return 'then' in value && typeof value.then === 'function';
}

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return 'type' in value || 'properties' in value
      ? 'a bare JSON Schema (wrap it in jsonSchema(…) with a `validate`)'
      : `an object with the keys ${Object.keys(value).slice(0, 5).join(', ') || '(none)'}`;
  } catch {
    return shown(value);
  }
}
