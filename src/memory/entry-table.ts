// The entries of working memory, by session and namespace, with their counts and bytes.
//
// Owns:     the entries, their weight, and their expiry.
// Does not: know who may see or change an entry (working-memory).
//
// Invariants
//   ENTRY-TABLE-2. An expired entry is gone for every reader, and no longer counts.
//   ENTRY-TABLE-3. A namespace has at most `maxEntries` entries, the bytes of an entry, of a session and of
//       the table are at most their limits; nothing is evicted to make room.

import type { MemoryEntryInfo, MemoryRefusal } from '../actors/ports/working-memory.ts';
import type { WorkingMemoryLimits } from './options.ts';
import { refused } from './refused.ts';

/** An entry with its bookkeeping. */
export interface KeptEntry extends MemoryEntryInfo {
  readonly text: string;
  readonly isText: boolean;
  /** The bytes that it counts against the limits. */
  readonly weight: number;
  /** Subagents outside the family that may read it. */
  readonly sharedWith: Set<string>;
}

/** Created with its first entry, removed with its last. */
export interface Namespace {
  readonly name: string;
  /** The position of its owner in the family. */
  readonly path: readonly string[];
  readonly entries: Map<string, KeptEntry>;
}

interface SessionMemory {
  readonly namespaces: Map<string, Namespace>;
  bytes: number;
}

/** The place of an entry. */
export interface Place {
  readonly sessionId: string;
  readonly namespace: string;
  readonly path: readonly string[];
}

export class EntryTable {
  readonly #limits: WorkingMemoryLimits;
  readonly #sessions = new Map<string, SessionMemory>();
  #bytes = 0;
  /** The time before which nothing expires. */
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

  /**
   * Returns the reason why there is no room for this entry; null if there is. An entry with the same key
   * makes room.
   */
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
    // The usage of other sessions is not disclosed.
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

  /** Drops the entries that have expired at this time. */
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
