// An app on one machine, in one call: its sessions, its page, and a link that lets in whoever has it.
//
//   http://127.0.0.1:8080/#token      /offstage → serve       `POST /order` → a route of the app       / → the page
//                                     /inspect → the inspector, if it is wanted
//
// Owns:     the server, its port, its token, the headers of the page.
// Does not: reach beyond 127.0.0.1. An app for others has a server of its own, and `serve` in it.
//
// Invariants
//   LOCAL-1. Without the token a request gets the files of the page, and nothing else. The token is in the fragment of the
//       link, which no browser sends: it reaches no log.
//   LOCAL-2. Nothing is served under a foreign Host (DNS rebinding).
//   LOCAL-3. The file of a token is readable by nobody else; a token that others could read or write is replaced.

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

/** The handler of a server for pages, such as the middlewares of Vite. */
export type PageHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: () => void,
) => void;

/**
 * Answers a request of the page beside the session. `body` is the JSON that was posted; null without one. The result is sent
 * as JSON, a `Response` as it is.
 */
export type PageRoute = (body: unknown) => unknown;

/** The options of `serveLocally`. */
export interface ServeLocallyOptions<S extends ServedSession = ServedSession> extends Omit<
  ServeOptions<S>,
  'authorize' | 'hosts' | 'locate' | 'origins' | 'pool' | 'session'
> {
  /** The session of whoever has the link. */
  readonly session: S;
  /** The page: a folder, or what answers for it, such as a bundler; that gets the server, for sockets of its own. */
  readonly page: PageFiles | ((server: Server) => PageHandler | Promise<PageHandler>);
  /** The requests of the page beside the session, by method and path, such as `POST /order`. @defaultValue {} */
  readonly routes?: Readonly<Record<string, PageRoute>>;
  /** The first port to try; the next free one is taken. 0: any. @defaultValue 3000 */
  readonly port?: number;
  /** The `by` of what is done with the link. @defaultValue 'user' */
  readonly user?: string;
  /**
   * The file that keeps the token, so that a link outlives the process. A token is replaced if others could read or write its
   * file. @defaultValue each start has another link
   */
  readonly tokenFile?: string;
  /**
   * Serves the page of `offstage/inspector` under `/inspect`, to whoever has the token: it shows the sessions of this journal
   * with their words, forks them, and acts in the session as `user`. @defaultValue no inspector
   */
  readonly inspector?: { readonly journal: Journal };
}

/** An app that is served on this machine. */
export interface LocalServer {
  readonly port: number;
  /** The link to open: its fragment holds the token. */
  readonly url: string;
  readonly token: string;
  /** The link to the inspector; null: there is none. */
  readonly inspectorUrl: string | null;
  /** Ends all connections, whose clients may connect again. The session stays. Safe to call twice. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
const INSPECT = '/inspect';
const DEFAULT_PORT = 3_000;
const PORTS_TO_TRY = 20;
const MAX_BODY_BYTES = 65_536;
const BODY_TIMEOUT_MS = 10_000;
/** The time in which a handler of the page takes a socket. */
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
  // Those of `serve`, which checks them.
  path: z.unknown().optional(),
  share: z.unknown().optional(),
  limits: z.unknown().optional(),
  environment: z
    .looseObject({ clock: z.unknown(), scheduler: z.unknown(), ids: z.unknown() })
    .optional(),
  onError: z.unknown().optional(),
} satisfies ChecksOf<ServeLocallyOptions>);

/**
 * Serves a session and its page on this machine, to whoever has the link.
 * @throws {ConfigurationError} `INVALID_OPTION`; `NO_FREE_PORT`; `MISSING_DEPENDENCY` for a module of the page
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
    // Another listener answers it, or nobody.
    if (http.listenerCount('upgrade') === 1) socket.destroy();
    else
      scheduler.schedule(() => {
        if ('bytesWritten' in socket && socket.bytesWritten === 0) socket.destroy();
      }, UPGRADE_TIMEOUT_MS);
  });
  const handler = typeof page === 'function' ? await page(http) : null;

  async function inspectorOf(journal: Journal): Promise<InspectorPage> {
    // Imported late: a page that nobody asked for costs nothing.
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

/** Resolves with the port that was free: the wanted one, or one of those after it. */
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
  // Reading a pipe would not end, and a device is not ours.
  if (stats?.isFile() === false) throw unkept(file, new Error('expected a regular file'));
  // Windows has no such modes. Source: nodejs.org, "File modes" (2026).
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
    // LOCAL-3: writing a file that is there leaves its mode.
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
