// The public API, name by name. What talks to the outside world comes from the
// subpaths (`offstage/openai-realtime`, `offstage/local-voice`, …) and is handed in.

// Sessions, and what else takes real time where an app gives no environment

export {
  createRuntime,
  rockbotToolset,
  runSubagent,
  TextSession,
  VoiceSession,
  workingMemory,
  type RunSubagentOptions,
  type TextSessionOptions,
  type VoiceSessionOptions,
} from './real-time.ts';
export type { RunTask, SubagentRun } from './actors/subagents/run-subagent.ts';
export type { HostedActor } from './actors/runtime/hosting.ts';
export type { Runtime, RuntimeOptions } from './actors/admission/runtime.ts';
export type { OnUnfoldable } from './actors/runtime/set-aside.ts';
export { createSessionPool, type SessionPool } from './actors/pool/session-pool.ts';
export type { PooledSession } from './actors/pool/guest.ts';
export type { StartOptions } from './actors/session/lifecycle/session-options.ts';
export type { SessionPoolOptions } from './actors/pool/pool-options.ts';
export type { Consolidation, ConsolidationOptions } from './actors/session/state/consolidation.ts';
export type { SpeakProgress } from './actors/session/delivery/progress-pace.ts';
export type {
  SubagentProgressMessage,
  SubagentResultMessage,
  SubagentTopics,
} from './actors/session/delivery/subagent-messages.ts';
export type { PromptStyle } from './actors/session/state/synthetic-turns.ts';
export type { TextPart } from './actors/session/lead/text-output.ts';
export type { NoticeOptions } from './actors/session/delivery/notices.ts';
export type { SessionSubagents } from './actors/session/view/session-subagents.ts';
export type { SessionHooks } from './actors/session/lead/hooks.ts';
export type { SessionLimits } from './actors/admission/limits.ts';
export type { FillerOptions } from './voice/output/filler-options.ts';
export type { ThinkingSoundOptions } from './voice/output/thinking-sound.ts';
export type { PlayoutReport, VoiceOptions } from './voice/voice-session.ts';

// Agents, tools, subagents

export type { AgentContext } from './actors/session/lead/agent-context.ts';
export type { MainAgent } from './actors/session/lead/agents.ts';
export type { ClientInput, ClientReceipt } from './actors/session/questions/client-input.ts';
export type {
  ClientMessage,
  SubagentCompletion,
  UiPayload,
} from './actors/session/view/client-messages.ts';
export type { ShownImage } from './actors/session/questions/shown-image.ts';
export type { TransferAnswer } from './actors/session/lead/transfer.ts';
export type { ConversationOptions } from './actors/session/lead/conversation-options.ts';
export {
  modelDistiller,
  type DistilledFact,
  type DistilRequest,
  type MemoryDistiller,
  type ModelDistillerOptions,
} from './actors/context/distiller.ts';
export {
  modelSummary,
  type ModelSummaryOptions,
  type Summarise,
  type SummaryRequest,
} from './actors/context/summary.ts';
export type { ConversationLimits } from './actors/conversation/limits.ts';
export type { ConversationItem } from './actors/conversation/items.ts';
export type { ConversationTurn } from './actors/conversation/turns.ts';
export type {
  IdleOptions,
  NextResultOptions,
  SessionResult,
} from './actors/session/lead/awaited.ts';
export type { DirectiveScope, SetDirective } from './actors/contracts/directives.ts';
export { defineTool } from './actors/session/lead/lead-tools.ts';
export {
  type HungSubagent,
  type RetryOptions,
  type SubagentConfig,
} from './actors/contracts/config.ts';
export type { VouchedFor } from './actors/contracts/identity.ts';
export type { GivenAnswer } from './actors/subagent/ask-user.ts';
export type { Artifact, LedgerEntry, Outcome, Usage } from './actors/contracts/outcome.ts';
export type { SubagentTask } from './actors/subagent/subagent.ts';
export type { DeliveryMode, MessageMode } from './machines/index.ts';

// Parents and children, agents that call agents

export {
  createParentSubagentToolset,
  PARENT_TOOLSET,
  toolsetAnnotations,
  type ParentToolsetOptions,
} from './actors/subagents/toolsets/parent-toolset.ts';
export {
  CHILD_TOOLSET,
  createChildSubagentToolset,
  type ChildToolsetOptions,
} from './actors/subagent/child-toolset.ts';
export type { HostNames, SpawnBase, SpawnOptions } from './actors/subagents/toolsets/spawn-plan.ts';
export { isToolFailure, type ToolFailure } from './actors/model/tool-failure.ts';

export {
  rockbotChildToolset,
  rockbotLimits,
  type RockbotToolsetOptions,
} from './actors/subagents/toolsets/rockbot-toolset.ts';
export {
  createSubAgentTool,
  isSubAgentTool,
  planStepProcessing,
  SUBAGENT_TOOL_PREFIX,
  subAgentTools,
  type PlannableCall,
  type StepPlan,
  type SubAgentConfig,
  type SubAgentFailure,
  type SubAgentQuestion,
  type SubAgentTool,
  type SubAgentToolOptions,
} from './actors/subagents/toolsets/sub-agent-tool.ts';
export { companions, type CompanionAgent } from './actors/subagents/toolsets/companions.ts';
export { subAgentRefs, type SubAgentRef } from './actors/subagents/toolsets/sub-agent-refs.ts';
export { subAgentStream, type SubAgentStreamChunk } from './actors/subagents/sub-agent-stream.ts';
export {
  leadSubagents,
  leadTools,
  type LeadToolsOptions,
} from './actors/subagents/toolsets/lead-toolset.ts';
export type { ProgramOptions } from './actors/subagents/program-service.ts';
export { callerOf, type Caller, type CallerContext } from './actors/model/caller.ts';
export {
  createSubagentService,
  type OwnedSubagentService,
  type ServiceRecovery,
  type SubagentServiceOptions,
} from './actors/subagents/subagent-service.ts';
export type {
  ProgramAnswer,
  ProgramHandlers,
  ProgramRequest,
} from './actors/subagents/program-ports.ts';
export {
  THE_LEAD,
  type AwaitOptions,
  type AwaitResult,
  type CheckResult,
  type DelegationErrorCode,
  type DelegationFailure,
  type ListOptions,
  type MessageReceipt,
  type PendingInput,
  type ProgressNote,
  type Refused,
  type Requester,
  type SendRequest,
  type SendResult,
  type SpawnReceipt,
  type SpawnRequest,
  type SubagentChunk,
  type SubagentReport,
  type SubagentService,
  type ToolGrant,
} from './actors/contracts/service-types.ts';

// Services: agents that look at what happens outside

export {
  pollingSource,
  type Polled,
  type PollingSourceOptions,
} from './actors/services/polling-source.ts';
export { defineService, type ServiceSubagentConfig } from './actors/services/service-config.ts';
export type {
  DroppedEvent,
  EventSourceView,
  ServiceCounts,
  ServiceView,
} from './actors/contracts/service-view.ts';
export type { SessionServiceViews } from './actors/session/view/session-face.ts';
export type {
  EmitEvent,
  EventReceipt,
  EventRefusal,
  EventSourceConfig,
  EventSourceContext,
  ExternalEvent,
} from './actors/ports/event-source.ts';

// What subagents leave, and whether it is true

export type { WorkingMemoryLimits } from './memory/options.ts';
export type { WorkingMemoryOptions } from './memory/working-memory.ts';
export {
  createWorkingMemoryToolset,
  WORKING_MEMORY_TOOLSET,
  type WorkingMemoryToolsetOptions,
} from './memory/toolset.ts';
export { isLargeOutput, type LargeOutput } from './memory/large-output.ts';
export { speakable } from './memory/speakable.ts';
export type { OutcomeOptions } from './results/outcome-options.ts';
export { verifyClaims, type DeclaredEffects } from './results/verify-claims.ts';
export { modelClaimJudge, type ClaimJudge, type ClaimVerdict } from './results/judge-claims.ts';
export {
  LINEAGE_BUDGET_CHARS,
  priorWorkSection,
  type PriorInput,
  type PriorResult,
  type PriorWork,
} from './results/prior-work.ts';

// What a session shows

export type {
  AnswerReceipt,
  ConnectionState,
  DeliveryView,
  DoubtfulCall,
  LimitView,
  QuestionOption,
  QuestionView,
  RecoveryReport,
  SessionEvent,
  SessionState,
  SubagentState,
  SubagentView,
  TranscriptItem,
  UsageView,
} from './actors/contracts/session-views.ts';

// Ports, and what is built in for them

export type { Clock, Environment, Ids, Random, Scheduler } from './actors/ports/environment.ts';
export type {
  Journal,
  JournalEntry,
  JournalPosition,
  JournalQuery,
  ScopeSummary,
} from './actors/ports/journal.ts';
export { journalEntryOf } from './actors/ports/journal-entry.ts';
export { JournalError } from './actors/ports/journal-error.ts';
export { replaySession, type ReplayStep } from './actors/replay/replay-session.ts';
export type { Changes } from './actors/replay/facts.ts';
export type {
  ReplayCall,
  ReplayDelivery,
  ReplayItem,
  ReplaySubagent,
  ReplayView,
} from './actors/replay/replay-view.ts';
export {
  checkRecording,
  exportRecording,
  importRecording,
  parseRecording,
  type RecordedStep,
  type Recording,
  type RecordingDifference,
} from './actors/replay/recording.ts';
export { forkSession, type ForkOptions } from './actors/replay/fork-session.ts';
export type { FactQuery, MemoryFact, MemoryStore } from './actors/ports/memory-store.ts';
export { memoryWakeTimes, type WakeTime, type WakeTimes } from './actors/ports/wake-times.ts';
export { memoryStore } from './actors/context/memory-store.ts';
export {
  memoryJournal,
  type MemoryJournal,
  type MemoryJournalOptions,
} from './actors/runtime/memory-journal.ts';
export { redactingJournal, type RedactionOptions } from './actors/runtime/redacting-journal.ts';
export { SECRET_NAMES } from './values/secrets.ts';
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
  WorkingMemory,
} from './actors/ports/working-memory.ts';
export type { AudioFrame } from './voice/audio/audio-frame.ts';
export type { Ears, Voice, VoiceRequest } from './voice/speech/voice.ts';
export type { Transport } from './voice/connection/transport.ts';
export {
  defaultWithVoiceOptions,
  withVoice,
  type VoicedTransport,
  type WithVoiceOptions,
} from './voice/voiced/with-voice.ts';

// Errors

export {
  CancelledError,
  TimeoutError,
  CapacityError,
  ConfigurationError,
  OffstageError,
  ProtocolError,
  ProviderError,
} from './values/errors.ts';
export type { PreApproval } from './actors/contracts/config.ts';
export type { ApprovalGrade } from './actors/contracts/outcome.ts';
export type { ClaimVerification } from './actors/contracts/outcome.ts';
export type { UnverifiedClaim } from './actors/contracts/outcome.ts';
export type { StreamedChunk } from './actors/contracts/task.ts';
export type { SetAsideEntry } from './actors/contracts/session-views.ts';
export type { SnapshotPolicy } from './actors/runtime/scope-snapshots.ts';
export { defineSubagent } from './actors/subagent/config.ts';
export type { BudgetLimits } from './actors/contracts/config.ts';
export type { ToolContext } from './actors/contracts/lead-tool.ts';
export type { ToolDefinition } from './actors/contracts/lead-tool.ts';
export type { FailureDetails } from './actors/contracts/outcome.ts';
export type { FailureReason } from './actors/contracts/outcome.ts';
export type { LastTool } from './actors/contracts/outcome.ts';
