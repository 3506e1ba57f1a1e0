// Checks the names of a call's inputs against a schema: finds missing and unknown names, and suggests similar
// ones. Schemas silently drop unknown properties, and a subagent that works without an input costs more than
// a second call.
//
// Does not: check values: the schema does.

import { jsonSchema, type Schema } from 'ai';
import { editDistance } from '../../language/similarity.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { knownJsonSchema } from './schema.ts';

/** The limit of names in a message, of each kind. */
const MAX_NAMES = 10;

/**
 * Describes the problem of the names in a sentence; null if they are valid, or if the schema does not list
 * its names (no object, a union, one that is still a promise).
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

/** Returns the same schema, which refuses wrong names before it checks values. */
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

/** Returns whether two names differ in one letter of three, or one begins with the other. */
function isNear(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= 3 && long.startsWith(short)) return true;
  return editDistance(a, b) <= Math.max(1, Math.floor(long.length / 3));
}

/** Returns the plain form of a name: `departure_date`, `departureDate` and `Departure-Date` are the same. */
function plain(name: string): string {
  return name
    .slice(0, 100)
    .toLowerCase()
    .replace(/[\s_-]/g, '');
}
