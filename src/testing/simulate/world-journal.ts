// The journal of a simulated world. It outlives the processes that write to it. It can be slow and can fail. A process
// can die while it writes, either before an entry is stored or just after.
//
// Owns:     the stored entries, in the order in which they were appended.
// Does not: kill a process itself (`crash` does) or start another one.
//
// Invariants
//   WORLD-JOURNAL-1. The stored entries of a scope are a prefix of the entries that were appended to it, even after a
//       crash. When a process dies, some of its pending appends may still be stored, but never one without all those
//       before it.
//   WORLD-JOURNAL-2. The dead process's appends never settle, and no more of them are stored.
//   WORLD-JOURNAL-3. Entries are stored as text, so a reader gets a copy and never the object that was appended.

import { checkEntry } from '../../actors/ports/journal-entry.ts';
import {
  isAskedFor,
  type Journal,
  type JournalEntry,
  type JournalPosition,
  type JournalQuery,
  type ScopeSummary,
} from '../../actors/ports/journal.ts';
import { journalConflict } from '../../actors/ports/journal-error.ts';
import { ProviderError } from '../../values/errors.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import type { Faults } from './faults.ts';
import type { SimulatedProcess } from '../doubles/simulated-process.ts';

const SLOW_MS = 300;

interface Kept {
  readonly scope: string;
  readonly unit: string;
  /** The entry (WORLD-JOURNAL-3). */
  readonly json: string;
}

interface Pending {
  readonly entry: JournalEntry;
  readonly dueAt: number;
  readonly settle: () => void;
}

export interface WorldJournalPorts {
  readonly environment: SimulatedEnvironment;
  readonly faults: Faults;
  /** Kills the process immediately. */
  crash(): void;
  kept(entry: JournalEntry): void;
}

export class WorldJournal {
  /** The number of appends, including failed ones. */
  appends = 0;
  readonly #ports: WorldJournalPorts;
  /** The stored entries by number, in the order in which they were stored. */
  readonly #kept = new Map<string, Kept>();
  #pending: Pending[] = [];

  constructor(ports: WorldJournalPorts) {
    this.#ports = ports;
  }

  /** Returns the journal that one process uses. */
  of(process: SimulatedProcess): Journal {
    return {
      append: (entry) => this.#append(process, entry),
      read: (query) => this.read(query),
      scopes: () => this.#scopes(),
      trim: (entry) => {
        if (process.isAlive) this.#trim(entry);
      },
      forget: (scope) => {
        for (const [key, kept] of this.#kept) if (kept.scope === scope) this.#kept.delete(key);
      },
    };
  }

  read(query: JournalQuery = {}): JournalEntry[] {
    return [...this.#kept.values()]
      .filter((kept) => isAskedFor(query, kept))
      .map(({ json }) => JSON.parse(json) as JournalEntry);
  }

  /** Called when the process has died: stores the first `share` of its pending appends (WORLD-JOURNAL-1). */
  settleCrash(share: number): void {
    const { length } = this.#pending;
    for (const { entry } of this.#pending.slice(0, Math.round(share * length))) this.#keep(entry);
    this.#pending = [];
  }

  #append(process: SimulatedProcess, entry: JournalEntry): void | Promise<void> {
    const { faults } = this.#ports;
    if (!process.isAlive) return never();
    checkEntry(entry);
    const known = this.#kept.get(keyOf(entry));
    if (known !== undefined && known.json !== JSON.stringify(entry))
      return Promise.reject(journalConflict('The journal of the world', entry));
    this.appends += 1;
    if (faults.strikes('crash.beforeAppend')) {
      this.#ports.crash();
      return never();
    }
    if (faults.strikes('crash.afterAppend')) {
      for (const { entry: earlier } of this.#pending) this.#keep(earlier);
      this.#pending = [];
      this.#keep(entry);
      this.#ports.crash();
      return never();
    }
    if (faults.strikes('journal.fails'))
      return Promise.reject(
        new ProviderError('DISK_FULL', 'there is no room for the entry', { retryable: true }),
      );
    const slow = faults.strikes('journal.slow');
    const { clock, scheduler } = this.#ports.environment;
    // An append that follows a slow one also waits (WORLD-JOURNAL-1).
    const earliest = this.#pending.at(-1)?.dueAt ?? clock.now();
    const dueAt = Math.max(earliest, clock.now() + (slow ? slow.within(1, SLOW_MS) : 0));
    if (this.#pending.length === 0 && dueAt <= clock.now()) {
      this.#keep(entry);
      return undefined;
    }
    return new Promise((resolve) => {
      const settle = (): void => {
        if (process.isAlive) resolve();
      };
      this.#pending.push({ entry, dueAt, settle });
      scheduler.schedule(() => this.#settleDue(), dueAt - clock.now());
    });
  }

  #settleDue(): void {
    const now = this.#ports.environment.clock.now();
    while (this.#pending[0] && this.#pending[0].dueAt <= now) {
      const { entry, settle } = this.#pending.shift() as Pending;
      this.#keep(entry);
      settle();
    }
  }

  #keep(entry: JournalEntry): void {
    const { scope, unit } = entry;
    const key = keyOf(entry);
    if (this.#kept.has(key)) return;
    this.#kept.set(key, { scope, unit, json: JSON.stringify(entry) });
    this.#ports.kept(entry);
  }

  #trim(entry: JournalPosition): void {
    const trimmedTo = keyOf(entry);
    if (!this.#kept.has(trimmedTo)) return;
    for (const [key, { scope }] of this.#kept) {
      if (key === trimmedTo) return;
      if (scope === entry.scope) this.#kept.delete(key);
    }
  }

  #scopes(): readonly ScopeSummary[] {
    const known = new Map<string, ScopeSummary>();
    for (const { scope, at } of this.read()) {
      const { entries = 0, firstAt = at } = known.get(scope) ?? {};
      known.set(scope, { scope, entries: entries + 1, firstAt, lastAt: at });
    }
    return [...known.values()];
  }
}

function keyOf({ scope, unit, seq }: JournalPosition): string {
  return JSON.stringify([scope, unit, seq]);
}

function never(): Promise<void> {
  return new Promise(() => {});
}
