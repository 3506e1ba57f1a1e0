// Schemas as the AI SDK takes them, wrapped once: the SDK turns a raw zod schema into
// JSON Schema again for every tool of every step, which costs more than the step itself.

import { asSchema, InvalidToolInputError, TypeValidationError, zodSchema, type Schema } from 'ai';
import { shown } from '../../values/checks.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';

type Wrappable = Parameters<typeof asSchema>[0];

/** By what was given: whoever makes a session for each user gives the same schemas each time. */
const wrappedSchemas = new WeakMap<object, Schema>();

/**
 * A zod 3 or 4 schema, a Standard Schema that has a JSON Schema, or the SDK's own
 * `zodSchema()`, `jsonSchema()` or lazy schema, with its JSON Schema made now.
 * @throws {ConfigurationError} INVALID_SCHEMA, for anything else, and for one that has no JSON Schema.
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
      // A function that makes no schema, but a promise; nobody waits for it.
      wrapped.then(undefined, () => undefined);
      return refuse('expected a function that returns a schema, got one that returns a promise');
    }
    // A getter: the first access converts, the later ones give the same object.
    const { jsonSchema } = wrapped;
    if (!isLazy(schema)) wrappedSchemas.set(schema, wrapped);
    // It is told where it is used; until then it must not be an unhandled rejection.
    if (isPromiseLike(jsonSchema))
      jsonSchema.then(undefined, () => void wrappedSchemas.delete(schema));
    return wrapped;
  } catch (error) {
    return refuse(`the schema cannot be told to a model: ${messageOf(error)}`, error);
  }
}

/** The JSON Schema, where it is known already: a schema may also promise it. */
export function knownJsonSchema(schema: Schema): Readonly<Record<string, unknown>> | null {
  const { jsonSchema } = schema;
  return isPromiseLike(jsonSchema) ? null : (jsonSchema as Record<string, unknown>);
}

export type Validated =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: TypeValidationError };

/** What the schema makes of a value; never rejects. A `jsonSchema()` without `validate` takes everything. */
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

/** Its message quotes the value as JSON, which not every value has. */
function validationError(value: unknown, cause: unknown): TypeValidationError {
  try {
    return TypeValidationError.wrap({ value, cause });
  } catch {
    return new TypeValidationError({ value: shown(value), cause: messageOf(cause) });
  }
}

/** An error that quotes a large input would fill the model's context. */
const MAX_MESSAGE_CHARACTERS = 4000;

/** What a model is told of arguments that a tool's schema refuses, in the words of the SDK. */
export function invalidInputMessage(toolName: string, cause: unknown): string {
  return invalidCallMessage(new InvalidToolInputError({ toolName, toolInput: '', cause }));
}

/** What a model is told of a call that is not one: wrong arguments, or a tool that is not there. */
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

/** A function that gives the schema: it may give another one next time. */
function isLazy(schema: object): boolean {
  return typeof schema === 'function' && !('~standard' in schema);
}

/** Zod before 3.24 does not know Standard Schema. */
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
