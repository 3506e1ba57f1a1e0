// Cuts texts and lists to the size of one answer of a tool, as JSON in UTF-8.

import { byteLength } from '../values/json.ts';
import { head } from '../values/clip.ts';

/** Room for the numbers and names that come with a page or a list. */
const FRAME_BYTES = 120;
const LEAST_BYTES = 64;

export interface Page {
  readonly text: string;
  readonly offset: number;
  /** The offset of the next page; null if this was the last. */
  readonly nextOffset: number | null;
  readonly totalChars: number;
}

/** Returns as much of the text from `offset` on as fits beside `frame`. */
export function pageOf(text: string, offset: number, pageBytes: number, frame: object): Page {
  const room = Math.max(LEAST_BYTES, pageBytes - FRAME_BYTES - jsonBytes(frame));
  let page = head(text.slice(offset, offset + room), room);
  // Quoting a text makes it longer; by how much depends on the text.
  while (jsonBytes(page) > room) page = head(page, Math.floor(page.length / 2));
  const end = offset + page.length;
  return {
    text: page,
    offset,
    nextOffset: end < text.length ? end : null,
    totalChars: text.length,
  };
}

/** Returns the first items, as many as fit. */
export function fitting<T>(items: readonly T[], pageBytes: number): T[] {
  const fit: T[] = [];
  let bytes = FRAME_BYTES;
  for (const item of items) {
    bytes += jsonBytes(item) + 1;
    if (bytes > pageBytes) break;
    fit.push(item);
  }
  return fit;
}

function jsonBytes(value: unknown): number {
  return byteLength(JSON.stringify(value));
}
