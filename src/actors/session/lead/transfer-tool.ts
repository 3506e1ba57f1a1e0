// The tool with which a lead agent transfers the conversation to another one: an ordinary inline call, whose
// execution is the transfer. It is answered when the transfer is done or has failed.

import { jsonSchema } from 'ai';
import { z } from 'zod';
import { defineTool } from './lead-tools.ts';
import type { ToolDefinition } from '../../contracts/lead-tool.ts';

/** The call that requests a transfer. */
export interface TransferCall {
  readonly callId: string;
  /** The caller: an agent that no longer leads cannot transfer the conversation. */
  readonly agentName: string;
}

export const TRANSFER_TOOL = 'transfer_to_agent';

/** Longer than a transfer may take with its hooks, so that the transfer always ends by itself. */
const TIMEOUT_MS = 60_000;

/** `others`: the agents to which this one may transfer. */
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

/** Whether the agent exists is checked by the transfer, whose error names the agents. */
const argumentsSchema = z.object({ agent_name: z.string() });

function checked(value: unknown) {
  const parsed = argumentsSchema.safeParse(value);
  return parsed.success
    ? { success: true as const, value: parsed.data }
    : { success: false as const, error: new Error(z.prettifyError(parsed.error)) };
}
