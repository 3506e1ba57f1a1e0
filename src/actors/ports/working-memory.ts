// Working memory: what the agents of one session write down for each other while it lasts
// (notes, large tool outputs, results). The port: who may do what, and what each answer means.
//
// The lead agent writes in `session/<session id>/`, each subagent in `subagent/<its id>/`.
// A key without a namespace in front is one in the asker's own; a key that begins with
// `session/` or `subagent/` is absolute, in every operation.

import type { JSONValue } from 'ai';

/** Who asks. What it may do follows from this alone; a model never writes it. */
export interface MemoryOwner {
  readonly sessionId: string;
  /**
   * The subagents from the lead agent's own down to the one that asks, by id: empty for the
   * lead agent, `['a']` for its subagent, `['a', 'b']` for that one's.
   */
  readonly path: readonly string[];
}

export interface NewMemoryEntry {
  /** `report/part-1`, or absolute. A path of segments without empty ones; at most 200 characters. */
  readonly key: string;
  /** A text, or anything else that is JSON. */
  readonly value: unknown;
  /** How long it is kept, in milliseconds. @defaultValue the store's, for this namespace */
  readonly ttlMs?: number | undefined;
  /** `research`, or finer: `research/flights`. At most 100 characters. */
  readonly category?: string | undefined;
  /** At most 20, each of at most 50 characters. */
  readonly tags?: readonly string[] | undefined;
}

/** What is known of an entry without reading it. */
export interface MemoryEntryInfo {
  /** Absolute. */
  readonly key: string;
  /** The size of its text in UTF-8. */
  readonly bytes: number;
  readonly category: string | null;
  readonly tags: readonly string[];
  /** Milliseconds since 1970. */
  readonly savedAt: number;
  /** From then on it is gone for everybody. Milliseconds since 1970. */
  readonly expiresAt: number;
}

export interface MemoryEntry extends MemoryEntryInfo {
  readonly value: JSONValue;
  /** The value in characters: itself if it is a text, else its JSON. */
  readonly text: string;
}

export interface MemoryFilter {
  /**
   * Whole segments: `subagent/ab` has nothing to do with `subagent/abc`. Relative to the asker's
   * namespace, or absolute; also a namespace (`subagent/ab`) or all of a kind (`subagent`).
   * @defaultValue all that the asker may read
   */
  readonly prefix?: string | undefined;
  /** The beginning of the category, without regard to case. */
  readonly category?: string | undefined;
  /** All of them must be there, without regard to case. */
  readonly tags?: readonly string[] | undefined;
  /** A whole number ≥ 1. @defaultValue 50 for a list, 10 for a search */
  readonly limit?: number | undefined;
}

export interface MemoryQuery extends MemoryFilter {
  readonly query: string;
}

export interface MemoryMatch extends MemoryEntryInfo {
  /** Greater fits better; to be compared within one search only. */
  readonly score: number;
  /** Some 240 characters about the first word that was found. */
  readonly excerpt: string;
}

/**
 * - `INVALID_KEY`, `INVALID_ENTRY`: not a key, a value, a time or a label; the message says what is expected.
 * - `NOT_OWNER`: a write or delete in another namespace than the asker's own.
 * - `NOT_FOUND`: there is none, it has expired, or it is not for the asker to see: no difference is shown.
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

export interface MemoryRefusal {
  readonly ok: false;
  readonly error: { readonly code: MemoryRefusalCode; readonly message: string };
}

export type MemoryAnswer<T> = ({ readonly ok: true } & T) | MemoryRefusal;

/**
 * Where working memory is kept. A refusal is an answer, never a throw, and nothing has changed
 * then; a rejection means that the store itself failed. No operation shows, changes or counts
 * anything of another session than `owner.sessionId`.
 *
 * Readable are: the asker's own namespace, those of its ancestors (the lead agent is
 * everybody's) and of its descendants, and single entries that were shared with it.
 */
export interface WorkingMemory {
  /**
   * Keeps an entry; one with the same key is replaced, also where the namespace is full. Once
   * it has resolved with `ok`, every reader sees it until `expiresAt`: it is never evicted.
   */
  save(
    owner: MemoryOwner,
    entry: NewMemoryEntry,
  ): Promise<
    MemoryAnswer<{
      readonly key: string;
      readonly bytes: number;
      readonly expiresAt: number;
      /** There was one under this key. */
      readonly replaced: boolean;
    }>
  >;
  get(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly entry: MemoryEntry }>>;
  delete(owner: MemoryOwner, key: string): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** By key, the asker's own namespace first. `total` counts those beyond the limit too. */
  list(
    owner: MemoryOwner,
    filter?: MemoryFilter,
  ): Promise<
    MemoryAnswer<{ readonly entries: readonly MemoryEntryInfo[]; readonly total: number }>
  >;
  /** The best first, of those that have a word of the query at all. */
  search(
    owner: MemoryOwner,
    query: MemoryQuery,
  ): Promise<MemoryAnswer<{ readonly matches: readonly MemoryMatch[]; readonly total: number }>>;
  /**
   * Lets one more subagent of the session read this entry, as long as it is kept (a new value
   * under the key included). Whoever can read an entry can share it.
   */
  share(
    owner: MemoryOwner,
    key: string,
    subagentId: string,
  ): Promise<MemoryAnswer<{ readonly key: string }>>;
  /** Drops everything of a session. */
  forget(sessionId: string): Promise<void>;
}
