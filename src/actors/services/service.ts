// One service: its machine, which shares a commit unit with its sources' machines, and its events from emission to end.
//
//   emission ─▶ checked, wanted ─▶ event.arrived (journal) ─▶ receipt ─▶ invocation ─▶ told | silent | failed
//      └─ invalid, ignored, full                                └─▶ dropped
//
// Owns:     the machine, the outstanding receipts, each event's content and end, and the counts.
// Does not: decide the next step (machines), run sources (service-sources.ts), run agents, or notify the user (ports).
//
// Invariants
//   SERVICE-1. Every emission receives one receipt; an accepted event is in the journal before its receipt is sent.
//   SERVICE-2. Every accepted event ends as told, silent, failed or dropped. The counts contain it under that outcome.
//   SERVICE-3. An error from a source or from `shouldInvoke` is reported and has no other effect. An event whose filter
//       failed is accepted, because a broken filter must not hide events.
//   SERVICE-4. After `stop`, no event is emitted or examined. `whenStopped` calls back once every source has been
//       released or given up.

import type { Shown } from '../runtime/hosting.ts';
import type { AnyMachineSnapshot, InputFrom, Snapshot } from 'xstate';
import { z } from 'zod';
import {
  type eventSourceMachine,
  serviceMachine,
  sourceMessages,
  type Carrying,
  type EventDropReason,
  type EventSourceEvent,
  type Failure,
  type ServiceMachineEvent,
  type Stamped,
  type Unstamped,
} from '../../machines/index.ts';
import { CapacityError, OffstageError, ProtocolError } from '../../values/errors.ts';
import { readOutcome, type Outcome } from '../contracts/outcome.ts';
import type { DroppedEvent, ServiceView } from '../contracts/session-views.ts';
import type { EventReceipt, ExternalEvent } from '../ports/event-source.ts';
import type { JournalEntry } from '../ports/journal.ts';
import {
  CommitUnit,
  type Message,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../runtime/commit-unit.ts';
import {
  amount,
  flag,
  outcome as outcomeShape,
  text,
  type EventShapes,
} from '../runtime/event-shapes.ts';
import { Table } from '../runtime/draft.ts';
import type { Host } from '../runtime/host.ts';
import { plain, Population, type Effect, type MemberSnapshot } from '../runtime/hosting.ts';
import type { ServiceDefinition } from './service-config.ts';
import { checkEvent, failedTelling, tellingOf, type CheckedEvent } from './service-events.ts';
import { ServiceSources } from './service-sources.ts';

/** The version of the definition; increased when a machine or the content of its events changes. */
export const SERVICE_VERSION = 1;

export const SERVICE_SHAPES: EventShapes = {
  'event.arrived': z.looseObject({
    eventId: text,
    priority: z.enum(['normal', 'urgent']),
    event: z.looseObject({ source: text, type: text, priority: z.enum(['normal', 'urgent']) }),
  }),
  'invocation.ended': z.looseObject({ eventId: text, outcome: outcomeShape }),
  'invocation.refused': z.looseObject({ eventId: text, retryable: flag, jitter: amount }),
  'deadline.retry': z.looseObject({ dueAt: amount }),
};

/**
 * The limits of a service and its sources, recorded for readers of the journal. A running process uses the limits in
 * its code.
 */
export interface ServiceLimits {
  readonly service: InputFrom<typeof serviceMachine>;
  readonly source: InputFrom<typeof eventSourceMachine>;
  readonly sources: readonly string[];
}

/** The events of the service's machine, with the content that the journal stores. */
type ServiceEvent = Carrying<
  ServiceMachineEvent,
  {
    'service.start': { readonly limits?: ServiceLimits };
    'event.arrived': { readonly event: CheckedEvent };
    'invocation.ended': { readonly outcome: Outcome };
  }
>;

/** The actors of a service's unit, and the events that each one accepts. */
interface ServiceProtocol {
  readonly service: Unstamped<ServiceEvent>;
  readonly [source: `source:${string}`]: Unstamped<SourceEvent>;
}

/** A source's events. After a restart, each source starts anew, possibly with other limits. */
type SourceEvent = Carrying<
  EventSourceEvent,
  { 'source.start': { readonly limits?: ServiceLimits } }
>;

type ServiceUnit = CommitUnit<ServiceProtocol>;

/** The maximum number of a service's events that are waiting for the journal; further events are refused. */
const MAX_UNDECIDED = 1_000;

/** The session functions that a service needs. They must not throw. */
export interface ServicePorts {
  /** Starts the agent's examination of the event. Later, either `ended` or `refused` is called, exactly once. */
  invoke(service: Service, eventId: string, event: CheckedEvent): void;
  /** Cancels the invocation. Has no effect if the invocation has ended. */
  leave(eventId: string): void;
  /** Forwards the message for the user; null if there is none. Called once for each `ended`. */
  tell(service: Service, eventId: string, event: CheckedEvent, text: string | null): void;
  /**
   * After a crash: returns whether the session must still receive the event's message, or the information that there is
   * none.
   */
  isOwed(eventId: string): boolean;
  dropped(dropped: DroppedEvent): void;
  changed(view: ServiceView): void;
}

/** Returns the name of a service's unit in the journal. */
export function servicePath(sessionId: string, name: string): string {
  return `${sessionId}/service:${name}`;
}

interface EventRecord {
  readonly event: CheckedEvent;
  readonly outcome: Outcome | null;
}

/** An event that has not ended, as plain JSON. */
type EventSnapshot = EventRecord & { readonly eventId: string };

/** A snapshot of a service, as plain JSON. */
export interface ServiceSnapshot {
  /** The number of the service's journal entries. */
  readonly seq: number;
  readonly machine: Snapshot<unknown>;
  readonly events: readonly EventSnapshot[];
  /**
   * The machines of the service's sources, recorded for readers of the journal. A process that resumes the service
   * starts its sources anew.
   */
  readonly sources?: readonly MemberSnapshot[];
}

export class Service implements UnitBody {
  readonly definition: ServiceDefinition;
  readonly shapes = SERVICE_SHAPES;
  readonly unit: ServiceUnit;
  readonly #host: Host;
  readonly #ports: ServicePorts;
  readonly #sources: ServiceSources;
  /** The events whose handling is not complete. */
  readonly #events: Table<EventRecord>;
  /** The callers that are waiting for the receipt of an event that they emitted. */
  readonly #receipts = new Map<string, (receipt: EventReceipt) => void>();
  readonly #counts = {
    accepted: 0,
    told: 0,
    silent: 0,
    failed: 0,
    dropped: 0,
    ignored: 0,
    invalid: 0,
  };
  readonly #machine: Population<typeof serviceMachine>;
  /** The event that the agent is examining. */
  #invoked: string | null = null;
  #isRefolded = false;
  #isRefolding = false;
  #whenStopped: (() => void)[] = [];

  /** The journal and the inspector name the unit `<session>/service:<name>`. */
  constructor(host: Host, sessionId: string, definition: ServiceDefinition, ports: ServicePorts) {
    const path = servicePath(sessionId, definition.name);
    this.definition = definition;
    this.#host = host;
    this.#ports = ports;
    const identity = {
      id: path,
      scope: sessionId,
      kind: 'service',
      definitionVersion: SERVICE_VERSION,
    };
    this.unit = new CommitUnit(identity, host, this);
    this.#events = new Table(this.unit.draft);
    this.#machine = new Population(serviceMachine, 'service', this.unit, host, path);
    this.#sources = new ServiceSources(host, this.unit, definition, (source, event) =>
      this.#emitted(source, event),
    );
    this.unit.start(() => {
      this.#machine.create('', this.#limits);
      this.#sources.create();
    });
  }

  get name(): string {
    return this.definition.name;
  }

  get view(): ServiceView {
    const { value, context } = this.#machine.snapshot;
    return {
      name: this.name,
      state: this.unit.disposed ? 'stopped' : typeof value === 'string' ? value : value.working,
      waiting: context.waiting.length,
      counts: { ...this.#counts },
      sources: this.#sources.views,
    };
  }

  /** The ids of the events that still have to be examined. */
  get owed(): readonly string[] {
    const { waiting, current } = this.#machine.snapshot.context;
    return [current, ...waiting].flatMap((event) => event?.eventId ?? []);
  }

  start(): void {
    // A service that was missing from the code may never have been started.
    if (this.#isRefolded && this.#machine.snapshot.value !== 'created') this.#resume();
    else this.unit.receive('service', { type: 'service.start', limits: this.#recorded });
  }

  /** Returns the snapshot for `restore`. */
  toSnapshot(): ServiceSnapshot {
    return {
      seq: this.unit.seq,
      machine: plain(this.#machine.snapshot),
      events: [...this.#events].map(([eventId, record]) => ({ eventId, ...record })),
      sources: this.#sources.lives.snapshots,
    };
  }

  /** Continues from a snapshot. */
  restore(rest: ServiceSnapshot): void {
    this.#isRefolded = true;
    this.unit.setSequence(rest.seq);
    // The limits come from the current code, as after a refold.
    const { context } = rest.machine as AnyMachineSnapshot;
    const state = { ...rest.machine, context: { ...context, ...this.#limits } };
    this.#machine.restore([{ id: '', state }]);
    for (const { eventId, event, outcome } of rest.events)
      this.#events.set(eventId, { event, outcome: outcome && readOutcome(outcome) });
  }

  /**
   * Folds the service's journal entries. Its sources start anew, because the earlier ones belonged to another process.
   * Quarantined entries are recorded immediately.
   */
  refold(entries: readonly JournalEntry[]): void {
    if (entries.length === 0) return;
    this.#isRefolded = true;
    this.#isRefolding = true;
    try {
      this.unit.refold(entries);
    } finally {
      this.#isRefolding = false;
    }
    this.unit.resume();
  }

  /** Resumes after a restart: reports the examined events, has the others examined, and starts the sources. */
  #resume(): void {
    const isDue = new Set(this.owed);
    const examined = [...this.#events.keys()].filter((eventId) => !isDue.has(eventId));
    // Most of these events were reported before the restart, or had no message.
    for (const eventId of examined) if (!this.#ports.isOwed(eventId)) this.#events.delete(eventId);
    if (this.#isStopped) {
      this.#finish();
      return;
    }
    for (const eventId of examined) this.#settled(eventId);
    this.unit.releaseDue(this.#machine.underWay);
    for (const { actor, event } of sourceMessages('startSources', this.#sources.lives.ids))
      this.unit.receive(
        actor,
        event.type === 'source.start' ? { ...event, limits: this.#recorded } : event,
      );
  }

  stop(): void {
    this.unit.receive('service', { type: 'service.stop' });
  }

  /** Ends a service that this process has not started. */
  abandon(): void {
    this.unit.dispose();
    for (const eventId of this.owed) this.#dropped(eventId, 'stopped');
  }

  /** Ends the service immediately, without waiting for its sources. */
  kill(): void {
    this.#finish();
  }

  /** Calls back once the service has stopped completely, or immediately if it already has. */
  whenStopped(callback: () => void): void {
    this.#whenStopped.push(callback);
    if (this.unit.disposed) this.#finish();
  }

  /** Handles the end of the agent's examination, successful or not. */
  ended(eventId: string, outcome: Outcome): void {
    this.unit.receive('service', { type: 'invocation.ended', eventId, outcome });
  }

  /** Called when a limit prevented the agent from starting. */
  refused(eventId: string, { retryable, message }: Failure): void {
    this.#host.report(
      new CapacityError('INVOCATION_REFUSED', `${this.name}: ${eventId} waits: ${message}`),
      `service ${this.name}`,
    );
    const jitter = this.#host.environment.random.next();
    this.unit.receive('service', { type: 'invocation.refused', eventId, retryable, jitter });
  }

  take(actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null {
    const isAccepted =
      actor === 'service'
        ? this.#machine.accepts('', event)
        : this.#sources.lives.accepts(nameOf(actor), event);
    return isAccepted ? event : null;
  }

  apply(actor: string, event: UnitEvent & Stamped): void {
    if (this.#isRefolding && actor !== 'service') return this.#sources.lives.check(event);
    if (actor === 'service') {
      this.#fold(event as ServiceEvent);
      this.#machine.apply('', event);
    } else this.#sources.lives.apply(nameOf(actor), event);
    this.unit.post(actor, { kind: 'do', name: 'changed', params: undefined });
  }

  route({ actor, effect }: Posted): readonly Message[] {
    if (actor !== 'service' || effect.kind !== 'do' || this.#isRefolding) return [];
    return sourceMessages(effect.name, this.#sources.lives.ids);
  }

  release({ actor, effect }: Posted): void {
    if (this.unit.disposed) return;
    if (actor !== 'service') this.#sources.release(nameOf(actor), effect);
    else if (effect.kind === 'do') this.#releaseOfService(effect.name, effect.params);
    else this.#invocation(effect);
    if (effect.kind !== 'do' || effect.name !== 'changed') return;
    this.#ports.changed(this.view);
    if (!this.#isStopped) return;
    // A source may wait for these receipts before it stops. No event is accepted after this.
    this.#refuseAll();
    if (this.#sources.areStopped) this.#finish();
  }

  /** Answers an emission that was not accepted. If an event other than an emission fails, the service ends. */
  ignored({ type, ...event }: UnitEvent, error: OffstageError | null): void {
    if (!error) return;
    if (type !== 'event.arrived') this.crashed(error);
    else if ('eventId' in event)
      this.#receipt(String(event.eventId), {
        accepted: false,
        reason: 'invalid',
        message: error.message,
      });
  }

  crashed(error: unknown): void {
    this.#host.report(error, `service ${this.name}`);
    this.kill();
  }

  journalRefused(error: unknown): void {
    this.#host.report(error, `journal of service ${this.name}`);
    this.suspend();
  }

  /** Stops the service in this process, so that another or a later process can continue it. */
  suspend(): void {
    this.unit.dispose();
    this.#machine.stop();
    this.#sources.kill();
    this.#refuseAll();
  }

  #releaseOfService(name: string, params: unknown): void {
    const { eventId, eventIds, reason } = (params ?? {}) as {
      readonly eventId: string;
      readonly eventIds: readonly string[];
      readonly reason: EventDropReason;
    };
    if (name === 'accepted') {
      this.#counts.accepted += 1;
      this.#receipt(eventId, { accepted: true, eventId });
    } else if (name === 'settled') this.#settled(eventId);
    else if (name === 'dropped') for (const id of eventIds) this.#dropped(id, reason);
  }

  #invocation(effect: Exclude<Effect, { kind: 'do' }>): void {
    if (effect.name !== 'invocation') return;
    if (effect.kind === 'start') {
      const { eventId } = effect.input as { eventId: string };
      this.#invoked = eventId;
      const event = this.#events.get(eventId)?.event;
      if (event) this.#ports.invoke(this, eventId, event);
    } else this.#leave();
  }

  #leave(): void {
    const eventId = this.#invoked;
    this.#invoked = null;
    if (eventId !== null) this.#ports.leave(eventId);
  }

  /** Accepts or refuses a source's emission, immediately or as soon as the event is in the journal. */
  #emitted(source: string, emitted: ExternalEvent): Promise<EventReceipt> {
    if (this.#isStopped) return Promise.resolve(this.#stoppedReceipt);
    const checked = checkEvent(emitted, this.definition.maxEventBytes);
    if (!checked.ok) {
      const { reason, message } = checked;
      this.#host.report(
        new ProtocolError('INVALID_EVENT', message, { raw: emitted }),
        `event source ${source} of service ${this.name}`,
      );
      this.#count('invalid');
      return Promise.resolve({ accepted: false, reason, message });
    }
    const { event } = checked;
    if (!this.#isWanted(event)) {
      this.#count('ignored');
      const message = `${this.name} has no use for ${event.type}`;
      return Promise.resolve({ accepted: false, reason: 'ignored', message });
    }
    if (this.#receipts.size >= MAX_UNDECIDED) {
      const message = `${MAX_UNDECIDED} events of ${this.name} wait for the journal`;
      return Promise.resolve({ accepted: false, reason: 'full', message });
    }
    const eventId = this.#host.environment.ids.next('evt');
    return new Promise((resolve) => {
      this.#receipts.set(eventId, resolve);
      const { priority } = event;
      this.unit.receive('service', { type: 'event.arrived', eventId, priority, event });
    });
  }

  #count(what: 'ignored' | 'invalid'): void {
    this.#counts[what] += 1;
    this.#ports.changed(this.view);
  }

  #isWanted(event: CheckedEvent): boolean {
    try {
      return this.definition.shouldInvoke(event);
    } catch (error) {
      this.#host.report(error, `shouldInvoke of service ${this.name}`);
      return true;
    }
  }

  /** Answers an emission. No caller waits for an event that an earlier process accepted. */
  #receipt(eventId: string, receipt: EventReceipt): void {
    this.#receipts.get(eventId)?.(receipt);
    this.#receipts.delete(eventId);
  }

  /** Answers all waiting emissions with `stopped`. */
  #refuseAll(): void {
    for (const eventId of this.#receipts.keys()) this.#receipt(eventId, this.#stoppedReceipt);
  }

  get #stoppedReceipt(): EventReceipt {
    return { accepted: false, reason: 'stopped', message: `${this.name} is stopped` };
  }

  /** Records an event's content and outcome under its id. */
  #fold(event: ServiceEvent): void {
    if (event.type === 'event.arrived')
      this.#events.set(event.eventId, { event: event.event, outcome: null });
    else if (event.type === 'invocation.ended')
      this.#events.change(event.eventId, { outcome: readOutcome(event.outcome) });
  }

  /** Ends an event that the agent has examined. Does nothing if the event has no outcome or has ended. */
  #settled(eventId: string): void {
    const record = this.#events.get(eventId);
    if (!record?.outcome) return;
    const { event, outcome } = record;
    if (outcome.status === 'cancelled') {
      this.#ports.tell(this, eventId, event, null);
      this.#dropped(eventId, 'cancelled');
      return;
    }
    this.#events.delete(eventId);
    if (outcome.status === 'completed') {
      const told = tellingOf(outcome);
      this.#counts[told === null ? 'silent' : 'told'] += 1;
      this.#ports.tell(this, eventId, event, told);
      return;
    }
    const { code, message } = outcome.error;
    this.#counts.failed += 1;
    this.#host.report(new OffstageError(code, message), `service ${this.name}, ${eventId}`);
    const isUrgent = event.priority === 'urgent';
    this.#ports.tell(this, eventId, event, isUrgent ? failedTelling(event, message) : null);
  }

  #dropped(eventId: string, reason: DroppedEvent['reason']): void {
    const record = this.#events.get(eventId);
    if (!record) return;
    this.#events.delete(eventId);
    this.#counts.dropped += 1;
    const { source, type, priority } = record.event;
    this.#receipt(eventId, {
      accepted: false,
      reason: reason === 'full' ? 'full' : 'stopped',
      message: `${this.name} did not take it: ${reason}`,
    });
    this.#ports.dropped({ service: this.name, eventId, source, type, priority, reason });
  }

  get #limits(): InputFrom<typeof serviceMachine> {
    const { maxWaiting, maxInvocations, invocationBackoff } = this.definition;
    return { maxWaiting, maxInvocations, ...invocationBackoff };
  }

  get #recorded(): ServiceLimits {
    const { eventSources } = this.definition;
    return {
      service: this.#limits,
      source: this.#sources.limits,
      sources: eventSources.map(({ name }) => name),
    };
  }

  get #isStopped(): boolean {
    return this.unit.disposed || this.#machine.snapshot.status === 'done';
  }

  /** The machine, as exposed through its actor. */
  get shown(): Shown {
    return this.#machine.shown();
  }

  #finish(): void {
    if (!this.unit.disposed) {
      this.unit.dispose();
      this.#machine.stop();
      this.#sources.kill();
      this.#leave();
      for (const eventId of this.#events.keys()) this.#dropped(eventId, 'stopped');
      this.#refuseAll();
    }
    const waiting = this.#whenStopped;
    this.#whenStopped = [];
    for (const callback of waiting) callback();
  }
}

/** `source:orders` is the source `orders`. */
function nameOf(actor: string): string {
  return actor.slice(actor.indexOf(':') + 1);
}
