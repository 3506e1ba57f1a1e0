// Converts entries of an older version to those that this version reads.
//
// A machine's definition has a version, which each entry carries. After a change of the machine's reaction to
// an event, count the version up and add an upcaster here that converts an event of the previous version; add
// a journal of the previous version to test/corpus.
//
// UPCASTERS-1. An entry is converted one version at a time, and only `actor` and `event` change: its unit,
//      its time and its place in the journal are facts.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';

/** Converts an entry of one version to the next. */
export type Upcaster = (entry: JournalEntry) => Pick<JournalEntry, 'actor' | 'event'>;

/**
 * Upcasters for each kind of unit (`session`, `subagent`, `service`), by the version that they start from.
 */
export type Upcasters = Readonly<Record<string, Readonly<Record<number, Upcaster>>>>;

/** Empty: there is no older version whose journals could be recovered. */
export const upcasters: Upcasters = {};

/** The definition that reads the entry. */
export interface CurrentDefinition {
  readonly kind: string;
  readonly version: number;
}

/**
 * Returns the entry as the present version would have written it; the same object if that version wrote it.
 * @throws {JournalError} `JOURNAL_VERSION` for a version that is newer, or too old.
 */
export function upcast(
  entry: JournalEntry,
  definition: CurrentDefinition,
  table: Upcasters = upcasters,
): JournalEntry {
  const { kind, version } = definition;
  const from = entry.definitionVersion;
  if (from === version) return entry;
  const step = from < version ? table[kind]?.[from] : undefined;
  if (!step)
    throw new JournalError(
      'JOURNAL_VERSION',
      `Entry ${entry.seq} of ${entry.unit} in ${entry.scope} is of version ${from} of \`${kind}\`: this is version ${version}, ${from > version ? 'which is older' : 'which has no upcaster for it'}`,
      { retryable: false },
    );
  const { actor, event } = step(entry);
  return upcast({ ...entry, actor, event, definitionVersion: from + 1 }, definition, table);
}
