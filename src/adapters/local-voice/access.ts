// Who may connect. The server speaks for the user's microphone and model, so beside
// the key it refuses what a web page could reach: requests that carry an Origin
// (unless it is allowed) and names that only pretend to be this machine (DNS rebinding).

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const KEY_PROTOCOL = 'openai-insecure-api-key.';
const LOOPBACK_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i;

/** Why a request is refused before it becomes a WebSocket; `null` when it is not. */
export function forbiddenReason(
  headers: IncomingHttpHeaders,
  allowedOrigins: readonly string[],
): string | null {
  const { host, origin } = headers;
  if (host === undefined || !LOOPBACK_HOST.test(host)) {
    return `Expected the Host to be of the loopback interface, got '${host ?? ''}'.`;
  }
  if (origin !== undefined && !allowedOrigins.includes(origin)) {
    return `The Origin '${origin}' is not allowed.`;
  }
  return null;
}

/** The subprotocol to answer with: never the one that carries the key. */
export function chosenProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has('realtime') ? 'realtime' : false;
}

/** The key that a client presents, as a bearer token or in a subprotocol; `null` for none. */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  const carrier = protocols.find((name) => name.startsWith(KEY_PROTOCOL));
  return carrier === undefined ? null : carrier.slice(KEY_PROTOCOL.length);
}

/** Compares in a time that tells nothing about the key. */
export function sameKey(presented: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(presented), digest(expected));
}
