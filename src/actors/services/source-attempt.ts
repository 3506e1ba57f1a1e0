// One attempt of an event source: from its `start` until it has released everything.
//
// Owns:     the signal of the attempt, and the promise of `start`.
// Does not: decide when to retry (event-source-machine), or check events (the service).
//
// Invariants
//   SOURCE-ATTEMPT-1. `start` is called once, unless the attempt was already over; `stop` once, after it.
//   SOURCE-ATTEMPT-2. After `abort` the attempt neither emits nor fails.

import { CancelledError } from '../../values/errors.ts';
import type { EventReceipt, EventSourceConfig, ExternalEvent } from '../ports/event-source.ts';
import type { Host } from '../runtime/host.ts';

export interface AttemptPorts {
  started(): void;
  failed(error: unknown): void;
  emitted(event: ExternalEvent): Promise<EventReceipt>;
}

export class SourceAttempt {
  readonly #source: EventSourceConfig;
  readonly #host: Host;
  readonly #ports: AttemptPorts;
  readonly #controller = new AbortController();
  #starting: Promise<void> | null = null;
  #releasing: Promise<void> | null = null;

  constructor(source: EventSourceConfig, host: Host, ports: AttemptPorts) {
    this.#source = source;
    this.#host = host;
    this.#ports = ports;
  }

  begin(): void {
    const { signal } = this.#controller;
    const { environment } = this.#host;
    const settle = (tell: () => void): void => {
      if (!signal.aborted) tell();
    };
    const emit = (event: ExternalEvent): Promise<EventReceipt> =>
      signal.aborted ? Promise.resolve(over) : this.#ports.emitted(event);
    const fail = (error: unknown): void => settle(() => this.#ports.failed(error));
    const report = (error: unknown): void =>
      this.#host.report(error, `event source ${this.#source.name}`);
    environment.scheduler.yieldThen(() => {
      if (signal.aborted) return;
      const start = async (): Promise<void> =>
        this.#source.start(emit, signal, { environment, fail, report });
      this.#starting = start().then(() => settle(() => this.#ports.started()), fail);
    });
  }

  abort(): void {
    this.#controller.abort(new CancelledError('the event source is stopped'));
  }

  /** Releases the attempt. Resolves when that is done; never rejects. */
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
