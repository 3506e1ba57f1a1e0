// The event sources of one service: their machines, and the current attempt of each.
//
// Owns:     the attempts, and the last error of each source.
// Does not: decide when to retry (event-source-machine), or handle events (service).

import { CapacityError, messageOf } from '../../values/errors.ts';
import { eventSourceMachine, type Stamped } from '../../machines/index.ts';
import type { EventReceipt, EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import type { CommitUnit, UnitEvent } from '../runtime/commit-unit.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import type { Effect } from '../runtime/hosting.ts';
import { Population } from '../runtime/population.ts';
import type { ServiceDefinition } from './service-config.ts';
import type { EventSourceView } from '../contracts/service-view.ts';
import { SourceAttempt } from './source-attempt.ts';

type Emitted = (source: string, event: ExternalEvent) => Promise<EventReceipt>;

export class ServiceSources {
  readonly #host: Host;
  readonly #unit: CommitUnit;
  readonly #definition: ServiceDefinition;
  readonly #emitted: Emitted;
  readonly #lives: Population;
  readonly #attempts = new Map<string, SourceAttempt>();
  readonly #errors = new Map<string, string>();

  constructor(host: Host, unit: CommitUnit, definition: ServiceDefinition, emitted: Emitted) {
    this.#host = host;
    this.#unit = unit;
    this.#definition = definition;
    this.#emitted = emitted;
    this.#lives = new Population(eventSourceMachine, 'source', unit, host);
  }

  /** Creates the machines within the first transaction of the unit. */
  create(): void {
    const { eventSources, sourceBackoff, stableMs, stopTimeoutMs } = this.#definition;
    for (const { name } of eventSources)
      this.#lives.create(name, { ...sourceBackoff, stableMs, stopTimeoutMs });
  }

  get names(): readonly string[] {
    return this.#lives.ids;
  }

  /** Whether each source was released or given up, and none begins again. */
  get areStopped(): boolean {
    return this.names.every((name) => this.#lives.stateOf(name)?.done);
  }

  get views(): readonly EventSourceView[] {
    return this.#definition.eventSources.map(({ name }) => {
      const state = this.#lives.stateOf(name);
      const { failures = 0 } = (state?.context ?? {}) as { failures?: number };
      const error = this.#errors.get(name) ?? null;
      return { name, state: shownState(state?.value), failures, error };
    });
  }

  accepts(name: string, event: UnitEvent & Stamped): boolean {
    return this.#lives.accepts(name, event);
  }

  apply(name: string, event: UnitEvent & Stamped): void {
    this.#lives.apply(name, event);
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
    this.#lives.stop();
  }

  #begin(source: EventSourceConfig, attempt: number): void {
    const { name } = source;
    let isStarted = false;
    const started = (): void => {
      if (isStarted) return;
      isStarted = true;
      this.#tell(name, { type: 'source.started', attempt });
    };
    const begun = new SourceAttempt(source, this.#host, {
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

  #tell(name: string, event: UnitEvent & Record<string, unknown>): void {
    callSafely(this.#host, this.#where(name), () => this.#unit.receive(`source:${name}`, event));
  }

  #where(name: string): string {
    return `event source ${name} of service ${this.#definition.name}`;
  }
}

/** Returns the public state of a source; a removed one is stopped. */
function shownState(value: unknown): EventSourceView['state'] {
  if (value === undefined) return 'stopped';
  if (typeof value === 'string') return value as EventSourceView['state'];
  const [[state, inner] = []] = Object.entries(value as Record<string, string>);
  return (state === 'live' ? inner : state) as EventSourceView['state'];
}
