// The services of one session: started and stopped with it. An invocation first gets a place in
// the outbox, so that what the agent finds is never dropped; then the agent is delegated to,
// under the same limits as every other subagent.
//
// Owns:     the services, and which invocation has which place and which subagent.
// Does not: order events (service), decide limits (supervisor), speak (outbox).
//
// Invariants
//   SESSION-SERVICES-1. A place that was granted is filled by a notice or given back, once.
//   SESSION-SERVICES-2. An invocation that is left ends its subagent; what that one still finds is not told.
//   SESSION-SERVICES-3. `stop` stops every service, and `whenStopped` calls back when nothing of them is left.
//   SESSION-SERVICES-4. A service that the code does not have any more is kept as it was, and goes on from there, with
//       its numbers, when the code has it again.

import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { ownValue } from '../../values/own-value.ts';
import type { DeliveryPriority, Failure } from '../../machines/index.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentTask } from '../subagent/subagent.ts';
import { Service, servicePath, type ServicePorts, type ServiceRest } from './service.ts';
import type { CheckedEvent } from './event-check.ts';
import { absentService, type ServiceDefinition } from './service-config.ts';
import { taskOf } from './service-task.ts';
import type { DroppedEvent, ServiceView } from '../contracts/service-view.ts';
import { deliveryAbout } from '../contracts/records.ts';

/** What a service tells the user, in the place that was kept for it. */
export interface ServiceNotice {
  readonly deliveryId: string;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
}

/** What the services need of their session. */
export interface SessionServicesPorts {
  /** Asks for a place in the outbox; `placed` is called once with the answer. */
  reserve(eventId: string): void;
  /** The place that was granted for this event is not needed. */
  unreserve(eventId: string): void;
  /** A place was granted for this event, and neither filled nor given back. */
  hasPlace(eventId: string): boolean;
  /** The same event again is the same subagent. */
  delegate(
    eventId: string,
    definition: SubagentDefinition,
    task: SubagentTask,
  ):
    | { readonly status: 'accepted'; readonly subagentId: string }
    | { readonly status: 'rejected'; readonly error: Failure };
  /** How it has ended; null: it has not. */
  outcomeOf(subagentId: string): Outcome | null;
  cancel(subagentId: string, reason: string): void;
  notify(notice: ServiceNotice): void;
  dropped(dropped: DroppedEvent): void;
  changed(view: ServiceView): void;
}

/** What the journal has of the units of a session. */
export interface UnitHistory {
  readonly unitIds: Iterable<string>;
  /** The entries that are folded. */
  of(unit: string): readonly JournalEntry[];
  /** So many come before these, in this life or an earlier one. */
  before(unit: string): number;
}

interface Invocation {
  readonly service: Service;
  readonly event: CheckedEvent;
  /** At work on it; null while the place is asked for. */
  subagentId: string | null;
  /** Its service has no use for it any more. */
  isLeft: boolean;
}

export class SessionServices {
  readonly #ports: SessionServicesPorts;
  readonly #services: readonly Service[];
  /** Those that the journal has and the code has not (SESSION-SERVICES-4). */
  #absent: readonly Service[] = [];
  readonly #host: Host;
  readonly #absentOf: (name: string) => Service;
  readonly #path: string;
  readonly #invocations = new Map<string, Invocation>();
  /** The event of each subagent at work. */
  readonly #working = new Map<string, string>();

  constructor(
    host: Host,
    sessionId: string,
    definitions: readonly ServiceDefinition[],
    ports: SessionServicesPorts,
  ) {
    this.#ports = ports;
    this.#host = host;
    this.#path = servicePath(sessionId, '');
    const own: ServicePorts = {
      invoke: (service, eventId, event) => {
        this.#invocations.set(eventId, { service, event, subagentId: null, isLeft: false });
        ports.reserve(eventId);
      },
      leave: (eventId) => this.#leave(eventId),
      tell: (service, eventId, { priority }, text) => {
        if (text === null) ports.unreserve(eventId);
        else
          ports.notify({
            deliveryId: deliveryAbout(eventId),
            priority,
            label: service.definition.label,
            text,
          });
      },
      isOwed: (eventId) => ports.hasPlace(eventId),
      dropped: (dropped) => ports.dropped(dropped),
      changed: (view) => ports.changed(view),
    };
    this.#services = definitions.map((definition) => new Service(host, sessionId, definition, own));
    const absentOf = (name: string): Service =>
      new Service(host, sessionId, absentService(name), own);
    this.#absentOf = absentOf;
  }

  get views(): readonly ServiceView[] {
    return this.#services.map(({ view }) => view);
  }

  /** What each has become, by its name. */
  get rest(): Readonly<Record<string, ServiceRest>> {
    const all = [...this.#services, ...this.#absent];
    return Object.fromEntries(all.map((service) => [service.name, service.rest]));
  }

  /**
   * Takes in what the journal has of each service; `known`: what each had become before the entries
   * that are folded.
   */
  refold(history: UnitHistory, known: Readonly<Record<string, ServiceRest>> = {}): void {
    const names = [...history.unitIds].flatMap((id) =>
      id.startsWith(this.#path) ? id.slice(this.#path.length) : [],
    );
    const here = new Set(this.#services.map(({ name }) => name));
    const gone = new Set([...Object.keys(known), ...names].filter((name) => !here.has(name)));
    this.#absent = [...gone].map((name) => this.#absentOf(name));
    for (const service of [...this.#services, ...this.#absent]) {
      const { id } = service.unit;
      const rest = ownValue(known, service.name);
      if (rest) service.restore(rest);
      else service.unit.skip(history.before(id));
      service.refold(history.of(id), rest ?? null);
    }
    for (const service of this.#absent) if (service.owed.length > 0) this.#missed(service);
  }

  /** Its events wait until somebody writes it again. */
  #missed({ name, owed }: Service): void {
    const names = this.#services.map((service) => `"${service.name}"`).join(', ');
    const message = `The journal has ${owed.length} event(s) that the service "${name}" has not looked at: expected it among the services, got ${names || 'none'}. They wait until it is there`;
    this.#host.report(new ConfigurationError('UNKNOWN_SERVICE', message), 'services');
  }

  /** The agent of this name that one of the services invokes. */
  agentOf(name: string): SubagentConfig | undefined {
    return this.#services.find(({ definition }) => definition.agent.name === name)?.definition
      .agent;
  }

  start(): void {
    for (const service of this.#services) service.start();
  }

  stop(): void {
    for (const service of this.#services) service.stop();
    this.#abandonAbsent();
  }

  kill(): void {
    for (const service of this.#services) service.kill();
    this.#abandonAbsent();
  }

  /** The session is over, and with it what waits for code that may come again. */
  #abandonAbsent(): void {
    for (const service of this.#absent) service.abandon();
  }

  /** Leaves all of them to the journal. */
  suspend(): void {
    for (const service of this.#services) service.suspend();
  }

  get isBusy(): boolean {
    return this.#services.some(({ unit }) => unit.isBusy);
  }

  /** Calls back once every service is stopped; at once if there is none. */
  whenStopped(callback: () => void): void {
    let left = this.#services.length;
    if (left === 0) callback();
    for (const service of this.#services)
      service.whenStopped(() => {
        left -= 1;
        if (left === 0) callback();
      });
  }

  /** The answer to `reserve`: the outbox has a place for what will be found, or is full. */
  placed(eventId: string, full: Failure | null): void {
    const invocation = this.#invocations.get(eventId);
    if (!invocation || invocation.isLeft) {
      this.#invocations.delete(eventId);
      if (!full) this.#ports.unreserve(eventId);
      return;
    }
    if (full) {
      this.#refused(eventId, invocation, full);
      return;
    }
    const delegated = this.#delegate(eventId, invocation);
    if (delegated.status === 'rejected') {
      this.#ports.unreserve(eventId);
      this.#refused(eventId, invocation, delegated.error);
      return;
    }
    invocation.subagentId = delegated.subagentId;
    this.#working.set(delegated.subagentId, eventId);
    // Begun by a process that is gone, it may have ended before this one knew of it.
    const outcome = this.#ports.outcomeOf(delegated.subagentId);
    if (outcome) this.subagentEnded(delegated.subagentId, outcome);
  }

  /** A subagent has ended; it may be nobody of ours. */
  subagentEnded(subagentId: string, outcome: Outcome): void {
    const eventId = this.#working.get(subagentId);
    const invocation = eventId === undefined ? undefined : this.#invocations.get(eventId);
    if (eventId === undefined || !invocation) return;
    this.#working.delete(subagentId);
    this.#invocations.delete(eventId);
    if (invocation.isLeft) this.#ports.unreserve(eventId);
    else invocation.service.ended(eventId, outcome);
  }

  #delegate(
    eventId: string,
    { service, event }: Invocation,
  ): ReturnType<SessionServicesPorts['delegate']> {
    const { agent } = service.definition;
    try {
      return this.#ports.delegate(eventId, agent, taskOf(agent.name, event));
    } catch (error) {
      // A configuration that cannot work today cannot work tomorrow.
      const failure = { code: 'INTERNAL', message: messageOf(error), retryable: false };
      return { status: 'rejected', error: failure };
    }
  }

  #refused(eventId: string, { service }: Invocation, error: Failure): void {
    this.#invocations.delete(eventId);
    service.refused(eventId, error);
  }

  #leave(eventId: string): void {
    const invocation = this.#invocations.get(eventId);
    if (!invocation) return;
    invocation.isLeft = true;
    if (invocation.subagentId !== null)
      this.#ports.cancel(invocation.subagentId, 'its service was stopped');
  }
}
