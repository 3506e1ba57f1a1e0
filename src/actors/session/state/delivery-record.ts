// Builds the delivery of a question, or of the result of a call.
//
// Does not: decide when it is said (the outbox does), or keep it (records).

import { priorityOf } from '../../../machines/index.ts';
import { approvalPrompt, questionPrompt, readBackText } from '../../conversation/prompts.ts';
import type {
  CallRecord,
  DeliveryRecord,
  QuestionRecord,
  ToldResult,
} from '../../contracts/records.ts';
import { saidOf, type ResultWords } from './synthetic-turns.ts';

export function deliveryOfQuestion(question: QuestionRecord): DeliveryRecord {
  return {
    deliveryId: question.requestId,
    kind: 'question',
    priority: 'high',
    label: 'SUBAGENT QUESTION',
    text: question.readBack ? readBackText(question.question) : question.question,
    prompt:
      question.kind === 'approval'
        ? approvalPrompt(question.subagentName, question.question, question)
        : questionPrompt(question.subagentName, question.question, question.options),
    subagentId: question.subagentId,
    callId: null,
    answersCall: false,
    at: question.askedAt,
  };
}

/** `told`: the content to tell of the call, which has ended. */
export function deliveryOfResult(
  call: CallRecord,
  told: ToldResult,
  words: ResultWords,
): DeliveryRecord {
  return {
    deliveryId: call.callId,
    kind: 'result',
    priority: priorityOf(call.delivery),
    label: call.name,
    text: call.outcome ? saidOf(told, call.outcome) : told.text,
    prompt: words.one(told),
    subagentId: call.subagentId,
    callId: call.callId,
    answersCall: !call.isAnswered,
    at: call.endedAt,
  };
}
