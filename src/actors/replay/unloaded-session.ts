// Acts on a session that no process has loaded. The actions of a user or an operator are written to its journal, and
// the process that continues the session executes them.
//
//   journal ─▶ fold ─▶ is the entry accepted? ─▶ append       … later, elsewhere: fold ─▶ effects that are due
//
// Owns:     the claim while it acts, and the entries that it writes.
// Does not: execute the effects of the entries that it writes.
//
// Invariants
//   UNLOADED-SESSION-1. For each event, it writes the entry that a process running the session would have written; the
//       same machines check the event first.
//   UNLOADED-SESSION-2. A session that another process has claimed is refused (`SCOPE_IN_USE`) before anything is
//       written.
//   UNLOADED-SESSION-3. An entry that the machines refuse, or that cannot be folded, is not written.
//   UNLOADED-SESSION-4. After an entry, the wake time of a session that a pool has suspended is set to now, so that a
//       process loads the session.

import { propertiesOf } from '../../values/json.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { storable } from '../../values/storable.ts';
import type { BudgetLimits } from '../contracts/config.ts';
import { checkedBy, type VouchedFor } from '../contracts/identity.ts';
import { isWaiting, type AnswerReceipt, type QuestionView } from '../contracts/session-views.ts';
import { usageBelow } from '../contracts/usage.ts';
import type { MessageMode, WaitingState } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';
import { SNAPSHOT, canContinue } from '../session/lifecycle/session-journal.ts';
import { SESSION_VERSION } from '../session/unit/session-entries.ts';
import { checkedAnswer, type GivenAnswer } from '../subagent/ask-user.ts';
import { argument } from '../subagents/service-arguments.ts';
import { MAX_UNREAD } from '../subagent/subagent.ts';
import { SUBAGENT_VERSION } from '../subagent/subagent-events.ts';
import { Replay, quarantineReasons, type ReplayStep } from './replay-session.ts';
import type { ReplayView } from './replay-view.ts';

/** The result of a message to a subagent. */
export type UnloadedMessage =
  | { readonly accepted: true; readonly messageId: string; readonly by?: string }
  | { readonly accepted: false; readonly reason: 'unknown' | 'over' | 'too_many_unread' };

/** The result of a cancellation. */
export type UnloadedCancellation =
  | { readonly accepted: true; readonly by?: string }
  | { readonly accepted: false; readonly reason: 'unknown' | 'over' };

/** The result of raising limits; it contains their new totals. */
export type UnloadedRaise =
  | { readonly accepted: true; readonly limits: BudgetLimits; readonly by?: string }
  | { readonly accepted: false; readonly reason: 'unknown' | 'over' | 'no_such_limit' | 'lower' };

export class UnloadedSession {
  readonly #journal: Journal;
  readonly #environment: Environment;
  readonly #sessionId: string;
  readonly #entries: JournalEntry[];
  readonly #wasAsleep: boolean;
  #replay: Replay;
  #last: ReplayStep;

  private constructor(
    journal: Journal,
    environment: Environment,
    entries: readonly JournalEntry[],
    last: JournalEntry,
  ) {
    this.#journal = journal;
    this.#environment = environment;
    this.#sessionId = last.scope;
    this.#entries = [...entries];
    this.#wasAsleep = last.event.type === SNAPSHOT && propertiesOf(last.event)['isAsleep'] === true;
    [this.#replay, this.#last] = folded(this.#entries);
  }

  /**
   * Claims the session and folds its entries. `release` ends the claim.
   * @throws {ConfigurationError} `UNKNOWN_SESSION`: the journal does not contain the session, or the session was closed.
   * @throws {CapacityError} `SCOPE_IN_USE`: another process has the session.
   * @throws {JournalError} `JOURNAL_CUT`, `JOURNAL_GAP`, `JOURNAL_VERSION`
   */
  static async claim(
    journal: Journal,
    sessionId: string,
    environment: Environment,
  ): Promise<UnloadedSession> {
    await journal.claim?.(sessionId);
    try {
      const entries = await journal.read({ scope: sessionId });
      const last = entries.at(-1);
      if (!last || !canContinue(entries, sessionId))
        throw new ConfigurationError(
          'UNKNOWN_SESSION',
          last
            ? `The session "${sessionId}" was closed: nothing can be done in it any more`
            : `The journal has no session "${sessionId}"`,
        );
      return new UnloadedSession(journal, environment, entries, last);
    } catch (error) {
      await journal.release?.(sessionId);
      throw error;
    }
  }

  /** The whole session, after the latest entry. */
  get view(): ReplayView {
    return this.#last.view;
  }

  /** The states of the session's machines, for `whyWaiting`. */
  get machines(): WaitingState | null {
    return this.#last.machines;
  }

  /**
   * Answers a question like `session.answer`. The question counts as shown.
   * @throws {ConfigurationError} `INVALID_ANSWER`, `INVALID_ARGUMENT`, `INVALID_STATE` for changed arguments, which only
   *   a running session can check (rejects).
   */
  async answer(
    requestId: string,
    answer: GivenAnswer,
    options: VouchedFor = {},
  ): Promise<AnswerReceipt> {
    const given = checkedAnswer('answer(requestId, answer)', answer);
    const by = checkedBy('answer(requestId, answer, options)', options);
    // Only the tool's schema could check the arguments, but no process has the tool.
    if (given.input !== undefined)
      throw new ConfigurationError(
        'INVALID_STATE',
        'answer(requestId, answer): expected no `input`, because no process runs the session: start it, and answer there',
      );
    if (!this.view.questions.some((question) => question.requestId === requestId))
      return { accepted: false, reason: 'unknown' };
    const at = this.#now();
    const { optionId, text, approved, lasts } = given;
    const event = {
      type: 'answer.given',
      ticket: this.#environment.ids.next('ans'),
      requestId,
      ...withoutUndefined({ optionId, text, approved, lasts, by }),
      at,
    } as const;
    const before = this.#replay.receiptOf(event);
    const isShown = before?.accepted === false && before.reason === 'not_presented';
    const shown = {
      type: 'question.shown',
      startsClock: true,
      ...(by === undefined ? {} : { by }),
      at,
    };
    if (isShown) await this.#write(this.#sessionId, `question:${requestId}`, shown);
    const receipt = isShown ? this.#replay.receiptOf(event) : before;
    if (!receipt?.accepted) return receipt ?? { accepted: false, reason: 'unknown' };
    return (await this.#write(this.#sessionId, 'answers', event))
      ? receipt
      : { accepted: false, reason: 'over' };
  }

  /**
   * Cancels a subagent and all subagents below it. They end when a process continues the session.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   */
  async cancel(
    subagentId: string,
    reason: string,
    options: VouchedFor = {},
  ): Promise<UnloadedCancellation> {
    const by = checkedBy('cancel(subagentId, reason, options)', options);
    if (!this.#replay.unreadOf(subagentId)) return this.#gone(subagentId);
    const at = this.#now();
    const event = { type: 'subagent.cancel', reason, ...(by === undefined ? {} : { by }), at };
    return (await this.#write(subagentId, 'subagent', event))
      ? { accepted: true, ...(by !== undefined && { by }) }
      : { accepted: false, reason: 'over' };
  }

  /**
   * Sends a message to a subagent, which reads it when a process continues the session.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   */
  async message(
    subagentId: string,
    text: string,
    { mode = 'steer', ...options }: VouchedFor & { readonly mode?: MessageMode } = {},
  ): Promise<UnloadedMessage> {
    const by = checkedBy('message(subagentId, text, options)', options);
    const unread = this.#replay.unreadOf(subagentId);
    if (!unread) return this.#gone(subagentId);
    if (unread.length >= MAX_UNREAD) return { accepted: false, reason: 'too_many_unread' };
    const messageId = this.#environment.ids.next('msg');
    const event = {
      type: 'subagent.message',
      messageId,
      mode,
      text,
      ...(by === undefined ? {} : { by }),
      at: this.#now(),
    };
    return (await this.#write(subagentId, 'subagent', event))
      ? { accepted: true, messageId, ...(by !== undefined && { by }) }
      : { accepted: false, reason: 'over' };
  }

  /**
   * Raises limits of a subagent's budget (for null, of the session's own budget) to new totals, like
   * `session.subagents.raiseBudget`. The process that continues the session takes the difference from the budget above.
   * If too little is left there, the subagent shares the rest.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   */
  async raiseBudget(
    subagentId: string | null,
    limits: BudgetLimits,
    options: VouchedFor = {},
  ): Promise<UnloadedRaise> {
    const raised = argument('limits', 'raiseBudget(subagentId, limits)', limits);
    const by = checkedBy('raiseBudget(subagentId, limits, options)', options);
    const { subagents } = this.view;
    const owner = subagentId === null ? this.view : subagents.find(({ id }) => id === subagentId);
    if (subagentId !== null && (!owner || !this.#replay.unreadOf(subagentId)))
      return this.#gone(subagentId);
    const { budget = {} } = owner ?? {};
    const used = usageBelow(subagents, subagentId);
    const least: BudgetLimits = { tokens: used.totalTokens, cost: used.cost ?? 0 };
    for (const name of Object.keys(raised) as (keyof BudgetLimits)[]) {
      const before = budget[name];
      if (before === undefined) return { accepted: false, reason: 'no_such_limit' };
      if ((raised[name] ?? 0) < Math.max(before, least[name] ?? 0))
        return { accepted: false, reason: 'lower' };
    }
    const event = {
      type: 'budget.raised',
      limits: raised,
      ...(by === undefined ? {} : { by }),
      at: this.#now(),
    };
    const [unit, actor] =
      subagentId === null ? [this.#sessionId, 'budget'] : [subagentId, 'subagent'];
    return (await this.#write(unit, actor, event))
      ? { accepted: true, limits: { ...budget, ...raised }, ...(by !== undefined && { by }) }
      : { accepted: false, reason: 'over' };
  }

  /** Ends the claim, so that another process may continue the session. */
  async release(): Promise<void> {
    await this.#journal.release?.(this.#sessionId);
  }

  #gone(subagentId: string): { readonly accepted: false; readonly reason: 'unknown' | 'over' } {
    const isKnown = this.view.subagents.some(({ id }) => id === subagentId);
    return { accepted: false, reason: isKnown ? 'over' : 'unknown' };
  }

  /** Returns the time, which is never before the latest entry, even if this machine's clock is behind. */
  #now(): number {
    return Math.max(this.#environment.clock.now(), this.#last.entry.at);
  }

  /** Writes an entry. If the entry is not accepted, writes nothing and returns false (UNLOADED-SESSION-3). */
  async #write(
    unit: string,
    actor: string,
    event: { readonly type: string; readonly at: number },
  ): Promise<boolean> {
    const before = this.#entries.findLast((each) => each.unit === unit);
    const entry: JournalEntry = {
      scope: this.#sessionId,
      unit,
      seq: (before?.seq ?? 0) + 1,
      at: event.at,
      actor,
      definitionVersion: unit === this.#sessionId ? SESSION_VERSION : SUBAGENT_VERSION,
      event: storable(event),
    };
    const step = this.#replay.take(entry);
    if (!step.isAccepted || step.setAside !== null) {
      // The entry was folded only to see whether it would be accepted. Folding the other entries again removes it from
      // the state.
      [this.#replay, this.#last] = folded(this.#entries);
      return false;
    }
    await this.#journal.append(entry);
    this.#entries.push(entry);
    this.#last = step;
    // UNLOADED-SESSION-4
    if (this.#wasAsleep) await this.#journal.wakeTimes?.set(this.#sessionId, event.at);
    return true;
  }
}

/**
 * Returns a session's questions that wait for an answer, and the latest that have been answered, according to its
 * entries; none if the session has ended, or if the entries do not belong to a session.
 * @throws {JournalError} `JOURNAL_CUT`, `JOURNAL_GAP`, `JOURNAL_VERSION`
 */
export function questionsOf(
  entries: readonly JournalEntry[],
  sessionId: string,
): readonly QuestionView[] {
  if (entries.length === 0 || !canContinue(entries, sessionId)) return [];
  const [{ answered }, { view }] = folded(entries);
  return [...view.questions.filter(({ state }) => isWaiting(state)), ...answered];
}

function folded(entries: readonly JournalEntry[]): [replay: Replay, last: ReplayStep] {
  const replay = new Replay(quarantineReasons(entries));
  const [first, ...rest] = entries;
  if (!first) throw new ConfigurationError('UNKNOWN_SESSION', 'The journal has no such session');
  let last = replay.take(first);
  for (const entry of rest) last = replay.take(entry);
  return [replay, last];
}
