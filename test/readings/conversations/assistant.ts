// The shared parts of the conversations: the lead agent's instructions and short forms for tools.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../../../src/index.ts';

export const ASSISTANT =
  'You are a friendly personal assistant. You talk with your user. Be brief: one or two sentences.';

/** A lead agent's tool that a subagent executes. */
export function background(
  name: string,
  description: string,
  argument: string,
  pendingMessage?: string,
): ToolDefinition {
  return defineTool({
    name,
    description,
    parameters: z.object({ [argument]: z.string() }),
    execution: 'background',
    ...(pendingMessage !== undefined && { pendingMessage }),
  });
}

/** A subagent's tool with text arguments. */
export function work(
  description: string,
  names: readonly string[],
  execute: (input: Readonly<Record<string, string>>) => unknown,
  options: { readonly needsApproval?: boolean } = {},
) {
  const input = z.object(Object.fromEntries(names.map((name) => [name, z.string()])));
  return tool({ description, inputSchema: input, execute, ...options });
}
