// Remembers facts that are new, or that replace a known one.

import { z } from 'zod';
import { OffstageError } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import type { MemoryFact, MemoryStore } from '../ports/memory-store.ts';
import { raceAbort } from '../runtime/race-abort.ts';
import { distilledFactSchema } from './distiller.ts';

interface Where {
  readonly store: MemoryStore;
  readonly scope: string;
  /** The session that the facts come from. */
  readonly source: string;
  readonly environment: Environment;
  /** Facts of the store that may be replaced. */
  readonly known: readonly MemoryFact[];
  readonly signal: AbortSignal;
}

/**
 * Remembers the facts that are not known yet, in order. Returns the new ones.
 * @throws {OffstageError} `INVALID_FACT` for an invalid fact; the store's error; `signal.reason`.
 */
export async function rememberFacts(found: unknown, where: Where): Promise<readonly MemoryFact[]> {
  const parsed = z.array(distilledFactSchema).safeParse(found);
  if (!parsed.success)
    throw new OffstageError('INVALID_FACT', `Expected facts: ${z.prettifyError(parsed.error)}`, {
      cause: parsed.error,
    });
  const { store, scope, source, environment, known, signal } = where;
  const remembered: MemoryFact[] = [];
  for (const { text, category, replaces } of parsed.data) {
    // A query with its own words finds the fact if it exists.
    const alike = await raceAbort(store.facts({ scope, query: text, limit: 5 }), signal);
    if (alike.some((fact) => sameWords(fact.text, text))) continue;
    // Only a fact that was passed to the distiller can be replaced, and only once: an invented id makes a new
    // fact.
    const isKnown = known.some((fact) => fact.id === replaces);
    const isTaken = remembered.some((fact) => fact.id === replaces);
    const id = isKnown && !isTaken ? (replaces as string) : environment.ids.next('fact');
    const at = environment.clock.now();
    const fact = { id, scope, text, at, source, ...(category === undefined ? {} : { category }) };
    await raceAbort(store.remember(fact), signal);
    remembered.push(fact);
  }
  return remembered;
}

/** Returns whether two texts differ only in case, white space and punctuation. */
function sameWords(one: string, other: string): boolean {
  return wordsOf(one) === wordsOf(other);
}

function wordsOf(text: string): string {
  return (
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(' ') ?? text.trim()
  );
}
