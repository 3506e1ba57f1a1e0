// Classifies the end of a connection and decides whether a retry makes sense. Errors that may disappear on their own
// (network, load, a restart, the 60-minute session limit) are retryable. Errors that require a change (key, model,
// quota, a broken peer) are not.

import { propertiesOf } from '../../values/json.ts';
import { messageOf } from '../../values/errors.ts';

/** How a connection ended: the fields of `transport.closed`. */
export interface Ending {
  /** The WebSocket close code (1000 and above) or the HTTP status (below 1000); `null` if there was neither. */
  readonly code: number | null;
  readonly reason: string;
  readonly retryable: boolean;
}

const CLOSE_CODES: Readonly<
  Record<number, { readonly text: string; readonly retryable: boolean }>
> = {
  1000: { text: 'The server ended the session', retryable: false },
  // OpenAI ends a session with 1001 when the session reaches its maximum duration.
  1001: { text: 'The server is going away', retryable: true },
  1002: { text: 'Protocol error', retryable: false },
  1003: { text: 'Unsupported data', retryable: false },
  1005: { text: 'The server closed without a reason', retryable: true },
  1006: { text: 'The connection was lost', retryable: true },
  1007: { text: 'Invalid data', retryable: false },
  1008: { text: 'Refused by policy', retryable: false },
  1009: { text: 'Message too big', retryable: false },
  1011: { text: 'The server failed', retryable: true },
  1012: { text: 'The server restarts', retryable: true },
  1013: { text: 'The server is overloaded', retryable: true },
  1014: { text: 'Bad gateway', retryable: true },
  3000: { text: 'Not authorized', retryable: false },
  3003: { text: 'Forbidden', retryable: false },
  3008: { text: 'Timeout', retryable: true },
};

/** OpenAI's own codes and types for errors that a retry may fix. All other errors are errors of the client. */
const TRANSIENT_REASON = /server_error|rate_limit|overloaded|unavailable|timeout|expired/i;

/**
 * Interprets a close frame. For application codes (3xxx, 4xxx), the reason contains the meaning:
 * `invalid_request_error.invalid_api_key`.
 */
export function classifyClose(code: number, reason: string): Ending {
  const known = CLOSE_CODES[code];
  const text = known?.text ?? 'The server closed the connection';
  return {
    code,
    reason: reason === '' ? `${text} (${code})` : `${text} (${code}): ${reason}`,
    retryable: known?.retryable ?? TRANSIENT_REASON.test(reason),
  };
}

/** Interprets an error event that is the response to the first client event. */
export function classifyRefusedStart(error: {
  readonly type: string;
  readonly code?: string | null;
  readonly message: string;
}): Ending {
  return {
    code: null,
    reason: `The server refused the session: ${error.message}`,
    retryable: TRANSIENT_REASON.test(`${error.type} ${error.code ?? ''}`),
  };
}

/** Interprets the status of the response to an upgrade request that was refused. */
export function classifyHttp(status: number, body: string): Ending {
  const { code, message } = readErrorBody(body);
  const detail = [code, message].filter((part) => part !== undefined).join(': ');
  // Waiting does not restore the credit of an account.
  const outOfQuota = code === 'insufficient_quota';
  return {
    code: status,
    reason:
      detail === ''
        ? `The server refused the connection (HTTP ${status})`
        : `The server refused the connection (HTTP ${status}): ${detail}`,
    retryable: !outOfQuota && (status === 408 || status === 425 || status === 429 || status >= 500),
  };
}

const TRANSIENT_ERRORS: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** Interprets an error that occurred before the socket was open: network, name, certificate, bad header. */
export function classifyError(error: unknown): Ending {
  const code = errorCodeOf(error);
  const message = messageOf(error);
  return {
    code: null,
    // When connecting to several IP addresses fails (AggregateError), the error has a code and an empty message.
    reason: `Could not connect: ${message === '' ? (code ?? 'unknown error') : message}`,
    retryable: code !== undefined && TRANSIENT_ERRORS.has(code),
  };
}

function errorCodeOf(error: unknown): string | undefined {
  const { code } = propertiesOf(error);
  return typeof code === 'string' ? code : undefined;
}

const MAX_DETAIL_LENGTH = 300;

/** Reads `{"error": {"code", "message"}}`. For any other text, returns the beginning of the text. */
function readErrorBody(body: string): { readonly code?: string; readonly message?: string } {
  const text = body.trim();
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return text === '' ? {} : { message: text.slice(0, MAX_DETAIL_LENGTH) };
  }
  const { code, message } = propertiesOf(propertiesOf(parsed)['error'] ?? parsed);
  return {
    ...(typeof code === 'string' && { code }),
    ...(typeof message === 'string' && { message: message.slice(0, MAX_DETAIL_LENGTH) }),
  };
}
