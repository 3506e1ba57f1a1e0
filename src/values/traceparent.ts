// Reads the W3C Trace Context headers that remote callers send.

/** The parent span of work that runs remotely, in the form of W3C Trace Context. */
export interface TraceContext {
  /** The W3C `traceparent` header. */
  readonly traceparent: string;
  /** The entries that the tracing systems have added, unchanged. @defaultValue none */
  readonly tracestate?: string;
}

/** The maximum length of a header that is read. A later version of the header may have more fields. */
const MAX_CHARS = 512;
const FORM =
  /^(?<version>(?!ff)[0-9a-f]{2})-(?<trace>(?!0{32})[0-9a-f]{32})-(?<span>(?!0{16})[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/;

/** Returns the `traceparent` in version 00; undefined if invalid, as the standard says to ignore invalid headers. */
export function readTraceparent(given: unknown): string | undefined {
  if (typeof given !== 'string' || given.length > MAX_CHARS) return undefined;
  const { version, trace, span, flags = '', more } = FORM.exec(given)?.groups ?? {};
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  // Version 00 defines only the sampled flag.
  const sampled = Number.parseInt(flags, 16) & 1;
  return `00-${trace}-${span}-0${sampled}`;
}

/** Returns the valid headers of a trace context; undefined if there is no valid `traceparent`. */
export function readTraceContext(given: unknown): TraceContext | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  const { traceparent: own, tracestate } = given as Readonly<Record<string, unknown>>;
  const traceparent = readTraceparent(own);
  if (traceparent === undefined) return undefined;
  const isState = typeof tracestate === 'string' && tracestate.length <= MAX_CHARS;
  return isState ? { traceparent, tracestate } : { traceparent };
}
