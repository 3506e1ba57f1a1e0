// Helix's plan of a step: splits the calls of a model step into calls of subagents and other calls. Pure.

import { ownValue } from '../values/own-value.ts';
import { subAgentOf } from '../actors/model/tool-flags.ts';
import { SUBAGENT_TOOL_PREFIX } from '../actors/subagents/toolsets/sub-agent-tool.ts';

/** Decides by the prefix of a name, or by the marks of the tool itself. */
export function isSubAgentTool(nameOrTool: unknown): boolean {
  return typeof nameOrTool === 'string'
    ? nameOrTool.startsWith(SUBAGENT_TOOL_PREFIX) && nameOrTool !== SUBAGENT_TOOL_PREFIX
    : subAgentOf(nameOrTool) !== null;
}

/** A call of the AI SDK, or with the property names of other systems. */
export type PlannableCall =
  | { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  | { readonly id: string; readonly name: string; readonly arguments: unknown };

/** The calls of one model step: those of subagents, and the others. */
export interface StepPlan<Call extends PlannableCall = PlannableCall> {
  readonly toolCalls: readonly Call[];
  readonly subAgentCalls: readonly {
    readonly id: string;
    readonly agentType: string;
    readonly input: unknown;
  }[];
}

/**
 * Splits the calls of a step, each part in the order of the calls. With the tools a subagent's tool is
 * recognised under any name (`summarize`), and any other tool is never taken for one; without them the prefix
 * decides.
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
  if (tool !== undefined) return subAgentOf(tool)?.name ?? null;
  return isSubAgentTool(name) ? name.slice(SUBAGENT_TOOL_PREFIX.length) : null;
}
