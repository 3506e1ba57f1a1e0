// An in-memory store that several processes share: the smallest journal that passes all cases. The planted faults break
// it.

import { JournalError } from '../../../../src/entries/journal.ts';
import { CapacityError, memoryJournal, type Journal } from '../../../../src/index.ts';
import type { JournalConformanceSetup } from '../../../../src/testing/index.ts';

export interface Spoiled {
  readonly name: string;
  /** Changes the journal of each process. */
  readonly spoil?: (journal: Journal, store: Journal) => Partial<Journal>;
  /** Writes do not check the lease. */
  readonly isUnfenced?: boolean;
  /** A claim succeeds even if another process holds the lease. */
  readonly isGreedy?: boolean;
  /** Changes the store when a process crashes. */
  readonly crash?: (store: Journal) => Promise<void>;
}

export function sharedStore(spoiled: Spoiled): JournalConformanceSetup {
  return {
    name: spoiled.name,
    offers: ['scopes', 'readAfter', 'trim', 'forget', 'claim', 'reopen', 'wakeTimes', 'desk'],
    open() {
      const store: Journal = memoryJournal({ keep: Infinity });
      const owners = new Map<string, Journal>();
      const over = new Set<string>();
      const process = (): Journal => {
        const isInUse = (scope: string): boolean =>
          owners.has(scope) && owners.get(scope) !== journal && !over.has(scope);
        const checkFree = (scope: string): void => {
          if (isInUse(scope)) throw new CapacityError('SCOPE_IN_USE', `${scope} is in use`);
        };
        const checkOurs = (scope: string): void => {
          if (owners.get(scope) !== journal && spoiled.isUnfenced !== true)
            throw new JournalError('FENCED', scope, { retryable: false });
        };
        const journal: Journal = {
          async append(entry) {
            checkOurs(entry.scope);
            await store.append(entry);
          },
          read: (query) => store.read(query),
          readAfter: (entry) => store.readAfter?.(entry) ?? null,
          async claim(scope) {
            if (spoiled.isGreedy !== true) checkFree(scope);
            owners.set(scope, journal);
            over.delete(scope);
          },
          async trim(entry) {
            checkOurs(entry.scope);
            await store.trim?.(entry);
          },
          async release(scope) {
            if (owners.get(scope) === journal) owners.delete(scope);
          },
          scopes: () => store.scopes?.() ?? [],
          async forget(scope) {
            checkFree(scope);
            await store.forget?.(scope);
          },
          wakeTimes: store.wakeTimes,
          desk: {
            async set(scope, rows) {
              if (rows.length > 0 || owners.has(scope)) checkOurs(scope);
              await store.desk?.set(scope, rows);
            },
            find: (query) => store.desk?.find(query) ?? [],
          },
        };
        return Object.assign(journal, spoiled.spoil?.({ ...journal }, store));
      };
      return {
        journal: process(),
        another: () => process(),
        expire() {
          for (const scope of owners.keys()) over.add(scope);
        },
        async reopen() {
          await spoiled.crash?.(store);
          owners.clear();
          return process();
        },
      };
    },
  };
}
