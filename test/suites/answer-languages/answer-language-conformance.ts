// The conformance suite for the tables of a language: what people say in the language, and how a session must interpret
// it.
//
// Owns:     the cases and the variants of a corpus (a request for time never approves, and neither case nor punctuation
//           matters).
// Does not: contain a corpus. The author of a language writes the corpus and does not copy its words from the tables.

import { z } from 'zod';
import { check, type ChecksOf } from '../../../src/values/checks.ts';
import type { QuestionOption } from '../../../src/actors/contracts/session-views.ts';
import { acknowledgementIn } from '../../../src/language/acknowledgement.ts';
import { backchannelIn } from '../../../src/language/backchannel.ts';
import { languageFor } from '../../../src/language/languages.ts';
import { matchAnswer } from '../../../src/language/match-answer.ts';
import type { AnswerableQuestion, Match } from '../../../src/language/match.ts';
import { putsOff } from '../../../src/language/side-talk.ts';
import { isUnfinished } from '../../../src/language/backchannel.ts';
import { ConformanceError } from '../../../src/testing/conformance/conformance-error.ts';
import type { ConformanceCase } from '../../../src/testing/conformance/transport-conformance.ts';

/** A question with options, and the utterances that choose one of them. */
export interface CorpusChoice {
  readonly question: string;
  readonly options: readonly QuestionOption[];
  /** Utterances that choose an option, by the option's id: its name, its position, a change of mind. */
  readonly chosen: Readonly<Record<string, readonly string[]>>;
  /** Utterances that choose no option: a refusal, a doubt, a comparison, another request. */
  readonly notChosen: readonly string[];
}

/** A question that asks whether an action may run. */
export interface CorpusApproval {
  readonly question: string;
  /** The name of the tool. */
  readonly action: string;
  readonly approved: readonly string[];
  readonly denied: readonly string[];
  /** Utterances that must not approve: assent that decides nothing, conditions, irony, other requests. */
  readonly notApproved: readonly string[];
}

/** Utterances of one language with their meanings. Each list has at least three utterances. */
export interface AnswerCorpus {
  readonly choice: CorpusChoice;
  readonly approval: CorpusApproval;
  /** Requests for time. */
  readonly holds: readonly string[];
  /** Requests to hear the question again. */
  readonly repeats: readonly string[];
  /**
   * Answers to an open question ("For when?"), and utterances that mean something else while the question is open.
   */
  readonly words: { readonly answers: readonly string[]; readonly others: readonly string[] };
  /** Utterances that stop the current delivery, and utterances that do not. */
  readonly putOffs: { readonly stops: readonly string[]; readonly others: readonly string[] };
  /** Unfinished sentences and complete sentences. */
  readonly endings: {
    readonly unfinished: readonly string[];
    readonly finished: readonly string[];
  };
  /** A listener's words that do not take the turn, and words that do. */
  readonly listening: {
    readonly backchannels: readonly string[];
    readonly others: readonly string[];
  };
  /** Replies that only acknowledge an answer, and replies that say more. */
  readonly acknowledging: {
    readonly moments: readonly string[];
    readonly others: readonly string[];
  };
}

/**
 * The cases that the tables of a language must pass, whether they are built in or added with `addAnswerLanguage`.
 *
 * ```ts
 * addAnswerLanguage(italian);
 * for (const { name, run } of answerLanguageConformance('it', corpus)) test(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the corpus is invalid or too small.
 */
export function answerLanguageConformance(
  tag: string,
  corpus: AnswerCorpus,
): readonly ConformanceCase[] {
  check('answerLanguageConformance(tag, …)', z.string().min(1), tag);
  check('answerLanguageConformance(…, corpus)', corpusSchema, corpus);
  const { choice, approval, holds, repeats, words, putOffs, endings, listening, acknowledging } =
    corpus;
  const ask: AnswerableQuestion = {
    kind: 'choice',
    question: choice.question,
    options: choice.options.map(({ id, label, description = '' }) => ({ id, label, description })),
  };
  const consent: AnswerableQuestion = {
    kind: 'approval',
    question: approval.question,
    action: approval.action,
    options: [],
  };
  const open: AnswerableQuestion = { kind: 'free_text', options: [] };
  const read = (question: AnswerableQuestion, said: string): Match =>
    matchAnswer(question, said, { language: tag });
  const chosen = Object.entries(choice.chosen);
  const answers = [...chosen.flatMap(([, said]) => said), ...approval.approved];
  const acknowledges = (said: string, isApproval: boolean): string =>
    acknowledgementIn(said, { choice: null, isApproval, language: tag });

  const expectations: readonly (readonly [name: string, Expectation])[] = [
    [
      'the language has tables',
      () => (languageFor(tag).code === 'und' ? [[tag, 'no tables']] : []),
    ],
    ...chosen.map(([id, said]): readonly [string, Expectation] => [
      `an option is chosen: ${id}`,
      () => wrong(said, (one) => describe(read(ask, one)), `option ${id}`),
    ]),
    [
      'nothing is chosen by a doubt, a refusal or another wish',
      () => unwanted(choice.notChosen, (one) => describe(read(ask, one)), isOption),
    ],
    [
      'an action is approved by a clear yes',
      () => wrong(approval.approved, (one) => read(consent, one).kind, 'approved'),
    ],
    [
      'an action is refused by a clear no',
      () => wrong(approval.denied, (one) => read(consent, one).kind, 'denied'),
    ],
    [
      'nothing else approves',
      () =>
        unwanted(
          [...approval.notApproved, ...approval.denied, ...holds, ...repeats, ...words.others],
          (one) => read(consent, one).kind,
          isApproved,
        ),
    ],
    [
      'a yes with a no behind it approves nothing',
      () =>
        unwanted(
          approval.approved.flatMap((yes) => approval.denied.map((no) => `${bare(yes)}, ${no}`)),
          (one) => read(consent, one).kind,
          isApproved,
        ),
    ],
    [
      'a yes does not choose one of several options',
      () => unwanted(approval.approved, (one) => describe(read(ask, one)), isOption),
    ],
    ['time is given', () => wrong(holds, (one) => read(ask, one).kind, 'hold')],
    [
      'time is given over an approval',
      () => wrong(holds, (one) => read(consent, one).kind, 'hold'),
    ],
    ['a question is repeated', () => wrong(repeats, (one) => read(ask, one).kind, 'repeat')],
    [
      'words answer a question for words',
      () => wrong(words.answers, (one) => describe(read(open, one)), 'free_text'),
    ],
    [
      'something else does not answer it',
      () =>
        unwanted(
          words.others,
          (one) => describe(read(open, one)),
          (kind) => kind === 'free_text',
        ),
    ],
    [
      'case and punctuation do not change an answer',
      () =>
        answers.flatMap((said) => {
          const asked = approval.approved.includes(said) ? consent : ask;
          const expected = describe(read(asked, said));
          return [said.toUpperCase(), bare(said), ` ${said} `].flatMap((form) =>
            wrong([form], (one) => describe(read(asked, one)), expected),
          );
        }),
    ],
    [
      'what is told is put off',
      () => wrong(putOffs.stops, (one) => String(putsOff(one, tag)), 'true'),
    ],
    [
      'other words put nothing off',
      () => wrong(putOffs.others, (one) => String(putsOff(one, tag)), 'false'),
    ],
    [
      'a speaker who breaks off is given time',
      () => wrong(endings.unfinished, (one) => String(isUnfinished(one, tag)), 'true'),
    ],
    [
      'a whole sentence is finished',
      () =>
        wrong([...endings.finished, ...answers], (one) => String(isUnfinished(one, tag)), 'false'),
    ],
    [
      'a listener takes no turn',
      () => wrong(listening.backchannels, (one) => backchannelIn(one, tag), 'whole'),
    ],
    [
      'other words take a turn',
      () =>
        unwanted(
          listening.others,
          (one) => backchannelIn(one, tag),
          (found) => found === 'whole',
        ),
    ],
    [
      'a reply that asks for a moment only acknowledges',
      () => wrong(acknowledging.moments, (one) => acknowledges(one, false), 'whole'),
    ],
    [
      'a reply that says more does not',
      () =>
        unwanted(
          acknowledging.others,
          (one) => acknowledges(one, false),
          (found) => found === 'whole',
        ),
    ],
    [
      'a yes of the model is no acknowledgement of an approval',
      () =>
        unwanted(
          approval.approved,
          (one) => acknowledges(one, true),
          (found) => found === 'whole',
        ),
    ],
  ];
  return expectations.map(([name, expectation]) => ({
    name: `${tag}: ${name}`,
    skipped: null,
    run: () => Promise.resolve().then(() => hold(name, tag, expectation())),
  }));
}

/** Returns the utterances that were misinterpreted, each with its interpretation. */
type Expectation = () => readonly (readonly [said: string, read: string])[];
type Misread = ReturnType<Expectation>;

const MAX_SHOWN = 10;

function hold(name: string, tag: string, misread: Misread): void {
  if (misread.length === 0) return;
  const shown = misread.slice(0, MAX_SHOWN).map(([said, as]) => `\n  "${said}" is read as ${as}`);
  const more = misread.length > MAX_SHOWN ? `\n  and ${misread.length - MAX_SHOWN} more` : '';
  throw new ConformanceError(`The tables of "${tag}" break "${name}":${shown.join('')}${more}`);
}

function wrong(
  said: readonly string[],
  reader: (one: string) => string,
  expected: string,
): Misread {
  return unwanted(said, reader, (found) => found !== expected);
}

function unwanted(
  said: readonly string[],
  reader: (one: string) => string,
  isUnwanted: (found: string) => boolean,
): Misread {
  return said.map((one) => [one, reader(one)] as const).filter(([, found]) => isUnwanted(found));
}

/** Names an interpretation. A doubtful one is left to the lead model. */
function describe(match: Match): string {
  if ('doubt' in match) return `doubtful ${match.kind}`;
  return match.kind === 'option' ? `option ${match.optionId}` : match.kind;
}
const isOption = (found: string): boolean => found.startsWith('option ');
const isApproved = (found: string): boolean => found === 'approved';
const bare = (said: string): string => said.replace(/(?<![.!])[.!]+$/u, '');

const said = z.array(z.string().trim().min(1)).min(3);
const text = z.string().trim().min(1);

const corpusSchema = z.strictObject({
  choice: z.strictObject({
    question: text,
    options: z
      .array(z.strictObject({ id: text, label: text, description: z.string().optional() }))
      .min(2),
    chosen: z.record(text, said),
    notChosen: said,
  } satisfies ChecksOf<CorpusChoice>),
  approval: z.strictObject({
    question: text,
    action: text,
    approved: said,
    denied: said,
    notApproved: said,
  } satisfies ChecksOf<CorpusApproval>),
  holds: said,
  repeats: said,
  words: z.strictObject({ answers: said, others: said }),
  putOffs: z.strictObject({ stops: said, others: said }),
  endings: z.strictObject({ unfinished: said, finished: said }),
  listening: z.strictObject({ backchannels: said, others: said }),
  acknowledging: z.strictObject({ moments: said, others: said }),
} satisfies ChecksOf<AnswerCorpus>);
