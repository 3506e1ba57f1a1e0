// The entry point for the user's input: attached clients, typed text, acknowledgements and answers, including those
// that the lead agent derived from the user's words. Puts each input into the mailbox, and reports the result to the
// caller.
//
// Owns:     the callers that are waiting, the attached clients, and who is present.
// Does not: decide which question receives an utterance, or whether an answer is accepted (user-words,
//           settle-question).
//
// Invariants
//   USER-INPUT-1. Each caller receives one result: the receipt for its text or answer, or the end of the session.
//   USER-INPUT-2. A call resolves only if the session has received the input. Otherwise, it rejects with the error that
//       prevented the session from receiving it. The same applies to an answer, unless the question has ended or the
//       session was closed. The question of a suspended session waits for the next process.
//   USER-INPUT-3. An identity is present on a device while at least one of its clients is. The list is not in the
//       journal, because clients do not outlive the process.

import { withoutUndefined } from '../../../values/without-undefined.ts';
import { CancelledError, ConfigurationError } from '../../../values/errors.ts';
import type { AnsweringOptions, ClientSource, SaidBy } from '../../contracts/identity.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import { mayAnswer, type AnswerReceipt, type SessionState } from '../../contracts/session-views.ts';
import type { CallInput, QuestionRecord } from '../../contracts/records.ts';
import { callKey } from '../../../values/json.ts';
import type { GivenAnswer } from '../../subagent/ask-user.ts';
import type { Subagent } from '../../subagent/subagent.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { Projection } from '../state/projection.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { QuestionSettled } from './settle-question.ts';

/** The result of a settlement in the form that the lead model receives: `status`, and its details. */
export type Settlement = { readonly status: string } & Readonly<Record<string, unknown>>;

/** The parts of a session that the entry point uses. */
export interface UserInputSession extends Receiver {
  readonly tree: { get(id: string): Pick<Subagent, 'changedCall'> | undefined };
  readonly host: Host;
  readonly records: SessionRecords;
  readonly projection: Projection;
  readonly unit: SessionUnit;
  /** The identity of the session's user, or undefined if there is none. */
  readonly user: string | undefined;
}

/** An entry of `present`, with its clients. */
interface Presence {
  readonly who: SessionState['present'][number];
  readonly clients: Set<{ readonly hears: boolean }>;
}

export class UserInput {
  readonly #session: UserInputSession;
  readonly #isHeard: boolean;
  readonly #receipts = new Map<string, PromiseWithResolvers<AnswerReceipt>>();
  readonly #saying = new Map<string, PromiseWithResolvers<void>>();
  readonly #awaitingWords = new Set<() => void>();
  /** The lead agent's running settlements, by call. */
  readonly #settling = new Map<string, PromiseWithResolvers<Settlement>>();

  /** The reason why the session left this process. Null if it has not left or was closed. */
  #left: Error | null = null;
  /** The attached clients. Speech is attributed to the last one, even if it does not hear for the user. */
  readonly #clients: { readonly by: string | undefined; readonly hears: boolean }[] = [];
  /** The clients of each entry of `present`. */
  readonly #present = new Map<string, Presence>();
  #listeners = 0;
  #hasListeners = false;

  /** `isHeard`: whether questions are spoken and not only shown on a screen. */
  constructor(session: UserInputSession, { isHeard }: { readonly isHeard: boolean }) {
    this.#session = session;
    this.#isHeard = isHeard;
  }

  get isAttached(): boolean {
    return this.clients > 0;
  }

  /** The number of attached clients that hear for the user. */
  get clients(): number {
    return this.#clients.filter(({ hears }) => hears).length;
  }

  /** The number of clients that show deliveries to the user and acknowledge them. */
  get listeners(): number {
    return this.#listeners;
  }

  /** Whether the app has ever had listeners, even if none is attached now. */
  get hasListeners(): boolean {
    return this.#hasListeners;
  }

  /** Records that the session was resumed from its journal, so that clients of the earlier process may return. */
  continued(): void {
    this.#hasListeners = true;
  }

  /** Counts another listener, if it hears for the user, until the returned function is called. */
  listen(client: ClientSource = {}): () => void {
    const hears = this.#hears(client);
    const gone = this.#arrived(client, hears);
    let left = false;
    this.#listeners += Number(hears);
    this.#hasListeners ||= hears;
    return () => {
      if (left) return;
      left = true;
      this.#listeners -= Number(hears);
      gone();
    };
  }

  /** The identity of the client that speech is attributed to; undefined for the session's user. */
  get speaker(): string | undefined {
    return this.#clients.at(-1)?.by;
  }

  /** Attaches a client. Returns the function that detaches it. */
  attach(source: ClientSource = {}): () => void {
    const client = { by: source.by, hears: this.#hears(source) };
    const { hears } = client;
    const gone = this.#arrived(source, hears);
    this.#clients.push(client);
    if (hears && this.clients === 1) this.#session.receive('session', { type: 'client.attached' });
    return () => {
      const index = this.#clients.indexOf(client);
      if (index < 0) return;
      this.#clients.splice(index, 1);
      if (hears && !this.isAttached) this.#session.receive('session', { type: 'client.detached' });
      gone();
    };
  }

  /** Whether a client hears for the user, as the app says or by default. */
  #hears({ by, hears }: ClientSource): boolean {
    const { user } = this.#session;
    return hears ?? (user === undefined || by === undefined || by === user);
  }

  /** Lists a client that has an identity, until the returned function is called (USER-INPUT-3). */
  #arrived({ by, device }: ClientSource, hears: boolean): () => void {
    if (by === undefined) return () => undefined;
    const { projection, host } = this.#session;
    const key = JSON.stringify([by, device]);
    const client = { hears };
    const known = this.#present.get(key);
    const clients: Presence['clients'] = known?.clients ?? new Set();
    const since = known?.who.since ?? host.environment.clock.now();
    const change = (): void => {
      const isHeard = [...clients].some((each) => each.hears);
      if (clients.size === 0) this.#present.delete(key);
      else if (this.#present.get(key)?.who.hears === isHeard) return;
      else {
        const who = { by, ...(device !== undefined && { device }), since, hears: isHeard };
        this.#present.set(key, { who, clients });
      }
      const present = Array.from(this.#present.values(), (each) => each.who);
      projection.emit({ type: 'presence.changed', present: Object.freeze(present) });
    };
    clients.add(client);
    change();
    return () => {
      if (clients.delete(client)) change();
    };
  }

  /** Whether what this identity reports as seen counts (WHO-3). */
  #hearsAs(by: string): boolean {
    const entries = [...this.#present.values()].filter(({ who }) => who.by === by);
    return entries.length > 0 ? entries.some(({ who }) => who.hears) : this.#hears({ by });
  }

  /** Records that a screen shows a question. If the screen's user may not answer, the call is ignored (WHO-1). */
  questionShown(requestId: string, by?: string): void {
    const { records, projection } = this.#session;
    const question = records.questions.get(requestId);
    if (by !== undefined && question && !mayAnswer(question, by)) return;
    this.#session.receive(`question:${requestId}`, {
      type: 'question.shown',
      startsClock: !this.#isHeard || projection.delivery(requestId)?.card === true,
      ...(by === undefined ? {} : { by }),
    });
  }

  /**
   * Records that a result or notice has been seen, if the identity hears for the user (WHO-3). A question that has been
   * seen still waits for its answer.
   */
  shown(deliveryId: string, source?: string): void {
    const by = source ?? this.#session.user;
    if (this.#session.records.questions.has(deliveryId)) this.questionShown(deliveryId, by);
    else if (source === undefined || this.#hearsAs(source))
      this.#session.receive(`delivery:${deliveryId}`, seen('delivery.shown', deliveryId, by));
  }

  /** Dismisses a delivery. A question is answered rather than dismissed. */
  dismiss(deliveryId: string, by = this.#session.user): void {
    if (!this.#session.records.questions.has(deliveryId))
      this.#session.receive(`delivery:${deliveryId}`, seen('delivery.dismissed', deliveryId, by));
  }

  /**
   * Answers a question with a button or with text.
   * @throws {ConfigurationError} `INVALID_INPUT` for arguments that the tool does not accept, {CapacityError}
   *   `MAILBOX_FULL`, {JournalError} `UNFOLDABLE_ENTRY`, {OffstageError} the reason why the session left this process
   *   (rejects).
   */
  async answer(
    requestId: string,
    answer: GivenAnswer,
    { by, onlyOpen }: AnsweringOptions = {},
  ): Promise<AnswerReceipt> {
    const { records, host, projection, unit } = this.#session;
    const { optionId, text, approved, input, lasts } = answer;
    const asked = records.questions.get(requestId);
    // An answer from another identity is refused without checking the arguments.
    const isChanged = input !== undefined && asked?.kind === 'approval' && mayAnswer(asked, by);
    const changed = isChanged ? await this.#changedInput(asked, input) : undefined;
    const isKnown =
      records.questions.has(requestId) ||
      records.lasting.some((question) => question.requestId === requestId);
    if (isKnown && this.#left) throw this.#left;
    if (!isKnown || unit.unit.disposed || (isChanged && !changed))
      return { accepted: false, reason: projection.question(requestId) ? 'over' : 'unknown' };
    const ticket = host.environment.ids.next('ans');
    unit.unit.checkRoom();
    const receipt = Promise.withResolvers<AnswerReceipt>();
    this.#receipts.set(ticket, receipt);
    this.#session.receive('answers', {
      type: 'answer.given',
      ticket,
      requestId,
      ...withoutUndefined({ optionId, text, approved, lasts, by, onlyOpen }),
      ...(changed && { changed }),
    });
    return receipt.promise;
  }

  /** @throws {ConfigurationError} `INVALID_INPUT` (rejects). */
  async #changedInput(asked: QuestionRecord, input: unknown): Promise<CallInput | undefined> {
    const { toolName = '', input: own } = asked.action ?? {};
    if (callKey(toolName, own) === callKey(toolName, input)) return { input: own };
    return (await this.changedCall(asked, input))?.changed;
  }

  /**
   * Returns an approval's call with other arguments; null if the subagent is no longer asking.
   * @throws {ConfigurationError} `INVALID_INPUT` (rejects).
   */
  async changedCall({ subagentId, requestId }: QuestionRecord, input: unknown) {
    return (await this.#session.tree.get(subagentId)?.changedCall(requestId, input)) ?? null;
  }

  /**
   * Posts typed words. Resolves when a question or the lead agent has received the input.
   * @throws {CapacityError} `MAILBOX_FULL`, {JournalError} `UNFOLDABLE_ENTRY`, {OffstageError} the error that ended the
   *   session first (rejects).
   */
  async say(text: string, { by, traceparent }: SaidBy = {}): Promise<void> {
    const { host, projection, unit } = this.#session;
    const { connection } = projection;
    if (unit.unit.disposed || connection === 'created' || connection === 'closing')
      throw new ConfigurationError(
        'SESSION_NOT_ACTIVE',
        connection === 'created' && !unit.unit.disposed
          ? 'Expected the session to be started, it is created: call `await session.start()` first'
          : `Expected the session to be started and not closed, it is ${connection}`,
      );
    const { clock, ids } = host.environment;
    const utteranceId = ids.next('utt');
    unit.unit.checkRoom();
    const taken = Promise.withResolvers<void>();
    this.#saying.set(utteranceId, taken);
    this.#session.receive('user', {
      type: 'user.said',
      utteranceId,
      text,
      channel: 'typing',
      startedAt: clock.now(),
      ...withoutUndefined({ by, traceparent }),
    });
    return taken.promise;
  }

  /**
   * Posts the lead agent's settlement of a question. Resolves with its result.
   * @throws {CapacityError} `MAILBOX_FULL`, {JournalError} `UNFOLDABLE_ENTRY` (rejects).
   */
  async settle(
    settled: Omit<QuestionSettled, 'type' | 'refused' | 'readsBack'>,
  ): Promise<Settlement> {
    const { unit } = this.#session;
    unit.unit.checkRoom();
    const settlement = Promise.withResolvers<Settlement>();
    this.#settling.set(settled.callId, settlement);
    const { callId, utteranceId, requestId, action, optionId, text, proposed, quote } = settled;
    this.#session.receive('answers', {
      type: 'question.settled',
      callId,
      utteranceId,
      requestId,
      action,
      ...withoutUndefined({ optionId, text, proposed }),
      quote,
    });
    return settlement.promise;
  }

  /** Resolves the lead agent's call with the result of its settlement. */
  settled(callId: string, settlement: Settlement): void {
    this.#settling.get(callId)?.resolve(settlement);
    this.#settling.delete(callId);
  }

  /** Resolves the call whose input a question or the lead agent has received. */
  said(utteranceId: string): void {
    this.#saying.get(utteranceId)?.resolve();
    this.#saying.delete(utteranceId);
    for (const resolve of this.#awaitingWords) resolve();
  }

  /** Resolves when more of the user's speech has been transcribed, or after this time. */
  async nextWords(limitMs: number): Promise<void> {
    const next = Promise.withResolvers<void>();
    this.#awaitingWords.add(next.resolve);
    const cancel = this.#session.host.environment.scheduler.schedule(next.resolve, limitMs);
    await next.promise;
    cancel();
    this.#awaitingWords.delete(next.resolve);
  }

  /**
   * Rejects a call if the session did not apply its event (USER-INPUT-1, USER-INPUT-2). `error`: the reason, or null if
   * the event came too late.
   */
  ignored(event: UnitEvent, error: Error | null): void {
    const { utteranceId, ticket, callId } = event as Readonly<Record<string, unknown>>;
    if (event.type === 'question.settled') {
      const id = String(callId);
      this.#settling.get(id)?.reject(error ?? notTakenIn());
      this.#settling.delete(id);
    }
    if (event.type === 'user.said') {
      const id = String(utteranceId);
      this.#saying.get(id)?.reject(error ?? notTakenIn());
      this.#saying.delete(id);
    }
    if (event.type === 'answer.given') {
      const id = String(ticket);
      if (error) this.#receipts.get(id)?.reject(error);
      else this.#receipts.get(id)?.resolve({ accepted: false, reason: 'over' });
      this.#receipts.delete(id);
    }
  }

  /** Resolves a pending answer with its receipt. */
  answered(ticket: string, receipt: AnswerReceipt): void {
    this.#receipts.get(ticket)?.resolve(receipt);
    this.#receipts.delete(ticket);
  }

  /**
   * Rejects all pending calls when the session leaves this process (USER-INPUT-1, USER-INPUT-2). `error`: the reason,
   * or null if the session was closed.
   */
  close(error: Error | null): void {
    this.#left = error;
    for (const { resolve, reject } of this.#receipts.values())
      if (error) reject(error);
      else resolve({ accepted: false, reason: 'over' });
    this.#receipts.clear();
    for (const { reject } of this.#settling.values()) reject(error ?? notTakenIn());
    this.#settling.clear();
    const { conversation } = this.#session.records;
    for (const [utteranceId, { resolve, reject }] of this.#saying)
      if (conversation.get(utteranceId) === undefined) reject(error ?? notTakenIn());
      else resolve();
    this.#saying.clear();
  }
}

function notTakenIn(): CancelledError {
  return new CancelledError('the session ended before it accepted these words');
}

function seen(type: 'delivery.shown' | 'delivery.dismissed', deliveryId: string, by?: string) {
  return by === undefined ? { type, deliveryId } : { type, deliveryId, by };
}
