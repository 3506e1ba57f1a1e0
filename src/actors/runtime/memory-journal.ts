// A journal that is lost when the process ends. It follows the order *accept, commit, release*. It keeps the latest
// entries for inspection.
//
// Invariants
//   MEMORY-JOURNAL-1. Memory use depends only on the kept entries, so a scope without kept entries uses none.
//   MEMORY-JOURNAL-2. A scope is read completely or not at all: from its first entry, or from the entry to which it was
//       trimmed.
//   MEMORY-JOURNAL-3. A scope that loses its beginning is trimmed to its first kept snapshot or, if a closed session
//       was reopened, to the reopening.

import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import { checkEntry } from '../ports/journal-entry.ts';
import { JournalError, journalConflict } from '../ports/journal-error.ts';
import {
  isAskedFor,
  canStandFirst,
  type Journal,
  type JournalEntry,
  type JournalPosition,
  type JournalQuery,
  type ScopeSummary,
} from '../ports/journal.ts';
import { memoryDesk, type Desk } from '../ports/desk.ts';
import { memoryWakeTimes, type WakeTimes } from '../ports/wake-times.ts';

/** The options of `memoryJournal`. */
export interface MemoryJournalOptions {
  /**
   * The number of latest entries to keep, across all scopes. A scope that has lost entries starts at its first kept
   * snapshot, or at the first reopening of a closed session. Without either, it cannot be recovered until it is
   * trimmed. With `Infinity`, all entries are kept, and memory use grows until scopes are trimmed or forgotten.
   * @defaultValue 1000
   */
  readonly keep?: number;
}

const optionsSchema = z.strictObject({
  keep: z
    .custom<number>(
      (value) => typeof value === 'number' && value >= 0,
      'expected a number of 0 or more',
    )
    .optional(),
} satisfies ChecksOf<MemoryJournalOptions>);

/**
 * An in-memory journal, as returned by `memoryJournal`. Its methods are synchronous, and its entries are lost when the
 * process ends.
 */
export interface MemoryJournal extends Journal {
  /** Keeps the entry in memory. */
  append(entry: JournalEntry): void;
  /** @throws {JournalError} `JOURNAL_CUT` if entries of the requested scope were dropped. */
  read(query?: JournalQuery): readonly JournalEntry[];
  readAfter(entry: JournalPosition): readonly JournalEntry[] | null;
  /**
   * Deletes the scope's entries before this one. If the journal no longer has the entry, it deletes nothing.
   * Afterwards, entries that were dropped before this one do not count as missing.
   */
  trim(entry: JournalPosition): void;
  scopes(): readonly ScopeSummary[];
  forget(scope: string): void;
  readonly wakeTimes: WakeTimes;
  readonly desk: Desk;
}

/** The state of a scope with kept entries. */
interface Known {
  /** `trimmed`: a unit may continue from the first kept entry, without its earlier entries. */
  beginning: 'there' | 'trimmed' | 'cut';
  /** The latest sequence number of each unit. */
  readonly units: Map<string, number>;
}

/**
 * Creates an in-memory journal. It is lost when the process ends; entries beyond `keep` are dropped.
 * @throws {ConfigurationError} if `keep` is negative or not a number.
 */
export function memoryJournal(options: MemoryJournalOptions = {}): MemoryJournal {
  const { keep = 1000 } = check('memoryJournal', optionsSchema, options);
  let entries: JournalEntry[] = [];
  let known = new Map<string, Known>();
  const wakeTimes = memoryWakeTimes();
  const desk = memoryDesk();

  /** Records an entry. Returns whether the entry is new. */
  const note = (entry: JournalEntry): boolean => {
    const { scope, unit, seq } = entry;
    let of = known.get(scope);
    if (!of) {
      const beginning = canStandFirst(entry) ? 'trimmed' : 'there';
      known.set(scope, (of = { beginning, units: new Map() }));
    }
    const latest = of.units.get(unit) ?? 0;
    if (seq <= latest) return false;
    // The unit's earlier entries were never written to this journal.
    if (latest === 0 && seq > 1 && of.beginning === 'there') of.beginning = 'cut';
    of.units.set(unit, seq);
    return true;
  };

  const cut = (): void => {
    if (entries.length <= keep) return;
    const lost = new Set(entries.slice(0, entries.length - keep).map(({ scope }) => scope));
    const before = known;
    entries = keep === 0 ? [] : entries.slice(-keep);
    known = new Map();
    for (const entry of entries) note(entry);
    for (const [scope, of] of known)
      of.beginning = lost.has(scope) ? 'cut' : (before.get(scope)?.beginning ?? 'cut');
    // MEMORY-JOURNAL-3
    const snapshots = entries.filter((entry) => lost.has(entry.scope) && canStandFirst(entry));
    for (const entry of snapshots) if (lost.delete(entry.scope)) journal.trim(entry);
  };

  const journal: MemoryJournal = {
    append(entry) {
      checkEntry(entry);
      if (!note(entry)) {
        checkSame(entry, entries);
        return;
      }
      entries.push(entry);
      if (canStandFirst(entry) && known.get(entry.scope)?.beginning === 'cut') journal.trim(entry);
      // Cuts the oldest half, so that the average cost of an append does not depend on `keep`.
      if (entries.length > 2 * keep) cut();
    },
    read(query = {}) {
      cut();
      const { scope } = query;
      if (scope !== undefined && known.get(scope)?.beginning === 'cut')
        throw new JournalError(
          'JOURNAL_CUT',
          `memoryJournal: the journal has dropped the beginning of ${scope}, since \`keep\` is ${keep}`,
          { retryable: false },
        );
      return entries.filter((entry) => isAskedFor(query, entry));
    },
    readAfter(entry) {
      // Searches from the end, because a reader that follows a scope usually continues from one of its latest entries.
      const at = entries.findLastIndex((one) => isAt(one, entry));
      return at === -1 ? null : entries.slice(at + 1).filter(({ scope }) => scope === entry.scope);
    },
    trim(entry) {
      const { scope } = entry;
      const at = entries.findIndex((one) => isAt(one, entry));
      if (at === -1) return;
      entries = entries.filter((one, index) => index >= at || one.scope !== scope);
      const units = new Map(
        entries.filter((one) => one.scope === scope).map(({ unit, seq }) => [unit, seq]),
      );
      known.set(scope, { beginning: 'trimmed', units });
    },
    scopes() {
      cut();
      const summaries = new Map<string, { -readonly [K in keyof ScopeSummary]: ScopeSummary[K] }>();
      for (const { scope, at } of entries) {
        const summary = summaries.get(scope);
        if (!summary) summaries.set(scope, { scope, entries: 1, firstAt: at, lastAt: at });
        else {
          summary.entries += 1;
          summary.lastAt = at;
        }
      }
      return [...summaries.values()];
    },
    forget(scope) {
      entries = entries.filter((entry) => entry.scope !== scope);
      known.delete(scope);
      void wakeTimes.set(scope, null);
      void desk.set(scope, []);
    },
    wakeTimes,
    desk,
  };
  made.add(journal);
  return journal;
}

const made = new WeakSet<Journal>();

/** Returns whether the journal is lost when the process ends. */
export function isMemoryJournal(journal: Journal): boolean {
  return made.has(journal);
}

/**
 * Throws if the stored entry at this position is different. Entries that have already been dropped are not compared.
 */
function checkSame(entry: JournalEntry, entries: readonly JournalEntry[]): void {
  const first = entries.find((one) => isAt(one, entry));
  if (first && JSON.stringify(first) !== JSON.stringify(entry))
    throw journalConflict('memoryJournal', entry);
}

function isAt(one: JournalEntry, { scope, unit, seq }: JournalPosition): boolean {
  return one.seq === seq && one.unit === unit && one.scope === scope;
}
