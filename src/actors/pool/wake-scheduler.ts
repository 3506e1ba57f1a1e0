// Schedules a pool's searches for sessions that must be awake: at the next known wake time, and at intervals, because
// other processes also know wake times, and may die.
//
//   known time ─▶ those behind whoever is awake ─┐
//                                                ├─▶ wake, some at a time ─▶ the next known time
//   round ──────▶ all, from the first one on ────┘
//
// Owns:     the timer, the progress of a search, and the sessions left for the next round.
// Does not: wake sessions (session-pool.ts), or know which process has a session (the session's claim decides).
//
// Invariants
//   WAKE-SCHEDULER-1. After the first search, a round starts at least every 1.25 × `lookMs`, even if a search failed.
//   WAKE-SCHEDULER-2. A session that could not be woken is retried in the next round, not earlier. Otherwise, a session
//       that another process has, or that cannot start, would cause a busy loop.
//   WAKE-SCHEDULER-3. Processes that share a journal do not search at the same moment. If the journal can give each
//       process different sessions (`take`), no process tries to wake the sessions that another process was given.
//   WAKE-SCHEDULER-4. After `stop`, no session is woken.

import type { Environment } from '../ports/environment.ts';
import type { WakeTime, WakeTimes } from '../ports/wake-times.ts';

/** A position in the wake times that comes after those of all awake sessions, and before every deadline. */
const ASLEEP: WakeTime = { at: Number.MIN_VALUE, scope: '' };
/** The number of sessions that are woken at the same time. */
const BATCH = 16;
/** WAKE-SCHEDULER-3. The maximum random delay that is added to a wake time that other processes may also know. */
const SPREAD_MS = 1000;

export interface AlarmPorts {
  readonly environment: Environment;
  readonly times: WakeTimes;
  /** The approximate time between two rounds. */
  readonly lookMs: number;
  /** Whether other processes may have pools on this journal. */
  readonly isShared: boolean;
  /**
   * Wakes a session; `isTaken`: whether this process has already claimed it. Resolves to whether any process has the
   * session. Never rejects.
   */
  wake(sessionId: string, isTaken: boolean): Promise<boolean>;
  /** Reports the error of a search that was not started by a caller. */
  failed(error: unknown): void;
}

export class WakeScheduler {
  readonly #ports: AlarmPorts;
  /** WAKE-SCHEDULER-2 */
  readonly #missed = new Set<string>();
  #roundAt = -Infinity;
  #at = Infinity;
  #cancel: (() => void) | null = null;
  /** The current calls of `take`; each ends when the sessions that it returned are awake. */
  readonly #takes = new Set<Promise<void>>();
  #isStopped = false;

  constructor(ports: AlarmPorts) {
    this.#ports = ports;
  }

  /** Wakes the sessions whose time has come. Rejects if the wake times cannot be read; the next round tries again. */
  async look(): Promise<void> {
    // With an infinite interval, every search is a round.
    const isRound = this.#ports.lookMs === Infinity || this.#now >= this.#roundAt;
    if (isRound) {
      this.#missed.clear();
      const { environment, lookMs } = this.#ports;
      // WAKE-SCHEDULER-3
      this.#roundAt = this.#now + lookMs * (0.75 + environment.random.next() / 2);
    }
    // WAKE-SCHEDULER-1. Set first, because any later step may fail or hang.
    this.#set(this.#roundAt);
    if (this.#ports.times.take) await this.#takeDue();
    else await this.#wakeDue(isRound ? undefined : ASLEEP);
  }

  /** Schedules a search at a time at which a session must be awake. */
  knows(at: number): void {
    const { isShared, environment } = this.#ports;
    this.#set(isShared ? at + environment.random.next() * SPREAD_MS : at);
  }

  /** Postpones a session that could not be woken until the next round. */
  missed(sessionId: string): void {
    this.#missed.add(sessionId);
    this.#set(Math.max(this.#roundAt, this.#now));
  }

  /** Resolves when all sessions that are being taken have been woken or given up. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await Promise.allSettled(this.#takes);
  }

  /** WAKE-SCHEDULER-3 */
  async #takeDue(): Promise<void> {
    const { times } = this.#ports;
    let now: number;
    let count: number;
    do {
      if (this.#isStopped) return;
      now = this.#now;
      count = 0;
      const take = this.#take(now, (taken) => (count = taken));
      this.#takes.add(take);
      await take.finally(() => this.#takes.delete(take));
    } while (count === BATCH);
    if (this.#isStopped) return;
    const after = { at: now, scope: '\u{10ffff}' };
    const [next] = await times.earliest({ after, limit: 1, exceptClaimed: true });
    if (next) this.knows(next.at);
  }

  async #take(now: number, took: (count: number) => void): Promise<void> {
    const { times, wake } = this.#ports;
    const taken = (await times.take?.({ now, limit: BATCH, except: [...this.#missed] })) ?? [];
    took(taken.length);
    await Promise.all(
      taken.map(async (scope) => {
        if (!(await wake(scope, true))) this.#missed.add(scope);
      }),
    );
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
          if (!this.#missed.has(scope) && !(await wake(scope, false))) this.#missed.add(scope);
        }),
      );
      const next = found[due.length];
      if (next) this.knows(next.at);
      if (next || found.length < BATCH) return;
      after = found.at(-1);
    }
  }

  #set(at: number): void {
    if (this.#isStopped || at >= this.#at || at === Infinity) return;
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
