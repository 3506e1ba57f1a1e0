// The entries that a program's service writes about itself, beside its subagents: the results that the
// program has had, its snapshots, and its closing. After a crash, exactly the results that the program has
// not had are reported.
//
// Owns:     its unit in the journal, which has the id of the service.
// Does not: know the subagents, or find its place in the journal (service-history.ts).
//
// Invariants
//   SERVICE-LEDGER-1. A result counts as had when that is in the journal: after a crash before that it is
//       reported again.
//   SERVICE-LEDGER-2. Applying the entries of the journal can be tried again from its beginning, until it is
//       opened.

import { z } from 'zod';
import { CommitUnit, type Posted, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import type { Stamped } from '../../machines/index.ts';
import { text, type EventShapes } from '../runtime/event-shapes.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentTreeSnapshot } from './tree-snapshot.ts';
import {
  CLOSED,
  LEDGER_VERSION,
  RECOVERED,
  SNAPSHOT,
  type ServiceHistory,
} from './service-history.ts';

/** The actor of all its entries. */
export const LEDGER = 'service';

const SHAPES: EventShapes = { 'result.had': z.looseObject({ subagentId: text }) };

export class ServiceLedger implements UnitBody {
  readonly shapes = SHAPES;
  readonly unit: CommitUnit;
  readonly #host: Host;
  readonly #snapshotKept: (seq: number) => void;
  /** The results that the journal lists as had, with their times; null once they were used. */
  #had: Map<string, number> | null = new Map();
  #whenClosed: (() => void) | null = null;

  /** `snapshotKept`: called when a snapshot is in the journal, as the entry `seq` of its unit. */
  constructor(id: string, host: Host, snapshotKept: (seq: number) => void) {
    this.#host = host;
    this.#snapshotKept = snapshotKept;
    const identity = { id, scope: id, kind: 'program', definitionVersion: LEDGER_VERSION };
    this.unit = new CommitUnit(identity, host, this);
    // The entries of the journal come first.
    this.unit.hold();
  }

  /** @throws {OffstageError} for entries that it does not know (SERVICE-LEDGER-2). */
  refold({ units, before, unfit }: ServiceHistory): void {
    const [first] = unfit;
    if (first && this.#host.onUnfoldable === 'lose') throw first;
    const begin = (): void => void (this.#had = new Map());
    begin();
    this.unit.setSequence(before);
    this.unit.refold(units.get(this.unit.id) ?? [], begin);
    for (const failure of unfit) this.unit.setAside(failure);
  }

  /** Completes a snapshot with the results that the program has had since. */
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

  /** Opens the ledger: from now on the program is served. `isNew`: nothing continues. */
  open(isNew: boolean): void {
    this.#had = null;
    if (isNew) this.unit.open();
    else this.unit.open({ actor: LEDGER, event: { type: RECOVERED } });
  }

  hasHad(subagentId: string): boolean {
    return this.#had?.has(subagentId) ?? false;
  }

  had(subagentId: string): void {
    this.unit.receive(LEDGER, { type: 'result.had', subagentId } as UnitEvent);
  }

  /** Closes the service; resolves when that is written down. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenClosed = resolve;
      this.unit.open({ actor: LEDGER, event: { type: CLOSED } });
    });
  }

  accepts(): boolean {
    return true;
  }

  apply(_actor: string, event: UnitEvent & Stamped): void {
    if ('subagentId' in event) this.#had?.set(event.subagentId as string, event.at);
    if (event.type === CLOSED || event.type === SNAPSHOT)
      this.unit.post(LEDGER, { kind: 'do', name: event.type, params: this.unit.seq });
  }

  release({ effect }: Posted): void {
    if (effect.kind === 'do' && effect.name === SNAPSHOT)
      this.#snapshotKept(effect.params as number);
    else this.#over();
  }

  crashed(error: unknown): void {
    this.journalRefused(error);
  }

  journalRefused(error: unknown): void {
    this.#host.report(error, `journal of ${this.unit.id}`);
    this.#over();
  }

  #over(): void {
    this.unit.dispose();
    this.#whenClosed?.();
  }
}
