// Working memory that lasts as long as the process.
//
// Owns:     who may see and change an entry, and the full-text search: one entry for each turn of the event loop,
//           so that a search over megabytes makes no audio late.
// Does not: count or limit entries (entry-table), or know the subagents: the caller states its position in
//           its family.
//
// Invariants
//   WORKING-MEMORY-1. No session reads, changes or counts entries of another (P8).
//   WORKING-MEMORY-4. A refusal changes nothing.
//   WORKING-MEMORY-5. Only the owner of a namespace writes and deletes in it.

import type { JSONValue } from 'ai';
import { byteLength } from '../values/json.ts';
import type { Environment, Scheduler } from '../actors/ports/environment.ts';
import type {
  MemoryEntry,
  MemoryEntryInfo,
  MemoryFilter,
  MemoryOwner,
  MemoryRefusal,
  NewMemoryEntry,
  WorkingMemory,
} from '../actors/ports/working-memory.ts';
import { EntryTable, type KeptEntry, type Namespace } from './entry-table.ts';
import { hasPrefix, namespaceOf, readKey, readPrefix, type MemoryKey } from './keys.ts';
import { checkedWorkingMemoryLimits, checkEntry, type WorkingMemoryLimits } from './options.ts';
import { refused } from './refused.ts';
import { head } from '../values/clip.ts';
import { countWords, relevance, wordsOf, type WordCounts } from '../values/bm25.ts';

export interface WorkingMemoryOptions extends Partial<WorkingMemoryLimits> {
  /** The source of time: the environment of the runtime that the memory is used with. */
  readonly environment: Pick<Environment, 'clock' | 'scheduler'>;
}

/** @throws {ConfigurationError} when a limit is not a whole number ≥ 1. */
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
    const foreign = notOwner(owner, namespace, 'writes');
    if (foreign) return foreign;
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
    // An entry that the caller may not see does not exist for it; naming the owner would disclose too much.
    if (!found.ok) return found;
    const { namespace } = found.at;
    const foreign = notOwner(owner, namespace, 'deletes');
    if (foreign) return foreign;
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
    // The search took a while: some entries may be gone.
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

  /** Returns the entries that the owner may read and the filter accepts; its own first, then by key. */
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

  /** Returns the time, after dropping the entries that have expired. */
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

/** Tells whether the owner may see an entry. Ancestors and descendants: one path begins with the other. */
function isFamily(owner: MemoryOwner, { path }: Namespace): boolean {
  const shorter = Math.min(path.length, owner.path.length);
  return path.slice(0, shorter).every((step, index) => step === owner.path[index]);
}

/** Tells whether an entry was shared with the owner. */
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

/** The searched characters of one entry; later ones are not searched. */
const MAX_SEARCHED_CHARS = 32_768;

const EXCERPT_CHARS = 240;

const LEAD_CHARS = 60;

export interface FoundEntry {
  readonly entry: KeptEntry;
  readonly score: number;
  readonly excerpt: string;
}

/** Returns the entries that have a word of the query, the best first, among equals the newest. */
export async function searchEntries(
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

/** Returns the text around the first of the words. */
function excerptOf(text: string, words: readonly string[]): string {
  const searched = head(text, MAX_SEARCHED_CHARS).toLowerCase();
  const places = words.map((word) => searched.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, searched.length) - LEAD_CHARS);
  const from = places.length === 0 ? 0 : start;
  const shown = head(text.slice(from), EXCERPT_CHARS).replace(/^[\uDC00-\uDFFF]/, '');
  const before = from > 0 ? '…' : '';
  return `${before}${shown}${from + EXCERPT_CHARS < text.length ? '…' : ''}`;
}
