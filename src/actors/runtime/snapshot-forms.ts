// Which snapshots this version can read, and how one of an older version becomes one of these.
//
// A snapshot says the versions of the machines that are in it, and its own `form`. Whoever changes what
// is in one so that an older one cannot be read as it is, or the version of one of its machines, counts
// the form up, and says here how a snapshot of the form before is written now; one that was written
// just before the change goes to test/corpus. What is new and may be missing needs none of it.
//
// SNAPSHOT-FORMS-1. A snapshot is brought up one form at a time. It is read if all its versions are ours in the end.
// SNAPSHOT-FORMS-2. One that cannot be read is read in no part, and nothing that is before it is deleted: it may be
//      all that there is of what was trimmed away, for a version that can.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from './unit-body.ts';

/** Of what is in a snapshot; the `form` is that of the whole. One that says none is of form 1. */
export type SnapshotVersions = Readonly<Record<string, number>>;

/** A snapshot as it is in the journal. */
export interface WrittenSnapshot extends UnitEvent {
  readonly versions: SnapshotVersions;
}

/** What a snapshot of one form is in the next one, with the versions of the machines that it has then. */
export type SnapshotUpcaster = (snapshot: WrittenSnapshot) => WrittenSnapshot;

export interface SnapshotForms {
  /** The type of its event. */
  readonly type: string;
  /** What this version writes. */
  readonly versions: SnapshotVersions & { readonly form: number };
  /** By the form that it starts from. */
  readonly upcasters: Readonly<Record<number, SnapshotUpcaster>>;
}

/** The snapshot as this version would have written it (SNAPSHOT-FORMS-1); null: this is none, or it cannot be read. */
export function readSnapshot(
  { event }: JournalEntry,
  forms: SnapshotForms,
): WrittenSnapshot | null {
  return event.type === forms.type ? broughtUp(event as WrittenSnapshot, forms) : null;
}

/** Is it a snapshot that this version cannot read? */
export function isUnreadable(entry: JournalEntry, forms: SnapshotForms): boolean {
  return entry.event.type === forms.type && readSnapshot(entry, forms) === null;
}

/** It cannot be read, and what it follows from is not there any more. */
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

/** `form 1 (session 2, subagent 3)` */
function told({ form, ...machines }: SnapshotVersions): string {
  const parts = Object.entries(machines).map(([part, version]) => `${part} ${version}`);
  return `form ${form} (${parts.join(', ')})`;
}
