// Helix's step plan: splits the calls of a model step into subagent calls and other calls. Pure.

import { ownValue } from '../values/own-value.ts';
import { subagentOf } from '../actors/model/tool-flags.ts';
import { SUBAGENT_TOOL_PREFIX } from '../actors/subagents/toolsets/sub-agent-tool.ts';

/** Recognises a subagent tool by the prefix of its name or by the markers on the tool itself. */
export function isSubAgentTool(nameOrTool: unknown): boolean {
  return typeof nameOrTool === 'string'
    ? nameOrTool.startsWith(SUBAGENT_TOOL_PREFIX) && nameOrTool !== SUBAGENT_TOOL_PREFIX
    : subagentOf(nameOrTool) !== null;
}

/** A call of the AI SDK, or a call with the property names of other systems. */
export type PlannableCall =
  | { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  | { readonly id: string; readonly name: string; readonly arguments: unknown };

/** The calls of one model step: subagent calls, and other calls. */
export interface StepPlan<Call extends PlannableCall = PlannableCall> {
  /** The calls of other tools, unchanged. */
  readonly toolCalls: readonly Call[];
  /** The calls that run subagents. `agentType`: the subagent's name, or the tool's name without its prefix. */
  readonly subAgentCalls: readonly {
    readonly id: string;
    readonly agentType: string;
    readonly input: unknown;
  }[];
}

/**
 * Splits the calls of a step. In both lists, the calls keep their order. With `tools`, a subagent tool is recognised
 * under any name (`summarize`), and no other tool is recognised. Without `tools`, the prefix decides.
 */
export function planStepProcessing<Call extends PlannableCall>(
  calls: readonly Call[],
  tools: Readonly<Record<string, unknown>> = {},
): StepPlan<Call> {
  const toolCalls: Call[] = [];
  const subAgentCalls: StepPlan['subAgentCalls'][number][] = [];
  for (const call of calls) {
    const { id, name, input } = partsOf(call);
    const agentType = agentTypeOf(name, ownValue(tools, name));
    if (agentType === null) toolCalls.push(call);
    else subAgentCalls.push({ id, agentType, input });
  }
  return { toolCalls, subAgentCalls };
}

function partsOf(call: PlannableCall) {
  return 'toolCallId' in call
    ? { id: call.toolCallId, name: call.toolName, input: call.input }
    : { id: call.id, name: call.name, input: call.arguments };
}

function agentTypeOf(name: string, tool: unknown): string | null {
  if (tool !== undefined) return subagentOf(tool)?.name ?? null;
  return isSubAgentTool(name) ? name.slice(SUBAGENT_TOOL_PREFIX.length) : null;
}
