// The context that an inline tool of the lead agent receives beside its arguments.
import type { ToolContext } from '../../contracts/lead-tool.ts';
import type { EffectsSession } from './effects-session.ts';

export function toolContext(
  session: EffectsSession,
  call: Pick<ToolContext, 'callId' | 'agentName' | 'abortSignal' | 'requester' | 'approver'>,
): ToolContext {
  return {
    ...call,
    sessionId: session.id,
    idempotencyKey: keyOf(session.id, call.callId),
    subagents: session.delegation,
    sendJsonToClient: (data) => session.sendJson(data),
    setDirective: session.leads.setDirective,
  };
}

/** Returns the idempotency key of a call: the same for every attempt, in this process and after it. */
export function keyOf(sessionId: string, callId: string): string {
  return `${sessionId}:${callId}`;
}
