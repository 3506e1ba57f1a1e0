// Classifies failed model calls, as data: stable codes, and whether a retry may help.

import {
  APICallError,
  EmptyResponseBodyError,
  InvalidArgumentError,
  InvalidMessageRoleError,
  InvalidPromptError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  LoadSettingError,
  MessageConversionError,
  MissingToolResultsError,
  NoContentGeneratedError,
  NoSuchModelError,
  RetryError,
  ToolChoiceViolationError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from 'ai';
import { isA, isError, messageOf, OffstageError, ProviderError } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';

export interface StepError {
  /**
   * `RATE_LIMITED`, `PROVIDER_UNAVAILABLE`, `PROVIDER_TIMEOUT`, `CONNECTION_LOST`,
   * `PROVIDER_UNAUTHORIZED`, `PROVIDER_REFUSED`, `MALFORMED_RESPONSE`, `NO_SUCH_MODEL`,
   * `INVALID_PROMPT`, `UNSUPPORTED`, `TOOL_CHOICE_VIOLATION`, `ABORTED`, `MODEL_ERROR`, or
   * the code of an Offstage error.
   */
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  /** The delay that the provider requests, in milliseconds. */
  readonly retryAfterMs?: number;
}

interface Kind {
  readonly code: string;
  readonly retryable: boolean;
  readonly classes: readonly { isInstance(error: unknown): boolean }[];
}

const kinds: readonly Kind[] = [
  { code: 'NO_SUCH_MODEL', retryable: false, classes: [NoSuchModelError] },
  {
    code: 'PROVIDER_UNAUTHORIZED',
    retryable: false,
    classes: [LoadAPIKeyError, LoadSettingError],
  },
  {
    code: 'INVALID_PROMPT',
    retryable: false,
    classes: [
      InvalidPromptError,
      InvalidArgumentError,
      InvalidMessageRoleError,
      MessageConversionError,
      MissingToolResultsError,
    ],
  },
  {
    code: 'UNSUPPORTED',
    retryable: false,
    classes: [UnsupportedFunctionalityError],
  },
  // Another sample may match.
  { code: 'TOOL_CHOICE_VIOLATION', retryable: true, classes: [ToolChoiceViolationError] },
  {
    code: 'MALFORMED_RESPONSE',
    retryable: true,
    classes: [
      EmptyResponseBodyError,
      InvalidResponseDataError,
      JSONParseError,
      NoContentGeneratedError,
      TypeValidationError,
    ],
  },
];

/** Node's codes for a connection that failed or broke. */
const connectionCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const MAX_MESSAGE_CHARACTERS = 1000;

/**
 * Converts any thrown value of a model call, and never throws itself. An error's own statement whether it is
 * retryable is respected.
 */
export function toStepError(thrown: unknown): StepError {
  try {
    return read(thrown);
  } catch {
    // A Proxy, or a getter, that throws.
    const message = clip(messageOf(thrown), MAX_MESSAGE_CHARACTERS);
    return { code: 'MODEL_ERROR', message, retryable: false };
  }
}

function read(thrown: unknown): StepError {
  if (RetryError.isInstance(thrown)) return read(thrown.lastError);
  const message = clip(messageOf(thrown), MAX_MESSAGE_CHARACTERS);
  if (isA(thrown, OffstageError))
    return {
      code: thrown.code,
      message,
      retryable: isA(thrown, ProviderError) && thrown.retryable,
    };
  if (isCallError(thrown)) return fromCallError(thrown, message);
  const said = saidInStream(thrown);
  if (said) return said;
  if (isError(thrown)) {
    // The SDK's message contains terminal colours and a link.
    if (thrown.name === 'GatewayAuthenticationError' || thrown.name === 'GatewayError')
      return {
        code: 'PROVIDER_UNAUTHORIZED',
        message:
          'The AI gateway refused: set AI_GATEWAY_API_KEY, or pass the model of a provider instead of a string',
        retryable: false,
      };
    if (thrown.name === 'TimeoutError')
      return { code: 'PROVIDER_TIMEOUT', message, retryable: true };
    if (thrown.name === 'AbortError') return { code: 'ABORTED', message, retryable: true };
    if (isConnectionError(thrown)) return { code: 'CONNECTION_LOST', message, retryable: true };
  }
  const kind = kinds.find(({ classes }) => classes.some((of) => of.isInstance(thrown)));
  return { code: kind?.code ?? 'MODEL_ERROR', message, retryable: kind?.retryable ?? false };
}

/** An APICallError, or an error of the gateway, which is a class that `ai` does not export. */
interface CallError {
  readonly isRetryable: boolean;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

function isCallError(thrown: unknown): thrown is CallError {
  if (APICallError.isInstance(thrown)) return true;
  return isError(thrown) && 'isRetryable' in thrown && typeof thrown.isRetryable === 'boolean';
}

/**
 * An error in the middle of a provider's answer is an object, not an Error; the provider's package adds the
 * corresponding status and whether to retry, if known.
 */
function saidInStream(thrown: unknown): StepError | null {
  if (typeof thrown !== 'object' || thrown === null || isError(thrown)) return null;
  const { message, statusCode, code, isRetryable } = thrown as Readonly<Record<string, unknown>>;
  if (typeof message !== 'string') return null;
  const status = [statusCode, code].find((given) => typeof given === 'number');
  const isPassing = status !== undefined && (status === 408 || status === 429 || status >= 500);
  const retryable = typeof isRetryable === 'boolean' ? isRetryable : isPassing;
  return {
    code: status === undefined ? 'MODEL_ERROR' : codeOf(status, retryable),
    message: clip(message, MAX_MESSAGE_CHARACTERS),
    retryable,
  };
}

function fromCallError(error: CallError, message: string): StepError {
  const { cause } = error;
  // The SDK only reports that it could not read an answer that had begun well.
  if (error.statusCode !== undefined && isError(cause) && isConnectionError(cause)) {
    const why = messageOf(cause.cause ?? cause);
    return {
      code: 'CONNECTION_LOST',
      message: `The connection broke off in mid-answer: ${clip(why, MAX_MESSAGE_CHARACTERS)}`,
      retryable: error.isRetryable,
    };
  }
  const retryAfterMs = waitOf(error);
  return {
    code: codeOf(error.statusCode, error.isRetryable),
    message,
    retryable: error.isRetryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

function codeOf(status: number | undefined, isRetryable: boolean): string {
  if (status === undefined) return isRetryable ? 'CONNECTION_LOST' : 'PROVIDER_REFUSED';
  if (status < 300) return 'MALFORMED_RESPONSE';
  if (status === 401 || status === 403) return 'PROVIDER_UNAUTHORIZED';
  if (status === 408) return 'PROVIDER_TIMEOUT';
  if (status === 429) return 'RATE_LIMITED';
  return status >= 500 ? 'PROVIDER_UNAVAILABLE' : 'PROVIDER_REFUSED';
}

/** Returns the delay of `retry-after-ms`, or of `retry-after` in seconds; a date would need a clock. */
function waitOf(error: CallError): number | undefined {
  const headers =
    error.responseHeaders ??
    (APICallError.isInstance(error.cause) ? error.cause.responseHeaders : undefined);
  const milliseconds = Number.parseFloat(headers?.['retry-after-ms'] ?? '');
  if (milliseconds >= 0) return milliseconds;
  const seconds = Number(headers?.['retry-after'] ?? Number.NaN);
  return seconds >= 0 ? seconds * 1000 : undefined;
}

function isConnectionError(error: Error): boolean {
  const codes = [error, error.cause].map((held) =>
    held instanceof Error && 'code' in held ? held.code : undefined,
  );
  return codes.some((code) => typeof code === 'string' && connectionCodes.has(code));
}
