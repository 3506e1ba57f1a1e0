// Who may speak to the server: the page that it serves itself, with the token of this
// start. The names by which it may be called are fixed, so that no other site's name
// can be pointed at it (DNS rebinding).

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SUBPROTOCOL, TOKEN_PREFIX } from '../shared/protocol.ts';

export interface Gate {
  /** Proves that somebody has seen the printed link. */
  readonly token: string;
  /** The request is meant for us and not sent by the page of another site. */
  isOwn(request: IncomingMessage): boolean;
  /** The WebSocket is opened by our own page, with the token. */
  admits(request: IncomingMessage): boolean;
  /** The request carries `Authorization: Bearer <token>`. */
  isAuthorized(request: IncomingMessage): boolean;
}

export function createGate(
  port: () => number,
  token = randomBytes(24).toString('base64url'),
): Gate {
  const hosts = (): string[] => [`127.0.0.1:${port()}`, `localhost:${port()}`];
  const isOwnOrigin = (origin: string): boolean =>
    hosts().some((host) => origin === `http://${host}`);
  const isToken = (given: string): boolean => {
    const expected = Buffer.from(token);
    const bytes = Buffer.from(given);
    // Of the same length in any case: the comparison shall tell nothing by its time.
    const padded = Buffer.alloc(expected.length);
    bytes.copy(padded);
    return timingSafeEqual(padded, expected) && bytes.length === expected.length;
  };
  return {
    token,
    isOwn({ headers }) {
      const { host = '', origin } = headers;
      return hosts().includes(host) && (origin === undefined || isOwnOrigin(origin));
    },
    admits(request) {
      const { origin, 'sec-websocket-protocol': protocols = '' } = request.headers;
      const names = protocols.split(',').map((name) => name.trim());
      const given = names.find((name) => name.startsWith(TOKEN_PREFIX)) ?? '';
      return (
        this.isOwn(request) &&
        origin !== undefined &&
        names.includes(SUBPROTOCOL) &&
        isToken(given.slice(TOKEN_PREFIX.length))
      );
    },
    isAuthorized({ headers }) {
      const [scheme = '', given = ''] = (headers.authorization ?? '').split(' ');
      return scheme.toLowerCase() === 'bearer' && isToken(given);
    },
  };
}
