// Tracks a model that reports that it is thinking before it speaks: such a model is not idle, although it has
// no response under way.
//
// Owns:     the last working state that the model reported, and the timeout for it.
// Does not: know the task that the model works on.
//
// Invariants
//   MODEL-WORK-1. A working model counts as generating: it receives no request and no offer.
//   MODEL-WORK-2. After `timeoutMs` without a sign of life the model counts as idle (RESPONSES-6).

import type { Environment } from '../../actors/ports/environment.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import { ProviderError } from '../../values/errors.ts';

export interface ModelWorkPorts {
  begun(): void;
  /** Reports that the model is idle, or is taken as idle. */
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

  /** Records a sign of life of the model. */
  sign(): void {
    if (this.#isWorking) this.#watchdog.touch();
  }

  /** Forgets the state when the connection or its agent is gone. */
  reset(): void {
    this.#isWorking = false;
    this.#watchdog.stop();
  }
}
