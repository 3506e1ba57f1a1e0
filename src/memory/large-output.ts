// Stores an output that is too large for one read in working memory. The output is replaced with an excerpt that states
// the output's size and how to read the rest. The replacement is plain JSON, and marks everything that is cut.
//
// Owns:     the form of the replacement, and the marker on the tool that reads stored outputs.
// Does not: decide which outputs are too large for a reader (its callers do).
//
// Invariants
//   LARGE-OUTPUT-1. The replacement of a large output is JSON of at most `maxInlineBytes` and is marked with
//       `truncated`.
//   LARGE-OUTPUT-2. The replacement contains a reference only if the memory has confirmed the write.
//   LARGE-OUTPUT-3. If the memory refuses the write or fails, the replacement has no reference but still contains the
//   beginning of the output.

import type { JSONValue } from 'ai';
import { messageOf } from '../values/errors.ts';
import { byteLength, isLongerThan } from '../values/json.ts';
import { clip, head } from '../values/clip.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import type { LargeOutput } from '../actors/contracts/outcome.ts';
import { raceAbort } from '../values/race-abort.ts';

export interface LargeOutputOptions {
  /** Stores the output. Without a memory, the output is only truncated. */
  readonly memory?: WorkingMemory | undefined;
  readonly owner: MemoryOwner;
  /** The output's key in the owner's namespace. */
  readonly key: string;
  /** The size above which an output is large, in bytes of UTF-8 (of the text or the JSON). At least 1024. */
  readonly maxInlineBytes: number;
  /** The name of the reader's tool that reads working memory, or null if there is none. */
  readonly readWith?: string | null | undefined;
  /** Aborts when the caller no longer waits for the memory. */
  readonly signal?: AbortSignal | undefined;
  /** Receives errors from the memory. */
  readonly report?: ((error: unknown, where: string) => void) | undefined;
}

/** Marks the tool that reads entries, so that a hint can name that tool. */
export const READS_MEMORY: unique symbol = Symbol.for('offstage.readsMemory');

/** The size of the excerpt. It is enough to recognise the output. */
const EXCERPT_BYTES = 4096;
const MAX_REASON_CHARS = 200;

/**
 * Returns the value, or its replacement if the value is too large. Never rejects. Resolves as soon as the memory
 * answers or the signal aborts. `value` must be JSON.
 */
export async function keepLargeOutput(
  value: JSONValue,
  options: LargeOutputOptions,
): Promise<JSONValue> {
  const text = textOf(value);
  if (!isLongerThan(text, options.maxInlineBytes)) return value;
  return { ...(await largeOutput(value, text, options)) };
}

/** Returns whether a value is too large. */
export function isLargeValue(value: JSONValue, maxInlineBytes: number): boolean {
  return isLongerThan(textOf(value), maxInlineBytes);
}

function textOf(value: JSONValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the replacement for this text, with an excerpt and a reference to the whole `value`. Never rejects. */
export async function largeOutput(
  value: JSONValue,
  text: string,
  options: LargeOutputOptions,
): Promise<LargeOutput> {
  const { maxInlineBytes, readWith = null } = options;
  const kept = await keep(value, options);
  const reference = 'key' in kept ? kept.key : null;
  const frame = {
    truncated: true as const,
    originalBytes: byteLength(text),
    reference,
    howToRead: 'key' in kept ? howTo(kept.key, readWith) : kept.reason,
  };
  const room = maxInlineBytes - byteLength(JSON.stringify({ ...frame, excerpt: '' }));
  const wanted = reference === null ? room : Math.min(room, EXCERPT_BYTES);
  return { ...frame, excerpt: excerptOf(text, Math.max(0, wanted)) };
}

/** Returns whether the value is the replacement of a large output. */
export function isLargeOutput(value: unknown): value is LargeOutput {
  try {
    return (
      typeof value === 'object' &&
      value !== null &&
      'truncated' in value &&
      value.truncated === true &&
      'howToRead' in value
    );
  } catch {
    return false;
  }
}

async function keep(
  value: JSONValue,
  { memory, owner, key, report, signal }: LargeOutputOptions,
): Promise<{ readonly key: string } | { readonly reason: string }> {
  if (!memory) return { reason: 'The rest is not kept. Ask for less at a time.' };
  try {
    const saving = memory.save(owner, { key, value, category: 'large-output' });
    const answer = await (signal ? raceAbort(saving, signal) : saving);
    return answer.ok ? { key: answer.key } : { reason: notKept(answer.error.message) };
  } catch (error) {
    report?.(error, 'working memory');
    return { reason: notKept(messageOf(error)) };
  }
}

function howTo(key: string, readWith: string | null): string {
  return readWith === null
    ? 'The whole is kept under the reference; you have no tool to read it.'
    : `Call ${readWith} with key ${JSON.stringify(key)}; it comes in pages.`;
}

function notKept(reason: string): string {
  return `The rest could not be kept: ${clip(reason, MAX_REASON_CHARS)}`;
}

/** Cuts the text so that its JSON fits the limit. */
function excerptOf(text: string, maxBytes: number): string {
  let excerpt = head(text, maxBytes);
  // The limit already includes the quotes, but escapes make the text longer.
  while (excerpt !== '' && byteLength(JSON.stringify(excerpt)) - 2 > maxBytes)
    excerpt = head(excerpt, Math.floor(excerpt.length * 0.75));
  return excerpt;
}

/** Returns the name of the tool that reads entries, or null if the toolset has none. */
export function memoryReaderIn(tools: Readonly<Record<string, unknown>>): string | null {
  const found = Object.entries(tools).find(
    ([name, held]) =>
      name === 'get_from_working_memory' ||
      (typeof held === 'object' && held !== null && READS_MEMORY in held),
  );
  return found?.[0] ?? null;
}
