// When a pool looks for sessions that must be awake: at the time that is known of the next one, and
// from time to time, since other processes know of times too, and can die with them.
//
//   known time ─▶ those behind whoever is awake ─┐
//                                                ├─▶ wake, some at a time ─▶ the next known time
//   round ──────▶ all, from the first one on ────┘
//
// Owns:     the one timer, how far a look goes, and who is left for the next round.
// Does not: wake anybody (session-pool.ts), or know who has a session: its claim decides.
//
// Invariants
//   ALARM-1. From the first look on there is a round at least every 1.25 × `lookMs`, however a look went.
//   ALARM-2. Whoever could not be woken is tried again in the next round, and not before: a look that finds
//        somebody whom another process has, or who cannot be started, is not followed by a busy one.
//   ALARM-3. Processes that share a journal do not look at the same instant.
//   ALARM-4. After `stop` nobody is woken any more.

import type { Environment } from '../ports/environment.ts';
import type { WakeTime, WakeTimes } from '../ports/wake-times.ts';

/** What is awake is due at any time: its process may die. */
export const AT_ONCE = 0;
/** Behind what is awake: no deadline is as early as this. */
const ASLEEP: WakeTime = { at: Number.MIN_VALUE, scope: '' };
/** So many are woken together. */
const BATCH = 16;
/** ALARM-3. A known time is looked at so much later at most, where others may know it too. */
const SPREAD_MS = 1000;

export interface AlarmPorts {
  readonly environment: Environment;
  readonly times: WakeTimes;
  /** The time between two rounds, more or less. */
  readonly lookMs: number;
  /** Other processes may have pools on this journal. */
  readonly isShared: boolean;
  /** Resolves to whether somebody saw to it. Never rejects. */
  wake(sessionId: string): Promise<boolean>;
  /** A look that nobody waits for has failed. */
  failed(error: unknown): void;
}

export class Alarm {
  readonly #ports: AlarmPorts;
  /** ALARM-2 */
  readonly #missed = new Set<string>();
  #roundAt = -Infinity;
  #at = Infinity;
  #cancel: (() => void) | null = null;
  #isStopped = false;

  constructor(ports: AlarmPorts) {
    this.#ports = ports;
  }

  /** Wakes those whose time has come. Rejects where the times cannot be read: it is tried again. */
  async look(): Promise<void> {
    const isRound = this.#now >= this.#roundAt;
    if (isRound) {
      this.#missed.clear();
      const { environment, lookMs } = this.#ports;
      // ALARM-3
      this.#roundAt = this.#now + lookMs * (0.75 + environment.random.next() / 2);
    }
    // ALARM-1. Before anything that can fail, or hang.
    this.#set(this.#roundAt);
    await this.#wakeDue(isRound ? undefined : ASLEEP);
  }

  /** Somebody must be awake then. */
  knows(at: number): void {
    const { isShared, environment } = this.#ports;
    this.#set(isShared ? at + environment.random.next() * SPREAD_MS : at);
  }

  /** It could not be woken: in the next round again. */
  missed(sessionId: string): void {
    this.#missed.add(sessionId);
    this.#set(Math.max(this.#roundAt, this.#now));
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  async #wakeDue(from: WakeTime | undefined): Promise<void> {
    const { times, wake } = this.#ports;
    let after = from;
    for (;;) {
      const found = await times.earliest({
        ...(after && { after }),
        limit: BATCH,
        exceptClaimed: true,
      });
      if (this.#isStopped) return;
      const due = found.filter(({ at }) => at <= this.#now);
      await Promise.all(
        due.map(async ({ scope }) => {
          if (!this.#missed.has(scope) && !(await wake(scope))) this.#missed.add(scope);
        }),
      );
      const next = found[due.length];
      if (next) this.knows(next.at);
      if (next || found.length < BATCH) return;
      after = found.at(-1);
    }
  }

  #set(at: number): void {
    if (this.#isStopped || at >= this.#at) return;
    this.#cancel?.();
    this.#at = at;
    const { environment, failed } = this.#ports;
    this.#cancel = environment.scheduler.schedule(
      () => {
        this.#at = Infinity;
        this.look().catch(failed);
      },
      Math.max(0, at - this.#now),
      { isBackground: true },
    );
  }

  get #now(): number {
    return this.#ports.environment.clock.now();
  }
}
