// What an app sees of any session, voice or text.

import { map, filter, type Observable } from 'rxjs';
import { ConfigurationError } from '../../errors.ts';
import type { DeliveryPriority } from '../../machines/index.ts';
import type {
  AnswerReceipt,
  DeliveryView,
  QuestionView,
  SessionEvent,
  SubagentView,
  TranscriptItem,
} from '../session-views.ts';
import type { SessionCore } from './session-core.ts';
import type { SessionStore } from './projection.ts';

/** The subagents of a session. */
export interface SessionSubagents {
  /** Those that go on, and the last that ended. */
  list(): readonly SubagentView[];
  get(id: string): SubagentView | undefined;
  /** False if it has ended, or never was. */
  cancel(id: string, reason?: string): boolean;
}

export abstract class SessionFace {
  readonly subagents: SessionSubagents;
  readonly #core: SessionCore;

  constructor(core: SessionCore) {
    this.#core = core;
    this.subagents = {
      list: () => core.projection.subagents(),
      get: (id) => core.projection.subagent(id),
      cancel: (id, reason = 'the user cancelled it') => core.delegation.cancel(id, reason),
    };
  }

  get id(): string {
    return this.#core.id;
  }

  /** The XState actor of the session, for `useSelector` and the inspector. */
  get actor(): SessionCore['unit']['session'] {
    return this.#core.unit.session;
  }

  /** Transcript, subagents, questions and deliveries, for screens. Follows within a turn or two of the event loop. */
  get store(): SessionStore {
    return this.#core.projection.store;
  }

  /** Everything that happens, in order. Hot; completes when the session has ended. */
  get events(): Observable<SessionEvent> {
    return this.#core.projection.events;
  }

  /** Results and notices, each time one of them changes. */
  get notifications(): Observable<DeliveryView> {
    return this.events.pipe(
      filter((event) => event.type === 'delivery.changed'),
      map((event) => event.delivery),
    );
  }

  /** Questions, each time one of them changes. */
  get questions(): Observable<QuestionView> {
    return this.events.pipe(
      filter((event) => event.type === 'question.changed'),
      map((event) => event.question),
    );
  }

  /** What both sides say, partial and final. */
  get transcript(): Observable<TranscriptItem> {
    return this.events.pipe(
      filter((event) => event.type === 'transcript.changed'),
      map((event) => event.item),
    );
  }

  /** Resolves when the lead agent is there; rejects with why it is not. */
  start(): Promise<void> {
    return this.#core.start();
  }

  /**
   * Ends the session: every subagent is cancelled, and killed after `closeGraceMs`.
   * Resolves when nothing is left of it. Never rejects; safe to call twice.
   */
  close(): Promise<void> {
    return this.#core.close();
  }

  /** Is anybody there? */
  get isAttached(): boolean {
    return this.#core.isAttached;
  }

  /** A client is there. Returns what to call when it leaves. */
  attach(): () => void {
    return this.#core.attach();
  }

  /**
   * The user types. Goes to the open question, or to the lead agent.
   * Resolves when it was taken in.
   * @throws {ConfigurationError} for text without words.
   */
  sendText(text: string): Promise<void> {
    if (typeof text !== 'string' || text.trim() === '')
      return Promise.reject(
        new ConfigurationError(
          'INVALID_TEXT',
          `Expected text with words, got ${JSON.stringify(text)}`,
        ),
      );
    return this.#core.say(text.trim());
  }

  /** Answers a question by an option's id, in words, or with consent. The first valid answer wins. */
  answer(
    requestId: string,
    answer: { optionId?: string; text?: string; approved?: boolean },
  ): Promise<AnswerReceipt> {
    return this.#core.answer(requestId, answer);
  }

  /** A client shows the question: its buttons count from now. */
  questionShown(requestId: string): void {
    this.#core.questionShown(requestId);
  }

  /** The user has seen a result or notice: it need not be said any more. */
  shown(deliveryId: string): void {
    this.#core.shown(deliveryId);
  }

  /** The user does not want to hear it. */
  dismiss(deliveryId: string): void {
    this.#core.dismiss(deliveryId);
  }

  /** Something that the user shall hear when there is a pause; `urgent` interrupts. Returns its `deliveryId`. */
  notifyBackground(
    text: string,
    options?: { priority?: DeliveryPriority; label?: string; ttlMs?: number },
  ): string {
    return this.#core.notifyBackground(text, options);
  }
}
