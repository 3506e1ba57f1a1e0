// Generates a value that a JSON Schema allows: the arguments that a model might write for a tool. It supports
// the keywords of tool schemas; it may violate others.

import type { Chance } from '../doubles/chance.ts';

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly default?: unknown;
}

const WORDS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heron'] as const;
/** A schema may contain itself; a value must end. */
const MAX_DEPTH = 6;

export function valueFor(schema: unknown, chance: Chance, depth = 0): unknown {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH) return null;
  const given = schema as JsonSchema;
  if ('const' in given) return given.const;
  if (given.enum && given.enum.length > 0) return chance.pick(given.enum);
  const choices = given.anyOf ?? given.oneOf;
  if (choices && choices.length > 0) return valueFor(chance.pick(choices), chance, depth + 1);
  if (given.allOf && given.allOf.length > 0)
    return Object.assign(
      {},
      ...given.allOf.map((part) => valueFor(part, chance, depth + 1)),
    ) as unknown;
  switch ((typeof given.type === 'string' ? given.type : given.type?.[0]) ?? 'object') {
    case 'string':
      return `${chance.pick(WORDS)} ${chance.below(100)}`.padEnd(given.minLength ?? 0, 'x');
    case 'integer':
      return Math.floor(numberFor(given, chance));
    case 'number':
      return numberFor(given, chance);
    case 'boolean':
      return chance.happens(0.5);
    case 'null':
      return null;
    case 'array': {
      const least = given.minItems ?? 0;
      const length = chance.within(least, Math.min(given.maxItems ?? least + 2, least + 2));
      return Array.from({ length }, () => valueFor(given.items ?? {}, chance, depth + 1));
    }
    default:
      return given.properties ? objectFor(given, chance, depth) : {};
  }
}

function objectFor(
  { properties = {}, required = [] }: JsonSchema,
  chance: Chance,
  depth: number,
): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [name, of] of Object.entries(properties))
    if (required.includes(name) || chance.happens(0.3))
      value[name] = valueFor(of, chance, depth + 1);
  return value;
}

function numberFor({ minimum, exclusiveMinimum, maximum }: JsonSchema, chance: Chance): number {
  const least = minimum ?? (exclusiveMinimum === undefined ? 0 : exclusiveMinimum + 1);
  const most = Math.max(least, Math.min(maximum ?? least + 100, least + 100));
  return chance.within(Math.ceil(least), Math.floor(most));
}
