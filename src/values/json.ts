// Recognises JSON values and measures their size.

import type { JSONValue, ProviderMetadata } from 'ai';
import { isA, messageOf } from './errors.ts';
import { shown } from './plain-checks.ts';

/**
 * The maximum nesting depth of objects and arrays. Journals, schemas and the AI SDK process JSON recursively, so a
 * value with thousands of levels would overflow the stack. Input checks reject values that are nested more deeply.
 */
export const MAX_DEPTH = 200;

/** The error message for a value that is nested too deeply. */
export const TOO_DEEP = `it is nested deeper than ${MAX_DEPTH} levels`;

/** Returns whether the value survives a round trip through a journal and is not nested too deeply. */
export function isJson(value: unknown): value is JSONValue {
  try {
    return isJsonWithin(value, 0);
  } catch {
    // A getter or a Proxy threw an error.
    return false;
  }
}

function isJsonWithin(value: unknown, depth: number): boolean {
  if (value === null) return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean';
  if (depth >= MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every((held) => isJsonWithin(held, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  // A key whose value is undefined is equivalent to a missing key.
  return Object.values(value).every((held) => held === undefined || isJsonWithin(held, depth + 1));
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the value if it is an object, otherwise an empty object. The history contains a call's arguments as an
 * object, because models sometimes write other values, and providers then reject every later request with this history.
 */
export function propertiesOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** Returns whether the value is provider metadata that a journal can store and the SDK accepts in a prompt. */
export function isProviderOptions(value: unknown): value is ProviderMetadata {
  return isRecord(value) && Object.values(value).every(isRecord) && isJson(value);
}

/** Returns whether this JSON has more than 200 levels of nesting. */
export function isTooDeep(json: unknown, depth = 0): boolean {
  if (typeof json !== 'object' || json === null) return false;
  return depth >= MAX_DEPTH || Object.values(json).some((held) => isTooDeep(held, depth + 1));
}

export type AsJson =
  | {
      readonly ok: true;
      readonly value: JSONValue;
      /** The serialized JSON. */
      readonly text: string;
    }
  | { readonly ok: false; readonly message: string };

type Replacer = (this: Record<string, unknown>, key: string, value: unknown) => unknown;

/**
 * Serialises and parses a value like `JSON.stringify` does: applies `toJSON`, and turns undefined into null. Fails for
 * big integers, cycles, a function or symbol as the whole value, more than 200 levels of nesting, and objects whose
 * content JSON would lose, such as a `Map`, a stream or a `Response`.
 */
export function asJson(value: unknown, replacer?: Replacer): AsJson {
  if (typeof value === 'function' || typeof value === 'symbol')
    return { ok: false, message: `a ${typeof value} is not JSON` };
  try {
    const text = JSON.stringify(value, replacer) ?? 'null';
    if (text === '{}' && holdsMore(value))
      return { ok: false, message: `the JSON of ${shown(value)} lacks what it holds` };
    const written = JSON.parse(text) as JSONValue;
    if (isTooDeep(written)) return { ok: false, message: TOO_DEEP };
    return { ok: true, value: written, text };
  } catch (error) {
    // The stack depth depends on the caller, so any overflow means that the value is nested too deeply.
    return { ok: false, message: isA(error, RangeError) ? TOO_DEEP : messageOf(error) };
  }
}

/** Returns whether an object stores its content outside its own properties. */
function holdsMore(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return (
    Symbol.iterator in value ||
    Symbol.asyncIterator in value ||
    ('then' in value && typeof value.then === 'function') ||
    // A response, a request or a blob.
    ('arrayBuffer' in value && typeof value.arrayBuffer === 'function') ||
    value instanceof ArrayBuffer
  );
}

const MAX_BYTES_PER_CHARACTER = 3;
const encoder = new TextEncoder();

/** Returns whether the text is longer than `maxBytes` bytes in UTF-8. */
export function isLongerThan(text: string, maxBytes: number): boolean {
  // Only a long text has to be counted byte by byte.
  return text.length * MAX_BYTES_PER_CHARACTER > maxBytes && byteLength(text) > maxBytes;
}

/** The length of the text in UTF-8 bytes. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** Parses JSON; returns text that is not JSON unchanged. */
export function parsedOrText(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json;
  }
}

/** Returns the same key for two calls of a tool whose arguments differ only in key order. */
export function callKey(toolName: string, input: unknown): string {
  const json = asJson(input ?? {});
  return `${toolName} ${json.ok ? JSON.stringify(json.value, sorted) : String(input)}`;
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
