// Converts the tools of a lead agent for the subagents that its model spawns.
//
// Does not: decide which of them a subagent gets (subagents/grants.ts).

import { callerOf } from '../../model/caller.ts';
import { SOURCE_TOOL } from '../../model/tool-flags.ts';
import { toolContext } from './tool-context.ts';
import type { EffectsSession } from './effects-session.ts';

interface CallOptions {
  readonly toolCallId: string;
  readonly abortSignal: AbortSignal;
}

/**
 * Returns the tools by name. A former AI SDK tool is that tool again, so that it receives the real caller;
 * another inline tool is called as by the lead agent. Background calls are not included: no other agent could
 * run them.
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
