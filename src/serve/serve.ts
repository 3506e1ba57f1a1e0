// Serves sessions to pages and programs over the network: one handler for `node:http`, Express, Hono and Next.js,
// behind a guard that all listeners share.
//
//   upgrade ─▶ guard ─▶ authorize ─┐                    ┌─▶ locate: another node
//                                  ├─▶ client ─▶ hello ─┤
//   fetch ───▶ host, origin ─▶ authorize                └─▶ hub of the session ─▶ whole state, frames
//
// Owns:     the sockets, and the sessions' hubs.
// Does not: track clients (`connected-clients.ts`), execute commands (`session-hub.ts`), store sessions (the pool does)
//           or listen (the app does).
//
// Invariants
//   SERVE-3. `serve` ignores upgrades and requests for other paths.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { targetOf } from '../adapters/listen/access.ts';
import type { ScopeHolder, ScopeInUse } from '../actors/ports/journal-error.ts';
import { createGuard, type Guard, type Verdict, type Visit } from '../adapters/listen/guard.ts';
import {
  urlOf,
  webHeaders,
  type MountedRequest,
  type WebHandlers,
} from '../adapters/listen/web-requests.ts';
import { SUBPROTOCOL, type HelloFrame } from '../client/protocol.ts';
import { codeOf, ConfigurationError, messageOf } from '../values/errors.ts';
import { shown } from '../values/plain-checks.ts';
import { answerPage } from './answer-page.ts';
import { ConnectedClients } from './connected-clients.ts';
import {
  checkedServe,
  type CheckedServe,
  type ServedIdentity,
  type ServedSession,
  type ServeOptions,
} from './options.ts';
import type { Channel, FrameText, ServedClient } from './served-client.ts';
import { SessionHub } from './session-hub.ts';

/** The handler for clients that `serve` returns. */
export interface OffstageServer {
  /** The number of connected clients, and the number of sessions in use for them. */
  readonly size: { readonly clients: number; readonly sessions: number };
  /**
   * Handles a client's request that is not a WebSocket, for Hono, Next.js and other frameworks with web requests. Never
   * rejects.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /**
   * Like `fetch`, for `node:http`, Express, Fastify and Koa. For any other path, calls `next`, or responds with 404 if
   * there is no `next`.
   */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
  /**
   * Handles the `upgrade` event of a server. Requires the package `ws`. Returns false for any other path. Another
   * listener must then handle that upgrade.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;
  /** Closes all connections. Clients may reconnect. Resolves when the sockets are closed. */
  close(): Promise<void>;
}

/**
 * Serves sessions to clients that use `offstage/client`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function serve<S extends ServedSession>(options: ServeOptions<S>): OffstageServer {
  return new Server(checkedServe(options));
}

/** The error codes of a pool that is shutting down. */
const LEAVING: ReadonlySet<unknown> = new Set(['POOL_DRAINING', 'POOL_CLOSED']);

/** The time allowed for the last frames before the sockets are closed. */
const CLOSE_GRACE_MS = 1_000;

class Server implements OffstageServer {
  readonly fetch: OffstageServer['fetch'];
  readonly handle: OffstageServer['handle'];
  readonly #options: CheckedServe & ServeOptions;
  readonly #guard: Promise<Guard>;
  readonly #connected: ConnectedClients;
  readonly #hubs = new Map<string, Promise<SessionHub>>();
  /** The hubs of the pool's sessions. Each has a promise that settles when its session is back in the pool. */
  readonly #uses = new Map<SessionHub, Promise<void>>();
  #closed: Promise<void> | null = null;

  constructor(options: CheckedServe & ServeOptions) {
    this.#options = options;
    const { limits, environment } = options;
    this.#guard = createGuard({
      name: 'serve',
      environment,
      maxClients: limits.clients,
      // The verdict checks Host and Origin. It refuses over an open socket, so that the page learns the reason.
      isHost: () => true,
      isOrigin: () => true,
      onError: (error) => options.onError(error, 'serve: upgrade'),
      webSocket: {
        maxMessageBytes: limits.maxMessageBytes,
        subprotocol: SUBPROTOCOL,
        keepAliveMs: limits.aliveMs,
        upgrade: (visit) => this.#verdict(visit),
      },
    });
    this.#connected = new ConnectedClients(options, {
      name: 'serve',
      reachable: options,
      greeted: (client, hello) => this.#greeted(client, hello),
    });
    const { web } = this.#connected;
    const { links } = options;
    const page = links ? answerPage(links, options, this.#answered) : web;
    const handlersOf = (path: string | undefined): WebHandlers =>
      path === links?.url.pathname ? page : web;
    this.fetch = (request) => handlersOf(URL.parse(request.url)?.pathname).fetch(request);
    this.handle = (request, response, next) => {
      const { originalUrl = request.url }: MountedRequest = request;
      handlersOf(targetOf(originalUrl)?.path).handle(request, response, next);
    };
    // Without `ws`, only streams work, and `upgrade` responds with 501.
    this.#guard.catch(() => undefined);
  }

  get size(): OffstageServer['size'] {
    return { clients: this.#connected.clients.size, sessions: this.#hubs.size };
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): boolean => {
    const path = targetOf(request?.url)?.path;
    if (path !== this.#options.path) return false;
    // While the client is being authorized, no other listener handles a socket error.
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

  /** The sessions of the page on which a person answers from a link. */
  readonly #answered: Parameters<typeof answerPage>[2] = {
    question: async (sessionId, requestId) => {
      const { pool } = this.#options;
      const awake = pool ? pool.awake(sessionId)?.store.getSnapshot().context : undefined;
      const questions = pool
        ? [...(awake?.questions ?? []), ...(await pool.questions(sessionId, { answered: true }))]
        : (await this.#hub(sessionId))?.questions;
      return questions?.find((question) => question.requestId === requestId);
    },
    answer: async ({ sessionId, requestId, person }, answer) => {
      const hub = await this.#hub(sessionId);
      return hub
        ? hub.answerOpen(requestId, answer, person)
        : [{ accepted: false, reason: 'unknown' }, undefined];
    },
  };

  async #verdict({ request, target }: Visit): Promise<Verdict> {
    const { host = '', origin = null } = request.headers;
    const admission =
      this.#connected.unserved(host, origin) ??
      (target.authority === null ? null : this.#connected.unserved(target.authority, origin)) ??
      (await this.#connected.admit(webHeaders(request.headers), urlOf(request)));
    if (admission.type === 'refuse') return { type: 'refuse', refusal: admission };
    if (admission.type === 'open')
      return { type: 'open', open: (socket) => this.#opened(socket, admission.identity) };
    return {
      type: 'expel',
      tell: (socket) => {
        socket.send(JSON.stringify(admission.bye));
        socket.close(1008, admission.bye.code);
      },
    };
  }

  #opened(socket: WebSocket, identity: ServedIdentity): void {
    const client = this.#connected.opened(new SocketChannel(socket), identity);
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      // `binaryType` is not set, so `ws` delivers Buffers.
      if (isBinary) client.receivedSound(data);
      else client.received(data.toString('utf8'));
    });
    socket.on('close', () => client.left());
  }

  #greeted(client: ServedClient, hello: HelloFrame): void {
    this.#join(client, hello)
      .catch((error: unknown) => this.#elsewhere(client, error))
      .catch((error: unknown) => {
        if (codeOf(error) === 'SESSION_CLOSED')
          return client.bye('SESSION_ENDED', 'The session has ended');
        if (codeOf(error) === 'POOL_FULL') {
          this.#options.onError(error, `serve: opening ${client.identity.sessionId}`);
          return client.bye('OVERLOADED', 'The server has no room at present', { retry: true });
        }
        // During a deployment, the client reconnects to another process.
        if (LEAVING.has(codeOf(error)))
          return client.bye('SERVER_CLOSING', 'The server is closing', { retry: true });
        this.#options.onError(error, `serve: opening ${client.identity.sessionId}`);
        client.bye('SESSION_UNAVAILABLE', 'The session could not be opened', { retry: true });
      });
  }

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

  /** Redirects a client to the process that holds the session. @throws all other errors, unchanged */
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

  /** Returns the hub of a session, or null if there is no such session. */
  async #hub(sessionId: string): Promise<SessionHub | null> {
    const known = await this.#hubs.get(sessionId)?.catch(() => null);
    if (known && !known.isOver) return known;
    // In the meantime, another client may have opened the hub.
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
    const { session: find } = this.#options;
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const opened = async (session: ServedSession): Promise<SessionHub> => {
      const hub = new SessionHub(session, this.#options, {
        ended: () => {
          this.#hubs.delete(sessionId);
          end();
        },
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
      void this.#use(sessionId, async (session, draining, leaves) => {
        const hub = await opened(session);
        this.#uses.set(hub, leaves);
        resolve(hub);
        // Before a deployment, the hub finishes its current work. Its clients then reconnect to another process.
        const leave = (): void => void hub.idle().then(() => closing(hub));
        if (draining.aborted) leave();
        else draining.addEventListener('abort', leave);
        await over;
        this.#uses.delete(hub);
        // The signal lives as long as the pool. A listener that stays attached would keep the hub and its session in
        // memory.
        draining.removeEventListener('abort', leave);
      }).catch(reject);
    });
  }

  /**
   * Uses a session from the pool. The pool keeps the session awake until the hub ends. If the pool is full, hubs
   * without clients are ended first.
   */
  async #use(
    sessionId: string,
    use: (session: ServedSession, draining: AbortSignal, leaves: Promise<void>) => Promise<void>,
  ): Promise<void> {
    for (;;) {
      const { promise: leaves, resolve: left } = Promise.withResolvers<void>();
      try {
        await this.#options.pool?.use(sessionId, (session, draining) =>
          use(session, draining, leaves),
        );
        return;
      } catch (error) {
        const unused = [...this.#uses].find(([hub]) => hub.isUnused);
        if (codeOf(error) !== 'POOL_FULL' || !unused) throw error;
        const [hub, whenLeft] = unused;
        hub.close('IDLE', 'Nobody is connected', true);
        await whenLeft;
      } finally {
        left();
      }
    }
  }

  async #close(): Promise<void> {
    this.#connected.close();
    for (const opening of this.#hubs.values()) {
      const hub = await opening.catch(() => null);
      if (hub) closing(hub);
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

  text({ bytes }: FrameText): void {
    this.#socket.send(bytes, { binary: false });
  }

  sound(packet: Uint8Array): void {
    this.#socket.send(packet);
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cut(code: number, reason: string): void {
    // `ws` closes the socket soon afterwards, even if the client does not read the reason.
    this.#socket.close(code, reason);
  }
}

function closing(hub: SessionHub): void {
  hub.close('SERVER_CLOSING', 'The server is closing', true);
}

function isAddress(url: string): boolean {
  return /^(?:http|ws)s?:$/.test(URL.parse(url)?.protocol ?? '');
}

function moved(client: ServedClient, url: string): void {
  client.bye('MOVED', 'Another node has the session', { retry: true, url });
}
