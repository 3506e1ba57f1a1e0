// The user's way into a session: who is there, what is typed, seen and answered. It is put into
// the mailbox, and whoever waits learns what became of it.
//
// Owns:     those who wait, and how many clients are attached.
// Does not: decide to whom words go, or whether an answer counts (user-input).
//
// Invariants
//   I1. Whoever waits is told once: what became of it, or that the session has ended.

import { ConfigurationError } from '../../errors.ts';
import { mayAnswer } from '../identity.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import type { Host } from '../runtime/host.ts';
import type { AnswerReceipt } from '../session-views.ts';
import type { GivenAnswer } from '../subagent/ask-user.ts';
import type { Books } from './books.ts';
import type { Projection } from './projection.ts';
import type { SessionInputEvent } from './records.ts';
import type { SessionUnit } from './session-unit.ts';

/** What the door sees of the session. */
export interface DoorSession {
  readonly host: Host;
  readonly books: Books;
  readonly projection: Projection;
  readonly unit: SessionUnit;
  receive(actor: string, event: UnitEvent & Record<string, unknown>): void;
  tell(actor: string, event: SessionInputEvent): void;
  /** Who the user is. */
  readonly user: string | undefined;
}

export class UserDoor {
  readonly #session: DoorSession;
  readonly #isHeard: boolean;
  readonly #receipts = new Map<string, (receipt: AnswerReceipt) => void>();
  readonly #saying = new Map<string, () => void>();

  #clients = 0;
  #followers = 0;

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

  /** Clients that are told what is said, and may acknowledge it. */
  get followers(): number {
    return this.#followers;
  }

  /** A client is told what is said from now on. Returns what to call when it is not any more. */
  follow(): () => void {
    this.#followers += 1;
    return () => {
      this.#followers -= 1;
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
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  answer(requestId: string, answer: GivenAnswer, by?: string): Promise<AnswerReceipt> {
    const { books, host, projection, unit } = this.#session;
    if (!books.questions.has(requestId) || unit.unit.disposed)
      return Promise.resolve({
        accepted: false,
        reason: projection.question(requestId) ? 'over' : 'unknown',
      });
    const ticket = host.environment.ids.next('ans');
    const { optionId, text, approved } = answer;
    return new Promise((resolve) => {
      unit.unit.checkRoom();
      this.#receipts.set(ticket, resolve);
      this.#session.tell('answers', {
        type: 'answer.given',
        ticket,
        requestId,
        ...(optionId === undefined ? {} : { optionId }),
        ...(text === undefined ? {} : { text }),
        ...(approved === undefined ? {} : { approved }),
        ...(by === undefined ? {} : { by }),
      });
    });
  }

  /**
   * The user typed. Resolves when it was given to a question or to the lead agent.
   * @throws {CapacityError} `MAILBOX_FULL`.
   */
  say(text: string, by?: string): Promise<void> {
    const { host, projection, unit } = this.#session;
    const { connection } = projection;
    if (unit.unit.disposed || connection === 'created' || connection === 'closing')
      return Promise.reject(
        new ConfigurationError(
          'SESSION_NOT_ACTIVE',
          `Expected the session to be started and not closed, it is ${connection}`,
        ),
      );
    const { clock, ids } = host.environment;
    const utteranceId = ids.next('utt');
    return new Promise((resolve) => {
      unit.unit.checkRoom();
      this.#saying.set(utteranceId, resolve);
      this.#session.tell('user', {
        type: 'user.said',
        utteranceId,
        text,
        channel: 'typing',
        startedAt: clock.now(),
        ...(by === undefined ? {} : { by }),
      });
    });
  }

  /** Words of the user have reached whom they were for. */
  said(utteranceId: string): void {
    this.#saying.get(utteranceId)?.();
    this.#saying.delete(utteranceId);
  }

  /** The session takes this event in not at all (I1). */
  ignored(event: UnitEvent): void {
    const { utteranceId, ticket } = event as { utteranceId?: unknown; ticket?: unknown };
    if (event.type === 'user.said') this.said(String(utteranceId));
    if (event.type === 'answer.given')
      this.answered(String(ticket), { accepted: false, reason: 'over' });
  }

  /** It is known whether an answer counts. */
  answered(ticket: string, receipt: AnswerReceipt): void {
    this.#receipts.get(ticket)?.(receipt);
    this.#receipts.delete(ticket);
  }

  /** The session has ended: nobody waits for it any more (I1). */
  close(): void {
    for (const receive of this.#receipts.values()) receive({ accepted: false, reason: 'over' });
    this.#receipts.clear();
    for (const resolve of this.#saying.values()) resolve();
    this.#saying.clear();
  }
}

function seen(type: 'delivery.shown' | 'delivery.dismissed', deliveryId: string, by?: string) {
  return by === undefined ? { type, deliveryId } : { type, deliveryId, by };
}
