// The tools of a lead agent, as a subagent that its model spawns may have them.
//
// Does not: decide which of them it gets (subagents/grants.ts).

import { callerOf } from '../../model/caller.ts';
import { SOURCE_TOOL } from '../../model/marks.ts';
import { toolContext } from './tool-context.ts';
import type { EffectsSession } from './effects-session.ts';

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
        execute: (input: unknown, options: CallOptions) => {
          const { toolCallId: callId, abortSignal } = options;
          const { requester = null, approver = null } = callerOf(options) ?? {};
          const call = { callId, agentName, abortSignal, requester, approver };
          return execute(input as never, toolContext(session, call));
        },
      };
  }
  return tools;
}
