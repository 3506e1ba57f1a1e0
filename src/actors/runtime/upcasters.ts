// Converts entries and snapshots of older versions to the version that this code reads.
//
// A machine's definition has a version, which each entry contains. After changing how the machine reacts to an event,
// increase the version, add an upcaster here that converts an event of the previous version, and add a journal of the
// previous version to test/corpus.
//
// A snapshot contains the versions of its machines, and a `form`. After a change that makes an older snapshot unreadable, or
// that increases the version of one of its machines, increase the form, add an upcaster of the previous form to the
// `SnapshotForms`, and add a snapshot from just before the change to test/corpus. A new optional property needs none of this.
//
// Invariants
//   UPCASTERS-1. An entry is converted one version at a time. Only its `actor` and `event` change, not its unit, its
//       time or its place in the journal.
//   SNAPSHOT-FORMS-1. A snapshot is converted one form at a time. It is readable if all its versions are then current.
//   SNAPSHOT-FORMS-2. An unreadable snapshot is not read in part. No entry before it is deleted, because a later
//       version may be able to read the snapshot, and a trimmed journal may have nothing else.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from './unit-body.ts';

/** Converts an entry from one version to the next. */
type Upcaster = (entry: JournalEntry) => Pick<JournalEntry, 'actor' | 'event'>;

/** Upcasters for each kind of unit (`session`, `subagent`, `service`), by the version that they convert. */
export type Upcasters = Readonly<Record<string, Readonly<Record<number, Upcaster>>>>;

/** Empty if this version does not have to recover journals from older versions. */
export const upcasters: Upcasters = {};

/** The definition that the entry is converted to. */
interface CurrentDefinition {
  readonly kind: string;
  readonly version: number;
}

/**
 * Returns the entry as this version would have written it; the same object if this version wrote it.
 * @throws {JournalError} `JOURNAL_VERSION` if the entry's version is newer, or has no upcaster.
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

/** The versions in a snapshot; `form` is the version of the snapshot itself. If `form` is missing, it is 1. */
type SnapshotVersions = Readonly<Record<string, number>>;

/** A snapshot as the journal stores it. */
export interface WrittenSnapshot extends UnitEvent {
  readonly versions: SnapshotVersions;
}

/** Converts a snapshot to the next form and sets the machines' versions to those of that form. */
type SnapshotUpcaster = (snapshot: WrittenSnapshot) => WrittenSnapshot;

export interface SnapshotForms {
  /** The type of the snapshot's event. */
  readonly type: string;
  /** The form and the versions that this package writes. */
  readonly versions: SnapshotVersions & { readonly form: number };
  /** Upcasters by the form that they convert. */
  readonly upcasters: Readonly<Record<number, SnapshotUpcaster>>;
}

/**
 * Returns the snapshot as this version would have written it (SNAPSHOT-FORMS-1); null if the entry is not a snapshot or
 * cannot be converted.
 */
export function readSnapshot(
  { event }: JournalEntry,
  forms: SnapshotForms,
): WrittenSnapshot | null {
  return event.type === forms.type ? broughtUp(event as WrittenSnapshot, forms) : null;
}

/** Returns whether the entry is a snapshot that cannot be converted. */
export function isUnreadable(entry: JournalEntry, forms: SnapshotForms): boolean {
  return entry.event.type === forms.type && readSnapshot(entry, forms) === null;
}

/** Returns the error for an unreadable snapshot when the entries before it are gone. */
export function unreadable(
  { scope, unit, seq, event }: JournalEntry,
  forms: SnapshotForms,
): JournalError {
  const versions = versionsOf(event as WrittenSnapshot);
  const isNewer = Object.entries(versions).some(
    ([part, version]) => version > (forms.versions[part] ?? 0),
  );
  return new JournalError(
    'JOURNAL_VERSION',
    `Entry ${seq} of ${unit} in ${scope} is a snapshot of ${told(versions)}; this version of Offstage reads ${told(forms.versions)}, and the entries before it were trimmed away. ${
      isNewer
        ? 'A newer version of Offstage wrote it: go on with it there, or update this process.'
        : 'An older version of Offstage wrote it, and this one has no upcaster for it: continue the session there until it is closed.'
    }`,
    { retryable: false },
  );
}

function broughtUp(snapshot: WrittenSnapshot, forms: SnapshotForms): WrittenSnapshot | null {
  const versions = versionsOf(snapshot);
  const { form } = versions;
  if (isSame(versions, forms.versions)) return snapshot;
  const step = form < forms.versions.form ? forms.upcasters[form] : undefined;
  if (!step) return null;
  const next = step(snapshot);
  return broughtUp({ ...next, versions: { ...next.versions, form: form + 1 } }, forms);
}

function versionsOf({ versions }: WrittenSnapshot): SnapshotVersions & { readonly form: number } {
  return { form: 1, ...versions };
}

function isSame(one: SnapshotVersions, other: SnapshotVersions): boolean {
  const parts = Object.keys(one);
  return (
    parts.length === Object.keys(other).length && parts.every((part) => one[part] === other[part])
  );
}

/** Returns a text such as `form 1 (session 2, subagent 3)`. */
function told({ form, ...machines }: SnapshotVersions): string {
  const parts = Object.entries(machines).map(([part, version]) => `${part} ${version}`);
  return `form ${form} (${parts.join(', ')})`;
}
