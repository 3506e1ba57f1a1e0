// How entries that an older version wrote become what this version reads.
//
// A machine's definition has a version, which each entry carries. Whoever changes what a
// machine makes of an event counts it up, and says here how an event of the version before is
// written now; a journal of the version before goes to test/corpus.
//
// UPCASTERS-1. An entry is brought up one version at a time, and only `actor` and `event` change: who
//      accepted it, when, and its place in the journal are facts.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';

/** What an entry of one version says in the next one. */
export type Upcaster = (entry: JournalEntry) => Pick<JournalEntry, 'actor' | 'event'>;

/** For each kind of unit (`session`, `subagent`, `service`), by the version that it starts from. */
export type Upcasters = Readonly<Record<string, Readonly<Record<number, Upcaster>>>>;

/** None yet: no journal of an older version can be recovered by now. */
export const upcasters: Upcasters = {};

/** The definition that is to read the entry. */
export interface CurrentDefinition {
  readonly kind: string;
  readonly version: number;
}

/**
 * The entry as the present version would have written it; itself if that did.
 * @throws {JournalError} `JOURNAL_VERSION` for one of a newer version, or of one that is too old.
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
