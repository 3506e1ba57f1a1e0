// What a service of a program writes down of itself, beside its subagents: whose results the
// program has had, and that it was closed. So that after a crash what nobody has had is told, and
// nothing else.
//
// Owns:     its unit in the journal, which has the id of the service.
// Does not: know the subagents.
//
// Invariants
//   SL1. A result counts as had when that is in the journal: what a crash came between is told again.

import type { JournalEntry } from '../ports/journal.ts';
import { CommitUnit, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import type { Host } from '../runtime/host.ts';

const CLOSED = 'service.closed';
const DEFINITION_VERSION = 1;

export class ServiceLedger implements UnitBody {
  readonly #unit: CommitUnit;
  readonly #host: Host;
  /** What the journal says; null once that was made use of. */
  #had: Set<string> | null = new Set();
  #whenClosed: (() => void) | null = null;

  constructor(id: string, host: Host) {
    this.#host = host;
    const identity = { id, scope: id, kind: 'program', definitionVersion: DEFINITION_VERSION };
    this.#unit = new CommitUnit(identity, host, this);
    // What the journal has comes first.
    this.#unit.hold();
  }

  /** Where the service of these entries began: after the last one that was closed. */
  static beginning(id: string, entries: readonly JournalEntry[]): number {
    return entries.findLastIndex(({ unit, event }) => unit === id && event.type === CLOSED) + 1;
  }

  /**
   * `skipped`: so many entries of its unit are of services that were closed.
   * @throws {OffstageError} for entries that it does not know.
   */
  refold(entries: readonly JournalEntry[], skipped: number): void {
    this.#unit.skip(skipped);
    this.#unit.refold(entries);
  }

  /** From now on the program is served. */
  open(): void {
    this.#had = null;
    this.#unit.open();
  }

  hasHad(subagentId: string): boolean {
    return this.#had?.has(subagentId) ?? false;
  }

  had(subagentId: string): void {
    this.#unit.receive('service', { type: 'result.had', subagentId } as UnitEvent);
  }

  /** Resolves when it is written down. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenClosed = resolve;
      this.#unit.open({ actor: 'service', event: { type: CLOSED } });
    });
  }

  accepts(): boolean {
    return true;
  }

  apply(_actor: string, event: UnitEvent): void {
    if ('subagentId' in event) this.#had?.add(event.subagentId as string);
    if (event.type === CLOSED)
      this.#unit.post('service', { kind: 'do', name: 'closed', params: undefined });
  }

  release(): void {
    this.#unit.dispose();
    this.#whenClosed?.();
  }

  crashed(error: unknown): void {
    this.journalRefused(error);
  }

  journalRefused(error: unknown): void {
    this.#host.report(error, `journal of ${this.#unit.id}`);
    this.release();
  }
}
