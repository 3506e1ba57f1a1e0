// The request handling that this package's servers share: one handler for web requests and one for `node:http`. The
// handlers check Host and Origin, and convert `node:http` requests and web responses.
//
// Does not: identify the sender (the server's `authorize` does), or guard sockets (`guard.ts`).

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Scheduler } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { isLoopbackName, targetOf } from './access.ts';
import { readBody } from './request-body.ts';

const BODY_TIMEOUT_MS = 10_000;

/** A `node:http` request. Express removes the mount path from `url`. */
export type MountedRequest = IncomingMessage & { readonly originalUrl?: string };

/** The server's accepted names, and the pages that may connect. */
export interface Reachable {
  /** The accepted host names in `Host`; `*` allows any. @defaultValue localhost, and the hosts in `origins` */
  readonly hosts?: readonly string[];
  /** The accepted web origins; `*` allows any. @defaultValue pages on localhost */
  readonly origins?: readonly string[];
}

/** Whether this is one of the server's names. Any other name may be the result of DNS rebinding. */
export function isServedHost(host: string, { hosts, origins = [] }: Reachable): boolean {
  if (isLoopbackName(host)) return true;
  const names = hosts ?? origins.map((origin) => URL.parse(origin)?.host);
  return names.includes(host) || names.includes('*');
}

/** `host`: the server's own host, if its pages may connect. */
export function isServedOrigin(
  origin: string,
  { origins }: Reachable,
  host: string | null = null,
): boolean {
  if (origins) return origins.includes(origin) || origins.includes('*');
  const from = URL.parse(origin)?.host ?? '';
  return isLoopbackName(from) || (host !== null && from === host);
}

/** The reasons for refusing a request with an untrusted Host or Origin. */
export interface Unserved {
  readonly code: 'HOST_REFUSED' | 'ORIGIN_REFUSED';
  readonly message: string;
}

/** Returns why this Host or Origin is refused; null if both are trusted. */
export function unservedOf(
  { host, origin }: { readonly host: string; readonly origin: string | null },
  reachable: Reachable,
): Unserved | null {
  if (!isServedHost(host, reachable))
    return {
      code: 'HOST_REFUSED',
      message: `Expected a Host that is served here (\`hosts\`, \`origins\`), got ${shown(host)}`,
    };
  if (origin !== null && !isServedOrigin(origin, reachable))
    return {
      code: 'ORIGIN_REFUSED',
      message: `Expected an Origin that may connect (\`origins\`), got ${shown(origin)}`,
    };
  return null;
}

/** The maximum number of different refusals to report, so that attackers cannot fill a log. */
const MAX_REPORTED = 100;

/** Returns a function that reports each untrusted Host or Origin once. */
export function unservedReporter(
  onError: (error: unknown, where: string) => void,
): (unserved: Unserved, where: string) => void {
  const reported = new Set<string>();
  return ({ code, message }, where) => {
    if (reported.has(message) || reported.size >= MAX_REPORTED) return;
    reported.add(message);
    onError(new ConfigurationError(code, message), where);
  };
}

/** A server's two handlers: one for web requests, one for `node:http`. */
export interface WebHandlers {
  /** Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** For any other path, it calls `next`. Without `next`, it responds with 404. */
  readonly handle: (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;
}

export interface WebHandlersOptions {
  /** The name of the function that the app called, for error messages. */
  readonly name: string;
  readonly path: string;
  readonly reachable: Reachable;
  readonly methods: readonly ('GET' | 'HEAD' | 'POST' | 'DELETE')[];
  /** The headers that a page from another origin may send and read; null if no other page may read a response. */
  readonly cors?: { readonly headers: string; readonly expose: string } | null;
  readonly scheduler: Scheduler;
  readonly maxBytes: number;
  /** Responds to a request whose Host, Origin, path and method have been accepted. */
  answer(request: Request, url: URL): Promise<Response> | Response;
  onError(error: unknown, where: string): void;
}

/** Creates the handlers. The handlers never throw, whatever the request contains. */
export function webHandlers(options: WebHandlersOptions): WebHandlers {
  const { name, path, reachable, scheduler, maxBytes, answer, onError } = options;
  const methods = options.methods.join(', ');
  const { cors = { headers: 'authorization, content-type', expose: '' } } = options;
  const nothingHere = (): Response => refusal(404, 'Nothing is here');
  const reportUnserved = unservedReporter(onError);

  const fetch: WebHandlers['fetch'] = async (request) => {
    const readable: Record<string, string> = {};
    try {
      const url = new URL(request.url);
      if (url.pathname !== path) return nothingHere();
      const host = request.headers.get('host') ?? url.host;
      const origin = request.headers.get('origin');
      const unserved = unservedOf({ host, origin }, reachable);
      if (unserved) {
        reportUnserved(unserved, `${name}: fetch`);
        return refusal(403, unserved.message, {}, unserved.code);
      }
      if (origin !== null && cors) {
        Object.assign(readable, {
          'access-control-allow-origin': origin,
          'access-control-allow-credentials': 'true',
          'access-control-allow-methods': methods,
          'access-control-allow-headers': cors.headers,
          ...(cors.expose === '' ? {} : { 'access-control-expose-headers': cors.expose }),
          vary: 'origin',
        });
      }
      const answered = await answerTo(request, url);
      for (const [header, value] of Object.entries(readable)) answered.headers.set(header, value);
      return answered;
    } catch (error) {
      onError(error, `${name}: fetch`);
      return refusal(500, 'The server made a mistake', readable);
    }
  };

  const answerTo = async (request: Request, url: URL): Promise<Response> => {
    if (request.method === 'OPTIONS' && cors) return new Response(null, { status: 204 });
    if (!options.methods.some((method) => method === request.method))
      return refusal(405, `Expected ${methods}`, { allow: `${methods}, OPTIONS` });
    return answer(request, url);
  };

  const handled = async (
    request: MountedRequest,
    response: ServerResponse,
    next?: () => void,
  ): Promise<void> => {
    // Express removes the mount path from `url`.
    if (targetOf(request.originalUrl ?? request.url)?.path !== path) {
      if (next) next();
      else await answerWith(response, nothingHere());
      return;
    }
    const asked = await webRequest(request, response, { scheduler, maxBytes });
    if (asked === 'consumed') {
      const error = new ConfigurationError(
        'BODY_CONSUMED',
        `${name}: expected a request with an unread body: put the handler before any body parser`,
      );
      onError(error, `${name}: handle`);
      await answerWith(response, refusal(500, error.message, {}, error.code));
      return;
    }
    await answerWith(response, asked instanceof Response ? asked : await fetch(asked));
  };

  return {
    fetch,
    handle(request, response, next) {
      response.on('error', () => response.destroy());
      void handled(request, response, next).catch((error: unknown) => {
        onError(error, `${name}: handle`);
        response.destroy();
      });
    },
  };
}

export function refusal(
  status: number,
  message: string,
  headers: Record<string, string> = {},
  code?: string,
): Response {
  return Response.json(
    { error: { message, ...(code !== undefined && { code }) } },
    { status, headers },
  );
}

export function webHeaders(headers: IncomingMessage['headers']): Headers {
  const result = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) result.append(name, each);
  return result;
}

/** Returns the URL of a request that has a valid Host and target. */
export function urlOf(request: MountedRequest): URL {
  const { host = 'localhost' } = request.headers;
  const { path = '/', query } = targetOf(request.originalUrl ?? request.url) ?? {};
  const search = query && query.size > 0 ? `?${query.toString()}` : '';
  return URL.parse(`http://${host}${path}${search}`) ?? new URL(`http://localhost${path}${search}`);
}

/** Converts a `node:http` request with its body to a web request. If this fails, returns a response. */
async function webRequest(
  request: MountedRequest,
  response: ServerResponse,
  { scheduler, maxBytes }: { readonly scheduler: Scheduler; readonly maxBytes: number },
): Promise<Request | Response | 'consumed'> {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  let body: Buffer | undefined;
  if (request.method === 'POST') {
    const read = await readBody(request, { scheduler, maxBytes, timeoutMs: BODY_TIMEOUT_MS });
    if (read === 'consumed') return read;
    if (read === 'too_large') return refusal(413, `Expected at most ${maxBytes} bytes`);
    if (!Buffer.isBuffer(read)) return refusal(408, 'Expected a body');
    body = read;
  }
  return new Request(urlOf(request), {
    method: request.method ?? 'GET',
    headers: webHeaders(request.headers),
    signal: controller.signal,
    ...(body && { body: new Uint8Array(body) }),
  });
}

/** Returns the text of a web request; null if it exceeds `maxBytes`. */
export async function readText(request: Request, maxBytes: number): Promise<string | null> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Writes a web response at the client's speed. Resolves once the response has been written or the client has
 * disconnected.
 */
export async function answerWith(response: ServerResponse, answer: Response): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (!answer.body) {
    response.end();
    return;
  }
  response.flushHeaders();
  const reader = answer.body.getReader();
  response.once('close', () => void reader.cancel().catch(() => undefined));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!response.write(value)) await drained(response);
      if (response.destroyed) break;
    }
    response.end();
  } catch {
    // The stream was interrupted.
    response.destroy();
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
