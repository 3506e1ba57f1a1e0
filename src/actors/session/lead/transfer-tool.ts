// The tool by which a lead agent hands the conversation over to another one: an ordinary
// inline call, whose execution is the transfer. It is answered when that is done or failed.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { defineTool } from './lead-tools.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';

/** Who asks for a transfer. */
export interface TransferCall {
  readonly callId: string;
  /** Whoever leads no more cannot hand over what another one leads. */
  readonly agentName: string;
}

export const TRANSFER_TOOL = 'transfer_to_agent';

/** More than a transfer may take with its hooks, so that it always ends by itself. */
const TIMEOUT_MS = 60_000;

/** `others`: whom the agent may hand over to. */
export function transferTool(
  others: readonly { readonly name: string; readonly description?: string }[],
  transfer: (to: string, call: TransferCall) => Promise<unknown>,
): ToolDefinition {
  const list = others
    .map(({ name, description }) => (description ? `"${name}" (${description})` : `"${name}"`))
    .join(', ');
  return defineTool<{ agent_name: string }>({
    name: TRANSFER_TOOL,
    description:
      `Hand the conversation over to another agent, who talks to the user from then on. ` +
      `Agents: ${list}.`,
    parameters: jsonSchema<{ agent_name: string }>(
      {
        type: 'object',
        properties: { agent_name: { type: 'string', enum: others.map(({ name }) => name) } },
        required: ['agent_name'],
        additionalProperties: false,
      },
      { validate: checked },
    ),
    timeout: TIMEOUT_MS,
    execute: ({ agent_name: to }, { callId, agentName }) => transfer(to, { callId, agentName }),
  });
}

/** Whether there is such an agent is for the transfer to say: it names those that there are. */
const argumentsSchema = z.object({ agent_name: z.string() });

function checked(value: unknown) {
  const parsed = argumentsSchema.safeParse(value);
  return parsed.success
    ? { success: true as const, value: parsed.data }
    : { success: false as const, error: new Error(z.prettifyError(parsed.error)) };
}
