// A server on this machine that lets inspectors watch: a page with the Stately
// Inspector, and a WebSocket that any receiver of `@statelyai/inspect` can read.
//
// Owns:     the listening socket and who may connect to it.
// Does not: keep anything that was sent; a late viewer is told by the stream.
//
// Invariants
//   Y1. It listens on 127.0.0.1 only, and answers only under its own names (another
//       name means that somebody's DNS points here).
//   Y2. The stream needs the token. A browser also says where it is from: only the
//       relay's own page and `allowedOrigins` may read. Programs send no origin.
//   Y3. Viewers only listen: what they send is not read, and may not be long.

import { createHash, timingSafeEqual } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Environment } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../errors.ts';
import { loadPeer } from './peer.ts';
import { relayPage, relayStyle } from './relay-page.ts';
import type { InspectionStream } from './stream.ts';

export interface RelayTarget {
  /** A server of our own on 127.0.0.1. Needs `ws`. */
  readonly mode: 'relay';
  /** @defaultValue 0: a free one */
  readonly port?: number;
  /** What a viewer must know. @defaultValue a new one from `environment.ids` */
  readonly token?: string;
  /** The inspector that the page shows. @defaultValue 'https://stately.ai/inspect' */
  readonly inspectorUrl?: string;
  /** Other web pages that may read the stream, if they know the token. @defaultValue none */
  readonly allowedOrigins?: readonly string[];
}

export interface Relay {
  /** The page to open in a browser; the token is in its fragment. */
  readonly url: string;
  /** For `createWebSocketReceiver({ server })`; the token is in its query. */
  readonly streamUrl: string;
  /** Resolves when the port is free. What was sent before has left. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
const STREAM_PATH = '/stream';
const DEFAULT_INSPECTOR_URL = 'https://stately.ai/inspect';
const MAX_VIEWERS = 16;
const MAX_VIEWER_MESSAGE_BYTES = 1_024;
const MAX_BUFFERED_BYTES = 1_048_576;
const CLOSE_TIMEOUT_MS = 1_000;
const GOING_AWAY = 1001;

/**
 * @throws {ConfigurationError} `MISSING_DEPENDENCY` without `ws`; `CANNOT_LISTEN` when the port is taken.
 */
export async function startRelay(
  stream: InspectionStream,
  environment: Environment,
  target: RelayTarget,
): Promise<Relay> {
  const { WebSocketServer } = await loadPeer('ws', () => import('ws'));
  const { ids, scheduler } = environment;
  const token = target.token ?? `${ids.next('see')}${ids.next('')}`;
  const server = createServer();
  const port = await listen(server, target.port ?? 0);
  const hosts = [`${HOST}:${port}`, `localhost:${port}`];
  const origins = [...hosts.map((host) => `http://${host}`), ...(target.allowedOrigins ?? [])];

  server.on('request', pageHandler(target.inspectorUrl ?? DEFAULT_INSPECTOR_URL, hosts));

  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_VIEWER_MESSAGE_BYTES });
  server.on('upgrade', (request, socket, head) => {
    const refusal = refusalOf(request, { hosts, origins, token });
    if (refusal) refuse(socket, refusal);
    else if (sockets.clients.size >= MAX_VIEWERS) refuse(socket, '503 Service Unavailable');
    else
      sockets.handleUpgrade(request, socket, head, (viewer) => {
        const detach = stream.attach({
          isReady: () => viewer.bufferedAmount < MAX_BUFFERED_BYTES,
          send: ({ text }) => viewer.send(text),
        });
        // A broken connection is a viewer that has gone.
        viewer.on('error', () => {});
        viewer.on('close', detach);
      });
  });

  return {
    url: `http://${HOST}:${port}/#token=${encodeURIComponent(token)}`,
    streamUrl: `ws://${HOST}:${port}${STREAM_PATH}?token=${encodeURIComponent(token)}`,
    stop: () =>
      new Promise((resolve) => {
        for (const viewer of sockets.clients) viewer.close(GOING_AWAY);
        const cancel = scheduler.schedule(() => {
          for (const viewer of sockets.clients) viewer.terminate();
        }, CLOSE_TIMEOUT_MS);
        server.close(() => {
          cancel();
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new ConfigurationError(
          'CANNOT_LISTEN',
          `The relay of the inspector cannot listen on ${HOST}:${port}: ${cause.message}`,
          { cause },
        ),
      ),
    );
    server.listen(port, HOST, () => resolve((server.address() as AddressInfo).port));
  });
}

function pageHandler(inspectorUrl: string, hosts: readonly string[]) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const host = request.headers.host ?? '';
    const headers: OutgoingHttpHeaders = {
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    };
    const answer = (status: number, type: string, body: string): void => {
      response.writeHead(status, { ...headers, 'content-type': `${type}; charset=utf-8` });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    if (!hosts.includes(host)) return answer(403, 'text/plain', 'Unknown host');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return answer(405, 'text/plain', 'Only GET');
    const page = relayPage(inspectorUrl, host);
    headers['content-security-policy'] = page.contentSecurityPolicy;
    switch (pathOf(request)) {
      case '/':
        return answer(200, 'text/html', page.html);
      case '/page.js':
        return answer(200, 'text/javascript', page.script);
      case '/page.css':
        return answer(200, 'text/css', relayStyle);
      default:
        return answer(404, 'text/plain', 'Nothing here');
    }
  };
}

interface Entrance {
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly token: string;
}

/** Why somebody may not read the stream, as an HTTP status; undefined: welcome. */
function refusalOf(
  request: IncomingMessage,
  { hosts, origins, token }: Entrance,
): string | undefined {
  const { host = '', origin } = request.headers;
  if (!hosts.includes(host)) return '403 Forbidden';
  if (origin !== undefined && !origins.includes(origin)) return '403 Forbidden';
  if (pathOf(request) !== STREAM_PATH) return '404 Not Found';
  const given = new URLSearchParams(request.url?.split('?', 2)[1]).get('token') ?? '';
  return isSame(given, token) ? undefined : '401 Unauthorized';
}

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => {});
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '/';
}

/** In a time that says nothing about how much of it is right. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
