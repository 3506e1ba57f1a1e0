// The events of one service, from their arrival to their end, and the counts of their outcomes.
//
// Owns:     the content of each event, and its end: told, silent, failed or dropped, once.
// Does not: decide when an event is examined (the service's machine), or check emissions (intake).
//
// Invariant
//   EVENT-LEDGER-2 of the service: every accepted event is told, silent, failed or dropped, and counted as such.

import { OffstageError } from '../../values/errors.ts';
import type { Stamped } from '../../machines/index.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import type { Host } from '../runtime/host.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { CheckedEvent } from './event-check.ts';
import type { EventIntake } from './event-intake.ts';
import { failedTelling, tellingOf } from './service-task.ts';
import type { DroppedEvent } from '../contracts/service-view.ts';

interface EventRecord {
  readonly event: CheckedEvent;
  outcome: Outcome | null;
}

/** An event that has not ended, as plain JSON. */
export type EventSnapshot = EventRecord & { readonly eventId: string };

interface LedgerPorts {
  /** Passes the text for the user; null: there is nothing to tell. */
  tell(eventId: string, event: CheckedEvent, text: string | null): void;
  dropped(dropped: DroppedEvent): void;
  readonly host: Host;
  readonly intake: Pick<EventIntake, 'receipt'>;
}

export class EventLedger {
  readonly #service: string;
  readonly #ports: LedgerPorts;
  readonly #events = new Map<string, EventRecord>();
  readonly #counts = { accepted: 0, told: 0, silent: 0, failed: 0, dropped: 0 };

  /** @param service The name of the service. */
  constructor(service: string, ports: LedgerPorts) {
    this.#service = service;
    this.#ports = ports;
  }

  get counts(): Readonly<Record<'accepted' | 'told' | 'silent' | 'failed' | 'dropped', number>> {
    return { ...this.#counts };
  }

  /** The ids of the events that have not ended. */
  get ids(): readonly string[] {
    return [...this.#events.keys()];
  }

  /** For `restore`. */
  toSnapshot(): readonly EventSnapshot[] {
    return [...this.#events].map(([eventId, record]) => ({ eventId, ...record }));
  }

  restore(events: readonly EventSnapshot[]): void {
    this.#events.clear();
    for (const { eventId, ...record } of events) this.#events.set(eventId, record);
  }

  eventOf(eventId: string): CheckedEvent | undefined {
    return this.#events.get(eventId)?.event;
  }

  /** Forgets an event that ended in an earlier process, which counted it. */
  forget(eventId: string): void {
    this.#events.delete(eventId);
  }

  /** Stores the content of an event under its id. */
  fold(event: UnitEvent & Stamped): void {
    const carried = event as unknown as {
      readonly eventId: string;
      readonly event: CheckedEvent;
      readonly outcome: Outcome;
    };
    if (event.type === 'event.arrived')
      this.#events.set(carried.eventId, { event: carried.event, outcome: null });
    else if (event.type === 'invocation.ended') {
      const record = this.#events.get(carried.eventId);
      if (record) record.outcome = carried.outcome;
    }
  }

  accepted(eventId: string): void {
    this.#counts.accepted += 1;
    this.#ports.intake.receipt(eventId, { accepted: true, eventId });
  }

  /** Ends an event that the agent has examined. Ignores an event that was not examined, or has ended. */
  settled(eventId: string): void {
    const record = this.#events.get(eventId);
    if (!record?.outcome) return;
    const { event, outcome } = record;
    if (outcome.status === 'cancelled') {
      this.#tell(eventId, event, null);
      this.dropped(eventId, 'cancelled');
      return;
    }
    this.#events.delete(eventId);
    if (outcome.status === 'completed') {
      const text = tellingOf(outcome);
      this.#counts[text === null ? 'silent' : 'told'] += 1;
      this.#tell(eventId, event, text);
      return;
    }
    const { code, message } = outcome.error ?? { code: 'INTERNAL', message: outcome.status };
    this.#counts.failed += 1;
    const where = `service ${this.#service}, ${eventId}`;
    this.#ports.host.report(new OffstageError(code, message), where);
    const urgent = event.priority === 'urgent';
    this.#tell(eventId, event, urgent ? failedTelling(event, message) : null);
  }

  dropped(eventId: string, reason: DroppedEvent['reason']): void {
    const record = this.#events.get(eventId);
    if (!record) return;
    this.#events.delete(eventId);
    this.#counts.dropped += 1;
    const { source, type, priority } = record.event;
    const service = this.#service;
    this.#ports.intake.receipt(eventId, {
      accepted: false,
      reason: reason === 'full' ? 'full' : 'stopped',
      message: `${service} did not take it: ${reason}`,
    });
    this.#ports.dropped({ service, eventId, source, type, priority, reason });
  }

  #tell(eventId: string, event: CheckedEvent, text: string | null): void {
    this.#ports.tell(eventId, event, text);
  }
}
