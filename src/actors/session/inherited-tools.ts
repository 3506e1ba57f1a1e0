// The tools of a lead agent, as a subagent that its model spawns may have them.
//
// Does not: decide which of them it gets (delegation/grants.ts).

import { SOURCE_TOOL } from '../delegation/marks.ts';
import type { EffectsSession } from './session-parts.ts';
import { toolContext } from './tool-context.ts';

interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal: AbortSignal;
}

/**
 * By name. What was an AI SDK tool is that tool again, so that it learns who really calls; an
 * inline tool of another kind is called as ever. The lead's other background calls are not
 * tools that somebody else could run.
 */
export function inheritedTools(
  session: EffectsSession,
  agentName: string,
): Readonly<Record<string, unknown>> {
  const tools: Record<string, unknown> = {};
  for (const [name, { definition }] of session.leads.toolsOf(agentName)) {
    const source = SOURCE_TOOL in definition ? definition[SOURCE_TOOL] : undefined;
    const { description, parameters: inputSchema, execute, idempotent = false } = definition;
    if (source !== undefined) tools[name] = source;
    else if (execute)
      tools[name] = {
        description,
        inputSchema,
        idempotent,
        execute: (input: unknown, { toolCallId: callId, abortSignal }: CallOptions) =>
          execute(input as never, toolContext(session, { callId, agentName, abortSignal })),
      };
  }
  return tools;
}
