// The web server of the demo: the page, its WebSocket `/client`, and the webhook. It
// listens on the loopback interface only.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { ConfigurationError, messageOf } from '../../../src/errors.ts';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import type { World } from '../agents/world.ts';
import type { SessionFace } from '../session-face.ts';
import { SUBPROTOCOL, type About, type Suggestion } from '../shared/protocol.ts';
import { ClientHub } from './client-hub.ts';
import { createGate } from './gate.ts';
import { defaultLimits, type ServerLimits } from './limits.ts';
import { createPageFiles, type PageFiles } from './page-files.ts';
import { TokenBucket } from './token-bucket.ts';
import { handleOrderWebhook } from './webhook.ts';

const HOST = '127.0.0.1';
const PORTS_TO_TRY = 20;

export interface DemoServerOptions {
  readonly session: SessionFace;
  readonly world: World;
  readonly environment: Environment;
  /** The first port to try; the next free one is taken. 0: any. */
  readonly port: number;
  readonly about: About;
  /** Things to try, given the way to call the webhook. */
  readonly suggestions: (webhook: string) => readonly Suggestion[];
  readonly limits?: Partial<ServerLimits>;
  /** Told of what goes wrong and is survived. */
  readonly log?: (line: string) => void;
}

export interface DemoServer {
  readonly port: number;
  /** To be opened in a browser; its fragment holds the token, which so never reaches a log. */
  readonly url: string;
  readonly token: string;
  /** A shell command that calls the webhook. */
  readonly webhook: string;
  /** Resolves when all connections are closed. */
  close(): Promise<void>;
}

/** @throws {ConfigurationError} `NO_FREE_PORT` when none of the ports can be had. */
export async function startDemoServer(options: DemoServerOptions): Promise<DemoServer> {
  const { session, world, environment, about, log = () => undefined } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const files = createPageFiles();
  const webhooks = new TokenBucket(environment.clock, limits.webhooks);
  const gate = createGate(() => port);

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      log(`${request.method} ${request.url}: ${messageOf(error)}`);
      if (!response.headersSent) sendJson(response, 500, { error: 'The demo made a mistake' });
      else response.destroy();
    });
  });
  const port = await listen(server, options.port);
  const webhook = webhookCommand(port, gate.token);
  const hub = new ClientHub({
    session,
    environment,
    limits,
    about,
    suggestions: options.suggestions(webhook),
    log,
  });

  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxMessageBytes,
    perMessageDeflate: false,
    handleProtocols: () => SUBPROTOCOL,
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => undefined);
    if (request.url !== '/client') refuseUpgrade(socket, '404 Not Found');
    else if (!gate.admits(request)) refuseUpgrade(socket, '403 Forbidden');
    else if (hub.size >= limits.maxClients) refuseUpgrade(socket, '503 Service Unavailable');
    else sockets.handleUpgrade(request, socket, head, (opened) => hub.add(opened));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    setSecurityHeaders(response, files, port);
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    if (!gate.isOwn(request)) {
      sendJson(response, 403, { error: 'Expected a request of this page' });
    } else if (path === '/webhook/order') {
      await answerWebhook(request, response);
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      sendJson(response, 405, { error: 'Expected GET' });
    } else if (path === '/token') {
      // The page asks why it was not let in: the link is old, or the server is gone.
      response.writeHead(gate.isAuthorized(request) ? 204 : 401).end();
    } else {
      const file = files.read(path);
      if (!file) sendJson(response, 404, { error: `There is no ${path}` });
      else response.writeHead(200, { 'content-type': file.contentType }).end(file.body);
    }
  }

  async function answerWebhook(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      sendJson(response, 405, { error: 'Expected POST' });
    } else if (!gate.isAuthorized(request)) {
      sendJson(response, 401, { error: 'Expected the header Authorization: Bearer <token>' });
    } else if (!webhooks.take()) {
      sendJson(response, 429, { error: `Expected ${limits.webhooks.perSecond} call a second` });
    } else {
      const maxBytes = limits.maxWebhookBytes;
      const { status, body } = await handleOrderWebhook(request, { session, world, maxBytes });
      sendJson(response, status, body);
    }
  }

  return {
    port,
    url: `http://${HOST}:${port}/#${gate.token}`,
    token: gate.token,
    webhook,
    async close() {
      await hub.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

/** The port that was free: the wanted one, or one of those after it. */
async function listen(server: Server, wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : Math.min(wanted + PORTS_TO_TRY, 65_535);
  for (let port = wanted; port <= last; port++) {
    if (await tryToListen(server, port)) return (server.address() as AddressInfo).port;
  }
  throw new ConfigurationError(
    'NO_FREE_PORT',
    `All ports from ${wanted} to ${last} are taken: set PORT to a free one`,
  );
}

function tryToListen(server: Server, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const listening = (): void => {
      server.off('error', failed);
      resolve(true);
    };
    const failed = (error: NodeJS.ErrnoException): void => {
      server.off('listening', listening);
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    };
    server.once('listening', listening);
    server.once('error', failed);
    server.listen(port, HOST);
  });
}

function setSecurityHeaders(response: ServerResponse, files: PageFiles, port: number): void {
  response.setHeader('content-security-policy', files.contentSecurityPolicy(port));
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('cross-origin-opener-policy', 'same-origin');
  response.setHeader('cross-origin-resource-policy', 'same-origin');
  response.setHeader('permissions-policy', 'microphone=(self), camera=(), geolocation=()');
  response.setHeader('cache-control', 'no-store');
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  // What was not read of a request must not hold up the next one.
  if (status >= 400) response.setHeader('connection', 'close');
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
    .end(`${JSON.stringify(body)}\n`);
}

function refuseUpgrade(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function webhookCommand(port: number, token: string): string {
  return [
    `curl -X POST http://${HOST}:${port}/webhook/order`,
    `-H 'authorization: Bearer ${token}'`,
    `-H 'content-type: application/json'`,
    `-d '{"orderId":"1042","status":"out for delivery","urgent":true}'`,
  ].join(' ');
}
