// The views of a record for callers of the service, screens and the stream.

import type { SubagentState, SubagentView } from '../contracts/session-views.ts';
import type { OpenRequest, SubagentRecord } from './subagent-registry.ts';
import type { PendingInput, SubagentReport } from '../contracts/service-types.ts';

/**
 * Returns the state: `ready` until it runs; once there is an outcome, the outcome's, with `lost` and
 * `timed_out` as failed.
 */
function stateOf({ subagent, outcome }: SubagentRecord): SubagentState {
  // The end is shown with the outcome, whose processing may take a moment.
  if (subagent) return isOver(subagent.state) ? 'running' : subagent.state;
  const { status } = outcome ?? { status: 'failed' };
  return status === 'completed' || status === 'cancelled' ? status : 'failed';
}

function isOver(state: SubagentState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled';
}

export function reportOf(record: SubagentRecord): SubagentReport {
  const { id, admission, request, outcome, subagent } = record;
  const { summary, error, partial } = outcome ?? {};
  return {
    id,
    name: admission.definition.name,
    task: admission.task.description,
    toolName: admission.task.toolName,
    state: stateOf(record),
    step: subagent?.step ?? record.lastStep,
    hung: record.isHung,
    pendingRequest: request && pendingOf(request),
    progress: record.progress,
    depth: record.depth,
    parentId: record.parentId,
    callId: admission.callId,
    workstreamId: admission.workstreamId,
    startedAt: admission.startedAt,
    lastActiveAt: record.lastActiveAt,
    endedAt: record.endedAt,
    ...(outcome?.status === 'completed' ? { result: outcome.output } : {}),
    ...(summary === undefined ? {} : { summary }),
    ...(error === undefined ? {} : { error }),
    ...(partial === undefined ? {} : { partial }),
    outcome,
  };
}

/** Copies a request without its internal properties. */
export function pendingOf(request: OpenRequest): PendingInput {
  const { stopClock: _, isTold: __, isHandled: ___, ...pending } = request;
  return pending;
}

export function viewOf(record: SubagentRecord): SubagentView {
  const { id, admission, parentId, depth, subagent, outcome } = record;
  const { definition, task, callId, startedAt } = admission;
  return {
    id,
    name: definition.name,
    parentId,
    depth,
    // The call of a child belongs to its parent.
    callId: parentId === null ? callId : null,
    toolName: task.toolName,
    task: task.description,
    state: stateOf(record),
    hung: record.isHung,
    step: subagent?.step ?? record.lastStep,
    maxSteps: definition.maxSteps,
    startedAt,
    endedAt: record.endedAt,
    progress: subagent?.progress ?? record.said,
    outcome,
  };
}
