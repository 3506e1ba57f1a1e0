// Decides to whom the user is talking. While a question owns the floor, the words are matched as an answer to
// it; words about something else go to the lead agent, and the question stays open.

import { matchAnswer } from '../../../language/match-answer.ts';
import type { QuestionRecord, Reading } from '../../contracts/records.ts';
/**
 * Confidence from which a match by sound is decisive: below it a recognition error is possible, and the words
 * do not interrupt their own question.
 */
const DECISIVE_CONFIDENCE = 0.8;

/** Time that is given to a user who asks for it. */
export const HOLD_MS = 10_000;

/** Number of typed words from which an answer counts as meant, even if it names no option. */
const MEANT_WORDS = 3;

/** The channel of the words, and the other open questions. */
export interface Heard {
  /** True for typed words, which are exact; spoken ones may be recognized wrongly. */
  readonly typed: boolean;
  /** A language tag. @defaultValue 'en' */
  readonly language?: string | undefined;
  /** Number of approvals that wait for the user, this one included. @defaultValue 1 */
  readonly approvals?: number;
}

/**
 * Reads an utterance as an answer to the question that has the floor. Unclear words are asked for again the
 * first time; a yes to one of several approvals is read back.
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
    // The question is asked again once in words; then the buttons remain, and the lead agent.
    return reading.to === 'again' && question.askedAgain ? { to: 'lead' } : reading;
  }
  if (reading === 'described') {
    // Words that name no option may still be an answer ("the cheaper one"): the asker can interpret them.
    const isMeant = typed
      ? text.trim().split(/\s+/).length >= MEANT_WORDS
      : question.timesUnclear > 0;
    return isMeant
      ? { to: 'question', decisive: false, answer: { userResponse: text } }
      : { to: 'again' };
  }
  // Unclear words are asked about once; then they go to the lead agent.
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
      // Consent is taken only from words that are exactly a yes or a no.
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
