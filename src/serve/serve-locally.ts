// Serves an app on one machine with one call: its session, its page and a link that gives access.
//
//   http://127.0.0.1:8080/#token      /offstage → serve       `POST /order` → a route of the app       / → the page
//                                     /inspect → the inspector, if the app enables it
//
// Owns:     the server, its port, its token, and the page's headers.
// Does not: listen on any address except 127.0.0.1. An app for other machines runs its own server and uses `serve`.
//
// Invariants
//   LOCAL-1. A request without the token can read only the files of the page. The token is in the fragment of the link.
//       Browsers do not send the fragment, so the token does not appear in any log.
//   LOCAL-2. A request with an untrusted Host is refused (DNS rebinding).
//   LOCAL-3. Only the owner can read the file with the token. If others can read or write the file, its token is
//       replaced.

import { once } from 'node:events';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { propertiesOf } from '../values/json.ts';
import { bearerToken, isSameSecret, targetOf } from '../adapters/listen/access.ts';
import { answerRefusal } from '../adapters/listen/guard.ts';
import { pageHeaders } from '../adapters/listen/page-headers.ts';
import { readBody } from '../adapters/listen/request-body.ts';
import { answerWith, isServedHost } from '../adapters/listen/web-requests.ts';
import { nodeEnvironment } from '../adapters/node/environment.ts';
import { valueOfJson } from '../client/protocol.ts';
import { identity } from '../actors/contracts/identity.ts';
import type { Journal } from '../actors/ports/journal.ts';
import type { InspectorPage } from '../inspector/index.ts';
import { aFunction, anObject, check, type ChecksOf } from '../values/checks.ts';
import { ConfigurationError, messageOf } from '../values/errors.ts';
import { reporter } from '../values/reporter.ts';
import type { ServedSession, ServeOptions } from './options.ts';
import { PageReader, type PageFiles } from './page-files.ts';
import { serve } from './serve.ts';

/** A server's handler for the page, such as Vite's middlewares. */
export type PageHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: () => void,
) => void;

/**
 * Handles an additional request of the page. `body` is the posted JSON, or null. A result that is a `Response` is sent
 * unchanged. Any other result is sent as JSON.
 */
export type PageRoute = (body: unknown) => unknown;

/** The options of `serveLocally`. */
export interface ServeLocallyOptions<S extends ServedSession = ServedSession> extends Omit<
  ServeOptions<S>,
  'authorize' | 'hosts' | 'links' | 'locate' | 'origins' | 'pool' | 'session'
> {
  /** The session that the link gives access to. */
  readonly session: S;
  /**
   * The page: a folder, or a function that returns a request handler, such as a bundler's. The function receives the
   * server so that it can add its sockets.
   */
  readonly page: PageFiles | ((server: Server) => PageHandler | Promise<PageHandler>);
  /** Additional requests of the page, by method and path, such as `POST /order`. @defaultValue {} */
  readonly routes?: Readonly<Record<string, PageRoute>>;
  /** The first port to try. If it is taken, the next free port is used; 0 selects any free port. @defaultValue 3000 */
  readonly port?: number;
  /** The `by` value for everything that users of the link do. @defaultValue 'user' */
  readonly user?: string;
  /**
   * The file that stores the token, so that the link stays valid after a restart. If others can read or write the file,
   * the token is replaced. @defaultValue a new link on each start
   */
  readonly tokenFile?: string;
  /**
   * Serves the page of `offstage/inspector` under `/inspect` to clients with the token. The page shows the text of this
   * journal's sessions, can fork sessions, and acts in the session as `user`. @defaultValue no inspector
   */
  readonly inspector?: { readonly journal: Journal };
}

/** An app that is served on this machine. */
export interface LocalServer {
  /** The port that the server listens on. */
  readonly port: number;
  /** The link to open. Its fragment contains the token. */
  readonly url: string;
  /** The token that a client must present. */
  readonly token: string;
  /** The link to the inspector, or null. */
  readonly inspectorUrl: string | null;
  /** Closes all connections. Clients may reconnect. The session stays open. Safe to call twice. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
const INSPECT = '/inspect';
const DEFAULT_PORT = 3_000;
const PORTS_TO_TRY = 20;
const MAX_BODY_BYTES = 65_536;
const BODY_TIMEOUT_MS = 10_000;
/** How long the page's handler may take to handle a socket. */
const UPGRADE_TIMEOUT_MS = 10_000;

const optionsSchema = z.strictObject({
  session: anObject('a session', 'start', 'attach', 'sendText'),
  page: z.union(
    [
      aFunction,
      z.strictObject({
        folder: z.union([z.string().min(1), z.instanceof(URL)]),
        modules: z.record(z.string().min(1), z.string().min(1)).optional(),
      } satisfies ChecksOf<PageFiles>),
    ],
    { error: 'expected a folder with its modules, or a function' },
  ),
  routes: z
    .record(z.string(), aFunction)
    .refine(
      (routes) => Object.keys(routes).every((name) => /^(?:GET|POST) \/[\w./~-]*$/.test(name)),
      'expected names of GET or POST and a path, such as `POST /order`',
    )
    .optional(),
  port: z.int().min(0).max(65_535).optional(),
  user: identity.optional(),
  tokenFile: z.string().min(1).optional(),
  inspector: z
    .strictObject({ journal: anObject('the journal of the session', 'read') } satisfies ChecksOf<{
      readonly journal: Journal;
    }>)
    .optional(),
  // Options that are passed to `serve`, which validates them.
  path: z.unknown().optional(),
  share: z.unknown().optional(),
  limits: z.unknown().optional(),
  environment: z
    .looseObject({ clock: z.unknown(), scheduler: z.unknown(), ids: z.unknown() })
    .optional(),
  onError: z.unknown().optional(),
} satisfies ChecksOf<ServeLocallyOptions>);

/**
 * Serves a session and its page on this machine. The link in the result gives access.
 * @throws {ConfigurationError} `INVALID_OPTION`; `NO_FREE_PORT`; `MISSING_DEPENDENCY` if a module of the page is
 * missing
 */
export async function serveLocally<S extends ServedSession>(
  options: ServeLocallyOptions<S>,
): Promise<LocalServer> {
  check('serveLocally(options)', optionsSchema, options);
  const { session, page, routes = {}, port, user = 'user', ...others } = options;
  const { tokenFile, inspector, ...served } = others;
  const { environment = nodeEnvironment(), onError } = served;
  const { ids, scheduler } = environment;
  const report = reporter(onError);
  const newToken = (): string => `${ids.next('k')}${ids.next('')}${ids.next('')}`;
  const reader = typeof page === 'function' ? null : new PageReader(page);
  const token = tokenFile === undefined ? newToken() : keptToken(tokenFile, newToken);
  const web = serve({
    ...served,
    session: () => session,
    authorize: (asked) =>
      isSameSecret(asked.token, token) ? { sessionId: session.id, user, role: 'user' } : null,
  });
  const inspected = inspector && (await inspectorOf(inspector.journal));
  const http = createServer((request, response) =>
    web.handle(request, response, () => {
      if (inspected && isWithin(INSPECT, request)) return inspected.handle(request, response);
      answer(request, response).catch((error: unknown) => {
        report(error, 'serveLocally');
        if (response.headersSent) response.destroy();
        else answerRefusal(response, { status: 500, message: 'The server made a mistake' });
      });
    }),
  );
  http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (web.upgrade(request, socket, head)) return;
    socket.on('error', () => socket.destroy());
    // Without another listener, the socket would never get a response.
    if (http.listenerCount('upgrade') === 1) socket.destroy();
    else
      scheduler.schedule(() => {
        if ('bytesWritten' in socket && socket.bytesWritten === 0) socket.destroy();
      }, UPGRADE_TIMEOUT_MS);
  });
  const handler = typeof page === 'function' ? await page(http) : null;

  async function inspectorOf(journal: Journal): Promise<InspectorPage> {
    // Imported on demand, so that an app without an inspector does not load it.
    const { inspector: pageOf } = await import('../inspector/index.ts');
    return pageOf({
      journal,
      token,
      user,
      path: INSPECT,
      act: (sessionId) => (sessionId === session.id ? session : null),
      forks: true,
      redact: false,
      environment,
      ...(onError && { onError }),
    });
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request;
    const path = targetOf(request.url)?.path ?? '';
    const refuse = (status: number, message: string): void =>
      answerRefusal(response, { status, message });
    // LOCAL-2
    if (!isServedHost(headers.host ?? '', {}))
      return refuse(403, 'Expected a Host that is served here');
    for (const [name, value] of Object.entries(headersOfAll)) response.setHeader(name, value);
    const asked = `${method} ${path}`;
    const route = Object.hasOwn(routes, asked) ? routes[asked] : undefined;
    if (route) {
      // LOCAL-1
      if (!isSameSecret(bearerToken(headers), token))
        return refuse(401, 'Expected the header Authorization: Bearer <token>');
      let body: unknown = null;
      if (method === 'POST') {
        const limits = { scheduler, maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS };
        const read = await readBody(request, limits);
        if (read === 'too_large') return refuse(413, `Expected at most ${MAX_BODY_BYTES} bytes`);
        if (!Buffer.isBuffer(read)) return refuse(408, 'Expected a body');
        const text = read.toString('utf8');
        body = text === '' ? null : valueOfJson(text);
        if (body === undefined) return refuse(400, 'Expected JSON');
      }
      const result = await route(body);
      return answerWith(
        response,
        result instanceof Response ? result : Response.json(result ?? null),
      );
    }
    const nothingHere = (): void => refuse(404, 'Nothing is here');
    if (handler) return handler(request, response, nothingHere);
    if (method !== 'GET' && method !== 'HEAD') return nothingHere();
    const file = reader?.read(path);
    if (!reader || !file) return nothingHere();
    const isPacked =
      file.body.length > 1_024 && /\bgzip\b/.test(String(headers['accept-encoding']));
    response
      .writeHead(200, {
        'content-type': file.type,
        'content-security-policy': reader.contentSecurityPolicy,
        ...(isPacked && { 'content-encoding': 'gzip' }),
      })
      .end(isPacked ? gzipSync(file.body) : file.body);
  }

  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await web.close();
    http.close();
    http.closeAllConnections();
  };
  try {
    const taken = await listen(http, port ?? DEFAULT_PORT);
    return {
      port: taken,
      url: `http://${HOST}:${taken}/#${token}`,
      token,
      inspectorUrl: inspected ? `http://${HOST}:${taken}${INSPECT}#token=${token}` : null,
      close: () => (closed ??= close()),
    };
  } catch (error) {
    await web.close();
    throw error;
  }
}

function isWithin(folder: string, { url }: IncomingMessage): boolean {
  const path = targetOf(url)?.path ?? '';
  return path === folder || path.startsWith(`${folder}/`);
}

const headersOfAll = {
  ...pageHeaders,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'microphone=(self), camera=(), geolocation=()',
};

/** Resolves with the port: the requested port, or the first free port after it. */
async function listen(http: Server, wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : Math.min(wanted + PORTS_TO_TRY, 65_535);
  for (let port = wanted; port <= last; port++) {
    try {
      http.listen(port, HOST);
      await once(http, 'listening');
      return (http.address() as AddressInfo).port;
    } catch (error) {
      const { code } = propertiesOf(error);
      if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    }
  }
  throw new ConfigurationError(
    'NO_FREE_PORT',
    `serveLocally: expected a free port from ${wanted} to ${last}: all of them are taken`,
  );
}

function keptToken(file: string, newToken: () => string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  // Reading from a pipe would never end, and a device must not be written to.
  if (stats?.isFile() === false) throw unkept(file, new Error('expected a regular file'));
  // Windows does not have these modes. Source: nodejs.org, "File modes" (2026).
  const isOwn = stats && (process.platform === 'win32' || (stats.mode & 0o077) === 0);
  try {
    const token = readFileSync(file, 'utf8').trim();
    if (isOwn && /^[\w-]{32,200}$/.test(token)) return token;
  } catch (cause) {
    if (propertiesOf(cause)['code'] !== 'ENOENT') throw unkept(file, cause);
  }
  const token = newToken();
  try {
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    // LOCAL-3: writing to an existing file keeps the file's mode.
    chmodSync(file, 0o600);
  } catch (cause) {
    throw unkept(file, cause);
  }
  return token;
}

const unkept = (file: string, cause: unknown): ConfigurationError =>
  new ConfigurationError(
    'INVALID_OPTION',
    `serveLocally(options).tokenFile: expected a file that can be read and written, got ${file}: ${messageOf(cause)}`,
    { cause },
  );
