// Replays one service: folds the service's entries into its machine and the machines of its sources.
//
// Does not: keep track of the subagents that examine its events, or of the session's reports to the user
//           (replay-session.ts).
//
// Invariants
//   REPLAYED-SERVICE-1. The state of a service is unknown until the first entry or snapshot that contains its limits.
//       It stays unknown if the entries come from an earlier version and lack the limits.

import {
  eventSourceMachine,
  serviceMachine,
  sourceMessages,
  type EventSourceSnapshot,
  type ServiceSnapshot as MachineSnapshot,
} from '../../machines/index.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { Draft } from '../runtime/draft.ts';
import { plain, Population, type Effect } from '../runtime/hosting.ts';
import type { ServiceLimits, ServiceSnapshot } from '../services/service.ts';

/** A replay's machines have no observers. */
const UNSEEN = { actors: { isWatched: false, began() {}, moved() {}, ended() {} } };

/** A service's state in a checkpoint or snapshot. */
export type KeptService = Pick<ServiceSnapshot, 'machine' | 'sources'>;

export class ReplayedService {
  /** The effects of the current entry. */
  #effects: Effect[] = [];
  readonly #unit = {
    id: '',
    draft: new Draft(),
    post: (_: string, effect: Effect) => void this.#effects.push(effect),
  };
  readonly #machine = new Population(serviceMachine, 'service', this.#unit, UNSEEN);
  readonly #sources = new Population(eventSourceMachine, 'source', this.#unit, UNSEEN);

  constructor(kept: KeptService | null = null) {
    if (!kept) return;
    this.#machine.restore([{ id: '', state: kept.machine }]);
    this.#sources.restore(kept.sources ?? []);
  }

  /** The machine's state; null if unknown. */
  get snapshot(): MachineSnapshot | null {
    return this.#isKnown ? this.#machine.snapshot : null;
  }

  /** The states of the sources that have not stopped, by name. */
  get sources(): ReadonlyMap<string, EventSourceSnapshot> {
    const live = new Map<string, EventSourceSnapshot>();
    for (const name of this.#sources.ids) {
      const snapshot = this.#sources.of(name);
      if (snapshot?.status === 'active') live.set(name, snapshot);
    }
    return live;
  }

  /** The state from which `new ReplayedService` continues; null if unknown. */
  get kept(): KeptService | null {
    if (!this.#isKnown) return null;
    return { machine: plain(this.#machine.snapshot), sources: this.#sources.snapshots };
  }

  /** Folds an entry. Returns whether this version would accept the entry. */
  take({ actor, at, event }: JournalEntry): boolean {
    const stamped = { ...event, at };
    const limits = limitsIn(event);
    if (actor !== 'service') {
      const name = actor.slice(actor.indexOf(':') + 1);
      if (limits) this.#begin(name, limits);
      return send(this.#sources, name, stamped);
    }
    if (limits) {
      if (!this.#isKnown) this.#machine.create('', limits.service);
      for (const name of limits.sources) this.#begin(name, limits);
    }
    this.#effects = [];
    const isAccepted = send(this.#machine, '', stamped);
    for (const { name } of this.#effects)
      for (const message of sourceMessages(name, this.#sources.ids))
        send(this.#sources, message.actor.slice('source:'.length), { ...message.event, at });
    return isAccepted;
  }

  get #isKnown(): boolean {
    return this.#machine.has('');
  }

  /** Starts a source anew, because the sources of an earlier process ended with it. */
  #begin(name: string, { source: input }: ServiceLimits): void {
    this.#sources.create(name, input);
  }
}

/** Without known limits, every entry counts as accepted. */
function send(
  machines: Pick<Population, 'has' | 'accepts' | 'apply'>,
  id: string,
  event: { readonly type: string; readonly at: number },
): boolean {
  const isAccepted = !machines.has(id) || machines.accepts(id, event);
  machines.apply(id, event);
  return isAccepted;
}

function limitsIn(event: JournalEntry['event']): ServiceLimits | null {
  const { limits } = event as { readonly limits?: ServiceLimits };
  return typeof limits === 'object' && Array.isArray(limits.sources) ? limits : null;
}
