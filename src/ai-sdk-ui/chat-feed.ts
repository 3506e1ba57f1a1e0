// Feeds a session's messages to one chat: records which messages the chat has, and streams new and changed ones.
//
//   state ─▶ messages ─▶ new or changed? ─┬─▶ the reply to a sent text: its own stream
//                                         ├─▶ other messages, if the chat follows: its messages are set
//                                         └─▶ other messages, otherwise: a held stream, which ends when all is sent
//
// Owns:     the messages that the chat has, the texts that the chat sent, and the receipts for its answers.
// Does not: know `useChat` or the connection to the session.
//
// Invariants
//   CHAT-FEED-1. A chat receives every new and changed message, whichever stream is open. When a stream breaks, only
//       its complete messages count as received.
//   CHAT-FEED-2. A held stream opens with the first new message and closes when all messages have been sent.
//   CHAT-FEED-3. A delivery or question is reported as shown once the screen is visible and the chat has received the
//       whole message that contains it.
//   CHAT-FEED-4. The feed does not send a chat its own user messages.

import {
  questionFor,
  type AnswerReceipt,
  type SessionState,
} from '../actors/contracts/session-views.ts';
import type { ClientAnswer } from '../actors/contracts/session-command.ts';
import type { Subscription } from '../client/watchable.ts';
import {
  chatMessages,
  chunksOf,
  isSameMessage,
  messageOfChat,
  TEXT_ID,
  type ChatMessage,
  type ChatQuestion,
  type Receipts,
  type SessionChunk,
  type SessionMessage,
} from './chat-messages.ts';

export interface Sending {
  /** The W3C trace context of the request. */
  readonly traceparent?: string;
  /** Called when the session has accepted the user's text; the reply may take longer. */
  readonly taken?: () => void;
}

/** A chat's session: a client, or a session in this process. */
export interface ChatSource {
  readonly store: {
    getSnapshot(): { readonly context: SessionState };
    subscribe(listener: () => void): Subscription;
  };
  send(text: string, options?: Sending): Promise<void>;
  answer(requestId: string, answer: ClientAnswer): Promise<AnswerReceipt>;
  shown(deliveryId: string): unknown;
  questionShown(requestId: string): unknown;
}

/** Returns a chat's updated messages. */
export type UpdateMessages = (held: SessionMessage[]) => SessionMessage[];

interface SentWords {
  /** The id of the message in the chat. */
  readonly id: string;
  readonly text: string;
  /** The ids of the messages that the session already had. */
  readonly earlier: ReadonlySet<string>;
  isUnreplied: boolean;
  replyId: string | null;
}

/** Returns whether the user can see the screen. */
export interface Screen {
  isVisible(): boolean;
  /** Calls the callback when the screen becomes visible. */
  onVisible(callback: () => void): () => void;
}

/** The maximum number of sent texts whose transcript items have not arrived yet. */
const MAX_WRITTEN = 20;

export class ChatFeed {
  readonly #source: ChatSource;
  readonly #screen: Screen | null;
  readonly #by: string | null;
  readonly #subscriptions: (() => void)[] = [];
  /** The messages that the chat has, by id. */
  readonly #taken = new Map<string, ChatMessage>();
  /** Replaced on every change. */
  #receipts: Receipts = new Map();
  #made: {
    readonly state: SessionState;
    readonly receipts: Receipts;
    readonly messages: readonly ChatMessage[];
  } | null = null;
  /** The texts that the chat has sent and whose transcript item has not arrived yet. */
  #written: SentWords[] = [];
  /** The ids that the chat uses for its own user messages. */
  readonly #ownIds = new Map<string, string>();
  readonly #waiting = new Set<() => void>();
  /** Messages that will be reported as shown once the screen is visible. */
  #unseen: (() => void)[] = [];
  /** The number of sent texts that are waiting for a reply. The lead agent's next speech is the reply. */
  #unreplied = 0;
  /** The messages that are being streamed as replies. */
  readonly #replyIds = new Set<string>();
  #isClosed = false;
  /** The callbacks that update chats which follow the session. */
  readonly #followers = new Set<() => void>();

  /**
   * @param screen Null if the page itself reports which messages it shows.
   * @param by The chat's user, or null if the source's state is already specific to this user.
   */
  constructor(source: ChatSource, screen: Screen | null, by: string | null = null) {
    this.#source = source;
    this.#screen = screen;
    this.#by = by;
    const subscription = source.store.subscribe(() => this.#wake());
    this.#subscriptions.push(() => subscription.unsubscribe());
    if (screen) this.#subscriptions.push(screen.onVisible(() => this.#report()));
  }

  /** Sends the user's text. The stream contains the reply, or is empty if there is no reply. */
  async send(
    text: string,
    id: string,
    signal?: AbortSignal,
    sending: Sending = {},
  ): Promise<ReadableStream<SessionChunk>> {
    const words: SentWords = {
      id,
      text: text.trim(),
      earlier: new Set(this.#messages().map((message) => message.id)),
      isUnreplied: true,
      replyId: null,
    };
    this.#written = [...this.#written.slice(1 - MAX_WRITTEN), words];
    this.#unreplied += 1;
    // When a text answers a question, its transcript item can arrive after the stream has ended.
    const over = (): void => {
      this.#replied(words, null);
      this.#wake();
    };
    try {
      await this.#source.send(text, sending);
    } catch (error) {
      this.#written = this.#written.filter((each) => each !== words);
      over();
      throw error;
    }
    return streamOf((cut) => this.#reply(words, cut), over, signal);
  }

  /** Answers a question. */
  async answer(requestId: string, answer: ClientAnswer): Promise<AnswerReceipt> {
    this.#receive(requestId, 'pending');
    try {
      const receipt = await this.#source.answer(requestId, answer);
      this.#receive(requestId, receipt);
      return receipt;
    } catch (error) {
      this.#receive(requestId, null);
      throw error;
    }
  }

  /**
   * Resolves with a stream when there is a new message. Resolves with null if the signal aborts, if the feed is closed
   * or if the chat follows the session.
   */
  async resume(signal?: AbortSignal): Promise<ReadableStream<SessionChunk> | null> {
    if (this.#followers.size > 0) return null;
    while (!this.#next()) {
      if (this.#isClosed || signal?.aborted) return null;
      await this.#change(signal);
    }
    return streamOf(
      (cut) => this.#rest(cut),
      () => this.#wake(),
      signal,
    );
  }

  /** Keeps a chat's messages in sync with the session's. Calls `set` immediately and after every change. */
  follow(set: (update: UpdateMessages) => void): () => void {
    let isFirst = true;
    const look = (): void => {
      if (this.#isClosed || !(isFirst || this.#next())) return;
      isFirst = false;
      set((held) => this.#merged(held));
    };
    this.#followers.add(look);
    look();
    return () => void this.#followers.delete(look);
  }

  /** Closes the held streams. Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    for (const unsubscribe of this.#subscriptions.splice(0)) unsubscribe();
    this.#unseen = [];
    this.#followers.clear();
    this.#wake();
  }

  async *#reply(words: SentWords, cut: AbortSignal): AsyncGenerator<SessionChunk, void> {
    let message: ChatMessage | undefined;
    for (;;) {
      message = this.#news().find((each) => this.#isNewSpeech(each) && !words.earlier.has(each.id));
      if (message) break;
      const { floor } = this.#source.store.getSnapshot().context;
      // The text answered a question, or the lead agent does not reply.
      if (floor !== 'model' || this.#isClosed || cut.aborted) return;
      await this.#change(cut);
    }
    const { id } = message;
    this.#replied(words, id);
    this.#wake();
    yield* this.#whole(message);
    while (!message.isFinal) {
      const next = this.#news().find((each) => each.id === id);
      const more = next && continuation(message, next);
      // The text was replaced instead of continued, so a held stream sends the new message.
      if (more === null) return;
      if (next && more) {
        yield* more;
        this.#take(next);
        message = next;
      } else if (this.#isClosed || cut.aborted) return;
      else await this.#change(cut);
    }
    yield { type: 'finish' };
  }

  /** The text is not waiting for a reply any more. `id`: the message that is streamed as its reply. */
  #replied(words: SentWords, id: string | null): void {
    if (words.isUnreplied) this.#unreplied -= 1;
    words.isUnreplied = false;
    if (words.replyId !== null) this.#replyIds.delete(words.replyId);
    words.replyId = id;
    if (id !== null) this.#replyIds.add(id);
  }

  #isNewSpeech({ id, text, isOfUser, parts }: ChatMessage): boolean {
    const isSpeech = text !== null && !isOfUser && parts.length === 0;
    return isSpeech && !this.#taken.has(id) && !this.#replyIds.has(id);
  }

  async *#rest(cut: AbortSignal): AsyncGenerator<SessionChunk, void> {
    /** The message to which the last chunks belong. */
    let current: ChatMessage | null = null;
    for (;;) {
      const next = this.#next();
      if (!next) {
        if (!current || current.isFinal || this.#isClosed || cut.aborted) break;
        await this.#change(cut);
      } else if (next.id === current?.id) {
        const more = continuation(current, next);
        // A message with the same id can be replaced only at the start of a stream.
        if (more === null) break;
        yield* more;
        this.#take(next);
        current = next;
      } else {
        // The message is unfinished, so a later stream repeats it from the start.
        if (current && !current.isFinal) {
          yield { type: 'text-end', id: TEXT_ID };
          this.#taken.delete(current.id);
        }
        yield* this.#whole(next);
        current = next;
      }
    }
    yield { type: 'finish' };
  }

  *#whole(message: ChatMessage): Generator<SessionChunk, void> {
    // If the stream breaks here, the message still counts as new.
    this.#taken.delete(message.id);
    yield* chunksOf(message);
    this.#take(message);
  }

  /** The chat has received all of the message's chunks (CHAT-FEED-3). */
  #take(message: ChatMessage): void {
    this.#taken.set(message.id, message);
    if (!this.#screen || !message.isFinal) return;
    const { deliveries, questions } = message.shows;
    for (const id of deliveries) this.#unseen.push(() => void this.#source.shown(id));
    for (const id of questions) this.#unseen.push(() => void this.#source.questionShown(id));
    this.#report();
  }

  #report(): void {
    if (!this.#screen?.isVisible()) return;
    for (const report of this.#unseen.splice(0)) report();
  }

  /** Returns the first new message that is not part of a reply stream. */
  #next(): ChatMessage | undefined {
    return this.#news().find((message) => !this.#isOfStream(message));
  }

  #isOfStream(message: ChatMessage): boolean {
    return this.#replyIds.has(message.id) || (this.#unreplied > 0 && this.#isNewSpeech(message));
  }

  #news(): readonly ChatMessage[] {
    return this.#messages().filter((message) => this.#isNews(message));
  }

  #isNews(message: ChatMessage): boolean {
    // The chat's own user message changes when it becomes an answer (CHAT-FEED-4).
    if (this.#ownIds.has(message.id)) return false;
    const taken = this.#taken.get(message.id);
    return !taken || !isSameMessage(taken, message);
  }

  #messages(): readonly ChatMessage[] {
    const { context: state } = this.#source.store.getSnapshot();
    const receipts = this.#receipts;
    if (this.#made?.state === state && this.#made.receipts === receipts) return this.#made.messages;
    const questions = state.questions.map((each) =>
      this.#by === null ? each : questionFor(each, this.#by),
    );
    const messages = chatMessages({ ...state, questions }, receipts);
    this.#made = { state, receipts, messages };
    const ids = new Set(messages.map(({ id }) => id));
    for (const known of [this.#taken, this.#ownIds])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    for (const message of messages) {
      if (!message.isOfUser || this.#taken.has(message.id)) continue;
      // CHAT-FEED-4
      const own = this.#written.find(
        ({ text, earlier }) => text === message.text && !earlier.has(message.id),
      );
      if (!own) continue;
      this.#written = this.#written.filter((each) => each !== own);
      this.#ownIds.set(message.id, own.id);
      this.#taken.set(message.id, message);
    }
    return messages;
  }

  /** Merges the session's messages into the chat's by time. Messages that only the chat has stay in place. */
  #merged(held: readonly SessionMessage[]): SessionMessage[] {
    const heldById = new Map(held.map((message) => [message.id, message]));
    const known = new Map<string, SessionMessage>();
    for (const message of this.#messages()) {
      const id = this.#ownIds.get(message.id) ?? message.id;
      const before = heldById.get(id);
      const isOfStream = this.#isOfStream(message);
      if (before && (isOfStream || !this.#isNews(message))) known.set(id, before);
      else if (!isOfStream) {
        known.set(id, { ...messageOfChat(message), id });
        this.#take(message);
      }
    }
    // Only the chat has the messages that are still being sent, and the start of a long conversation.
    const after = new Map<string | null, SessionMessage[]>();
    let last: string | null = null;
    for (const message of held)
      if (known.has(message.id)) last = message.id;
      else after.set(last, [...(after.get(last) ?? []), message]);
    return [
      ...(after.get(null) ?? []),
      ...[...known].flatMap(([id, message]) => [message, ...(after.get(id) ?? [])]),
    ];
  }

  #receive(requestId: string, receipt: ChatQuestion['receipt']): void {
    const receipts = new Map(this.#receipts);
    if (receipt === null) receipts.delete(requestId);
    else receipts.set(requestId, receipt);
    this.#receipts = receipts;
    this.#wake();
  }

  #wake(): void {
    // Each waiter resumes in its own task and may wait again.
    for (const resolve of this.#waiting) resolve();
    for (const look of this.#followers) look();
  }

  /** Resolves on the next change or when the signal aborts. */
  #change(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal?.addEventListener('abort', done);
    });
  }
}

/** Returns the chunks that turn one message into the other, or null if the whole message must be sent. */
function continuation(before: ChatMessage, after: ChatMessage): readonly SessionChunk[] | null {
  const [old, now] = [before.text, after.text];
  if (before.isFinal || old === null || now === null || !now.startsWith(old)) return null;
  const delta = now.slice(old.length);
  return [
    ...(delta === '' ? [] : [{ type: 'text-delta', id: TEXT_ID, delta } as const]),
    ...(after.isFinal
      ? [
          { type: 'text-end', id: TEXT_ID } as const,
          { type: 'message-metadata', messageMetadata: after.metadata } as const,
        ]
      : []),
  ];
}

/** Creates a chunk on demand. `over` is called once, when the stream ends or is cancelled. */
function streamOf(
  make: (cut: AbortSignal) => AsyncGenerator<SessionChunk, void>,
  over: () => void,
  signal?: AbortSignal,
): ReadableStream<SessionChunk> {
  const controller = new AbortController();
  const cut = signal ? AbortSignal.any([signal, controller.signal]) : controller.signal;
  const chunks = make(cut);
  return new ReadableStream<SessionChunk>(
    {
      async pull(stream) {
        const { done, value } = await chunks.next();
        if (controller.signal.aborted) return;
        if (!done && !cut.aborted) return stream.enqueue(value);
        controller.abort();
        over();
        stream.close();
      },
      async cancel() {
        if (controller.signal.aborted) return;
        controller.abort();
        over();
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
}
