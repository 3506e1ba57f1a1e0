// Matches the user's words, spoken or typed, to a question (promise P3). Pure: the same words always give the
// same result. The caller decides whether the question may be answered now.
//
// Invariants
//   MATCH-ANSWER-1. Case and politeness never change the result, and punctuation only where the words have
//       two readings: a bare "no" between two options, a question after an address, a command with more words
//       after it.
//   MATCH-ANSWER-2. Nothing is guessed: if two options are about as likely, the result is ambiguous, and a
//       negation outside the name of an option chooses nothing.
//   MATCH-ANSWER-3. An approval is never inferred (see `match-approval.ts`).

import { contentOf } from './choice.ts';
import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { digression, hold, repeat, unclear, type AnswerableQuestion, type Match } from './match.ts';
import { matchApproval } from './match-approval.ts';
import { matchChoice } from './match-choice.ts';
import {
  asksInClause,
  commandAtStart,
  isCommand,
  isHold,
  requestsBeforehand,
  startsDigression,
  wantsRepeat,
  withdraws,
} from './side-talk.ts';
import { sameWords, tablesOf, type Tables, type Words } from './tables.ts';
import { readUtterance, type Utterance } from './utterance.ts';

export interface MatchAnswerOptions {
  /**
   * A language tag, or tables of your own. For a language without tables only labels and ids match, as they
   * are written.
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
  const topic = topicOf(question, tables);
  switch (question.kind) {
    case 'choice':
      return matchChoice(question.options, said, tables, topic);
    case 'approval':
      return matchApproval(said, tables, question);
    case 'free_text':
      return matchFreeText(said, tables, question, topic);
  }
}

/** Reads every utterance as an answer, unless it clearly is none. */
function matchFreeText(
  said: Utterance,
  tables: Tables,
  { question = '' }: AnswerableQuestion,
  topic: Words,
): Match {
  if (said.raw === '') return unclear;
  if (isHold(said, tables, 'whole')) return hold;
  if (wantsRepeat(said, tables)) return repeat;
  // A microphone picks up the loudspeaker.
  if (
    said.words.length > 2 &&
    sameWords(said.words, readUtterance(question, tables.language).words)
  )
    return unclear;
  const command = commandAtStart(said, tables);
  const isOther =
    isCommand(said, tables) ||
    (command.length > 0 && command.isClause) ||
    startsDigression(said, tables) ||
    asksInClause(said, tables) ||
    requestsBeforehand(said, tables) ||
    withdraws(said, tables, topic);
  return isOther ? digression : { kind: 'free_text', text: said.raw };
}

/** Returns the words of a question that name its subject. */
function topicOf({ question = '' }: AnswerableQuestion, tables: Tables): Words {
  const said = readUtterance(question, tables.language);
  const asking = new Set(tables.phrases.questionStarts.flat());
  return contentOf(said, tables)
    .map((index) => said.words[index] as string)
    .filter((word) => !asking.has(word));
}
