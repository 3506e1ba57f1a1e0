// Reads the headers of W3C Trace Context that remote callers send.

/** The parent span of remote work, as W3C Trace Context writes it. */
export interface TraceContext {
  /** The `traceparent` of the W3C. */
  readonly traceparent: string;
  /** The entries of tracing systems, unchanged. @defaultValue none */
  readonly tracestate?: string;
}

/** The longest header that is read. A later version may have more fields. */
const MAX_CHARS = 512;
const FORM =
  /^(?<version>(?!ff)[0-9a-f]{2})-(?<trace>(?!0{32})[0-9a-f]{32})-(?<span>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/**
 * Returns the `traceparent` in version 00; undefined for an invalid one, which the standard has its reader
 * ignore.
 */
export function readTraceparent(given: unknown): string | undefined {
  if (typeof given !== 'string' || given.length > MAX_CHARS) return undefined;
  const { version, trace, span, flags = '', more } = FORM.exec(given)?.groups ?? {};
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  // Version 00 defines only the flag for sampling.
  const sampled = Number.parseInt(flags, 16) & 1;
  return `00-${trace}-${span}-0${sampled}`;
}

/** Returns the valid headers of a trace context; undefined without a valid `traceparent`. */
export function readTraceContext(given: unknown): TraceContext | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { traceparent: own, tracestate } = given as Readonly<Record<string, unknown>>;
  const traceparent = readTraceparent(own);
  if (traceparent === undefined) return undefined;
  const isState = typeof tracestate === 'string' && tracestate.length <= MAX_CHARS;
  return isState ? { traceparent, tracestate } : { traceparent };
}
