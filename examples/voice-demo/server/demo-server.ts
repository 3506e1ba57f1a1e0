// The web server of the demo: the page, its WebSocket `/client`, and the webhook. It
// listens on the loopback interface only, behind the guard of all listeners.

import type { ServerResponse } from 'node:http';
import { ConfigurationError, messageOf } from '../../../src/values/errors.ts';
import type { Environment } from '../../../src/actors/ports/environment.ts';
import { loopbackHosts } from '../../../src/adapters/listen/access.ts';
import {
  createGuard,
  type Guard,
  type RequestVisit,
  type Verdict,
} from '../../../src/adapters/listen/guard.ts';
import type { World } from '../agents/world.ts';
import type { SessionFace } from '../session-face.ts';
import { SUBPROTOCOL, type About, type Suggestion } from '../shared/protocol.ts';
import { ClientHub } from './client-hub.ts';
import { createGate, isOwnOrigin } from './gate.ts';
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
  /** The token of the link. @defaultValue a new one */
  readonly token?: string;
  readonly limits?: Partial<ServerLimits>;
  /** Kills the process: a page may ask for it. @defaultValue it may not */
  readonly crash?: () => void;
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
  const { session, world, environment, crash, log = () => undefined } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const files = createPageFiles();
  const webhooks = new TokenBucket(environment.clock, limits.webhooks);
  const gate = createGate(options.token);
  const guard = await createGuard({
    name: 'The demo',
    environment,
    maxClients: limits.maxClients,
    strangerTimeoutMs: limits.strangerTimeoutMs,
    isHost: (host, at) => loopbackHosts(at).includes(host),
    isOrigin: isOwnOrigin,
    webSocket: {
      maxMessageBytes: limits.maxMessageBytes,
      subprotocol: SUBPROTOCOL,
      upgrade: ({ request, target }): Verdict => {
        if (target.path !== '/client')
          return { type: 'refuse', refusal: { status: 404, message: 'Expected /client' } };
        return gate.admits(request.headers)
          ? { type: 'open', open: (socket) => hub.add(socket) }
          : {
              type: 'refuse',
              refusal: { status: 403, message: 'Expected our page and its token' },
            };
      },
    },
    request: answer,
    onError: (error) => log(messageOf(error)),
  });
  const port = await listen(guard, options.port);
  const webhook = webhookCommand(port, gate.token);
  const hub = new ClientHub({
    session,
    environment,
    limits,
    about: { ...options.about, ...(crash && { canCrash: true }) },
    suggestions: options.suggestions(webhook),
    log,
  });

  async function answer(visit: RequestVisit): Promise<void> {
    const { request, response, target } = visit;
    setSecurityHeaders(response, files, visit.port);
    if (target.path === '/webhook/order') {
      await answerWebhook(visit);
    } else if (target.path === '/crash' && request.method === 'POST' && crash) {
      if (!gate.isAuthorized(request.headers))
        sendJson(response, 401, { error: 'Expected the header Authorization: Bearer <token>' });
      else crash();
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      sendJson(response, 405, { error: 'Expected GET' });
    } else if (target.path === '/token') {
      // The page asks why it was not let in: the link is old, or the server is gone.
      response.writeHead(gate.isAuthorized(request.headers) ? 204 : 401).end();
    } else {
      const file = files.read(target.path);
      if (!file) sendJson(response, 404, { error: `There is no ${target.path}` });
      else response.writeHead(200, { 'content-type': file.contentType }).end(file.body);
    }
  }

  async function answerWebhook({ request, response, admit }: RequestVisit): Promise<void> {
    if (request.method !== 'POST') {
      sendJson(response, 405, { error: 'Expected POST' });
    } else if (!gate.isAuthorized(request.headers)) {
      sendJson(response, 401, { error: 'Expected the header Authorization: Bearer <token>' });
    } else if (!webhooks.take()) {
      sendJson(response, 429, { error: `Expected ${limits.webhooks.perSecond} call a second` });
    } else {
      admit();
      const { status, body } = await handleOrderWebhook(request, {
        session,
        world,
        environment,
        limits,
      });
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
      await guard.close();
    },
  };
}

/** The port that was free: the wanted one, or one of those after it. */
async function listen(guard: Guard, wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : Math.min(wanted + PORTS_TO_TRY, 65_535);
  for (let port = wanted; port <= last; port++) {
    try {
      return (await guard.listen({ port, host: HOST })).port;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    }
  }
  throw new ConfigurationError(
    'NO_FREE_PORT',
    `All ports from ${wanted} to ${last} are taken: set PORT to a free one`,
  );
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
  // The unread rest of a request must not delay the next one.
  if (status >= 400) response.setHeader('connection', 'close');
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
    .end(`${JSON.stringify(body)}\n`);
}

function webhookCommand(port: number, token: string): string {
  return [
    `curl -X POST http://${HOST}:${port}/webhook/order`,
    `-H 'authorization: Bearer ${token}'`,
    `-H 'content-type: application/json'`,
    `-d '{"orderId":"1042","status":"out for delivery","urgent":true}'`,
  ].join(' ');
}
