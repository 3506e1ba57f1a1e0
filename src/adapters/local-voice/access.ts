// Reads the client's key from a header or from a subprotocol, because a browser cannot set headers.

import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken, protocolToken } from '../listen/access.ts';

const KEY_PROTOCOL = 'openai-insecure-api-key.';

/** The subprotocol in the server's response. It never contains the key. */
export const REALTIME_PROTOCOL = 'realtime';

/** Returns the key that a client presents as a bearer token or in a subprotocol; `null` if there is none. */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  return bearerToken(headers) ?? protocolToken(headers, KEY_PROTOCOL);
}
