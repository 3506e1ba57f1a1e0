// Protects every listening server. The guard handles the sockets of unknown peers before the code for authenticated
// clients runs.
//
//   connection ─▶ unauthenticated ─▶ request line ─▶ Host ─▶ Origin ─▶ the listener's verdict ─▶ client
//                    │                                                    │
//                    └── deadline, displaced by a new peer, malformed ────┴─▶ refused, destroyed
//
// A connection is unauthenticated until its listener has verified a proof (a key, a token, a signature).
// Unauthenticated connections have their own limit and a deadline, and never take the place of a client. After the
// response to a request, its connection is unauthenticated again.
//
// Owns:     every socket of its server, from start to end; the WebSocket handshake; refusals; and the shutdown on
//           `close`.
// Does not: know keys or paths (the listener decides), read bodies (`readBody`), or restrict the messages of authenticated
//           clients.
//
// Invariants
//   GUARD-1. No input, in any phase, causes an exception or ends the process. Each socket, request, response and
//            WebSocket has an `error` listener, and an error of a listener is reported to `onError` and answered with
//            500.
//   GUARD-2. A refused socket is destroyed, even if its client keeps sending or never closes.
//   GUARD-3. An unauthenticated peer can hold a socket for at most `authenticationTimeoutMs`, and at most
//            `maxUnauthenticated` such sockets exist. If there are too many, the oldest socket of the IP address with
//            the most sockets is closed.
//   GUARD-4. `maxClients` counts only authenticated connections.
//   GUARD-5. A request is refused if its `Host` is untrusted in any form (DNS rebinding), or if it comes from a web
//       page that `isOrigin` rejects. Programs do not send `Origin`.
//   GUARD-6. After `close`, no socket is open, not even half-open.

import {
  createServer,
  STATUS_CODES,
  IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError, isA, messageOf, quietly } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { createKeepAlive } from '../socket/keep-alive.ts';
import { targetOf, type Target } from './access.ts';
import { UnauthenticatedPlaces } from './unauthenticated-places.ts';

/** The reason for a refusal, as an HTTP status and message. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** A request with a valid target, Host and Origin. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly target: Target;
  /** The connection's local port. */
  readonly port: number;
}

/** A request that the listener has to answer. */
export interface RequestVisit extends Visit {
  readonly response: ServerResponse;
  /**
   * Records that the request is authenticated. The connection counts as a client's connection until the request has
   * been answered. Without this call, the deadline for unauthenticated connections applies.
   */
  admit(): void;
}

/** The listener's decision about an upgrade. */
export type Verdict =
  /** Authenticated. Called with the open WebSocket. */
  | { readonly type: 'open'; readonly open: (client: WebSocket) => void }
  | { readonly type: 'refuse'; readonly refusal: Refusal }
  /**
   * Not authenticated. The WebSocket is opened only to report this reason, because some protocols require this, and is
   * then closed.
   */
  | { readonly type: 'expel'; readonly tell: (client: WebSocket) => void }
  /** The upgrade remains unanswered, and the connection is closed at the deadline. */
  | { readonly type: 'ignore' };

export interface WebSocketOptions {
  /** The maximum size of a client message, in bytes. */
  readonly maxMessageBytes: number;
  /** The subprotocol to accept, if offered. @defaultValue none */
  readonly subprotocol?: string;
  /** The time within which a client has to answer a ping before it counts as disconnected. @defaultValue no pings */
  readonly keepAliveMs?: number;
  /** Decides on an upgrade. May be asynchronous, because the guard handles clients that disconnect in the meantime. */
  readonly upgrade: (visit: Visit) => Verdict | Promise<Verdict>;
}

export interface GuardOptions {
  /** The server's name in error messages. */
  readonly name: string;
  readonly environment: Pick<Environment, 'scheduler'>;
  /** Returns whether this `Host` is one of the server's names. Use `() => true` if a proxy performs this check. */
  readonly isHost: (host: string, port: number) => boolean;
  /** Returns whether a page from this origin may connect. */
  readonly isOrigin: (origin: string, port: number) => boolean;
  /** Answers requests. A rejection is answered with 500. @defaultValue 404 */
  readonly request?: (visit: RequestVisit) => void | Promise<void>;
  /** Serves the WebSockets; requires `ws`. @defaultValue none: upgrades are answered with 404 */
  readonly webSocket?: WebSocketOptions;
  /** The maximum number of concurrent clients (WebSockets). @defaultValue 64 */
  readonly maxClients?: number;
  /** The maximum number of concurrent unauthenticated connections. @defaultValue 64 */
  readonly maxUnauthenticated?: number;
  /** The time to authenticate after connecting or after the previous response, in milliseconds. @defaultValue 10000 */
  readonly authenticationTimeoutMs?: number;
  /** PEM texts for TLS. @defaultValue none */
  readonly tls?: { readonly key: string; readonly cert: string } | null;
  /** Called with errors from the listener and the system (such as no free file descriptors). @defaultValue none */
  readonly onError?: (error: unknown) => void;
}

/** The time that a refused client has to read the reason. */
const LINGER_MS = 1_000;
/** The time that `ws` gives a client for the closing handshake. */
const CLOSE_TIMEOUT_MS = 2_000;
/** The maximum number of bytes that a refused client may still send. */
const MAX_EXPELLED_MESSAGE_BYTES = 1_024;
/** The maximum size of the headers, which no legitimate client exceeds. */
const MAX_HEADER_BYTES = 16_384;
const GOING_AWAY = 1001;
const defaults = { maxClients: 64, maxUnauthenticated: 64, authenticationTimeoutMs: 10_000 };

/** A socket and its state. */
interface Connection {
  readonly socket: Duplex;
  readonly address: string;
  /** Ends the connection's unauthenticated phase. */
  endStay: () => void;
  isClient: boolean;
  /** Whether the HTTP server has handed over the socket. */
  isUpgraded: boolean;
}

/**
 * Creates a guard. `listen` starts a separate server. `upgrade` handles the upgrades of another server.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` if `ws` is needed but not installed
 */
export async function createGuard(options: GuardOptions): Promise<Guard> {
  if (options.webSocket === undefined) return new Guard(options, null);
  try {
    const ws = await import('ws');
    return new Guard(options, ws.WebSocketServer);
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      `${options.name} needs the package \`ws\`: run \`npm install ws\``,
      { cause },
    );
  }
}

export class Guard {
  readonly #options: GuardOptions & typeof defaults;
  readonly #unauthenticated: UnauthenticatedPlaces;
  readonly #connections = new Map<Duplex, Connection>();
  /** The clients' WebSockets. */
  readonly #sockets = new Set<WebSocket>();
  /** The server for authenticated clients; null if there are no WebSockets. */
  readonly #webSockets: WebSocketServer | null;
  /** The server that sends the reason to refused clients. */
  readonly #expelled: WebSocketServer | null;
  #server: Server | null = null;
  #whenEmpty: () => void = ignore;
  #clients = 0;
  #closed: Promise<void> | null = null;

  constructor(options: GuardOptions, WebSocketServerClass: typeof WebSocketServer | null) {
    this.#options = { ...defaults, ...options };
    this.#unauthenticated = new UnauthenticatedPlaces(this.#options.maxUnauthenticated);
    const { webSocket } = options;
    const serving = (maxPayload: number): WebSocketServer | null =>
      WebSocketServerClass &&
      new WebSocketServerClass({
        noServer: true,
        clientTracking: false,
        maxPayload,
        perMessageDeflate: false,
        closeTimeout: CLOSE_TIMEOUT_MS,
        handleProtocols: (offered) =>
          webSocket?.subprotocol !== undefined && offered.has(webSocket.subprotocol)
            ? webSocket.subprotocol
            : false,
      } as ConstructorParameters<typeof WebSocketServer>[0]);
    this.#webSockets = serving(webSocket?.maxMessageBytes ?? 0);
    this.#expelled = serving(MAX_EXPELLED_MESSAGE_BYTES);
  }

  /** The number of open sockets, and how many of them belong to authenticated clients. */
  get size(): { readonly connections: number; readonly clients: number } {
    return { connections: this.#connections.size, clients: this.#clients };
  }

  /**
   * Listens with a separate server. Port 0 selects any free port. Rejects with the system's error and can then be
   * called again.
   * @returns the address
   * @throws {ConfigurationError} `INVALID_OPTION` if `tls` has no valid key and certificate
   */
  async listen(where: { readonly port: number; readonly host: string }): Promise<AddressInfo> {
    const server = this.#createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(where, () => {
        server.off('error', reject);
        resolve();
      });
    });
    this.#server = server;
    // A system error, such as running out of file descriptors, must not end the process.
    server.on('error', (error) => this.#report(error));
    server.on('connection', (socket) => this.#connected(socket));
    server.on('secureConnection', (socket) => this.#secured(socket));
    server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
      this.#malformed(error, socket),
    );
    server.on('request', (request, response) => void this.#answer(request, response));
    server.on('upgrade', (request, socket, head) => void this.upgrade(request, socket, head));
    return server.address() as AddressInfo;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const connection = this.#connectionOf(socket);
    request.on('error', ignore);
    response.on('error', ignore);
    response.once('close', () => {
      if (socket.destroyed || connection.isUpgraded) return;
      // The unread rest of a body would be parsed as the next request.
      if (request.complete) this.#awaitAuthentication(connection);
      else this.#letGo(connection);
    });
    const visit = this.#visitOf(request);
    if ('status' in visit) return answerRefusal(response, visit);
    const admit = (): void => this.#makeClient(connection);
    try {
      if (!this.#options.request) answerRefusal(response, notFound);
      else await this.#options.request({ ...visit, response, admit });
    } catch (error) {
      this.#report(error);
      if (response.headersSent) response.destroy();
      else answerRefusal(response, internalError);
    }
  }

  /**
   * Handles an upgrade, which may come from another server. Never rejects, whatever the request contains.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` if the request is not an upgrade
   */
  readonly upgrade = async (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): Promise<void> => {
    if (!isA(request, IncomingMessage) || !isA(socket, Duplex))
      throw new ConfigurationError(
        'INVALID_ARGUMENT',
        `${this.#options.name}: expected the arguments of the event \`upgrade\` of a server`,
      );
    const connection = this.#connectionOf(socket);
    connection.isUpgraded = true;
    const visit = this.#visitOf(request);
    if ('status' in visit) return this.#refuse(connection, visit);
    const { webSocket } = this.#options;
    if (!webSocket) return this.#refuse(connection, notFound);
    try {
      const verdict = await webSocket.upgrade(visit);
      // The client may have disconnected or reached its deadline in the meantime, or the guard may have been closed.
      if (!this.#connections.has(socket) || socket.destroyed) return;
      switch (verdict.type) {
        case 'refuse':
          return this.#refuse(connection, verdict.refusal);
        case 'ignore':
          return;
        case 'expel':
          return this.#expel(connection, visit, head, verdict.tell);
        case 'open':
          return this.#open(connection, visit, head, verdict.open);
      }
    } catch (error) {
      this.#report(error);
      this.#refuse(connection, internalError);
    }
  };

  /**
   * Closes the port and all connections. WebSockets are notified and have `graceMs` to receive pending messages. Safe
   * to call twice.
   */
  close({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    const destroyAll = (): void => {
      for (const { socket } of this.#connections.values()) socket.destroy();
    };
    for (const connection of this.#connections.values())
      if (!connection.isClient) connection.socket.destroy();
    for (const client of this.#sockets) client.close(GOING_AWAY, 'The server is closing.');
    if (graceMs === 0 || this.#sockets.size === 0) destroyAll();
    const cancel = this.#options.environment.scheduler.schedule(destroyAll, graceMs);
    const server = this.#server;
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()));
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
      if (this.#connections.size === 0) resolve();
    });
    cancel();
  }

  #createServer(): Server {
    const { tls, name } = this.#options;
    const http = { maxHeaderSize: MAX_HEADER_BYTES };
    if (!tls) return createServer(http);
    try {
      return createTlsServer({ ...http, ...tls });
    } catch (cause) {
      const message = `${name}: expected \`tls\` to be a key and its certificate in PEM: ${messageOf(cause)}`;
      throw new ConfigurationError('INVALID_OPTION', message, { cause });
    }
  }

  #connected(socket: Socket): Connection {
    const connection: Connection = {
      socket,
      address: socket.remoteAddress ?? '',
      endStay: ignore,
      isClient: false,
      isUpgraded: false,
    };
    this.#connections.set(socket, connection);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#connections.delete(socket);
      connection.endStay();
      if (connection.isClient) this.#clients -= 1;
      connection.isClient = false;
      if (this.#connections.size === 0) this.#whenEmpty();
    });
    if (this.#closed) socket.destroy();
    else this.#awaitAuthentication(connection);
    return connection;
  }

  /** Links the TLS socket and the raw socket of a TLS connection. */
  #secured(socket: Socket): void {
    const { remotePort, remoteAddress } = socket;
    for (const [raw, connection] of this.#connections) {
      const below = raw as Socket;
      if (below.remotePort !== remotePort || below.remoteAddress !== remoteAddress) continue;
      connection.endStay();
      break;
    }
    this.#connected(socket);
  }

  #connectionOf(socket: Duplex): Connection {
    return this.#connections.get(socket) ?? this.#connected(socket as Socket);
  }

  /** Starts or restarts the deadline for authentication. */
  #awaitAuthentication(connection: Connection): void {
    const { authenticationTimeoutMs } = this.#options;
    if (connection.isClient) this.#clients -= 1;
    connection.isClient = false;
    this.#stay(connection, authenticationTimeoutMs);
  }

  #makeClient(connection: Connection): void {
    if (connection.isClient || connection.socket.destroyed) return;
    connection.endStay();
    connection.isClient = true;
    this.#clients += 1;
  }

  #stay(connection: Connection, timeoutMs: number): void {
    const { socket, address } = connection;
    connection.endStay();
    const end = (): void => void socket.destroy();
    const release = this.#unauthenticated.take(address, end);
    const cancel = this.#options.environment.scheduler.schedule(end, timeoutMs, {
      isBackground: true,
    });
    connection.endStay = () => {
      release();
      cancel();
    };
  }

  /** Returns the visit that the request line, Host and Origin describe. */
  #visitOf(request: IncomingMessage): Visit | Refusal {
    const target = targetOf(request.url);
    if (!target) return { status: 400, message: 'Expected a path' };
    const { host, origin } = request.headers;
    const port = request.socket.localPort ?? 0;
    const { isHost, isOrigin } = this.#options;
    const isOurs = [host ?? '', target.authority ?? host ?? ''].every((name) => isHost(name, port));
    if (!isOurs)
      return { status: 403, message: `Expected a Host that is served here, got ${shown(host)}` };
    if (origin !== undefined && !isOrigin(origin, port))
      return { status: 403, message: `Expected an Origin that may connect, got ${shown(origin)}` };
    return { request, target, port };
  }

  /** Refuses a connection whose bytes are not HTTP. */
  #malformed(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    const { code = '' } = error;
    const isHttp = code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT';
    if (!connection || !isHttp || !socket.writable) return void socket.destroy();
    const status =
      code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    this.#refuse(connection, { status, message: STATUS_CODES[status] ?? 'Refused' });
  }

  #refuse(connection: Connection, refusal: Refusal): void {
    const { socket } = connection;
    if (socket.destroyed) return;
    if (socket.writable) socket.end(textOf(refusal));
    this.#letGo(connection);
  }

  /** Gives the client time to read the response, and then destroys the socket. */
  #letGo(connection: Connection): void {
    const { socket } = connection;
    if (connection.isClient) this.#awaitAuthentication(connection);
    this.#stay(connection, LINGER_MS);
    // Still reads the socket, so that a reset cannot discard the response and the client's end is detected.
    socket.once('end', () => socket.destroy());
    if (socket.writable) socket.end();
    socket.resume();
  }

  #open(
    connection: Connection,
    { request }: Visit,
    head: Buffer,
    open: (client: WebSocket) => void,
  ): void {
    const { maxClients, webSocket, environment } = this.#options;
    if (this.#sockets.size >= maxClients) {
      const message = `At most ${maxClients} clients are served at once`;
      return this.#refuse(connection, { status: 503, message });
    }
    const { scheduler } = environment;
    this.#webSockets?.handleUpgrade(request, connection.socket, head, (client) => {
      this.#makeClient(connection);
      this.#sockets.add(client);
      const keepAlive = createKeepAlive({
        scheduler,
        intervalMs: webSocket?.keepAliveMs ?? null,
        ping: () => client.ping(),
        onSilence: () => client.terminate(),
      });
      client.on('pong', () => keepAlive.heard());
      // If a frame is too long or malformed, `ws` closes the WebSocket. The client then has this long to respond.
      client.on('error', () => this.#stay(connection, LINGER_MS));
      client.once('close', () => {
        this.#sockets.delete(client);
        keepAlive.stop();
      });
      keepAlive.start();
      this.#told(client, open);
    });
  }

  #expel(
    connection: Connection,
    { request }: Visit,
    head: Buffer,
    tell: (client: WebSocket) => void,
  ): void {
    this.#expelled?.handleUpgrade(request, connection.socket, head, (client) => {
      client.on('error', ignore);
      this.#stay(connection, LINGER_MS);
      this.#told(client, tell);
    });
  }

  #told(client: WebSocket, take: (client: WebSocket) => void): void {
    try {
      take(client);
    } catch (error) {
      this.#report(error);
      client.terminate();
    }
  }

  #report(error: unknown): void {
    quietly(this.#options.onError)(error);
  }
}

const notFound: Refusal = { status: 404, message: 'Nothing is here' };
const internalError: Refusal = { status: 500, message: 'The server made a mistake' };

function ignore(): void {
  // A later event contains more information.
}

function bodyOf({ message }: Refusal): string {
  return `${JSON.stringify({ error: { message } })}\n`;
}

/** Returns a complete HTTP response for a socket that the HTTP server has handed over. */
function textOf(refusal: Refusal): string {
  const body = bodyOf(refusal);
  const { status } = refusal;
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\nconnection: close\r\n` +
    'content-type: application/json; charset=utf-8\r\n' +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** Responds to a refused request. */
export function answerRefusal(response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) return;
  response
    .writeHead(refusal.status, {
      'content-type': 'application/json; charset=utf-8',
      // The unread rest of a request must not block the next request.
      connection: 'close',
    })
    .end(bodyOf(refusal));
}
