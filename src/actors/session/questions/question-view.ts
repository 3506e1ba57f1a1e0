// The view of a question for screens: its words, and the state of its machine.

import type { QuestionView } from '../../contracts/session-views.ts';
import type { QuestionRecord } from '../../contracts/records.ts';

/** The state of a question's machine. */
interface QuestionState {
  readonly value: unknown;
  readonly context: unknown;
}

export function questionView(
  record: QuestionRecord,
  { value, context }: QuestionState,
): QuestionView {
  const { requestId, subagentId, subagentName, kind, question, options } = record;
  const { askedAt, timeoutMs, answer, action, answerableBy } = record;
  return {
    // The record's own id: the id at hand may be a piece of an actor's name, which V8 would keep in memory.
    requestId,
    subagentId,
    subagentName,
    kind,
    question,
    options,
    state: value === 'held' ? 'open' : (value as QuestionView['state']),
    askedAt,
    dueAt: value === 'open' ? (context as { dueAt: number }).dueAt : null,
    ...(value === 'held' && { heldUntil: (context as { remindAt: number }).remindAt }),
    timeoutMs,
    answer: answer?.userResponse ?? null,
    ...(action ? { action } : {}),
    ...(answerableBy ? { answerableBy } : {}),
    ...(answer?.by === undefined ? {} : { answeredBy: answer.by }),
  };
}
