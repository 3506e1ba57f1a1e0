// Matches what a user said or typed to a question (promise P3). Pure: the same words always
// mean the same. Whether the question may be answered now is not its business.
//
// Invariants
//   R1. Case, punctuation and politeness never change the result.
//   R2. Nothing is guessed: between two options that are about as likely it is ambiguous,
//       and a negation outside the name of an option chooses nothing.
//   R3. An approval is never inferred (see `match-approval.ts`).

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { digression, hold, unclear, type AnswerableQuestion, type Match } from './match.ts';
import { matchApproval } from './match-approval.ts';
import { matchChoice } from './match-choice.ts';
import { isCommand, isHold, startsDigression, startsQuestion, wantsRepeat } from './side-talk.ts';
import { tablesOf, type Tables } from './tables.ts';
import { readUtterance, type Utterance } from './utterance.ts';

export interface MatchAnswerOptions {
  /**
   * A language tag, or tables of your own. For a language without tables only labels and ids
   * match, as they are written.
   * @defaultValue 'en'
   */
  readonly language?: string | AnswerLanguage;
}

export function matchAnswer(
  question: AnswerableQuestion,
  utterance: string,
  { language = 'en' }: MatchAnswerOptions = {},
): Match {
  const tables = tablesOf(typeof language === 'string' ? languageFor(language) : language);
  const said = readUtterance(utterance, tables.language);
  switch (question.kind) {
    case 'choice':
      return matchChoice(question.options, said, tables);
    case 'approval':
      return matchApproval(said, tables, question.action);
    case 'free_text':
      return matchFreeText(said, tables);
  }
}

/** Everything is an answer, but for what clearly is none. */
function matchFreeText(said: Utterance, tables: Tables): Match {
  if (said.raw === '') return unclear;
  if (isHold(said, tables, 'whole')) return hold;
  if (wantsRepeat(said, tables)) return unclear;
  if (isCommand(said, tables) || startsDigression(said, tables)) return digression;
  if (said.asks && startsQuestion(said, tables)) return digression;
  return { kind: 'free_text', text: said.raw };
}
