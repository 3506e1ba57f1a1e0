// Web requests, as the servers of this package take them: the Host and Origin that are served, a request of `node:http`
// as a web request, and a web response as an answer of `node:http`.
//
// Does not: know who asks (the server's `authorize`), or guard sockets (guard.ts).

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Scheduler } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { isLoopbackName, targetOf } from './access.ts';
import { readBody } from './request-body.ts';

const BODY_TIMEOUT_MS = 10_000;

/** A request of `node:http`. Express cuts `url` where the handler is mounted. */
export type MountedRequest = IncomingMessage & { readonly originalUrl?: string };

/** The names under which a server is reached, and the pages that may reach it. */
export interface Reachable {
  /** The names of the server in `Host`; `*` is any. @defaultValue localhost, and the hosts of `origins` */
  readonly hosts?: readonly string[];
  /** The origins of web pages; `*` is any. @defaultValue pages of this machine (localhost) */
  readonly origins?: readonly string[];
}

/** Tells whether a server is reached under this name: others may be foreign DNS records (rebinding). */
export function isServedHost(host: string, { hosts, origins = [] }: Reachable): boolean {
  if (isLoopbackName(host)) return true;
  const names = hosts ?? origins.map((origin) => URL.parse(origin)?.host);
  return names.includes(host) || names.includes('*');
}

export function isServedOrigin(origin: string, { origins }: Reachable): boolean {
  if (origins) return origins.includes(origin) || origins.includes('*');
  return isLoopbackName(URL.parse(origin)?.host ?? '');
}

/** Returns the reason for which a web request is not served; null: it is. */
export function refusedFrom(request: Request, url: URL, reachable: Reachable): Response | null {
  const host = request.headers.get('host') ?? url.host;
  if (!isServedHost(host, reachable)) return refusal(403, 'Expected a Host that is served here');
  const origin = request.headers.get('origin');
  if (origin !== null && !isServedOrigin(origin, reachable))
    return refusal(403, 'Expected an Origin that may connect');
  return null;
}

export function refusal(
  status: number,
  message: string,
  headers: Record<string, string> = {},
): Response {
  return Response.json({ error: { message } }, { status, headers });
}

/** The answer to a page's browser that the page may read what comes from here. */
export function corsHeaders(
  origin: string,
  { methods = 'GET, POST', headers = 'authorization, content-type', expose = '' } = {},
): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headers,
    ...(expose === '' ? {} : { 'access-control-expose-headers': expose }),
    vary: 'origin',
  };
}

export function webHeaders(headers: IncomingMessage['headers']): Headers {
  const result = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) result.append(name, each);
  return result;
}

/** The address of a request whose Host and target have been read. */
export function urlOf(request: MountedRequest): URL {
  const { host = 'localhost' } = request.headers;
  const { path = '/', query } = targetOf(request.originalUrl ?? request.url) ?? {};
  const search = query && query.size > 0 ? `?${query.toString()}` : '';
  return URL.parse(`http://${host}${path}${search}`) ?? new URL(`http://localhost${path}${search}`);
}

/**
 * Returns a request of `node:http` as a web request, with its body; a response if it cannot be read.
 * @throws {ConfigurationError} `BODY_CONSUMED`
 */
export async function webRequest(
  name: string,
  request: MountedRequest,
  response: ServerResponse,
  { scheduler, maxBytes }: { readonly scheduler: Scheduler; readonly maxBytes: number },
): Promise<Request | Response> {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  let body: Buffer | undefined;
  if (request.method === 'POST') {
    const read = await readBody(request, { scheduler, maxBytes, timeoutMs: BODY_TIMEOUT_MS });
    if (read === 'consumed')
      throw new ConfigurationError(
        'BODY_CONSUMED',
        `${name}: expected a request with an unread body: put the handler before any body parser`,
      );
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

/** Reads the text of a web request; null if it is longer. */
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

/** Writes a web response as fast as the client reads it; resolves when it is written, or the client is gone. */
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
    // The stream was cut off.
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
