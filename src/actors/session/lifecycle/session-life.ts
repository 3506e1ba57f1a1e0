// A session's start and end in this process: it starts as a new session or from its journal, and is later closed or
// suspended.
//
//   read ─▶ restore the snapshot, refold the rest ─▶ what is due ─▶ session.recovered ─▶ session.start
//
// Owns:     the callers that wait for the start or the end, and the order in which the session's parts start, are
//           restored and leave.
// Does not: decide when the session is connected or closed (its machine does), decide which effects are due
//           (session-effects), fold entries (units), or manage suspended sessions (session-pool.ts).
//
// Invariants
//   SESSION-LIFE-1. A start settles exactly once: when the lead agent is connected, when a resumed session waits
//       without a connection, or when it is certain that no connection will be made.
//   SESSION-LIFE-2. A start that failed before anything was started holds no claim and can be repeated.
//   SESSION-LIFE-3. A suspended session writes every accepted event, and does not report that it has ended.
//   SESSION-LIFE-4. A session that leaves this process does not release the claim of a later session with the same id,
//       if that session continues in this process under the same claim.
//   SESSION-LIFE-5. A start after the session has ended or been suspended is refused. The error names the state and the
//       remedy. The store also shows the state: `closed` or `suspended`.
//   SESSION-LIFE-6. If a process died during a close, the next start completes the close and reports it
//       (`CLOSE_INTERRUPTED`). The session has then ended as if it had been closed in time, and a new session can use
//       its id.
//   RECOVERY-1. The effects of old entries are not executed again. The session derives from its state everything that
//       is due: deadlines with their original time, interrupted work, and ends that were not reported.
//   RECOVERY-2. First, the entry `session.recovered` removes everything that no longer exists (clients, connections,
//       voices). Questions are asked again with the same ids, and unheard deliveries are due again. An exception is a
//       session that was idle when it was suspended (`session.woken`). Its clients are considered still attached.
//   RECOVERY-3. Messages between units that the crash may have lost are sent again. A unit that has already applied a
//       message ignores it.
//   RECOVERY-4. An entry that cannot be folded is quarantined (runtime/quarantine.ts). An unreadable snapshot is
//       quarantined too, and the entries before it are folded if the journal has them.

import { outageOf, type Failure } from '../../../machines/index.ts';
import {
  CancelledError,
  ConfigurationError,
  isA,
  messageOf,
  OffstageError,
  ProviderError,
} from '../../../values/errors.ts';
import type { Supervisor } from '../../admission/supervisor.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { CallRecord } from '../../contracts/records.ts';
import type { EventFor } from '../../contracts/session-protocol.ts';
import type { RecoveryReport, SessionEvent } from '../../contracts/session-views.ts';
import { isGreeting } from '../../conversation/prompts.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import type { WorkingMemory } from '../../ports/working-memory.ts';
import { callSafely } from '../../runtime/host.ts';
import type { ScopeJournal, ScopeSnapshots } from '../../runtime/scope-journal.ts';
import { quarantinedIn, UnfoldableEntry } from '../../runtime/quarantine.ts';
import { restoredUnits } from '../../subagents/restoration.ts';
import type { EffectsSession } from '../effects/effects-session.ts';
import type { SessionEffects } from '../effects/session-effects.ts';
import { showUsage } from '../lead/lead-usage.ts';
import { needsNoReply } from '../lead/settle-tool.ts';
import { isOfTelling } from '../lead/text-lead.ts';
import type { Recovery } from '../lead/lead-agents.ts';
import { lostBy, openedWith, OPENING_ACTOR, SESSION_VERSION } from '../unit/session-entries.ts';
import { canContinue, historyOf, type SessionHistory } from './session-journal.ts';
import type { StartOptions } from './session-options.ts';
import type { SessionScope } from './session-scope.ts';

/** The parts of a session that its start and end use. */
export interface HostedSession extends EffectsSession {
  /** The ports that the subagents of background calls use. */
  readonly ofCalls: SessionScope;
  /** The ports of the subagents that the lead agent spawned with a tool. */
  readonly ofLead: SessionScope;
  /** This session's view of the journal. */
  readonly journal: ScopeJournal;
  readonly snapshots: ScopeSnapshots;
  readonly upkeep: Upkeep;
  readonly supervisor: Supervisor;
  /** The trace context of the request that opened the session. */
  readonly traceparent: string | undefined;
  readonly workingMemory: WorkingMemory | undefined;
  /** Entries that this process could not fold. */
  readonly quarantined: RecoveryReport['setAside'];
}

/** The activities that another process must not restart without further checks. */
const NOT_RESUMED: ReadonlySet<string> = new Set(['execute', 'read', 'send']);

const suspended: Failure = {
  code: 'SUSPENDED',
  message: 'The session was suspended: it goes on when it is started again',
  retryable: true,
};

export class SessionLife {
  readonly #core: HostedSession;
  readonly #effects: SessionEffects;
  /** The facts from which the session was resumed; null if the session is new. */
  #recovery: Recovery | null = null;
  /** Whether the session was resumed from its journal. */
  #isContinued = false;
  #started: Promise<void> | null = null;
  #settleStart: { resolve: () => void; reject: (error: Error) => void } | null = null;
  #leaving: Promise<boolean> | null = null;
  /** The reported reason why the session has no connection. */
  #restsFor: string | null = null;
  #closed: (() => void)[] = [];
  /** Whether at least one start has resolved. */
  #hasBegun = false;
  /** The final state in this process, or null while the session is in this process. */
  #overAs: 'closed' | 'suspended' | null = null;

  constructor(core: HostedSession, effects: SessionEffects) {
    this.#core = core;
    this.#effects = effects;
  }

  /**
   * Resolves when the lead agent is connected, or when a resumed session waits without a connection. Rejects with the
   * reason why it cannot be connected.
   */
  start({ ifKnown = false }: StartOptions = {}): Promise<void> {
    //   SESSION-LIFE-5. If a session could not start, its first start rejects with the reason.
    if (this.#isEnding && (this.#hasBegun || !this.#started))
      return Promise.reject(this.#overError());
    this.#started ??= (async () => {
      const entries = await this.#read(ifKnown).catch((error: unknown) => {
        //   SESSION-LIFE-2. At the next attempt, the journal may be reachable or no longer claimed.
        this.#started = null;
        throw error;
      });
      await new Promise<void>((resolve, reject) => {
        // Set before the recovery, because the session may end or be suspended before it is fully restored
        // (SESSION-LIFE-1).
        this.#settleStart = { resolve, reject };
        this.#recovery = this.#recover(entries);
        this.#core.receive('session', { type: 'session.start' });
      }).catch(async (error: unknown) => {
        if (!this.#isLostBy(error)) throw error;
        const { journal, id, host } = this.#core;
        const lost = { id, host, version: SESSION_VERSION };
        throw await journal.lose(lost, 'session', lostBy(error), error);
      });
    })();
    return this.#started;
  }

  async #read(ifKnown: boolean): Promise<readonly JournalEntry[]> {
    const { agents, journal, host, id } = this.#core;
    await agents.prepare();
    this.#checkNotOver();
    return journal.open(id, host, (entries) => {
      this.#checkNotOver();
      if (ifKnown && !canContinue(entries, id))
        throw new OffstageError(
          'UNKNOWN_SESSION',
          `The journal has no session "${id}", or it was closed: expected a session to continue`,
        );
    });
  }

  /** Rejects the start if the session has been closed, because nothing else would settle it. */
  #checkNotOver(): void {
    if (this.#unit.disposed) throw new CancelledError('closed');
  }

  #recover(entries: readonly JournalEntry[]): Recovery | null {
    try {
      return this.#open(this.#restore(entries, true));
    } catch (error) {
      //   SESSION-LIFE-2. This process cannot continue the session, but another may.
      if (!this.#isLostBy(error))
        void this.#core.journal.releaseSafely(this.#core.id, this.#core.host);
      throw error;
    }
  }

  /**
   * Opens the session. A new session starts; a resumed session executes the effects that are due according to the
   * journal. Returns the facts from which the session resumes. Null if the session is new; an earlier, closed session
   * may have had the same id.
   * @throws {ConfigurationError} `UNKNOWN_AGENT` if the previous lead agent no longer exists.
   */
  #open(history: SessionHistory): Recovery | null {
    const core = this.#core;
    const effects = this.#effects;
    const { unit, tree, services } = core;
    const { snapshot, lastAt, isAsleep } = history;
    if (history.hasUnreadable) core.snapshots.keepAll();
    services.refold(history, snapshot?.services);
    if (history.isNew) {
      unit.begin();
      const event = openedWith(unit.inputs, core.traceparent);
      unit.unit.resume({ actor: OPENING_ACTOR, event });
      return null;
    }
    this.#isContinued = true;
    core.userInput.continued();
    core.agents.checkLeader();
    if (isAsleep) core.upkeep.wasEnded();
    const known = snapshot?.delegation;
    const subagents = restoredUnits(history.units, known?.subagents);
    const restored = tree.restore(subagents, [core.ofCalls, core.ofLead], {
      gone: known?.gone ?? [],
      histories: known?.histories ?? {},
      awakeMs: history.awakeMs,
      raised: core.records.facts.raised,
    });
    // A running tool is handled separately, because it may already have had an effect (P6). A question is asked again
    // if a model was interpreting the user's words for it.
    unit.unit.releaseDue(unit.underWay.filter(({ effect }) => !NOT_RESUMED.has(effect.name)));
    effects.replyAgain();
    const continues: EventFor<'session'> = isAsleep
      ? { type: 'session.woken' }
      : { type: 'session.recovered', lastAt };
    unit.unit.resume({ actor: 'session', event: continues });
    const { items } = core.records.conversation;
    const tookOver = items.findLastIndex(({ role }) => role === 'transfer');
    const recovery = {
      // An attached client either received the reply before the session was suspended, or will never receive it.
      owesReply:
        !(isAsleep && unit.session.snapshot.value.client === 'attached') && owesReply(core),
      // The result of a transfer tool answers its call and is not the new agent's speech.
      hasGreeted: items.slice(tookOver + 1).some(({ role }) => role !== 'tool_result'),
      hasEntered: core.records.facts.hasEntered || tookOver >= 0,
      takesOverFrom: core.records.facts.takesOverFrom,
    };
    for (const subagent of tree.views) core.projection.emit({ type: 'subagent.changed', subagent });
    showUsage(core);
    effects.resume(isAsleep);
    const { live, pending, lost } = restored;
    const continuing = [...live, ...pending, ...lost.map(({ record }) => record)];
    core.ofLead.expectOnly(new Set(continuing.map(({ id }) => id)));
    for (const scope of [core.ofCalls, core.ofLead]) scope.recovered(recovery.owesReply);
    tree.resume(restored);
    withdrawQuestionsOfEnded(core);
    core.journal.found(history.folded);
    const report: SessionEvent & RecoveryReport = {
      type: 'session.recovered',
      entries: history.folded,
      resumed: live.map((record) => record.id),
      lost: lost.map(({ record, reason }) => ({ subagentId: record.id, reason })),
      setAside: core.quarantined,
      downMs: core.host.environment.clock.now() - lastAt,
    };
    core.projection.emit(report);
    return recovery;
  }

  /**
   * Sets the unit and the records to the state in the journal (RECOVERY-4). Returns the history. `isFresh`: both are in
   * their initial state. Keeps their actors, because observers may be following them.
   * @throws {OffstageError} if the journal cannot be folded.
   */
  #restore(entries: readonly JournalEntry[], isFresh = false): SessionHistory {
    const { id, host, unit, records } = this.#core;
    let isClean = isFresh;
    const quarantined = quarantinedIn(entries.filter((entry) => entry.unit === id));
    for (;;) {
      const history = historyOf(entries, id, quarantined);
      const { snapshot, snapshotEntry, unfit } = history;
      const [first] = unfit;
      if (first && host.onUnfoldable === 'lose') throw first;
      const begin = (): void => {
        if (!isClean) {
          unit.reset();
          records.reset();
        }
        isClean = false;
        if (!snapshot) {
          unit.unit.setSequence(history.before(id));
          return;
        }
        unit.restore(snapshot.unit, snapshot.inputs, history.before(id));
        records.restore(snapshot.books);
      };
      const reason = snapshotEntry && failureOf(begin);
      if (snapshotEntry && reason !== null) {
        const { seq, event } = snapshotEntry;
        const entry = { scope: id, unit: id, seq, event: event.type, reason };
        if (host.onUnfoldable === 'lose')
          throw new UnfoldableEntry(entry, null, 'The session is lost');
        quarantined.add(seq);
        unit.unit.quarantine(new UnfoldableEntry(entry, null));
        continue;
      }
      if (!snapshotEntry) begin();
      if (!history.isNew) unit.refold(history.of(id));
      for (const one of unfit) unit.unit.quarantine(one);
      return history;
    }
  }

  /** Whether the session has ended or is ending. */
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

  /** Handles a change of the connection. Called by the effect handlers. */
  connectionChanged(): void {
    const { unit, projection, agents, lead, services, host, hooks, id: sessionId } = this.#core;
    const { snapshot } = unit.session;
    const state = snapshot.value.connection;
    if (state === projection.connection) return;
    const outage = outageOf(snapshot);
    projection.emit({ type: 'connection.changed', state, ...(outage && { outage }) });
    if (state === 'active') this.#restsFor = null;
    const rests = state === 'resting' || state === 'refused';
    if (outage && (rests || state === 'closing') && this.#restsFor !== outage.message) {
      this.#restsFor = outage.message;
      this.#core.reportError(new ProviderError(outage.code, outage.message), 'connection');
    }
    if ((state !== 'active' && !rests) || !this.#settleStart) return;
    const recovery = this.#recovery;
    agents.begin(recovery);
    if (recovery) lead.begin(recovery.owesReply ? 'reply' : null);
    services.start();
    this.#hasBegun = true;
    this.#settleStart.resolve();
    this.#settleStart = null;
    callSafely(host, 'hook onSessionStart', () => hooks.onSessionStart?.({ sessionId }));
  }

  /** Cancels running work, and resolves when the session has ended completely. Never rejects. */
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
      // Repeated calls to `close` cause only one event.
      if (this.#closed.length > 1) return;
      // The journal does not record the session as closed, so it can be continued later.
      if (this.#unit.isPaused) this.#effects.endUnopened();
      else this.#core.receive('session', { type: 'session.close' });
    });
  }

  /**
   * Writes accepted events and removes the session from this process without reporting that it ended. If `isIdle`, the
   * session later continues as if it had never left memory. Returns whether the session was still idle when it left
   * this process.
   */
  suspend(isIdle: () => boolean = () => false): Promise<boolean> {
    return (this.#leaving ??= this.#putAway(isIdle));
  }

  async #putAway(isIdle: () => boolean): Promise<boolean> {
    const { snapshots, journal, upkeep } = this.#core;
    if (this.#unit.disposed) return false;
    if (this.#unit.isPaused) {
      // The session was not started here, so nothing has to be written.
      this.leave(null);
      await upkeep.end();
      await journal.release(this.#core.id);
      return false;
    }
    const wasIdle = await snapshots.takeLast(() => this.#isBusy, isIdle);
    const isAsleep = wasIdle && journal.sinceAll === 0;
    this.leave(null);
    await Promise.all([upkeep.end(), snapshots.whenTrimmed()]);
    await journal.release(this.#core.id);
    return isAsleep;
  }

  get #isBusy(): boolean {
    const { tree, services } = this.#core;
    return this.#unit.isBusy || tree.isBusy || services.isBusy;
  }

  /**
   * Removes the session from this process, so that another or a later process can continue it. @param error Null if the
   * app requested it.
   */
  leave(error: Failure | null): void {
    if (this.#unit.disposed) return;
    const { services, tree, lead } = this.#core;
    services.suspend();
    tree.release();
    this.#effects.suspend();
    lead.disconnect(true);
    this.#left({ type: 'session.suspended', error }, error ?? suspended);
  }

  /** Handles the end of the session after its last event. Called by the effect handlers. */
  ended(error: Failure | null): void {
    const { tree, records, projection, host, id, workingMemory } = this.#core;
    tree.dispose();
    // After a normal close, the working memory is no longer needed. After an error, or if the session did not start
    // here, a session with the same id may still need it.
    if (!error && !this.#unit.isPaused)
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
    void this.#core.journal.releaseSafely(this.#core.id, this.#core.host);
    this.#left({ type: 'session.ended', error }, error);
  }

  /** Shuts down all parts of the session in this process. */
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
      error
        ? new OffstageError(error.code, error.message)
        : this.#isContinued && this.#closed.length === 0
          ? closeInterrupted(id)
          : new CancelledError('closed'),
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

/** SESSION-LIFE-6 */
function closeInterrupted(id: string): OffstageError {
  return new OffstageError(
    'CLOSE_INTERRUPTED',
    `The session "${id}" was being closed when its process ended, and is closed now: make another session, its id begins a new one`,
  );
}

/** Returns the message of the error that `begin` throws; null if there is no error. */
function failureOf(begin: () => void): string | null {
  try {
    begin();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Withdraws questions whose asker ended in a process that could not write the withdrawal. */
function withdrawQuestionsOfEnded(core: HostedSession): void {
  for (const { requestId, subagentId } of core.records.questions.values()) {
    const asker = core.tree.get(subagentId);
    if (asker?.outcome === null) continue;
    const reason = 'its subagent has ended';
    core.receive(`question:${requestId}`, { type: 'question.withdraw', reason });
  }
}

/**
 * Returns whether the lead agent still owes a response to the user's latest input, or to the result of a tool called
 * for that input, or whether the current agent still has to greet the user. The outbox handles subagents' results.
 */
function owesReply({
  records,
  agents,
  unit,
}: Pick<HostedSession, 'records' | 'agents' | 'unit'>): boolean {
  const { items } = records.conversation;
  const calls = new Map(
    items.flatMap((item) => (item.role === 'tool_call' ? [[item.callId, item] as const] : [])),
  );
  // If a call was made during the report of a due delivery, the repeated report makes the call again.
  const isOfOffer = (callId: string): boolean =>
    calls.get(callId)?.repliesTo === null || isOfTelling({ records, unit }, callId);
  // The process died after the call had returned its result but before the result was in the conversation.
  const isUntold = ({ callId, name, output, isAnswered }: CallRecord): boolean =>
    unit.calls.stateOf(callId)?.value === 'answered' &&
    !isAnswered &&
    !needsNoReply(name, output) &&
    !isOfOffer(callId);
  if ([...records.calls.values()].some(isUntold)) return true;
  const asked = items.findLastIndex((item) => {
    if (item.role !== 'tool_result')
      return item.id === records.utteranceId || isGreeting(item, agents.current);
    const { callId, isPending = false, wantsReply = true } = item;
    const state = unit.calls.stateOf(callId)?.value;
    const isWorkedOn = state !== undefined && state !== 'settled' && state !== 'delivered';
    return wantsReply && !isOfOffer(callId) && (isPending ? isWorkedOn : state !== 'settled');
  });
  const places = new Map(items.map(({ id }, index) => [id, index]));
  // For each reply, the position up to which the model had read (TEXT-LEAD-9).
  const lastOfModel = items.findLast(({ role }) => role === 'assistant' || role === 'tool_call');
  const readTo = items.map((item, index) => {
    if (item.role === 'assistant')
      return item.repliesTo === null ? -1 : (places.get(item.repliesTo ?? '') ?? index);
    // The call counts as a reply unless the next call in the same response was lost.
    const isReply = item.role === 'tool_call' && !(item.isFollowed && item === lastOfModel);
    return isReply ? (places.get(item.repliesTo ?? '') ?? -1) : -1;
  });
  return asked > Math.max(-1, ...readTo);
}
