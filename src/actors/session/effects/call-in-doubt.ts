// Reports a tool call whose process ended in the middle of it, and whose outcome is unknown, to screens and
// the app, whichever agent made the call.

import { callSafely } from '../../runtime/host.ts';
import type { DoubtfulCall } from '../../contracts/session-views.ts';
import type { LeadSession } from '../lead/lead-session.ts';

/** Reports one call, once. The component that runs the call writes the answer for the model. */
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
