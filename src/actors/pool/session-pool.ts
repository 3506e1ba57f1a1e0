// Sessions that are in memory only while something of them goes on: a million that wait for an
// answer take room in the journal, and none here.
//
//            use, or its time has come
//   asleep ────────────────────────────▶ awake ──▶ nobody uses it, and it has been idle for long
//     ▲                                                             │
//     └──────────────────────── hibernates ◀────────────────────────┘
//
// Owns:     which sessions are awake, and what is written down of when one of the others must be.
// Does not: know what a session does (idleness.ts), keep anything of one (its journal does), or decide
//           when it looks for those who must be awake (alarm.ts).
//
// Invariants
//   SESSION-POOL-1. At most one session of an id is awake: whoever wants it while it leaves waits until it has left.
//   SESSION-POOL-2. Who is being used is not put away, nor who is not idle.
//   SESSION-POOL-3. Whoever is put away is looked at again when its next deadline is due, also by another
//        process: the time is kept before it leaves. Who cannot be looked at then is later.
//   SESSION-POOL-4. What was awake when a process died is looked at by the next one's `start`, and by those that
//        share its journal, once its claim is over.
//   SESSION-POOL-5. A look begins nothing: who has ended does not come back by itself.
//   SESSION-POOL-6. Of several processes that look at the same session one wakes it: the claim decides, before
//        anything is opened or makes room. The others stay quiet.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { ConfigurationError, isError, messageOf, OffstageError } from '../../values/errors.ts';
import { memoryWakeTimes, type WakeTimes } from '../ports/wake-times.ts';
import { Alarm, AT_ONCE } from './alarm.ts';
import { Guest, type PooledSession } from './guest.ts';
import { checkedPool, type SessionPoolOptions } from './pool-options.ts';

export interface SessionPool<S extends PooledSession> {
  /** How many are awake. */
  readonly awakeCount: number;
  /** The session of this id, if it is awake: for a look at it. */
  awake(sessionId: string): S | undefined;
  /**
   * Hands the session to `use`: it is woken for it, or begun if there is none yet, and stays awake
   * until what `use` returns has settled. Returns what `use` does.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for an id that is none, or a `use` that is no function.
   * @throws {OffstageError} `POOL_CLOSED`; what `open`, the start of the session, or `use` throws.
   */
  use<T>(sessionId: string, use: (session: S) => T | Promise<T>): Promise<T>;
  /**
   * Looks at what an earlier process left awake, and at what is due; the first thing to do. From then
   * on it looks from time to time (`lookMs`).
   */
  start(): Promise<void>;
  /** Puts all away, whatever they are doing; they go on in the next pool. Safe to call twice. */
  close(): Promise<void>;
}

const sessionName = z.string().min(1).max(200);
const anyFunction = z.custom((value) => typeof value === 'function', {
  error: 'expected a function',
});

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
  readonly #alarm: Alarm;
  /** Under way: each may have a claim. */
  readonly #looks = new Set<Promise<boolean>>();
  #stopSweep: (() => void) | null = null;
  #closed: Promise<void> | null = null;

  constructor(options: SessionPoolOptions<S>) {
    this.#options = checkedPool(options);
    const { environment, journal } = options.runtime;
    this.#times = journal.wakeTimes ?? memoryWakeTimes();
    this.#alarm = new Alarm({
      environment,
      times: this.#times,
      lookMs: this.#options.lookMs,
      isShared: journal.claim !== undefined,
      wake: (sessionId) => this.#look(sessionId),
      failed: (error) => this.#report(error, 'waking'),
    });
  }

  get awakeCount(): number {
    return this.#guests.size;
  }

  awake(sessionId: string): S | undefined {
    const guest = this.#guests.get(sessionId);
    return guest?.isLeaving ? undefined : guest?.session;
  }

  async use<T>(sessionId: string, use: (session: S) => T | Promise<T>): Promise<T> {
    check('use(sessionId, use)', sessionName, sessionId, 'INVALID_ARGUMENT');
    check('use(sessionId, use)', anyFunction, use, 'INVALID_ARGUMENT');
    const guest = await this.#startedGuest(sessionId);
    try {
      this.#checkOpen();
      return await use(guest.session);
    } finally {
      this.#leave(guest);
    }
  }

  async start(): Promise<void> {
    this.#checkOpen();
    await this.#alarm.look();
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#stopSweep?.();
    this.#alarm.stop();
    // Whoever is about to leave may stay: it is asked again.
    while (this.#guests.size > 0)
      await Promise.all(
        [...this.#guests.values()].map(async (guest) => {
          await guest.started.catch(() => {});
          // Whoever could not be started is gone by itself.
          if (this.#guests.get(guest.id) === guest) await this.#sendAway(guest);
        }),
      );
    // Claims are those of the process: the next pool would lose its own with one that is given back later.
    await Promise.all(this.#looks);
  }

  /** It can be used, and is counted as used from here on. */
  async #startedGuest(sessionId: string): Promise<Guest<S>> {
    for (;;) {
      const guest = await this.#guest(sessionId);
      try {
        await guest.started;
        return guest;
      } catch (error) {
        this.#leave(guest);
        // Somebody had only looked whether there is one: now one is wanted.
        if (codeOf(error) !== 'UNKNOWN_SESSION') throw error;
        await guest.left;
      }
    }
  }

  #leave(guest: Guest<S>): void {
    guest.leave();
    this.#sweepLater();
  }

  #checkOpen(): void {
    if (this.#closed) throw new OffstageError('POOL_CLOSED', 'The pool was closed');
  }

  /** The one that is awake, or is woken; it is counted as used from here on. */
  async #guest(sessionId: string, ifKnown = false): Promise<Guest<S>> {
    for (;;) {
      this.#checkOpen();
      const known = this.#guests.get(sessionId);
      if (known && !known.isLeaving) {
        known.enter();
        return known;
      }
      if (!known) return this.#wake(sessionId, ifKnown);
      // SESSION-POOL-1
      await known.left;
    }
  }

  #wake(sessionId: string, ifKnown: boolean): Guest<S> {
    this.#makeRoom(1);
    const session = this.#options.open(sessionId);
    if (session.id !== sessionId)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `createSessionPool: \`open\` was asked for the session "${sessionId}" and made "${session.id}": expected one with this \`sessionId\``,
      );
    const guest = new Guest(
      sessionId,
      session,
      () => this.#now,
      (hasEnded) => {
        if (this.#guests.get(sessionId) !== guest || guest.isLeaving) return;
        // Where it goes on with somebody else, they say when it is due.
        void this.#quietly(`the time of ${sessionId}`, () =>
          this.#leaves(guest, async () => {
            if (hasEnded) await this.#times.set(sessionId, null);
          }),
        );
      },
    );
    this.#guests.set(sessionId, guest);
    guest.enter();
    guest.begin(async () => {
      try {
        await session.start({ ifKnown });
        // SESSION-POOL-4. Not before: it may be another process that has it.
        await this.#times.set(sessionId, AT_ONCE);
      } catch (error) {
        // Another try may begin as soon as it is gone.
        await this.#quietly(`putting ${sessionId} away`, () =>
          this.#leaves(guest, () => session.hibernate()),
        );
        throw error;
      }
    });
    return guest;
  }

  /** Those who have been idle for longest go, until there is room for so many more; who is busy stays. */
  #makeRoom(more = 0): void {
    if (this.#guests.size + more <= this.#options.maxAwake) return;
    const staying = [...this.#guests.values()].filter((guest) => !guest.isLeaving);
    const excess = Math.max(0, staying.length + more - this.#options.maxAwake);
    const idle = staying.filter((guest) => guest.mayLeave);
    for (const guest of idle.toSorted((one, other) => one.usedAt - other.usedAt).slice(0, excess))
      void this.#sendAway(guest);
  }

  /** `leave` is the last that happens with it here. */
  #leaves(guest: Guest<S>, leave: () => Promise<unknown>): Promise<void> {
    return guest.goAway(async () => {
      try {
        await leave();
      } finally {
        this.#guests.delete(guest.id);
      }
    });
  }

  #sendAway(guest: Guest<S>): Promise<void> {
    return this.#quietly(`putting ${guest.id} away`, () =>
      guest.goAway(() => this.#putAway(guest)),
    );
  }

  async #putAway(guest: Guest<S>): Promise<void> {
    const { id, session } = guest;
    const dueAt = session.isIdle ? session.nextDueAt : AT_ONCE;
    try {
      // SESSION-POOL-3
      await this.#times.set(id, dueAt);
    } catch (error) {
      // It stays until its time can be kept, unless all have to leave.
      if (!this.#closed && !guest.isOver) throw error;
      this.#report(error, `the time of ${id}`);
    }
    const isStill = session.isIdle && session.nextDueAt === dueAt;
    if (!isStill && !this.#closed) {
      // SESSION-POOL-2. Something came meanwhile.
      await this.#times.set(id, AT_ONCE);
      // It may be over: then it does not stay, whatever came.
      if (!guest.isOver) return;
    }
    let isAsleep = false;
    try {
      isAsleep = await session.hibernate();
      if (!isAsleep && dueAt !== AT_ONCE) await this.#times.set(id, AT_ONCE);
    } finally {
      if (this.#guests.get(id) === guest) this.#guests.delete(id);
    }
    if (isAsleep) {
      if (dueAt !== null) this.#alarm.knows(dueAt);
    } else if (!(await this.#look(id))) this.#alarm.missed(id);
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
      if (guest.mayLeave && guest.usedAt <= since) void this.#sendAway(guest);
    this.#makeRoom();
  }

  /** Wakes it, if there is one; what is due of it happens by itself. Returns whether somebody saw to it. */
  #look(sessionId: string): Promise<boolean> {
    // Whoever is awake sees to it itself.
    if (this.#closed || this.#guests.has(sessionId)) return Promise.resolve(true);
    const look = this.#wakeIfFree(sessionId).finally(() => this.#looks.delete(look));
    this.#looks.add(look);
    return look;
  }

  async #wakeIfFree(sessionId: string): Promise<boolean> {
    try {
      await this.#wakeClaimed(sessionId);
      return true;
    } catch (error) {
      if (this.#closed) return true;
      // SESSION-POOL-6. Another process has it, or had it until it died.
      if (codeOf(error) !== 'SCOPE_IN_USE') this.#report(error, `waking ${sessionId}`);
      return false;
    }
  }

  async #wakeClaimed(sessionId: string): Promise<void> {
    const { journal } = this.#options.runtime;
    // SESSION-POOL-6
    await journal.claim?.(sessionId);
    try {
      const guest = await this.#guest(sessionId, true);
      await guest.started.finally(() => this.#leave(guest));
    } catch (error) {
      // Whoever is awake here goes on under this claim.
      if (!this.#guests.has(sessionId)) await journal.release?.(sessionId);
      // SESSION-POOL-5
      if (codeOf(error) !== 'UNKNOWN_SESSION') throw error;
      await this.#times.set(sessionId, null);
    }
  }

  async #quietly(where: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#report(error, where);
    }
  }

  #report(error: unknown, where: string): void {
    this.#options.onError(error, `session pool, ${where}: ${messageOf(error)}`);
  }

  get #now(): number {
    return this.#options.runtime.environment.clock.now();
  }
}

function codeOf(error: unknown): unknown {
  return isError(error) && 'code' in error ? error.code : null;
}
