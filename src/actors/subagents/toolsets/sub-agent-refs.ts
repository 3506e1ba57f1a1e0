// References to the children of an agent, as its state shows them.

import type { Requester, SubagentReport, SubagentService } from '../../contracts/service-types.ts';

export interface SubAgentRef {
  readonly id: string;
  /** The parent's call that the child works for. */
  readonly toolCallId: string | null;
  readonly agentType: string;
  readonly status: 'running' | 'waiting_input' | 'completed' | 'failed' | 'cancelled';
  readonly output?: unknown;
  readonly error?: string;
}

/**
 * Returns the children of one subagent, or of the lead agent or program, oldest first. Ended ones are
 * included as long as the service keeps their results.
 */
export function subAgentRefs(service: SubagentService, parent: Requester): SubAgentRef[] {
  return service
    .list(parent, { includeEnded: true })
    .filter(({ parentId }) => parentId === parent.subagentId)
    .map(refOf);
}

function refOf({ id, callId, name, state, result, error }: SubagentReport): SubAgentRef {
  return {
    id,
    toolCallId: callId,
    agentType: name,
    status: statusOfRef(state),
    ...(state === 'completed' ? { output: result } : {}),
    ...(error ? { error: error.message } : {}),
  };
}

function statusOfRef(state: SubagentReport['state']): SubAgentRef['status'] {
  if (state === 'completed' || state === 'failed' || state === 'cancelled') return state;
  return state === 'waiting_for_input' ? 'waiting_input' : 'running';
}
