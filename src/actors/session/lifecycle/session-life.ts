// The life of a session in this process: it begins, as a new session or from its journal, and ends for good,
// or is suspended.
//
// Owns:     the callers that wait for its start and for its end, and the order in which its parts begin and
//           leave.
// Does not: decide when it is connected or closed (its machine does), restore the parts from the journal
//           (recovery.ts), or manage suspended sessions (session-pool.ts).
//
// Invariants
//   SESSION-LIFE-1. A start is settled once: when the lead agent is connected, or when it cannot be any more.
//   SESSION-LIFE-2. A start that failed before anything had begun can be tried again, and holds no claim.
//   SESSION-LIFE-3. A suspended session reports no end, and writes down every accepted event.
//   SESSION-LIFE-4. A session that has left does not release the claim of a later session with its id in this
//       process, which continues under the same claim.
//   SESSION-LIFE-5. A start after the end, or after the session was left to its journal, is refused; the
//       error names the state of the session and the remedy. The store shows the state, too: `closed` or
//       `suspended`.

import { CancelledError, ConfigurationError, isA, OffstageError } from '../../../values/errors.ts';
import type { Failure } from '../../../machines/index.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import { callSafely } from '../../runtime/host.ts';
import { whenIdle } from '../../runtime/when-idle.ts';
import { UnfoldableEntry } from '../../runtime/set-aside.ts';
import type { SessionEvent } from '../../contracts/session-views.ts';
import { recover } from './recovery.ts';
import type { HostedSession } from './hosted-session.ts';
import type { SessionEffects } from '../effects/session-effects.ts';
import { goesOn } from './session-history.ts';
import type { StartOptions } from './session-options.ts';
import type { Recovery } from '../lead/lead-agents.ts';
import { writeLost } from '../unit/session-entries.ts';

const suspended: Failure = {
  code: 'SUSPENDED',
  message: 'The session was suspended: it goes on when it is started again',
  retryable: true,
};

export class SessionLife {
  readonly #core: HostedSession;
  readonly #effects: SessionEffects;
  /** The state that the start recovered; null: the session is new. */
  #recovery: Recovery | null = null;
  #started: Promise<void> | null = null;
  #settleStart: { resolve: () => void; reject: (error: Error) => void } | null = null;
  #leaving: Promise<boolean> | null = null;
  #closed: (() => void)[] = [];
  /** True once a start has resolved. */
  #hasBegun = false;
  /** The final state here, once nothing of the session is left. */
  #overAs: 'closed' | 'suspended' | null = null;

  constructor(core: HostedSession, effects: SessionEffects) {
    this.#core = core;
    this.#effects = effects;
  }

  /** Resolves when the lead agent is connected; rejects with the reason why it cannot be. */
  start({ ifKnown = false }: StartOptions = {}): Promise<void> {
    // SESSION-LIFE-5. The first start of a session that could not begin rejects with the reason.
    if (this.#isEnding && (this.#hasBegun || !this.#started))
      return Promise.reject(this.#overError());
    this.#started ??= (async () => {
      const entries = await this.#read(ifKnown).catch((error: unknown) => {
        // SESSION-LIFE-2. The journal may be reachable, or unclaimed, at the next attempt.
        this.#started = null;
        throw error;
      });
      await new Promise<void>((resolve, reject) => {
        // First: the session may end, or be suspended, before all of it is restored (SESSION-LIFE-1).
        this.#settleStart = { resolve, reject };
        this.#recovery = this.#recover(entries);
        this.#core.receive('session', { type: 'session.start' });
      }).catch(async (error: unknown) => {
        if (this.#isLostBy(error)) await this.#lose(entries, error);
        throw error;
      });
    })();
    return this.#started;
  }

  /** True if the session has ended, or is ending. */
  get #isEnding(): boolean {
    return (
      this.#unit.disposed ||
      this.#leaving !== null ||
      this.#closed.length > 0 ||
      this.#core.projection.connection === 'closing'
    );
  }

  #overError(): ConfigurationError {
    const { id } = this.#core;
    const isSuspended = (this.#overAs ?? (this.#leaving ? 'suspended' : 'closed')) === 'suspended';
    return isSuspended
      ? new ConfigurationError(
          'SESSION_SUSPENDED',
          `The session "${id}" was suspended: this object has left it. Make another session with this \`sessionId\` and the same journal, and start that one`,
        )
      : new ConfigurationError(
          'SESSION_CLOSED',
          `The session "${id}" is closed, or being closed: it cannot be started again. Make another session`,
        );
  }

  #isLostBy(error: unknown): error is UnfoldableEntry {
    return isA(error, UnfoldableEntry) && this.#core.host.onUnfoldable === 'lose';
  }

  /**
   * Gives the session up as lost: its journal has an entry that cannot be applied, and the app chose that.
   */
  async #lose(entries: readonly JournalEntry[], error: UnfoldableEntry): Promise<never> {
    const { id } = this.#core;
    const last = entries.findLast(({ unit }) => unit === id)?.seq ?? 0;
    try {
      await writeLost(this.#core, last + 1, error);
    } finally {
      callSafely(this.#core.host, 'journal', () => this.#release());
    }
    throw new OffstageError('SESSION_LOST', `The session "${id}" is lost: ${error.message}`, {
      cause: error,
    });
  }

  #recover(entries: readonly JournalEntry[]): Recovery | null {
    try {
      return recover(this.#core, this.#effects, entries);
    } catch (error) {
      // SESSION-LIFE-2. It does not fit this process: another one may continue it.
      if (!this.#isLostBy(error)) callSafely(this.#core.host, 'journal', () => this.#release());
      throw error;
    }
  }

  async #read(ifKnown: boolean): Promise<readonly JournalEntry[]> {
    const { agents, journal, id } = this.#core;
    await agents.prepare();
    this.#checkNotOver();
    await journal.claim(id);
    try {
      const entries = await journal.read({ scope: id });
      this.#checkNotOver();
      if (ifKnown && !goesOn(entries, id))
        throw new OffstageError(
          'UNKNOWN_SESSION',
          `The journal has no session "${id}", or it was closed: expected a session to continue`,
        );
      return entries;
    } catch (error) {
      // It does not continue here: another process may continue it.
      callSafely(this.#core.host, 'journal', () => this.#release());
      throw error;
    }
  }

  /**
   * Rejects the start of a session that was closed before, or meanwhile: nothing would settle it any more.
   */
  #checkNotOver(): void {
    if (this.#unit.disposed) throw new CancelledError('closed');
  }

  /** Handles a change of the connection; called by the effects. */
  connectionChanged(): void {
    const { unit, projection, agents, lead, services, host, hooks, id: sessionId } = this.#core;
    const state = unit.session.getSnapshot().value.connection;
    const before = projection.connection;
    projection.emit({ type: 'connection.changed', state });
    if (state !== 'active' || before === 'active' || !this.#settleStart) return;
    const recovery = this.#recovery;
    agents.begin(recovery);
    if (recovery) lead.resume(recovery.owesReply);
    services.start();
    this.#hasBegun = true;
    this.#settleStart.resolve();
    this.#settleStart = null;
    callSafely(host, 'hook onSessionStart', () => hooks.onSessionStart?.({ sessionId }));
  }

  /** Cancels running work, and resolves when nothing of the session is left. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([this.#end(), this.#core.upkeep.end()]);
  }

  #end(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#unit.disposed) {
        resolve();
        return;
      }
      this.#closed.push(resolve);
      // However often it is closed, that is one event.
      if (this.#closed.length > 1) return;
      // The life in the journal continues another time.
      if (this.#unit.isHeld) this.#effects.endUnopened();
      else this.#core.receive('session', { type: 'session.close' });
    });
  }

  /**
   * Writes accepted events down and removes the session from this process without reporting an end. If it
   * `isIdle`, it continues later as if it had never been away. Returns, for each call, whether it was idle
   * until it had left.
   */
  suspend(isIdle: () => boolean = () => false): Promise<boolean> {
    return (this.#leaving ??= this.#putAway(isIdle));
  }

  async #putAway(isIdle: () => boolean): Promise<boolean> {
    const { snapshots, journal, upkeep } = this.#core;
    if (this.#unit.disposed) return false;
    if (this.#unit.isHeld) {
      // It has not begun here: there is nothing to write down.
      this.leave(null);
      await upkeep.end();
      await this.#release();
      return false;
    }
    await this.#rested();
    // Evaluated now, not at the call: an event may have come meanwhile.
    const wasIdle = isIdle();
    const isTaken = snapshots.takeLast(wasIdle);
    if (isTaken) await this.#rested();
    const isAsleep = wasIdle && isTaken && journal.sinceAll === 0;
    this.leave(null);
    await Promise.all([upkeep.end(), snapshots.whenTrimmed()]);
    await this.#release();
    return isAsleep;
  }

  /** Writes accepted events down, as far as the journal can. */
  async #rested(): Promise<void> {
    await whenIdle(this.#core.host.environment.scheduler, () => this.#isBusy);
  }

  get #isBusy(): boolean {
    const { delegation, services } = this.#core;
    return this.#unit.isBusy || delegation.isBusy || services.isBusy;
  }

  /** Leaves the session to another process, or a later one. @param error Null: the app asked for it. */
  leave(error: Failure | null): void {
    if (this.#unit.disposed) return;
    const { services, delegation, lead } = this.#core;
    services.suspend();
    delegation.release();
    this.#effects.suspend();
    lead.disconnect();
    this.#left({ type: 'session.suspended', error }, error ?? suspended);
  }

  /** Ends the session, as its last event; called by the effects. */
  ended(error: Failure | null): void {
    const { delegation, records, projection, host, id, workingMemory } = this.#core;
    delegation.dispose();
    // The working memory may be needed under the same id after an error, or if the session was never begun
    // here; not after a close.
    if (!error && !this.#unit.isHeld)
      callSafely(host, 'working memory', () => workingMemory?.forget(id));
    // A killed subagent could not withdraw its question.
    for (const requestId of records.questions.keys()) {
      const question = projection.question(requestId);
      if (question)
        projection.emit({
          type: 'question.changed',
          question: { ...question, state: 'withdrawn', dueAt: null },
        });
    }
    callSafely(host, 'journal', () => this.#release());
    this.#left({ type: 'session.ended', error }, error);
  }

  /** Releases the claim (SESSION-LIFE-4). */
  #release(): void | Promise<void> {
    const { journal, supervisor, id } = this.#core;
    if (!this.#unit.disposed || !supervisor.isOpen(id)) return journal.release(id);
  }

  /** Ends everything of the session in this process. */
  #left(event: SessionEvent, error: Failure | null): void {
    const { unit, agents, upkeep, supervisor, userInput, projection, id } = this.#core;
    this.#overAs = event.type === 'session.suspended' ? 'suspended' : 'closed';
    unit.stop();
    agents.stop();
    void upkeep.end();
    supervisor.close(id);
    userInput.close(error && new OffstageError(error.code, error.message));
    // SESSION-LIFE-1
    this.#settleStart?.reject(
      error ? new OffstageError(error.code, error.message) : new CancelledError('closed'),
    );
    this.#settleStart = null;
    if (this.#overAs === 'suspended') {
      projection.emit({ type: 'connection.changed', state: 'suspended' });
      projection.emit({ type: 'floor.changed', floor: 'nobody' });
    }
    projection.emit(event);
    projection.complete();
    for (const resolve of this.#closed) resolve();
    this.#closed = [];
  }

  get #unit() {
    return this.#core.unit.unit;
  }
}
