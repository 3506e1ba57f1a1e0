// What is too large to be read at once: kept in working memory, and in its place an excerpt that
// says so, how large it is and how to read it. Plain JSON; nothing is ever cut in silence.
//
// Owns:     the form of what stands for a large output.
// Does not: decide what is large for whom (its callers do).
//
// Invariants
//   LARGE-OUTPUT-1. What stands for a large output is JSON of at most `maxInlineBytes`, and says `truncated`.
//   LARGE-OUTPUT-2. It names a reference only if the memory has said that it keeps it.
//   LARGE-OUTPUT-3. A memory that refuses or fails costs the reference, never the output's beginning.

import type { JSONValue } from 'ai';
import { messageOf } from '../values/errors.ts';
import { byteLength, isLongerThan } from '../values/json.ts';
import { clip, head } from '../values/clip.ts';
import type { MemoryOwner, WorkingMemory } from '../actors/ports/working-memory.ts';
import { raceAbort } from '../actors/runtime/race-abort.ts';

/** Stands for an output that is too large to be read at once. */
export interface LargeOutput {
  readonly truncated: true;
  /** Its size in UTF-8: of the text itself for a text, else of its JSON. */
  readonly originalBytes: number;
  /** The full path of the whole in working memory; null if it is not kept. */
  readonly reference: string | null;
  /** For a model: what it can do to read the rest. */
  readonly howToRead: string;
  /** The beginning of it. */
  readonly excerpt: string;
}

export interface LargeOutputOptions {
  /** Nothing is kept without it. */
  readonly memory?: WorkingMemory | undefined;
  readonly owner: MemoryOwner;
  /** Where it is kept, in the namespace of the owner. */
  readonly key: string;
  /** What is longer, as UTF-8 of the text or the JSON, is large. At least 1024. */
  readonly maxInlineBytes: number;
  /** The reader's tool for entries of working memory; null if it has none. */
  readonly readWith?: string | null | undefined;
  /** Nobody waits for the memory any more. */
  readonly signal?: AbortSignal | undefined;
  /** Learns of a memory that failed. */
  readonly report?: ((error: unknown, where: string) => void) | undefined;
}

/** So much of what is kept elsewhere is enough to see what it is. */
const EXCERPT_BYTES = 4096;
const MAX_REASON_CHARS = 200;

/**
 * The value itself, or what stands for it where it is too large. Never rejects; resolves
 * as soon as the memory answers or the signal aborts. `value` is JSON.
 */
export async function keepLargeOutput(
  value: JSONValue,
  options: LargeOutputOptions,
): Promise<JSONValue> {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (!isLongerThan(text, options.maxInlineBytes)) return value;
  return { ...(await largeOutput(value, text, options)) };
}

/** What stands for this text: an excerpt, and where the whole of `value` is. Never rejects. */
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

/** Is this what stands for a large output? */
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
    // A Proxy of somebody, whose traps throw.
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

/** So long that its JSON fits. */
function excerptOf(text: string, maxBytes: number): string {
  let excerpt = head(text, maxBytes);
  // Its quotes are counted already; quoting what is within makes it longer.
  while (excerpt !== '' && byteLength(JSON.stringify(excerpt)) - 2 > maxBytes)
    excerpt = head(excerpt, Math.floor(excerpt.length * 0.75));
  return excerpt;
}
