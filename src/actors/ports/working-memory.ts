// Working memory: entries that the agents of one session write for each other while the session lasts (notes, large
// tool outputs, results). Defines the port, the permissions, and the meaning of each answer.
//
// The lead agent writes in `session/<session id>/`, each subagent in `subagent/<its id>/`. A key without a namespace is
// relative to the caller's namespace; a key that begins with `session/` or `subagent/` is absolute, in every operation.

import type { JSONValue } from 'ai';

/** The calling agent. Its permissions follow from this value alone; a model never writes it. */
export interface MemoryOwner {
  /** The session that the entries belong to. */
  readonly sessionId: string;
  /**
   * The ids of the subagents on the way from the lead agent down to the caller: empty for the lead agent, `['a']` for
   * its subagent `a`, `['a', 'b']` for the subagent `b` of `a`.
   */
  readonly path: readonly string[];
}

/** An entry to be written into working memory. */
export interface NewMemoryEntry {
  /** `report/part-1`, or absolute. A path without empty segments; at most 200 characters. */
  readonly key: string;
  /** A text, or any other JSON value. */
  readonly value: unknown;
  /** How long the entry is kept, in milliseconds. @defaultValue the store's time for this namespace */
  readonly ttlMs?: number | undefined;
  /** A category such as `research` or `research/flights`. At most 100 characters. */
  readonly category?: string | undefined;
  /** At most 20, each of at most 50 characters. */
  readonly tags?: readonly string[] | undefined;
}

/** The description of an entry without its content. */
export interface MemoryEntryInfo {
  /** The absolute key. */
  readonly key: string;
  /** The size of the entry's text, in bytes of UTF-8. */
  readonly bytes: number;
  /** The category of the entry; null: none. */
  readonly category: string | null;
  /** The tags of the entry. */
  readonly tags: readonly string[];
  /** Milliseconds since 1970. */
  readonly savedAt: number;
  /** When the entry expires for all readers, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** An entry of working memory with its value. */
export interface MemoryEntry extends MemoryEntryInfo {
  /** The kept value. */
  readonly value: JSONValue;
  /** The value as text: the value itself if it is a text, otherwise its JSON. */
  readonly text: string;
}

/** Selects entries of working memory, for a list or a search. */
export interface MemoryFilter {
  /**
   * The beginning of the keys, in whole segments: `subagent/ab` does not match `subagent/abc`. Relative to the caller's
   * namespace, or absolute; may also be a namespace (`subagent/ab`) or a kind of namespaces (`subagent`).
   * @defaultValue all entries that the caller may read
   */
  readonly prefix?: string | undefined;
  /** A prefix of the category, case-insensitive. */
  readonly category?: string | undefined;
  /** Tags, all of which an entry must have; case-insensitive. */
  readonly tags?: readonly string[] | undefined;
  /** A whole number ≥ 1. @defaultValue 50 for a list, 10 for a search */
  readonly limit?: number | undefined;
}

/** A search of working memory. */
export interface MemoryQuery extends MemoryFilter {
  /** The words to search for. */
  readonly query: string;
}

/** An entry that a search of working memory found. */
export interface MemoryMatch extends MemoryEntryInfo {
  /** The relevance; greater is better. Comparable only within one search. */
  readonly score: number;
  /** About 240 characters around the first word found. */
  readonly excerpt: string;
}

/**
 * The code of a refusal.
 *
 * - `INVALID_KEY`, `INVALID_ENTRY`: an invalid key, value, time or label; the message says what is expected.
 * - `NOT_OWNER`: a write or delete outside the caller's namespace.
 * - `NOT_FOUND`: the entry does not exist, has expired, or is not readable by the caller; the answer does not say
 *   which.
 * - `NAMESPACE_FULL`, `ENTRY_TOO_LARGE`, `MEMORY_FULL`: a limit; the message names it.
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
  /** The cause of the refusal. */
  readonly error: { readonly code: MemoryRefusalCode; readonly message: string };
}

/** The answer of working memory: a result, or a refusal with a code. */
export type MemoryAnswer<T> = ({ readonly ok: true } & T) | MemoryRefusal;

/**
 * Stores working memory. A refusal is an answer, never a throw, and changes nothing; a rejection means that the store
 * failed. No operation shows, changes or counts entries of a session other than `owner.sessionId`.
 *
 * A caller may read the entries in its own namespace, in those of its ancestors (the lead agent is an ancestor of all)
 * and of its descendants, and single entries that were shared with it.
 */
export interface WorkingMemory {
  /**
   * Saves an entry; replaces one with the same key, even if the namespace is full. Once it has resolved with `ok`,
   * every reader sees the entry until `expiresAt`: the store does not evict entries.
   */
  save(
    owner: MemoryOwner,
    entry: NewMemoryEntry,
  ): Promise<
    MemoryAnswer<{
      readonly key: string;
      readonly bytes: number;
      readonly expiresAt: number;
      /** Whether the key had an entry before. */
      readonly replaced: boolean;
    }>
  >;
  /** Returns the entry of a key. */
  get(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly entry: MemoryEntry }>>;
  /** Deletes the entry of a key. */
  delete(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** Lists entries by key, those of the caller's namespace first. `total` also counts the entries beyond the limit. */
  list(
    owner: MemoryOwner,
    filter?: MemoryFilter,
  ): Promise<
    MemoryAnswer<{ readonly entries: readonly MemoryEntryInfo[]; readonly total: number }>
  >;
  /** Returns the matches, the best first; an entry matches if it contains a word of the query. */
  search(
    owner: MemoryOwner,
    query: MemoryQuery,
  ): Promise<MemoryAnswer<{ readonly matches: readonly MemoryMatch[]; readonly total: number }>>;
  /**
   * Lets one more subagent of the session read this entry while it is kept, including a new value under the key. Every
   * reader of an entry can share it.
   */
  share(
    owner: MemoryOwner,
    key: string,
    subagentId: string,
  ): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** Deletes all entries of a session. */
  forget(sessionId: string): Promise<void>;
}
