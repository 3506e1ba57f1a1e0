// A long event, packed: the number of a dictionary, and what `deflate` makes of the event with it.
//
// Does not: pack short ones. They are what a session writes all the time, and packing one takes
//           longer than keeping it.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { DICTIONARIES } from './dictionaries.ts';

/** In characters: about what fits into a page of SQLite. */
const PACKED_FROM = 4000;
/** What is so long repeats itself: to look for the best match takes three times as long, for a tenth less. */
const FAST_FROM = 64_000;

/** An event may have so many bytes as JSON: what was packed into little must not fill the memory. */
export const MAX_EVENT_BYTES = 256 * 1024 * 1024;

/** Null: it is kept as it is. */
export function packed(text: string): Uint8Array | null {
  if (text.length < PACKED_FROM) return null;
  const level = text.length < FAST_FROM ? 6 : 3;
  const bytes = deflateRawSync(text, { level, dictionary: DICTIONARIES.at(-1) });
  return Buffer.concat([Buffer.of(DICTIONARIES.length), bytes]);
}

/** @throws for what was not packed. */
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
