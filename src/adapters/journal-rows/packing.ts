// Packs a long event: the number of a dictionary, and the output of `deflate` with it.
//
// Does not: pack short events. A session writes them all the time, and packing one takes longer than storing
//           it.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { DICTIONARIES } from './dictionaries.ts';

/** In characters: about what fits into a page of SQLite. */
const PACKED_FROM = 4000;
/**
 * Text of this length repeats itself: searching for the best match takes three times as long, for a tenth
 * less.
 */
const FAST_FROM = 64_000;

/** The limit of an event as JSON, in bytes: a small packed event must not fill the memory. */
export const MAX_EVENT_BYTES = 256 * 1024 * 1024;

/** Returns the packed bytes; null: the event is stored as it is. */
export function packed(text: string): Uint8Array | null {
  if (text.length < PACKED_FROM) return null;
  const level = text.length < FAST_FROM ? 6 : 3;
  const bytes = deflateRawSync(text, { level, dictionary: DICTIONARIES.at(-1) });
  return Buffer.concat([Buffer.of(DICTIONARIES.length), bytes]);
}

/** @throws for bytes that were not packed. */
export function unpacked(bytes: Uint8Array): string {
  const [number = 0] = bytes;
  const dictionary = DICTIONARIES[number - 1];
  if (!dictionary)
    throw new Error(`Expected a dictionary from 1 to ${DICTIONARIES.length}, got ${number}`);
  return inflateRawSync(bytes.subarray(1), {
    dictionary,
    maxOutputLength: MAX_EVENT_BYTES,
  }).toString();
}
