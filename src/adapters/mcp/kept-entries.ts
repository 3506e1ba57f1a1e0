// A journal wrapper that reports each entry once it is written, so that a server can wait for the write before it
// responds.

import { passedOn, type Journal, type JournalEntry } from '../../actors/ports/journal.ts';

/** Emits each entry that is written from now on. */
interface Begun {
  /** Resolves once a matching entry has been written. */
  kept(isIt: (entry: JournalEntry) => boolean): Promise<void>;
  end(): void;
}

export interface KeptEntries {
  readonly journal: Journal;
  begin(): Begun;
}

export function keptEntries(journal: Journal): KeptEntries {
  const listeners = new Set<(entry: JournalEntry) => void>();
  const keep = (entry: JournalEntry): void => {
    for (const listener of listeners) listener(entry);
  };
  return {
    journal: {
      ...passedOn(journal),
      append(entry) {
        const done = journal.append(entry);
        if (done instanceof Promise) return done.then(() => keep(entry));
        keep(entry);
        return done;
      },
    },
    begin() {
      const seen: JournalEntry[] = [];
      const waiting = new Set<(entry: JournalEntry) => void>();
      const listener = (entry: JournalEntry): void => {
        seen.push(entry);
        for (const wait of waiting) wait(entry);
      };
      listeners.add(listener);
      return {
        kept: (isIt) =>
          new Promise((resolve) => {
            if (seen.some(isIt)) return resolve();
            waiting.add((entry) => {
              if (isIt(entry)) resolve();
            });
          }),
        end: () => void listeners.delete(listener),
      };
    },
  };
}
