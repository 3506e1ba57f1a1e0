import { describe, expect, test } from 'vitest';
import { english } from '../../src/language/english.ts';
import { matchAnswer } from '../../src/language/match-answer.ts';
import { findPhrase } from '../../src/language/tables.ts';
import { wordsOf } from '../../src/language/utterance.ts';

const verdict = (utterance: string, language?: string): string =>
  matchAnswer({ kind: 'approval', options: [] }, utterance, { language }).kind;

describe('MATCH-APPROVAL-1: the closed list of consent', () => {
  test.each(['yes', 'Yes.', 'YES PLEASE', 'yeah, thanks', 'yep', 'go ahead', 'Yes, go ahead.'])(
    '%s',
    (utterance) => {
      expect(verdict(utterance)).toBe('approved');
    },
  );
  test.each(['Please do.', 'okay, do it', 'Approve', 'Approved.', 'Permission granted', 'yes yes'])(
    '%s',
    (utterance) => {
      expect(verdict(utterance)).toBe('approved');
    },
  );

  test.each([
    // Backchannels: sounds that a listener makes.
    'okay',
    'right',
    'mm-hm',
    'uh-huh',
    'alright',
    'fine',
    // Nearly a yes.
    'yess',
    'go a head now',
    'hmm, yes',
    'sure thing',
    'do',
    'please',
    'I said yes yesterday',
    // A recogniser's real transcripts of "approve", "yes", "yes, book it" and "yeah".
    'A prince,',
    'Worse.',
    'Just.',
    'Yes, wicked.',
    'You got.',
    '',
    '?',
  ])('finds no approval: %s', (utterance) => {
    expect(verdict(utterance)).toBe('unclear');
  });

  test('finds no consent in a language without tables', () => {
    expect(verdict('yes', 'fi')).toBe('unclear');
    expect(verdict('kyllä', 'fi')).toBe('unclear');
  });
});

describe('MATCH-APPROVAL-2: a negation, which always takes precedence', () => {
  test.each(['no', 'No thanks.', 'nope', 'NO!', "don't", 'do not', 'please do not', 'stop'])(
    'denies: %s',
    (utterance) => {
      expect(verdict(utterance)).toBe('denied');
    },
  );
  test.each(['yes, no', 'no, yes', 'never do it', "don't go ahead", 'deny', 'cancel that please'])(
    'denies: %s',
    (utterance) => {
      expect(verdict(utterance)).toBe('denied');
    },
  );

  test.each([
    // A version that interpreted this as a yes ran the command.
    "Okay, wait, don't run that",
    "yes but don't send it",
    'not now',
    'no, send it to Peter instead',
    "I don't think so",
    'stop asking',
    'never mind',
  ])('denies in any position: %s', (utterance) => {
    expect(verdict(utterance)).toBe('denied');
  });

  // A recogniser transcribed "Go ahead" as "no head": a negation with other words is not a denial either.
  test.each(['No head,', 'no problem, go ahead', 'not yes', 'not yet', 'why not'])(
    'does not approve: %s',
    (utterance) => {
      expect(['unclear', 'digression', 'hold']).toContain(verdict(utterance));
    },
  );

  test('appears in no phrase of the yes list', () => {
    const negations = [...english.negations, 'stop', 'cancel'].map((word) =>
      wordsOf(word, english),
    );
    const wrong = english.consent.yes.filter((phrase) =>
      negations.some((negation) => findPhrase(wordsOf(phrase, english), negation).length > 0),
    );
    expect(wrong).toEqual([]);
  });
});

describe('MATCH-APPROVAL-3: neither yes nor no', () => {
  test.each([
    ['wait', 'hold'],
    ['yes, wait', 'hold'],
    ['hang on a second', 'hold'],
    ['hmm', 'hold'],
    ['Yes?', 'unclear'],
    ['No?', 'unclear'],
    ['What?', 'repeat'],
    ['Could you repeat that?', 'repeat'],
    ['Why?', 'digression'],
    ['What would it cost', 'digression'],
    ['Is it safe?', 'digression'],
    ['What time is it', 'digression'],
    ['yes if it is free', 'unclear'],
    ['let me think', 'hold'],
    // The session must not stay silent while the user thinks that nothing is left to say.
    ['let me think, yes', 'unclear'],
  ])('%s: %s', (utterance, kind) => {
    expect(verdict(utterance)).toBe(kind);
  });
});

describe('MATCH-APPROVAL-6: symbols next to a yes', () => {
  test.each([
    'Yes ❌',
    'yes 👎',
    '!yes',
    '¬yes',
    'yes \u{1F6AB}',
    'y\u0336e\u0336s\u0336',
    '-yes',
    'yes ≠',
    'yes ☒',
    'yes ?!yes',
  ])('prevent approval: %s', (utterance) => {
    expect(verdict(utterance)).not.toBe('approved');
  });

  test.each(['Yes!', '¡Sí!', '“Yes.”', 'Yes…', 'Yes — go ahead.'])(
    'do not include punctuation: %s',
    (utterance) => {
      expect(verdict(utterance, utterance.includes('Sí') ? 'es' : 'en')).toBe('approved');
    },
  );
});

describe('MATCH-APPROVAL-7: a request after a yes or a no', () => {
  const read = (utterance: string, language = 'en') =>
    matchAnswer({ kind: 'approval', options: [] }, utterance, { language });

  test.each([
    ['No, and book a table for two.', 'en'],
    ['Forget it, make me the report instead.', 'en'],
    ['Nein, und buch einen Tisch für zwei.', 'de'],
  ])('comes with a denial: %s', (utterance, language) => {
    expect(read(utterance, language)).toEqual({ kind: 'denied', more: true });
  });

  test.each([
    ['Yes, and then book a table.', 'en'],
    ['Ja, und dann buch einen Tisch.', 'de'],
  ])('comes with consent: %s', (utterance, language) => {
    expect(read(utterance, language)).toEqual({ kind: 'approved', more: true });
  });

  test.each([
    'Yes, but on Friday instead.',
    'Yes, and make it two.',
    'Yes, and send it to Bob too.',
    'Yes, and cancel the rest.',
    'Yes, and then wait.',
    'Yes, but only half.',
    'Yes, and book it for Friday.',
  ])('prevents consent if it might change the action: %s', (utterance) => {
    expect(verdict(utterance)).not.toBe('approved');
  });

  test.each([
    '… should be a hundred and forty!',
    "I've already paid that.",
    "That's too much.",
    'Only the blurry ones.',
  ])('passes an objection or a correction to the lead agent: %s', (utterance) => {
    expect(verdict(utterance)).toBe('digression');
  });
});
