// Wraps each schema once for the AI SDK. Otherwise, the SDK would convert a raw zod schema to JSON Schema for every
// tool in every step, which costs more than the step. Checks the names of a call's inputs against its schema. Without
// this check, a misspelled input would be lost, because schemas silently drop unknown properties. A subagent that works
// without an input costs more than a second call.

import {
  asSchema,
  InvalidToolInputError,
  jsonSchema,
  TypeValidationError,
  zodSchema,
  type JSONSchema7,
  type Schema,
} from 'ai';
import { z } from 'zod';
import { isPromiseLike, shown } from '../../values/plain-checks.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';
import { editDistance } from '../../language/similarity.ts';

type Wrappable = Parameters<typeof asSchema>[0];

/**
 * Keyed by the schema that the app passed: an app that creates a session per user passes the same schemas each time.
 */
const wrappedSchemas = new WeakMap<object, Schema>();

/**
 * Wraps a zod 3 or 4 schema, a Standard Schema with a JSON Schema, or the SDK's own `zodSchema()`, `jsonSchema()` or
 * lazy schema, and computes its JSON Schema immediately.
 * @throws {ConfigurationError} INVALID_SCHEMA for anything else, and for a schema without a JSON Schema.
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
      // The function returned a promise in place of a schema, and a rejection of that promise must be handled.
      wrapped.then(undefined, () => undefined);
      return refuse('expected a function that returns a schema, got one that returns a promise');
    }
    // `jsonSchema` is a getter that converts on first access and then returns the same object.
    const converted = wrapped.jsonSchema;
    if (!isLazy(schema)) wrappedSchemas.set(schema, wrapped);
    // The error is reported when the schema is used; until then, it must not become an unhandled rejection.
    if (isPromiseLike(converted))
      converted.then(undefined, () => void wrappedSchemas.delete(schema));
    return wrapped;
  } catch (error) {
    return refuse(`the schema cannot be told to a model: ${messageOf(error)}`, error);
  }
}

/** The schemas of arguments, by wrapped schema. */
const argumentSchemas = new WeakMap<Schema, Schema>();

/**
 * Wraps the schema of a tool's arguments, like `wrapSchema`. The model receives a form that every provider's API
 * accepts: an object without unions at its root (a union of objects becomes one object with all their properties), and
 * lists with a single item schema. Values are validated with the given schema.
 * @throws {ConfigurationError} `INVALID_SCHEMA`, including for a schema that does not describe an object.
 */
export function objectSchema(schema: unknown, where: string): Schema {
  const wrapped = wrapSchema(schema, where);
  const known = argumentSchemas.get(wrapped);
  if (known) return known;
  const converted = wrapped.jsonSchema;
  const told = isPromiseLike(converted)
    ? converted.then((shape) => tellableArguments(shape as Told, where))
    : tellableArguments(converted, where);
  if (told === converted) return wrapped;
  const { validate } = wrapped;
  const made = jsonSchema(told, validate && { validate });
  argumentSchemas.set(wrapped, made);
  return made;
}

type JsonSchema = Readonly<Record<string, unknown>>;
type Told = Awaited<Schema['jsonSchema']>;

/** Returns the schema in the form that a model receives; the same schema if it already has that form. */
function tellableArguments(given: Told, where: string): Told {
  const root = objectAt(given as JsonSchema, given as JsonSchema);
  if (root === null) {
    const { type } = given;
    const got = type === undefined ? Object.keys(given).join(', ') : JSON.stringify(type);
    throw new ConfigurationError(
      'INVALID_SCHEMA',
      `${where}: expected the schema of an object, got ${got}. Models call tools with named arguments: put it into a property, as in z.object({ value: … })`,
    );
  }
  return withPlainItems(root) as Told;
}

/** The maximum depth of unions and references at the root; a limit is needed because a schema may refer to itself. */
const MOST_NESTED = 4;

/**
 * Returns the schema as an object without a union at its root; null if it does not describe an object. Some APIs refuse
 * `anyOf`, `oneOf` and `allOf` at the root, and an object without `properties`.
 */
function objectAt(schema: JsonSchema, root: JsonSchema, depth = 0): JsonSchema | null {
  if (depth > MOST_NESTED) return null;
  const { $ref, type, anyOf, oneOf, allOf, ...rest } = schema;
  if (typeof $ref === 'string') {
    const target = targetOf($ref, root);
    const { $defs, definitions } = root;
    const found = target && objectAt(target, root, depth + 1);
    return (
      found && { ...found, ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}) }
    );
  }
  const isAny = type === undefined && !('not' in rest || 'enum' in rest || 'const' in rest);
  const isObject = type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (!isObject && !isAny) return null;
  const choices = [anyOf, oneOf].flatMap((list) =>
    Array.isArray(list) ? [list as JsonSchema[]] : [],
  );
  const parts = Array.isArray(allOf) ? (allOf as JsonSchema[]) : [];
  if (choices.length === 0 && parts.length === 0)
    return type === 'object' && rest['properties']
      ? schema
      : { ...rest, type: 'object', properties: rest['properties'] ?? {} };
  const own = { properties: propertiesOf(rest), required: requiredOf(rest) };
  const merged = [...parts.map((part) => [part]), ...choices].map((list) => {
    const objects = list
      .filter((one) => one['type'] !== 'null')
      .map((one) => objectAt(one, root, depth + 1));
    return objects.every((one) => one !== null) && objects.length > 0 ? eitherOf(objects) : null;
  });
  if (!merged.every((one) => one !== null)) return null;
  const all = [own, ...merged];
  return {
    ...rest,
    type: 'object',
    properties: joined(all.map(({ properties }) => properties)),
    required: [...new Set(all.flatMap(({ required }) => required))],
  };
}

function targetOf(ref: string, root: JsonSchema): JsonSchema | null {
  let at: unknown = root;
  for (const key of ref.split('/').slice(1))
    at = (at as JsonSchema | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')];
  return typeof at === 'object' && at !== null ? (at as JsonSchema) : null;
}

type Properties = Readonly<Record<string, unknown>>;

function propertiesOf(schema: JsonSchema): Properties {
  return (schema['properties'] ?? {}) as Properties;
}

function requiredOf(schema: JsonSchema): readonly string[] {
  return Array.isArray(schema['required']) ? (schema['required'] as string[]) : [];
}

/** Merges the object schemas of a union: a property is required if it is required in all of them. */
function eitherOf(objects: readonly JsonSchema[]) {
  const [first = {}, ...others] = objects;
  return {
    properties: joined(objects.map(propertiesOf)),
    required: requiredOf(first).filter((name) =>
      others.every((other) => requiredOf(other).includes(name)),
    ),
  };
}

/** Merges properties by name; a property with different schemas may match any of them. */
function joined(all: readonly Properties[]): Properties {
  const found = new Map<string, Map<string, unknown>>();
  for (const properties of all)
    for (const [name, schema] of Object.entries(properties)) {
      const seen = found.get(name) ?? new Map<string, unknown>();
      found.set(name, seen.set(JSON.stringify(schema), schema));
    }
  return Object.fromEntries(
    [...found].map(([name, seen]) => {
      const schemas = [...seen.values()];
      return [name, schemas.length === 1 ? schemas[0] : { anyOf: schemas }];
    }),
  );
}

/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);
/** Keywords whose values are schemas under names that the author chose. */
const NAMED: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);

/**
 * Gives each list a single item schema, because some APIs refuse a list of schemas (a draft 7 tuple), and others refuse
 * `prefixItems` without `items` or a list with neither. Returns the same schema if it contains no such list.
 */
function withPlainItems(schema: unknown, hasNames = false): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) {
    const changed = schema.map((item) => withPlainItems(item));
    return changed.some((item, index) => item !== schema[index]) ? changed : schema;
  }
  const given = schema as JsonSchema;
  const entries = Object.entries(given).map(([key, value]) => {
    const isData = !hasNames && DATA.has(key);
    return [key, isData ? value : withPlainItems(value, !hasNames && NAMED.has(key))] as const;
  });
  const isChanged = entries.some(([key, value]) => value !== given[key]);
  const told: JsonSchema = isChanged ? Object.fromEntries(entries) : given;
  if (told['type'] !== 'array') return told;
  const { items, prefixItems, additionalItems, ...rest } = told;
  const listed = Array.isArray(items) ? items : Array.isArray(prefixItems) ? prefixItems : null;
  if (listed === null) return items === undefined ? { ...rest, items: {} } : told;
  const others = Array.isArray(items) ? additionalItems : items;
  const isOpen = typeof others === 'object';
  return {
    ...rest,
    items: { anyOf: isOpen ? [...(listed as unknown[]), others] : listed },
    minItems: rest['minItems'] ?? listed.length,
    ...(isOpen ? {} : { maxItems: rest['maxItems'] ?? listed.length }),
  };
}

/** Returns the JSON Schema; null if it is a promise that is still pending. */
export function knownJsonSchema(schema: Schema): Readonly<Record<string, unknown>> | null {
  const known = schema.jsonSchema;
  return isPromiseLike(known) ? null : (known as Record<string, unknown>);
}

/** Returns an object's JSON Schema, reduced to the keywords that a model needs. */
export function objectJson(
  properties: Readonly<Record<string, JSONSchema7>>,
  required: string[],
): JSONSchema7 {
  return { type: 'object', properties, required };
}

/** Returns the validation of a runtime tool that has both a zod schema and a handwritten JSON Schema. */
export function validatedBy<T>(schema: z.ZodType<T>) {
  return (value: unknown) => {
    const parsed = schema.safeParse(value);
    return parsed.success
      ? { success: true as const, value: parsed.data }
      : { success: false as const, error: new Error(z.prettifyError(parsed.error)) };
  };
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

/** Wraps the cause. The SDK quotes the value in the message as JSON, which is impossible for some values. */
function validationError(value: unknown, cause: unknown): TypeValidationError {
  try {
    return TypeValidationError.wrap({ value, cause });
  } catch {
    return new TypeValidationError({ value: shown(value), cause: messageOf(cause) });
  }
}

/** The maximum length of a message: an error that quotes a large input would fill the model's context. */
const MAX_MESSAGE_CHARACTERS = 4000;

/** Returns the message that tells a model why a tool's schema refuses its arguments, in the SDK's wording. */
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
    // The value is a Proxy that is revoked, or whose traps throw.
    return false;
  }
}

/** Returns whether the schema is a function, which may return a different schema each time. */
function isLazy(schema: object): boolean {
  return typeof schema === 'function' && !('~standard' in schema);
}

/** Returns whether the schema comes from zod before 3.24, which lacks Standard Schema. */
function isOldZod(value: object): boolean {
  return '_def' in value && 'safeParseAsync' in value && !('~standard' in value);
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

/** The maximum number of names of each kind in a message about wrong names. */
const MAX_NAMES = 10;

/**
 * Describes which input names are wrong. Returns null if none are, or if the schema does not list its names (it does
 * not describe an object, is a union, or is a pending promise).
 */
export function wrongInputNames(schema: Schema, input: unknown): string | null {
  const shape = knownJsonSchema(schema);
  if (shape?.['type'] !== 'object' || typeof input !== 'object' || input === null) return null;
  const { properties, required, additionalProperties } = shape;
  const declared = Object.keys(properties ?? {});
  const given = Object.entries(input).flatMap(([name, value]) => (value === undefined ? [] : name));
  const missing = (Array.isArray(required) ? required : [])
    .map(String)
    .filter((name) => !given.includes(name));
  const unknown =
    additionalProperties === false ? given.filter((name) => !declared.includes(name)) : [];
  if (missing.length === 0 && unknown.length === 0) return null;
  return [
    ...missing.slice(0, MAX_NAMES).map((name) => `"${name}" is missing`),
    ...unknown.slice(0, MAX_NAMES).map((name) => `"${name}" is unknown${near(name, declared)}`),
    `expected ${declared.join(', ') || 'none'}`,
  ].join('; ');
}

/** Returns a schema that refuses wrong names before it validates the values. */
export function withInputNames(schema: Schema): Schema {
  return jsonSchema(schema.jsonSchema, {
    async validate(value) {
      const wrong = wrongInputNames(schema, value);
      if (wrong !== null)
        return { success: false, error: new ConfigurationError('INVALID_INPUT', wrong) };
      return (await schema.validate?.(value)) ?? { success: true, value };
    },
  });
}

function near(name: string, declared: readonly string[]): string {
  const found = declared.filter((other) => isNear(plain(name), plain(other)));
  return found.length === 0 ? '' : `, did you mean ${found.map((one) => `"${one}"`).join(' or ')}?`;
}

/** Returns whether one name starts with the other, or whether at most a third of their letters differ. */
function isNear(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= 3 && long.startsWith(short)) return true;
  return editDistance(a, b) <= Math.max(1, Math.floor(long.length / 3));
}

/** Returns a name in lower case and without separators: `departure_date` and `departureDate` are then equal. */
function plain(name: string): string {
  return name
    .slice(0, 100)
    .toLowerCase()
    .replace(/[\s_-]/g, '');
}
