// `offstage/compat`: the dialects of RockBot, Bodhi, Helix and Makaio (docs/coming-from.md).

export type {
  SubagentProgressMessage,
  SubagentResultMessage,
  SubagentTopics,
} from '../actors/session/delivery/subagent-messages.ts';
export type { ClientInput, ClientReceipt } from '../actors/session/questions/client-input.ts';
export type {
  ClientMessage,
  SubagentCompletion,
  UiPayload,
} from '../actors/session/view/client-messages.ts';
export {
  rockbotChildToolset,
  rockbotLimits,
} from '../actors/subagents/toolsets/rockbot-toolset.ts';
export type { RockbotToolsetOptions } from '../actors/subagents/toolsets/rockbot-toolset.ts';
export {
  isSubAgentTool,
  planStepProcessing,
  SUBAGENT_TOOL_PREFIX,
} from '../actors/subagents/toolsets/sub-agent-tool.ts';
export type {
  PlannableCall,
  StepPlan,
  SubAgentConfig,
} from '../actors/subagents/toolsets/sub-agent-tool.ts';
export type { CompanionAgent } from '../actors/subagents/toolsets/companions.ts';
export { subAgentRefs } from '../actors/subagents/toolsets/sub-agent-refs.ts';
export type { SubAgentRef } from '../actors/subagents/toolsets/sub-agent-refs.ts';
export { subAgentStream } from '../actors/subagents/sub-agent-stream.ts';
export type { SubAgentStreamChunk } from '../actors/subagents/sub-agent-stream.ts';
