// One service: its machine, hosted in its own commit unit together with those of its sources, and its
// effects.
//
// Owns:     the machine, and its instructions to the sources, the agent and the events.
// Does not: decide the next step (machines), check emissions (intake), run agents or reach the user (ports).
//
// Invariants
//   SERVICE-1. Every emission gets one receipt; an accepted event is in the journal before that.
//   SERVICE-2. Every accepted event ends as told, silent, failed or dropped, and is counted as such
//       (event-ledger.ts).
//   SERVICE-3. An error of a source or of `shouldInvoke` is reported and ends nothing else.
//   SERVICE-4. After the stop no event is emitted or examined; `whenStopped` calls back once every source was
//       released or given up.

import { z } from 'zod';
import type { AnyMachineSnapshot, InputFrom, Snapshot } from 'xstate';
import { CapacityError } from '../../values/errors.ts';
import {
  serviceMachine,
  sourceMessages,
  type EventDropReason,
  type Failure,
  type Stamped,
} from '../../machines/index.ts';
import {
  CommitUnit,
  type Message,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../runtime/commit-unit.ts';
import type { JournalEntry } from '../ports/journal.ts';
import {
  amount,
  flag,
  outcome as outcomeShape,
  text,
  type EventShapes,
} from '../runtime/event-shapes.ts';
import type { Host } from '../runtime/host.ts';
import {
  snapshotOf,
  sendHosted,
  startHosted,
  stopHosted,
  underWay,
  type Effect,
  type HostedActor,
} from '../runtime/hosting.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { CheckedEvent } from './event-check.ts';
import { EventIntake } from './event-intake.ts';
import { EventLedger, type EventSnapshot } from './event-ledger.ts';
import type { ServiceDefinition } from './service-config.ts';
import { ServiceSources } from './service-sources.ts';
import type { DroppedEvent, ServiceView } from '../contracts/service-view.ts';

/** Raised when a machine, or the content of its events, changes. */
export const SERVICE_VERSION = 1;

const SERVICE_SHAPES: EventShapes = {
  'event.arrived': z.looseObject({
    eventId: text,
    priority: z.enum(['normal', 'urgent']),
    event: z.looseObject({ source: text, type: text, priority: z.enum(['normal', 'urgent']) }),
  }),
  'invocation.ended': z.looseObject({ eventId: text, outcome: outcomeShape }),
  'invocation.refused': z.looseObject({ eventId: text, retryable: flag, jitter: amount }),
  'deadline.retry': z.looseObject({ dueAt: amount }),
};

/** The functions that a service needs of its session. They must not throw. */
export interface ServicePorts {
  /** Has the agent examine the event: `ended` or `refused` is called once, later. */
  invoke(service: Service, eventId: string, event: CheckedEvent): void;
  /** Ends the invocation. No effect if it has already ended. */
  leave(eventId: string): void;
  /** Tells the user; null: there is nothing to tell. Called once for each `ended`. */
  tell(service: Service, eventId: string, event: CheckedEvent, text: string | null): void;
  /**
   * After a crash: returns whether the session got neither the message about the event nor the decision that
   * there is none.
   */
  isOwed(eventId: string): boolean;
  dropped(dropped: DroppedEvent): void;
  changed(view: ServiceView): void;
}

/** Returns the name of its unit in the journal. */
export function servicePath(sessionId: string, name: string): string {
  return `${sessionId}/service:${name}`;
}

/** A snapshot of a service, as plain JSON. */
export interface ServiceSnapshot {
  /** The number of its entries in the journal. */
  readonly seq: number;
  readonly machine: Snapshot<unknown>;
  readonly events: readonly EventSnapshot[];
}

export class Service implements UnitBody {
  readonly definition: ServiceDefinition;
  readonly shapes = SERVICE_SHAPES;
  readonly unit: CommitUnit;
  readonly #host: Host;
  readonly #ports: ServicePorts;
  readonly #sources: ServiceSources;
  readonly #events: EventLedger;
  readonly #intake: EventIntake;
  #machine!: HostedActor<typeof serviceMachine>;
  /** The event whose invocation is under way. */
  #invoked: string | null = null;
  #isRefolded = false;
  #isRefolding = false;
  #whenStopped: (() => void)[] = [];

  /** The unit is named `<session>/service:<name>` in the journal and the inspector. */
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
    this.#intake = new EventIntake(host, definition, {
      isStopped: () => this.#isStopped,
      arrived: (eventId, event) => {
        const { priority } = event;
        const arrived = { type: 'event.arrived', eventId, priority, event };
        this.unit.receive('service', arrived);
      },
      counted: () => ports.changed(this.view),
    });
    this.#events = new EventLedger(definition.name, {
      host,
      intake: this.#intake,
      tell: (...telling) => ports.tell(this, ...telling),
      dropped: (dropped) => ports.dropped(dropped),
    });
    this.#sources = new ServiceSources(host, this.unit, definition, (source, event) =>
      this.#intake.emitted(source, event),
    );
    this.unit.start(() => {
      this.#machine = this.#started({ input: this.#limits });
      this.#sources.create();
    });
  }

  get name(): string {
    return this.definition.name;
  }

  get view(): ServiceView {
    const { value, context } = this.#machine.getSnapshot();
    return {
      name: this.name,
      state: this.unit.disposed ? 'stopped' : typeof value === 'string' ? value : value.working,
      waiting: context.waiting.length,
      counts: { ...this.#events.counts, ...this.#intake.counts },
      sources: this.#sources.views,
    };
  }

  /** The ids of the events that have not been examined. */
  get owed(): readonly string[] {
    const { waiting, current } = this.#machine.getSnapshot().context;
    return [current, ...waiting].flatMap((event) => event?.eventId ?? []);
  }

  start(): void {
    // A service that was only kept, by code that lacked it, has never begun.
    if (this.#isRefolded && this.#machine.getSnapshot().value !== 'created') this.#resume();
    else this.unit.receive('service', { type: 'service.start' });
  }

  /** The snapshot for `restore`. */
  toSnapshot(): ServiceSnapshot {
    return {
      seq: this.unit.seq,
      machine: snapshotOf(this.#machine),
      events: this.#events.toSnapshot(),
    };
  }

  /** Continues from a snapshot. */
  restore(rest: ServiceSnapshot): void {
    this.#isRefolded = true;
    this.unit.setSequence(rest.seq);
    this.#beginWith(rest);
  }

  #beginWith(rest: ServiceSnapshot | null): void {
    stopHosted(this.#machine);
    if (rest) {
      // As after a refold: the limits are those of the current code.
      const { context } = rest.machine as AnyMachineSnapshot;
      const snapshot = { ...rest.machine, context: { ...context, ...this.#limits } };
      this.#machine = this.#started({ snapshot });
    } else this.unit.start(() => (this.#machine = this.#started({ input: this.#limits })));
    this.#events.restore(rest?.events ?? []);
  }

  /**
   * Folds its entries of the journal after `rest` (null: from its first entry). Its sources start anew: the
   * earlier ones lived in another process. Entries that are set aside are recorded at once.
   */
  refold(entries: readonly JournalEntry[], rest: ServiceSnapshot | null): void {
    if (entries.length === 0) return;
    this.#isRefolded = true;
    this.#isRefolding = true;
    try {
      this.unit.refold(entries, () => this.#beginWith(rest));
    } finally {
      this.#isRefolding = false;
    }
    this.unit.open();
  }

  /** Continues: tells the user about examined events, examines the others, and starts the sources. */
  #resume(): void {
    const isDue = new Set(this.owed);
    const lookedAt = this.#events.ids.filter((eventId) => !isDue.has(eventId));
    // The user was already told about most of them, or there was nothing to tell.
    for (const eventId of lookedAt) if (!this.#ports.isOwed(eventId)) this.#events.forget(eventId);
    if (this.#isStopped) {
      this.#finish();
      return;
    }
    for (const eventId of lookedAt) this.#events.settled(eventId);
    this.unit.resume(underWay('service', serviceMachine, this.#machine.getSnapshot()));
    for (const { actor, event } of sourceMessages('startSources', this.#sources.names))
      this.unit.receive(actor, event);
  }

  stop(): void {
    this.unit.receive('service', { type: 'service.stop' });
  }

  /** Ends a service that was never started here. */
  abandon(): void {
    this.unit.dispose();
    for (const eventId of this.owed) this.#events.dropped(eventId, 'stopped');
  }

  /** Ends it at once, whatever its sources do. */
  kill(): void {
    this.#finish();
  }

  /** Calls back once it has stopped completely; at once if it already has. */
  whenStopped(callback: () => void): void {
    this.#whenStopped.push(callback);
    if (this.unit.disposed) this.#finish();
  }

  /** Handles the end of the agent's examination, successful or not. */
  ended(eventId: string, outcome: Outcome): void {
    this.unit.receive('service', { type: 'invocation.ended', eventId, outcome } as UnitEvent);
  }

  /** Handles a refusal: a limit prevented the agent from starting. */
  refused(eventId: string, { retryable, message }: Failure): void {
    this.#host.report(
      new CapacityError('INVOCATION_REFUSED', `${this.name}: ${eventId} waits: ${message}`),
      `service ${this.name}`,
    );
    const jitter = this.#host.environment.random.next();
    this.unit.receive('service', {
      type: 'invocation.refused',
      eventId,
      retryable,
      jitter,
    } as UnitEvent);
  }

  accepts(actor: string, event: UnitEvent & Stamped): boolean {
    if (actor !== 'service') return this.#sources.accepts(nameOf(actor), event);
    const snapshot = this.#machine.getSnapshot();
    return snapshot.status === 'active' && snapshot.can(event as never);
  }

  apply(actor: string, event: UnitEvent & Stamped): void {
    if (this.#isRefolding && actor !== 'service') return;
    if (actor === 'service') {
      this.#events.fold(event);
      sendHosted(this.#machine, event);
      const snapshot = this.#machine.getSnapshot() as AnyMachineSnapshot;
      if (snapshot.status === 'error') throw snapshot.error;
    } else this.#sources.apply(nameOf(actor), event);
    this.unit.post(actor, { kind: 'do', name: 'changed', params: undefined });
  }

  route({ actor, effect }: Posted): readonly Message[] {
    if (actor !== 'service' || effect.kind !== 'do' || this.#isRefolding) return [];
    return sourceMessages(effect.name, this.#sources.names);
  }

  release({ actor, effect }: Posted): void {
    if (this.unit.disposed) return;
    if (actor !== 'service') this.#sources.release(nameOf(actor), effect);
    else if (effect.kind === 'do') this.#releaseOfService(effect.name, effect.params);
    else this.#invocation(effect);
    if (effect.kind !== 'do' || effect.name !== 'changed') return;
    this.#ports.changed(this.view);
    if (!this.#isStopped) return;
    // Sources may wait for these receipts before they stop: later events are not accepted.
    this.#intake.refuseAll();
    if (this.#sources.areStopped) this.#finish();
  }

  crashed(error: unknown): void {
    this.#host.report(error, `service ${this.name}`);
    this.kill();
  }

  journalRefused(error: unknown): void {
    this.#host.report(error, `journal of service ${this.name}`);
    this.suspend();
  }

  /** Suspends it: it continues in another process, or later. */
  suspend(): void {
    this.unit.dispose();
    stopHosted(this.#machine);
    this.#sources.kill();
    this.#intake.refuseAll();
  }

  #releaseOfService(name: string, params: unknown): void {
    const { eventId, eventIds, reason } = (params ?? {}) as {
      readonly eventId: string;
      readonly eventIds: readonly string[];
      readonly reason: EventDropReason;
    };
    if (name === 'accepted') this.#events.accepted(eventId);
    else if (name === 'settled') this.#events.settled(eventId);
    else if (name === 'dropped') for (const id of eventIds) this.#events.dropped(id, reason);
  }

  #invocation(effect: Exclude<Effect, { kind: 'do' }>): void {
    if (effect.name !== 'invocation') return;
    if (effect.kind === 'start') {
      const { eventId } = effect.input as { eventId: string };
      this.#invoked = eventId;
      const event = this.#events.eventOf(eventId);
      if (event) this.#ports.invoke(this, eventId, event);
    } else this.#leave();
  }

  #leave(): void {
    const eventId = this.#invoked;
    this.#invoked = null;
    if (eventId !== null) this.#ports.leave(eventId);
  }

  get #limits(): InputFrom<typeof serviceMachine> {
    const { maxWaiting, maxInvocations, invocationBackoff } = this.definition;
    return { maxWaiting, maxInvocations, ...invocationBackoff };
  }

  get #isStopped(): boolean {
    return this.unit.disposed || this.#machine.getSnapshot().status === 'done';
  }

  #started({
    input,
    ...from
  }: {
    readonly input?: InputFrom<typeof serviceMachine>;
    readonly snapshot?: Snapshot<unknown>;
  }): HostedActor<typeof serviceMachine> {
    const postbox = { post: (effect: Effect) => this.unit.post('service', effect) };
    const { inspect } = this.#host;
    return startHosted(serviceMachine, input, postbox, { id: this.unit.id, inspect, ...from });
  }

  #finish(): void {
    if (!this.unit.disposed) {
      this.unit.dispose();
      stopHosted(this.#machine);
      this.#sources.kill();
      this.#leave();
      for (const eventId of this.#events.ids) this.#events.dropped(eventId, 'stopped');
      this.#intake.refuseAll();
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
