// MATCH-ANSWER-4: no utterance blocks the process. The test counts the steps of each matcher, which must grow linearly
// with the length of the text. It makes no assertion about time.

import { describe, expect, it } from 'vitest';
import { matchAnswer } from '../../src/language/match-answer.ts';
import { english } from '../../src/language/english.ts';
import { french } from '../../src/language/french.ts';
import { german } from '../../src/language/german.ts';
import { spanish } from '../../src/language/spanish.ts';
import { backchannelIn } from '../../src/language/backchannel.ts';
import { isUnfinished } from '../../src/language/backchannel.ts';
import { putsOff } from '../../src/language/side-talk.ts';
import { acknowledgementIn } from '../../src/language/acknowledgement.ts';
import type { AnswerableQuestion } from '../../src/language/match.ts';
import { withCountedSteps } from '../support/counted-steps.ts';

const LANGUAGES = [english, german, french, spanish];

const QUESTIONS: readonly AnswerableQuestion[] = [
  {
    kind: 'choice',
    question: 'Which class would you like?',
    options: [
      { id: 'a', label: 'Premium', description: 'fast, 12 dollars' },
      { id: 'b', label: 'Economy class' },
      { id: 'c', label: 'Tuesday at nine' },
      { id: 'd', label: 'OK' },
    ],
  },
  { kind: 'approval', options: [], action: 'send_email', question: 'May I send the email?' },
  { kind: 'free_text', options: [], question: 'What shall it say?' },
];

/** Text to repeat endlessly, from each table that a matcher uses. */
const SAID = LANGUAGES.flatMap((tables) => [
  ...['holds', 'corrections', 'bareCorrections', 'repeatsAlone', 'negations'].flatMap((name) => {
    const [said = ''] = tables[name as 'holds'];
    return [{ code: tables.code, said: `${said} ` }];
  }),
  ...[tables.consent.yes, tables.consent.no, tables.consent.notRefusals].map(([said = '']) => ({
    code: tables.code,
    said: `${said}, `,
  })),
]);
const SIGNS = ['premium ', 'ok ', 'one ', '1 ', '? ', '. ', '\\', 'a', '１', '​', 'ﷺ'].map(
  (said) => ({
    code: 'en',
    said,
  }),
);

const repeated = (said: string, chars: number): string =>
  said.repeat(Math.ceil(chars / said.length)).slice(0, chars);

describe('matchers', () => {
  it('take a bounded number of steps for an answer of any length', async () => {
    await withCountedSteps(async (steps) => {
      for (const { code, said } of [...SAID, ...SIGNS])
        for (const question of QUESTIONS) {
          const match = (chars: number) => () =>
            matchAnswer(question, repeated(said, chars), { language: code });
          const taken = {
            longest: await steps(match(2_000)),
            longer: await steps(match(10_000_000)),
          };
          const isBounded = taken.longest < 10_000_000 && taken.longer < 100;
          expect({ kind: question.kind, code, said, taken, isBounded }).toMatchObject({
            isBounded: true,
          });
        }
    });
  }, 300_000);

  it.each(['backchannel', 'unfinished', 'put off', 'acknowledgement'])(
    'take a number of steps proportional to the length of a %s',
    async (kind) => {
      const read = (text: string, language: string): unknown => {
        if (kind === 'backchannel') return backchannelIn(text, language);
        if (kind === 'unfinished') return isUnfinished(text, language);
        if (kind === 'put off') return putsOff(text, language);
        return acknowledgementIn(text, { choice: 'Premium', isApproval: false, language });
      };
      await withCountedSteps(async (steps) => {
        for (const { code, said } of [...SAID, ...SIGNS]) {
          // Only whole words are repeated, so that the matcher treats the longer text in the same way.
          const long = (times: number) => said.repeat(times).trimEnd();
          const some = await steps(() => read(long(1_000), code));
          const twice = await steps(() => read(long(2_000), code));
          const grows = twice < some * 2.2 + 2_000;
          expect({ code, said, some, twice, grows }).toMatchObject({ grows: true });
        }
      });
    },
    300_000,
  );
});
