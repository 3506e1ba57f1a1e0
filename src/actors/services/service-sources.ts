// The event sources of one service: their machines, and each source's current attempt. An attempt lasts from `start`
// until the source has released everything.
//
// Owns:     the attempts with their signals, and each source's last error.
// Does not: decide when to retry (event-source-machine), or check and handle events (service.ts).
//
// Invariants
//   SERVICE-SOURCES-1. `start` is called once per attempt, unless the attempt is already over; `stop` is called once
//       afterwards.
//   SERVICE-SOURCES-2. After its signal aborts, an attempt neither emits nor fails.

import type { InputFrom } from 'xstate';
import { eventSourceMachine, type EventSourceEvent, type Unstamped } from '../../machines/index.ts';
import { CancelledError, CapacityError, messageOf } from '../../values/errors.ts';
import type { EventSourceView } from '../contracts/session-views.ts';
import type { EventReceipt, EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import type { AnyUnit } from '../runtime/commit-unit.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import { Population, type Effect } from '../runtime/hosting.ts';
import type { ServiceDefinition } from './service-config.ts';

/** The parts of a service's unit that its sources use. */
type SourceUnit = AnyUnit & {
  receive(actor: `source:${string}`, event: Unstamped<EventSourceEvent>): void;
};

type Emitted = (source: string, event: ExternalEvent) => Promise<EventReceipt>;

export class ServiceSources {
  readonly #host: Host;
  readonly #unit: SourceUnit;
  readonly #definition: ServiceDefinition;
  readonly #emitted: Emitted;
  readonly lives: Population;
  readonly #attempts = new Map<string, Attempt>();
  readonly #errors = new Map<string, string>();

  constructor(host: Host, unit: SourceUnit, definition: ServiceDefinition, emitted: Emitted) {
    this.#host = host;
    this.#unit = unit;
    this.#definition = definition;
    this.#emitted = emitted;
    this.lives = new Population(eventSourceMachine, 'source', unit, host);
  }

  /** Creates the machines in the unit's first transaction. */
  create(): void {
    for (const { name } of this.#definition.eventSources) this.lives.create(name, this.limits);
  }

  get limits(): InputFrom<typeof eventSourceMachine> {
    const { sourceBackoff, stableMs, stopTimeoutMs } = this.#definition;
    return { ...sourceBackoff, stableMs, stopTimeoutMs };
  }

  /** Whether every source has been released or given up, and none will restart. */
  get areStopped(): boolean {
    return this.lives.ids.every((name) => this.lives.stateOf(name)?.done);
  }

  get views(): readonly EventSourceView[] {
    return this.#definition.eventSources.map(({ name }) => {
      const state = this.lives.stateOf(name);
      const { failures = 0 } = (state?.context ?? {}) as { failures?: number };
      const error = this.#errors.get(name) ?? null;
      return { name, state: shownState(state?.value), failures, error };
    });
  }

  release(name: string, effect: Effect): void {
    const source = this.#definition.eventSources.find((other) => other.name === name);
    if (!source) return;
    const { attempt = 0 } = (effect.kind === 'start' ? effect.input : {}) as { attempt?: number };
    switch (`${effect.kind} ${effect.name}`) {
      case 'start attempt':
        this.#begin(source, attempt);
        break;
      case 'stop attempt':
        this.#attempts.get(name)?.abort();
        break;
      case 'start release':
        void this.#attempts
          .get(name)
          ?.release()
          .then(() => this.#tell(name, { type: 'source.released', attempt }));
        break;
      case 'do abandoned':
        this.#host.report(
          new CapacityError(
            'SOURCE_NOT_STOPPED',
            `Event source ${name} did not stop within ${this.#definition.stopTimeoutMs} ms`,
          ),
          this.#where(name),
        );
        break;
      default:
        break;
    }
  }

  /** Releases all sources without waiting for them. */
  kill(): void {
    for (const attempt of this.#attempts.values()) void attempt.release();
    this.lives.stop();
  }

  #begin(source: EventSourceConfig, attempt: number): void {
    const { name } = source;
    let isStarted = false;
    const started = (): void => {
      if (isStarted) return;
      isStarted = true;
      this.#tell(name, { type: 'source.started', attempt });
    };
    const begun = new Attempt(source, this.#host, {
      started,
      failed: (error) => {
        this.#errors.set(name, messageOf(error));
        this.#host.report(error, this.#where(name));
        const jitter = this.#host.environment.random.next();
        this.#tell(name, { type: 'source.failed', attempt, jitter });
      },
      emitted: (event) => {
        started();
        return this.#emitted(name, event);
      },
    });
    this.#attempts.set(name, begun);
    begun.begin();
  }

  #tell(name: string, event: Unstamped<EventSourceEvent>): void {
    callSafely(this.#host, this.#where(name), () => this.#unit.receive(`source:${name}`, event));
  }

  #where(name: string): string {
    return `event source ${name} of service ${this.#definition.name}`;
  }
}

/** Returns a source's public state. A removed source counts as stopped. */
function shownState(value: unknown): EventSourceView['state'] {
  if (value === undefined) return 'stopped';
  if (typeof value === 'string') return value as EventSourceView['state'];
  const [[state, inner] = []] = Object.entries(value as Record<string, string>);
  return (state === 'live' ? inner : state) as EventSourceView['state'];
}

interface AttemptEvents {
  started(): void;
  failed(error: unknown): void;
  emitted(event: ExternalEvent): Promise<EventReceipt>;
}

class Attempt {
  readonly #source: EventSourceConfig;
  readonly #host: Host;
  readonly #events: AttemptEvents;
  readonly #controller = new AbortController();
  #starting: Promise<void> | null = null;
  #releasing: Promise<void> | null = null;

  constructor(source: EventSourceConfig, host: Host, events: AttemptEvents) {
    this.#source = source;
    this.#host = host;
    this.#events = events;
  }

  begin(): void {
    const { signal } = this.#controller;
    const { environment } = this.#host;
    const settle = (tell: () => void): void => {
      if (!signal.aborted) tell();
    };
    const emit = (event: ExternalEvent): Promise<EventReceipt> =>
      signal.aborted ? Promise.resolve(over) : this.#events.emitted(event);
    const fail = (error: unknown): void => settle(() => this.#events.failed(error));
    const report = (error: unknown): void =>
      this.#host.report(error, `event source ${this.#source.name}`);
    environment.scheduler.yieldThen(() => {
      if (signal.aborted) return;
      const start = async (): Promise<void> =>
        this.#source.start(emit, signal, { environment, fail, report });
      this.#starting = start().then(() => settle(() => this.#events.started()), fail);
    });
  }

  abort(): void {
    this.#controller.abort(new CancelledError('the event source is stopped'));
  }

  /** Releases the attempt. Resolves when the attempt has been released; never rejects. */
  release(): Promise<void> {
    this.abort();
    this.#releasing ??= this.#free();
    return this.#releasing;
  }

  async #free(): Promise<void> {
    if (!this.#starting) return;
    try {
      await this.#source.stop?.();
    } catch (error) {
      this.#host.report(error, `stop of event source ${this.#source.name}`);
    }
    await this.#starting;
  }
}

const over: EventReceipt = {
  accepted: false,
  reason: 'stopped',
  message: 'The event source is stopped',
};
