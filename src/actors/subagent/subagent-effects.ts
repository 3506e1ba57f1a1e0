// What the machine of a subagent wants of those outside, put to them: slots, questions, receipts.
//
// Does not: end it, or put it away (the subagent does), or run its work (subagent-work.ts).

import type { AskInput } from '../../machines/subagent-setup.ts';
import { approvalQuestion, askedQuestion } from './ask-user.ts';
import { requestedInput } from './request-input.ts';
import type { Subagent } from './subagent.ts';
import type { StepReport, SubagentPorts } from './subagent-ports.ts';

/** Effects that are not known do nothing: they are for somebody else. */
export function carryOut(
  subagent: Subagent,
  ports: SubagentPorts,
  name: string,
  params: unknown,
): void {
  const { id } = subagent;
  switch (name) {
    case 'requestSlot':
      ports.requestSlot(id, (params as { resumed: boolean }).resumed, (history = []) =>
        subagent.receive({ type: 'slot.granted', ...(history.length > 0 ? { history } : {}) }),
      );
      break;
    case 'releaseSlot':
      ports.releaseSlot(id);
      break;
    case 'ask':
      ask(subagent, ports, params as AskInput);
      break;
    case 'withdraw': {
      const { kind, requestId } = params as AskInput;
      if (kind === 'input') ports.withdrawInput(requestId, subagent);
      else ports.withdraw(requestId, subagent);
      break;
    }
    case 'taken':
      ports.messageTaken(params as string);
      break;
    case 'stepped':
      ports.stepped(subagent, params as StepReport);
      break;
    default:
      break;
  }
}

/** Puts what it asks to whom it is for: the user, or the agent that gave it its task. */
function ask(
  { id, definition, log }: Subagent,
  ports: SubagentPorts,
  { requestId, callId, kind }: AskInput,
): void {
  const call = log.call(callId);
  const asked = { requestId, subagentId: id, subagentName: definition.name };
  if (kind === 'input') {
    ports.requestInput({ ...asked, ...requestedInput(call) });
    return;
  }
  const question = kind === 'approval' ? approvalQuestion(call) : askedQuestion(call?.input);
  const who = call?.answerableBy === undefined ? {} : { answerableBy: call.answerableBy };
  ports.ask({ ...asked, kind, timeoutMs: definition.inputTimeout, ...question, ...who });
}
