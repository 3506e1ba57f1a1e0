// The parts of a program's service that outlive its process: its view of the journal, its ledger, its
// snapshots.
//
// Does not: know when any of it is used (owned-service.ts).

import { createHost, type Host, type HostOptions } from '../runtime/host.ts';
import type { Runtime } from '../admission/runtime.ts';
import { ScopeJournal } from '../runtime/scope-journal.ts';
import { ScopeSnapshots } from '../runtime/scope-snapshots.ts';
import type { SubagentTreeSnapshot } from './tree-snapshot.ts';
import { SNAPSHOT, snapshotOf } from './service-history.ts';
import { LEDGER, ServiceLedger } from './service-ledger.ts';

export class ServiceKeeping {
  readonly journal: ScopeJournal;
  readonly host: Host;
  readonly ledger: ServiceLedger;
  readonly snapshots: ScopeSnapshots;

  /** `rest`: the state of its subagents; null while one of them is busy. */
  constructor(
    id: string,
    { environment, inspect, journal, snapshots, onUnfoldable }: Runtime,
    onError: HostOptions['onError'],
    rest: () => SubagentTreeSnapshot | null,
  ) {
    this.journal = new ScopeJournal(journal, {
      standsForAll: ({ event }) => event.type === SNAPSHOT,
      rested: () => this.snapshots.entryKept(),
    });
    const host = createHost({
      environment,
      journal: this.journal,
      inspect,
      onError,
      onUnfoldable,
    });
    this.host = host;
    this.ledger = new ServiceLedger(id, host, (seq) => this.snapshots.written(seq));
    const made = () => {
      const delegation = rest();
      return (
        delegation && {
          event: snapshotOf(delegation, snapshots.trim),
          lives: delegation.subagents.length,
        }
      );
    };
    const { unit } = this.ledger;
    this.snapshots = new ScopeSnapshots(
      { id, host, unit, actor: LEDGER, made },
      this.journal,
      snapshots,
    );
  }
}
