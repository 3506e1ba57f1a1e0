// Sessions that are in memory only while something of them goes on: a million that wait for an
// answer take room in the journal, and none here.
//
//            use, or its time has come
//   asleep ────────────────────────────▶ awake ──▶ nobody uses it, and it has been idle for long
//     ▲                                                             │
//     └──────────────────────── hibernates ◀────────────────────────┘
//
// Owns:     which sessions are awake, and when one of the others must be.
// Does not: know what a session does (idleness.ts), or keep anything of one (its journal does).
//
// Invariants
//   PL1. At most one session of an id is awake: whoever wants it while it leaves waits until it has left.
//   PL2. Who is being used is not put away, nor who is not idle.
//   PL3. Whoever is put away is looked at again when its next deadline is due, also by another
//        process: the time is kept before it leaves.
//   PL4. What was awake when a process died is looked at by the next one's `start`.

import { messageOf, OffstageError } from '../../errors.ts';
import { memoryWakeTimes, type WakeTime, type WakeTimes } from '../ports/wake-times.ts';
import { Guest, type PooledSession } from './guest.ts';
import { checkedPool, type SessionPoolOptions } from './pool-options.ts';

/** What was awake is due at any time. */
const AT_ONCE = 0;
/** Behind what is awake: no deadline is as early as this. */
const ASLEEP: WakeTime = { at: Number.MIN_VALUE, scope: '' };
/** So many are looked at together. */
const BATCH = 16;

export interface SessionPool<S extends PooledSession> {
  /** How many are awake. */
  readonly awakeCount: number;
  /** The session of this id, if it is awake: for a look at it. */
  awake(sessionId: string): S | undefined;
  /**
   * Hands the session to `use`: it is woken for it, or begun if there is none yet, and stays awake
   * until what `use` returns has settled. Returns what `use` does.
   * @throws {OffstageError} `POOL_CLOSED`; what `open`, the start of the session, or `use` throws.
   */
  use<T>(sessionId: string, use: (session: S) => T | Promise<T>): Promise<T>;
  /** Looks at what an earlier process left awake, and at what is due; the first thing to do. */
  start(): Promise<void>;
  /** Puts all away, whatever they are doing; they go on in the next pool. Safe to call twice. */
  close(): Promise<void>;
}

/** @throws {ConfigurationError} `INVALID_OPTION`, which names the option and what was expected. */
export function createSessionPool<S extends PooledSession>(
  options: SessionPoolOptions<S>,
): SessionPool<S> {
  return new Pool(options);
}

class Pool<S extends PooledSession> implements SessionPool<S> {
  readonly #options;
  readonly #times: WakeTimes;
  readonly #guests = new Map<string, Guest<S>>();
  #stopSweep: (() => void) | null = null;
  #stopAlarm: (() => void) | null = null;
  #alarmAt = Infinity;
  #closed: Promise<void> | null = null;

  constructor(options: SessionPoolOptions<S>) {
    this.#options = checkedPool(options);
    this.#times = options.runtime.journal.wakeTimes ?? memoryWakeTimes();
  }

  get awakeCount(): number {
    return this.#guests.size;
  }

  awake(sessionId: string): S | undefined {
    const guest = this.#guests.get(sessionId);
    return guest?.isLeaving ? undefined : guest?.session;
  }

  async use<T>(sessionId: string, use: (session: S) => T | Promise<T>): Promise<T> {
    const guest = await this.#guest(sessionId);
    try {
      await guest.started;
      return await use(guest.session);
    } finally {
      guest.leave();
      this.#sweepLater();
    }
  }

  async start(): Promise<void> {
    await this.#wakeDue();
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#stopSweep?.();
    this.#stopAlarm?.();
    // Whoever could not be started is gone by itself.
    await Promise.allSettled([...this.#guests.values()].map((guest) => this.#putAway(guest)));
  }

  /** The one that is awake, or is woken; it is counted as used from here on. */
  async #guest(sessionId: string): Promise<Guest<S>> {
    for (;;) {
      if (this.#closed) throw new OffstageError('POOL_CLOSED', 'The pool was closed');
      const known = this.#guests.get(sessionId);
      if (known && !known.isLeaving) {
        known.enter();
        return known;
      }
      if (!known) return this.#wake(sessionId);
      // PL1
      await known.left;
    }
  }

  #wake(sessionId: string): Guest<S> {
    this.#makeRoom();
    const session = this.#options.open(sessionId);
    const guest = new Guest(
      sessionId,
      session,
      () => this.#now,
      () => {
        if (this.#guests.get(sessionId) !== guest || guest.isLeaving) return;
        // It has ended, or its journal has passed to somebody else: nothing is due here.
        this.#guests.delete(sessionId);
        void this.#quietly(`the time of ${sessionId}`, () => this.#times.set(sessionId, null));
      },
    );
    this.#guests.set(sessionId, guest);
    guest.enter();
    guest.begin(async () => {
      try {
        await session.start();
        // PL4. Not before: it may be another process that has it.
        await this.#times.set(sessionId, AT_ONCE);
      } catch (error) {
        // Another try may begin at once.
        await guest.goAway(() => session.hibernate());
        this.#guests.delete(sessionId);
        throw error;
      }
    });
    return guest;
  }

  /** Who has been idle for longest goes first; one more is awake where nobody is idle. */
  #makeRoom(): void {
    if (this.#guests.size < this.#options.maxAwake) return;
    const idle = [...this.#guests.values()].filter((guest) => guest.mayLeave);
    const [first] = idle.toSorted((one, other) => one.usedAt - other.usedAt);
    if (first) void this.#quietly(`putting ${first.id} away`, () => this.#putAway(first));
  }

  #putAway(guest: Guest<S>): Promise<void> {
    return guest.goAway(async () => {
      const { id, session } = guest;
      await guest.started;
      const dueAt = session.nextDueAt;
      try {
        // PL3
        await this.#times.set(id, session.isIdle ? dueAt : AT_ONCE);
        await session.hibernate();
      } finally {
        if (this.#guests.get(id) === guest) this.#guests.delete(id);
      }
      if (dueAt !== null) this.#alarm(dueAt);
    });
  }

  #sweepLater(): void {
    if (this.#stopSweep || this.#closed || this.#guests.size === 0) return;
    const { runtime, idleMs } = this.#options;
    this.#stopSweep = runtime.environment.scheduler.schedule(
      () => {
        this.#stopSweep = null;
        this.#sweep();
        this.#sweepLater();
      },
      idleMs,
      { isBackground: true },
    );
  }

  #sweep(): void {
    const since = this.#now - this.#options.idleMs;
    for (const guest of this.#guests.values())
      if (guest.mayLeave && guest.usedAt <= since)
        void this.#quietly(`putting ${guest.id} away`, () => this.#putAway(guest));
  }

  /** Wakes those whose time has come, and sets the clock for the next one. */
  async #wakeDue(from?: WakeTime): Promise<void> {
    let after = from;
    for (;;) {
      const found = await this.#times.earliest({ ...(after && { after }), limit: BATCH });
      if (this.#closed) return;
      const due = found.filter(({ at }) => at <= this.#now);
      await Promise.all(due.map(({ scope }) => this.#look(scope)));
      const next = found[due.length];
      if (next) this.#alarm(next.at);
      if (next || found.length < BATCH) return;
      after = found.at(-1);
    }
  }

  #look(sessionId: string): Promise<void> {
    return this.#quietly(`waking ${sessionId}`, async () => {
      try {
        await this.use(sessionId, () => {});
      } catch (error) {
        const { code } = error as { readonly code?: unknown };
        // Another process has it, or this one ends.
        if (code !== 'SCOPE_IN_USE' && code !== 'POOL_CLOSED') throw error;
      }
    });
  }

  #alarm(at: number): void {
    if (this.#closed || at >= this.#alarmAt) return;
    this.#stopAlarm?.();
    this.#alarmAt = at;
    const { scheduler } = this.#options.runtime.environment;
    this.#stopAlarm = scheduler.schedule(
      () => {
        this.#alarmAt = Infinity;
        void this.#quietly('waking', () => this.#wakeDue(ASLEEP));
      },
      at - this.#now,
      { isBackground: true },
    );
  }

  async #quietly(where: string, work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.onError(error, `session pool, ${where}: ${messageOf(error)}`);
    }
  }

  get #now(): number {
    return this.#options.runtime.environment.clock.now();
  }
}
