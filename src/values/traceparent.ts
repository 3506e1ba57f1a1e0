// The headers of W3C Trace Context, as strangers send them.

/** The span that work elsewhere is below, as W3C Trace Context writes it. */
export interface TraceContext {
  readonly traceparent: string;
  /** Entries of tracing systems, as they sent them. @defaultValue none */
  readonly tracestate?: string;
}

/** A later version may have more fields; nothing longer than this is read. */
const MAX_CHARS = 512;
const FORM =
  /^(?<version>(?!ff)[0-9a-f]{2})-(?<trace>(?!0{32})[0-9a-f]{32})-(?<span>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/**
 * Returns the `traceparent` in version 00. Undefined: it is none, which the standard has its reader ignore, as if
 * nothing had been sent.
 */
export function readTraceparent(given: unknown): string | undefined {
  if (typeof given !== 'string' || given.length > MAX_CHARS) return undefined;
  const { version, trace, span, flags = '', more } = FORM.exec(given)?.groups ?? {};
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  // Of the flags, the sampling alone is defined.
  const sampled = Number.parseInt(flags, 16) & 1;
  return `00-${trace}-${span}-0${sampled}`;
}

/** Returns what can be read of a trace context; undefined: nothing, and nothing is said. */
export function readTraceContext(given: unknown): TraceContext | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { traceparent: own, tracestate } = given as Readonly<Record<string, unknown>>;
  const traceparent = readTraceparent(own);
  if (traceparent === undefined) return undefined;
  const isState = typeof tracestate === 'string' && tracestate.length <= MAX_CHARS;
  return isState ? { traceparent, tracestate } : { traceparent };
}
