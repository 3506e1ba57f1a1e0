// Makes values from models, providers, tools and users storable, so that every database and wire format preserves their
// texts and JSON can represent them.
//
// A commit unit's mailbox applies `storable` to each event, so that memory and journal agree. Code that accepts ids from
// outside applies `storableId` first, so that the id is the same in the event, in the actor's name and in the answer.
//
// Invariants
//   STORE-1. The result of `storableText` contains no null character and no half of a surrogate pair.
//   STORE-2. `storable` and `storableId` are pure and idempotent. A value that needs no change is returned as is,
//       without being copied.
//   STORE-3. Two different ids stay different (except for collisions of a 64-bit hash for ids that are too long).

import { head } from './clip.ts';

/** Longer ids are shortened. Most ids from providers have 30 to 60 characters. */
const MAX_ID_CHARS = 256;
/** `JSON.stringify` is recursive and overflows the stack at about 5,000 levels. */
const MAX_DEPTH = 1000;

const REPLACEMENT = '\uFFFD';
const TOO_DEEP = '[nested too deeply]';
const CIRCULAR = '[circular]';

/** Returns the text with U+FFFD in place of each null character and each half of a surrogate pair (STORE-1). */
export function storableText(text: string): string {
  if (isStorable(text)) return text;
  return text.toWellFormed().replaceAll('\0', REPLACEMENT);
}

/** Returns an id of at most 256 characters, equal for equal ids and different for different ids (STORE-3). */
export function storableId(id: string): string {
  const text = isStorable(id)
    ? id
    : id.replaceAll(
        /\0|\p{Surrogate}/gu,
        (character) => REPLACEMENT + character.charCodeAt(0).toString(16).padStart(4, '0'),
      );
  if (text.length <= MAX_ID_CHARS) return text;
  return `${head(text, MAX_ID_CHARS - 17)}~${hashOf(text)}`;
}

/**
 * Returns the value with storable texts and keys at any depth; a `bigint` becomes a string. Objects below level 1,000
 * and circular references are replaced by a placeholder text.
 */
export function storable<T>(value: T): T {
  return isMade(value, []) ? value : (made(value, []) as T);
}

/** Returns whether the text contains no null character and no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Returns whether `made` would return the value itself, without making a copy. This is true for almost all values. */
function isMade(value: unknown, within: object[]): boolean {
  if (typeof value === 'string') return isStorable(value);
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  const isArray = Array.isArray(value);
  if (!isArray && !isPlain(value)) return true;
  if (within.length >= MAX_DEPTH || within.includes(value)) return false;
  within.push(value);
  if (isArray) {
    for (const item of value as readonly unknown[]) if (!isMade(item, within)) return false;
  } else {
    for (const key of Object.keys(value))
      if (!isStorable(key) || !isMade((value as Readonly<Record<string, unknown>>)[key], within))
        return false;
  }
  within.pop();
  return true;
}

function made(value: unknown, within: object[]): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  const isArray = Array.isArray(value);
  // Dates and similar objects define their JSON form themselves.
  if (!isArray && !isPlain(value)) return value;
  if (within.includes(value)) return CIRCULAR;
  if (within.length >= MAX_DEPTH) return TOO_DEEP;
  within.push(value);
  const copy = isArray ? madeItems(value, within) : madeObject(value, within);
  within.pop();
  return copy;
}

function madeItems(items: readonly unknown[], within: object[]): readonly unknown[] {
  let copy: unknown[] | null = null;
  for (const [at, item] of items.entries()) {
    const to = made(item, within);
    if (!copy && !Object.is(to, item)) copy = items.slice(0, at);
    copy?.push(to);
  }
  return copy ?? items;
}

function madeObject(object: object, within: object[]): object {
  const entries = Object.entries(object);
  let isChanged = false;
  const copy = entries.map(([key, value]) => {
    const name = storableText(key);
    const to = made(value, within);
    isChanged ||= name !== key || !Object.is(to, value);
    return [name, to] as const;
  });
  // The property is defined and not assigned, because its name may be `__proto__`.
  return isChanged ? Object.fromEntries(copy) : object;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns 16 hexadecimal digits: FNV-1a, 64 bits. Source: isthe.com/chongo/tech/comp/fnv. */
export function hashOf(text: string): string {
  let hash = 0xcb_f2_9c_e4_84_22_23_25n;
  for (let at = 0; at < text.length; at += 1)
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x1_00_00_00_01_b3n);
  return hash.toString(16).padStart(16, '0');
}

/**
 * Returns 14 letters and digits, which are two 32-bit FNV-1a hashes, one from each end of the text. It is much faster
 * than `hashOf`.
 */
export function shortHashOf(text: string): string {
  let one = 0x811c9dc5;
  let other = 0x811c9dc5 ^ text.length;
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    other = Math.imul(other ^ text.charCodeAt(text.length - 1 - at), 0x01000193);
  }
  return (one >>> 0).toString(36).padStart(7, '0') + (other >>> 0).toString(36).padStart(7, '0');
}
