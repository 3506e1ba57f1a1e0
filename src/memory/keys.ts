// The keys of working memory: `subagent/<id>/report/part-1`. A key that starts with a namespace is absolute in every
// operation. Every other key is relative to the caller's namespace.
//
// Invariants
//   KEYS-1. A key means the same in every operation.
//   KEYS-2. A prefix matches whole segments only.

import { clip } from '../values/clip.ts';
import type { MemoryOwner } from '../actors/ports/working-memory.ts';

const KINDS: ReadonlySet<string> = new Set(['session', 'subagent']);

const MAX_KEY_CHARS = 200;

export interface MemoryKey {
  /** `subagent/<id>`. */
  readonly namespace: string;
  /** The whole key. */
  readonly path: string;
}

interface Refused {
  readonly ok: false;
  readonly message: string;
}

export type ReadKey<T> = { readonly ok: true; readonly key: T } | Refused;

/** Returns the owner's own namespace: `session/<id>` or `subagent/<id>`. The id is URL-encoded. */
export function namespaceOf({ sessionId, path }: MemoryOwner): string {
  const id = path.at(-1);
  return id === undefined
    ? `session/${encodeURIComponent(sessionId)}`
    : `subagent/${encodeURIComponent(id)}`;
}

/** Parses the key of an entry from a caller. */
export function readKey(owner: MemoryOwner, key: string): ReadKey<MemoryKey> {
  const checked = segmentsOf(key);
  if (!checked.ok) return checked;
  const { segments } = checked;
  const [kind, id] = segments;
  const isAbsolute = KINDS.has(kind as string);
  if (isAbsolute && segments.length < 3)
    return refuse(key, `a key after the namespace, as in ${kind}/${id ?? '<id>'}/notes`);
  const own = (isAbsolute ? segments.slice(2) : segments).join('/');
  if (own.length > MAX_KEY_CHARS)
    return refuse(key, `a key of at most ${MAX_KEY_CHARS} characters`);
  const namespace = isAbsolute ? `${kind}/${id}` : namespaceOf(owner);
  return { ok: true, key: { namespace, path: `${namespace}/${own}` } };
}

/** Parses a caller's key prefix, relative or absolute; an entire namespace, or all namespaces of a kind, is allowed. */
export function readPrefix(owner: MemoryOwner, prefix: string): ReadKey<string> {
  const checked = segmentsOf(prefix.replace(/\/$/, ''));
  if (!checked.ok) return checked;
  const path = checked.segments.join('/');
  const isAbsolute = KINDS.has(checked.segments[0] as string);
  return { ok: true, key: isAbsolute ? path : `${namespaceOf(owner)}/${path}` };
}

export function hasPrefix(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

type Segments = { readonly ok: true; readonly segments: readonly string[] } | Refused;

function segmentsOf(key: string): Segments {
  const segments = key.split('/');
  const isPath = segments.every(
    (segment) =>
      segment !== '' && segment !== '.' && segment !== '..' && segment.trim() === segment,
  );
  if (!isPath) return refuse(key, 'a path such as report/part-1, without empty segments');
  // An agent could not repeat a key that contains invisible characters.
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(key))
    return refuse(key, 'a key without control characters');
  return { ok: true, segments };
}

const MAX_SHOWN_CHARS = 80;

function refuse(key: string, expected: string): Refused {
  const shown = JSON.stringify(clip(key, MAX_SHOWN_CHARS));
  return { ok: false, message: `Expected ${expected}, got ${shown}` };
}
