import fc from 'fast-check';
import { expect, test } from 'vitest';
import { english } from '../../src/language/english.ts';
import { matchAnswer } from '../../src/language/match-answer.ts';
import type { AnswerableQuestion, Match } from '../../src/language/match.ts';
import { editDistance } from '../../src/language/similarity.ts';
import { fold } from '../../src/language/utterance.ts';

const names = [
  'Economy',
  'Premium',
  'Vegetarian',
  'Chicken',
  'Tuesday',
  'Airport',
  'Overnight',
  'Umbrella',
  'Blueberry',
  'Window seat',
  'Express train',
  'Standard delivery',
];

const question = (labels: readonly string[]): AnswerableQuestion => ({
  kind: 'choice',
  options: labels.map((label, n) => ({ id: `o${n}`, label })),
});
const approval: AnswerableQuestion = { kind: 'approval', options: [] };

/** The part of a match that the session acts on. */
const gist = (match: Match): string =>
  match.kind === 'option' ? `${match.kind} ${match.optionId}` : match.kind;

const sentence = (...pools: (readonly string[])[]): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...pools.flat()), { minLength: 1, maxLength: 6 })
    .map((parts) => parts.join(' '));

const chatter = [
  'the',
  'ride',
  'please',
  'okay',
  'um',
  'run',
  'it',
  'now',
  'thanks',
  'problem',
  'ever',
];

test('MATCH-APPROVAL-2: never approves a sentence that contains a negation', () => {
  const negated = fc
    .tuple(
      sentence(english.consent.yes, chatter),
      fc.constantFrom(...english.negations, ...english.consent.no),
      sentence(english.consent.yes, chatter),
      fc.nat(2),
    )
    .map(([before, negation, after, place]) =>
      [
        [before, negation, after],
        [negation, after],
        [before, negation],
      ][place]!.join(' '),
    );
  fc.assert(
    fc.property(negated, (utterance) => {
      expect(matchAnswer(approval, utterance).kind).not.toBe('approved');
    }),
    { numRuns: 500 },
  );
});

test('MATCH-APPROVAL-1: approves only if the user says nothing else', () => {
  const odd = fc
    .string({
      unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'.split('')),
      minLength: 3,
      maxLength: 8,
    })
    .filter((word) => !JSON.stringify(english).includes(`"${word}"`));
  fc.assert(
    fc.property(fc.constantFrom(...english.consent.yes), odd, fc.boolean(), (yes, word, first) => {
      expect(matchAnswer(approval, yes)).toEqual({ kind: 'approved' });
      const longer = first ? `${word} ${yes}` : `${yes} ${word}`;
      expect(matchAnswer(approval, longer).kind).not.toBe('approved');
    }),
  );
});

test('MATCH-ANSWER-1: ignores case, punctuation and politeness', () => {
  const said = fc.oneof(
    fc.constantFrom(
      ...names,
      ...english.consent.yes,
      ...english.consent.no,
      ...english.holds,
      ...english.commands,
    ),
    fc.constantFrom(
      'the second one',
      'a con me',
      'not economy',
      'the cheap one',
      'what time is it',
    ),
    sentence(names, chatter),
  );
  const restyled = fc.tuple(
    fc.constantFrom('', 'please, ', 'Thank you - ', 'PLEASE '),
    fc.constantFrom('', ', please', ' thanks!', '. Thank you very much.'),
    fc.constantFrom(' ', ', ', '  ', '... ', ' – '),
    fc.constantFrom('', '.', '!', ' …', ',"'),
    fc.func(fc.boolean()),
  );
  const kinds = fc.constantFrom('choice' as const, 'approval' as const, 'free_text' as const);
  fc.assert(
    fc.property(said, restyled, kinds, (utterance, [before, after, gap, end, upper], kind) => {
      const asked = { ...question(['Economy', 'Premium', 'Window seat']), kind };
      const cased = utterance.replace(/./g, (c, n: number) => (upper(n) ? c.toUpperCase() : c));
      const styled = `${before}${cased.replaceAll(' ', gap)}${after}${end}`;
      expect([styled, gist(matchAnswer(asked, styled))]).toEqual([
        styled,
        gist(matchAnswer(asked, utterance)),
      ]);
    }),
    { numRuns: 1_000 },
  );
});

test('matches every label in any set of options', () => {
  const label = fc
    .oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      sentence(names, chatter, english.consent.no, english.holds, english.negations),
      fc.integer({ min: 0, max: 30 }).map(String),
    )
    .filter((text) => fold(text) !== '');
  fc.assert(
    fc.property(
      fc.uniqueArray(label, { minLength: 1, maxLength: 5, selector: fold }),
      fc.nat(4),
      (labels, n) => {
        const chosen = n % labels.length;
        expect(matchAnswer(question(labels), labels[chosen]!)).toEqual({
          kind: 'option',
          optionId: `o${chosen}`,
          label: labels[chosen],
          how: 'label',
          confidence: 1,
        });
      },
    ),
    { numRuns: 500 },
  );
});

test('returns a result for any answer and any options, and returns only ids of existing options', () => {
  const anything = fc.string({ unit: 'binary', maxLength: 40 });
  fc.assert(
    fc.property(fc.array(anything, { maxLength: 4 }), anything, (labels, utterance) => {
      const match = matchAnswer(question(labels), utterance);
      const named =
        match.kind === 'option'
          ? [match.optionId]
          : match.kind === 'ambiguous'
            ? match.optionIds
            : [];
      expect(named.every((id) => Number(id.slice(1)) < labels.length)).toBe(true);
      expect(match.kind).not.toMatch(/approved|denied/);
    }),
    { numRuns: 300 },
  );
});

const frames = [
  "I'd like {}",
  '{}, please',
  'the {} one',
  "let's go with {}",
  'um, {}',
  'okay, {} then',
  'give me the {} option please',
  "I'll have the {} one, thank you",
  'I think {} would be best',
  'could I get {}?',
  'how about {}?',
  'yeah, {}',
];

test('finds a label in common phrases', () => {
  for (const name of names) {
    for (const frame of frames) {
      const match = matchAnswer(question(names), frame.replace('{}', name.toLowerCase()));
      expect([frame, name, match]).toMatchObject([frame, name, { kind: 'option', label: name }]);
    }
  }
});

test('selects nothing if the sentence negates the option', () => {
  for (const name of names) {
    for (const frame of [
      'not {}',
      "I don't want {}",
      'anything but {}',
      '{}? no',
      'never {}',
      "{} isn't it",
    ]) {
      const match = matchAnswer(question(names), frame.replace('{}', name));
      expect([frame, match.kind]).toEqual([frame, 'unclear']);
    }
  }
});

const letters = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'.split(''));

/** One error: a letter is lost, added, replaced or swapped with its neighbour, or a space is added. */
const slip = fc
  .tuple(fc.constantFrom('lose', 'add', 'replace', 'swap', 'split'), fc.nat(20), letters)
  .map(([kind, position, letter]) => (word: string): string => {
    const at = position % (word.length - 1);
    const [before, after] = [word.slice(0, at), word.slice(at)];
    switch (kind) {
      case 'lose':
        return before + after.slice(1);
      case 'add':
        return before + letter + after;
      case 'replace':
        return before + letter + after.slice(1);
      case 'swap':
        return before + after.charAt(1) + after.charAt(0) + after.slice(2);
      case 'split':
        return `${before} ${after}`;
    }
  });

test('tolerates one wrong letter in a name of at least five letters unless another name is similar', () => {
  const cases = fc.tuple(fc.constantFrom(...names), slip);
  fc.assert(
    fc.property(cases, ([name, change]) => {
      const heard = change(name.toLowerCase());
      expect([heard, gist(matchAnswer(question(names), heard))]).toEqual([
        heard,
        `option o${names.indexOf(name)}`,
      ]);
    }),
    { numRuns: 500 },
  );
});

test('MATCH-ANSWER-2: does not choose between two names that differ by one letter', () => {
  const three = fc.uniqueArray(letters, { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.nat(20), three, (name, position, [a, b, c]) => {
      const at = position % name.length;
      const [x, y, heard] = [a, b, c].map((letter) =>
        `${name.slice(0, at)}${letter}${name.slice(at + 1)}`.toLowerCase(),
      ) as [string, string, string];
      fc.pre(editDistance(x, heard) === 1 && editDistance(y, heard) === 1);
      expect([x, y, heard, matchAnswer(question([x, y]), heard).kind]).not.toContain('option');
    }),
    { numRuns: 500 },
  );
});
