// Admits clients to the server: the page that it serves itself, with the token of this
// start.

import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  bearerToken,
  isSameSecret,
  loopbackHosts,
  offeredProtocols,
  protocolToken,
} from '../../../src/adapters/listen/access.ts';
import { SUBPROTOCOL, TOKEN_PREFIX } from '../shared/protocol.ts';

/** The origin of our own page. */
export function isOwnOrigin(origin: string, port: number): boolean {
  return loopbackHosts(port).some((host) => origin === `http://${host}`);
}

export interface Gate {
  /** Proves that somebody has seen the printed link. */
  readonly token: string;
  /** A WebSocket of a page that has the token. */
  admits(headers: IncomingHttpHeaders): boolean;
  /** The request carries `Authorization: Bearer <token>`. */
  isAuthorized(headers: IncomingHttpHeaders): boolean;
}

export function createGate(token = randomBytes(24).toString('base64url')): Gate {
  return {
    token,
    admits: (headers) =>
      // Programs send no origin; only pages may connect.
      headers.origin !== undefined &&
      offeredProtocols(headers).includes(SUBPROTOCOL) &&
      isSameSecret(protocolToken(headers, TOKEN_PREFIX), token),
    isAuthorized: (headers) => isSameSecret(bearerToken(headers), token),
  };
}
