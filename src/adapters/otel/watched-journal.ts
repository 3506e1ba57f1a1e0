// A journal with a watcher in front, as a trace and metrics both are: it folds each scope that its process continues, beside
// the session, and never disturbs it.
//
// Owns:     which scopes this process continues; the folding of what was kept before.
// Does not: append (each watcher does, in its own order), or know what is folded.
//
// Invariants
//   WATCHED-JOURNAL-1. A reader that does not continue a scope, such as an inspector, leaves what is known of it alone.
//   WATCHED-JOURNAL-2. A fault of the watcher never reaches the session.

import { diag } from '@opentelemetry/api';
import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';

/** The part of a watched scope that traces and metrics share. */
interface Watched {
  /** This process has added an entry. */
  readonly isLive: boolean;
  /** This process leaves the scope. */
  leave?(): void;
}

interface Watcher<Scope extends Watched> {
  readonly scopes: Map<string, Scope>;
  /** False while no provider listens: nothing is folded then. */
  isOn(): boolean;
  /** Folds the entries of a process before this one, into a scope of which nothing is known. */
  restore(scope: string, kept: readonly JournalEntry[]): void;
}

/** Returns all but `append`. */
export function watchedJournal<Scope extends Watched>(
  journal: Journal,
  { scopes, isOn, restore }: Watcher<Scope>,
) {
  const claimed = new Set<string>();
  const leave = (scope: string): void => {
    const left = scopes.get(scope);
    scopes.delete(scope);
    claimed.delete(scope);
    quietly(() => left?.leave?.());
  };
  /** WATCHED-JOURNAL-1. Without claims it is whoever appends first. */
  const isToContinue = (scope: string): boolean =>
    journal.claim ? claimed.has(scope) : scopes.get(scope)?.isLive !== true;
  const rest: Omit<Journal, 'append'> = {
    read(query) {
      const entries = journal.read(query);
      const scope = query?.scope;
      if (scope === undefined || query?.unit !== undefined || !isToContinue(scope)) return entries;
      if (quietly(isOn) !== true) return entries;
      const fold = (kept: readonly JournalEntry[]): readonly JournalEntry[] => {
        if (kept.length === 0 || scopes.get(scope)?.isLive === true) return kept;
        quietly(() => {
          scopes.delete(scope);
          restore(scope, kept);
        });
        return kept;
      };
      return 'then' in entries ? entries.then(fold) : fold(entries);
    },
    readAfter: journal.readAfter?.bind(journal),
    claim:
      journal.claim &&
      (async (scope) => {
        await journal.claim?.(scope);
        claimed.add(scope);
      }),
    trim: journal.trim?.bind(journal),
    release(scope) {
      leave(scope);
      return journal.release?.(scope);
    },
    scopes: journal.scopes?.bind(journal),
    forget:
      journal.forget &&
      ((scope) => {
        leave(scope);
        return journal.forget?.(scope);
      }),
    wakeTimes: journal.wakeTimes,
    clockOffsetMs: journal.clockOffsetMs?.bind(journal),
    tracesModelCalls: journal.tracesModelCalls?.bind(journal),
    traceContextOf: journal.traceContextOf?.bind(journal),
    inSpanOf: journal.inSpanOf?.bind(journal),
  };
  return { rest, leave };
}

/** WATCHED-JOURNAL-2. */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    diag.error('offstage/otel', error);
    return undefined;
  }
}
