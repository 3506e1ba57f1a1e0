// Keeps sessions in memory only while they are active; a million waiting sessions occupy the journal, but no memory.
//
//            use, or its time has come
//   asleep ────────────────────────────▶ awake ──▶ nobody uses it, and it has been idle for long
//     ▲                                                             │
//     └──────────────────────── hibernates ◀────────────────────────┘
//
// Owns:     the set of awake sessions, and the stored times at which the others must be woken.
// Does not: know what a session works on (awaited.ts), store its state (its journal does), or decide when to search for
//           sessions that must be awake (wake-scheduler.ts).
//
// Invariants
//   SESSION-POOL-1. At most one session per id is awake. A request for a session that is being suspended waits until
//       the session has left the process.
//   SESSION-POOL-2. A session that is in use or busy is not suspended.
//   SESSION-POOL-3. A suspended session is woken at its next deadline, possibly by another process: its wake time is
//       stored before the session is suspended. If it cannot be woken at that time, it is woken later.
//   SESSION-POOL-4. Sessions that were awake when a process died are woken by the next `start`. Other processes that
//       share the journal also wake them, after the dead process's claims have expired.
//   SESSION-POOL-5. A search wakes only existing sessions: a session that has ended is not started again.
//   SESSION-POOL-6. If several processes try to wake a session, only one succeeds: a process must claim the session
//       before it opens the session or makes room for it. The others do not report an error.
//   SESSION-POOL-7. If `maxBusy` sessions are in use or busy, a use that would wake another session is refused before
//       anything is opened or read.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../values/checks.ts';
import {
  CapacityError,
  ConfigurationError,
  OffstageError,
  isError,
  messageOf,
} from '../../values/errors.ts';
import type { Runtime } from '../admission/runtime.ts';
import { AT_ONCE, memoryWakeTimes, type WakeTimes } from '../ports/wake-times.ts';
import { isWaiting, type QuestionView } from '../contracts/session-views.ts';
import type { BaseSession } from '../session/view/base-session.ts';
import {
  readDesk,
  sessionDesk,
  type SessionDesk,
  type DeskOptions,
  type DeskPage,
} from './session-desk.ts';
import { WakeScheduler } from './wake-scheduler.ts';
import { reporter } from '../../values/reporter.ts';

/** The options of `createSessionPool`. */
export interface SessionPoolOptions<S extends PooledSession> {
  /** The runtime of the sessions. If its journal has `wakeTimes`, it also stores when sleeping sessions must be woken. */
  readonly runtime: Runtime;
  /** Creates the session with this id, using this `sessionId` and `runtime`, without starting it. */
  readonly open: (sessionId: string) => S;
  /** How long a session stays awake while it is idle and unused, in milliseconds. @defaultValue 30_000 */
  readonly idleMs?: number;
  /**
   * The maximum number of awake sessions. Above it, the session that has been idle longest is suspended immediately.
   * @defaultValue 1000
   */
  readonly maxAwake?: number;
  /**
   * The number of sessions in use or busy at which `use` refuses to wake another session (`POOL_FULL`), because a
   * process that is overloaded serves none of its sessions in time. Sessions whose wake time has come are woken
   * regardless. With `Infinity`, `use` never refuses.
   * @defaultValue twice `maxAwake`
   */
  readonly maxBusy?: number;
  /**
   * The approximate interval, in milliseconds, at which the pool searches for sessions that must be awake. The search
   * is necessary because the process that suspended them may have died, and because failed wakes are retried. With
   * `Infinity`, only `start` searches. Use this for a process that an external clock starts. @defaultValue 30_000
   */
  readonly lookMs?: number;
  /** Called with the errors of sessions that are not in use. */
  readonly onError?: (error: unknown, where: string) => void;
}

const optionsSchema = z.strictObject({
  runtime: z.looseObject({ environment: z.looseObject({}), journal: z.looseObject({}) }),
  open: z.custom((open) => typeof open === 'function', 'expected a function'),
  idleMs: z.number().nonnegative().optional(),
  maxAwake: z.union([z.int().positive(), z.literal(Infinity)]).optional(),
  maxBusy: z.union([z.int().positive(), z.literal(Infinity)]).optional(),
  lookMs: z.union([z.number().positive(), z.literal(Infinity)]).optional(),
  onError: aFunction.optional(),
} satisfies ChecksOf<SessionPoolOptions<PooledSession>>);

/** @throws {ConfigurationError} `INVALID_OPTION` */
function checkedPool<S extends PooledSession>(
  options: SessionPoolOptions<S>,
): Required<SessionPoolOptions<S>> {
  check('createSessionPool(options)', optionsSchema, options);
  const { runtime, open, onError } = options;
  const { idleMs = 30_000, maxAwake = 1000, lookMs = 30_000 } = options;
  const { maxBusy = 2 * maxAwake } = options;
  return {
    runtime,
    open,
    idleMs,
    maxAwake,
    maxBusy,
    lookMs,
    onError: reporter(onError),
  };
}

/** The members of a session that a pool uses; `TextSession` and `VoiceSession` implement them. */
export type PooledSession = Pick<
  BaseSession,
  'id' | 'start' | 'hibernate' | 'events' | 'isIdle' | 'nextDueAt'
>;

/** The sessions of a process: sessions that are used or busy are in memory, and all others sleep in the journal. */
export interface SessionPool<S extends PooledSession> {
  /** The number of awake sessions. */
  readonly awakeCount: number;
  /** Returns the session with this id if it is awake, without waking it. */
  awake(sessionId: string): S | undefined;
  /**
   * Passes the session to `use`, after waking or starting it if necessary, and keeps it awake until the result of `use`
   * has settled. Returns that result. `draining` aborts when `drain` is called. If `use` holds the session for a
   * connected client, as in `serve`, it should then return as soon as the session has nothing left to do or say.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for an invalid id, or a `use` that is not a function.
   * @throws {CapacityError} `POOL_FULL` if `maxBusy` other sessions are in use or busy.
   * @throws {OffstageError} `POOL_CLOSED`; `POOL_DRAINING` unless the session is awake here; the errors of `open`, of
   *   the session's start, or of `use`.
   */
  use<T>(sessionId: string, use: (session: S, draining: AbortSignal) => T | Promise<T>): Promise<T>;
  /**
   * Returns the questions and approvals of a session that are waiting for an answer, in the order in which they were
   * asked, with the calls that approvals cover. The session may be asleep, awake, or in another process: this reads its
   * entries and does not wake it. Empty if the session has ended or does not exist. The result contains all data about
   * each question; the app decides who may see it. `answered`: also includes the latest questions that have been
   * answered.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   * @throws {JournalError} the journal's error.
   */
  questions(
    sessionId: string,
    options?: {
      /** @defaultValue false */
      readonly answered?: boolean;
    },
  ): Promise<readonly QuestionView[]>;
  /**
   * Returns what waits in all sessions of the journal: open approvals and questions, deliveries that the user has not
   * received, and subagents that have not ended. Sessions are included whether they are asleep, awake, or in another
   * process. Reads an index and no entries, so the cost depends only on `limit`. While items are added and removed,
   * following `next` returns no item twice, and omits none that stays. A session is in the index from the first time
   * that a pool has loaded it.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `INVALID_OPTION` if the journal has no `desk`.
   * @throws {JournalError} the journal's error.
   */
  desk(query?: DeskOptions): Promise<DeskPage>;
  /**
   * Wakes the sessions that an earlier process left awake, and those whose wake time has come; call it before all other
   * methods. After that, the pool searches at intervals (`lookMs`).
   */
  start(): Promise<void>;
  /**
   * Empties the pool before a deploy: from now on, no session is started or woken here, so that another process can
   * take over. A busy session continues and is suspended as soon as it is idle and unused; the pool closes after
   * `withinMs` at the latest. Resolves when the pool is closed. Later calls do not change the time limit.
   */
  drain(options?: DrainOptions): Promise<void>;
  /** Suspends all sessions, even busy ones; the next pool continues them. Repeated calls have no effect. */
  close(): Promise<void>;
}

export interface DrainOptions {
  /** The time after the call, in milliseconds, at which even busy sessions are suspended. @defaultValue 20_000 */
  readonly withinMs?: number;
}

const drainSchema = z.strictObject({
  withinMs: z.number().nonnegative().optional(),
} satisfies ChecksOf<DrainOptions>);

/** The interval at which a draining pool checks for sessions that have become idle, and suspends them. */
const DRAIN_STEP_MS = 50;
/** The error codes of a failed start that mean that no session exists to be continued. */
const NONE_THERE: ReadonlySet<unknown> = new Set(['UNKNOWN_SESSION', 'CLOSE_INTERRUPTED']);

const questionsSchema = z.strictObject({ answered: z.boolean().optional() });
const sessionName = z.string().min(1).max(200);

const anyFunction = z.custom((value) => typeof value === 'function', {
  error: 'expected a function',
});

/**
 * Creates a pool, which wakes a session for each use and suspends it when it is idle and unused.
 * @throws {ConfigurationError} `INVALID_OPTION`, with the option and the expected value.
 */
export function createSessionPool<S extends PooledSession>(
  options: SessionPoolOptions<S>,
): SessionPool<S> {
  return new Pool(options);
}

class Pool<S extends PooledSession> implements SessionPool<S> {
  readonly #options;
  readonly #times: WakeTimes;
  readonly #entries = new Map<string, PooledEntry<S>>();
  readonly #wakeScheduler: WakeScheduler;
  /** The current attempts to wake a session; each may hold a claim. */
  readonly #looks = new Set<Promise<boolean>>();
  #stopSweep: (() => void) | null = null;
  #closed: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  /** Aborts when the pool starts to drain. */
  readonly #leaving = new AbortController();

  constructor(options: SessionPoolOptions<S>) {
    this.#options = checkedPool(options);
    const { environment, journal } = options.runtime;
    this.#times = journal.wakeTimes ?? memoryWakeTimes();
    this.#wakeScheduler = new WakeScheduler({
      environment,
      times: this.#times,
      lookMs: this.#options.lookMs,
      isShared: journal.claim !== undefined,
      wake: (sessionId, isTaken) => this.#look(sessionId, isTaken),
      failed: (error) => this.#report(error, 'waking'),
    });
  }

  get awakeCount(): number {
    return this.#entries.size;
  }

  awake(sessionId: string): S | undefined {
    const entry = this.#entries.get(sessionId);
    return entry?.isLeaving ? undefined : entry?.session;
  }

  async use<T>(
    sessionId: string,
    use: (session: S, draining: AbortSignal) => T | Promise<T>,
  ): Promise<T> {
    check('use(sessionId, use)', sessionName, sessionId, 'INVALID_ARGUMENT');
    check('use(sessionId, use)', anyFunction, use, 'INVALID_ARGUMENT');
    const entry = await this.#startedEntry(sessionId);
    try {
      this.#checkOpen();
      return await use(entry.session, this.#leaving.signal);
    } finally {
      this.#leave(entry);
    }
  }

  async questions(
    sessionId: string,
    options: { readonly answered?: boolean } = {},
  ): Promise<readonly QuestionView[]> {
    check('questions(sessionId)', sessionName, sessionId, 'INVALID_ARGUMENT');
    const { answered } = check('questions(options)', questionsSchema, options, 'INVALID_ARGUMENT');
    // Loaded lazily, because only this query needs the replay.
    const { questionsOf } = await import('../replay/unloaded-session.ts');
    const entries = await this.#options.runtime.journal.read({ scope: sessionId });
    return questionsOf(entries, sessionId).filter(({ state }) => answered || isWaiting(state));
  }

  desk(query: DeskOptions = {}): Promise<DeskPage> {
    return readDesk(this.#options.runtime.journal, query);
  }

  async start(): Promise<void> {
    this.#checkOpen();
    await this.#wakeScheduler.look();
  }

  async drain(options: DrainOptions = {}): Promise<void> {
    check('drain(options)', drainSchema, options, 'INVALID_ARGUMENT');
    const { withinMs = 20_000 } = options;
    await (this.#draining ??= this.#drain(this.#now + withinMs));
  }

  async #drain(until: number): Promise<void> {
    const { scheduler } = this.#options.runtime.environment;
    const stopped = this.#wakeScheduler.stop();
    this.#leaving.abort();
    while (!this.#closed && this.#entries.size > 0 && this.#now < until) {
      for (const entry of this.#entries.values()) if (entry.mayLeave) void this.#sendAway(entry);
      const stepMs = Math.min(DRAIN_STEP_MS, until - this.#now);
      await new Promise<void>((resolve) => void scheduler.schedule(resolve, stepMs));
    }
    await stopped;
    await this.close();
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#stopSweep?.();
    const stopped = this.#wakeScheduler.stop();
    // A session that is being suspended may stay after all, so the loop repeats.
    while (this.#entries.size > 0)
      await Promise.all(
        [...this.#entries.values()].map(async (entry) => {
          await entry.started.catch(() => {});
          // A session that failed to start is removed by its own error handling.
          if (this.#entries.get(entry.id) === entry) await this.#sendAway(entry);
        }),
      );
    // Waits because claims belong to the process: releasing a claim late would end a claim of the next pool.
    await Promise.all([stopped, ...this.#looks]);
  }

  /** Returns the session when it is usable, and counts one more use of it. */
  async #startedEntry(sessionId: string): Promise<PooledEntry<S>> {
    for (;;) {
      const entry = await this.#entry(sessionId);
      try {
        await entry.started;
        return entry;
      } catch (error) {
        this.#leave(entry);
        // The failed start only looked for an existing session, or completed a close that an earlier process had begun.
        // Now a new session may be started.
        if (!NONE_THERE.has(codeOf(error))) throw error;
        await entry.left;
      }
    }
  }

  #leave(entry: PooledEntry<S>): void {
    entry.leave();
    this.#sweepLater();
  }

  get #isLeaving(): boolean {
    return this.#closed !== null || this.#draining !== null;
  }

  #checkOpen(): void {
    if (this.#closed) throw new OffstageError('POOL_CLOSED', 'The pool was closed');
  }

  /** Returns the awake session, or wakes it; counts one more use of it. */
  async #entry(sessionId: string, ifKnown = false): Promise<PooledEntry<S>> {
    for (;;) {
      this.#checkOpen();
      const known = this.#entries.get(sessionId);
      if (known && !known.isLeaving) {
        known.enter();
        return known;
      }
      if (!known && this.#draining)
        throw new OffstageError(
          'POOL_DRAINING',
          `The pool is about to close: another process must take ${sessionId}`,
        );
      if (!known) return this.#wake(sessionId, ifKnown);
      // SESSION-POOL-1
      await known.left;
    }
  }

  #wake(sessionId: string, ifKnown: boolean): PooledEntry<S> {
    if (!ifKnown) this.#checkRoom(sessionId);
    this.#makeRoom(1);
    const session = this.#options.open(sessionId);
    if (session.id !== sessionId)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `createSessionPool: \`open\` was asked for the session "${sessionId}" and made "${session.id}": expected one with this \`sessionId\``,
      );
    const entry = new PooledEntry(
      sessionId,
      session,
      this.#deskOf(sessionId),
      () => this.#now,
      () => void this.#writeDesk(entry),
      (hasEnded) => {
        if (this.#entries.get(sessionId) !== entry || entry.isLeaving) return;
        // If another process continues the session, that process stores the wake time.
        void this.#quietly(`the time of ${sessionId}`, () =>
          this.#leaves(entry, async () => {
            if (!hasEnded) return;
            await entry.desk?.write();
            await this.#times.set(sessionId, null);
          }),
        );
      },
    );
    this.#entries.set(sessionId, entry);
    entry.enter();
    entry.begin(async () => {
      try {
        await session.start({ ifKnown });
        //   SESSION-POOL-4. Set only after the start, because until then another process may have the session.
        const set = this.#times.set(sessionId, AT_ONCE);
        entry.isStarted = true;
        void this.#writeDesk(entry);
        await set;
      } catch (error) {
        // Another attempt may start as soon as this entry is gone.
        await this.#quietly(`putting ${sessionId} away`, () =>
          this.#leaves(entry, () => session.hibernate()),
        );
        throw error;
      }
    });
    return entry;
  }

  /** SESSION-POOL-7 */
  #checkRoom(sessionId: string): void {
    const { maxBusy } = this.#options;
    if (this.#entries.size < maxBusy) return;
    let busy = 0;
    for (const entry of this.#entries.values()) if (!entry.mayLeave) busy += 1;
    if (busy >= maxBusy)
      throw new CapacityError(
        'POOL_FULL',
        `${sessionId} is not woken: ${busy} sessions are in use or busy, at most ${maxBusy} may be (maxBusy)`,
      );
  }

  /**
   * Suspends the sessions that have been idle longest until there is room for `more` sessions; does not suspend busy
   * ones.
   */
  #makeRoom(more = 0): void {
    if (this.#entries.size + more <= this.#options.maxAwake) return;
    const staying = [...this.#entries.values()].filter((entry) => !entry.isLeaving);
    const excess = Math.max(0, staying.length + more - this.#options.maxAwake);
    const idle = staying.filter((entry) => entry.mayLeave);
    for (const entry of idle.toSorted((one, other) => one.usedAt - other.usedAt).slice(0, excess))
      void this.#sendAway(entry);
  }

  /** Removes a session from the pool; `leave` is the last operation on it in this process. */
  #leaves(entry: PooledEntry<S>, leave: () => Promise<unknown>): Promise<void> {
    return entry.goAway(async () => {
      try {
        await leave();
      } finally {
        this.#entries.delete(entry.id);
      }
    });
  }

  #sendAway(entry: PooledEntry<S>): Promise<void> {
    return this.#quietly(`putting ${entry.id} away`, () =>
      entry.goAway(() => this.#putAway(entry)),
    );
  }

  async #putAway(entry: PooledEntry<S>): Promise<void> {
    const { id, session } = entry;
    const dueAt = session.isIdle ? session.nextDueAt : AT_ONCE;
    try {
      // SESSION-DESK-3
      await entry.desk?.write();
      // SESSION-POOL-3
      await this.#times.set(id, dueAt);
    } catch (error) {
      // If its wake time cannot be stored, the session stays, unless the pool is closed.
      if (!this.#closed && !entry.isOver) throw error;
      this.#report(error, `the time of ${id}`);
    }
    const isStill =
      session.isIdle && session.nextDueAt === dueAt && entry.desk?.isWritten() !== false;
    if (!isStill && !this.#closed) {
      // SESSION-POOL-2. An event arrived while the wake time was being stored.
      await this.#times.set(id, AT_ONCE);
      // A session that has ended is removed in any case.
      if (!entry.isOver) return;
    }
    let isAsleep = false;
    try {
      isAsleep = (await session.hibernate()) && entry.desk?.isWritten() !== false;
      if (!isAsleep && dueAt !== AT_ONCE) await this.#times.set(id, AT_ONCE);
    } finally {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    }
    if (isAsleep) {
      if (dueAt !== null) this.#wakeScheduler.knows(dueAt);
    } else if (!(await this.#look(id))) this.#wakeScheduler.missed(id);
  }

  #deskOf(sessionId: string): SessionDesk | null {
    const { desk } = this.#options.runtime.journal;
    return desk ? sessionDesk(desk, sessionId) : null;
  }

  async #writeDesk(entry: PooledEntry<S>): Promise<void> {
    if (entry.isOver) return;
    try {
      await entry.desk?.write();
    } catch (error) {
      // If another process has the session, that process writes its rows.
      if (!entry.isOver) this.#report(error, `the desk of ${entry.id}`);
    }
  }

  #sweepLater(): void {
    if (this.#stopSweep || this.#closed || this.#entries.size === 0) return;
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
    for (const entry of this.#entries.values())
      if (entry.mayLeave && entry.usedAt <= since) void this.#sendAway(entry);
      // The previous write may have failed.
      else if (entry.isStarted) void this.#writeDesk(entry);
    this.#makeRoom();
  }

  /** Wakes a session if it exists, so that work that is due starts. Returns whether any process has the session. */
  #look(sessionId: string, isTaken = false): Promise<boolean> {
    // A session that is already awake need not be woken, unless it is being suspended and was claimed again.
    if (!isTaken && (this.#isLeaving || this.#entries.has(sessionId))) return Promise.resolve(true);
    const look = this.#wakeIfFree(sessionId, isTaken).finally(() => this.#looks.delete(look));
    this.#looks.add(look);
    return look;
  }

  async #wakeIfFree(sessionId: string, isTaken: boolean): Promise<boolean> {
    try {
      await this.#wakeClaimed(sessionId, isTaken);
      return true;
    } catch (error) {
      if (this.#isLeaving) return true;
      // SESSION-POOL-6. Another process has the session, or had it until that process died.
      if (codeOf(error) !== 'SCOPE_IN_USE') this.#report(error, `waking ${sessionId}`);
      return false;
    }
  }

  async #wakeClaimed(sessionId: string, isTaken: boolean): Promise<void> {
    const { journal } = this.#options.runtime;
    // SESSION-POOL-6
    if (!isTaken) await journal.claim?.(sessionId);
    try {
      const entry = await this.#entry(sessionId, true);
      await entry.started.finally(() => this.#leave(entry));
    } catch (error) {
      // If the session is awake here, it still needs the claim.
      if (!this.#entries.has(sessionId)) await journal.release?.(sessionId);
      // SESSION-POOL-5
      if (!NONE_THERE.has(codeOf(error))) throw error;
      await journal.desk?.set(sessionId, []);
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

/** An awake session, the number of its current uses, and the time of its last use. */
class PooledEntry<S extends PooledSession> {
  readonly id: string;
  readonly session: S;
  /** Null if the journal has no desk. */
  readonly desk: SessionDesk | null;
  /** When the session was last used or last had an event, in milliseconds since 1970. */
  usedAt: number;
  /** Whether the session has ended or been suspended, for any reason. */
  isOver = false;
  /** Whether this process runs the session, so that it may write the session's rows. */
  isStarted = false;
  /** Settles when the session is usable, or its start has failed. */
  started: Promise<void> = Promise.resolve();
  readonly #now: () => number;
  #uses = 0;
  #leaving: Promise<void> | null = null;

  /**
   * @param changed Called when a started session's rows have changed.
   * @param gone Called if the session ends or is suspended, but not by the pool; `hasEnded`: whether it has ended, so
   * that no process continues it.
   */
  constructor(
    id: string,
    session: S,
    desk: SessionDesk | null,
    now: () => number,
    changed: () => void,
    gone: (hasEnded: boolean) => void,
  ) {
    this.id = id;
    this.session = session;
    this.desk = desk;
    this.#now = now;
    this.usedAt = now();
    session.events.subscribe((event) => {
      const { type } = event;
      this.usedAt = now();
      desk?.take(event);
      if (this.isStarted && desk?.isWritten() === false) changed();
      if (type !== 'session.ended' && type !== 'session.suspended') return;
      this.isOver = true;
      gone(type === 'session.ended');
    });
  }

  begin(start: () => Promise<void>): void {
    this.started = start();
    // The callers that use the session receive the error.
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

  /** Whether the session may be suspended because it is unused and idle. */
  get mayLeave(): boolean {
    return this.#uses === 0 && !this.isLeaving && (this.isOver || this.session.isIdle);
  }

  get isLeaving(): boolean {
    return this.#leaving !== null;
  }

  /** Settles when the attempt to suspend the session has ended. */
  get left(): Promise<void> {
    return (this.#leaving ?? Promise.resolve()).catch(() => {});
  }

  /** Removes the session from this process with `leave`; concurrent calls share one attempt. */
  goAway(leave: () => Promise<void>): Promise<void> {
    // `#leaving` is set before `leave` runs, so that code that handles events during `leave` sees it.
    this.#leaving ??= Promise.resolve()
      .then(leave)
      .finally(() => (this.#leaving = null));
    return this.#leaving;
  }
}

function codeOf(error: unknown): unknown {
  return isError(error) && 'code' in error ? error.code : null;
}
