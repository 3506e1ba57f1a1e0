// The journal of a process that needs none after it ends: it keeps the order
// *accept, commit, release* and the last entries, for a look at what happened.
//
// Invariants
//   MEMORY-JOURNAL-1. What it knows is bounded by what it keeps: of a scope of which nothing is kept it knows nothing.
//   MEMORY-JOURNAL-2. A scope is read whole, or not at all: from its first entry, or from the one that it was trimmed to.

import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import { checkEntry } from '../ports/journal-entry.ts';
import { JournalError, journalConflict } from '../ports/journal-error.ts';
import {
  isAskedFor,
  type Journal,
  type JournalEntry,
  type JournalPosition,
  type JournalQuery,
  type ScopeSummary,
} from '../ports/journal.ts';
import { memoryWakeTimes, type WakeTimes } from '../ports/wake-times.ts';

export interface MemoryJournalOptions {
  /**
   * How many of the latest entries are kept, of all scopes together. From a scope of which something
   * was cut nothing can be recovered, until it is trimmed; `Infinity` cuts nothing, and grows until scopes are
   * trimmed or forgotten. @defaultValue 1000
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

export interface MemoryJournal extends Journal {
  append(entry: JournalEntry): void;
  /** @throws {JournalError} `JOURNAL_CUT` when a scope is asked for of which something is not kept any more. */
  read(query?: JournalQuery): readonly JournalEntry[];
  /** One that is not kept deletes nothing. What was cut before it is not missed any more. */
  trim(entry: JournalPosition): void;
  scopes(): readonly ScopeSummary[];
  forget(scope: string): void;
  readonly wakeTimes: WakeTimes;
}

/** What is known of a scope while something of it is kept. */
interface Known {
  /** `trimmed`: an entry that is there stands for it, so a unit may go on whose entries are not there. */
  beginning: 'there' | 'trimmed' | 'cut';
  /** The latest number of each unit. */
  readonly units: Map<string, number>;
}

/**
 * A journal in memory. It ends with the process; what a scope has lost to `keep` it has lost for good.
 * @throws {ConfigurationError} when `keep` is no number of 0 or more.
 */
export function memoryJournal(options: MemoryJournalOptions = {}): MemoryJournal {
  const { keep = 1000 } = check('memoryJournal', optionsSchema, options);
  let entries: JournalEntry[] = [];
  let known = new Map<string, Known>();
  const wakeTimes = memoryWakeTimes();

  /** True if it is new. */
  const note = ({ scope, unit, seq }: JournalEntry): boolean => {
    let of = known.get(scope);
    if (!of) known.set(scope, (of = { beginning: 'there', units: new Map() }));
    const latest = of.units.get(unit) ?? 0;
    if (seq <= latest) return false;
    // A unit that goes on from what is not kept.
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
  };

  const journal: MemoryJournal = {
    append(entry) {
      checkEntry(entry);
      if (!note(entry)) {
        checkSame(entry, entries);
        return;
      }
      entries.push(entry);
      // Cut in halves, so that an append costs the same on average however much is kept.
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
    },
    wakeTimes,
  };
  made.add(journal);
  return journal;
}

const made = new WeakSet<Journal>();

/** Does it end with the process? */
export function isMemoryJournal(journal: Journal): boolean {
  return made.has(journal);
}

/** An entry that is there already, or was before it was cut. */
function checkSame(entry: JournalEntry, entries: readonly JournalEntry[]): void {
  const first = entries.find((one) => isAt(one, entry));
  if (first && JSON.stringify(first) !== JSON.stringify(entry))
    throw journalConflict('memoryJournal', entry);
}

function isAt(one: JournalEntry, { scope, unit, seq }: JournalPosition): boolean {
  return one.seq === seq && one.unit === unit && one.scope === scope;
}
