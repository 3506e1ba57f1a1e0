// Records the events of a tool call.
//
// Does not: decide the consequences (the machine of the call does).

import type { Stamped } from '../../../machines/index.ts';
import type { EventFor } from '../../contracts/session-protocol.ts';
import { pendingAnswer } from '../../conversation/prompts.ts';
import type { CallRecord } from '../../contracts/records.ts';

/** Applies the content of an event of its machine. */
export function happenedTo(call: CallRecord, event: EventFor<`call:${string}`> & Stamped): void {
  switch (event.type) {
    case 'call.validated':
      call.input = event.input;
      call.delivery = event.delivery ?? 'when_idle';
      call.output = event.acknowledge ? pendingAnswer(String(event.message)) : null;
      break;
    case 'call.invalid':
      call.output = { error: event.error.message };
      break;
    case 'subagent.rejected':
      call.output = event.output ?? { error: event.error.message };
      break;
    case 'call.executed':
      call.output = event.output;
      if (event.failed === true) call.failed = true;
      break;
    case 'deadline.execution':
      call.failed = true;
      call.output = { error: `Tool "${call.name}" timed out` };
      break;
    case 'call.cancel':
      if (typeof event.reason === 'string') call.cancelReason = event.reason;
      call.output = { error: `Tool "${call.name}" was cancelled` };
      break;
    case 'subagent.accepted':
      call.subagentId = event.subagentId;
      break;
    case 'subagent.ended':
      call.outcome = event.outcome;
      call.endedAt = event.at;
      break;
    case 'delivery.settled':
      break;
  }
}
