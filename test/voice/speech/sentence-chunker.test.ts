import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SentenceChunker } from '../../../src/voice/speech/sentence-chunker.ts';

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
    ['quotes of other languages', '«Oui.» dit-il. „Ja.“ Gut', ['«Oui.» ', 'dit-il. ', '„Ja.“ Gut']],
    ['an ellipsis that goes on', 'Well... yes, it is. Good', ['Well... yes, it is. ', 'Good']],
    ['an ellipsis that ends', 'Well… Then not. Good', ['Well… ', 'Then not. ', 'Good']],
    ['dates', 'Es ist am 3. Mai um 5. Gut so', ['Es ist am 3. Mai um 5. Gut so']],
    ['a numbered list', '1. One\n2. Two', ['1. One\n', '2. Two']],
    [
      'German abbreviations',
      'Das kostet z. B. ca. 5 Euro bzw. mehr. Gut',
      ['Das kostet z. B. ca. 5 Euro bzw. mehr. ', 'Gut'],
    ],
    ['French', 'M. et Mme. Dupont sont là ! Entrez', ['M. et Mme. Dupont sont là ! ', 'Entrez']],
    ['Chinese', '你好。今天好吗？好！', ['你好。', '今天好吗？', '好！']],
    ['Japanese', '「はい。」と言った。次', ['「はい。」', 'と言った。', '次']],
    ['Hindi', 'नमस्ते। आप कैसे हैं? ठीक', ['नमस्ते। ', 'आप कैसे हैं? ', 'ठीक']],
    ['Arabic', 'كيف حالك؟ بخير. شكرا', ['كيف حالك؟ ', 'بخير. ', 'شكرا']],
    ['nothing', '', []],
  ])('cuts %s', (_name, text, expected) => {
    expect(pieces(text)).toEqual(expected);
    // The pieces are the same if the text is streamed character by character.
    expect(pieces(...text.split(''))).toEqual(expected);
  });

  test('emits a sentence as soon as it is complete', () => {
    const chunker = new SentenceChunker();
    expect(chunker.push('It is boo')).toEqual([]);
    expect(chunker.push('ked. The')).toEqual(['It is booked. ']);
    expect(chunker.flush()).toEqual(['The']);
  });

  test('splits a long first sentence at a comma, but not a later sentence', () => {
    const long = 'I have looked at all of the rides near you this evening, and the best of them is';
    const chunker = new SentenceChunker();
    expect(chunker.push(long)).toEqual([
      'I have looked at all of the rides near you this evening, ',
    ]);
    expect(chunker.push(` here. ${long}`)).toEqual(['and the best of them is here. ']);
  });

  test('SENTENCE-CHUNKER-1, SENTENCE-CHUNKER-2: loses no text and limits the length of the pieces', () => {
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

  test('SENTENCE-CHUNKER-2: splits a script that has no spaces between words', () => {
    const given = pieces('สวัสดีครับ'.repeat(60));
    expect(given.length).toBeGreaterThan(1);
    for (const piece of given) {
      expect(piece.length).toBeLessThanOrEqual(240);
      expect(piece.startsWith('สวัสดี') || piece.startsWith('ครับ')).toBe(true);
    }
  });
});
