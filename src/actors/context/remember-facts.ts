// Facts into memory: those that are new, or take the place of one that is known.

import { z } from 'zod';
import { OffstageError } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import type { MemoryFact, MemoryStore } from '../ports/memory-store.ts';
import { raceAbort } from '../runtime/race-abort.ts';
import { distilledFactSchema } from './distiller.ts';

interface Where {
  readonly store: MemoryStore;
  readonly scope: string;
  /** The session that they come from. */
  readonly source: string;
  readonly environment: Environment;
  /** Facts of the store that may be replaced. */
  readonly known: readonly MemoryFact[];
  readonly signal: AbortSignal;
}

/**
 * Remembers what is not remembered yet, in order. Returns what was new.
 * @throws {OffstageError} `INVALID_FACT` for what is no fact; what the store throws; `signal.reason`.
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
    // Its own words find it, if it is there.
    const alike = await raceAbort(store.facts({ scope, query: text, limit: 5 }), signal);
    if (alike.some((fact) => sameWords(fact.text, text))) continue;
    // Only what the distiller was told of can be replaced, and once: an invented id is a new fact.
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

/** The same but for case, white space and punctuation. */
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
