// Sessions for pages and programs over the network: one handler for `node:http`, Express, Hono and Next.js, behind the
// guard of all listeners.
//
//   upgrade ─▶ guard ─▶ authorize ─┐                    ┌─▶ locate: another node
//                                  ├─▶ client ─▶ hello ─┤
//   fetch ───▶ host, origin ─▶ authorize                └─▶ hub of the session ─▶ whole state, frames
//
// Owns:     who may connect, the clients of all sessions, the hubs.
// Does not: execute commands (session-hub.ts), keep sessions (the pool does), or listen (the app does).
//
// Invariants
//   SERVE-1. No client is served under a foreign Host or Origin, or without an identity of `authorize`.
//   SERVE-2. Nothing that a client sends throws out of a handler, or ends the process.
//   SERVE-3. An upgrade or a request for another path is left alone.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import {
  bearerToken,
  offeredProtocols,
  protocolToken,
  targetOf,
} from '../adapters/listen/access.ts';
import type { ScopeHolder, ScopeInUse } from '../actors/ports/journal-error.ts';
import { createGuard, type Guard, type Verdict, type Visit } from '../adapters/listen/guard.ts';
import {
  isServedHost,
  isServedOrigin,
  readText,
  refusal,
  urlOf,
  webHeaders,
  webHandlers,
} from '../adapters/listen/web-requests.ts';
import {
  readPostedFrames,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  valueOfJson,
  type HelloFrame,
  type Position,
  PROTOCOL_VERSION,
} from '../client/protocol.ts';
import { CapacityError, codeOf, ConfigurationError, messageOf } from '../values/errors.ts';
import { shown } from '../values/plain-checks.ts';
import {
  checkedIdentity,
  checkedServe,
  type CheckedServe,
  type ServedIdentity,
  type ServedSession,
  type ServeOptions,
} from './options.ts';
import { ServedClient, type Channel, type ClientOwner } from './served-client.ts';
import { SessionHub } from './session-hub.ts';
import { openStream } from './stream-channel.ts';

export interface OffstageServer {
  /** The number of connected clients, and of sessions that are kept for them. */
  readonly size: { readonly clients: number; readonly sessions: number };
  /**
   * Answers a request of a client that has no WebSocket: for Hono, Next.js and other hosts of web requests.
   * Never rejects.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /** As `fetch`, for `node:http`, Express, Fastify and Koa. `next` is called for another path; without it, that is a 404. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /**
   * Answers the event `upgrade` of a server; needs the package `ws`. False for another path: the socket is
   * left to the other listeners, of which one must answer it.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
  /** Ends all connections, whose clients may connect again. Resolves when the sockets are closed. */
  close(): Promise<void>;
}

/**
 * Serves sessions to clients of `offstage/client`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function serve<S extends ServedSession>(options: ServeOptions<S>): OffstageServer {
  return new Server(checkedServe(options));
}

/** Time for the last frames to leave before the sockets are closed. */
const CLOSE_GRACE_MS = 1_000;
const MAX_TOKEN_CHARS = 8_192;

class Server implements OffstageServer, ClientOwner {
  readonly fetch: OffstageServer['fetch'];
  readonly handle: OffstageServer['handle'];
  readonly environment;
  readonly limits;
  readonly #options: CheckedServe<ServedSession>;
  readonly #guard: Promise<Guard>;
  readonly #clients = new Set<ServedClient>();
  /** The clients of streams, by their name: the receivers of POSTs. */
  readonly #streams = new Map<string, ServedClient>();
  readonly #hubs = new Map<string, Promise<SessionHub>>();
  #closed: Promise<void> | null = null;

  constructor(options: CheckedServe<ServedSession>) {
    this.#options = options;
    this.environment = options.environment;
    this.limits = options.limits;
    this.#guard = createGuard({
      name: 'serve',
      environment: options.environment,
      maxClients: options.limits.clients,
      isHost: (host) => isServedHost(host, options),
      isOrigin: (origin) => isServedOrigin(origin, options),
      onError: (error) => options.onError(error, 'serve: upgrade'),
      webSocket: {
        maxMessageBytes: options.limits.maxMessageBytes,
        subprotocol: SUBPROTOCOL,
        keepAliveMs: options.limits.aliveMs,
        upgrade: (visit) => this.#verdict(visit),
      },
    });
    const { fetch, handle } = webHandlers({
      name: 'serve',
      path: options.path,
      reachable: options,
      methods: ['GET', 'POST'],
      scheduler: options.environment.scheduler,
      maxBytes: options.limits.maxMessageBytes,
      answer: (request, url) => this.#answer(request, url),
      onError: options.onError,
    });
    this.fetch = fetch;
    this.handle = handle;
    // Without `ws` there are streams: `upgrade` says so.
    this.#guard.catch(() => undefined);
  }

  get size(): OffstageServer['size'] {
    return { clients: this.#clients.size, sessions: this.#hubs.size };
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): boolean => {
    const path = targetOf(request?.url)?.path;
    if (path !== this.#options.path) return false;
    // A socket that breaks while the client is authorized has no other listener.
    socket.on('error', () => socket.destroy());
    this.#guard.then(
      (guard) => void guard.upgrade(request, socket, head),
      (error: unknown) => {
        this.#options.onError(error, 'serve: upgrade');
        socket.end(
          'HTTP/1.1 501 Not Implemented\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
        );
      },
    );
    return true;
  };

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  // The clients' owner

  greeted(client: ServedClient, hello: HelloFrame): void {
    if (hello.v !== PROTOCOL_VERSION) {
      const message = `Expected version ${PROTOCOL_VERSION} of the protocol, got ${hello.v}`;
      return client.bye('PROTOCOL_VERSION', message);
    }
    this.#join(client, hello)
      .catch((error: unknown) => this.#elsewhere(client, error))
      .catch((error: unknown) => {
        if (codeOf(error) === 'SESSION_CLOSED')
          return client.bye('SESSION_ENDED', 'The session has ended');
        this.#options.onError(error, `serve: opening ${client.identity.sessionId}`);
        client.bye('SESSION_UNAVAILABLE', 'The session could not be opened', { retry: true });
      });
  }

  gone(client: ServedClient): void {
    this.#clients.delete(client);
    const { clientId } = client;
    if (clientId !== null && this.#streams.get(clientId) === client) this.#streams.delete(clientId);
  }

  cutOff({ identity }: ServedClient, code: string, message: string): void {
    const { user, sessionId } = identity;
    this.#options.onError(
      new CapacityError('CLIENT_CUT_OFF', `${code}: ${message}`),
      `serve: client of ${user} in ${sessionId}`,
    );
  }

  // Who may connect

  async #verdict({ request, target }: Visit): Promise<Verdict> {
    const { headers } = request;
    if (!offeredProtocols(headers).includes(SUBPROTOCOL))
      return refuse(400, `Expected the subprotocol ${SUBPROTOCOL}`);
    if (this.#closed) return refuse(503, 'The server is closing');
    const identity = await this.#identify({
      token: tokenOf(protocolToken(headers, TOKEN_PREFIX)) ?? bearerToken(headers),
      sessionId: target.query.get('session'),
      headers: webHeaders(headers),
      url: urlOf(request),
      transport: 'websocket',
    });
    if (!identity)
      // A page is not told the status of an upgrade that fails.
      return {
        type: 'expel',
        tell: (socket) => {
          socket.send(JSON.stringify(unauthorized));
          socket.close(1008, unauthorized.code);
        },
      };
    return { type: 'open', open: (socket) => this.#opened(socket, identity) };
  }

  async #identify(
    request: Parameters<ServeOptions['authorize']>[0],
  ): Promise<ServedIdentity | null> {
    return checkedIdentity(await this.#options.authorize(request));
  }

  #opened(socket: WebSocket, identity: ServedIdentity): void {
    const client = new ServedClient(new SocketChannel(socket), identity, this);
    this.#clients.add(client);
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      // A server without `binaryType` gets Buffers.
      if (isBinary) client.receivedSound(data);
      else client.received(data.toString('utf8'));
    });
    socket.on('close', () => client.left());
  }

  // Web requests

  async #answer(request: Request, url: URL): Promise<Response> {
    if (this.#closed) return refusal(503, 'The server is closing');
    const identity = await this.#identify({
      token: bearerToken({ authorization: request.headers.get('authorization') ?? '' }),
      sessionId: url.searchParams.get('session'),
      headers: request.headers,
      url,
      transport: 'stream',
    });
    if (!identity) return refusal(401, unauthorized.message);
    return request.method === 'GET'
      ? this.#stream(request, url, identity)
      : this.#posted(request, identity);
  }

  #stream(request: Request, url: URL, identity: ServedIdentity): Response {
    if (this.#clients.size >= this.limits.clients)
      return refusal(503, `At most ${this.limits.clients} clients are served at once`);
    const { response, channel, whenClosed } = openStream(this.limits.maxUnsentBytes);
    const client = new ServedClient(channel, identity, this);
    this.#clients.add(client);
    whenClosed(() => client.left());
    request.signal.addEventListener('abort', () => client.left(), { once: true });
    const name = url.searchParams.get('client');
    client.receivedFrame({
      type: 'hello',
      v: Number(url.searchParams.get('v')),
      client: name ?? '',
      ...afterOf(url.searchParams),
    });
    if (name && !client.isGone) this.#streams.set(name, client);
    return response;
  }

  async #posted(request: Request, identity: ServedIdentity): Promise<Response> {
    if (!(request.headers.get('content-type') ?? '').startsWith('application/json'))
      return refusal(415, 'Expected content-type application/json');
    const text = await readText(request, this.limits.maxMessageBytes);
    if (text === null) return refusal(413, `Expected at most ${this.limits.maxMessageBytes} bytes`);
    const posted = readPostedFrames(valueOfJson(text));
    if (typeof posted === 'string') return refusal(400, `Expected frames: ${posted}`);
    const client = this.#streams.get(posted.client);
    const isOwn =
      client?.identity.user === identity.user && client.identity.sessionId === identity.sessionId;
    if (!client || !isOwn) return refusal(409, 'Expected an open stream of this client');
    for (const frame of posted.frames) client.receivedFrame(frame);
    return new Response(null, { status: 202 });
  }

  // Sessions

  async #join(client: ServedClient, hello: HelloFrame): Promise<void> {
    const { sessionId } = client.identity;
    const url = await this.#located(sessionId, null);
    if (client.isGone) return;
    if (url !== null) return moved(client, url);
    const hub = await this.#hub(sessionId);
    if (client.isGone) return;
    if (hub) hub.add(client, hello);
    else client.bye('SESSION_UNKNOWN', 'There is no such session');
  }

  /** Sends a client to the process that has the session. @throws the same error, if it says something else. */
  async #elsewhere(client: ServedClient, error: unknown): Promise<void> {
    if (codeOf(error) !== 'SCOPE_IN_USE') throw error;
    const { sessionId } = client.identity;
    const { holder = null } = error as Partial<ScopeInUse>;
    const url = holder && (await this.#located(sessionId, holder));
    if (client.isGone) return;
    if (url !== null) return moved(client, url);
    this.#options.onError(error, `serve: opening ${sessionId}`);
    client.bye('SESSION_ELSEWHERE', 'Another process has the session', { retry: true });
  }

  /** @throws {ConfigurationError} `INVALID_ADDRESS` */
  async #located(sessionId: string, holder: ScopeHolder | null): Promise<string | null> {
    const url: unknown = (await this.#options.locate?.(sessionId, holder)) ?? null;
    if (url === null || (typeof url === 'string' && isAddress(url))) return url;
    throw new ConfigurationError(
      'INVALID_ADDRESS',
      `serve: expected \`locate\` to return an address of http:, https:, ws: or wss:, or null, got ${shown(url)}`,
    );
  }

  /** Returns the hub of a session; null if there is no such session. */
  async #hub(sessionId: string): Promise<SessionHub | null> {
    const known = await this.#hubs.get(sessionId)?.catch(() => null);
    if (known && !known.isOver) return known;
    // Another client may have opened it meanwhile.
    const opening = this.#hubs.get(sessionId) ?? this.#open(sessionId);
    return opening.catch((error: unknown) => {
      if (codeOf(error) === 'SESSION_UNKNOWN') return null;
      throw error;
    });
  }

  #open(sessionId: string): Promise<SessionHub> {
    const opening = this.#opening(sessionId).catch((error: unknown) => {
      if (this.#hubs.get(sessionId) === opening) this.#hubs.delete(sessionId);
      throw error;
    });
    this.#hubs.set(sessionId, opening);
    return opening;
  }

  async #opening(sessionId: string): Promise<SessionHub> {
    const { pool, session: find } = this.#options;
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const opened = async (session: ServedSession): Promise<SessionHub> => {
      const hub = new SessionHub(session, this.#options, () => {
        this.#hubs.delete(sessionId);
        end();
      });
      try {
        await hub.open();
        return hub;
      } catch (error) {
        hub.close('SESSION_UNAVAILABLE', messageOf(error), true);
        throw error;
      }
    };
    if (find) {
      const session = await find(sessionId);
      if (session) return opened(session);
      throw new ConfigurationError('SESSION_UNKNOWN', `There is no session "${sessionId}"`);
    }
    return new Promise((resolve, reject) => {
      // The pool keeps the session awake until the hub ends.
      void pool
        ?.use(sessionId, async (session) => {
          resolve(await opened(session));
          await over;
        })
        .catch(reject);
    });
  }

  async #close(): Promise<void> {
    for (const client of this.#clients)
      client.bye('SERVER_CLOSING', 'The server is closing', { retry: true });
    for (const opening of this.#hubs.values()) {
      const hub = await opening.catch(() => null);
      hub?.close('SERVER_CLOSING', 'The server is closing', true);
    }
    const guard = await this.#guard.catch(() => null);
    await guard?.close({ graceMs: CLOSE_GRACE_MS });
  }
}

class SocketChannel implements Channel {
  readonly kind = 'websocket';
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }

  text(data: Buffer): void {
    this.#socket.send(data, { binary: false });
  }

  sound(packet: Uint8Array): void {
    this.#socket.send(packet);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cut(code: number, reason: string): void {
    // `ws` ends the socket soon after, whether the client reads the reason or not.
    this.#socket.close(code, reason);
  }
}

function isAddress(url: string): boolean {
  return /^(?:http|ws)s?:$/.test(URL.parse(url)?.protocol ?? '');
}

function moved(client: ServedClient, url: string): void {
  client.bye('MOVED', 'Another node has the session', { retry: true, url });
}

const unauthorized = {
  type: 'bye',
  code: 'UNAUTHORIZED',
  message: 'The server does not know this client',
  retry: false,
} as const;

function refuse(status: number, message: string): Verdict {
  return { type: 'refuse', refusal: { status, message } };
}

/** Returns the token of a subprotocol, which is in base64url; null if it is none. */
function tokenOf(encoded: string | null): string | null {
  if (encoded === null || encoded.length > MAX_TOKEN_CHARS) return null;
  const token = Buffer.from(encoded, 'base64url').toString('utf8');
  return token === '' ? null : token;
}

function afterOf(query: URLSearchParams): { readonly after?: Position } {
  const epoch = query.get('epoch');
  const seq = Number(query.get('seq') ?? Number.NaN);
  return epoch !== null && epoch !== '' && Number.isSafeInteger(seq) && seq >= 0
    ? { after: { epoch, seq } }
    : {};
}
