// The events that a relayed agent has sent but that no step has processed yet. Events from outside are validated here,
// and truncated before they are stored.
//
// Invariants
//   RELAY-INBOX-1. The number of pending events and their total size, in characters, are limited. An agent that exceeds
//   the limits is released.
//   RELAY-INBOX-2. No event is larger than the journal's limit for one call. Text is truncated, and so are a running
//       tool's title, output and arguments. The content of a permission request is never truncated.

import { z } from 'zod';
import { clip } from '../../values/clip.ts';
import { asJson } from '../../values/json.ts';
import { DEFAULT_MAX_OUTPUT_BYTES, keepOutput } from '../model/tool-run.ts';
import type { RelayEvent } from '../ports/relay.ts';

const MAX_EVENTS = 2_000;
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** The size assumed for an event that is not JSON, for example because it is nested too deeply. */
const UNKNOWN_SIZE = 1024 * 1024;
export const MAX_WORDS = 256 * 1024;
export const MAX_LABEL = 2_000;
const MAX_KIND = 100;
const MAX_ARTIFACT = 8 * 1024 * 1024;
const MAX_CHOICES = 1_000;
/** Sums of tokens and prices above this value are inexact. */
const MAX_COUNT = 1e12;

const anything = z.unknown();
const words = z.string().transform((text) => clip(text, MAX_WORDS));
const label = z.string().transform((text) => clip(text, MAX_LABEL));
const id = z.string().min(1).max(1_000);
const count = z
  .number()
  .min(0)
  .transform((given) => Math.min(given, MAX_COUNT));
const cut = anything.transform((given) => {
  const kept = keepOutput(given ?? null, DEFAULT_MAX_OUTPUT_BYTES);
  return kept.ok ? kept.value : null;
});
const kind = z.string().transform((text) => clip(text, MAX_KIND));
const choice = z.object({ id, label, description: label.optional() });

const eventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session_id'), id }),
  z.object({ type: z.literal('words'), text: words }),
  z.object({ type: z.literal('progress'), text: label }),
  z.object({ type: z.literal('tool_started'), toolId: id, title: label, kind, input: cut }),
  z.object({ type: z.literal('tool_ended'), toolId: id, ok: z.boolean(), output: cut }),
  z.object({
    type: z.literal('permission'),
    requestId: id,
    toolId: id.optional(),
    lasting: label.optional(),
    // Not truncated, because the user's approval covers the whole content.
    title: z.string(),
    kind,
    input: anything,
  }),
  z.object({
    type: z.literal('question'),
    requestId: id,
    text: label,
    options: z.array(choice).max(MAX_CHOICES).optional(),
  }),
  z.object({ type: z.literal('withdrawn'), requestId: id }),
  z.object({
    type: z.literal('artifact'),
    name: id,
    mediaType: id,
    content: z.string().max(MAX_ARTIFACT),
  }),
  z.object({
    type: z.literal('usage'),
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count.optional(),
    cacheWriteTokens: count.optional(),
    reasoningTokens: count.optional(),
    cost: count.optional(),
  }),
  z.object({
    type: z.literal('turn_ended'),
    reason: z.enum(['completed', 'cancelled', 'refused', 'limit', 'failed']),
    message: label.optional(),
  }),
  z.object({ type: z.literal('closed'), message: label }),
]);

/**
 * An unreadable event. `requestId`: the request's id if the event is a request that waits for an answer; otherwise
 * null.
 */
export interface UnreadableEvent {
  readonly why: string;
  readonly requestId: string | null;
}

const requestSchema = z.object({
  type: z.enum(['permission', 'question']),
  requestId: z.string(),
});

/** Parses an event from a relayed agent. */
export function readRelayEvent(given: unknown): RelayEvent | UnreadableEvent {
  const { success, data, error } = eventSchema.safeParse(given);
  if (success) return data;
  const request = requestSchema.safeParse(given);
  return { why: z.prettifyError(error), requestId: request.data?.requestId ?? null };
}

/** The pending events, oldest first. */
export class RelayInbox {
  #events: { readonly event: RelayEvent; readonly size: number }[] = [];
  #size = 0;

  get length(): number {
    return this.#events.length;
  }

  get first(): RelayEvent | undefined {
    return this.#events[0]?.event;
  }

  /**
   * Adds an event. Returns the reason why the agent must be released; null if the event is within the limits
   * (RELAY-INBOX-1).
   */
  push(event: RelayEvent): string | null {
    const last = this.#events.at(-1);
    if (event.type === 'words' && last?.event.type === 'words') {
      this.#events.pop();
      this.#size -= last.size;
      this.#add({ type: 'words', text: clip(last.event.text + event.text, MAX_WORDS) });
      return null;
    }
    if (this.#events.length >= MAX_EVENTS) return `it sent more than ${MAX_EVENTS} events at once`;
    this.#add(event);
    return this.#size > MAX_CHARACTERS
      ? `it sent more than ${MAX_CHARACTERS} characters at once`
      : null;
  }

  shift(): RelayEvent | undefined {
    const taken = this.#events.shift();
    this.#size -= taken?.size ?? 0;
    return taken?.event;
  }

  find(isIt: (event: RelayEvent) => boolean): RelayEvent | undefined {
    return this.#events.find(({ event }) => isIt(event))?.event;
  }

  remove(event: RelayEvent): void {
    const at = this.#events.findIndex((one) => one.event === event);
    const [taken] = at < 0 ? [] : this.#events.splice(at, 1);
    this.#size -= taken?.size ?? 0;
  }

  clear(): void {
    this.#events = [];
    this.#size = 0;
  }

  #add(event: RelayEvent): void {
    const size = sizeOf(event);
    this.#events.push({ event, size });
    this.#size += size;
  }
}

/**
 * Returns the length of an event in characters. Text is the most frequent event, so it is counted without conversion.
 */
function sizeOf(event: RelayEvent): number {
  if (event.type === 'words') return event.text.length;
  const json = asJson(event);
  return json.ok ? json.text.length : UNKNOWN_SIZE;
}
