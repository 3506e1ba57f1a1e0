// The API that voice and text sessions share, and the API of their subagents. Also the commands of a user, which are
// the same from a client over a network, from the inspector, and as events of a session's actor.

import { filter, map, type Observable } from 'rxjs';
import { z } from 'zod';
import { check, checkLength } from '../../../values/checks.ts';
import { ConfigurationError, isA, messageOf, OffstageError } from '../../../values/errors.ts';
import { isRecord } from '../../../values/json.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { SetDirective } from '../../contracts/directives.ts';
import type { BudgetLimits } from '../../contracts/config.ts';
import {
  checkedBy,
  checkedSource,
  type SaidBy,
  type VouchedFor,
} from '../../contracts/identity.ts';
import {
  THE_LEAD,
  type MessageSent,
  type RaiseResult,
  type SendRequest,
  type SendResult,
  type SubagentService,
} from '../../contracts/service-types.ts';
import type { SessionCommand } from '../../contracts/session-command.ts';
import type {
  AnswerReceipt,
  DeliveryView,
  QuestionView,
  ServiceView,
  SessionEvent,
  SubagentView,
  TranscriptItem,
} from '../../contracts/session-views.ts';
import { unopened, type Door } from '../../runtime/actor-tree.ts';
import { checkedAnswer, type GivenAnswer } from '../../subagent/ask-user.ts';
import type { CallsOfClients } from '../effects/client-calls.ts';
import type { NoticeOptions } from '../effects/notices.ts';
import {
  isIdle,
  nextDueAt,
  type IdleOptions,
  type NextResultOptions,
  type SessionResult,
} from '../lead/awaited.ts';
import type { TransferAnswer } from '../lead/lead-agents.ts';
import type { Schedules } from '../effects/schedules.ts';
import type { SessionCore } from '../lifecycle/session-core.ts';
import type { StartOptions } from '../lifecycle/session-options.ts';
import { refuseImages, type ShownImage } from '../questions/shown-image.ts';
import type { SessionStore } from '../state/projection.ts';

/** The states of a tool call that has no result yet. */
const PENDING: ReadonlySet<string> = new Set(['received', 'acknowledged', 'delegated']);

const INVALID_ARGUMENT = 'INVALID_ARGUMENT';
const anyId = z.string();
const words = z.string().refine((text) => text.trim() !== '', 'expected text with words');
const startOptions = z.strictObject({ ifKnown: z.boolean().optional() });

/** The subagents of a session. */
export interface SessionSubagents {
  /** Returns the live subagents, and the latest ended ones. */
  list(): readonly SubagentView[];
  /** Returns one subagent; undefined if the id is unknown. */
  get(id: string): SubagentView | undefined;
  /** Returns the subagent that works, or worked, for this tool call of the lead agent. */
  ofCall(callId: string): SubagentView | undefined;
  /** Returns the subagent that asked this question. */
  ofQuestion(requestId: string): SubagentView | undefined;
  /** The number of live subagents. */
  readonly activeCount: number;
  /**
   * Cancels a subagent. Returns false if it has ended, or is unknown.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  cancel(id: string, reason?: string, options?: VouchedFor): boolean;
  /**
   * Sends a subagent a message, or answers its request to the lead agent.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `TEXT_TOO_LONG` above 100,000 characters.
   */
  send(id: string, message: SendRequest, options?: VouchedFor): SendResult;
  /**
   * Raises limits of a subagent's budget, or (null) of the session's own, to new totals, like the service's
   * `raiseBudget` for the lead agent.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  raiseBudget(id: string | null, limits: BudgetLimits, options?: VouchedFor): RaiseResult;
  /** The subagent service, with waits, progress, streams and more; the app calls it as `THE_LEAD`. */
  readonly service: SubagentService;
}

/** A session's services; each change is an event `service.changed`. */
export interface SessionServiceViews {
  /** Returns the services of the session. */
  list(): readonly ServiceView[];
}

export abstract class BaseSession {
  /** The session's subagents: to list, cancel and instruct. */
  readonly subagents: SessionSubagents;
  /** The services of the session. */
  readonly services: SessionServiceViews;
  /** The calls of tools that clients of the user carry out; each change is an event `client_call.changed`. */
  readonly clientCalls: CallsOfClients;
  readonly #core: SessionCore;

  constructor(core: SessionCore) {
    this.#core = core;
    this.clientCalls = core.clientCalls;
    this.subagents = new SubagentsOfSession(core);
    this.services = { list: () => core.services.views };
    core.host.actors.door = doorOf(this);
  }

  /** The session's id, under which the journal stores it. */
  get id(): string {
    return this.#core.id;
  }

  /**
   * The session's XState actor, always the same object. Its children are the actors of the interaction, the outbox, the
   * questions, the calls and the subagents. An app may send it a user's commands (`SessionActorEvent`), which go
   * through the journal. Any other event, or an event without an effect, changes nothing and is emitted as `refused`.
   * Stopping the actor closes the session.
   */
  get actor(): SessionCore['unit']['actor'] {
    return this.#core.unit.actor;
  }

  /**
   * Transcript, subagents, questions and deliveries, for screens. Updated one or two turns of the event loop after a
   * change. Read-only: `send` and `trigger` throw `READ_ONLY_STORE`.
   */
  get store(): SessionStore {
    return this.#core.projection.store;
  }

  /** All events of the session, in order, without past ones; completes when the session has ended. */
  get events(): Observable<SessionEvent> {
    return this.#core.projection.events;
  }

  /** Emits each result or notice when it changes: the `delivery` of `delivery.changed` events. */
  get notifications(): Observable<DeliveryView> {
    return this.events.pipe(
      filter((event) => event.type === 'delivery.changed'),
      map((event) => event.delivery),
    );
  }

  /** Emits each question when it changes: the `question` of `question.changed` events. */
  get questions(): Observable<QuestionView> {
    return this.events.pipe(
      filter((event) => event.type === 'question.changed'),
      map((event) => event.question),
    );
  }

  /** Emits the words of both sides, partial and final: the `item` of `transcript.changed` events. */
  get transcript(): Observable<TranscriptItem> {
    return this.events.pipe(
      filter((event) => event.type === 'transcript.changed'),
      map((event) => event.item),
    );
  }

  /**
   * Shows a picture to the lead model, if it is a voice model that accepts pictures.
   * @throws {ConfigurationError} `IMAGES_NOT_ACCEPTED`
   */
  showImage(_image: ShownImage): boolean {
    return refuseImages('a text session');
  }

  /**
   * Transfers the lead to another agent. Resolves when that agent leads, or with the reason why it does not.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if the name is not a string (rejects).
   */
  async transfer(agentName: string): Promise<TransferAnswer> {
    check('transfer(agentName)', z.string(), agentName, INVALID_ARGUMENT);
    return this.#core.agents.transfer(agentName, null);
  }

  /** Sets a standing order to the lead agent; null removes it. See `ToolContext.setDirective`. */
  get setDirective(): SetDirective {
    return this.#core.agents.setDirective;
  }

  /** The lead agent's calls without a result, including background calls. */
  get pendingToolCalls(): readonly string[] {
    const { unit } = this.#core;
    const isPending = (id: string): boolean => PENDING.has(String(unit.calls.stateOf(id)?.value));
    return unit.calls.ids.filter((id) => isPending(id) || unit.runOf(id) !== null);
  }

  /**
   * Aborts a tool call, or cancels its subagent. Returns false if the call is not pending.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of the session's events wait for the journal.
   */
  cancelToolCall(callId: string): boolean {
    const isPending = this.pendingToolCalls.includes(callId);
    if (isPending) {
      this.checkRoom();
      this.#core.receive(`call:${callId}`, {
        type: 'call.cancel',
        reason: 'the app cancelled the call',
      });
    }
    return isPending;
  }

  /**
   * Starts the session. Resolves when the lead agent is connected; rejects with the reason why it cannot be connected.
   * A repeated call returns the same result.
   * @throws {ConfigurationError} `SESSION_CLOSED` after `close()` or the session's end; `SESSION_SUSPENDED` after
   *   `suspend()` or `hibernate()` (rejects).
   * @throws {OffstageError} `CLOSE_INTERRUPTED`: an earlier process died while it closed the session, which is now closed
   *   (rejects).
   */
  async start(options: StartOptions = {}): Promise<void> {
    const { ifKnown = false } = check('start(options)', startOptions, options, INVALID_ARGUMENT);
    await this.#core.life.start({ ifKnown });
  }

  /**
   * Ends the session: cancels every subagent, and kills those that remain after `closeGraceMs`. Resolves when the
   * session has completely ended. Never rejects; may be repeated.
   */
  close(): Promise<void> {
    return this.#core.life.close();
  }

  /**
   * Leaves the session to its journal: no part of it stays in memory, no subagent is cancelled, and nothing ends. To
   * resume it, in this process or another one, start a session with the same id and journal. Running work is interrupted
   * as in a crash: model calls are repeated, and so are tool calls that permit it (`idempotent`). May be repeated.
   */
  async suspend(): Promise<void> {
    await this.#core.life.suspend();
  }

  /**
   * Leaves an idle session to its journal without a visible effect: like `suspend`, but after the next start its
   * clients are considered still attached, its time has continued, and nothing is said or asked again. A session that
   * is not idle is suspended. Resolves to whether the session was idle until it left; if not, some of its work may be
   * due at once. May be repeated.
   */
  hibernate(): Promise<boolean> {
    return this.#core.life.suspend(() => this.isIdle);
  }

  /**
   * Whether nothing is being said, called, told or examined, so that everything open waits for the user, for time, or for an
   * event from outside. A session with `services` or with an attached client is never idle, because both need it in memory.
   */
  get isIdle(): boolean {
    return isIdle(this.#core, this.ownClients);
  }

  /** The number of attached clients that only embed the session. */
  protected get ownClients(): number {
    return 0;
  }

  /**
   * Resolves when the session is quiet: no model, tool or subagent works, and every due delivery has been made, or has
   * no listener. A question that waits for the user is quiet. Also resolves when the session has ended.
   * @throws {CancelledError} if `signal` aborts (rejects).
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `SESSION_NOT_ACTIVE` before `start()` (rejects).
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    await this.#core.awaited.idle(options);
  }

  /**
   * Returns the next subagent result that is reported or shown as a card, or that was reported before and not returned.
   * Each result is returned once, in the order of reporting, by the process that reported it. In a text session, the wait
   * counts as a listener, so that the result counts as heard.
   * @throws {CancelledError} if the session ends or `signal` aborts (rejects).
   * @throws {OffstageError} `NO_RESULT` if the named subagent has ended and none of its results will be reported.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   */
  async nextResult(options: NextResultOptions = {}): Promise<SessionResult> {
    return this.#core.awaited.nextResult(options);
  }

  /**
   * When the session's next deadline is due, such as the end of a question's time, in milliseconds since 1970; null if
   * none is pending.
   */
  get nextDueAt(): number | null {
    return nextDueAt(this.#core);
  }

  /** Whether a client is attached; the program that embeds a text session does not count. */
  get isAttached(): boolean {
    return this.#core.userInput.clients > this.ownClients;
  }

  /**
   * Attaches a client. Returns the function that detaches it. `by`: the identity of the client's user, if the app vouches for
   * it; words spoken while this client is the last attached one belong to this identity. @defaultValue the session's `user`
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of the session's events wait for the journal.
   */
  attach(options: VouchedFor = {}): () => void {
    const by = checkedBy('attach(options)', options);
    this.checkRoom();
    return this.#core.userInput.attach(by);
  }

  /**
   * Adds a listener: a client that follows `events` or `store`, shows deliveries to the user and acknowledges each with
   * `shown`. The returned function removes the listener.
   */
  listen(): () => void {
    return this.#core.userInput.listen();
  }

  /**
   * Passes the user's typed words to the open question, or to the lead agent. Resolves when they are accepted.
   * @throws {ConfigurationError} `INVALID_TEXT` if the text has no words; `SESSION_NOT_ACTIVE` before `start()` and
   *   after the end (rejects).
   * @throws {CapacityError} `TEXT_TOO_LONG` above 100,000 characters; `MAILBOX_FULL` while 10,000 of the session's
   *   events wait for the journal (rejects).
   * @throws {JournalError} `UNFOLDABLE_ENTRY`: the session could not apply the words, and continues without them (rejects).
   * @throws {OffstageError} The session ended, by a failure or with `CANCELLED`, before it accepted them (rejects).
   */
  async sendText(text: string, options: SaidBy = {}): Promise<void> {
    const source = withoutUndefined(checkedSource('sendText(text, options)', options));
    const said = check('sendText(text)', words, text, 'INVALID_TEXT').trim();
    await this.#core.userInput.say(checkLength('sendText(text)', said), source);
  }

  /**
   * Answers a question with an option's id, in words, or with consent: exactly one of them. The first valid answer
   * counts; the receipt says whether this one was accepted. If the question restricts who may answer (`answerableBy`),
   * `by`, or otherwise the session's `user`, must be one of these identities. Anyone else's answer is refused with
   * `not_allowed`; the question stays open.
   * @throws {ConfigurationError} `INVALID_ANSWER` if the answer has an unknown property, a value of the wrong type, or
   *   not exactly one of the three (rejects).
   * @throws {CapacityError} `TEXT_TOO_LONG` for words above 100,000 characters; `MAILBOX_FULL` while 10,000 of the
   *   session's events wait for the journal (rejects).
   * @throws {JournalError} `UNFOLDABLE_ENTRY`: the session could not apply the answer, and the question stays open (rejects).
   * @throws {OffstageError} `SUSPENDED`, or the error that ended the session, if it left this process before the answer
   *   was written: the question waits for the next process (rejects).
   */
  async answer(
    requestId: string,
    answer: GivenAnswer,
    options: VouchedFor = {},
  ): Promise<AnswerReceipt> {
    check('answer(requestId)', anyId, requestId, INVALID_ARGUMENT);
    const given = checkedAnswer('answer(requestId, answer)', answer);
    const by = checkedBy('answer(requestId, answer, options)', options);
    return this.#core.userInput.answer(requestId, given, by);
  }

  /**
   * Reports that a client shows the question: from now on, its buttons are accepted.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  questionShown(requestId: string, options: VouchedFor = {}): void {
    check('questionShown(requestId)', anyId, requestId, INVALID_ARGUMENT);
    const by = checkedBy('questionShown(requestId, options)', options) ?? this.#core.user;
    this.checkRoom();
    this.#core.userInput.questionShown(requestId, by);
  }

  /**
   * Reports that the user has seen a result or notice, which then need not be spoken.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  shown(deliveryId: string, options: VouchedFor = {}): void {
    check('shown(deliveryId)', anyId, deliveryId, INVALID_ARGUMENT);
    const by = checkedBy('shown(deliveryId, options)', options);
    this.checkRoom();
    this.#core.userInput.shown(deliveryId, by);
  }

  /**
   * Dismisses a result or notice that the user does not want to hear.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  dismiss(deliveryId: string, options: VouchedFor = {}): void {
    check('dismiss(deliveryId)', anyId, deliveryId, INVALID_ARGUMENT);
    const by = checkedBy('dismiss(deliveryId, options)', options);
    this.checkRoom();
    this.#core.userInput.dismiss(deliveryId, by);
  }

  /**
   * Reports what a channel of `reach` learned later: the delivery with this `key` reached the user's device, or the user
   * has read it, which counts as heard. Resolves with whether the session did not know that: false for a repeated or
   * earlier receipt, for a delivery that is over, and for another session's key.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   * @throws {CapacityError} `MAILBOX_FULL` (rejects).
   */
  async reached(key: string, receipt: 'delivered' | 'read'): Promise<boolean> {
    this.checkRoom();
    return this.#core.reach.reached(key, receipt);
  }

  /**
   * Reports an error in the app's own code, such as a malformed message from a client, to the hook `onError` and as the
   * event `error.reported`. `where` names the place. The session continues.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if `where` is not a string.
   */
  reportError(error: unknown, where: string): void {
    check('reportError(error, where)', words, where, INVALID_ARGUMENT);
    this.#core.reportError(error, where);
  }

  /**
   * Posts a notice that the user hears in the next pause; `urgent` interrupts. Returns the `deliveryId`.
   * @throws {ConfigurationError} `INVALID_NOTICE` if the text has no words, or an option is invalid;
   *   `SESSION_NOT_ACTIVE` after the session's end.
   * @throws {CapacityError} `TEXT_TOO_LONG` above 100,000 characters; `MAILBOX_FULL` while 10,000 of the session's
   *   events wait for the journal.
   */
  notifyBackground(text: string, options?: NoticeOptions): string {
    const { connection } = this.#core.projection;
    if (this.#core.unit.unit.disposed)
      throw new ConfigurationError(
        'SESSION_NOT_ACTIVE',
        `Expected the session not to be over, it is ${connection}: the notice could not be told`,
      );
    return this.#core.notifyBackground(text, options);
  }

  /**
   * Sets a schedule: at its times a message is delivered or a task started, even if the session is not in memory or its
   * process has died meanwhile. Resolves when the journal has it. A schedule with the key of another one replaces it; the same
   * schedule set again continues with its times.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `TIME_PASSED` for a time that is not in the future; `SESSION_NOT_ACTIVE`
   *   before `start()` and after the end (rejects).
   * @throws {CapacityError} `TOO_MANY_SCHEDULES` above `limits.maxSchedules`; `TEXT_TOO_LONG` above 100,000 characters;
   *   `MAILBOX_FULL` (rejects).
   */
  async schedule(options: Parameters<Schedules['set']>[0]): ReturnType<Schedules['set']> {
    return this.#core.schedules.set(options);
  }

  /**
   * Cancels a schedule. Resolves with false if there is none with this key. A message that is due already is
   * delivered, unless it is dismissed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `SESSION_NOT_ACTIVE` before `start()` and after the end (rejects).
   * @throws {CapacityError} `MAILBOX_FULL` (rejects).
   */
  async unschedule(key: string): Promise<boolean> {
    return this.#core.schedules.cancel(key);
  }

  /**
   * Resolves when all requests to the session and its subagents so far are in the journal, so that a crash does not lose them:
   * `cancel`, `shown`, `dismiss`, a notice. Promises from the session, such as that of `answer`, do not resolve earlier.
   * @throws {CancelledError} (rejects) if the session has ended or was suspended: later requests are dropped.
   */
  async committed(): Promise<void> {
    await Promise.all([this.#core.unit.unit.whenHandled(), this.#core.tree.whenHandled()]);
  }

  /** Refuses a call while the journal makes no progress, so that calls do not fill the memory. */
  protected checkRoom(): void {
    this.#core.unit.unit.checkRoom();
  }
}

// A class, not an object with getters: V8 would put such a getter into the old generation from the start, with the
// session that it reads, until the next full collection.
class SubagentsOfSession implements SessionSubagents {
  readonly #core: Pick<SessionCore, 'projection' | 'tree' | 'user' | 'raiseBudget'>;

  constructor(core: Pick<SessionCore, 'projection' | 'tree' | 'user' | 'raiseBudget'>) {
    this.#core = core;
  }

  list(): readonly SubagentView[] {
    return this.#core.projection.subagents();
  }

  get(id: string): SubagentView | undefined {
    return this.#core.projection.subagent(id);
  }

  ofCall(callId: string): SubagentView | undefined {
    return this.list().find((view) => view.callId === callId);
  }

  ofQuestion(requestId: string): SubagentView | undefined {
    return this.get(this.#core.projection.question(requestId)?.subagentId ?? '');
  }

  get activeCount(): number {
    return this.list().filter(({ endedAt }) => endedAt === null).length;
  }

  cancel(id: string, reason = 'the user cancelled it', options: VouchedFor = {}): boolean {
    const by = this.#by('subagents.cancel(id, reason, options)', options);
    return this.#core.tree.cancel(id, THE_LEAD, reason, by);
  }

  send(id: string, message: SendRequest, options: VouchedFor = {}): SendResult {
    const by = this.#by('subagents.send(id, message, options)', options);
    return this.#core.tree.send(id, message, THE_LEAD, by);
  }

  raiseBudget(id: string | null, limits: BudgetLimits, options: VouchedFor = {}): RaiseResult {
    const by = this.#by('subagents.raiseBudget(id, limits, options)', options);
    if (id === null) return this.#core.raiseBudget(limits, by);
    return this.#core.tree.raiseBudget(id, limits, THE_LEAD, by);
  }

  #by(where: string, options: VouchedFor): VouchedFor {
    const by = checkedBy(where, options) ?? this.#core.user;
    return by === undefined ? {} : { by };
  }

  get service(): SubagentService {
    return this.#core.tree;
  }
}

/** The part of a session that commands need. */
export type CommandedSession = Pick<
  BaseSession,
  'sendText' | 'answer' | 'questionShown' | 'shown' | 'dismiss' | 'subagents' | 'committed'
>;

/**
 * Executes a command, and returns the value of its receipt once the request is in the journal: a crash loses nothing
 * that has a receipt.
 * @throws {OffstageError} like the session's method (rejects).
 * @throws {CancelledError} if the session leaves first.
 */
export async function carryOut(
  session: CommandedSession,
  command: SessionCommand,
  by: VouchedFor,
): Promise<unknown> {
  const value = await valueOf(session, command, by);
  // These two resolve only when their entries are written, and the session may have ended immediately.
  if (command.type !== 'send' && command.type !== 'answer') await session.committed();
  return value;
}

async function valueOf(
  session: CommandedSession,
  command: SessionCommand,
  by: VouchedFor,
): Promise<unknown> {
  switch (command.type) {
    case 'send': {
      const { text, traceparent } = command;
      await session.sendText(text, { ...by, ...(traceparent !== undefined && { traceparent }) });
      return null;
    }
    case 'answer':
      return session.answer(command.requestId, command.answer, by);
    case 'cancel':
      return session.subagents.cancel(command.subagentId, command.reason, by);
    case 'message': {
      const { subagentId, text: content, mode } = command;
      const message = { content, ...(mode !== undefined && { mode }) };
      const sent = session.subagents.send(subagentId, message, by);
      if (!sent.ok) return sent;
      const { messageId, resolvedPending } = sent;
      return { ok: true, messageId, resolvedPending } satisfies MessageSent;
    }
    case 'raise':
      return session.subagents.raiseBudget(command.subagentId, command.limits, by);
    case 'dismiss':
      session.dismiss(command.deliveryId, by);
      return null;
    case 'shown':
      session.shown(command.deliveryId, by);
      return null;
    case 'question.shown':
      session.questionShown(command.requestId, by);
      return null;
  }
}

type CommandType = SessionCommand['type'];

const QUESTION = 'question:';

const OF_SESSION: readonly CommandType[] = [
  'send',
  'answer',
  'cancel',
  'message',
  'raise',
  'dismiss',
  'shown',
  'question.shown',
];
const OF_QUESTION: readonly CommandType[] = ['answer', 'question.shown'];
const OF_SUBAGENT: readonly CommandType[] = ['cancel', 'message', 'raise'];

/**
 * Returns the door of a session's actors, which accepts a user's commands. The session's actor accepts all of them; the
 * actor of a question or a subagent accepts only commands about itself.
 */
export function doorOf(session: CommandedSession & Pick<BaseSession, 'id' | 'close'>): Door {
  /** Returns the commands that an actor accepts, and the properties of a command that its path determines. */
  function openAt(path: string): readonly [readonly CommandType[], object] {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (path === session.id) return [OF_SESSION, {}];
    if (name.startsWith(QUESTION)) return [OF_QUESTION, { requestId: name.slice(QUESTION.length) }];
    const isSubagent = session.subagents.get(name) !== undefined;
    return isSubagent ? [OF_SUBAGENT, { subagentId: name }] : [[], {}];
  }
  async function carried(command: SessionCommand, by: VouchedFor): Promise<OffstageError | null> {
    try {
      // A user who answers a question by its id has seen it.
      if (command.type === 'answer') session.questionShown(command.requestId, by);
      return refusalIn(command, await carryOut(session, command, by));
    } catch (error) {
      if (isA(error, OffstageError)) return error;
      return new OffstageError('INTERNAL', `${command.type}: ${messageOf(error)}`);
    }
  }
  return {
    take(path, event) {
      const [open, subject] = openAt(path);
      if (!open.some((type) => type === event.type))
        return unopened(path, event, open.join(', ') || 'none: only its session moves it');
      const { by, ...command } = { ...event, ...subject };
      // The session's methods check the other properties.
      return carried(command as SessionCommand, by === undefined ? {} : { by });
    },
    stopped: () => void session.close(),
  };
}

/** Returns why, according to its receipt, a command had no effect; null if it had one. */
function refusalIn(command: SessionCommand, value: unknown): OffstageError | null {
  if (command.type === 'answer') {
    const receipt = value as AnswerReceipt;
    return receipt.accepted
      ? null
      : new ConfigurationError('INVALID_STATE', `answer: it is refused: ${receipt.reason}`);
  }
  if (command.type === 'cancel' && value === false)
    return new ConfigurationError('NOT_FOUND', 'cancel: expected the id of a subagent that works');
  if (isRecord(value) && value['ok'] === false) {
    const { code, message } = value['error'] as { readonly code: string; readonly message: string };
    return new OffstageError(code, message);
  }
  return null;
}
