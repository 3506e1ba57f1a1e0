// The words of an utterance that started while the lead agent was speaking are judged together with the sound.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EchoMeter, type Comparison } from '../../../src/voice/audio/echo-meter.ts';
import { Overlap } from '../../../src/voice/turns/overlap.ts';

class Heard extends EchoMeter {
  comparison: Comparison = { likeness: 0.95, gainDb: -20 };
  override compare(): Comparison {
    return this.comparison;
  }
}

/** An echo of `echoMs`, followed by another voice for `ownMs` after the speech. */
function overlapOf(echoMs: number, ownMs: number): Overlap {
  const meter = new Heard();
  const overlap = new Overlap('utt', meter);
  for (let at = 0; at < echoMs; at += 20) overlap.heard(['item'], 20, 20, at);
  meter.comparison = { likeness: 0.3, gainDb: -10 };
  for (let at = 0; at < ownMs; at += 20) overlap.heard([], 20, 20, echoMs + at);
  return overlap;
}

const SPEECH =
  'Which ride to the airport would you like? Economy, 12 dollars, in 5 minutes, or Premium, 24 dollars, in 3 minutes?';

describe('ECHO-2: an answer without a pause before it', () => {
  test.each([
    ['dollars in three minutes premium please', 'premium please'],
    ['or premium 24 dollars in three minutes the cheaper one', 'the cheaper one'],
    ['Economy 12 dollars, in 5 minutes, or premium, 24 dollars in 3 minutes. Economy.', 'Economy.'],
    ['would you like economy twelve dollars no book me a table', 'no book me a table'],
    ['five minutes or plenum twenty-four dollars in three minutes premium', 'premium'],
  ])('remains after the echo is removed from: %s', (text, own) => {
    expect(overlapOf(2000, 600).ownWords(text, SPEECH, false)).toBe(own);
  });

  test.each([
    ['no echo was heard', () => overlapOf(100, 600), 'in 3 minutes premium please'],
    ['no user spoke after it', () => overlapOf(2000, 0), 'in 3 minutes premium please'],
    ['two words of it are no sign', () => overlapOf(2000, 600), 'Premium, or the other one'],
    ['nothing in common', () => overlapOf(2000, 600), 'book me a table'],
  ])('keeps all of its words: %s', (_, overlap, text) => {
    expect(overlap().ownWords(text, SPEECH, false)).toBe(text);
  });

  test('remains complete whichever part of the speech is heard', () => {
    const word = (...letters: readonly string[]) =>
      fc.string({ unit: fc.constantFrom(...letters), minLength: 4, maxLength: 8 });
    fc.assert(
      fc.property(
        fc.uniqueArray(word('a', 'b', 'c', 'd', 'e'), { minLength: 6, maxLength: 30 }),
        fc.array(word('v', 'w', 'x', 'y', 'z'), { minLength: 1, maxLength: 8 }),
        fc.nat(10),
        (speech, answer, from) => {
          const echo = speech.slice(Math.min(from, speech.length - 3));
          const text = [...echo, ...answer].join(' ');
          expect(overlapOf(2000, 600).ownWords(text, speech.join(' '), false)).toBe(
            answer.join(' '),
          );
        },
      ),
    );
  });
});

describe('ECHO-1: pieces of an echo', () => {
  /** An echo of `echoMs`, followed by a louder voice over the speech for `otherMs`. */
  function spokenOver(echoMs: number, otherMs: number): Overlap {
    const meter = new Heard();
    const overlap = new Overlap('utt', meter);
    for (let at = 0; at < echoMs; at += 20) overlap.heard(['item'], 20, 20, at);
    meter.comparison = { likeness: 0.3, gainDb: -5 };
    for (let at = 0; at < otherMs; at += 20) overlap.heard(['item'], 20, 20, echoMs + at);
    return overlap;
  }

  test('disappear in an echoing room however they are transcribed', () => {
    expect(spokenOver(400, 0).isEcho('Wait,', SPEECH, true)).toBe(true);
    expect(spokenOver(400, 0).isEcho('Wait,', SPEECH, false)).toBe(false);
    // A single comparison may match by chance.
    expect(spokenOver(160, 0).isEcho('Wait,', SPEECH, true)).toBe(false);
  });

  test('do not hide what the user says over a long echo', () => {
    const text = 'or premium 24 dollars in three minutes economy';
    expect(spokenOver(6000, 600).isEcho(text, SPEECH, true)).toBe(false);
    expect(spokenOver(6000, 600).ownWords(text, SPEECH, true)).toBe('economy');
    expect(spokenOver(6000, 0).isEcho(text, SPEECH, true)).toBe(true);
  });
});
