// Applies an event of a subagent's unit to its log. The log records the words and results of the event before
// the machine decides what happens next.

import type { Stamped, SubagentSnapshot } from '../../machines/index.ts';
import { inputTimeoutMessage } from '../conversation/prompts.ts';
import { BUDGET_USED_UP, type SubagentLog } from './subagent-log.ts';
import type { SubagentUnitEvent } from './subagent-ports.ts';
import {
  askOf,
  idsOf,
  isCompletion,
  isDelegation,
  isRunnable,
  type CallState,
} from '../../machines/subagent-setup.ts';

export const INTERRUPTED = 'interrupted by a message';

/** Applies `event` to the log. `snapshot` is that of the machine before the event. */
export function foldEvent(
  event: SubagentUnitEvent & Stamped,
  log: SubagentLog,
  snapshot: SubagentSnapshot,
): void {
  log.at(event.at);
  switch (event.type) {
    case 'subagent.prepared':
      log.begin(event.messages ?? [], event.marks);
      break;
    case 'slot.granted':
      log.precede(event.history ?? []);
      break;
    case 'model.responded': {
      const { step, response, retryMessage, result, calls } = event;
      const completion = calls.find(isCompletion)?.callId ?? null;
      log.responded({ step, response, retryMessage, result, completion });
      break;
    }
    case 'model.failed':
      if (event.response !== undefined) log.said(event.response);
      break;
    case 'tool.settled':
      log.settled(event.callId, event.outcome);
      break;
    case 'question.answered':
    case 'question.expired':
    case 'question.withdrawn':
      foldAnswer(event, log, snapshot);
      break;
    case 'subagent.message':
      log.heard({ messageId: event.messageId, text: event.text, note: event.note });
      if (event.mode === 'interrupt') breakOff(log, snapshot);
      break;
    case 'budget.exhausted':
      if (event.graceful) beginNothing(log, snapshot);
      // The budget refused the model call of this subagent: the step under way is the last one.
      if (snapshot.matches({ running: 'thinking' }) && event.step === snapshot.context.step)
        log.tellHandIn();
      break;
    // These change the machine only.
    case 'subagent.spawned':
    case 'subagent.unprepared':
    case 'subagent.cancel':
    case 'deadline.preparation':
    case 'deadline.run':
      break;
  }
}

type Answered = Extract<
  SubagentUnitEvent,
  { readonly type: 'question.answered' | 'question.expired' | 'question.withdrawn' }
>;

function foldAnswer(event: Answered, log: SubagentLog, { context }: SubagentSnapshot): void {
  const { missed, maxInputRetries, calls } = context;
  const asking = askOf(calls);
  if (!asking) return;
  const { callId, kind } = asking;
  if (kind === 'input') {
    if (event.type !== 'question.answered')
      log.inputMissing(callId, event.type === 'question.expired');
    else log.inputGiven(callId, event.answer.userResponse, event.answer.by);
  } else if (event.type === 'question.answered') log.answered(callId, event.answer);
  else if (event.type === 'question.expired')
    log.unanswered(callId, inputTimeoutMessage(missed + 1, maxInputRetries), 'expired');
  else log.unanswered(callId, `The question was ${event.reason ?? 'withdrawn'}`, 'withdrawn');
}

/** Interrupts the step for a message. In the last step there is nothing to interrupt. */
function breakOff(log: SubagentLog, snapshot: SubagentSnapshot): void {
  const open = snapshot.context.calls.filter(({ settled }) => !settled);
  const begun = open.filter(isUnderWay(snapshot));
  log.gaveUp(idsOf(begun), statusIn(snapshot), INTERRUPTED);
  log.gaveUp(idsOf(open.filter((call) => !begun.includes(call))), 'not_run', INTERRUPTED);
}

/** Lets running calls continue, gives up waiting calls, and begins no more. */
function beginNothing(log: SubagentLog, snapshot: SubagentSnapshot): void {
  const open = snapshot.context.calls.filter((call) => !call.settled && !isCompletion(call));
  const begun = open.filter(isUnderWay(snapshot));
  if (!snapshot.matches('running')) log.gaveUp(idsOf(begun), statusIn(snapshot), BUDGET_USED_UP);
  log.gaveUp(idsOf(open.filter((call) => !begun.includes(call))), 'not_run', BUDGET_USED_UP);
}

/** Returns the status of given-up calls: a question was not answered; anything else was broken off. */
function statusIn(snapshot: SubagentSnapshot): 'error' | 'unanswered' {
  return snapshot.matches('waiting_for_input') ? 'unanswered' : 'error';
}

function isUnderWay(snapshot: SubagentSnapshot): (call: CallState) => boolean {
  if (snapshot.matches('running')) return isRunnable;
  if (snapshot.matches('waiting_for_children')) return isDelegation;
  const asking = snapshot.matches('waiting_for_input') ? askOf(snapshot.context.calls) : undefined;
  return (call) => call === asking;
}

/** Lists the calls under way, without questions, which only wait. */
export function callsUnderWay(snapshot: SubagentSnapshot): readonly string[] {
  if (!snapshot.matches('running') && !snapshot.matches('waiting_for_children')) return [];
  const open = snapshot.context.calls.filter(({ settled }) => !settled);
  return idsOf(open.filter(isUnderWay(snapshot)));
}
