// The errors that Offstage throws. A subagent's failure is data (`Outcome`). A thrown error requires action, and its
// class shows who has to act. The message names the value and states what was expected instead.

interface OffstageErrorOptions {
  /** The error that caused this one. @defaultValue none */
  readonly cause?: unknown;
}

/** The base class of every error that Offstage throws. `code` is stable; the message may change. */
export class OffstageError extends Error {
  /** The stable code; `docs/errors.md` lists all codes. */
  readonly code: string;
  constructor(code: string, message: string, options: OffstageErrorOptions = {}) {
    // Untyped callers may pass null, and creating an error must not throw another one.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
  }
}

/** The programmer has to act: an option, a definition or a call is wrong. Thrown at construction. */
export class ConfigurationError extends OffstageError {}

/**
 * The adapter's author has to act: the other side sent a message that violates its protocol. The message is in `raw`.
 */
export class ProtocolError extends OffstageError {
  /** The rejected message, unchanged. */
  readonly raw: unknown;
  constructor(
    code: string,
    message: string,
    options: OffstageErrorOptions & { readonly raw?: unknown } = {},
  ) {
    super(code, message, options);
    this.raw = options?.raw;
  }
}

/** The caller has to act: wait, or reduce the load. The message names the limit. */
export class CapacityError extends OffstageError {}

/** An outside system could not do what was requested; `retryable` is true if a later attempt may succeed. */
export class RetryableError extends OffstageError {
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  constructor(
    code: string,
    message: string,
    options: { readonly retryable: boolean; readonly cause?: unknown },
  ) {
    super(code, message, options);
    this.retryable = options?.retryable ?? false;
  }
}

/** A provider failed. The supervisor may retry if `retryable` is true. */
export class ProviderError extends RetryableError {
  constructor(
    code: string,
    message: string,
    options: OffstageErrorOptions & { readonly retryable?: boolean } = {},
  ) {
    super(code, message, { retryable: false, ...options });
  }
}

/**
 * No action is needed: the work was stopped intentionally. `reason` states who stopped it. It is never logged as a
 * failure.
 */
export class CancelledError extends OffstageError {
  /** A description of why the work was stopped. */
  readonly reason: string;
  constructor(reason: string, options: OffstageErrorOptions = {}) {
    super('CANCELLED', `Cancelled: ${reason}`, options);
    this.reason = reason;
  }
}

/**
 * An operation took longer than its limit. Offstage does not throw this error. It is the `reason` of an `AbortSignal`,
 * or it is reported when the runtime stops waiting for a callback.
 */
export class TimeoutError extends OffstageError {
  constructor(message: string, options: OffstageErrorOptions & { readonly code?: string } = {}) {
    super(options.code ?? 'TIMEOUT', message, options);
  }
}

// Tools, hooks and models may throw anything, such as a revoked Proxy, an object whose getters throw, or an error from
// another realm. The functions below can read such a value without throwing.

/** The maximum number of characters that an error message takes from a thrown value. */
const MAX_MESSAGE_CHARS = 16_000;

const UNREADABLE = 'a value that cannot be read was thrown';

/** Returns the message of any thrown value, at most 16,000 characters. Never throws. */
export function messageOf(thrown: unknown): string {
  const message = textOf(thrown);
  return message.length > MAX_MESSAGE_CHARS
    ? `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…`.toWellFormed()
    : message;
}

/**
 * Returns the stable code of an `OffstageError`, and `fallback` for any other thrown value. Never throws.
 * @defaultValue 'INTERNAL'
 */
export function codeOf(thrown: unknown, fallback = 'INTERNAL'): string {
  return isA(thrown, OffstageError) ? thrown.code : fallback;
}

/** Like `instanceof`, but never throws. A value that cannot be read is not an instance of any class. */
export function isA<T>(
  thrown: unknown,
  type: abstract new (...parameters: never[]) => T,
): thrown is T {
  try {
    return thrown instanceof type;
  } catch {
    return false;
  }
}

/** Returns whether the value is an error of this realm or of another one. Never throws. */
export function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]';
  } catch {
    return false;
  }
}

/**
 * Wraps a caller's error listener so that calling it never throws. If the listener itself throws or rejects, that error
 * is dropped, because there is no other listener to report it to.
 */
export function quietly<Told extends readonly unknown[]>(
  onError: ((...told: Told) => unknown) | undefined,
): (...told: Told) => void {
  return (...told) => {
    try {
      handleRejection(onError?.(...told), () => {});
    } catch {}
  };
}

/**
 * Handles the rejection of a promise that a caller's code returned unexpectedly. Not every promise is an instance of
 * `Promise`: other libraries and other realms have their own promise classes.
 */
export function handleRejection(returned: unknown, rejected: (error: unknown) => void): void {
  if (typeof returned !== 'object' || returned === null || !('then' in returned)) return;
  Promise.resolve(returned).then(undefined, rejected);
}

function textOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  try {
    if (isError(thrown)) {
      // The author of the error may have assigned any value to `message` and `name`.
      const { message, name }: { message: unknown; name: unknown } = thrown;
      if (typeof message === 'string') return message;
      return `${typeof name === 'string' ? name : 'Error'} without a message`;
    }
    if (typeof thrown === 'function') return `function ${thrown.name}`;
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return textOfUnserializable(thrown);
  }
}

/** Formats a value that JSON cannot represent: a cycle, deep nesting, a BigInt, or a getter that throws. */
function textOfUnserializable(thrown: unknown): string {
  try {
    const text: unknown = String(thrown);
    return typeof text === 'string' ? text : UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}
