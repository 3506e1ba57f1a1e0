// One awake session with its current users and the time of its last use.
//
// Does not: decide when it leaves (session-pool.ts).

import type { BaseSession } from '../session/view/base-session.ts';

/** The part of a session that a pool needs; `TextSession` and `VoiceSession` implement it. */
export type PooledSession = Pick<
  BaseSession,
  'id' | 'start' | 'hibernate' | 'events' | 'isIdle' | 'nextDueAt'
>;

export class PooledEntry<S extends PooledSession> {
  readonly id: string;
  readonly session: S;
  /** When it was last used, or an event last happened in it, in milliseconds since 1970. */
  usedAt: number;
  /** Whether the session has ended or left this process, for any reason. */
  isOver = false;
  /** Settles when it can be used, or when its start has failed. */
  started: Promise<void> = Promise.resolve();
  readonly #now: () => number;
  #uses = 0;
  #leaving: Promise<void> | null = null;

  /**
   * @param gone Called when it is over without having been suspended by the pool; `hasEnded`: it continues
   *   nowhere.
   */
  constructor(id: string, session: S, now: () => number, gone: (hasEnded: boolean) => void) {
    this.id = id;
    this.session = session;
    this.#now = now;
    this.usedAt = now();
    session.events.subscribe(({ type }) => {
      this.usedAt = now();
      if (type !== 'session.ended' && type !== 'session.suspended') return;
      this.isOver = true;
      gone(type === 'session.ended');
    });
  }

  begin(start: () => Promise<void>): void {
    this.started = start();
    // The users of the session receive the error.
    this.started.catch(() => {});
  }

  enter(): void {
    this.#uses += 1;
    this.usedAt = this.#now();
  }

  leave(): void {
    this.#uses -= 1;
    this.usedAt = this.#now();
  }

  /** Whether the session is unused and idle. */
  get mayLeave(): boolean {
    return this.#uses === 0 && !this.isLeaving && (this.isOver || this.session.isIdle);
  }

  get isLeaving(): boolean {
    return this.#leaving !== null;
  }

  /** Settles when it has left, or stays after all. */
  get left(): Promise<void> {
    return (this.#leaving ?? Promise.resolve()).catch(() => {});
  }

  /** Makes the session leave; concurrent calls share one attempt. */
  goAway(leave: () => Promise<void>): Promise<void> {
    // `#leaving` is set before `leave` runs, so that events that `leave` causes see it.
    this.#leaving ??= Promise.resolve()
      .then(leave)
      .finally(() => (this.#leaving = null));
    return this.#leaving;
  }
}
