// The guard of everything that listens: stands between a socket that a stranger opened and
// the code that serves a rightful client.
//
//   connection ─▶ stranger ─▶ request line ─▶ Host ─▶ Origin ─▶ the listener's verdict ─▶ client
//                    │                                                    │
//                    └── deadline, shed for a newcomer, malformed ────────┴─▶ refused, destroyed
//
// A connection is a stranger's until its listener has seen a proof (a key, a token, a
// signature); strangers have places and a deadline of their own and never take one of a client.
// An answered request makes a stranger of its connection again.
//
// Owns:     every socket of its server, from the first byte to the last; the WebSocket
//           handshake; refusals; who is let go at `close`.
// Does not: know keys or paths (the listener's verdict), read bodies (`readBody`), or say what
//           a client may send once it is in.
//
// Invariants
//   GUARD-1. Whatever comes in, in whatever phase, throws nothing and ends no process: each
//            socket, request, response and WebSocket has an `error` listener, and what a listener
//            throws is a 500 and told to `onError`.
//   GUARD-2. A refused socket is destroyed, also when its client sends on or never closes.
//   GUARD-3. Nobody without a proof keeps a socket longer than `strangerTimeoutMs`, and at most
//            `maxStrangers` of them have one; a newcomer displaces the oldest of the address that
//            has most.
//   GUARD-4. `maxClients` counts those with a proof only.
//   GUARD-5. Nothing is served under a foreign `Host` (DNS rebinding), in whatever form it is sent,
//            or to a web page that `isOrigin` does not know. Programs send no `Origin`.
//   GUARD-6. After `close` no socket is open, half-open ones included.

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
import { createKeepAlive } from '../socket/keep-alive.ts';
import { targetOf, type Target } from './access.ts';
import { StrangerPlaces } from './stranger-places.ts';

/** Why somebody is not let in, as HTTP says it. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** A request whose target, Host and Origin are in order. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly target: Target;
  /** The local port that it came to. */
  readonly port: number;
}

/** A request that is to be answered. */
export interface RequestVisit extends Visit {
  readonly response: ServerResponse;
  /**
   * The request has a proof: until it is answered its connection is a client's. Called without one, it
   * keeps the stranger's deadline.
   */
  admit(): void;
}

/** The decision on an upgrade. */
export type Verdict =
  /** It has a proof. Called with the open WebSocket. */
  | { readonly type: 'open'; readonly open: (client: WebSocket) => void }
  | { readonly type: 'refuse'; readonly refusal: Refusal }
  /** It has none, and is told so on an open WebSocket, as some protocols want it; then it is ended. */
  | { readonly type: 'expel'; readonly tell: (client: WebSocket) => void }
  /** It is never answered, and ended when its time is over. */
  | { readonly type: 'ignore' };

export interface WebSocketOptions {
  /** Of one message of a client. */
  readonly maxMessageBytes: number;
  /** The subprotocol to answer with, if it was offered. @defaultValue none */
  readonly subprotocol?: string;
  /** A client that does not answer a ping within this time is gone. @defaultValue no pings */
  readonly keepAliveMs?: number;
  /** May be asynchronous: the client may be gone by then, which is nobody's concern here. */
  readonly upgrade: (visit: Visit) => Verdict | Promise<Verdict>;
}

export interface GuardOptions {
  /** Named in errors. */
  readonly name: string;
  readonly environment: Pick<Environment, 'scheduler'>;
  /** Is this `Host` a name of ours? `() => true` where a proxy in front checks it. */
  readonly isHost: (host: string, port: number) => boolean;
  /** May a page of this origin connect? */
  readonly isOrigin: (origin: string, port: number) => boolean;
  /** Answers requests. May reject: that is a 500. @defaultValue 404 */
  readonly request?: (visit: RequestVisit) => void | Promise<void>;
  /** WebSockets; needs `ws`. @defaultValue none: an upgrade is a 404 */
  readonly webSocket?: WebSocketOptions;
  /** Clients at once, in WebSockets. @defaultValue 64 */
  readonly maxClients?: number;
  /** Connections without a proof at once. @defaultValue 64 */
  readonly maxStrangers?: number;
  /** From the connection, or the answer to the request before, to the proof. @defaultValue 10000 */
  readonly strangerTimeoutMs?: number;
  /** PEM texts; with them it speaks TLS. @defaultValue none */
  readonly tls?: { readonly key: string; readonly cert: string } | null;
  /** Learns of mistakes of the listener, and of what the system refuses (descriptors). @defaultValue nobody */
  readonly onError?: (error: unknown) => void;
}

/** A refused client has so long to read why. */
const LINGER_MS = 1_000;
/** `ws` gives a client so long to answer a closing handshake. */
const CLOSE_TIMEOUT_MS = 2_000;
/** Those who are told that they have no proof need to say nothing. */
const MAX_EXPELLED_MESSAGE_BYTES = 1_024;
/** Longer than the headers of any client. */
const MAX_HEADER_BYTES = 16_384;
const GOING_AWAY = 1001;
const defaults = { maxClients: 64, maxStrangers: 64, strangerTimeoutMs: 10_000 };

/** A socket, and whose it is. */
interface Connection {
  readonly socket: Duplex;
  readonly address: string;
  /** Ends its time as a stranger's. */
  endStay: () => void;
  isClient: boolean;
  /** HTTP has let go of it. */
  isUpgraded: boolean;
}

/**
 * Makes a guard. `listen` gives it a server of its own; `upgrade` takes those of another server.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` when `ws` is needed and not installed.
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
  readonly #strangers: StrangerPlaces;
  readonly #connections = new Map<Duplex, Connection>();
  /** The WebSockets of clients. */
  readonly #sockets = new Set<WebSocket>();
  /** Of clients; null: no WebSockets here. */
  readonly #webSockets: WebSocketServer | null;
  /** Of those who are told that they may not be one. */
  readonly #expelled: WebSocketServer | null;
  #server: Server | null = null;
  #whenEmpty: () => void = ignore;
  #clients = 0;
  #closed: Promise<void> | null = null;

  constructor(options: GuardOptions, WebSocketServerClass: typeof WebSocketServer | null) {
    this.#options = { ...defaults, ...options };
    this.#strangers = new StrangerPlaces(this.#options.maxStrangers);
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

  /** Sockets that are open now, and those of clients among them. */
  get size(): { readonly connections: number; readonly clients: number } {
    return { connections: this.#connections.size, clients: this.#clients };
  }

  /**
   * Listens with a server of its own; 0 is any port that is free. Rejects with the error of the system,
   * and may then be called again.
   * @returns where it listens
   * @throws {ConfigurationError} `INVALID_OPTION` for `tls` that is no key and certificate.
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
    // Of a system that is out of descriptors, for example: no reason to end.
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
      // A body that nobody read would be taken for the next request, as long as it lasts.
      if (request.complete) this.#makeStranger(connection);
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
   * Takes an upgrade; also of a server that is not its own. Whatever was sent, it does not reject.
   * @throws {ConfigurationError} `INVALID_ARGUMENT` for what is no upgrade
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
      // Meanwhile it may have gone, or run out of time, or the guard was closed.
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
   * Closes the port and every connection. WebSockets are told, and have `graceMs` to take what was sent
   * before. Safe to call twice.
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
    else this.#makeStranger(connection);
    return connection;
  }

  /** The same connection under another object: of TLS and of the bytes below it. */
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

  /** Begins (again) the time in which a proof has to come. */
  #makeStranger(connection: Connection): void {
    const { strangerTimeoutMs } = this.#options;
    if (connection.isClient) this.#clients -= 1;
    connection.isClient = false;
    this.#stay(connection, strangerTimeoutMs);
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
    const release = this.#strangers.take(address, end);
    const cancel = this.#options.environment.scheduler.schedule(end, timeoutMs, {
      isBackground: true,
    });
    connection.endStay = () => {
      release();
      cancel();
    };
  }

  /** The request line and the headers that say who is asked, and by which page. */
  #visitOf(request: IncomingMessage): Visit | Refusal {
    const target = targetOf(request.url);
    if (!target) return { status: 400, message: 'Expected a path' };
    const { host, origin } = request.headers;
    const port = request.socket.localPort ?? 0;
    const { isHost, isOrigin } = this.#options;
    const isOurs = [host ?? '', target.authority ?? host ?? ''].every((name) => isHost(name, port));
    if (!isOurs) return { status: 403, message: 'Expected a Host that is served here' };
    if (origin !== undefined && !isOrigin(origin, port))
      return { status: 403, message: 'Expected an Origin that may connect' };
    return { request, target, port };
  }

  /** Refuses a connection whose bytes are no HTTP. */
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

  /** Gives the client time to read what was written; then destroys the socket, whatever the client does. */
  #letGo(connection: Connection): void {
    const { socket } = connection;
    if (connection.isClient) this.#makeStranger(connection);
    this.#stay(connection, LINGER_MS);
    // Reading on keeps the answer from being lost in a reset, and shows when the client has left.
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
      // Of a frame that is too long or malformed: `ws` says goodbye, and the client has so long to answer.
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
  // For events that another one follows which says it all.
}

function bodyOf({ message }: Refusal): string {
  return `${JSON.stringify({ error: { message } })}\n`;
}

/** A whole answer, for a socket that HTTP has let go of. */
function textOf(refusal: Refusal): string {
  const body = bodyOf(refusal);
  const { status } = refusal;
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\nconnection: close\r\n` +
    'content-type: application/json; charset=utf-8\r\n' +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

/** Answers a request that is not served. */
export function answerRefusal(response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) return;
  response
    .writeHead(refusal.status, {
      'content-type': 'application/json; charset=utf-8',
      // The unread rest of a request must not hold up the next one.
      connection: 'close',
    })
    .end(bodyOf(refusal));
}
