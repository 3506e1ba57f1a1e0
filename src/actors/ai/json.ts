// What is JSON, and how large it is.

import type { JSONValue } from 'ai';

/** Would this be the same after it was written to a journal and read again? */
export function isJson(value: unknown): value is JSONValue {
  if (value === null) return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean';
  if (Array.isArray(value)) return value.every(isJson);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  // A key that holds undefined is the same as no key.
  return Object.values(value).every((held) => held === undefined || isJson(held));
}

export type AsJson =
  | {
      readonly ok: true;
      readonly value: JSONValue;
      /** As it was written. */
      readonly text: string;
    }
  | { readonly ok: false; readonly message: string };

type Replacer = (this: Record<string, unknown>, key: string, value: unknown) => unknown;

/**
 * The JSON that `JSON.stringify` makes of it: `toJSON` is applied, undefined is null. Big
 * integers, cycles, and a function or a symbol as the whole value have none.
 */
export function asJson(value: unknown, replacer?: Replacer): AsJson {
  if (typeof value === 'function' || typeof value === 'symbol')
    return { ok: false, message: `a ${typeof value} is not JSON` };
  try {
    const text = JSON.stringify(value, replacer) ?? 'null';
    return { ok: true, value: JSON.parse(text) as JSONValue, text };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : 'it is not JSON' };
  }
}

/**
 * The arguments of a call as a history may hold them: an object. Models write other things now
 * and then, and providers refuse every later request that repeats them.
 */
export function asArguments(input: unknown): object {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
}

const MAX_BYTES_PER_CHARACTER = 3;
const encoder = new TextEncoder();

/** Is it longer than that in UTF-8? */
export function isLongerThan(text: string, maxBytes: number): boolean {
  // Counting bytes is needed for long texts only.
  return text.length * MAX_BYTES_PER_CHARACTER > maxBytes && byteLength(text) > maxBytes;
}

/** Its length in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
