// Every language whose answers are understood, whether built in or added by an app, passes the suite with a corpus of
// that language.

import { afterAll, describe, expect, test } from 'vitest';
import { addAnswerLanguage, answerLanguageFor } from '../../../src/entries/language.ts';
import { matchAnswer } from '../../../src/language/match-answer.ts';
import { answerLanguageConformance, type AnswerCorpus } from './answer-language-conformance.ts';
import { corpora } from './corpora.ts';
import { italian } from './italian.ts';

const added = addAnswerLanguage(italian);

for (const [tag, corpus] of Object.entries(corpora))
  describe(`corpus of "${tag}"`, () => {
    test.each(answerLanguageConformance(tag, corpus))('$name', ({ run }) => run());
  });

const outcome = async (tag: string, corpus: AnswerCorpus): Promise<readonly string[]> => {
  const broken: string[] = [];
  for (const { name, run } of answerLanguageConformance(tag, corpus))
    await run().catch(() => broken.push(name.slice(tag.length + 2)));
  return broken;
};

describe('planted faults in tables', () => {
  const { it } = corpora as { readonly it: AnswerCorpus };
  afterAll(() => {
    addAnswerLanguage(italian);
  });

  test('include a language without tables', async () => {
    expect(await outcome('pt', it)).toContain('the language has tables');
  });

  test('include indecisive assent listed as a yes', async () => {
    addAnswerLanguage({ ...italian, consent: { ...italian.consent, yes: ['sì', 'va bene'] } });
    expect(await outcome('it', it)).toContain('nothing else approves');
  });

  test.each([
    ['holds', 'time is given'],
    ['repeats', 'a question is repeated'],
    ['putOffs', 'what is told is put off'],
    ['unfinished', 'a speaker who breaks off is given time'],
    ['backchannels', 'a listener takes no turn'],
    ['moments', 'a reply that asks for a moment only acknowledges'],
    ['negations', 'nothing is chosen by a doubt, a refusal or another wish'],
  ])('no %s', async (table, broken) => {
    addAnswerLanguage({ ...italian, [table]: [] });
    expect(await outcome('it', it)).toContain(broken);
  });
});

describe("an app's own tables", () => {
  test('apply to every tag of their language', () => {
    expect(answerLanguageFor('it-CH').consent.yes).toEqual(added.consent.yes);
  });

  test('apply even if accents are missing', () => {
    const question = { kind: 'approval', options: [] } as const;
    expect(matchAnswer(question, 'si', { language: 'it' })).toEqual({ kind: 'approved' });
  });

  test('replace the built-in tables', () => {
    const german = answerLanguageFor('de');
    addAnswerLanguage({ ...german, holds: [...german.holds, 'sekündchen'] });
    const question = { kind: 'approval', options: [] } as const;
    expect(matchAnswer(question, 'Sekündchen!', { language: 'de' })).toEqual({ kind: 'hold' });
    addAnswerLanguage(german);
  });

  test.each([
    [{ code: 'Italian' }, '`code`: expected the code of a language, such as "it", got "Italian"'],
    [{ code: 'it', holds: 'aspetta' }, '`holds`: expected a list of texts, got "aspetta"'],
    [{ code: 'it', hold: ['aspetta'] }, 'unknown option `hold`; did you mean `holds`?'],
    [
      { code: 'it', consent: { refusal: [] } },
      'unknown option `refusal`; did you mean `refusals`?',
    ],
    [
      { code: 'it', negations: ['non'], consent: { yes: ['perché non sì'] } },
      'consent.yes: expected no negation, got "perché non sì", which contains "non"',
    ],
  ])('throw an error if they are invalid: %o', (tables, message) => {
    expect(() => addAnswerLanguage(tables as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(message),
      }),
    );
  });
});
