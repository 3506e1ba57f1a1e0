// Carries out when a connection is exchanged for a fresh one (rotation machine).
//
// Owns:     the timers of it, and how long a connection is trusted to last.
// Does not: decide anything (machine), or hold connections (line).

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

/** A connection is exchanged when it has lasted so much of what it may; the chance makes it less. */
const DUE = 0.95;
const DUE_CHANCE = 0.05;
/** So long before its end nobody waits for a pause any more; of a short time, so much of it. */
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

  /** A candidate is ready, and waits for a pause. */
  get isPrepared(): boolean {
    return this.#actor.getSnapshot().matches({ making: 'prepared' });
  }

  /** A connection is in use that was opened at `since`, and lasts so long at most; null: no limit is known. */
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

  /** The wire ends the connection so soon. */
  expiring(inMs: number): void {
    const lastAt = this.#host.environment.clock.now() + inMs - lastMomentMs(inMs);
    this.tell({ type: 'line.expiring', lastAt });
  }

  candidateLost(): void {
    this.tell({ type: 'candidate.lost', jitter: this.#host.environment.random.next() });
  }

  /** Nobody speaks: the moment may be good. */
  rested(): void {
    const snapshot = this.#actor.getSnapshot();
    if (this.isPrepared || snapshot.matches('awaiting')) this.tell({ type: 'line.rested' });
  }

  /** What follows from it is carried out before this returns, or after what is being carried out. */
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

  /** Nothing is exchanged any more. */
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
