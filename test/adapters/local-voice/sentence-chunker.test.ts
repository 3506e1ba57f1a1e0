import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SentenceChunker } from '../../../src/adapters/local-voice/sentence-chunker.ts';

function pieces(...deltas: string[]): string[] {
  const chunker = new SentenceChunker();
  return [...deltas.flatMap((delta) => chunker.push(delta)), ...chunker.flush()];
}

describe('SentenceChunker', () => {
  test.each([
    ['sentences', 'One. Two! Three? Four', ['One. ', 'Two! ', 'Three? ', 'Four']],
    ['quotes', '"Yes." he said. Good', ['"Yes." ', 'he said. ', 'Good']],
    [
      'abbreviations',
      'Dr. Ada and Mr. Bob, e.g. here. Yes',
      ['Dr. Ada and Mr. Bob, e.g. here. ', 'Yes'],
    ],
    ['initials', 'J. S. Bach wrote. Much', ['J. S. Bach wrote. ', 'Much']],
    ['numbers', 'It costs 3.50 euros. Fine', ['It costs 3.50 euros. ', 'Fine']],
    ['lines', 'First\n- second\n\n- third', ['First\n', '- second\n\n', '- third']],
    ['nothing', '', []],
  ])('%s', (_name, text, expected) => {
    expect(pieces(text)).toEqual(expected);
    // However it streams in.
    expect(pieces(...text.split(''))).toEqual(expected);
  });

  test('a sentence is given as soon as it is over', () => {
    const chunker = new SentenceChunker();
    expect(chunker.push('It is boo')).toEqual([]);
    expect(chunker.push('ked. The')).toEqual(['It is booked. ']);
    expect(chunker.flush()).toEqual(['The']);
  });

  test('a long first sentence is begun at a comma, a later one is not', () => {
    const long = 'I have looked at all of the rides near you this evening, and the best of them is';
    const chunker = new SentenceChunker();
    expect(chunker.push(long)).toEqual([
      'I have looked at all of the rides near you this evening, ',
    ]);
    expect(chunker.push(` here. ${long}`)).toEqual(['and the best of them is here. ']);
  });

  test('C1, C2: nothing is lost, nothing is endless', () => {
    const deltas = fc.array(
      fc.oneof(
        fc.string({ maxLength: 20 }),
        fc.constantFrom('. ', ', ', '\n', 'Dr. ', ' ', 'word ', 'x'.repeat(300), '?!" '),
      ),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(deltas, (texts) => {
        const given = pieces(...texts);
        expect(given.join('')).toBe(texts.join(''));
        for (const piece of given) expect(piece.trimEnd().length).toBeLessThanOrEqual(240);
      }),
    );
  });
});
