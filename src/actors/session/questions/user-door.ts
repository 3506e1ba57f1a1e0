// The user's way into a session: who is there, what is typed, seen and answered. It is put into
// the mailbox, and whoever waits learns what became of it.
//
// Owns:     those who wait, and how many clients are attached.
// Does not: decide to whom words go, or whether an answer counts (user-input).
//
// Invariants
//   USER-DOOR-1. Each caller is told once: what became of its words or its answer, or that the session has ended.
//   USER-DOOR-2. A call never resolves for words that the session does not have: it rejects with the error that
//       kept them out. So does an answer, unless its question, or the session, was over.

import { CancelledError, ConfigurationError } from '../../../values/errors.ts';
import { mayAnswer } from '../../contracts/identity.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import type { AnswerReceipt } from '../../contracts/session-views.ts';
import type { GivenAnswer } from '../../subagent/ask-user.ts';
import type { Books } from '../state/books.ts';
import type { Projection } from '../state/projection.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import type { SessionUnit } from '../unit/session-unit.ts';

/** What the door sees of the session. */
export interface DoorSession extends Receiver {
  readonly host: Host;
  readonly books: Books;
  readonly projection: Projection;
  readonly unit: SessionUnit;
  /** Who the user is. */
  readonly user: string | undefined;
}

export class UserDoor {
  readonly #session: DoorSession;
  readonly #isHeard: boolean;
  readonly #receipts = new Map<string, PromiseWithResolvers<AnswerReceipt>>();
  readonly #saying = new Map<string, PromiseWithResolvers<void>>();

  #clients = 0;
  #listeners = 0;

  /** `isHeard`: questions are put by voice, not only on a screen. */
  constructor(session: DoorSession, { isHeard }: { readonly isHeard: boolean }) {
    this.#session = session;
    this.#isHeard = isHeard;
  }

  get isAttached(): boolean {
    return this.#clients > 0;
  }

  /** How many are attached. */
  get clients(): number {
    return this.#clients;
  }

  /** Clients that show deliveries to the user and acknowledge them. */
  get listeners(): number {
    return this.#listeners;
  }

  /** Counts one more listener, until the returned function is called. */
  listen(): () => void {
    let left = false;
    this.#listeners += 1;
    return () => {
      if (left) return;
      left = true;
      this.#listeners -= 1;
    };
  }

  /** Somebody is there. Returns what to call when they leave. */
  attach(): () => void {
    let left = false;
    this.#clients += 1;
    if (this.#clients === 1) this.#session.receive('session', { type: 'client.attached' });
    return () => {
      if (left) return;
      left = true;
      this.#clients -= 1;
      if (this.#clients === 0) this.#session.receive('session', { type: 'client.detached' });
    };
  }

  /** The question is on a screen. One of somebody who may not answer it does not count (WHO-1). */
  questionShown(requestId: string, by?: string): void {
    const { books, projection } = this.#session;
    const question = books.questions.get(requestId);
    if (by !== undefined && question && !mayAnswer(question, by)) return;
    this.#session.receive(`question:${requestId}`, {
      type: 'question.shown',
      startsClock: !this.#isHeard || projection.delivery(requestId)?.card === true,
      ...(by === undefined ? {} : { by }),
    });
  }

  /** A result or notice was seen; a question that is seen is not yet answered. */
  shown(deliveryId: string, by = this.#session.user): void {
    if (this.#session.books.questions.has(deliveryId)) this.questionShown(deliveryId, by);
    else this.#session.receive(`delivery:${deliveryId}`, seen('delivery.shown', deliveryId, by));
  }

  /** The user does not want to hear it. A question is answered, not waved away. */
  dismiss(deliveryId: string, by = this.#session.user): void {
    if (!this.#session.books.questions.has(deliveryId))
      this.#session.receive(`delivery:${deliveryId}`, seen('delivery.dismissed', deliveryId, by));
  }

  /**
   * The user answers a question by its button, or in words that name it.
   * @throws {CapacityError} `MAILBOX_FULL`, {JournalError} `UNFOLDABLE_ENTRY` (rejects).
   */
  async answer(requestId: string, answer: GivenAnswer, by?: string): Promise<AnswerReceipt> {
    const { books, host, projection, unit } = this.#session;
    if (!books.questions.has(requestId) || unit.unit.disposed)
      return { accepted: false, reason: projection.question(requestId) ? 'over' : 'unknown' };
    const ticket = host.environment.ids.next('ans');
    const { optionId, text, approved } = answer;
    unit.unit.checkRoom();
    const receipt = Promise.withResolvers<AnswerReceipt>();
    this.#receipts.set(ticket, receipt);
    this.#session.receive('answers', {
      type: 'answer.given',
      ticket,
      requestId,
      ...(optionId === undefined ? {} : { optionId }),
      ...(text === undefined ? {} : { text }),
      ...(approved === undefined ? {} : { approved }),
      ...(by === undefined ? {} : { by }),
    });
    return receipt.promise;
  }

  /**
   * The user typed. Resolves when it was given to a question or to the lead agent.
   * @throws {CapacityError} `MAILBOX_FULL`, {JournalError} `UNFOLDABLE_ENTRY`, {OffstageError} the error
   * that ended the session before (rejects).
   */
  async say(text: string, by?: string): Promise<void> {
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
      ...(by === undefined ? {} : { by }),
    });
    return taken.promise;
  }

  /** Words of the user have reached whom they were for. */
  said(utteranceId: string): void {
    this.#saying.get(utteranceId)?.resolve();
    this.#saying.delete(utteranceId);
  }

  /** The session does not take this event in (USER-DOOR-1, USER-DOOR-2). `error`: why; null: it came too late. */
  ignored(event: UnitEvent, error: Error | null): void {
    const { utteranceId, ticket } = event as { utteranceId?: unknown; ticket?: unknown };
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

  /** It is known whether an answer counts. */
  answered(ticket: string, receipt: AnswerReceipt): void {
    this.#receipts.get(ticket)?.resolve(receipt);
    this.#receipts.delete(ticket);
  }

  /** The session has ended here (USER-DOOR-1, USER-DOOR-2). `error`: what ended it; null: it was closed. */
  close(error: Error | null): void {
    for (const { resolve } of this.#receipts.values()) resolve({ accepted: false, reason: 'over' });
    this.#receipts.clear();
    const { conversation } = this.#session.books;
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
