import { describe, expect, test } from 'vitest';
import { backchannelIn, humIn } from '../../src/language/backchannel.ts';

describe('the words of a listener', () => {
  test.each([
    'Mm-hm.',
    'mhm',
    'Uh-huh!',
    'Okay.',
    'OK',
    'Right, right.',
    'Yeah, okay, I see.',
    'Got it.',
    'All right',
    'Oh, that makes sense',
    'I understand.',
    'Absolutely!',
    'For sure.',
    'Perfect, okay.',
  ])('recognises the backchannel %s', (text) => {
    expect(backchannelIn(text)).toBe('whole');
  });

  test.each([
    ['de-AT', 'Ach so, ja. Genau!'],
    ['de', 'Schön.'],
    ['de', 'Perfekt, auf jeden Fall.'],
    ['fr', 'Absolument, tout à fait.'],
    ['es', 'Desde luego, comprendo.'],
    ['fr', "Oui, d'accord"],
    ['fr-CA', 'Très bien !'],
    ['es', 'Sí, claro.'],
    ['ja', 'mm-hm'],
  ])('%s: %s', (language, text) => {
    expect(backchannelIn(text, language)).toBe('whole');
  });
});

describe('words that take the turn', () => {
  test.each([
    'Stop.',
    'Wait',
    'No',
    'Mm-mm.',
    'Uh-uh',
    'okay but not today',
    'hold on',
    'Actually',
    'Excuse me',
    'perfect timing for a walk',
    'I understand nothing',
    'Right?',
    'Yes, book it',
    'left',
    '?',
    '42',
  ])('does not recognise a backchannel in %s', (text) => {
    expect(backchannelIn(text)).toBe('none');
  });

  test('does not recognise backchannels from another language', () => {
    expect(backchannelIn('genau', 'en')).toBe('none');
    expect(backchannelIn('yeah', 'ja')).toBe('none');
  });
});

describe('a hum', () => {
  test.each(['Mm.', 'Hmm', 'mm-hm', 'Uh-huh.', 'ah, oh'])('recognises the hum %s', (text) => {
    expect(humIn(text)).toBe('whole');
  });

  test.each(['Okay.', 'Yes', 'mm-mm', 'hm?', 'hmm premium'])(
    'does not recognise a hum in %s',
    (text) => {
      expect(humIn(text)).toBe('none');
    },
  );
});

test.each(['', '  ', 'got', 'yeah that makes', 'all'])(
  'recognises an incomplete backchannel: %j',
  (text) => {
    expect(backchannelIn(text)).toBe('beginning');
  },
);
