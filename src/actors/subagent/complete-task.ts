// `complete_task`: the tool with which a subagent hands in its result. The runtime recognizes the tool by its
// role, and adds it where a result must be handed in and no tool has that role.

import { checkResult } from '../model/output.ts';
import type { ModelCall } from '../model/model-step.ts';
import type { PreparedTools } from '../model/tools.ts';
import { createChildSubagentToolset } from './child-toolset.ts';
import { roleOf } from '../model/tool-flags.ts';
import type { SubagentDefinition } from '../contracts/config.ts';

/** Finds the name of the tool that hands in a result; null if these tools have none. */
export function completionToolOf(tools: Readonly<Record<string, unknown>>): string | null {
  return Object.keys(tools).find((name) => roleOf(tools[name]) === 'complete_task') ?? null;
}

/** As `completionToolOf`, for prepared tools. */
export function completionToolIn({ execution }: PreparedTools): string {
  for (const { name, role } of execution.values()) if (role === 'complete_task') return name;
  return 'complete_task';
}

/** Returns the tools that the runtime adds so that the work can end. */
export function completionTools({
  completion,
  tools,
  outputSchema,
}: SubagentDefinition): Record<string, unknown> {
  if (completion === 'turn' || completionToolOf(tools) !== null) return {};
  const { complete_task } = createChildSubagentToolset({ structured: outputSchema !== undefined });
  return { complete_task };
}

/**
 * Returns the call with its result as the output schema parses it; a result that does not fit makes the call
 * invalid.
 */
export async function checkHandIn(call: ModelCall, outputSchema: unknown): Promise<ModelCall> {
  if (outputSchema === undefined) return call;
  const { result, ...rest } = call.input as { readonly result?: unknown };
  const checked = await checkResult(outputSchema, result);
  if (checked.ok) return { ...call, input: { ...rest, result: checked.value } };
  const message = `The result was not accepted: ${checked.reason}`;
  return { ...call, invalid: { message } };
}

/** Returns the message to a model that answers instead of handing in. */
export function notHandedInMessage(toolName: string): string {
  return (
    `The task is not done before you call ${toolName} with its result. ` +
    'Go on, or call it now; an answer without it is read by nobody.'
  );
}
