// The entry `offstage/memory`: working memory, facts about the user and summaries.

import { nodeEnvironment } from '../adapters/node/environment.ts';
import type { WorkingMemory } from '../actors/ports/working-memory.ts';
import {
  workingMemory as workingMemoryWith,
  type WorkingMemoryOptions,
} from '../memory/working-memory.ts';
import { readable } from '../values/plain-checks.ts';

export { memoryStore, type MemoryStore } from '../actors/ports/memory-store.ts';
export type { WorkingMemory } from '../actors/ports/working-memory.ts';
export { modelDistiller, modelSummary } from '../actors/context/model-upkeep.ts';
export type { MemoryDistiller, Summarise } from '../actors/context/model-upkeep.ts';
export type { ConversationItem, ConversationTurn } from '../actors/conversation/items.ts';
export {
  createWorkingMemoryToolset,
  WORKING_MEMORY_TOOLSET,
  type WorkingMemoryTool,
} from '../memory/toolset.ts';
export type { FactQuery, MemoryFact } from '../actors/ports/memory-store.ts';
export type {
  MemoryAnswer,
  MemoryEntry,
  MemoryEntryInfo,
  MemoryMatch,
  MemoryOwner,
  MemoryRefusal,
} from '../actors/ports/working-memory.ts';

/**
 * Creates working memory that is lost when the process ends. It uses real time by default.
 * @throws {ConfigurationError} if a limit is unknown or not a whole number ≥ 1, or if a default lifetime is above
 * `maxTtlMs`.
 */
export function workingMemory(options: Partial<WorkingMemoryOptions> = {}): WorkingMemory {
  return workingMemoryWith({
    environment: nodeEnvironment(),
    ...readable('workingMemory', options),
  });
}
