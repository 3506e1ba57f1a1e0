// What Offstage throws. A failure that is part of a life is data (`Outcome`);
// a thrown error means that somebody must act, and its class says who.
// The message names the value and what was expected instead.

interface OffstageErrorOptions {
  readonly cause?: unknown;
}

/** The root of every error that Offstage throws. `code` is stable; the message may change. */
export class OffstageError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options: OffstageErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
  }
}

/** The programmer must act: an option, a definition or a call is wrong. Thrown at construction. */
export class ConfigurationError extends OffstageError {}

/** The author of an adapter must act: the other side sent what its protocol does not allow. Keeps `raw`. */
export class ProtocolError extends OffstageError {
  readonly raw: unknown;
  constructor(
    code: string,
    message: string,
    options: OffstageErrorOptions & { readonly raw?: unknown } = {},
  ) {
    super(code, message, options);
    this.raw = options.raw;
  }
}

/** The caller must act: wait, or shed load. The message names the limit. */
export class CapacityError extends OffstageError {}

/** A provider failed. The supervisor may try again if `retryable`. */
export class ProviderError extends OffstageError {
  readonly retryable: boolean;
  constructor(
    code: string,
    message: string,
    options: OffstageErrorOptions & { readonly retryable?: boolean } = {},
  ) {
    super(code, message, options);
    this.retryable = options.retryable ?? false;
  }
}

/** Nobody must act: the work was stopped on purpose. `reason` says by whom. Never logged as a failure. */
export class CancelledError extends OffstageError {
  readonly reason: string;
  constructor(reason: string, options: OffstageErrorOptions = {}) {
    super('CANCELLED', `Cancelled: ${reason}`, options);
    this.reason = reason;
  }
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  if (typeof thrown === 'string') return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return String(thrown);
  }
}
