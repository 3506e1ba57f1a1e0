// The entry `offstage/compat`: tools and messages with the names of RockBot, Bodhi, Helix and Makaio
// (docs/coming-from.md).

export { clientMessages, receiveClientMessage } from './client-messages.ts';
export type { ClientMessage, SubagentCompletion } from './client-messages.ts';
export { topic } from './topics.ts';
export type {
  SubagentProgressMessage,
  SubagentResultMessage,
  SubagentTopics,
  TopicSession,
} from './topics.ts';
export { rockbotChildToolset, rockbotLimits, rockbotToolset } from './rockbot-toolset.ts';
export { isSubAgentTool, planStepProcessing } from './plan-step.ts';
export type { StepPlan } from './plan-step.ts';
export { SUBAGENT_TOOL_PREFIX } from '../actors/subagents/toolsets/sub-agent-tool.ts';
export type { SubAgentConfig } from '../actors/subagents/toolsets/sub-agent-tool.ts';
export { companions } from './companions.ts';
export { subAgentRefs } from '../actors/subagents/toolsets/parent-views.ts';
export type { SubAgentRef } from '../actors/subagents/toolsets/parent-views.ts';
export { subAgentStream } from './sub-agent-stream.ts';
export type { SubAgentStreamChunk } from './sub-agent-stream.ts';
export {
  looksLikeQuestion,
  openClawLimits,
  openClawPlan,
  openClawTaskKind,
  openClawTaskManager,
  OpenClawTaskQueueTimeoutError,
} from './openclaw-tasks.ts';
export type { OpenClawTaskKind } from './openclaw-tasks.ts';
export { askClaude, relaySubagent } from './relay-tools.ts';
export type { RelayToolResult, RelayToolsOptions } from './relay-tools.ts';
