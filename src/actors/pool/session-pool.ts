// Keeps sessions in memory only while they are active; a million waiting sessions occupy the journal, but no memory.
//
//            use, or its time has come
//   asleep ────────────────────────────▶ awake ──▶ nobody uses it, and it has been idle for long
//     ▲                                                             │
//     └──────────────────────── hibernates ◀────────────────────────┘
//
// Owns:     the set of awake sessions, and the stored times at which the others must be woken.
// Does not: know a session's work (awaited.ts), store its state (its journal does), or schedule the search for sessions
//           that must be awake (wake-scheduler.ts).
//
// Invariants
//   SESSION-POOL-1. At most one session per id is awake: a request for a session that is leaving waits until it has left.
//   SESSION-POOL-2. A session that is in use or busy is not suspended.
//   SESSION-POOL-3. A suspended session is woken at its next deadline, possibly by another process: its wake time is
//       stored before the session leaves. If it cannot be woken then, it is woken later.
//   SESSION-POOL-4. Sessions that were awake when a process died are woken by the next `start`, and by other processes
//       that share the journal once the dead process's claims have expired.
//   SESSION-POOL-5. A search wakes only existing sessions: a session that has ended is not started again.
//   SESSION-POOL-6. If several processes try to wake a session, one succeeds: the claim decides, before a session is
//       opened or room is made for it. The others report nothing.
//   SESSION-POOL-7. If more than `maxBusy` sessions are busy, a use is refused in advance: it opens and reads nothing.

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
import type { QuestionView } from '../contracts/session-views.ts';
import type { BaseSession } from '../session/view/base-session.ts';
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
   * The maximum number of awake sessions; above it, the session that has been idle longest is suspended at once.
   * @defaultValue 1000
   */
  readonly maxAwake?: number;
  /**
   * The number of busy or used sessions at which `use` refuses to wake another (`POOL_FULL`), because an overloaded process
   * serves no session in time. Sessions whose wake time has come are woken regardless. With `Infinity`, `use` never refuses.
   * @defaultValue twice `maxAwake`
   */
  readonly maxBusy?: number;
  /**
   * The approximate interval at which the pool searches for sessions that must be awake, in milliseconds, because the
   * process that suspended them may have died, and failed wakes are retried. With `Infinity`, only `start` searches,
   * for a process that an external clock wakes. @defaultValue 30_000
   */
  readonly lookMs?: number;
  /** Called with errors of a session that is not in use. */
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

/** Selects questions of a pool's sessions. */
export interface QuestionsQuery {
  /** The kind of question. @defaultValue both */
  readonly kind?: QuestionView['kind'];
  /** The `next` of the previous page. @defaultValue from the first session */
  readonly after?: string;
  /** The number of sessions that a page covers, at most 10,000. @defaultValue 100 */
  readonly sessions?: number;
}

/** A page of questions that wait for an answer. */
export interface QuestionsPage {
  /** The questions by session, in the order of session ids; within a session in the order in which they were asked. */
  readonly questions: readonly (QuestionView & { readonly sessionId: string })[];
  /** The sessions whose entries cannot be read, each with the error. */
  readonly unread: readonly { readonly sessionId: string; readonly error: unknown }[];
  /** The value of `after` for the next page; null on the last page. */
  readonly next: string | null;
}

const querySchema = z.strictObject({
  kind: z.enum(['question', 'approval']).optional(),
  after: z.string().max(200).optional(),
  sessions: z.int().min(1).max(10_000).optional(),
} satisfies ChecksOf<QuestionsQuery>);

/** The part of a session that a pool uses; `TextSession` and `VoiceSession` implement it. */
export type PooledSession = Pick<
  BaseSession,
  'id' | 'start' | 'hibernate' | 'events' | 'isIdle' | 'nextDueAt'
>;

/** The sessions of a process: used or busy ones are in memory, all others sleep in the journal. */
export interface SessionPool<S extends PooledSession> {
  /** The number of awake sessions. */
  readonly awakeCount: number;
  /** Returns the session with this id if it is awake, for inspection. */
  awake(sessionId: string): S | undefined;
  /**
   * Passes the session to `use`, after waking or starting it if necessary, and keeps it awake until the result of `use`
   * has settled. Returns that result. `draining` aborts when `drain` is called: a `use` that keeps the session for a
   * connected client, as in `serve`, should then end as soon as the session has nothing left to do or say.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for an invalid id, or a `use` that is not a function.
   * @throws {CapacityError} `POOL_FULL` if `maxBusy` other sessions are in use or busy.
   * @throws {OffstageError} `POOL_CLOSED`; `POOL_DRAINING` unless the session is awake here; the errors of `open`, of
   *   the session's start, or of `use`.
   */
  use<T>(sessionId: string, use: (session: S, draining: AbortSignal) => T | Promise<T>): Promise<T>;
  /**
   * Returns the questions and approvals that wait for an answer, from all sessions of the journal: asleep, awake, and
   * in other processes. Reads their entries one session at a time, and wakes none. A page may be empty and have a
   * `next`. The result contains all data of each question: the app decides who may see it.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `INVALID_OPTION` if the journal cannot list its scopes.
   * @throws {JournalError} the journal's error.
   */
  questions(query?: QuestionsQuery): Promise<QuestionsPage>;
  /**
   * Wakes the sessions that an earlier process left awake, and those whose wake time has come; call it first.
   * Afterwards the pool searches at intervals (`lookMs`).
   */
  start(): Promise<void>;
  /**
   * Empties the pool before a deploy: no session starts or wakes here any more, so that another process can take over.
   * A busy session continues, and is suspended as soon as it is idle and unused; the pool closes after `withinMs` at
   * the latest. Resolves when the pool is closed. Later calls do not change the time.
   */
  drain(options?: DrainOptions): Promise<void>;
  /** Suspends all sessions, even busy ones; the next pool continues them. Repeated calls have no effect. */
  close(): Promise<void>;
}

export interface DrainOptions {
  /** When busy sessions are suspended too, in milliseconds after the call. @defaultValue 20_000 */
  readonly withinMs?: number;
}

const drainSchema = z.strictObject({
  withinMs: z.number().nonnegative().optional(),
} satisfies ChecksOf<DrainOptions>);

/** The interval at which a draining pool suspends sessions that have become idle. */
const DRAIN_STEP_MS = 50;
/** Error codes of a failed start that mean that there is no session to continue. */
const NONE_THERE: ReadonlySet<unknown> = new Set(['UNKNOWN_SESSION', 'CLOSE_INTERRUPTED']);

const sessionName = z.string().min(1).max(200);

const anyFunction = z.custom((value) => typeof value === 'function', {
  error: 'expected a function',
});

/**
 * Creates a pool, which wakes a session for each use, and suspends it when it is idle and unused.
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
  /** The current searches, each of which may hold a claim. */
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

  async questions(query: QuestionsQuery = {}): Promise<QuestionsPage> {
    check('questions(query)', querySchema, query, 'INVALID_ARGUMENT');
    const { kind, after = '', sessions = 100 } = query;
    const { journal, environment } = this.#options.runtime;
    if (!journal.scopes)
      throw new ConfigurationError(
        'INVALID_OPTION',
        'questions(query): expected a journal that lists its scopes (`scopes`)',
      );
    // Loaded lazily, because only this query needs the replay.
    const { waitingQuestions } = await import('../replay/unloaded-session.ts');
    const later = (await journal.scopes())
      .map(({ scope }) => scope)
      .filter((scope) => scope > after)
      .toSorted((one, other) => (one < other ? -1 : 1));
    const questions: QuestionsPage['questions'][number][] = [];
    const unread: QuestionsPage['unread'][number][] = [];
    for (const sessionId of later.slice(0, sessions)) {
      try {
        const waiting = waitingQuestions(await journal.read({ scope: sessionId }), sessionId);
        for (const question of waiting)
          if (kind === undefined || question.kind === kind)
            questions.push({ ...question, sessionId });
      } catch (error) {
        unread.push({ sessionId, error });
      }
      // Folding a long session takes a while, so other tasks run in between.
      await new Promise<void>((resolve) => environment.scheduler.yieldThen(resolve));
    }
    const last = later.length > sessions ? later[sessions - 1] : undefined;
    return { questions, unread, next: last ?? null };
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
    // A session that is about to leave may still stay, so the loop repeats.
    while (this.#entries.size > 0)
      await Promise.all(
        [...this.#entries.values()].map(async (entry) => {
          await entry.started.catch(() => {});
          // A session that failed to start removes itself.
          if (this.#entries.get(entry.id) === entry) await this.#sendAway(entry);
        }),
      );
    // Claims belong to the process: a late release by this pool would end a claim of the next pool.
    await Promise.all([stopped, ...this.#looks]);
  }

  /** Returns the session once it is usable, and counts it as in use. */
  async #startedEntry(sessionId: string): Promise<PooledEntry<S>> {
    for (;;) {
      const entry = await this.#entry(sessionId);
      try {
        await entry.started;
        return entry;
      } catch (error) {
        this.#leave(entry);
        // The start only looked for an existing session, or finished an earlier process's close; now a new session may start.
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

  /** Returns the awake session, or wakes it; counts it as in use. */
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
      () => this.#now,
      (hasEnded) => {
        if (this.#entries.get(sessionId) !== entry || entry.isLeaving) return;
        // If another process continues the session, that process stores the wake time.
        void this.#quietly(`the time of ${sessionId}`, () =>
          this.#leaves(entry, async () => {
            if (hasEnded) await this.#times.set(sessionId, null);
          }),
        );
      },
    );
    this.#entries.set(sessionId, entry);
    entry.enter();
    entry.begin(async () => {
      try {
        await session.start({ ifKnown });
        //   SESSION-POOL-4. Set only after the start, because another process may have the session.
        await this.#times.set(sessionId, AT_ONCE);
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

  /** Suspends the sessions that have been idle longest, until there is room for `more`; busy sessions stay. */
  #makeRoom(more = 0): void {
    if (this.#entries.size + more <= this.#options.maxAwake) return;
    const staying = [...this.#entries.values()].filter((entry) => !entry.isLeaving);
    const excess = Math.max(0, staying.length + more - this.#options.maxAwake);
    const idle = staying.filter((entry) => entry.mayLeave);
    for (const entry of idle.toSorted((one, other) => one.usedAt - other.usedAt).slice(0, excess))
      void this.#sendAway(entry);
  }

  /** Makes a session leave; `leave` is its last operation in this process. */
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
      // SESSION-POOL-3
      await this.#times.set(id, dueAt);
    } catch (error) {
      // Unless the pool is closed, the session stays until its wake time can be stored.
      if (!this.#closed && !entry.isOver) throw error;
      this.#report(error, `the time of ${id}`);
    }
    const isStill = session.isIdle && session.nextDueAt === dueAt;
    if (!isStill && !this.#closed) {
      // SESSION-POOL-2. An event arrived meanwhile.
      await this.#times.set(id, AT_ONCE);
      // A session that has ended leaves in any case.
      if (!entry.isOver) return;
    }
    let isAsleep = false;
    try {
      isAsleep = await session.hibernate();
      if (!isAsleep && dueAt !== AT_ONCE) await this.#times.set(id, AT_ONCE);
    } finally {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    }
    if (isAsleep) {
      if (dueAt !== null) this.#wakeScheduler.knows(dueAt);
    } else if (!(await this.#look(id))) this.#wakeScheduler.missed(id);
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
    this.#makeRoom();
  }

  /** Wakes a session if it exists; its due work then starts. Returns whether any process has the session. */
  #look(sessionId: string, isTaken = false): Promise<boolean> {
    // There is no need to look for a session that is awake, unless it is leaving and has a new claim.
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
      // SESSION-POOL-6. Another process has it, or had it until that process died.
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
      // A session that is awake here still needs the claim.
      if (!this.#entries.has(sessionId)) await journal.release?.(sessionId);
      // SESSION-POOL-5
      if (!NONE_THERE.has(codeOf(error))) throw error;
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

/** An awake session with its current users, and the time of its last use. */
class PooledEntry<S extends PooledSession> {
  readonly id: string;
  readonly session: S;
  /** When the session was last used or last had an event, in milliseconds since 1970. */
  usedAt: number;
  /** Whether the session has ended or been suspended, for any reason. */
  isOver = false;
  /** Settles when the session is usable, or its start has failed. */
  started: Promise<void> = Promise.resolve();
  readonly #now: () => number;
  #uses = 0;
  #leaving: Promise<void> | null = null;

  /** @param gone Called when the session is over although the pool did not suspend it; `hasEnded`: no process continues it. */
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
    // The session's users receive the error.
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

  /** Settles when the session has left, or is to stay. */
  get left(): Promise<void> {
    return (this.#leaving ?? Promise.resolve()).catch(() => {});
  }

  /** Makes the session leave; concurrent calls share one attempt. */
  goAway(leave: () => Promise<void>): Promise<void> {
    // `#leaving` is set before `leave` runs, so that events during `leave` see it.
    this.#leaving ??= Promise.resolve()
      .then(leave)
      .finally(() => (this.#leaving = null));
    return this.#leaving;
  }
}

function codeOf(error: unknown): unknown {
  return isError(error) && 'code' in error ? error.code : null;
}
