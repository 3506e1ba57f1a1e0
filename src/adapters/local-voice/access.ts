// The key of a client of the OpenAI wires: in a header, or in a subprotocol, where a browser
// can send no header.

import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken, protocolToken } from '../listen/access.ts';

const KEY_PROTOCOL = 'openai-insecure-api-key.';

/** The subprotocol to answer with: never the one that carries the key. */
export const REALTIME_PROTOCOL = 'realtime';

/** The key that a client presents, as a bearer token or in a subprotocol; `null` for none. */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  return bearerToken(headers) ?? protocolToken(headers, KEY_PROTOCOL);
}
