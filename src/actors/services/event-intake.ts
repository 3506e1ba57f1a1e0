// The intake of one service: checks and filters the events that its sources emit before they become events of
// its unit, and answers each with a receipt.
//
// Owns:     the receipts that are still owed, and the counts of rejected emissions.
// Does not: know the fate of an accepted event (service).
//
// Invariants
//   EVENT-INTAKE-1. Every emission gets one receipt.
//   EVENT-INTAKE-2. An error of `shouldInvoke` is reported, and the event is accepted: a broken filter must
//        not hide events.

import { ProtocolError } from '../../values/errors.ts';
import type { EventReceipt, ExternalEvent } from '../ports/event-source.ts';
import type { Host } from '../runtime/host.ts';
import { checkEvent, type CheckedEvent } from './event-check.ts';
import type { ServiceDefinition } from './service-config.ts';

/** The limit per service. While this many events wait for the journal, further ones are refused. */
const MAX_UNDECIDED = 1_000;

export interface IntakePorts {
  isStopped(): boolean;
  /** Passes on an event for the journal; `receipt` later reports the decision. */
  arrived(eventId: string, event: CheckedEvent): void;
  /** Reports that the counts have changed. */
  counted(): void;
}

export class EventIntake {
  readonly #host: Host;
  readonly #definition: ServiceDefinition;
  readonly #ports: IntakePorts;
  readonly #receipts = new Map<string, (receipt: EventReceipt) => void>();
  readonly #counts = { ignored: 0, invalid: 0 };

  constructor(host: Host, definition: ServiceDefinition, ports: IntakePorts) {
    this.#host = host;
    this.#definition = definition;
    this.#ports = ports;
  }

  get counts(): { readonly ignored: number; readonly invalid: number } {
    return this.#counts;
  }

  emitted(source: string, emitted: ExternalEvent): Promise<EventReceipt> {
    if (this.#ports.isStopped()) return Promise.resolve(this.#stopped);
    const { name, maxEventBytes } = this.#definition;
    const checked = checkEvent(emitted, maxEventBytes);
    if (!checked.ok) {
      const { reason, message } = checked;
      this.#host.report(
        new ProtocolError('INVALID_EVENT', message, { raw: emitted }),
        `event source ${source} of service ${name}`,
      );
      this.#count('invalid');
      return Promise.resolve({ accepted: false, reason, message });
    }
    const { event } = checked;
    if (!this.#isWanted(event)) {
      this.#count('ignored');
      const message = `${name} has no use for ${event.type}`;
      return Promise.resolve({ accepted: false, reason: 'ignored', message });
    }
    if (this.#receipts.size >= MAX_UNDECIDED) {
      const message = `${MAX_UNDECIDED} events of ${name} wait for the journal`;
      return Promise.resolve({ accepted: false, reason: 'full', message });
    }
    const eventId = this.#host.environment.ids.next('evt');
    return new Promise((resolve) => {
      this.#receipts.set(eventId, resolve);
      this.#ports.arrived(eventId, event);
    });
  }

  /**
   * Answers an emission with the decision. An event that was emitted in an earlier process awaits no receipt.
   */
  receipt(eventId: string, receipt: EventReceipt): void {
    this.#receipts.get(eventId)?.(receipt);
    this.#receipts.delete(eventId);
  }

  /** Answers all waiting emissions: the service is stopped. */
  refuseAll(): void {
    for (const eventId of this.#receipts.keys()) this.receipt(eventId, this.#stopped);
  }

  get #stopped(): EventReceipt {
    const message = `${this.#definition.name} is stopped`;
    return { accepted: false, reason: 'stopped', message };
  }

  #count(what: 'ignored' | 'invalid'): void {
    this.#counts[what] += 1;
    this.#ports.counted();
  }

  #isWanted(event: CheckedEvent): boolean {
    try {
      return this.#definition.shouldInvoke(event);
    } catch (error) {
      this.#host.report(error, `shouldInvoke of service ${this.#definition.name}`);
      return true;
    }
  }
}
