// The spans of one scope: the open spans, and the contexts that a later span may use as a parent or a link.
//
// Owns:     writing spans under keys that let a later process find them.
// Does not: interpret events (`scope-fold.ts`), or export spans (the app's SDK does).

import {
  type Attributes,
  INVALID_SPAN_CONTEXT,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import type { TracedWork } from '../../actors/ports/journal.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import * as names from './names.ts';

/** Describes a span independently of the process that started it. */
interface Work {
  readonly name: string;
  readonly kind: SpanKind;
  /** The key of the parent. An unknown key stands for the root. */
  readonly parent: string;
  readonly attributes: Attributes;
}

/** The spans that an entry starts, and the actions to run once the entry has been written. */
export interface Written {
  /** The `traceparent` of each span, by key. */
  readonly begun: Record<string, string>;
  readonly following: (() => void)[];
}

export const ROOT = 'root';
export const TURN = 'turn';
/** The turn's model call. */
export const REPLY = 'reply';
/** The user's utterance. */
export const WORDS = 'words';
/** The span of the caller that sent the user's latest message. */
export const CALLER = 'caller';
/** The maximum number of stored contexts, not counting the root's. The oldest contexts are removed first. */
const MAX_CONTEXTS = 500;

export class ScopeSpans {
  readonly #scope: string;
  readonly #contexts = new Map<string, SpanContext>();
  /** Spans that have started and not ended, in any process. */
  readonly running = new Map<string, Work>();
  /** The open spans that this process started. */
  readonly #spans = new Map<string, Span>();
  /** The output for the current entry; null while entries are read without writing spans. */
  #writing: (Written & { readonly tracer: Tracer }) | null = null;

  constructor(scope: string) {
    this.#scope = scope;
  }

  /** Writes the spans that `fold` starts and ends. */
  write(tracer: Tracer, fold: (begun: Written['begun']) => void): Written {
    const written: Written = { begun: {}, following: [] };
    this.#writing = { ...written, tracer };
    try {
      fold(written.begun);
    } finally {
      this.#writing = null;
    }
    return written;
  }

  begin(
    key: string,
    name: string,
    at: number,
    { kind = SpanKind.INTERNAL, parent, attributes }: Omit<Work, 'name' | 'kind'> & Partial<Work>,
    links: Link[] = [],
  ): void {
    this.running.set(key, { name, kind, parent, attributes });
    if (!this.#writing) return;
    const above = this.#contexts.get(parent) ?? (key === ROOT ? undefined : this.rootAt(at));
    const span = this.#writing.tracer.startSpan(
      name,
      {
        kind,
        startTime: new Date(at),
        links,
        attributes: {
          ...attributes,
          [names.CONVERSATION_ID]: this.#scope,
          [names.SESSION_ID]: this.#scope,
        },
      },
      above ? trace.setSpanContext(ROOT_CONTEXT, above) : ROOT_CONTEXT,
    );
    // Ends a span that is still open because the event that should have ended it was missed.
    this.#spans.get(key)?.end(new Date(at));
    this.#spans.set(key, span);
    this.remember(key, span.spanContext());
    this.#writing.begun[key] = traceparentOf(span.spanContext());
  }

  end(key: string, at: number, attributes: Attributes = {}): void {
    this.running.delete(key);
    const span = this.#spans.get(key);
    if (!span) return;
    this.#spans.delete(key);
    this.#writing?.following.push(() => {
      describe(span, attributes);
      if (attributes[names.ERROR_TYPE] !== undefined)
        span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(new Date(at));
    });
  }

  note(key: string, attributes: Attributes): void {
    const span = this.#spans.get(key);
    if (span) this.#writing?.following.push(() => describe(span, attributes));
  }

  /** Links an open span to another span. */
  link(key: string, to: string, link: string): void {
    const span = this.#spans.get(key);
    const links = this.linkTo(to, link);
    if (span) this.#writing?.following.push(() => span.addLinks(links));
  }

  linkTo(key: string, link: string): Link[] {
    const context = this.#contexts.get(key);
    return context ? [{ context, attributes: { [names.LINK]: link } }] : [];
  }

  /** Starts the trace. @param caller The key of the parent span. */
  beginTrace(at: number, caller: string): void {
    this.begin(ROOT, 'offstage.session', at, { parent: caller, attributes: {} });
    this.end(ROOT, at);
  }

  /** Returns the root of the trace, which starts together with the first span under it. */
  rootAt(at: number): SpanContext {
    const known = this.#contexts.get(ROOT);
    if (known) return known;
    this.beginTrace(at, '');
    return this.#contexts.get(ROOT) ?? INVALID_SPAN_CONTEXT;
  }

  /** Restarts the spans that were open when the previous process ended. */
  takeUp(at: number, homeOf: (key: string) => string): void {
    this.#spans.clear();
    const running = [...this.running];
    this.running.clear();
    for (const [key, work] of running) {
      // The lead agent's turn, its calls and the user's utterance end together with their process.
      if (isOfTurn(key)) continue;
      const parent = work.parent.startsWith('subagent:') ? work.parent : homeOf(key);
      this.begin(key, work.name, at, { ...work, parent }, this.linkTo(key, 'continues'));
    }
  }

  /** Ends the open spans, because this process gives up the scope. */
  leave(at: number): void {
    for (const span of this.#spans.values()) span.end(new Date(at));
    this.#spans.clear();
  }

  /** Returns the first known context among these keys. */
  contextOf(...keys: readonly string[]): SpanContext | undefined {
    for (const key of keys) {
      const context = this.#contexts.get(key);
      if (context) return context;
    }
    return undefined;
  }

  /** Returns the span of the current work or of the work that contains it; null if there is none. */
  spanOf({ unit, part }: Omit<TracedWork, 'scope'>): SpanContext | null {
    const isLead = unit === this.#scope;
    const whole = isLead ? TURN : `subagent:${unit}`;
    const own = !part
      ? whole
      : part === 'model'
        ? isLead
          ? REPLY
          : `step:${unit}`
        : isLead
          ? `call:${part.callId}`
          : `tool:${unit}:${part.callId}`;
    const span = this.#spans.get(own) ?? this.#spans.get(whole);
    return span?.spanContext() ?? null;
  }

  /** Stores a span that an event names. Returns whether the name could be read. */
  rememberNamed(key: string, traceparent: string): boolean {
    const context = contextOf(traceparent);
    if (context) this.remember(key, context);
    return context !== null;
  }

  remember(key: string, context: SpanContext): void {
    this.#contexts.delete(key);
    this.#contexts.set(key, context);
    if (this.#contexts.size <= MAX_CONTEXTS) return;
    for (const oldest of this.#contexts.keys())
      if (oldest !== ROOT) {
        this.#contexts.delete(oldest);
        return;
      }
  }
}

/** The model of a request is known only once the model has answered. */
function describe(span: Span, attributes: Attributes): void {
  span.setAttributes(attributes);
  const { [names.REQUEST_MODEL]: model } = attributes;
  if (typeof model === 'string') span.updateName(`chat ${model}`);
}

/** Whether the key belongs to a lead agent's turn, to one of the turn's calls, or to the user's utterance. */
export function isOfTurn(key: string): boolean {
  return key === TURN || key === REPLY || key === WORDS || key.startsWith('call:');
}

/** Returns the W3C Trace Context header `traceparent`. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

export function contextOf(given: string): SpanContext | null {
  const [, traceId, spanId, flags] = readTraceparent(given)?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
