// The snapshot of a session: its content, and the forms that this version can read.
//
// Does not: decide when one is made (runtime/scope-snapshots.ts), restore the parts (recovery.ts), or know
//           the content of a part (each defines its own).

import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import type { SubagentTreeSnapshot } from '../../subagents/subagent-registry.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import type { ScopeJournal } from '../../runtime/scope-journal.ts';
import { ScopeSnapshots, type SnapshotPolicy } from '../../runtime/scope-snapshots.ts';
import { readSnapshot, type SnapshotForms } from '../../runtime/snapshot-forms.ts';
import { SERVICE_VERSION, type ServiceSnapshot } from '../../services/service.ts';
import type { SessionServices } from '../../services/session-services.ts';
import { SUBAGENT_VERSION } from '../../subagent/spawned-event.ts';
import type { SessionRecords, SessionRecordsSnapshot } from '../state/session-records.ts';
import {
  inputsOf,
  openedWith,
  type SessionInputs,
  SESSION_VERSION,
} from '../unit/session-entries.ts';
import { SNAPSHOTS, type SessionUnit, type SessionUnitSnapshot } from '../unit/session-unit.ts';

export const SNAPSHOT = 'session.snapshot';

/** The state from which a session continues. */
export interface SessionSnapshot {
  readonly inputs: SessionInputs;
  readonly unit: SessionUnitSnapshot;
  readonly books: SessionRecordsSnapshot;
  /** The services, by their names. */
  readonly services: Readonly<Record<string, ServiceSnapshot>>;
  readonly delegation: SubagentTreeSnapshot;
  /** True if the session was put away idle: its clients are still attached. */
  readonly isAsleep: boolean;
}

interface SnapshotEvent extends Omit<SessionSnapshot, 'inputs'> {
  readonly type: typeof SNAPSHOT;
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  readonly inputs: unknown;
}

/** No form of a session's snapshot has been dropped yet. */
export const SNAPSHOT_FORMS = {
  type: SNAPSHOT,
  versions: {
    form: 1,
    session: SESSION_VERSION,
    subagent: SUBAGENT_VERSION,
    service: SERVICE_VERSION,
  },
  upcasters: {},
} as const satisfies SnapshotForms;

/** Returns the snapshot of this entry; null: it is none, or one that this version cannot read. */
export function snapshotIn(
  entry: JournalEntry,
  forms: SnapshotForms = SNAPSHOT_FORMS,
): SessionSnapshot | null {
  const snapshot = readSnapshot(entry, forms);
  if (!snapshot) return null;
  const { inputs, versions: _, ...rest } = snapshot as SnapshotEvent;
  return { ...rest, inputs: inputsOf(inputs) };
}

interface Session {
  readonly id: string;
  readonly host: Host;
  readonly unit: SessionUnit;
  readonly records: SessionRecords;
  readonly services: SessionServices;
  readonly delegation: SubagentTree;
}

export class Snapshots extends ScopeSnapshots {
  constructor(session: Session, journal: ScopeJournal, policy: SnapshotPolicy) {
    const { id, host, unit, records, services, delegation } = session;
    const made = (isAsleep: boolean) => {
      const subagents = services.isBusy ? null : delegation.toSnapshot();
      if (!subagents) return null;
      const rest = unit.toSnapshot();
      const event: UnitEvent & SnapshotEvent = {
        type: SNAPSHOT,
        versions: SNAPSHOT_FORMS.versions,
        inputs: openedWith(unit.inputs).inputs,
        unit: rest,
        books: records.toSnapshot(),
        services: services.toSnapshot(),
        delegation: subagents,
        isAsleep,
      };
      const lives = subagents.subagents.length + rest.calls.length + rest.questions.length;
      return { event, lives };
    };
    super({ id, host, unit: unit.unit, actor: SNAPSHOTS, made }, journal, policy);
  }
}
