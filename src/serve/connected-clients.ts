// The clients of a server, connected by a WebSocket or a stream. Each request is either given an identity or refused. A
// client has the same name on all of its connections.
//
// Owns:     the clients, the streams by name, and each user's places and rates on all connections.
// Does not: accept sockets or find a client's session (`serve.ts` does both in Node.js, `offstage/cloudflare` in a
//           Durable Object).
//
// Invariants
//   SERVE-1. The server does not admit a client that has an untrusted Host or Origin, or to which `authorize` gives no
//       identity.
//   SERVE-2. No message from a client can make a handler throw or end the process.
//   SERVE-4. A user's places and rates are counted across all sessions, from the start of a connection and before any
//       frame. A rate is remembered until its bucket is full again, so that reconnecting does not help a client.

import { bearerToken, offeredProtocols, protocolToken } from '../adapters/listen/access.ts';
import {
  unservedOf,
  unservedReporter,
  readText,
  refusal,
  webHandlers,
  type Reachable,
  type WebHandlers,
} from '../adapters/listen/web-requests.ts';
import {
  PROTOCOL_VERSION,
  readClientFrame,
  readPostedFrames,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  valueOfJson,
  type HelloFrame,
  type ServerFrame,
} from '../client/protocol.ts';
import { CapacityError } from '../values/errors.ts';
import {
  checkedIdentity,
  type AuthorizeRequest,
  type CheckedServe,
  type ServedIdentity,
} from './options.ts';
import { ServedClient, type Channel, type ClientOwner, type UserRates } from './served-client.ts';
import { TokenBucket } from './token-bucket.ts';

const MAX_TOKEN_CHARS = 8_192;
const RETRY_AFTER_S = '5';

type Bye = Extract<ServerFrame, { type: 'bye' }>;

/**
 * The first and last frame that a client without an identity receives. If an upgrade fails, a browser does not show its
 * status to the page.
 */
export const unauthorized = {
  type: 'bye',
  code: 'UNAUTHORIZED',
  message: 'The server does not know this client',
  retry: false,
} as const satisfies Bye;

/** The clients and rates of a user. */
interface User extends UserRates {
  readonly clients: Set<ServedClient>;
  /** Cancels the pending removal of this record, because the user has connected again. */
  stay: () => void;
}

/** The server to which the clients belong. */
export interface ConnectedClientsOptions {
  /** The server's name in error messages. */
  readonly name: string;
  readonly reachable: Reachable;
  greeted(client: ServedClient, hello: HelloFrame): void;
}

/** The decision about an upgrade. `expel`: the socket is opened so that the client receives the reason as a frame. */
export type Admission =
  | { readonly type: 'open'; readonly identity: ServedIdentity }
  | { readonly type: 'expel'; readonly bye: Bye }
  | { readonly type: 'refuse'; readonly status: number; readonly message: string };

export class ConnectedClients implements ClientOwner {
  readonly web: WebHandlers;
  readonly environment;
  readonly limits;
  readonly clients = new Set<ServedClient>();
  readonly #options: CheckedServe;
  readonly #server: ConnectedClientsOptions;
  /** The clients with a stream, by name. Each POST belongs to one of these streams. */
  readonly #streams = new Map<string, ServedClient>();
  readonly #users = new Map<string, User>();
  readonly #reportUnserved;
  #isClosed = false;

  constructor(options: CheckedServe, server: ConnectedClientsOptions) {
    this.#options = options;
    this.#server = server;
    this.environment = options.environment;
    this.limits = options.limits;
    this.#reportUnserved = unservedReporter(options.onError);
    this.web = webHandlers({
      name: server.name,
      path: options.path,
      reachable: server.reachable,
      methods: ['GET', 'POST'],
      scheduler: options.environment.scheduler,
      maxBytes: options.limits.maxMessageBytes,
      answer: (request, url) => this.#answer(request, url),
      onError: options.onError,
    });
  }

  /**
   * Rejects an upgrade that has an untrusted Host or Origin. Returns null if both are trusted. A page can learn the
   * reason only over an open socket.
   */
  unserved(host: string, origin: string | null): Admission | null {
    const unserved = unservedOf({ host, origin }, this.#server.reachable);
    if (!unserved) return null;
    this.#reportUnserved(unserved, `${this.#server.name}: upgrade`);
    return { type: 'expel', bye: { type: 'bye', ...unserved, retry: false } };
  }

  /** Decides whether to accept an upgrade whose Host and Origin are trusted. */
  async admit(headers: Headers, url: URL): Promise<Admission> {
    const offered = { 'sec-websocket-protocol': headers.get('sec-websocket-protocol') ?? '' };
    if (!offeredProtocols(offered).includes(SUBPROTOCOL))
      return refuse(400, `Expected the subprotocol ${SUBPROTOCOL}`);
    if (this.#isClosed) return refuse(503, 'The server is closing');
    const carried = tokenOf(protocolToken(offered, TOKEN_PREFIX));
    const identity = await this.#identify(headers, url, 'websocket', carried);
    if (!identity) return { type: 'expel', bye: unauthorized };
    // SERVE-4
    return this.#isFull(identity)
      ? { type: 'expel', bye: { ...this.#tooMany(), type: 'bye', retry: true } }
      : { type: 'open', identity };
  }

  opened(channel: Channel, identity: ServedIdentity): ServedClient {
    const isFull = this.#isFull(identity);
    const client = new ServedClient(channel, identity, this);
    this.clients.add(client);
    this.#userOf(identity.user).clients.add(client);
    if (isFull) {
      // In the meantime, other clients of this user may have been admitted.
      const { code, message } = this.#tooMany();
      client.bye(code, message, { retry: true });
    }
    return client;
  }

  ratesOf(user: string): UserRates {
    return this.#userOf(user);
  }

  #isFull({ user }: ServedIdentity): boolean {
    return (this.#users.get(user)?.clients.size ?? 0) >= this.limits.clientsPerUser;
  }

  #tooMany(): { readonly code: string; readonly message: string } {
    const message = `Expected at most ${this.limits.clientsPerUser} connections of one user`;
    return { code: 'TOO_MANY_CLIENTS', message };
  }

  #userOf(name: string): User {
    const { environment, limits } = this;
    const user = this.#users.get(name) ?? {
      clients: new Set(),
      messages: new TokenBucket(environment.clock, limits.messages),
      welcomes: new TokenBucket(environment.clock, limits.welcomes),
      stay: () => undefined,
    };
    this.#users.set(name, user);
    return user;
  }

  /** SERVE-4. Removes a user whose last client has left, as soon as the rates are full again. */
  #forgetLater(name: string, user: User): void {
    user.stay();
    if (user.clients.size > 0) return;
    const fullAfterMs = Math.max(user.messages.fillMs, user.welcomes.fillMs);
    const forget = (): void => {
      if (user.clients.size === 0) this.#users.delete(name);
    };
    user.stay = this.environment.scheduler.schedule(forget, fullAfterMs, { isBackground: true });
  }

  /** Disconnects all clients. They may then reconnect. */
  close(): void {
    this.#isClosed = true;
    for (const client of this.clients)
      client.bye('SERVER_CLOSING', 'The server is closing', { retry: true });
  }

  greeted(client: ServedClient, hello: HelloFrame): void {
    if (hello.v !== PROTOCOL_VERSION) {
      const message = `Expected version ${PROTOCOL_VERSION} of the protocol, got ${hello.v}`;
      return client.bye('PROTOCOL_VERSION', message);
    }
    this.#server.greeted(client, hello);
  }

  gone(client: ServedClient): void {
    this.clients.delete(client);
    const { clientId } = client;
    const { user: name } = client.identity;
    const user = this.#userOf(name);
    user.clients.delete(client);
    this.#forgetLater(name, user);
    if (clientId === null) return;
    const key = streamKey(client.identity, clientId);
    if (this.#streams.get(key) === client) this.#streams.delete(key);
  }

  cutOff({ identity }: ServedClient, code: string, message: string): void {
    const { user, sessionId } = identity;
    this.#options.onError(
      new CapacityError('CLIENT_CUT_OFF', `${code}: ${message}`),
      `${this.#server.name}: client of ${user} in ${sessionId}`,
    );
  }

  async #identify(
    headers: Headers,
    url: URL,
    transport: AuthorizeRequest['transport'],
    carried: string | null = null,
  ): Promise<ServedIdentity | null> {
    const token = carried ?? bearerToken({ authorization: headers.get('authorization') ?? '' });
    const sessionId = url.searchParams.get('session');
    return checkedIdentity(
      await this.#options.authorize({ token, sessionId, headers, url, transport }),
    );
  }

  async #answer(request: Request, url: URL): Promise<Response> {
    if (this.#isClosed) return refusal(503, 'The server is closing');
    const identity = await this.#identify(request.headers, url, 'stream');
    if (!identity) return refusal(401, unauthorized.message, {}, unauthorized.code);
    return request.method === 'GET'
      ? this.#stream(request, url, identity)
      : this.#posted(request, identity);
  }

  #stream(request: Request, url: URL, identity: ServedIdentity): Response {
    const after = afterOf(url.searchParams);
    const hello = readClientFrame({
      type: 'hello',
      v: Number(url.searchParams.get('v')),
      client: url.searchParams.get('client'),
      ...(after && { after }),
    });
    if (typeof hello === 'string')
      return refusal(400, `Expected a query with a \`hello\`: ${hello}`);
    if (hello.type !== 'hello') return refusal(400, 'Expected a query with a `hello`');
    if (this.clients.size >= this.limits.clients)
      return refusal(
        503,
        `At most ${this.limits.clients} clients are served at once`,
        { 'retry-after': RETRY_AFTER_S },
        'TOO_MANY_CLIENTS',
      );
    if (this.#isFull(identity)) {
      const { code, message } = this.#tooMany();
      return refusal(429, message, { 'retry-after': RETRY_AFTER_S }, code);
    }
    this.#endOldestStream(identity);
    const { response, channel, whenClosed } = openStream(this.limits.maxUnsentBytes);
    const client = this.opened(channel, identity);
    whenClosed(() => client.left());
    request.signal.addEventListener('abort', () => client.left(), { once: true });
    client.receivedFrame(hello);
    if (!client.isGone) this.#streams.set(streamKey(identity, hello.client), client);
    return response;
  }

  /** Makes room for another stream of a user: a browser allows few connections, and the page needs one. */
  #endOldestStream({ user }: ServedIdentity): void {
    const streams = [...(this.#users.get(user)?.clients ?? [])].filter(
      ({ channel }) => channel.kind === 'stream',
    );
    if (streams.length < this.limits.streamsPerUser) return;
    const message = `Expected at most ${this.limits.streamsPerUser} streams of one user: another page has opened one`;
    streams[0]?.bye('TOO_MANY_STREAMS', message, { retry: true });
  }

  async #posted(request: Request, identity: ServedIdentity): Promise<Response> {
    if (!(request.headers.get('content-type') ?? '').startsWith('application/json'))
      return refusal(415, 'Expected content-type application/json');
    const text = await readText(request, this.limits.maxMessageBytes);
    if (text === null) return refusal(413, `Expected at most ${this.limits.maxMessageBytes} bytes`);
    const posted = readPostedFrames(valueOfJson(text));
    if (typeof posted === 'string') return refusal(400, `Expected frames: ${posted}`);
    const client = this.#streams.get(streamKey(identity, posted.client));
    if (!client) return refusal(409, 'Expected an open stream of this client', {}, 'STREAM_CLOSED');
    for (const frame of posted.frames) client.receivedFrame(frame);
    return new Response(null, { status: 202 });
  }
}

/** The key contains the user and the session, so that a client cannot use another user's or session's stream name. */
function streamKey({ user, sessionId }: ServedIdentity, client: string): string {
  return JSON.stringify([user, sessionId, client]);
}

function refuse(status: number, message: string): Admission {
  return { type: 'refuse', status, message };
}

/** Decodes the token in a subprotocol from base64url. Returns null if there is no valid token. */
function tokenOf(encoded: string | null): string | null {
  if (encoded === null || encoded.length > MAX_TOKEN_CHARS) return null;
  const token = Buffer.from(encoded, 'base64url').toString('utf8');
  return token === '' ? null : token;
}

function afterOf(query: URLSearchParams): object | null {
  const [epoch, seq] = [query.get('epoch'), query.get('seq')];
  return epoch === null && seq === null ? null : { epoch, seq: Number(seq ?? Number.NaN) };
}

interface OpenedStream {
  readonly response: Response;
  readonly channel: Channel;
  /** Calls back when the client has disconnected. */
  whenClosed(callback: () => void): void;
}

const encoder = new TextEncoder();

/**
 * Opens a client's stream of server-sent events. Each frame is one `data:` line. `maxQueuedBytes`: the number of bytes
 * that the stream queues for a client. Further bytes also count as unsent.
 */
function openStream(maxQueuedBytes: number): OpenedStream {
  const queueBytes = 2 * maxQueuedBytes;
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  let closed: () => void = () => undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      start(made) {
        controller = made;
      },
      cancel() {
        controller = null;
        closed();
      },
    },
    { highWaterMark: queueBytes, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  const end = (finish: (made: ReadableStreamDefaultController<Uint8Array>) => void): void => {
    const made = controller;
    controller = null;
    if (made) finish(made);
  };
  return {
    response: new Response(body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store, no-transform',
        // Otherwise, proxies would buffer small responses.
        'x-accel-buffering': 'no',
      },
    }),
    channel: {
      kind: 'stream',
      get unsentBytes() {
        return controller ? queueBytes - (controller.desiredSize ?? 0) : 0;
      },
      // JSON text has no line breaks, so each frame is one line.
      text: ({ text }) => controller?.enqueue(encoder.encode(`data: ${text}\n\n`)),
      close: () => end((made) => made.close()),
      cut: (_code, reason) => end((made) => made.error(new DOMException(reason, 'AbortError'))),
    },
    whenClosed(callback) {
      closed = callback;
    },
  };
}
