// The entry `offstage/subagents`: subagents without a session, the subagent tree for programs, and the toolsets.

import { z } from 'zod';
import { withRuntime, type RuntimeChoice } from '../real-time.ts';
import { usageBelow, type Usage, type UsageOf } from '../actors/contracts/usage.ts';
import { check } from '../values/checks.ts';
import type { OutputOf, SubagentConfig } from '../actors/contracts/config.ts';
import {
  runSubagent as runSubagentWith,
  type RunSubagentOptions as CoreRunSubagentOptions,
  type RunTask,
  type SubagentRun,
} from '../actors/subagents/run-subagent.ts';
import {
  subagentLogic as subagentLogicWith,
  type SubagentLogic,
  type SubagentLogicOptions,
} from '../actors/subagents/subagent-logic.ts';

export type { SubagentRun } from '../actors/subagents/run-subagent.ts';
export { subAgentTools } from '../actors/subagents/toolsets/sub-agent-tool.ts';
export { leadSubagents, leadTools } from '../actors/subagents/toolsets/lead-toolset.ts';
export { createSubagentService } from '../actors/subagents/subagent-service.ts';
export type { SubagentService } from '../actors/contracts/service-types.ts';
export type { RunMessageOptions, RunMessageReceipt } from '../actors/subagents/run-subagent.ts';
export type {
  SubagentActorContext,
  SubagentActorEvent,
  SubagentActorInput,
  SubagentActorSnapshot,
  SubagentLogic,
} from '../actors/subagents/subagent-logic.ts';
export type { ActorRefusal } from '../actors/runtime/actor-tree.ts';
export type { SessionActorEvent, SessionCommand } from '../actors/contracts/session-command.ts';
export type {
  SessionActorSnapshot,
  SessionEnd,
  SessionLogic,
} from '../actors/session/view/session-logic.ts';
export type { BudgetUse } from '../actors/contracts/config.ts';
export { PARENT_TOOLSET, toolsetAnnotations } from '../actors/subagents/toolsets/parent-toolset.ts';
export type { ParentTool } from '../actors/subagents/toolsets/parent-toolset.ts';
export { CHILD_TOOLSET, type ChildTool } from '../actors/subagent/child-toolset.ts';
export type { SubAgentTool } from '../actors/subagents/toolsets/sub-agent-tool.ts';
export type { CallerContext } from '../actors/model/caller.ts';
export type {
  OwnedSubagentService,
  ServiceRecovery,
  SubagentServiceOptions,
} from '../actors/subagents/subagent-service.ts';
export type { ProgramRequest } from '../actors/subagents/program-ports.ts';
export { THE_LEAD } from '../actors/contracts/service-types.ts';
export type {
  AwaitResult,
  CheckResult,
  DelegationErrorCode,
  DelegationFailure,
  PendingInput,
  ProgressNote,
  Refused,
  Requester,
  SendRequest,
  SendResult,
  SpawnReceipt,
  SpawnRequest,
  SubagentChunk,
  SubagentReport,
} from '../actors/contracts/service-types.ts';
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
export { relayLoop } from '../actors/subagent/relay-loop.ts';
export { agentSubagent } from '../actors/subagent/agent-loop.ts';
export { agentRelay } from '../actors/subagent/agent-relay.ts';

/** The model, the question handlers and the shared resources. By default, they come from the process's runtime. */
export type RunSubagentOptions = Omit<CoreRunSubagentOptions, 'runtime'> & RuntimeChoice;

/**
 * Runs one subagent for a program, without a conversation.
 * @throws {ConfigurationError} if the configuration is invalid.
 * @throws {CapacityError} if the runtime already has 100,000 runs that have not ended.
 */
export function runSubagent<Config extends SubagentConfig>(
  config: Config,
  task: RunTask | string,
  options?: RunSubagentOptions,
): SubagentRun<OutputOf<Config>>;
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions = {},
): SubagentRun {
  return runSubagentWith(config, task, withRuntime('runSubagent(…, options)', options));
}

/**
 * Returns a subagent as XState actor logic, for `createActor`, `invoke` and `spawn`. The actor has the subagent's
 * states (`running`, `waiting_for_input`, `completed`, `failed`, `cancelled`, …) and accepts the events `answer`,
 * `message` and `cancel`. Its output is the outcome.
 * @throws {ConfigurationError} if the configuration or an option is invalid.
 */
export function subagentLogic<Config extends SubagentConfig>(
  config: Config,
  options?: Omit<SubagentLogicOptions, 'runtime'> & RuntimeChoice,
): SubagentLogic<OutputOf<Config>>;
export function subagentLogic(
  config: SubagentConfig,
  options: Omit<SubagentLogicOptions, 'runtime'> & RuntimeChoice = {},
): SubagentLogic {
  return subagentLogicWith(config, withRuntime('subagentLogic(…, options)', options));
}

const tokens = z.number().nonnegative();

const usages = z.object({
  subagents: z.array(
    z.looseObject({
      id: z.string(),
      parentId: z.string().nullable(),
      usage: z.looseObject({ inputTokens: tokens, outputTokens: tokens, totalTokens: tokens }),
    }),
  ),
  id: z.string().nullable(),
});

/**
 * Adds up the usage of a subagent and of all subagents under it, from the `subagents` in a session's state. If `id` is
 * null, adds up the usage of all subagents. The result excludes the lead agent's usage. For an unknown `id`, the usage
 * is empty.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the subagents do not come from a session's state.
 */
export function subtreeUsage(subagents: readonly UsageOf[], id: string | null): Usage {
  check('subtreeUsage(subagents, id)', usages, { subagents, id }, 'INVALID_ARGUMENT');
  return usageBelow(subagents, id);
}
