// The `useChat` transport for a session: `chatTransport(client)`.
//
//   sendMessages ─▶ the user's last message, or an answer ─▶ session
//   follow ─▶ the chat's messages are kept equal to the session's
//   reconnectToStream ─▶ for a chat that does not follow: held until the session has a message
//
// Invariants
//   CHAT-TRANSPORT-1. The transport reads only the user's last message from a chat: the session has the history.
//   CHAT-TRANSPORT-2. A request that a session cannot fulfil is refused before anything is sent, and the error names
//       the problem.

import type { ChatTransport } from 'ai';
import type { AnswerReceipt } from '../actors/contracts/session-views.ts';
import type { ClientAnswer } from '../actors/contracts/session-command.ts';
import type { SessionClient } from '../client/session-client.ts';
import { ConfigurationError, messageOf } from '../values/errors.ts';
import {
  checkOptions,
  objectWith,
  oneOf,
  optional,
  shown,
  type OptionChecks,
} from '../values/plain-checks.ts';
import { wordsOf } from './chat-words.ts';
import { ChatFeed, type Screen, type UpdateMessages } from './chat-feed.ts';
import type { SessionChunk, SessionMessage } from './chat-messages.ts';
import { screen } from '../client/screen.ts';

/** The options of `chatTransport`. */
export interface ChatTransportOptions {
  /**
   * Who reports results and questions as shown: `chat`, as soon as a visible page has received the message; or `page`,
   * with `client.shown` and `client.questionShown`.
   * @defaultValue 'chat'
   */
  readonly shownBy?: 'chat' | 'page';
}

/** The part of a client that a chat uses. */
export type ChatClient = Pick<
  SessionClient,
  'store' | 'status' | 'send' | 'answer' | 'shown' | 'questionShown'
>;

type SendOptions = Parameters<ChatTransport<SessionMessage>['sendMessages']>[0];
type ReconnectOptions = Parameters<ChatTransport<SessionMessage>['reconnectToStream']>[0];

const optionChecks: OptionChecks<ChatTransportOptions> = {
  shownBy: optional(oneOf('chat', 'page')),
};

/** @throws {ConfigurationError} `INVALID_OPTION` */
function checkClient(client: ChatClient): void {
  let problem: string | null;
  try {
    problem =
      objectWith(
        'a client of `connect`',
        'send',
        'answer',
        'shown',
        'questionShown',
      )(client, true) ??
      objectWith('a client with a `store`', 'getSnapshot', 'subscribe')(client.store, true) ??
      objectWith('a client with a `status`', 'get', 'subscribe')(client.status, true);
  } catch (error) {
    problem = `the value cannot be read: ${messageOf(error)}`;
  }
  if (problem !== null)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `chatTransport(client): ${problem}, got ${shown(client)}`,
    );
}

/** Connects one `useChat` to a session, in both directions. */
export class SessionChatTransport implements ChatTransport<SessionMessage> {
  /** The evidence for a delivery is at most "shown": a chat cannot report it as heard. */
  readonly heard = 'shown';
  /** A message is sent as a whole and replaces the message with the same id. */
  readonly resumeStreamIsReplay = true;
  readonly #connect: () => ChatClient;
  readonly #screen: Screen | null;
  #made: ChatFeed | null = null;
  #isClosed = false;

  constructor(client: ChatClient | (() => ChatClient), options: ChatTransportOptions = {}) {
    const checked: ChatTransportOptions = checkOptions(
      'chatTransport(client, options)',
      optionChecks,
      options,
    );
    this.#screen = checked.shownBy === 'page' ? null : screen;
    if (typeof client === 'function') this.#connect = client;
    else {
      checkClient(client);
      this.#connect = () => client;
      this.#begin(client);
    }
  }

  /** The feed. If `client` is a function, it is called on first use, so that server-side rendering does not call it. */
  get #feed(): ChatFeed {
    if (this.#made) return this.#made;
    const client = this.#connect();
    checkClient(client);
    return this.#begin(client);
  }

  #begin(client: ChatClient): ChatFeed {
    const feed = new ChatFeed(client, this.#screen);
    this.#made = feed;
    if (this.#isClosed) feed.close();
    const ended = client.status.subscribe(({ state }) => {
      if (state !== 'closed') return;
      ended.unsubscribe();
      this.close();
    });
    return feed;
  }

  /**
   * Answers a question or an approval. The question's part also contains the receipt.
   * @throws {OffstageError} like `client.answer` (rejects)
   */
  answer(requestId: string, answer: ClientAnswer): Promise<AnswerReceipt> {
    return this.#feed.answer(requestId, answer);
  }

  /**
   * Sends the user's last message.
   * @throws {ConfigurationError} `INVALID_MESSAGE` unless the message contains text from the user; {OffstageError} like
   *   `client.send` (rejects)
   */
  async sendMessages(options: SendOptions): Promise<ReadableStream<SessionChunk>> {
    const { text, id } = wordsOf(options);
    return this.#feed.send(text, id, options.abortSignal);
  }

  /**
   * Resolves with a stream when the session has a new message. Resolves with null when the client is closed. For a chat
   * that follows the session, resolves with null immediately. A chat that follows must not use this: a held stream
   * would repeat a message, which would then appear twice.
   */
  reconnectToStream(options: ReconnectOptions): Promise<ReadableStream<SessionChunk> | null> {
    return this.#feed.resume(options.abortSignal);
  }

  /**
   * Keeps a chat's messages in sync with the session's, including messages that the chat did not request. Pass
   * `setMessages` of `useChat`, or a function such as `(update) => (chat.messages = update(chat.messages))`. Returns a
   * function that stops this.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  follow(setMessages: (update: UpdateMessages) => void): () => void {
    if (typeof setMessages !== 'function')
      throw new ConfigurationError(
        'INVALID_ARGUMENT',
        `follow(setMessages): expected a function, got ${shown(setMessages)}`,
      );
    return this.#feed.follow(setMessages);
  }

  /** Closes the held streams. The client stays open. Safe to call twice. */
  close(): void {
    this.#isClosed = true;
    this.#made?.close();
  }
}

/**
 * Returns the transport for one `useChat` over a session. `client`: the result of `connect`, or a function that
 * connects. The function is called on first use, so that server-side rendering does not connect.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function chatTransport(
  client: ChatClient | (() => ChatClient),
  options?: ChatTransportOptions,
): SessionChatTransport {
  return new SessionChatTransport(client, options);
}
