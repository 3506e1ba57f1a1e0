// A tool call whose process ended in the middle of it, and of which nobody knows whether it was
// done: screens and the app learn of it here, whoever made the call.

import { callSafely } from '../../runtime/host.ts';
import type { DoubtfulCall } from '../../contracts/session-views.ts';
import type { LeadSession } from '../lead/lead-session.ts';

/** Tells once of one call. What the model reads of it is the affair of whoever runs the call. */
export function tellDoubt({ projection, host, hooks }: LeadSession, call: DoubtfulCall): void {
  const { subagentId, subagentName, callId, toolName, input, idempotencyKey } = call;
  projection.emit({
    type: 'tool.in_doubt',
    subagentId,
    subagentName,
    callId,
    toolName,
    input,
    idempotencyKey,
  });
  callSafely(host, 'hook onCallInDoubt', () => hooks.onCallInDoubt?.(call));
}
