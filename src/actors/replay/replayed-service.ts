// One service of a replay: its machine and those of its sources, folded from its entries.
//
// Does not: know the subagents that look at its events, or what the user was told (replay-session.ts).
//
// Invariants
//   REPLAYED-SERVICE-1. A service is known from the first entry or snapshot on that names its limits; nothing is
//       said of one whose limits are not known, as an earlier version wrote it.

import {
  eventSourceMachine,
  serviceMachine,
  sourceMessages,
  type EventSourceSnapshot,
  type ServiceSnapshot as MachineSnapshot,
} from '../../machines/index.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { Hosted, plain, type Effect } from '../runtime/hosting.ts';
import type { ServiceLimits, ServiceSnapshot } from '../services/service.ts';

/** A service, as its entries tell it. */
export type KeptService = Pick<ServiceSnapshot, 'machine' | 'sources'>;

export class ReplayedService {
  #machine: Hosted<typeof serviceMachine> | null = null;
  readonly #sources = new Map<string, Hosted<typeof eventSourceMachine>>();
  /** The effects of the entry in hand. */
  #effects: Effect[] = [];
  readonly #postbox = (effect: Effect) => void this.#effects.push(effect);

  constructor(kept: KeptService | null = null) {
    if (!kept) return;
    const { machine, sources = [] } = kept;
    this.#machine = new Hosted(serviceMachine, { snapshot: machine }, this.#postbox, null);
    for (const { id, state } of sources)
      this.#sources.set(
        id,
        new Hosted(eventSourceMachine, { snapshot: state }, this.#postbox, null),
      );
  }

  /** The state of its machine; null: not known. */
  get snapshot(): MachineSnapshot | null {
    return this.#machine?.snapshot ?? null;
  }

  /** The states of its sources that have not stopped, by name. */
  get sources(): ReadonlyMap<string, EventSourceSnapshot> {
    const live = [...this.#sources].filter(([, { snapshot }]) => snapshot.status === 'active');
    return new Map(live.map(([name, { snapshot }]) => [name, snapshot]));
  }

  /** The service as `new ReplayedService` continues it; null: not known. */
  get kept(): KeptService | null {
    if (!this.#machine) return null;
    const sources = [...this.#sources].map(([id, { snapshot }]) => ({
      id,
      state: plain(snapshot),
    }));
    return { machine: plain(this.#machine.snapshot), sources };
  }

  /** Folds an entry. Returns whether this version would accept it here. */
  take({ actor, at, event }: JournalEntry): boolean {
    const stamped = { ...event, at };
    const limits = limitsIn(event);
    if (actor !== 'service') {
      const name = actor.slice(actor.indexOf(':') + 1);
      if (limits) this.#begin(name, limits);
      return send(this.#sources.get(name), stamped);
    }
    if (limits) {
      this.#machine ??= new Hosted(serviceMachine, { input: limits.service }, this.#postbox, null);
      for (const name of limits.sources) this.#begin(name, limits);
    }
    this.#effects = [];
    const isAccepted = send(this.#machine, stamped);
    for (const { name } of this.#effects)
      for (const message of sourceMessages(name, [...this.#sources.keys()]))
        send(this.#sources.get(message.actor.slice('source:'.length)), { ...message.event, at });
    return isAccepted;
  }

  /** A source begins: those of an earlier process ended with it. */
  #begin(name: string, { source: input }: ServiceLimits): void {
    this.#sources.set(name, new Hosted(eventSourceMachine, { input }, this.#postbox, null));
  }
}

/** Limits that are not known accept everything. */
function send(
  machine: Pick<Hosted<typeof serviceMachine>, 'accepts' | 'send'> | null | undefined,
  event: { readonly type: string; readonly at: number },
): boolean {
  if (!machine) return true;
  const isAccepted = machine.accepts(event);
  machine.send(event);
  return isAccepted;
}

function limitsIn(event: JournalEntry['event']): ServiceLimits | null {
  const { limits } = event as { readonly limits?: ServiceLimits };
  return typeof limits === 'object' && Array.isArray(limits.sources) ? limits : null;
}
