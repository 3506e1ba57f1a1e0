// What a subagent asks, put to whom it is for: the user, or the agent that gave it its task.

import type { AskInput } from '../../machines/subagent-setup.ts';
import { approvalQuestion, askedQuestion } from './ask-user.ts';
import { requestedInput } from './request-input.ts';
import type { Subagent } from './subagent.ts';
import type { SubagentPorts } from './subagent-ports.ts';

export function ask(
  { id, definition, log }: Pick<Subagent, 'id' | 'definition' | 'log'>,
  ports: Pick<SubagentPorts, 'ask' | 'requestInput'>,
  { requestId, callId, kind }: AskInput,
): void {
  const call = log.call(callId);
  const asked = { requestId, subagentId: id, subagentName: definition.name };
  if (kind === 'input') {
    ports.requestInput({ ...asked, ...requestedInput(call) });
    return;
  }
  const question = kind === 'approval' ? approvalQuestion(call) : askedQuestion(call?.input);
  ports.ask({ ...asked, kind, timeoutMs: definition.inputTimeout, ...question });
}
