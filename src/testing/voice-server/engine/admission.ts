// Decides who may connect, and with which protocol. The decision depends on the path, on the key (which may be in any
// place where the protocol's clients send it) and on ephemeral tokens.

import { presentedKey } from '../../../adapters/local-voice/access.ts';
import type { VoiceWire } from './control.ts';
import type { TokenIssuer } from './token-issuer.ts';

/** The response to an upgrade. */
export type Admission =
  /** `preset`: the session configuration that an ephemeral token prescribes. */
  | { readonly type: 'welcome'; readonly wire: VoiceWire; readonly preset: unknown }
  /** The client is refused before the socket opens. */
  | { readonly type: 'refused'; readonly status: number; readonly message: string }
  /** The socket opens, the server may send an event, and then it closes the socket. */
  | {
      readonly type: 'expelled';
      readonly event: object | null;
      readonly code: number;
      readonly reason: string;
    };

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

const REALTIME_PATH = /^\/v1\/realtime\/?$/;
const LIVE_PATH = /^\/v1\/live\/sessions(?:\/[^/]+\/fork)?\/?$/;
const GEMINI_PATH =
  /^\/ws\/google\.ai\.generativelanguage\.v1(?:beta|alpha)?\.GenerativeService\.BidiGenerateContent(Constrained)?\/?$/;

const CLOSE_UNAUTHORIZED = 3000;
const CLOSE_INVALID = 1007;

/** Returns the protocol for this path, or null if there is none. */
export function wireOfPath(path: string): VoiceWire | null {
  if (REALTIME_PATH.test(path)) return 'openai-realtime';
  if (LIVE_PATH.test(path)) return 'openai-live';
  return GEMINI_PATH.test(path) ? 'gemini-live' : null;
}

/** Returns the key of a request from a header, the query or a subprotocol, or null if there is none. */
export function keyOf(url: URL, headers: Headers): string | null {
  const google = headers['x-goog-api-key'];
  if (typeof google === 'string' && google !== '') return google;
  const inQuery = url.searchParams.get('access_token') ?? url.searchParams.get('key');
  if (inQuery !== null && inQuery !== '') return inQuery;
  const token = /^Token\s+(\S+)$/i.exec(String(headers['authorization'] ?? ''))?.[1];
  return token ?? presentedKey(headers);
}

/** @param expected The correct key; null accepts any non-empty key */
export function admit(
  url: URL,
  headers: Headers,
  expected: string | null,
  tokens: TokenIssuer,
): Admission {
  const wire = wireOfPath(url.pathname);
  if (wire === null) {
    return { type: 'refused', status: 404, message: `No wire is spoken at ${url.pathname}` };
  }
  const key = keyOf(url, headers);
  const token = key === null ? null : tokens.redeem(key);
  if (token !== null) return admitWithToken(wire, url, token);
  if (key !== null && (expected === null || key === expected)) {
    if (wire === 'openai-realtime' && !url.searchParams.has('model')) return missingModel;
    return { type: 'welcome', wire, preset: undefined };
  }
  return unauthorized(wire, key);
}

function admitWithToken(
  wire: VoiceWire,
  url: URL,
  token: NonNullable<ReturnType<TokenIssuer['redeem']>>,
): Admission {
  if (token.wire !== wire) return unauthorized(wire, '');
  if (token.problem !== null) {
    return wire === 'gemini-live'
      ? { type: 'expelled', event: null, code: CLOSE_INVALID, reason: token.problem }
      : unauthorized(wire, '');
  }
  // Gemini accepts tokens only for the constrained method.
  if (wire === 'gemini-live' && !url.pathname.includes('Constrained')) {
    const reason = 'API key not valid. Please pass a valid API key.';
    return { type: 'expelled', event: null, code: CLOSE_INVALID, reason };
  }
  return { type: 'welcome', wire, preset: token.preset };
}

const missingModel: Admission = {
  type: 'expelled',
  event: {
    type: 'error',
    error: {
      type: 'invalid_request_error',
      code: 'missing_model',
      message: 'You must provide a model parameter.',
      param: null,
    },
  },
  code: 4000,
  reason: 'invalid_request_error.missing_model',
};

/** Rejects a client without a valid key, in the same way as the real server of its protocol. */
function unauthorized(wire: VoiceWire, key: string | null): Admission {
  const type = 'invalid_request_error';
  switch (wire) {
    case 'openai-realtime': {
      const code = key === null ? null : 'invalid_api_key';
      const message =
        key === null
          ? 'Missing bearer or basic authentication in header'
          : 'Incorrect API key provided.';
      const error = { type, code, message, param: null };
      const reason = code === null ? type : `${type}.${code}`;
      return {
        type: 'expelled',
        event: { type: 'error', error },
        code: CLOSE_UNAUTHORIZED,
        reason,
      };
    }
    case 'openai-live':
      return { type: 'refused', status: 401, message: 'Incorrect API key provided.' };
    case 'gemini-live': {
      const reason = 'API key not valid. Please pass a valid API key.';
      return { type: 'expelled', event: null, code: CLOSE_INVALID, reason };
    }
  }
}
