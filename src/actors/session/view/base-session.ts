// The API that voice and text sessions share, and the API of their subagents. Also contains the commands that a user
// can give. The commands are the same from a network client, from the inspector, and as events sent to a session's
// actor.

import { filter, map, type Observable } from 'rxjs';
import { z } from 'zod';
import { check, checkLength } from '../../../values/checks.ts';
import { ConfigurationError, isA, messageOf, OffstageError } from '../../../values/errors.ts';
import { isRecord } from '../../../values/json.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import type { SetDirective } from '../../contracts/directives.ts';
import type { BudgetLimits } from '../../contracts/config.ts';
import {
  checkedAnswering,
  checkedBy,
  checkedClient,
  checkedSource,
  type AnsweringOptions,
  type ClientSource,
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
  /** Returns the live subagents and the most recently ended ones. */
  list(): readonly SubagentView[];
  /** Returns one subagent, or undefined if the id is unknown. */
  get(id: string): SubagentView | undefined;
  /** Returns the subagent that is working, or has worked, on this tool call by the lead agent. */
  ofCall(callId: string): SubagentView | undefined;
  /** Returns the subagent that asked this question. */
  ofQuestion(requestId: string): SubagentView | undefined;
  /** The number of live subagents. */
  readonly activeCount: number;
  /**
   * Cancels a subagent. Returns false if the subagent has ended or is unknown.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  cancel(id: string, reason?: string, options?: VouchedFor): boolean;
  /**
   * Sends a message to a subagent, or answers its request to the lead agent.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `TEXT_TOO_LONG` above 100,000 characters.
   */
  send(id: string, message: SendRequest, options?: VouchedFor): SendResult;
  /**
   * Raises limits in a subagent's budget (or, for null, in the session's own budget) to new totals, as `raiseBudget` of
   * the service does for the lead agent.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  raiseBudget(id: string | null, limits: BudgetLimits, options?: VouchedFor): RaiseResult;
  /** The subagent service, which offers waits, progress, streams and more. The app's calls are made as `THE_LEAD`. */
  readonly service: SubagentService;
}

/** A session's services. Each change is emitted as the event `service.changed`. */
export interface SessionServiceViews {
  /** Returns the services of the session. */
  list(): readonly ServiceView[];
}

export abstract class BaseSession {
  /** The session's subagents, which can be listed, cancelled and instructed. */
  readonly subagents: SessionSubagents;
  /** The services of the session. */
  readonly services: SessionServiceViews;
  /** The calls to tools that the user's clients execute. Each change is emitted as the event `client_call.changed`. */
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
   * The session's XState actor, which is the same object on every read. The actors of the interaction, the outbox, the
   * questions, the calls and the subagents are its children. An app may send it user commands (`SessionActorEvent`),
   * which are recorded in the journal. Any other event, or a command without an effect, changes nothing and is emitted
   * as `refused`. Stopping the actor closes the session.
   */
  get actor(): SessionCore['unit']['actor'] {
    return this.#core.unit.actor;
  }

  /**
   * The transcript, subagents, questions and deliveries, for display. Updated one or two turns of the event loop after
   * a change. Read-only: `send` and `trigger` throw `READ_ONLY_STORE`.
   */
  get store(): SessionStore {
    return this.#core.projection.store;
  }

  /** All events of the session from now on, in order. Completes when the session has ended. */
  get events(): Observable<SessionEvent> {
    return this.#core.projection.events;
  }

  /** Emits a result or notice whenever it changes: the `delivery` of `delivery.changed` events. */
  get notifications(): Observable<DeliveryView> {
    return this.events.pipe(
      filter((event) => event.type === 'delivery.changed'),
      map((event) => event.delivery),
    );
  }

  /** Emits a question whenever it changes: the `question` of `question.changed` events. */
  get questions(): Observable<QuestionView> {
    return this.events.pipe(
      filter((event) => event.type === 'question.changed'),
      map((event) => event.question),
    );
  }

  /** Emits the messages of both sides, partial and final: the `item` in `transcript.changed` events. */
  get transcript(): Observable<TranscriptItem> {
    return this.events.pipe(
      filter((event) => event.type === 'transcript.changed'),
      map((event) => event.item),
    );
  }

  /**
   * Shows an image to the lead model, if it is a voice model that accepts images.
   * @throws {ConfigurationError} `IMAGES_NOT_ACCEPTED`
   */
  showImage(_image: ShownImage): boolean {
    return refuseImages('a text session');
  }

  /**
   * Makes another agent the lead agent. Resolves when that agent has taken over, or with the reason why it has not
   * taken over.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if the name is not a string (rejects).
   */
  async transfer(agentName: string): Promise<TransferAnswer> {
    check('transfer(agentName)', z.string(), agentName, INVALID_ARGUMENT);
    return this.#core.agents.transfer(agentName, null);
  }

  /** Sets a standing instruction for the lead agent; null removes it. See `ToolContext.setDirective`. */
  get setDirective(): SetDirective {
    return this.#core.agents.setDirective;
  }

  /** The lead agent's calls that have no result yet, including background calls. */
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
   * Starts the session. Resolves when the lead agent is connected, and rejects with the reason if it cannot be
   * connected. Further calls return the same promise.
   * @throws {ConfigurationError} `SESSION_CLOSED` after `close()` or after the session has ended; `SESSION_SUSPENDED`
   *   after `suspend()` or `hibernate()` (rejects).
   * @throws {OffstageError} `CLOSE_INTERRUPTED`: an earlier process died while closing the session, which is now closed
   *   (rejects).
   */
  async start(options: StartOptions = {}): Promise<void> {
    const { ifKnown = false } = check('start(options)', startOptions, options, INVALID_ARGUMENT);
    await this.#core.life.start({ ifKnown });
  }

  /**
   * Ends the session: cancels every subagent, and kills those that are still running after `closeGraceMs`. Resolves
   * when the session has ended completely. Never rejects, and may be called repeatedly.
   */
  close(): Promise<void> {
    return this.#core.life.close();
  }

  /**
   * Suspends the session: removes it from memory without ending it or cancelling its subagents. To resume it, in this
   * or another process, start a session with the same id and journal. Running work is interrupted as in a crash: model
   * calls are repeated, and so are tool calls that permit it (`idempotent`). May be repeated.
   */
  async suspend(): Promise<void> {
    await this.#core.life.suspend();
  }

  /**
   * Suspends an idle session without a visible effect. Unlike after `suspend`, the next start treats the session's
   * clients as still attached and its time as continuous. Nothing is said or asked again. If the session is not idle,
   * does the same as `suspend`. Resolves with true if the session was still idle when it left memory. If it was not
   * idle, some of its work may be due immediately. May be repeated.
   */
  hibernate(): Promise<boolean> {
    return this.#core.life.suspend(() => this.isIdle);
  }

  /**
   * Whether the session is idle: nothing is being spoken, executed, delivered or interpreted, and the session only
   * waits for the user, a timer or an external event. A session with `services` or an attached client is never idle,
   * because both need it in memory.
   */
  get isIdle(): boolean {
    return isIdle(this.#core, this.ownClients);
  }

  /** The number of attached clients that belong to the program embedding the session. */
  protected get ownClients(): number {
    return 0;
  }

  /**
   * Resolves when the session is quiet: no model, tool or subagent is running, and every due delivery has either been
   * made or has no listener. A question that waits for the user does not prevent this. Also resolves when the session
   * has ended.
   * @throws {CancelledError} if `signal` aborts (rejects).
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `SESSION_NOT_ACTIVE` before `start()` (rejects).
   */
  async idle(options: IdleOptions = {}): Promise<void> {
    await this.#core.awaited.idle(options);
  }

  /**
   * Returns the next subagent result that is spoken or shown as a card. Earlier results that have not been returned yet
   * come first. Each result is returned once, in the order of the reports, and only in the process that reported it. In
   * a text session, a pending call counts as a listener, so the result counts as heard.
   * @throws {CancelledError} if the session ends or `signal` aborts (rejects).
   * @throws {OffstageError} `NO_RESULT` if the named subagent has ended and none of its results will be reported.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   */
  async nextResult(options: NextResultOptions = {}): Promise<SessionResult> {
    return this.#core.awaited.nextResult(options);
  }

  /**
   * The time of the session's next deadline, such as a question's timeout, in milliseconds since 1970; null if none is
   * pending.
   */
  get nextDueAt(): number | null {
    return nextDueAt(this.#core);
  }

  /** Whether a client is attached. The program that embeds a text session is not counted. */
  get isAttached(): boolean {
    return this.#core.userInput.clients > this.ownClients;
  }

  /**
   * Attaches a client. Returns a function that detaches the client. `by`: the identity of the client's user, if the app
   * has verified it (default: the session's `user`). Speech is attributed to this identity while this is the client that
   * attached last. A client with `by` is listed in `present`. The session speaks, and presents what is due, only while
   * a client is attached that hears for the session's user (`hears`).
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of the session's events wait for the journal.
   */
  attach(options: ClientSource = {}): () => void {
    const client = checkedClient('attach(options)', options);
    this.checkRoom();
    return this.#core.userInput.attach(client);
  }

  /**
   * Adds a listener: a client that follows `events` or `store`, shows deliveries to the user and acknowledges each with
   * `shown`. The returned function removes the listener. A client with `by` is listed in `present`. A client that does
   * not hear for the session's user (`hears`) is only listed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`.
   */
  listen(options: ClientSource = {}): () => void {
    return this.#core.userInput.listen(checkedClient('listen(options)', options));
  }

  /**
   * Passes the user's typed text to the open question or to the lead agent. Resolves when the text is accepted.
   * @throws {ConfigurationError} `INVALID_TEXT` if the text has no words; `SESSION_NOT_ACTIVE` before `start()` and
   *   after the session has ended (rejects).
   * @throws {CapacityError} `TEXT_TOO_LONG` above 100,000 characters; `MAILBOX_FULL` while 10,000 of the session's
   *   events wait for the journal (rejects).
   * @throws {JournalError} `UNFOLDABLE_ENTRY`: the session could not apply the text, and continues without it
   * (rejects).
   * @throws {OffstageError} The session ended, by a failure or with `CANCELLED`, before it accepted the text (rejects).
   */
  async sendText(text: string, options: SaidBy = {}): Promise<void> {
    const source = withoutUndefined(checkedSource('sendText(text, options)', options));
    const said = check('sendText(text)', words, text, 'INVALID_TEXT').trim();
    await this.#core.userInput.say(checkLength('sendText(text)', said), source);
  }

  /**
   * Answers a question with exactly one of the following: an option's id, text, or an approval decision. The first
   * valid answer counts. The receipt says whether this answer was accepted. If the question restricts who may answer it
   * (`answerableBy`), `by` (or the session's `user` if `by` is absent) must be one of these identities. An answer by
   * any other identity is refused with `not_allowed`, and the question stays open.
   * @throws {ConfigurationError} `INVALID_ANSWER` if the answer has an unknown property, a value of the wrong type, or
   *   not exactly one of the three (rejects).
   * @throws {CapacityError} `TEXT_TOO_LONG` for text above 100,000 characters; `MAILBOX_FULL` while 10,000 of the
   *   session's events wait for the journal (rejects).
   * @throws {JournalError} `UNFOLDABLE_ENTRY`: the session could not apply the answer, and the question stays open (rejects).
   * @throws {OffstageError} `SUSPENDED`, or the error that ended the session, if it left this process before the answer
   *   was written: the question waits for the next process (rejects).
   */
  async answer(
    requestId: string,
    answer: GivenAnswer,
    options: AnsweringOptions = {},
  ): Promise<AnswerReceipt> {
    check('answer(requestId)', anyId, requestId, INVALID_ARGUMENT);
    const given = checkedAnswer('answer(requestId, answer)', answer);
    const answering = checkedAnswering('answer(requestId, answer, options)', options);
    return this.#core.userInput.answer(requestId, given, withoutUndefined(answering));
  }

  /**
   * Reports that a client is showing the question. From then on, answers given with its buttons are accepted.
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
   * Reports that the user has seen a result or notice, so that it does not have to be spoken. A report with a `by` that
   * does not hear for the session's user (`attach`, `listen`) is ignored.
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
   * Reports a later receipt from a channel of `reach`, for the delivery with this `key`: it has reached the user's
   * device, or the user has read it (which counts as heard). Resolves with false if the report changed nothing: the
   * receipt was repeated or outdated, the delivery was already over, or the key belongs to another session.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` (rejects).
   * @throws {CapacityError} `MAILBOX_FULL` (rejects).
   */
  async reached(key: string, receipt: 'delivered' | 'read'): Promise<boolean> {
    this.checkRoom();
    return this.#core.reach.reached(key, receipt);
  }

  /**
   * Reports an error in the app's own code, such as a malformed message from a client: calls the hook `onError` and
   * emits the event `error.reported`. `where` names the place in the app where the error occurred. The session
   * continues.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if `where` is not a string.
   */
  reportError(error: unknown, where: string): void {
    check('reportError(error, where)', words, where, INVALID_ARGUMENT);
    this.#core.reportError(error, where);
  }

  /**
   * Posts a notice, which is delivered to the user in the next pause. `urgent` interrupts. Returns the `deliveryId`.
   * @throws {ConfigurationError} `INVALID_NOTICE` if the text has no words or an option is invalid;
   *   `SESSION_NOT_ACTIVE` after the session has ended.
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
   * Sets a schedule. At each scheduled time, a message is delivered or a task is started, even if the session is not in
   * memory at that time or its process has died. Resolves when the schedule has been written to the journal. A schedule
   * replaces an existing schedule with the same key. Setting an identical schedule again does not restart it.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `TIME_PASSED` for a time that is not in the future;
   *   `SESSION_NOT_ACTIVE` before `start()` and after the session has ended (rejects).
   * @throws {CapacityError} `TOO_MANY_SCHEDULES` above `limits.maxSchedules`; `TEXT_TOO_LONG` above 100,000 characters;
   *   `MAILBOX_FULL` (rejects).
   */
  async schedule(options: Parameters<Schedules['set']>[0]): ReturnType<Schedules['set']> {
    return this.#core.schedules.set(options);
  }

  /**
   * Cancels a schedule. Resolves with false if there is no schedule with this key. A message that is already due is
   * delivered, unless it is dismissed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`; `SESSION_NOT_ACTIVE` before `start()` and after the session has
   * ended (rejects).
   * @throws {CapacityError} `MAILBOX_FULL` (rejects).
   */
  async unschedule(key: string): Promise<boolean> {
    return this.#core.schedules.cancel(key);
  }

  /**
   * Resolves when all requests made so far to the session and its subagents are in the journal and cannot be lost in a
   * crash: `cancel`, `shown`, `dismiss`, a notice. Promises from the session's methods, such as that of `answer`, do
   * not resolve earlier.
   * @throws {CancelledError} (rejects) if the session has ended or was suspended, which drops later requests.
   */
  async committed(): Promise<void> {
    await Promise.all([this.#core.unit.unit.whenHandled(), this.#core.tree.whenHandled()]);
  }

  /** Refuses a call while the journal makes no progress, so that waiting events do not fill the memory. */
  protected checkRoom(): void {
    this.#core.unit.unit.checkRoom();
  }
}

// A class rather than an object with getters: V8 would immediately move such a getter, and the session that it reads,
// to the old generation. Both would stay there until the next full collection.
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
 * Executes a command, and returns its value once the request is in the journal. A crash therefore never loses a request
 * for which the sender has a receipt.
 * @throws {OffstageError} like the session's method (rejects).
 * @throws {CancelledError} if the session ends or is suspended first.
 */
export async function carryOut(
  session: CommandedSession,
  command: SessionCommand,
  by: VouchedFor,
): Promise<unknown> {
  const value = await valueOf(session, command, by);
  // The promises of these two commands already wait for the journal, and the session may be over when they resolve.
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
 * Returns the function through which a session's actors accept user commands. The session's actor accepts all of them.
 * The actor of a question or a subagent accepts only commands about itself.
 */
export function doorOf(session: CommandedSession & Pick<BaseSession, 'id' | 'close'>): Door {
  /** Returns the commands that an actor accepts, and the properties that are already determined by its path. */
  function openAt(path: string): readonly [readonly CommandType[], object] {
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (path === session.id) return [OF_SESSION, {}];
    if (name.startsWith(QUESTION)) return [OF_QUESTION, { requestId: name.slice(QUESTION.length) }];
    const isSubagent = session.subagents.get(name) !== undefined;
    return isSubagent ? [OF_SUBAGENT, { subagentId: name }] : [[], {}];
  }
  async function carried(command: SessionCommand, by: VouchedFor): Promise<OffstageError | null> {
    try {
      // If a user answers a question by its id, the user must have seen it.
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
      // All other properties are checked by the session's methods.
      return carried(command as SessionCommand, by === undefined ? {} : { by });
    },
    stopped: () => void session.close(),
  };
}

/** Returns the reason why a command had no effect, according to its receipt; null if it had an effect. */
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
