// One session that is awake: who uses it, and when it was last of use.
//
// Does not: decide that it leaves (session-pool.ts).

import type { SessionFace } from '../session/view/session-face.ts';

/** What a pool must know of a session; `TextSession` and `VoiceSession` are such. */
export type PooledSession = Pick<
  SessionFace,
  'id' | 'start' | 'hibernate' | 'events' | 'isIdle' | 'nextDueAt'
>;

export class Guest<S extends PooledSession> {
  readonly id: string;
  readonly session: S;
  /** When somebody used it last, or something happened in it; milliseconds since 1970. */
  usedAt: number;
  /** Nothing of it is left here, whoever saw to that. */
  isOver = false;
  /** Settles when it can be used, or cannot be. */
  started: Promise<void> = Promise.resolve();
  readonly #now: () => number;
  #uses = 0;
  #leaving: Promise<void> | null = null;

  /** `gone`: it is over without having been put away; `hasEnded`: it will not go on anywhere. */
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
    // Whoever uses it is told.
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

  /** Nobody uses it, and nothing of it goes on. */
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

  /** Once at a time, however often it is asked for. */
  goAway(leave: () => Promise<void>): Promise<void> {
    // It leaves from here on: what `leave` brings about at once must know.
    this.#leaving ??= Promise.resolve()
      .then(leave)
      .finally(() => (this.#leaving = null));
    return this.#leaving;
  }
}
