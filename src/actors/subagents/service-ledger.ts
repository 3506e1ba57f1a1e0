// The journal of a program's service. Its entries are about the service itself (results that the program has received,
// snapshots, closing). After a crash, they tell the service exactly which results it must still report.
//
// Owns:     the service's access to the journal, its own unit in the journal (with the service's id), and its
//           snapshots.
// Does not: manage its subagents (subagent-tree.ts), or restore them (restoration.ts).
//
// Invariants
//   SERVICE-LEDGER-1. A result counts as received once the journal says so. If the process crashes before that, the
//       result is reported again.
//   SERVICE-LEDGER-2. Until the ledger is opened, the journal can be folded again from the beginning.

import { z } from 'zod';
import type { Stamped } from '../../machines/index.ts';
import type { Runtime } from '../admission/runtime.ts';
import { journalCut } from '../ports/journal-error.ts';
import { byUnit, type JournalEntry } from '../ports/journal.ts';
import { CommitUnit, type Posted, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import { misshapen, text, type EventShapes } from '../runtime/event-shapes.ts';
import { createHost, type Host, type HostOptions } from '../runtime/host.ts';
import { ScopeJournal, ScopeSnapshots, timeAwake } from '../runtime/scope-journal.ts';
import { quarantineErrorOf, quarantinedIn, UnfoldableEntry } from '../runtime/quarantine.ts';
import {
  isUnreadable,
  readSnapshot,
  unreadable,
  type SnapshotForms,
} from '../runtime/upcasters.ts';
import { delegationShape, SUBAGENT_VERSION } from '../subagent/subagent-events.ts';
import type { SubagentTreeSnapshot } from './subagent-registry.ts';

/** The actor that all of the ledger's entries belong to. */
const LEDGER = 'service';

/** The types of the entries in the service's own unit, except `result.had`. */
export const CLOSED = 'service.closed';
const RECOVERED = 'service.recovered';
const SNAPSHOT = 'service.snapshot';

/** The version of the ledger's definition. Increase it when the ledger or the content of its events changes. */
export const LEDGER_VERSION = 1;

/** The formats of a service's snapshot. There is only one so far. */
const SNAPSHOT_FORMS = {
  type: SNAPSHOT,
  versions: { form: 1, program: LEDGER_VERSION, subagent: SUBAGENT_VERSION },
  upcasters: {},
} as const satisfies SnapshotForms;

interface SnapshotEvent extends UnitEvent {
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  /**
   * Whether the entries before the snapshot may be deleted. Even versions that cannot read the rest of the snapshot can
   * read this field.
   */
  readonly trims: boolean;
  readonly delegation: SubagentTreeSnapshot;
}

const SNAPSHOT_SHAPES = { [SNAPSHOT]: z.looseObject({ delegation: delegationShape }) };

const LEDGER_SHAPES: EventShapes = { 'result.had': z.looseObject({ subagentId: text }) };

/** The service that a ledger belongs to. */
interface LedgerOwner {
  /** Whether the service has left and a later service with its id has taken over in this process. */
  readonly isTakenOver: boolean;
  /** Returns the state of the subagents, or null while one of them is busy. */
  toSnapshot(): SubagentTreeSnapshot | null;
}

export class ServiceLedger implements UnitBody {
  readonly shapes = LEDGER_SHAPES;
  readonly journal: ScopeJournal;
  readonly host: Host;
  readonly unit: CommitUnit;
  readonly snapshots: ScopeSnapshots;
  /** When each result was received, according to the journal; null once the restoration has read it. */
  #had: Map<string, number> | null = new Map();
  #whenClosed: (() => void) | null = null;

  constructor(
    id: string,
    { environment, inspect, journal, jobs, price, snapshots, onUnfoldable }: Runtime,
    onError: HostOptions['onError'],
    service: LedgerOwner,
  ) {
    this.journal = new ScopeJournal(journal, {
      rested: () => this.snapshots.entryKept(),
      isTakenOver: () => service.isTakenOver,
    });
    this.host = createHost({
      environment,
      journal: this.journal,
      jobs,
      price,
      inspect,
      onError,
      onUnfoldable,
    });
    const identity = { id, scope: id, kind: 'program', definitionVersion: LEDGER_VERSION };
    this.unit = new CommitUnit(identity, this.host, this);
    // Paused until the unit has folded the journal's entries.
    this.unit.pause();
    const made = () => {
      const tree = service.toSnapshot();
      return tree && { event: snapshotOf(tree, snapshots.trim), lives: tree.subagents.length };
    };
    const { host, unit } = this;
    this.snapshots = new ScopeSnapshots(
      { id, host, unit, actor: LEDGER, made },
      this.journal,
      snapshots,
    );
  }

  /** @throws {OffstageError} if entries cannot be folded (SERVICE-LEDGER-2). */
  refold({ units, before, unfit }: ServiceHistory): void {
    const [first] = unfit;
    if (first && this.host.onUnfoldable === 'lose') throw first;
    this.#had = new Map();
    this.unit.setSequence(before);
    this.unit.refold(units.get(this.unit.id) ?? []);
    for (const failure of unfit) this.unit.quarantine(failure);
  }

  /** Completes a snapshot with the results that the program has received since it was taken. */
  complete(known: SubagentTreeSnapshot): SubagentTreeSnapshot {
    const subagents = known.subagents.map((record) => {
      const deliveredAt = this.#had?.get(record.id);
      if (deliveredAt === undefined) return record;
      const { rest } = record;
      return 'outcome' in rest
        ? { ...record, rest: { ...rest, deliveredAt: rest.deliveredAt ?? deliveredAt } }
        : { ...record, deliveredAt };
    });
    return { ...known, subagents };
  }

  /** Opens the ledger, so that the service accepts calls. `isNew`: whether there is no earlier service to continue. */
  open(isNew: boolean): void {
    this.#had = null;
    if (isNew) this.unit.resume();
    else this.unit.resume({ actor: LEDGER, event: { type: RECOVERED } });
  }

  hasHad(subagentId: string): boolean {
    return this.#had?.has(subagentId) ?? false;
  }

  had(subagentId: string): void {
    this.unit.receive(LEDGER, { type: 'result.had', subagentId } as UnitEvent);
  }

  /** Closes the service. Resolves when the journal records that the service is closed. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenClosed = resolve;
      this.unit.resume({ actor: LEDGER, event: { type: CLOSED } });
    });
  }

  take(_actor: string, event: UnitEvent & Stamped): UnitEvent & Stamped {
    return event;
  }

  apply(_actor: string, event: UnitEvent & Stamped): void {
    if ('subagentId' in event) this.#had?.set(event.subagentId as string, event.at);
    if (event.type === CLOSED || event.type === SNAPSHOT)
      this.unit.post(LEDGER, { kind: 'do', name: event.type, params: this.unit.seq + 1 });
  }

  release({ effect }: Posted): void {
    if (effect.kind === 'do' && effect.name === SNAPSHOT)
      this.snapshots.written(effect.params as number);
    else this.#over();
  }

  crashed(error: unknown): void {
    this.journalRefused(error);
  }

  journalRefused(error: unknown): void {
    this.host.report(error, `journal of ${this.unit.id}`);
    this.#over();
  }

  #over(): void {
    this.unit.dispose();
    this.#whenClosed?.();
  }
}

/** The entries of a service since it was last created. */
export interface ServiceHistory {
  /** Whether there is nothing to continue, because the journal is empty or the service was closed. */
  readonly isNew: boolean;
  /** The state of the subagents before the folded entries, or null if the entries contain everything. */
  readonly known: SubagentTreeSnapshot | null;
  /** Whether there is an unreadable snapshot. If so, the entries before it are folded instead. */
  readonly hasUnreadable: boolean;
  /** Snapshots that cannot be applied and have not been quarantined yet. */
  readonly unfit: readonly UnfoldableEntry[];
  /** The number of folded entries. */
  readonly folded: number;
  /** The folded entries by unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  /** The number of earlier entries in the service's own unit. */
  readonly before: number;
  /** The total time that the service has been in memory, in all processes together, in milliseconds. */
  readonly awakeMs: number;
}

/**
 * Derives the history from all entries of the service `id`.
 * @throws {JournalError} `JOURNAL_CUT` if the first entries are missing; `JOURNAL_VERSION` if this version cannot read
 *   a snapshot and earlier entries are missing, or may be.
 */
export function readServiceHistory(entries: readonly JournalEntry[], id: string): ServiceHistory {
  const isOwn = ({ unit }: JournalEntry): boolean => unit === id;
  const quarantined = quarantinedIn(entries.filter(isOwn));
  const unfit: UnfoldableEntry[] = [];
  const isFit = (entry: JournalEntry): boolean => {
    const { scope, unit, seq, event } = entry;
    if (treeSnapshotIn(entry) === null || quarantined.has(seq)) return false;
    const reason = misshapen(event, SNAPSHOT_SHAPES);
    if (reason !== null)
      unfit.push(new UnfoldableEntry({ scope, unit, seq, event: event.type, reason }, null));
    return reason === null;
  };
  const begins = entries.findLastIndex((entry) => isOwn(entry) && entry.event.type === CLOSED) + 1;
  const snapshot = entries.findLastIndex(
    (entry, index) => index >= begins && isOwn(entry) && isFit(entry),
  );
  const [first] = entries;
  const passedOver = entries.filter((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
  const lastOfThese = passedOver.at(-1);
  const hasUnreadable = lastOfThese !== undefined || unfit.length > 0 || quarantined.size > 0;
  // The creation of a service is not recorded. After an interrupted deletion, the first remaining entry may be a
  // `subagent.spawned`.
  const isCut =
    first &&
    (first.seq > 1 ||
      first.event.type === SNAPSHOT ||
      passedOver.some(({ event }) => (event as SnapshotEvent).trims));
  if (isCut && begins === 0 && snapshot === -1)
    throw lastOfThese
      ? unreadable(lastOfThese, SNAPSHOT_FORMS)
      : journalCut(first, unfit[0] ?? lastQuarantined(entries, id, quarantined));
  const from = snapshot === -1 ? begins : snapshot + 1;
  const last = entries[snapshot];
  const known = last ? treeSnapshotIn(last) : null;
  const awakeSince = timeAwake(
    entries.slice(last ? snapshot : begins),
    (entry) => isOwn(entry) && entry.event.type === RECOVERED,
  );
  return {
    isNew: begins === entries.length,
    known,
    hasUnreadable,
    unfit,
    folded: entries.length - from,
    units: byUnit(entries.slice(from)),
    before: entries.slice(0, from).findLast(isOwn)?.seq ?? 0,
    awakeMs: (known?.awakeMs ?? 0) + awakeSince,
  };
}

/** Returns the state in a snapshot, or null if the entry is not a snapshot or this version cannot read it. */
export function treeSnapshotIn(entry: JournalEntry): SubagentTreeSnapshot | null {
  const snapshot = readSnapshot(entry, SNAPSHOT_FORMS);
  return snapshot && (snapshot as SnapshotEvent).delegation;
}

/** Returns the error of the last snapshot that another process quarantined. */
function lastQuarantined(
  entries: readonly JournalEntry[],
  id: string,
  quarantined: ReadonlySet<number>,
): UnfoldableEntry | undefined {
  const last = entries.findLast(
    ({ unit, seq, event }) => unit === id && event.type === SNAPSHOT && quarantined.has(seq),
  );
  return last && quarantineErrorOf(last, entries);
}

function snapshotOf(delegation: SubagentTreeSnapshot, trims: boolean): SnapshotEvent {
  return { type: SNAPSHOT, versions: SNAPSHOT_FORMS.versions, trims, delegation };
}
