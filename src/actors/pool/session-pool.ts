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
//        process: the time is kept before it leaves. Who cannot be looked at then is later.
//   PL4. What was awake when a process died is looked at by the next one's `start`.
//   PL5. A look begins nothing: who has ended does not come back by itself.

import { ConfigurationError, messageOf, OffstageError } from '../../errors.ts';
import { memoryWakeTimes, type WakeTime, type WakeTimes } from '../ports/wake-times.ts';
import { Guest, type PooledSession } from './guest.ts';
import { checkedPool, type SessionPoolOptions } from './pool-options.ts';

/** What was awake is due at any time. */
const AT_ONCE = 0;
/** Behind what is awake: no deadline is as early as this. */
const ASLEEP: WakeTime = { at: Number.MIN_VALUE, scope: '' };
/** So many are looked at together. */
const BATCH = 16;
/** After this time what failed is tried again. */
const RETRY_MS = 30_000;
/** So long a process that died may still seem to have its sessions. */
const CLAIMS_MS = 180_000;

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
  #claimsEndAt = 0;
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
    const guest = await this.#startedGuest(sessionId);
    try {
      this.#checkOpen();
      return await use(guest.session);
    } finally {
      this.#leave(guest);
    }
  }

  async start(): Promise<void> {
    this.#claimsEndAt = this.#now + CLAIMS_MS;
    await this.#wakeDue();
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#stopSweep?.();
    this.#stopAlarm?.();
    // Whoever is about to leave may stay: it is asked again.
    while (this.#guests.size > 0)
      await Promise.all(
        [...this.#guests.values()].map(async (guest) => {
          await guest.started.catch(() => {});
          // Whoever could not be started is gone by itself.
          if (this.#guests.get(guest.id) === guest) await this.#sendAway(guest);
        }),
      );
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
      // PL1
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
        // PL4. Not before: it may be another process that has it.
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
      // PL3
      await this.#times.set(id, dueAt);
    } catch (error) {
      // It stays until its time can be kept, unless all have to leave.
      if (!this.#closed) throw error;
      this.#report(error, `the time of ${id}`);
    }
    const isStill = session.isIdle && session.nextDueAt === dueAt;
    if (!isStill && !this.#closed) {
      // PL2. Something came meanwhile.
      await this.#times.set(id, AT_ONCE);
      return;
    }
    let isAsleep = false;
    try {
      isAsleep = await session.hibernate();
      if (!isAsleep && dueAt !== AT_ONCE) await this.#times.set(id, AT_ONCE);
    } finally {
      if (this.#guests.get(id) === guest) this.#guests.delete(id);
    }
    if (!isAsleep) void this.#look(id);
    else if (dueAt !== null) this.#alarm(dueAt);
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

  /** Wakes it, if there is one; what is due of it happens by itself. */
  #look(sessionId: string): Promise<void> {
    return this.#quietly(`waking ${sessionId}`, async () => {
      try {
        // Whoever is awake sees to it itself.
        if (this.#guests.has(sessionId)) return;
        const guest = await this.#guest(sessionId, true);
        await guest.started.finally(() => this.#leave(guest));
      } catch (error) {
        const code = codeOf(error);
        if (code === 'UNKNOWN_SESSION') {
          // PL5
          await this.#times.set(sessionId, null);
          return;
        }
        if (code === 'POOL_CLOSED') return;
        this.#alarm(this.#now + RETRY_MS);
        // Another process has it, or had it until it died.
        if (code !== 'SCOPE_IN_USE') throw error;
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
        void this.#quietly('waking', async () => {
          try {
            await this.#wakeDue(this.#now <= this.#claimsEndAt ? undefined : ASLEEP);
          } catch (error) {
            this.#alarm(this.#now + RETRY_MS);
            throw error;
          }
        });
      },
      Math.max(0, at - this.#now),
      { isBackground: true },
    );
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
  return error instanceof Error && 'code' in error ? error.code : null;
}
