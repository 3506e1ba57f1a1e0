// What people say over an open question, by question and meaning: the form of the corpora `people-first.ts` and
// `people-second.ts`, and how a reading of the session is judged.
//
// Each key of `said` names all readings that a careful human would accept, apart from `|`: the id of an option, `yes`
// or `no` to an approval, `words` that answer a question for words, `hold` (time is wanted), `repeat` (the question
// is to be heard again), and `open`: no answer yet. The lead model reads the words, or the question is asked again.

import type { QuestionRecord, Reading } from '../../src/actors/contracts/records.ts';
import { readUtterance } from '../../src/actors/session/questions/user-words.ts';
import type { AnswerOption } from '../../src/language/match.ts';

export interface AskedPeople {
  readonly name: string;
  readonly language: string;
  readonly kind: 'choice' | 'free_text' | 'approval';
  readonly question: string;
  readonly options?: readonly AnswerOption[];
  readonly action?: string;
  /** A yes that nobody gave does harm that cannot be undone. */
  readonly risky?: true;
  readonly said: Readonly<Record<string, readonly string[]>>;
}

/**
 * - `right`: as a careful human would read it.
 * - `lead`: an answer that costs a turn of the lead model, or another question.
 * - `missed`: a wish for time or to hear the question, read as something else, or words that are no such wish.
 * - `wrong`: an answer that nobody gave.
 */
export type Verdict = 'right' | 'lead' | 'missed' | 'wrong';

export interface Judged {
  readonly asked: AskedPeople;
  readonly said: string;
  readonly meant: string;
  readonly read: string;
  readonly verdict: Verdict;
  /** A yes to an approval that nobody gave. */
  readonly isFalseConsent: boolean;
}

const NOT_ANSWERS: ReadonlySet<string> = new Set(['open', 'hold', 'repeat']);

/** Reads every utterance as a session with this question open does. */
export function judged(corpus: readonly AskedPeople[]): readonly Judged[] {
  return corpus.flatMap((asked) =>
    Object.entries(asked.said).flatMap(([meant, all]) =>
      all.map((said): Judged => {
        const read = nameOf(
          readUtterance(recordOf(asked), said, { typed: true, language: asked.language }),
        );
        const fair = meant.split('|');
        return {
          asked,
          said,
          meant,
          read,
          verdict: verdictOn(read, fair),
          isFalseConsent: asked.kind === 'approval' && read === 'yes' && !fair.includes('yes'),
        };
      }),
    ),
  );
}

function verdictOn(read: string, fair: readonly string[]): Verdict {
  if (fair.includes(read)) return 'right';
  if (!NOT_ANSWERS.has(read)) return 'wrong';
  return fair.every((one) => NOT_ANSWERS.has(one)) ? 'missed' : 'lead';
}

function nameOf(reading: Reading): string {
  if (reading.to !== 'question')
    return reading.to === 'hold' || reading.to === 'repeat' ? reading.to : 'open';
  const { optionId, approved } = reading.answer;
  if (approved !== undefined) return approved ? 'yes' : 'no';
  return optionId ?? 'words';
}

function recordOf({ name, kind, question, options = [], action }: AskedPeople): QuestionRecord {
  return {
    requestId: name,
    subagentId: 'asker',
    subagentName: 'asker',
    kind: kind === 'approval' ? 'approval' : 'question',
    question,
    options,
    timeoutMs: 60_000,
    ...(action !== undefined && { action: { toolName: action, input: {} } }),
    askedAt: 0,
    answer: null,
    timesUnclear: 0,
    askedAgain: false,
    readBack: false,
  };
}

/** Counts the verdicts by language and kind of question. */
export function tableOf(all: readonly Judged[]): Record<string, Record<string, number>> {
  const table: Record<string, Record<string, number>> = {};
  for (const { asked, verdict, isFalseConsent } of all) {
    const row = (table[`${asked.language} ${asked.kind}`] ??= {
      all: 0,
      right: 0,
      lead: 0,
      missed: 0,
      wrong: 0,
      falseConsent: 0,
      risky: 0,
    });
    const add = (name: string): void => void (row[name] = (row[name] ?? 0) + 1);
    add('all');
    add(verdict);
    if (isFalseConsent) add('falseConsent');
    if (isFalseConsent && asked.risky) add('risky');
  }
  return table;
}
