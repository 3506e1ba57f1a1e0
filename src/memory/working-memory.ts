// Working memory that lasts until the process ends.
//
// Owns:     the entries by session and namespace; their limits, size and expiry; the permissions; and the full-text
//           search. The search reads one entry per turn of the event loop, so that a search over megabytes does not
//           delay audio.
// Does not: know the subagents. Each caller states its own place in the tree.
//
// Invariants
//   WORKING-MEMORY-1. A session cannot read, change or count the entries of another session (P8).
//   WORKING-MEMORY-4. A refused operation changes nothing.
//   WORKING-MEMORY-5. Only the owner of a namespace can write to it or delete from it.
//   ENTRY-TABLE-2. No reader sees an expired entry, and an expired entry does not count against the limits.
//   ENTRY-TABLE-3. A namespace has at most `maxEntries` entries. The bytes of each entry, each session and the whole
//       table stay within their limits. Nothing is evicted to make room.

import type { JSONValue } from 'ai';
import { byteLength, asJson } from '../values/json.ts';
import type { Environment, Scheduler } from '../actors/ports/environment.ts';
import type {
  MemoryEntry,
  MemoryEntryInfo,
  MemoryFilter,
  MemoryOwner,
  MemoryRefusal,
  NewMemoryEntry,
  WorkingMemory,
  MemoryRefusalCode,
} from '../actors/ports/working-memory.ts';
import { hasPrefix, namespaceOf, readKey, readPrefix, type MemoryKey } from './keys.ts';
import { head } from '../values/clip.ts';
import { countWords, relevance, wordsOf, type WordCounts } from '../values/bm25.ts';
import { ConfigurationError } from '../values/errors.ts';
import { z } from 'zod';

const HOUR_MS = 3_600_000;

/** The limits of working memory: the lifetime, number and size of the entries. */
export interface WorkingMemoryLimits {
  /** The default lifetime of a subagent's entry, in milliseconds. @defaultValue 14400000, 4 hours */
  readonly subagentTtlMs: number;
  /** The default lifetime of a lead agent's entry, in milliseconds. @defaultValue 14400000 */
  readonly sessionTtlMs: number;
  /** The maximum lifetime of an entry, in milliseconds. @defaultValue 604800000, a week */
  readonly maxTtlMs: number;
  /** The maximum number of entries in one namespace. An existing key can always be overwritten. @defaultValue 50 */
  readonly maxEntries: number;
  /** The maximum size of one entry, in bytes of UTF-8. @defaultValue 1048576 */
  readonly maxEntryBytes: number;
  /** The maximum size of one session's entries, with keys and labels, in bytes. @defaultValue 16777216 */
  readonly maxSessionBytes: number;
  /** The maximum size of all sessions' entries together, in bytes. @defaultValue 67108864 */
  readonly maxTotalBytes: number;
}

const defaultWorkingMemoryLimits = {
  subagentTtlMs: 4 * HOUR_MS,
  sessionTtlMs: 4 * HOUR_MS,
  maxTtlMs: 7 * 24 * HOUR_MS,
  maxEntries: 50,
  maxEntryBytes: 1024 ** 2,
  maxSessionBytes: 16 * 1024 ** 2,
  maxTotalBytes: 64 * 1024 ** 2,
} as const satisfies WorkingMemoryLimits;

/** @throws {ConfigurationError} if a limit is unknown or not a whole number ≥ 1, or a default lifetime is above `maxTtlMs`. */
function checkedWorkingMemoryLimits(partial: Partial<WorkingMemoryLimits>): WorkingMemoryLimits {
  const limits = { ...defaultWorkingMemoryLimits, ...partial };
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(defaultWorkingMemoryLimits, name))
      throw new ConfigurationError(
        'INVALID_OPTION',
        `workingMemory: unknown limit \`${name}\`, expected one of ${Object.keys(defaultWorkingMemoryLimits).join(', ')}`,
      );
    if (!Number.isInteger(value) || value < 1)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected \`${name}\` to be a whole number ≥ 1, got \`${String(value)}\``,
      );
  }
  const { maxTtlMs, subagentTtlMs, sessionTtlMs } = limits;
  if (Math.max(subagentTtlMs, sessionTtlMs) > maxTtlMs)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`subagentTtlMs\` and \`sessionTtlMs\` to be at most \`maxTtlMs\`, got ${subagentTtlMs}, ${sessionTtlMs} and ${maxTtlMs}`,
    );
  return limits;
}

/** The options of `workingMemory`: the limits and a source of time. */
export interface WorkingMemoryOptions extends Partial<WorkingMemoryLimits> {
  /** The source of time. By default, the environment of the runtime that uses this memory. */
  readonly environment: Pick<Environment, 'clock' | 'scheduler'>;
}

/** @throws {ConfigurationError} if a limit is not a whole number ≥ 1. */
export function workingMemory({ environment, ...limits }: WorkingMemoryOptions): WorkingMemory {
  return new InMemoryWorkingMemory(environment, checkedWorkingMemoryLimits(limits));
}

const DEFAULT_LIST = 50;
const DEFAULT_MATCHES = 10;

class InMemoryWorkingMemory implements WorkingMemory {
  readonly #environment: WorkingMemoryOptions['environment'];
  readonly #limits: WorkingMemoryLimits;
  readonly #table: EntryTable;

  constructor(environment: WorkingMemoryOptions['environment'], limits: WorkingMemoryLimits) {
    this.#environment = environment;
    this.#limits = limits;
    this.#table = new EntryTable(limits);
  }

  async save(owner: MemoryOwner, entry: NewMemoryEntry) {
    const now = this.#now();
    const read = readKey(owner, entry.key);
    if (!read.ok) return refused('INVALID_KEY', read.message);
    const { namespace, path: key } = read.key;
    const notOwned = notOwner(owner, namespace, 'writes');
    if (notOwned) return notOwned;
    const checked = checkEntry(entry);
    if (!checked.ok) return refused('INVALID_ENTRY', checked.message);
    const { maxTtlMs, sessionTtlMs, subagentTtlMs } = this.#limits;
    const { ttlMs = owner.path.length > 0 ? subagentTtlMs : sessionTtlMs, ...content } = checked;
    if (ttlMs > maxTtlMs)
      return refused('INVALID_ENTRY', `Expected a time of at most ${maxTtlMs} ms, got ${ttlMs} ms`);
    const place = { ...owner, namespace };
    const before = this.#table.namespace(owner.sessionId, namespace)?.entries.get(key);
    const { text, isText, bytes, category, tags } = content;
    const kept: KeptEntry = {
      key,
      text,
      isText,
      bytes,
      category,
      tags,
      weight: bytes + byteLength([key, category ?? '', ...tags].join('')),
      savedAt: now,
      expiresAt: now + ttlMs,
      sharedWith: before?.sharedWith ?? new Set(),
    };
    const full = this.#table.noRoom(place, kept);
    if (full) return full;
    this.#table.put(place, kept);
    return { ok: true as const, key, bytes, expiresAt: kept.expiresAt, replaced: Boolean(before) };
  }

  async get(owner: MemoryOwner, key: string) {
    const found = this.#find(owner, key);
    return found.ok ? { ok: true as const, entry: entryOf(found.entry) } : found;
  }

  async delete(owner: MemoryOwner, key: string) {
    const found = this.#find(owner, key);
    // The caller cannot see the entry, and an error that named the owner would reveal too much.
    if (!found.ok) return found;
    const { namespace } = found.at;
    const notOwned = notOwner(owner, namespace, 'deletes');
    if (notOwned) return notOwned;
    this.#table.drop(owner.sessionId, namespace, found.entry);
    return { ok: true as const, key: found.entry.key };
  }

  async list(owner: MemoryOwner, filter: MemoryFilter = {}) {
    const selected = this.#select(owner, filter);
    if (!selected.ok) return selected;
    const { entries } = selected;
    const shown = entries.slice(0, filter.limit ?? DEFAULT_LIST).map(infoOf);
    return { ok: true as const, entries: shown, total: entries.length };
  }

  async search(owner: MemoryOwner, query: MemoryFilter & { readonly query: string }) {
    const selected = this.#select(owner, query);
    if (!selected.ok) return selected;
    const { scheduler } = this.#environment;
    const ranked = await searchEntries(selected.entries, query.query, scheduler);
    // Some entries may have expired during the search.
    const found = ranked.filter(({ entry }) => this.#find(owner, entry.key).ok);
    const matches = found
      .slice(0, query.limit ?? DEFAULT_MATCHES)
      .map(({ entry, ...match }) => ({ ...infoOf(entry), ...match }));
    return { ok: true as const, matches, total: found.length };
  }

  async share(owner: MemoryOwner, key: string, subagentId: string) {
    const found = this.#find(owner, key);
    if (!found.ok) return found;
    found.entry.sharedWith.add(subagentId);
    return { ok: true as const, key: found.entry.key };
  }

  async forget(sessionId: string): Promise<void> {
    this.#table.dropSession(sessionId);
  }

  #find(
    owner: MemoryOwner,
    key: string,
  ): { ok: true; at: MemoryKey; entry: KeptEntry } | MemoryRefusal {
    this.#now();
    const read = readKey(owner, key);
    if (!read.ok) return refused('INVALID_KEY', read.message);
    const namespace = this.#table.namespace(owner.sessionId, read.key.namespace);
    const entry = namespace?.entries.get(read.key.path);
    if (!namespace || !entry || !(isFamily(owner, namespace) || isSharedWith(owner, entry)))
      return refused('NOT_FOUND', `There is nothing under ${read.key.path}`);
    return { ok: true, at: read.key, entry };
  }

  /** Returns the entries that the owner may read and the filter accepts: first the owner's, then others, by key. */
  #select(
    owner: MemoryOwner,
    { prefix, category, tags = [], limit }: MemoryFilter,
  ): { ok: true; entries: KeptEntry[] } | MemoryRefusal {
    this.#now();
    const read = prefix === undefined ? null : readPrefix(owner, prefix);
    if (read && !read.ok) return refused('INVALID_KEY', read.message);
    if (limit !== undefined && (!Number.isInteger(limit) || limit < 1))
      return refused('INVALID_ENTRY', `Expected limit to be a whole number ≥ 1, got ${limit}`);
    const own = namespaceOf(owner);
    const entries = this.#table.namespaces(owner.sessionId).flatMap((namespace) => {
      const isOwnFamily = isFamily(owner, namespace);
      return [...namespace.entries.values()].filter(
        (entry) =>
          (isOwnFamily || isSharedWith(owner, entry)) &&
          (!read || hasPrefix(entry.key, read.key)) &&
          (category === undefined || startsWith(entry.category ?? '', category)) &&
          tags.every((tag) => entry.tags.some((other) => isSame(tag, other))),
      );
    });
    const rank = ({ key }: KeptEntry): number => (hasPrefix(key, own) ? 0 : 1);
    entries.sort((a, b) => rank(a) - rank(b) || (a.key < b.key ? -1 : 1));
    return { ok: true, entries };
  }

  /** Deletes the expired entries and returns the current time. */
  #now(): number {
    const now = this.#environment.clock.now();
    this.#table.expire(now);
    return now;
  }
}

function notOwner(owner: MemoryOwner, namespace: string, what: string): MemoryRefusal | null {
  const own = namespaceOf(owner);
  return namespace === own
    ? null
    : refused('NOT_OWNER', `Expected ${what} in ${own}/, got ${namespace}/: others are read only`);
}

/** Returns whether the owner may see an entry: the path of one must be a prefix of the other's path. */
function isFamily(owner: MemoryOwner, { path }: Namespace): boolean {
  const shorter = Math.min(path.length, owner.path.length);
  return path.slice(0, shorter).every((step, index) => step === owner.path[index]);
}

/** Returns whether an entry was shared with the owner. */
function isSharedWith(owner: MemoryOwner, { sharedWith }: KeptEntry): boolean {
  const id = owner.path.at(-1);
  return id !== undefined && sharedWith.has(id);
}

function entryOf(kept: KeptEntry): MemoryEntry {
  const { text, isText } = kept;
  const value = isText ? text : (JSON.parse(text) as JSONValue);
  return { ...infoOf(kept), value, text };
}

function infoOf({ key, bytes, category, tags, savedAt, expiresAt }: KeptEntry): MemoryEntryInfo {
  return { key, bytes, category, tags, savedAt, expiresAt };
}

function startsWith(text: string, beginning: string): boolean {
  return text.toLowerCase().startsWith(beginning.trim().toLowerCase());
}

function isSame(a: string, b: string): boolean {
  return a.trim().toLowerCase() === b.toLowerCase();
}

/** The maximum number of characters to search per entry. */
const MAX_SEARCHED_CHARS = 32_768;

const EXCERPT_CHARS = 240;

const LEAD_CHARS = 60;

interface FoundEntry {
  readonly entry: KeptEntry;
  readonly score: number;
  readonly excerpt: string;
}

/** Returns the entries that contain a word of the query, best match first. Equal matches are sorted from new to old. */
async function searchEntries(
  entries: readonly KeptEntry[],
  query: string,
  scheduler: Pick<Scheduler, 'yieldThen'>,
): Promise<FoundEntry[]> {
  const counted: WordCounts[] = [];
  for (const { key, text, category, tags } of entries) {
    await new Promise<void>((go) => scheduler.yieldThen(go));
    const searched = head(text, MAX_SEARCHED_CHARS);
    counted.push(countWords([key, category ?? '', ...tags, searched].join(' ')));
  }
  const scores = relevance(counted, query);
  const words = wordsOf(query);
  return entries
    .map((entry, index) => ({ entry, score: scores[index] as number }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || b.entry.savedAt - a.entry.savedAt)
    .map(({ entry, score }) => ({ entry, score, excerpt: excerptOf(entry.text, words) }));
}

/** Returns the text around the first matching word. */
function excerptOf(text: string, words: readonly string[]): string {
  const searched = head(text, MAX_SEARCHED_CHARS).toLowerCase();
  const places = words.map((word) => searched.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, searched.length) - LEAD_CHARS);
  const from = places.length === 0 ? 0 : start;
  const shown = head(text.slice(from), EXCERPT_CHARS).replace(/^[\uDC00-\uDFFF]/, '');
  const before = from > 0 ? '…' : '';
  return `${before}${shown}${from + EXCERPT_CHARS < text.length ? '…' : ''}`;
}

function refused(code: MemoryRefusalCode, message: string): MemoryRefusal {
  return { ok: false, error: { code, message } };
}

const label = (maxChars: number): z.ZodString => z.string().trim().min(1).max(maxChars);

const labelsSchema = z.object({
  ttlMs: z.number().positive().optional(),
  category: label(100).optional(),
  tags: z.array(label(50)).max(20).optional(),
});

type CheckedEntry =
  | {
      readonly ok: true;
      readonly text: string;
      readonly isText: boolean;
      readonly bytes: number;
      readonly ttlMs: number | undefined;
      readonly category: string | null;
      readonly tags: readonly string[];
    }
  | { readonly ok: false; readonly message: string };

/** Checks a new entry except for its key. */
function checkEntry({ value, ttlMs, category, tags }: NewMemoryEntry): CheckedEntry {
  const labels = labelsSchema.safeParse({ ttlMs, category, tags });
  if (!labels.success) return { ok: false, message: z.prettifyError(labels.error) };
  const isText = typeof value === 'string';
  const json = isText ? { ok: true as const, text: value } : asJson(value);
  if (value === undefined || !json.ok)
    return { ok: false, message: `Expected a value that is JSON, got ${typeof value}` };
  const { text } = json;
  return {
    ok: true,
    text,
    isText,
    bytes: byteLength(text),
    ttlMs: labels.data.ttlMs,
    category: labels.data.category ?? null,
    tags: [...new Set(labels.data.tags)],
  };
}

/** An entry and its bookkeeping. */
interface KeptEntry extends MemoryEntryInfo {
  readonly text: string;
  readonly isText: boolean;
  /** The number of bytes that count against the limits. */
  readonly weight: number;
  /** Subagents outside the owner's family that may also read the entry. */
  readonly sharedWith: Set<string>;
}

/** A namespace exists as long as it has entries. */
interface Namespace {
  readonly name: string;
  /** The owner's place in the tree. */
  readonly path: readonly string[];
  readonly entries: Map<string, KeptEntry>;
}

interface SessionMemory {
  readonly namespaces: Map<string, Namespace>;
  bytes: number;
}

interface Place {
  readonly sessionId: string;
  readonly namespace: string;
  readonly path: readonly string[];
}

/** The entries by session and namespace, with their number and their bytes. */
class EntryTable {
  readonly #limits: WorkingMemoryLimits;
  readonly #sessions = new Map<string, SessionMemory>();
  #bytes = 0;
  /** No entry expires before this time. */
  #nextExpiry = Infinity;

  constructor(limits: WorkingMemoryLimits) {
    this.#limits = limits;
  }

  namespace(sessionId: string, name: string): Namespace | undefined {
    return this.#sessions.get(sessionId)?.namespaces.get(name);
  }

  namespaces(sessionId: string): Namespace[] {
    return [...(this.#sessions.get(sessionId)?.namespaces.values() ?? [])];
  }

  /** Returns why this entry does not fit, or null if it fits. This entry replaces one with the same key. */
  noRoom({ sessionId, namespace }: Place, kept: KeptEntry): MemoryRefusal | null {
    const { maxEntries, maxEntryBytes, maxSessionBytes, maxTotalBytes } = this.#limits;
    if (kept.bytes > maxEntryBytes)
      return refused(
        'ENTRY_TOO_LARGE',
        `Expected at most ${maxEntryBytes} bytes (maxEntryBytes), got ${kept.bytes}`,
      );
    const entries = this.namespace(sessionId, namespace)?.entries;
    const before = entries?.get(kept.key);
    const count = entries?.size ?? 0;
    if (!before && count >= maxEntries)
      return refused(
        'NAMESPACE_FULL',
        `${namespace} holds ${count} entries, the limit (maxEntries): delete or overwrite one`,
      );
    const growth = kept.weight - (before?.weight ?? 0);
    const session = this.#sessions.get(sessionId)?.bytes ?? 0;
    if (session + growth > maxSessionBytes)
      return refused(
        'MEMORY_FULL',
        `The session holds ${session} bytes of at most ${maxSessionBytes} (maxSessionBytes)`,
      );
    // The message must not reveal other sessions' memory usage.
    if (this.#bytes + growth > maxTotalBytes)
      return refused('MEMORY_FULL', `Working memory is full (maxTotalBytes: ${maxTotalBytes})`);
    return null;
  }

  put({ sessionId, namespace: name, path }: Place, kept: KeptEntry): void {
    const session = this.#sessions.get(sessionId) ?? { namespaces: new Map(), bytes: 0 };
    this.#sessions.set(sessionId, session);
    const namespace = session.namespaces.get(name) ?? { name, path, entries: new Map() };
    session.namespaces.set(name, namespace);
    const growth = kept.weight - (namespace.entries.get(kept.key)?.weight ?? 0);
    namespace.entries.set(kept.key, kept);
    session.bytes += growth;
    this.#bytes += growth;
    this.#nextExpiry = Math.min(this.#nextExpiry, kept.expiresAt);
  }

  drop(sessionId: string, name: string, { key, weight }: KeptEntry): void {
    const session = this.#sessions.get(sessionId);
    const namespace = session?.namespaces.get(name);
    if (!session || !namespace?.entries.delete(key)) return;
    session.bytes -= weight;
    this.#bytes -= weight;
    if (namespace.entries.size === 0) session.namespaces.delete(name);
    if (session.namespaces.size === 0) this.#sessions.delete(sessionId);
  }

  dropSession(sessionId: string): void {
    this.#bytes -= this.#sessions.get(sessionId)?.bytes ?? 0;
    this.#sessions.delete(sessionId);
  }

  /** Deletes expired entries. */
  expire(now: number): void {
    if (now < this.#nextExpiry) return;
    this.#nextExpiry = Infinity;
    for (const [sessionId, { namespaces }] of this.#sessions)
      for (const { name, entries } of namespaces.values())
        for (const entry of entries.values())
          if (entry.expiresAt <= now) this.drop(sessionId, name, entry);
          else this.#nextExpiry = Math.min(this.#nextExpiry, entry.expiresAt);
  }
}
