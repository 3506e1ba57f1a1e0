// `complete_task`: how a subagent hands in its result. The runtime knows the tool by its
// role; where a result must be handed in and the tool is not there, it is added.

import { z } from 'zod';
import { checkResult } from '../model/output.ts';
import type { ModelCall } from '../model/model-step.ts';
import type { PreparedTools } from '../model/tools.ts';
import { createChildSubagentToolset } from './child-toolset.ts';
import { roleOf } from '../model/marks.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import type { Artifact } from '../contracts/outcome.ts';

export interface HandedIn {
  /** Plain JSON; of the output schema, where there is one. */
  readonly result: unknown;
  readonly summary?: string;
  readonly artifacts?: readonly Artifact[];
}

const artifact = z.object({ type: z.string(), name: z.string(), content: z.unknown() });
const input = z.object({
  result: z.unknown(),
  summary: z.string().optional().catch(undefined),
  artifacts: z.array(artifact).optional().catch(undefined),
});

/** The name of the tool by which these tools hand in a result; null if there is none. */
export function completionToolOf(tools: Readonly<Record<string, unknown>>): string | null {
  return Object.keys(tools).find((name) => roleOf(tools[name]) === 'complete_task') ?? null;
}

/** As `completionToolOf`, of tools that are prepared. */
export function completionToolIn({ execution }: PreparedTools): string {
  for (const { name, role } of execution.values()) if (role === 'complete_task') return name;
  return 'complete_task';
}

/** The tools that the runtime adds so that the work can end. */
export function completionTools({
  completion,
  tools,
  outputSchema,
}: SubagentDefinition): Record<string, unknown> {
  if (completion === 'turn' || completionToolOf(tools) !== null) return {};
  const { complete_task } = createChildSubagentToolset({ structured: outputSchema !== undefined });
  return { complete_task };
}

/** What was handed in, from the arguments of the call, which fit the schema of the tool. */
export function handedInBy(call: ModelCall): HandedIn {
  const { result = null, summary, artifacts } = input.parse(call.input);
  return {
    result,
    ...(summary === undefined ? {} : { summary }),
    ...(artifacts === undefined ? {} : { artifacts }),
  };
}

/** The call with its result as the output schema makes it; one that does not fit is not run. */
export async function checkHandIn(call: ModelCall, outputSchema: unknown): Promise<ModelCall> {
  if (outputSchema === undefined) return call;
  const { result, ...rest } = call.input as { readonly result?: unknown };
  const checked = await checkResult(outputSchema, result);
  if (checked.ok) return { ...call, input: { ...rest, result: checked.value } };
  const message = `The result was not accepted: ${checked.reason}`;
  return { ...call, invalid: { message } };
}

/** What the model reads when it answers instead of handing in. */
export function notHandedInMessage(toolName: string): string {
  return (
    `The task is not done before you call ${toolName} with its result. ` +
    'Go on, or call it now; an answer without it is read by nobody.'
  );
}
