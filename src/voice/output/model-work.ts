// A model that thinks before it speaks says that it works: it is not idle then, though it
// has no response under way.
//
// Owns:     what the model last said of itself, and the patience with it.
// Does not: know what it works at.
//
// Invariants
//   MODEL-WORK-1. A model that works counts as generating: nothing is asked of it, and nothing offered.
//   MODEL-WORK-2. Without a sign of life for `timeoutMs` its word is not believed any more (RESPONSES-6).

import type { Environment } from '../../actors/ports/environment.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import { ProviderError } from '../../values/errors.ts';

export interface ModelWorkPorts {
  begun(): void;
  /** It is idle, or taken as idle. */
  ended(): void;
  report(error: unknown): void;
}

export class ModelWork {
  readonly #ports: ModelWorkPorts;
  readonly #watchdog: Watchdog;
  readonly #timeoutMs: number;
  #isWorking = false;

  constructor(environment: Environment, ports: ModelWorkPorts, timeoutMs: number) {
    this.#ports = ports;
    this.#timeoutMs = timeoutMs;
    this.#watchdog = new Watchdog(environment, () => {
      const message = `The model announced work, and sent no further event for ${timeoutMs} ms`;
      ports.report(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
      this.changed('idle');
    });
  }

  get isWorking(): boolean {
    return this.#isWorking;
  }

  changed(status: 'working' | 'idle'): void {
    const wasWorking = this.#isWorking;
    this.#isWorking = status === 'working';
    if (this.#isWorking) this.#watchdog.watch(this.#timeoutMs);
    else this.#watchdog.stop();
    if (this.#isWorking && !wasWorking) this.#ports.begun();
    if (!this.#isWorking && wasWorking) this.#ports.ended();
  }

  /** Something was heard of the model. */
  sign(): void {
    if (this.#isWorking) this.#watchdog.sign();
  }

  /** Whoever said it is gone. */
  reset(): void {
    this.#isWorking = false;
    this.#watchdog.stop();
  }
}
