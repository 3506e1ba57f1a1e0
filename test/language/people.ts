// The form of the corpora `people-first.ts` and `people-second.ts` (utterances over an open question, by question and
// meaning), and the judgement of how a session interprets them.
//
// Each key of `said` lists all interpretations that a careful human would accept, separated by `|`: the id of an
// option, `yes` or `no` to an approval, `none` of the options, `words` that answer an open question, `hold` (the user
// wants time), `repeat` (the user wants to hear the question again), and `open` (the lead model interprets the
// utterance, or the session asks again).

import type { QuestionRecord, Reading } from '../../src/actors/contracts/records.ts';
import { readUtterance } from '../../src/actors/session/questions/user-words.ts';
import type { AnswerOption } from '../../src/language/match.ts';
import type { AskedQuestion, Case, Expected, Harm } from './utterances.ts';

export interface AskedPeople {
  readonly name: string;
  readonly language: string;
  readonly kind: 'choice' | 'free_text' | 'approval';
  readonly question: string;
  readonly options?: readonly AnswerOption[];
  readonly action?: string;
  /** A false yes does irreversible harm. */
  readonly risky?: true;
  readonly said: Readonly<Record<string, readonly string[]>>;
}

/**
 * - `right`: a careful human would interpret the utterance in the same way.
 * - `lead`: the answer costs a turn of the lead model or another question.
 * - `missed`: a request for time or for a repetition was missed or misunderstood.
 * - `wrong`: the session found an answer that the user did not give.
 */
export type Verdict = 'right' | 'lead' | 'missed' | 'wrong';

export interface Judged {
  readonly asked: AskedPeople;
  readonly said: string;
  readonly meant: string;
  readonly read: string;
  readonly verdict: Verdict;
  /** The session found a yes to an approval where the user gave none. */
  readonly isFalseConsent: boolean;
}

const NOT_ANSWERS: ReadonlySet<string> = new Set(['open', 'hold', 'repeat']);

/** Interprets every utterance as a session with this open question does. */
export function judged(corpus: readonly AskedPeople[]): readonly Judged[] {
  return corpus.flatMap((asked) =>
    Object.entries(asked.said).flatMap(([meant, all]) =>
      all.map((said): Judged => {
        const read = nameOf(
          asked,
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
  return fair.some((one) => NOT_ANSWERS.has(one)) ? 'missed' : 'lead';
}

function nameOf({ kind }: AskedPeople, reading: Reading): string {
  if (reading.to !== 'question')
    return reading.to === 'hold' || reading.to === 'repeat' ? reading.to : 'open';
  const { optionId, approved } = reading.answer;
  if (approved !== undefined) return approved ? 'yes' : 'no';
  return optionId ?? (kind === 'choice' ? 'none' : 'words');
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
export function tableOf(all: readonly Judged[]): Record<string, Record<Verdict, number>> {
  const table: Record<string, Record<Verdict, number>> = {};
  for (const { asked, verdict } of all) {
    const row = (table[`${asked.language} ${asked.kind}`] ??= {
      right: 0,
      lead: 0,
      missed: 0,
      wrong: 0,
    });
    row[verdict] += 1;
  }
  return table;
}

/** Returns the questions in the form of `utterances.ts`, for tests that run whole sessions. */
export function questionsOf(
  corpus: readonly AskedPeople[],
): Readonly<Record<string, AskedQuestion>> {
  return Object.fromEntries(
    corpus.map(({ name, language, kind, question, options = [], action = '' }) => [
      name,
      { language, kind, question, options, action },
    ]),
  );
}

/**
 * Returns every n-th utterance that the tables do not misinterpret, as a case of `utterances.ts`. A session must react
 * to it in the same way. Every other utterance is spoken while the question is still being asked.
 */
export function casesOf(corpus: readonly AskedPeople[], every: number): readonly Case[] {
  return judged(corpus)
    .filter(({ verdict }) => verdict !== 'wrong' && verdict !== 'missed')
    .filter((_, index) => index % every === 0)
    .map(({ asked, said, meant }, index): Case => {
      const fair = meant.split('|');
      const answers = fair.filter((one) => !NOT_ANSWERS.has(one));
      return {
        question: asked.name,
        said,
        channel: 'spoken',
        began: index % 2 === 0 ? 'after_heard' : 'over_question',
        fair: [
          ...answers.map((one) => answerOf(one, asked, said)),
          // If the tables leave an answer open, the session asks again or the lead model interprets the utterance.
          ...(['to_lead', 'ask_again', 'repeat', 'hold'] as const),
        ],
        never: harmsOf(asked, answers),
      };
    });
}

function answerOf(meant: string, { kind }: AskedPeople, said: string): Expected {
  if (kind === 'approval') return { answer: { approved: meant === 'yes' } };
  return { answer: kind === 'choice' && meant !== 'none' ? { optionId: meant } : { text: said } };
}

function harmsOf({ kind }: AskedPeople, answers: readonly string[]): readonly Harm[] {
  if (kind === 'approval')
    return [
      ...(answers.includes('yes') ? [] : (['consent'] as const)),
      ...(answers.includes('no') ? [] : (['refusal'] as const)),
    ];
  return answers.length === 0 ? ['any_answer'] : ['other_option'];
}
