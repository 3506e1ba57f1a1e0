// A memory store that ends with the process: for tests, demos, and as the simplest example of the port.

import {
  checkedMemoryLimits,
  rankFacts,
  withFact,
  withoutFact,
  type FactTable,
  type MemoryLimits,
  type MemoryStore,
} from '../ports/memory-store.ts';

/** @throws {ConfigurationError} if a limit is not a positive whole number. */
export function memoryStore(limits: Partial<MemoryLimits> = {}): MemoryStore {
  const allLimits = checkedMemoryLimits(limits);
  let table: FactTable = new Map();
  return {
    async facts(query) {
      return rankFacts(table, query);
    },
    async remember(fact) {
      table = withFact(table, fact, allLimits);
    },
    async forget({ scope, id }) {
      const before = table;
      table = withoutFact(before, scope, id);
      return table !== before;
    },
  };
}
