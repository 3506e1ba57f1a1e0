// Who the user is talking to. While a question owns the floor its words are tried as
// an answer; what is clearly something else goes to the lead agent, and the question
// stays open.

import { matchAnswer } from '../../../language/match-answer.ts';
import type { QuestionRecord, Reading } from '../../contracts/records.ts';
/** A match by sound alone may be a slip of the recogniser: it does not interrupt its own question. */
const DECISIVE_CONFIDENCE = 0.8;

/** Time that is given to a user who asks for it. */
export const HOLD_MS = 10_000;

/** So many words that were typed are meant, even if they name no option. */
const MEANT_WORDS = 3;

/** How the words came, and what else is open. */
export interface Heard {
  /** As the user meant them; spoken ones may be a slip of the recogniser. */
  readonly typed: boolean;
  /** A language tag. @defaultValue 'en' */
  readonly language?: string | undefined;
  /** Approvals that wait for the user, this one included. @defaultValue 1 */
  readonly approvals?: number;
}

/**
 * Reads an utterance against the question that has the floor. What is unclear is asked for
 * again the first time; a yes to one of several approvals is read back.
 */
export function readUtterance(
  question: QuestionRecord,
  text: string,
  { typed, language = 'en', approvals = 1 }: Heard,
): Reading {
  const reading = readOnce(question, text, language);
  if (question.kind === 'approval') {
    if (reading === 'described') return { to: 'again' };
    const consents = reading.to === 'question' && reading.answer.approved === true;
    if (consents && approvals > 1 && !question.readBack) return { to: 'readBack' };
    // Asked again once in words; then there are the buttons, and the lead agent to talk to.
    return reading.to === 'again' && question.askedAgain ? { to: 'lead' } : reading;
  }
  if (reading === 'described') {
    // What names no option may still be an answer ("the cheaper one"): the one who asked can tell.
    const isMeant = typed
      ? text.trim().split(/\s+/).length >= MEANT_WORDS
      : question.timesUnclear > 0;
    return isMeant
      ? { to: 'question', decisive: false, answer: { userResponse: text } }
      : { to: 'again' };
  }
  // What nobody can make anything of is asked about once; then the lead agent hears it.
  return reading.to === 'again' && question.timesUnclear > 0 ? { to: 'lead' } : reading;
}

function readOnce(question: QuestionRecord, text: string, language: string): Reading | 'described' {
  const kind =
    question.kind === 'approval'
      ? 'approval'
      : question.options.length > 0
        ? 'choice'
        : 'free_text';
  const action = question.action?.toolName ?? '';
  const { options, question: asked } = question;
  const match = matchAnswer({ kind, options, action, question: asked }, text, { language });
  switch (match.kind) {
    case 'option':
      return {
        to: 'question',
        decisive: match.confidence >= DECISIVE_CONFIDENCE,
        answer: { userResponse: match.label, optionId: match.optionId },
      };
    case 'approved':
    case 'denied':
      return {
        to: 'question',
        decisive: false,
        answer: { userResponse: text, approved: match.kind === 'approved' },
      };
    case 'free_text':
      // Consent is never taken from words that are not exactly a yes or a no.
      return question.kind === 'approval'
        ? { to: 'again' }
        : { to: 'question', decisive: false, answer: { userResponse: match.text } };
    case 'hold':
      return { to: 'hold', forMs: HOLD_MS };
    case 'repeat':
      return { to: 'repeat' };
    case 'described':
      return 'described';
    case 'digression':
      return { to: 'lead' };
    case 'ambiguous':
    case 'unclear':
      return { to: 'again' };
  }
}
