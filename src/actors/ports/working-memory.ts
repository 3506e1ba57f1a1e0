// Working memory: entries that a session's agents write for each other during the session (notes, large tool outputs,
// results). Defines the port, the permissions, and the meaning of each answer.
//
// The lead agent writes under `session/<session id>/`, each subagent under `subagent/<its id>/`. In every operation, a
// key that starts with `session/` or `subagent/` is absolute; any other key is relative to the caller's namespace.

import type { JSONValue } from 'ai';

/** The calling agent. Its permissions depend only on this value, which a model never writes. */
export interface MemoryOwner {
  /** The session that contains the entries. */
  readonly sessionId: string;
  /**
   * The ids on the path from the lead agent down to the caller: empty for the lead agent, `['a']` for its subagent `a`,
   * `['a', 'b']` for the subagent `b` of `a`.
   */
  readonly path: readonly string[];
}

/** An entry to write into working memory. */
export interface NewMemoryEntry {
  /** `report/part-1`, or absolute. A path without empty segments; at most 200 characters. */
  readonly key: string;
  /** A string, or any other JSON value. */
  readonly value: unknown;
  /** The entry's lifetime, in milliseconds. @defaultValue the store's lifetime for this namespace */
  readonly ttlMs?: number | undefined;
  /** A category such as `research` or `research/flights`. At most 100 characters. */
  readonly category?: string | undefined;
  /** At most 20, each of at most 50 characters. */
  readonly tags?: readonly string[] | undefined;
}

/** An entry's description, without its content. */
export interface MemoryEntryInfo {
  /** The absolute key. */
  readonly key: string;
  /** The size of the entry's text, in UTF-8 bytes. */
  readonly bytes: number;
  /** The entry's category; null if it has none. */
  readonly category: string | null;
  /** The entry's tags. */
  readonly tags: readonly string[];
  /** Milliseconds since 1970. */
  readonly savedAt: number;
  /** When the entry expires for all readers, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A working memory entry with its value. */
export interface MemoryEntry extends MemoryEntryInfo {
  /** The kept value. */
  readonly value: JSONValue;
  /** The value as text: the value itself if it is a string, otherwise its JSON. */
  readonly text: string;
}

/** Selects entries of working memory, for a list or a search. */
export interface MemoryFilter {
  /**
   * A prefix of the keys, in whole segments: `subagent/ab` does not match `subagent/abc`. Relative to the caller's
   * namespace, or absolute; may also be a namespace (`subagent/ab`) or a kind of namespace (`subagent`).
   * @defaultValue all entries that the caller may read
   */
  readonly prefix?: string | undefined;
  /** A prefix of the category, case-insensitive. */
  readonly category?: string | undefined;
  /** Tags that an entry must all have; case-insensitive. */
  readonly tags?: readonly string[] | undefined;
  /** A whole number ≥ 1. @defaultValue 50 for a list, 10 for a search */
  readonly limit?: number | undefined;
}

/** A search of working memory. */
export interface MemoryQuery extends MemoryFilter {
  /** The words to search for. */
  readonly query: string;
}

/** An entry that a search found. */
export interface MemoryMatch extends MemoryEntryInfo {
  /** The relevance; higher is better. Comparable only within one search. */
  readonly score: number;
  /** About 240 characters around the first word found. */
  readonly excerpt: string;
}

/**
 * The code of a refusal.
 *
 * - `INVALID_KEY`, `INVALID_ENTRY`: an invalid key, value, time or label; the message says what was expected.
 * - `NOT_OWNER`: a write or delete outside the caller's namespace.
 * - `NOT_FOUND`: the entry does not exist, has expired, or is not readable by the caller; the answer does not say which
 *   of these.
 * - `NAMESPACE_FULL`, `ENTRY_TOO_LARGE`, `MEMORY_FULL`: a limit, which the message names.
 */
export type MemoryRefusalCode =
  | 'INVALID_KEY'
  | 'INVALID_ENTRY'
  | 'NOT_OWNER'
  | 'NOT_FOUND'
  | 'NAMESPACE_FULL'
  | 'ENTRY_TOO_LARGE'
  | 'MEMORY_FULL';

/** Why working memory refused a request. */
export interface MemoryRefusal {
  /** The request had no effect. */
  readonly ok: false;
  /** Why the request was refused. */
  readonly error: { readonly code: MemoryRefusalCode; readonly message: string };
}

/** The answer from working memory: a result, or a refusal with a code. */
export type MemoryAnswer<T> = ({ readonly ok: true } & T) | MemoryRefusal;

/**
 * Stores working memory. A refusal is an answer, not an error, and changes nothing. A rejection means that the store
 * has failed. No operation shows, changes or counts entries of any session other than `owner.sessionId`.
 *
 * A caller may read the entries in its own namespace, in those of its ancestors (which include the lead agent) and of
 * its descendants, and single entries shared with it.
 */
export interface WorkingMemory {
  /**
   * Saves an entry, or replaces the entry with the same key, even if the namespace is full. Once the call has resolved
   * with `ok`, every reader sees the entry until `expiresAt`, because the store does not evict entries.
   */
  save(
    owner: MemoryOwner,
    entry: NewMemoryEntry,
  ): Promise<
    MemoryAnswer<{
      readonly key: string;
      readonly bytes: number;
      readonly expiresAt: number;
      /** Whether the key already had an entry. */
      readonly replaced: boolean;
    }>
  >;
  /** Returns the entry with this key. */
  get(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly entry: MemoryEntry }>>;
  /** Deletes the entry with this key. */
  delete(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** Lists entries by key, those in the caller's namespace first. `total` also counts the entries beyond the limit. */
  list(
    owner: MemoryOwner,
    filter?: MemoryFilter,
  ): Promise<
    MemoryAnswer<{ readonly entries: readonly MemoryEntryInfo[]; readonly total: number }>
  >;
  /** Returns the matches, best first; an entry matches if it contains any word of the query. */
  search(
    owner: MemoryOwner,
    query: MemoryQuery,
  ): Promise<MemoryAnswer<{ readonly matches: readonly MemoryMatch[]; readonly total: number }>>;
  /**
   * Lets another subagent of the session read this entry for as long as the entry exists, even if its key gets a new
   * value. Every subagent that can read an entry can share it.
   */
  share(
    owner: MemoryOwner,
    key: string,
    subagentId: string,
  ): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** Deletes all entries of a session. */
  forget(sessionId: string): Promise<void>;
}
