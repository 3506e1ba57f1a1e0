// Carries out the replacement of a connection by a fresh one (rotation machine).
//
// Owns:     the timers, and the expected lifetime of a connection.
// Does not: decide (machine), or hold connections (line).

import { sendHosted, startHosted, stopHosted, type Effect } from '../../actors/runtime/hosting.ts';
import { callSafely, type Host } from '../../actors/runtime/host.ts';
import {
  rotationMachine,
  type BackoffInput,
  type DeadlineInput,
  type RotationFact,
  type RotationInput,
  type RotationNow,
} from '../../machines/index.ts';

/** Fraction of its lifetime after which a connection is replaced; jitter makes it smaller. */
const DUE = 0.95;
const DUE_CHANCE = 0.05;
/**
 * This long before the end of the connection the rotation no longer waits for a pause; for a short lifetime,
 * this fraction of it.
 */
const LAST_MOMENT_MS = 5000;
const LAST_FRACTION = 0.25;

export interface RotationOptions {
  readonly connectTimeoutMs: number;
  readonly backoff: BackoffInput;
}

export interface RotationPorts {
  isAtRest(): boolean;
  canResume(): boolean;
  /** See the effects of the machine. */
  prepare(): void;
  drop(): void;
  takeOver(): void;
  renew(): void;
}

export class Rotation {
  readonly #host: Host;
  readonly #ports: RotationPorts;
  readonly #actor: ReturnType<typeof startHosted<typeof rotationMachine>>;
  readonly #timers = new Map<string, () => void>();
  #posted: Effect[] = [];
  #waiting: RotationFact[] = [];
  #isBusy = false;

  constructor(host: Host, { connectTimeoutMs, backoff }: RotationOptions, ports: RotationPorts) {
    this.#host = host;
    this.#ports = ports;
    const input: RotationInput = { connectTimeoutMs, ...backoff };
    this.#actor = startHosted(
      rotationMachine,
      input,
      { post: (effect) => this.#posted.push(effect) },
      { id: 'rotation', inspect: host.inspect },
    );
  }

  /** Whether a candidate is ready and waits for a pause. */
  get isPrepared(): boolean {
    return this.#actor.getSnapshot().matches({ making: 'prepared' });
  }

  /** Records a connection that was opened at `since` and lasts at most `maxMs`; null if no limit is known. */
  opened(since: number, maxMs: number | null): void {
    const { random } = this.#host.environment;
    this.tell(
      maxMs === null
        ? { type: 'line.opened', dueAt: null, lastAt: 0 }
        : {
            type: 'line.opened',
            dueAt: since + maxMs * (DUE - DUE_CHANCE * random.next()),
            lastAt: since + maxMs - lastMomentMs(maxMs),
          },
    );
  }

  /** Handles the transport's notice that the connection ends in `inMs` milliseconds. */
  expiring(inMs: number): void {
    const lastAt = this.#host.environment.clock.now() + inMs - lastMomentMs(inMs);
    this.tell({ type: 'line.expiring', lastAt });
  }

  candidateLost(): void {
    this.tell({ type: 'candidate.lost', jitter: this.#host.environment.random.next() });
  }

  /** Handles a moment in which no side speaks: the connection may be replaced now. */
  rested(): void {
    const snapshot = this.#actor.getSnapshot();
    if (this.isPrepared || snapshot.matches('awaiting')) this.tell({ type: 'line.rested' });
  }

  /**
   * Passes a fact to the machine. Its effects are carried out before this returns, or after the effects that
   * are running already.
   */
  tell(fact: RotationFact): void {
    this.#waiting.push(fact);
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      sendHosted(this.#actor, { ...next, ...this.#now() });
      for (const effect of this.#posted.splice(0)) this.#carryOut(effect);
    }
    this.#isBusy = false;
  }

  /** Stops the rotation for good. */
  stop(): void {
    stopHosted(this.#actor);
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #now(): RotationNow {
    return {
      at: this.#host.environment.clock.now(),
      isAtRest: this.#ports.isAtRest(),
      canResume: this.#ports.canResume(),
    };
  }

  #carryOut(effect: Effect): void {
    if (effect.kind === 'stop') {
      this.#timers.get(effect.id)?.();
      this.#timers.delete(effect.id);
    } else if (effect.kind === 'start') this.#arm(effect.id, effect.input as DeadlineInput);
    else {
      const name = effect.name as 'prepare' | 'drop' | 'takeOver' | 'renew';
      callSafely(this.#host, 'transport', () => this.#ports[name]());
    }
  }

  #arm(id: string, { dueAt, event }: DeadlineInput): void {
    const { clock, scheduler } = this.#host.environment;
    const cancel = scheduler.schedule(
      () => {
        this.#timers.delete(id);
        this.tell({ type: event, dueAt } as RotationFact);
      },
      dueAt - clock.now(),
      { isBackground: true },
    );
    this.#timers.set(id, cancel);
  }
}

function lastMomentMs(ofMs: number): number {
  return Math.min(LAST_MOMENT_MS, ofMs * LAST_FRACTION);
}
