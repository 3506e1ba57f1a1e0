// One session's services, which start and stop with it. An invocation first reserves a place in the outbox, so that its
// message is not dropped. The agent then works as a subagent, under the same limits as all others.
//
// Owns:     the services, and each invocation's place and subagent.
// Does not: order events, decide limits, or speak (the service, the supervisor and the outbox do).
//
// Invariants
//   SESSION-SERVICES-1. Each granted place is used for a notice or freed, exactly once.
//   SESSION-SERVICES-2. An abandoned invocation cancels its subagent; the subagent's later result is not reported.
//   SESSION-SERVICES-3. `stop` stops every service, and `whenStopped` calls back when all have stopped
//       completely.
//   SESSION-SERVICES-4. A service that is no longer in the code keeps its state and its counts, and continues when the
//       code contains it again.

import type { Shown } from '../runtime/hosting.ts';
import type { DeliveryPriority, Failure } from '../../machines/index.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { ownValue } from '../../values/own-value.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { deliveryAbout } from '../contracts/records.ts';
import type { DroppedEvent, ServiceView } from '../contracts/session-views.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentTask } from '../contracts/task.ts';
import { absentService, type ServiceDefinition } from './service-config.ts';
import { taskOf, type CheckedEvent } from './service-events.ts';
import { Service, servicePath, type ServicePorts, type ServiceSnapshot } from './service.ts';

/** A service's message to the user, for which a place in the outbox is reserved. */
interface ServiceNotice {
  readonly deliveryId: string;
  readonly priority: DeliveryPriority;
  readonly label: string;
  readonly text: string;
}

/** The session functions that the services need. */
interface SessionServicesPorts {
  /** Requests a place in the outbox; `placed` is called exactly once with the answer. */
  reserve(eventId: string): void;
  /** Frees the place granted for this event. */
  unreserve(eventId: string): void;
  /** Returns whether a place was granted for this event and has been neither used nor freed yet. */
  hasPlace(eventId: string): boolean;
  /** Delegates an event to the agent; the same event always gets the same subagent. */
  delegate(
    eventId: string,
    definition: SubagentDefinition,
    task: SubagentTask,
  ):
    | { readonly status: 'accepted'; readonly subagentId: string }
    | { readonly status: 'rejected'; readonly error: Failure };
  /** Returns a subagent's outcome; null while it is running. */
  outcomeOf(subagentId: string): Outcome | null;
  cancel(subagentId: string, reason: string): void;
  notify(notice: ServiceNotice): void;
  dropped(dropped: DroppedEvent): void;
  changed(view: ServiceView): void;
}

/** A session's journal entries, by unit. */
interface UnitHistory {
  readonly unitIds: Iterable<string>;
  /** Returns the entries to fold. */
  of(unit: string): readonly JournalEntry[];
  /** Returns the number of the unit's earlier entries, including those of an earlier session with this id. */
  before(unit: string): number;
}

interface Invocation {
  readonly service: Service;
  readonly event: CheckedEvent;
  /** The subagent that is examining the event; null until the place is granted. */
  subagentId: string | null;
  /** Whether the service no longer needs the result. */
  isLeft: boolean;
}

export class SessionServices {
  readonly #ports: SessionServicesPorts;
  readonly #services: readonly Service[];
  /** The services that are in the journal but not in the code (SESSION-SERVICES-4). */
  #absent: readonly Service[] = [];
  readonly #host: Host;
  readonly #absentOf: (name: string) => Service;
  readonly #path: string;
  readonly #invocations = new Map<string, Invocation>();
  /** The event that each running subagent is examining. */
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
    this.#absentOf = (name) => new Service(host, sessionId, absentService(name), own);
  }

  get views(): readonly ServiceView[] {
    return this.#services.map(({ view }) => view);
  }

  /** The services' machines, as exposed through their actors. */
  *machines(): Iterable<Shown> {
    for (const { shown } of this.#services) yield shown;
  }

  /** Each service's snapshot, by name. */
  toSnapshot(): Readonly<Record<string, ServiceSnapshot>> {
    const all = [...this.#services, ...this.#absent];
    return Object.fromEntries(all.map((service) => [service.name, service.toSnapshot()]));
  }

  /** Folds each service's journal entries; `known`: the snapshots made before these entries. */
  refold(history: UnitHistory, known: Readonly<Record<string, ServiceSnapshot>> = {}): void {
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
      else service.unit.setSequence(history.before(id));
      service.refold(history.of(id));
    }
    for (const service of this.#absent) if (service.owed.length > 0) this.#missed(service);
  }

  /** Reports a service that is not in the code. Its events wait until the code contains it again. */
  #missed({ name, owed }: Service): void {
    const names = this.#services.map((service) => `"${service.name}"`).join(', ');
    const message = `The journal has ${owed.length} event(s) that the service "${name}" has not looked at: expected it among the services, got ${names || 'none'}. They wait until it is there`;
    this.#host.report(new ConfigurationError('UNKNOWN_SERVICE', message), 'services');
  }

  /** Returns the agent that a service with this name invokes. */
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

  /** Ends the services that are missing from the code, because the session has ended. */
  #abandonAbsent(): void {
    for (const service of this.#absent) service.abandon();
  }

  /** Suspends all services, which later resume from the journal. */
  suspend(): void {
    for (const service of this.#services) service.suspend();
  }

  get isBusy(): boolean {
    return this.#services.some(({ unit }) => unit.isBusy);
  }

  /** Calls back once every service has stopped, or immediately if there are no services. */
  whenStopped(callback: () => void): void {
    let left = this.#services.length;
    if (left === 0) callback();
    for (const service of this.#services)
      service.whenStopped(() => {
        left -= 1;
        if (left === 0) callback();
      });
  }

  /** Handles the outbox's answer to `reserve`: a place for the message, or a refusal. */
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
    // An earlier process's subagent may already have ended.
    const outcome = this.#ports.outcomeOf(delegated.subagentId);
    if (outcome) this.subagentEnded(delegated.subagentId, outcome);
  }

  /** Handles the end of a subagent, which may not belong to a service. */
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
      // An invalid configuration stays invalid, so the refusal is not retried.
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
