// Reads the parts of an untrusted request: its target, host, origin and secret. The functions are pure and never throw,
// whatever the request contains.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The target of a request line. */
export interface Target {
  /** Starts with exactly one `/` and is not decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The authority of an absolute target (`GET http://host/ HTTP/1.1`), which is equivalent to `Host`. */
  readonly authority: string | null;
}

/**
 * Returns the target of this request line; null if the request line is invalid. `new URL(request.url, base)` cannot
 * replace this function, because it throws for `/\`, `http://a:99999/` and `http://[/`.
 */
export function targetOf(url: string | undefined): Target | null {
  if (url === undefined) return null;
  if (url.startsWith('/')) return { ...split(url), authority: null };
  const parsed = /^(?:http|ws)s?:\/\//i.test(url) ? URL.parse(url) : null;
  return parsed && { ...split(`${parsed.pathname}${parsed.search}`), authority: parsed.host };
}

function split(text: string): Pick<Target, 'path' | 'query'> {
  const at = text.indexOf('?');
  const path = at < 0 ? text : text.slice(0, at);
  return {
    // `@google/genai` requests a path that starts with two slashes.
    path: path.replace(/^\/+/, '/'),
    query: new URLSearchParams(at < 0 ? '' : text.slice(at + 1)),
  };
}

/** Returns whether this names the loopback interface, with any port. Other names may result from DNS rebinding. */
export function isLoopbackName(host: string): boolean {
  return /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i.test(host);
}

/** Returns the host names of a server that listens on this port of the loopback interface. */
export function loopbackHosts(port: number): readonly string[] {
  return [`127.0.0.1:${port}`, `localhost:${port}`];
}

/** Returns the token from `Authorization: Bearer …`; null if there is none. */
export function bearerToken({ authorization = '' }: IncomingHttpHeaders): string | null {
  return /^Bearer +(\S(?:.*\S)?) *$/i.exec(authorization)?.[1] ?? null;
}

/** Returns the subprotocol names in `Sec-WebSocket-Protocol`. */
export function offeredProtocols(headers: IncomingHttpHeaders): readonly string[] {
  return (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/**
 * Returns the token in a subprotocol that starts with `prefix`; null if there is none. Browsers use a subprotocol
 * because they cannot set headers.
 */
export function protocolToken(headers: IncomingHttpHeaders, prefix: string): string | null {
  const carrier = offeredProtocols(headers).find((name) => name.startsWith(prefix));
  return carrier === undefined ? null : carrier.slice(prefix.length);
}

/** Compares two texts in a time that depends neither on the secret nor on its length. */
export function isSameSecret(presented: string | null, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(presented ?? ''), digest(expected)) && presented !== null;
}
