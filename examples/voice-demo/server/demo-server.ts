// The demo's server, on the loopback interface only: the session for its page, the files of the page, and what a page asks
// beside the session: what is spoken with, news of an order, and the death of this process.
//
// DEMO-SERVER-1. Without the token of the link a request gets the files of the page, and nothing else.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { ConfigurationError, type VoiceSession } from 'offstage';
import { serve, type ServedSession, type ServeLimits } from 'offstage/serve';
import { z } from 'zod';
import type { World } from '../agents/world.ts';
import type { About } from '../page/about.ts';
import { contentSecurityPolicy, pageFile } from './page-files.ts';

const HOST = '127.0.0.1';
const PORTS_TO_TRY = 20;
const MAX_BODY_BYTES = 4096;

export interface DemoServerOptions {
  readonly session: ServedSession & Pick<VoiceSession, 'notifyBackground'>;
  readonly world: World;
  /** The first port to try; the next free one is taken. 0: any. */
  readonly port: number;
  readonly about: About;
  /** The token of the link. @defaultValue a new one */
  readonly token?: string;
  readonly limits?: Partial<ServeLimits>;
  /** Kills the process: a page may ask for it. @defaultValue it may not */
  readonly crash?: () => void;
  readonly log?: (line: string) => void;
}

export interface DemoServer {
  readonly port: number;
  /** To be opened in a browser; its fragment holds the token, which so never reaches a log. */
  readonly url: string;
  readonly token: string;
  /** Resolves when all connections are closed. */
  close(): Promise<void>;
}

const orderSchema = z.strictObject({
  orderId: z.string().trim().min(1).max(40),
  status: z.string().trim().min(1).max(200),
  urgent: z.boolean().default(false),
});

/** @throws {ConfigurationError} `NO_FREE_PORT` when none of the ports can be had. */
export async function startDemoServer(options: DemoServerOptions): Promise<DemoServer> {
  const { session, world, about, crash, limits, log = () => undefined } = options;
  const { token = randomBytes(24).toString('base64url') } = options;
  const isKey = (given: string | null): boolean =>
    given?.length === token.length && timingSafeEqual(Buffer.from(given), Buffer.from(token));
  const web = serve({
    session: () => session,
    authorize: (asked) =>
      isKey(asked.token) ? { sessionId: session.id, user: 'you', role: 'user' } : null,
    share: ['error.reported', 'tool.in_doubt'],
    limits: { clients: 8, ...limits },
    onError: (error, where) => log(`${where}: ${String(error)}`),
  });
  const http = createServer((request, response) =>
    web.handle(request, response, () => {
      answer(request, response).catch((error: unknown) => {
        log(String(error));
        response.destroy();
      });
    }),
  );
  http.on('upgrade', (request, socket, head) => {
    if (!web.upgrade(request, socket, head)) socket.destroy();
  });
  const port = await listen(http, options.port);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers, url: path = '' } = request;
    const say = (status: number, body: object): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify(body));
    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value);
    // Another name may be a foreign DNS record of this address.
    if (![`${HOST}:${port}`, `localhost:${port}`].includes(headers.host ?? ''))
      return say(403, { error: 'Expected the Host of the link' });
    const file = method === 'GET' ? pageFile(path) : null;
    if (file) return void response.writeHead(200, { 'content-type': file.type }).end(file.body);
    if (!isKey(/^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? null))
      return say(401, { error: 'Expected the header Authorization: Bearer <token>' });
    if (`${method} ${path}` === 'GET /about')
      return say(200, { ...about, canCrash: Boolean(crash) });
    if (`${method} ${path}` === 'POST /crash' && crash) return crash();
    if (`${method} ${path}` !== 'POST /order')
      return say(404, { error: `There is no ${method} ${path}` });
    if (!(Number(headers['content-length']) <= MAX_BODY_BYTES))
      return say(413, { error: `Expected at most ${MAX_BODY_BYTES} bytes, and their number` });
    const order = orderSchema.safeParse(await json(request).catch(() => null));
    if (!order.success) return say(400, { error: z.prettifyError(order.error) });
    const { orderId, item, status } = world.updateOrder(order.data.orderId, order.data.status);
    session.notifyBackground(`Order ${orderId}, ${item}, is ${status}.`, {
      priority: order.data.urgent ? 'urgent' : 'normal',
      label: 'ORDER UPDATE',
    });
    say(202, { orderId, item, status });
  }

  return {
    port,
    url: `http://${HOST}:${port}/#${token}`,
    token,
    async close() {
      await web.close();
      http.close();
      http.closeAllConnections();
    },
  };
}

/** Resolves with the port that was free: the wanted one, or one of those after it. */
async function listen(http: Server, wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : Math.min(wanted + PORTS_TO_TRY, 65_535);
  for (let port = wanted; port <= last; port++) {
    try {
      http.listen(port, HOST);
      await once(http, 'listening');
      return (http.address() as AddressInfo).port;
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

const securityHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'microphone=(self), camera=(), geolocation=()',
  'cache-control': 'no-store',
};
