// `offstage/memory`: working memory, remembered facts and summaries.

export { modelDistiller, modelSummary } from '../actors/context/model-upkeep.ts';
export type {
  DistilledFact,
  DistilRequest,
  MemoryDistiller,
  ModelDistillerOptions,
  ModelSummaryOptions,
  Summarise,
  SummaryRequest,
} from '../actors/context/model-upkeep.ts';
export type { ModelCalls, ModelUse } from '../actors/contracts/usage.ts';
export type {
  ConversationItem,
  ConversationLimits,
  ConversationTurn,
} from '../actors/conversation/items.ts';
export type { WorkingMemoryOptions } from '../memory/working-memory.ts';
export { createWorkingMemoryToolset, WORKING_MEMORY_TOOLSET } from '../memory/toolset.ts';
export type { WorkingMemoryToolsetOptions } from '../memory/toolset.ts';
export type { FactQuery, MemoryFact } from '../actors/ports/memory-store.ts';
export type {
  MemoryAnswer,
  MemoryEntry,
  MemoryEntryInfo,
  MemoryFilter,
  MemoryMatch,
  MemoryOwner,
  MemoryQuery,
  MemoryRefusal,
  MemoryRefusalCode,
  NewMemoryEntry,
} from '../actors/ports/working-memory.ts';
export type { WorkingMemoryLimits } from '../memory/working-memory.ts';
