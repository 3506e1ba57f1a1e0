// `offstage/subagents`: the tree of subagents for programs, and the types of its toolsets.

export type {
  RunMessageOptions,
  RunMessageReceipt,
  RunTask,
} from '../actors/subagents/run-subagent.ts';
export type {
  SubagentActorContext,
  SubagentActorEvent,
  SubagentActorInput,
  SubagentActorSnapshot,
  SubagentLogic,
  SubagentLogicOptions,
} from '../actors/subagents/subagent-logic.ts';
export { subtreeUsage } from '../actors/subagents/subtree-usage.ts';
export type { ActorRefusal, HostedActor } from '../actors/runtime/actor-tree.ts';
export type { SessionActorEvent, SessionCommand } from '../actors/contracts/session-command.ts';
export type { SessionActor } from '../actors/session/unit/session-unit.ts';
export type {
  SessionActorSnapshot,
  SessionEnd,
  SessionLogic,
  SessionLogicOptions,
} from '../actors/session/view/session-logic.ts';
export type { TransferAnswer } from '../actors/session/lead/lead-agents.ts';
export type {
  BudgetReport,
  BudgetUse,
  HungSubagent,
  RetryOptions,
  ToolApproval,
} from '../actors/contracts/config.ts';
export { PARENT_TOOLSET, toolsetAnnotations } from '../actors/subagents/toolsets/parent-toolset.ts';
export type { ParentToolsetOptions } from '../actors/subagents/toolsets/parent-toolset.ts';
export { CHILD_TOOLSET } from '../actors/subagent/child-toolset.ts';
export type { ChildToolsetOptions } from '../actors/subagent/child-toolset.ts';
export type {
  HostNames,
  SpawnBase,
  SpawnOptions,
} from '../actors/subagents/toolsets/spawn-plan.ts';
export type {
  SubAgentFailure,
  SubAgentQuestion,
  SubAgentTool,
  SubAgentToolOptions,
} from '../actors/subagents/toolsets/sub-agent-tool.ts';
export type { LeadToolsOptions } from '../actors/subagents/toolsets/lead-toolset.ts';
export type { ProgramOptions } from '../actors/subagents/subagent-service.ts';
export type { CallerContext } from '../actors/model/caller.ts';
export type {
  OwnedSubagentService,
  ServiceRecovery,
  SubagentServiceOptions,
} from '../actors/subagents/subagent-service.ts';
export type {
  ProgramAnswer,
  ProgramHandlers,
  ProgramRequest,
} from '../actors/subagents/program-ports.ts';
export { THE_LEAD } from '../actors/contracts/service-types.ts';
export type {
  AwaitOptions,
  AwaitResult,
  CheckResult,
  DelegationErrorCode,
  DelegationFailure,
  ListOptions,
  MessageReceipt,
  PendingInput,
  ProgressNote,
  RaiseResult,
  Refused,
  Requester,
  SendRequest,
  SendResult,
  SpawnReceipt,
  SpawnRequest,
  SubagentChunk,
  SubagentReport,
  ToolGrant,
} from '../actors/contracts/service-types.ts';
export type { ApprovalGrade } from '../actors/contracts/outcome.ts';
export type { StreamedChunk } from '../actors/contracts/task.ts';
export { isToolFailure } from '../actors/model/tool-results.ts';
export type { ToolFailure } from '../actors/model/tool-results.ts';
export type {
  Relay,
  RelayAnswer,
  RelayCapabilities,
  RelayEvent,
  RelayPrompt,
  RelayRelease,
  RelaySession,
  RelayStart,
  RelayTask,
  RelayTool,
} from '../actors/ports/relay.ts';
export { agentRelay } from '../actors/subagent/agent-relay.ts';
export type {
  AgentQuestion,
  AgentRelayOptions,
  RelayedAgent,
} from '../actors/subagent/agent-relay.ts';
export type { AgentLoop, AgentSettings } from '../actors/contracts/agent-loop.ts';
export type { AgentSubagentConfig } from '../actors/subagent/agent-settings.ts';
