// Memory: facts about the user that outlive a conversation ("prefers window seats"). Contains the port, the form of a
// fact, the ranking for memories without an index, and a memory that is lost when the process ends.

import { check, type ChecksOf } from '../../values/checks.ts';
import { shown } from '../../values/plain-checks.ts';
import { z } from 'zod';
import { CapacityError, ConfigurationError } from '../../values/errors.ts';
import { countWords, relevance } from '../../values/bm25.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';

/** A fact in a memory. */
export interface MemoryFact {
  /** The fact's id; unique in its scope. */
  readonly id: string;
  /** The owner of the facts, such as a user or a tenant. Facts of one scope never appear in another. */
  readonly scope: string;
  /** One sentence. */
  readonly text: string;
  /** The category of the fact. @defaultValue none */
  readonly category?: string;
  /** When the fact was learned, in milliseconds since 1970. */
  readonly at: number;
  /** The origin of the fact, such as the id of a session. */
  readonly source?: string;
}

/** A query for facts in one scope of a memory. */
export interface FactQuery {
  /** The scope of the facts. */
  readonly scope: string;
  /** The query in plain words. If absent, the newest facts are returned. */
  readonly query?: string;
  /** A whole number ≥ 0. */
  readonly limit: number;
}

/** Stores facts. */
export interface MemoryStore {
  /**
   * Returns at most `limit` facts of the scope, most relevant first; of equally relevant facts, the newest first. If
   * the scope has at most `limit` facts, all are returned. Takes into account every `remember` and `forget` that has
   * resolved.
   */
  facts(query: FactQuery): Promise<readonly MemoryFact[]>;
  /**
   * Stores a fact; replaces a fact with the same id in the same scope. Once it has resolved, the fact is stored as
   * durably as the memory allows; if it rejects, nothing has changed.
   * @throws {CapacityError} `MEMORY_FULL` or `FACT_TOO_LONG`: no fact is deleted to make room.
   */
  remember(fact: MemoryFact): Promise<void>;
  /** Deletes a fact. Returns whether the fact existed. */
  forget(fact: { readonly scope: string; readonly id: string }): Promise<boolean>;
}

export const memoryFactSchema: z.ZodType<MemoryFact> = z.strictObject({
  id: z.string().min(1),
  scope: z.string().min(1),
  text: z.string().min(1),
  category: z.string().optional(),
  at: z.number(),
  source: z.string().optional(),
});

export interface MemoryLimits {
  /** The maximum number of facts in one scope. */
  readonly maxFacts: number;
  /** The maximum length of a fact's text, in characters. */
  readonly maxTextChars: number;
}

const defaultMemoryLimits = {
  maxFacts: 2_000,
  maxTextChars: 2_000,
} as const satisfies MemoryLimits;

const wholeNumber = z.int().min(1).optional();
const limitsSchema = z.strictObject({
  maxFacts: wholeNumber,
  maxTextChars: wholeNumber,
} satisfies ChecksOf<MemoryLimits>);

/** @throws {ConfigurationError} if a limit is not a positive whole number. */
export function checkedMemoryLimits(partial: Partial<MemoryLimits>): MemoryLimits {
  const given = withoutUndefined(check('limits', limitsSchema, partial));
  return { ...defaultMemoryLimits, ...given };
}

/** Stores facts by scope and id, for memories that hold them in the process. Immutable. */
export type FactTable = ReadonlyMap<string, ReadonlyMap<string, MemoryFact>>;

/**
 * Returns the table with this fact added or replaced.
 * @throws {ConfigurationError} if the fact is invalid, {CapacityError} if it does not fit.
 */
export function withFact(table: FactTable, fact: MemoryFact, limits: MemoryLimits): FactTable {
  const parsed = memoryFactSchema.safeParse(fact);
  if (!parsed.success) {
    throw new ConfigurationError(
      'INVALID_FACT',
      `Expected a MemoryFact: ${z.prettifyError(parsed.error)}`,
      { cause: parsed.error },
    );
  }
  const { scope, id, text } = parsed.data;
  if (text.length > limits.maxTextChars) {
    throw new CapacityError(
      'FACT_TOO_LONG',
      `Expected the text of fact \`${id}\` to have at most ${limits.maxTextChars} characters (maxTextChars), got ${text.length}`,
    );
  }
  const facts = table.get(scope);
  if (facts && !facts.has(id) && facts.size >= limits.maxFacts) {
    throw new CapacityError(
      'MEMORY_FULL',
      `Scope \`${scope}\` holds ${facts.size} facts, the limit (maxFacts): forget one to remember \`${id}\``,
    );
  }
  return new Map(table).set(scope, new Map(facts).set(id, parsed.data));
}

/** Returns the table without this fact; returns the same table if it does not contain the fact. */
export function withoutFact(table: FactTable, scope: string, id: string): FactTable {
  const facts = table.get(scope);
  if (!facts?.has(id)) return table;
  const rest = new Map(facts);
  rest.delete(id);
  const next = new Map(table);
  if (rest.size === 0) next.delete(scope);
  else next.set(scope, rest);
  return next;
}

/**
 * Returns the most relevant facts, by Okapi BM25 over words (k1 = 1.2, b = 0.75). The words of the category are
 * included.
 * @throws {ConfigurationError} if `limit` is not a whole number ≥ 0.
 */
export function rankFacts(table: FactTable, { scope, query = '', limit }: FactQuery): MemoryFact[] {
  checkWhole('limit', limit, 0);
  const facts = [...(table.get(scope)?.values() ?? [])];
  const scores = relevance(
    facts.map(({ text, category = '' }) => countWords(`${text} ${category}`)),
    query,
  );
  const scored = facts.map((fact, index) => ({ fact, score: scores[index] as number }));
  scored.sort(
    (a, b) => b.score - a.score || b.fact.at - a.fact.at || (a.fact.id < b.fact.id ? -1 : 1),
  );
  return scored.slice(0, limit).map(({ fact }) => fact);
}

function checkWhole(name: string, value: number, atLeast: number): void {
  if (Number.isInteger(value) && value >= atLeast) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `Expected \`${name}\` to be a whole number ≥ ${atLeast}, got ${shown(value)}`,
  );
}

/**
 * Creates a memory that is lost when the process ends. It is meant for tests and demos, and is the simplest example of
 * the port.
 * @throws {ConfigurationError} if a limit is not a positive whole number.
 */
export function memoryStore(limits: Partial<MemoryLimits> = {}): MemoryStore {
  const allLimits = checkedMemoryLimits(limits);
  let table: FactTable = new Map();
  return {
    async facts(query) {
      return rankFacts(table, query);
    },
    async remember(fact) {
      table = withFact(table, fact, allLimits);
    },
    async forget({ scope, id }) {
      const before = table;
      table = withoutFact(before, scope, id);
      return table !== before;
    },
  };
}
