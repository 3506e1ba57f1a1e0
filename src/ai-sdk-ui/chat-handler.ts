// The server for the standard `DefaultChatTransport`: a session in `useChat` over plain HTTP, without Offstage code in
// the page.
//
//   POST …            ─▶ the user's last message, or an answer ─▶ the reply, as server-sent events
//   GET …/<chat>/stream ─▶ held until the session has a message; then sends all new messages. After `holdMs`, before a proxy
//                          ends it, the response ends empty, and the page asks again
//
// Owns:     requests and responses, and each chat's feed.
// Does not: identify the sender of a request (the app does) or keep a chat longer than its session.
//
// Invariants
//   CHAT-HANDLER-1. If the app refuses a request, its body is not read. No body is read beyond the size limit.
//   CHAT-HANDLER-2. Only JSON is accepted, because another site's HTML form cannot send it.
//   CHAT-HANDLER-4. A pool's session stays awake only while one of its responses is open.
//   CHAT-HANDLER-5. The number of open responses per user is limited across all sessions. A response counts as open
//                   before its request is read.
//   CHAT-HANDLER-6. A response sends something at least once every `holdMs`, because a proxy would otherwise replace it
//                   with an error page.
//   CHAT-HANDLER-3. A client is attached while a response is open. A remembered chat is always listening: messages that
//       it has not received wait and do not count as shown.

import { nodeEnvironment } from '../adapters/node/environment.ts';
import type { AnswerReceipt, SessionState } from '../actors/contracts/session-views.ts';
import type { ClientAnswer } from '../actors/contracts/session-command.ts';
import type { Subscription } from '../client/watchable.ts';
import type { Environment } from '../actors/ports/environment.ts';
import { ConfigurationError, messageOf, OffstageError, quietly } from '../values/errors.ts';
import {
  checkOptions,
  numberAbove,
  objectWith,
  optional,
  shown,
  type OptionCheck,
  type OptionChecks,
} from '../values/plain-checks.ts';
import { ChatFeed, type Screen, type Sending } from './chat-feed.ts';
import type { SessionChunk } from './chat-messages.ts';
import { wordsOf } from './chat-words.ts';

/** The part of a session that a chat handler uses; `TextSession` and `VoiceSession` implement it. */
export interface ChatSession {
  /**
   * Starts the session. It is called for each request, so a session that has been started must accept further calls.
   */
  start(): Promise<unknown>;
  /** Attaches a client to a text session while a response is open. Returns a function that detaches it. */
  attach(client: Present): () => void;
  /**
   * Adds a listener for as long as the chat is remembered, or lists a client that only reads while a response is open.
   * Returns a function that removes the listener.
   */
  listen(client?: Present): () => void;
  /** The session's state, from which the chat's messages are made. */
  readonly store: {
    getSnapshot(): { readonly context: SessionState };
    subscribe(listener: () => void): Subscription;
  };
  /** The session's events, which show whether the lead agent will reply to a message. */
  readonly events: {
    subscribe(
      listener: (event: { readonly type: string; readonly to?: unknown }) => void,
    ): Subscription;
  };
  /** Sends the text of the user's message to the session. */
  sendText(text: string, from: By & Traced): Promise<unknown>;
  /** Answers a subagent's question with the user's choice or text. */
  answer(requestId: string, answer: ClientAnswer, from: By): Promise<AnswerReceipt>;
  /** Reports that the page has received a delivery, which then need not be spoken. */
  shown(deliveryId: string, from: By): unknown;
  /** Reports that the page has received a question, so that the user can answer it. */
  questionShown(requestId: string, from: By): unknown;
}

interface By {
  readonly by: string;
}

interface Present extends By {
  readonly hears: boolean;
}

type Traced = Pick<Sending, 'traceparent'>;

/** The sender of a request. */
export type ChatIdentity = {
  /** The `by` value of the user's messages and answers. */
  readonly user: string;
  /**
   * Whether the messages that this user receives count as shown to the session's user, and whether that user then
   * counts as present. False for a supervisor who only reads. @defaultValue true
   */
  readonly hears?: boolean;
} & (
  | { readonly session: ChatSession; readonly sessionId?: never }
  /** The id of a session of `pool`. */
  | { readonly sessionId: string; readonly session?: never }
);

/** The part of a session pool that chats use. */
export interface ChatPool {
  /** Loads the session if necessary, and keeps it awake until the promise that `use` returns is settled. */
  use<T>(sessionId: string, use: (session: ChatSession) => T | Promise<T>): Promise<T>;
}

/** The options of `chatHandler`. */
export interface ChatHandlerOptions {
  /** Returns the sender's identity and session, or null to refuse the request. */
  readonly authorize: (request: Request) => ChatIdentity | null | Promise<ChatIdentity | null>;
  /**
   * The pool of sessions. Each session stays awake while a response is open. `authorize` then returns a `sessionId`.
   * @defaultValue none
   */
  readonly pool?: ChatPool;
  /**
   * The maximum request size in bytes. By default, a page sends its whole chat with each request. @defaultValue 16777216
   */
  readonly maxBodyBytes?: number;
  /**
   * The maximum number of open responses per user, across all sessions. A further response ends the oldest held `GET`
   * with status 204, and that page asks again when it is next used. If no `GET` is held, the request is refused with
   * status 429. A browser opens at most six connections to an HTTP/1.1 server. Raise the limit behind HTTP/2, and in an
   * app where many people share one `user`. @defaultValue 5
   */
  readonly responsesPerUser?: number;
  /**
   * How long a `GET` is held, in milliseconds. It is also the interval between the comments that keep other responses
   * alive. It must be shorter than the timeout of any proxy (Bun: 10 s, nginx: 60 s). @defaultValue 8000
   */
  readonly holdMs?: number;
  /** The number of remembered chats per session. A forgotten chat receives all messages again. @defaultValue 20 */
  readonly maxChats?: number;
  /** The clock. @defaultValue the host's */
  readonly environment?: Pick<Environment, 'scheduler'>;
  /** Receives failures that are not reported to the page. @defaultValue they are not reported */
  readonly onError?: (error: unknown) => void;
}

const aFunction: OptionCheck = (value) =>
  typeof value === 'function' ? null : 'expected a function';
const optionChecks: OptionChecks<ChatHandlerOptions> = {
  authorize: aFunction,
  pool: optional(objectWith('a pool of `createSessionPool`', 'use')),
  maxBodyBytes: optional(numberAbove(0, 1_073_741_824)),
  responsesPerUser: optional(numberAbove(0, 1_000_000)),
  holdMs: optional(numberAbove(0, 3_600_000)),
  maxChats: optional(numberAbove(0, 10_000)),
  environment: optional((value) =>
    objectWith('an environment', 'schedule')(Object(value).scheduler, true),
  ),
  onError: optional(aFunction),
};
const isSession = objectWith(
  'a session',
  'start',
  'attach',
  'listen',
  'sendText',
  'answer',
  'shown',
  'questionShown',
);

/** The server cannot ask the page, so sent messages count as shown. */
const screen: Screen = { isVisible: () => true, onVisible: () => () => undefined };

const headers = {
  'content-type': 'text/event-stream',
  // Without this, `compression` and proxies would buffer the response.
  'cache-control': 'no-cache, no-transform',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
};

/** The error codes for a session that another process runs or is about to run. */
const ELSEWHERE: ReadonlySet<string> = new Set(['POOL_CLOSED', 'POOL_DRAINING', 'SCOPE_IN_USE']);

/** An error response to a page, and its status. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A chat's request to its session. */
interface ChatTurn {
  readonly session: ChatSession;
  readonly user: string;
  readonly hears: boolean;
  readonly chatId: string;
  /** Null if the page asks for messages that it does not have. */
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly signal: AbortSignal;
  readonly traced: Traced;
}

/** One of the open responses of a user (CHAT-HANDLER-5). */
interface Place {
  readonly isHeld: boolean;
  readonly cut: AbortController;
}

/** The chats of one session, with the most recently used chat last. */
type Chats = Map<string, { readonly feed: ChatFeed; open: number; leave(): void }>;

/**
 * Returns the server side of the AI SDK's `DefaultChatTransport` for frameworks with web requests: Next.js, Hono, Deno
 * and others. It handles `POST` requests, and `GET` requests for `…/<chat id>/stream`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function chatHandler(options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  const {
    authorize,
    pool,
    maxBodyBytes = 16_777_216,
    responsesPerUser = 5,
    holdMs = 8_000,
    maxChats = 20,
    environment = nodeEnvironment(),
    onError,
  } = checkOptions('chatHandler(options)', optionChecks, options);
  const report = quietly(onError);
  const chatsOf = new WeakMap<ChatSession, Chats>();
  const placesOf = new Map<string, Set<Place>>();
  const later = (task: () => void): (() => void) =>
    environment.scheduler.schedule(task, holdMs, { isBackground: true });

  async function answer(request: Request): Promise<Response> {
    const { method } = request;
    const traceparent = request.headers.get('traceparent');
    const traced = traceparent === null ? {} : { traceparent };
    if (method !== 'POST' && method !== 'GET') throw new Refusal(405, 'Expected POST or GET');
    const who = identityOf(await authorize(request), pool);
    if (who === null) throw new Refusal(403, 'This chat is refused');
    const { user, sessionId, hears = true } = who;
    const { cut, leave } = placeOf(user, method === 'GET');
    const signal = AbortSignal.any([request.signal, cut]);
    try {
      const body = method === 'POST' ? await bodyOf(request, maxBodyBytes) : null;
      const chatId = body
        ? body['id']
        : /\/([^/]+)\/stream\/?$/.exec(new URL(request.url).pathname)?.[1];
      if (typeof chatId !== 'string' || chatId.length > 200)
        throw new Refusal(400, `Expected the id of a chat, got ${shown(chatId)}`);
      const respond = (session: ChatSession, whenOver: () => void): Promise<Response> =>
        responseOf({ session, user, hears, chatId, body, signal, traced }, whenOver);
      if (sessionId === undefined) return await respond(who.session, leave);
      return await new Promise((resolve, reject) => {
        // The pool keeps the session awake until the response ends.
        void pool
          ?.use(sessionId, async (session) => {
            const { promise: over, resolve: end } = Promise.withResolvers<void>();
            resolve(await respond(session, end));
            await over;
            leave();
          })
          .catch(reject);
      });
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** @throws {Refusal} if the user has too many responses and none of them is held (CHAT-HANDLER-5) */
  function placeOf(user: string, isHeld: boolean) {
    const places = placesOf.get(user) ?? new Set<Place>();
    if (places.size >= responsesPerUser) {
      const oldest = [...places].find((each) => each.isHeld);
      if (!oldest)
        throw new Refusal(
          429,
          `Expected at most ${responsesPerUser} responses of one user at once`,
        );
      places.delete(oldest);
      oldest.cut.abort();
    }
    const place = { isHeld, cut: new AbortController() };
    placesOf.set(user, places.add(place));
    const leave = (): void => {
      places.delete(place);
      if (places.size === 0 && placesOf.get(user) === places) placesOf.delete(user);
    };
    return { cut: place.cut.signal, leave };
  }

  async function responseOf(
    { session, user, hears, chatId, body, signal, traced }: ChatTurn,
    whenOver: () => void,
  ): Promise<Response> {
    await session.start();
    const chat = chatOf({ session, user, hears, chatId });
    const leave = attachTo(session, { by: user, hears });
    chat.open += 1;
    const over = (): void => {
      leave();
      chat.open -= 1;
      whenOver();
    };
    try {
      const { reply } = await streamOf(chat.feed, body, signal, traced);
      if (reply === null) {
        over();
        return new Response(null, { status: 204 });
      }
      return new Response(events(reply, { over, later }), { headers });
    } catch (error) {
      over();
      throw error;
    }
  }

  /** `reply` is null if the page should stop asking. */
  async function streamOf(
    feed: ChatFeed,
    body: ChatTurn['body'],
    signal: AbortSignal,
    traced: Traced,
  ): Promise<{ readonly reply: Reply | null }> {
    const given = body && answerIn(body['answer']);
    if (body && !given) {
      const { text, id } = wordsOf(body);
      const { promise: whenTaken, resolve: taken, reject } = Promise.withResolvers<void>();
      const reply = feed.send(text, id, signal, { ...traced, taken });
      void reply.then(() => taken(), reject);
      await whenTaken;
      return { reply };
    }
    if (given) await feed.answer(given.requestId, given.answer);
    const hold = new AbortController();
    const cancel = later(() => hold.abort());
    const held = await feed.resume(AbortSignal.any([signal, hold.signal]));
    cancel();
    return { reply: held ?? (hold.signal.aborted && !signal.aborted ? nothing() : null) };
  }

  function chatOf({
    session,
    user,
    hears,
    chatId,
  }: Pick<ChatTurn, 'session' | 'user' | 'hears' | 'chatId'>) {
    const chats: Chats = chatsOf.get(session) ?? new Map();
    chatsOf.set(session, chats);
    const key = JSON.stringify([user, chatId, hears]);
    const from = { by: user };
    const chat = chats.get(key) ?? {
      open: 0,
      leave: hears ? session.listen() : () => undefined,
      feed: new ChatFeed(
        {
          store: session.store,
          send: (text, sending) => sent(session, text, { ...from, ...sending }),
          answer: (requestId, given) => {
            // A user who presses a button must have seen the question.
            if (!hears) session.questionShown(requestId, from);
            return session.answer(requestId, given, from);
          },
          shown: (id) => session.shown(id, from),
          questionShown: (id) => session.questionShown(id, from),
        },
        hears ? screen : null,
        user,
      ),
    };
    chats.delete(key);
    chats.set(key, chat);
    for (const [other, { open, feed, leave }] of chats) {
      if (chats.size <= maxChats) break;
      if (open > 0 || other === key) continue;
      chats.delete(other);
      feed.close();
      leave();
    }
    return chat;
  }

  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      if (error instanceof Refusal) return said(error.status, error.message);
      if (error instanceof OffstageError)
        return said(ELSEWHERE.has(error.code) ? 503 : 400, `${error.code}: ${error.message}`);
      report(error);
      return said(500, 'The server failed');
    }
  };
}

/** @throws {TypeError} unless the value has a user and either a session or (with a pool) its id */
function identityOf(given: unknown, pool: ChatPool | undefined): ChatIdentity | null {
  if (given === null) return null;
  const { session, sessionId, user, hears } = Object(given) as Partial<ChatIdentity>;
  const problem = pool
    ? typeof sessionId === 'string'
      ? null
      : `\`sessionId\` is ${shown(sessionId)}`
    : isSession(session, true);
  if (problem === null && typeof user === 'string' && user !== '')
    return {
      user,
      ...(typeof hears === 'boolean' && { hears }),
      ...(pool ? { sessionId: sessionId as string } : { session: session as ChatSession }),
    };
  throw new TypeError(
    `chatHandler: expected \`authorize\` to return ${pool ? 'the id of a session' : 'a session'} and a user, or null: ${problem ?? '`user` is no name'}`,
  );
}

/** Attaches a text session's reader. A voice session's listener is attached elsewhere, and a reader is only listed. */
function attachTo(session: ChatSession, client: Present): () => void {
  return client.hears && !('audioIn' in session) ? session.attach(client) : session.listen(client);
}

/** Resolves when the lead agent has started to reply, or will not reply. */
async function sent(
  session: ChatSession,
  text: string,
  { taken, ...from }: By & Sending,
): Promise<void> {
  let [isForLead, hasBegun] = [false, false];
  let look = (): void => undefined;
  const isReplying = (): boolean => session.store.getSnapshot().context.floor === 'model';
  const watched = [
    session.store.subscribe(() => {
      hasBegun ||= isReplying();
      look();
    }),
    session.events.subscribe(({ type, to }) => {
      if (type === 'utterance.routed') isForLead = to === 'lead';
      if (type === 'utterance.unanswered' || type === 'connection.changed') isForLead = false;
      look();
    }),
  ];
  try {
    await session.sendText(text, from);
    taken?.();
    await new Promise<void>((resolve) => {
      look = () => {
        if (!isForLead || hasBegun || isReplying()) resolve();
      };
      look();
    });
  } finally {
    for (const each of watched) each.unsubscribe();
  }
}

/**
 * Reads the answer that is sent together with a button's label: `sendMessage({ text: label }, { body: { answer: {
 * requestId, optionId } } })`.
 */
function answerIn(
  given: unknown,
): { readonly requestId: string; readonly answer: ClientAnswer } | null {
  if (given === undefined) return null;
  const { requestId, ...answer } = Object(given) as Readonly<Record<string, unknown>>;
  if (typeof requestId === 'string' && isAnswer(answer)) return { requestId, answer };
  throw new ConfigurationError(
    'INVALID_MESSAGE',
    `chatHandler: expected \`answer\` with a \`requestId\`, and an \`optionId\`, a \`text\` or \`approved\`, got ${shown(given)}`,
  );
}

async function bodyOf(
  request: Request,
  maxBytes: number,
): Promise<Readonly<Record<string, unknown>>> {
  if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
    throw new Refusal(415, 'Expected JSON');
  const tooLarge = new Refusal(
    413,
    `Expected at most ${maxBytes} bytes: send the last message only`,
  );
  if (Number(request.headers.get('content-length')) > maxBytes) throw tooLarge;
  const text = new TextDecoder();
  let [read, bytes] = ['', 0];
  for await (const part of request.body ?? []) {
    bytes += part.byteLength;
    if (bytes > maxBytes) throw tooLarge;
    read += text.decode(part, { stream: true });
  }
  let body: unknown;
  try {
    body = JSON.parse(read);
  } catch (error) {
    throw new Refusal(400, `Expected JSON: ${messageOf(error)}`);
  }
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Readonly<Record<string, unknown>>;
  throw new Refusal(400, `Expected a JSON object, got ${shown(body)}`);
}

/** The chunks of a response, or a promise for them until the lead agent starts to reply. */
type Reply = ReadableStream<SessionChunk> | Promise<ReadableStream<SessionChunk>>;

/** The empty response to a held request. The page then asks again. */
function nothing(): ReadableStream<SessionChunk> {
  return new ReadableStream({ start: (controller) => controller.close() });
}

/** `over` is called once, when the response ends or the page disconnects. `later` schedules a call within `holdMs`. */
function events(
  reply: Reply,
  { over, later }: { over(): void; later(task: () => void): () => void },
): ReadableStream<Uint8Array> {
  const reading = Promise.resolve(reply).then((stream) => stream.getReader());
  const text = new TextEncoder();
  let cancel = (): void => undefined;
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    cancel();
    over();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // CHAT-HANDLER-6: sends a comment, which clients of server-sent events ignore.
        const beat = (): void => {
          if ((controller.desiredSize ?? 0) >= 0) controller.enqueue(text.encode(':\n\n'));
          cancel = later(beat);
        };
        beat();
      },
      async pull(controller) {
        try {
          const { done, value } = await (await reading).read();
          controller.enqueue(text.encode(`data: ${done ? '[DONE]' : JSON.stringify(value)}\n\n`));
          if (!done) return;
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel() {
        end();
        void reading.then((reader) => reader.cancel()).catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

function said(status: number, message: string): Response {
  return new Response(message, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  });
}

/** Recognises an answer. The session validates its fields. */
function isAnswer(given: object): given is ClientAnswer {
  return 'optionId' in given || 'text' in given || 'approved' in given;
}
