import { describe, expect, test } from 'vitest';
import { isUnfinished } from '../../src/language/backchannel.ts';

describe('a sentence that breaks off', () => {
  test.each([
    ['en', 'Book me a ride to'],
    ['en', 'I would like the.'],
    ['en', 'What is the weather in'],
    ['en-GB', 'A table for'],
    ['en', 'Premium, and'],
    ['en', 'Because'],
    ['en', 'Um.'],
    ['en', 'I want a, um'],
    ['en', "I'd"],
    ['de', 'Buchen Sie mir eine Fahrt zum'],
    ['de', 'Ich möchte'],
    ['de', 'Einen Tisch für'],
    ['de', 'Ähm'],
    ['fr', 'Réservez une table pour'],
    ['fr', "J'aimerais aller à"],
    ['fr', 'Je voudrais'],
    ['fr', 'Euh…'],
    ['es', 'Quisiera un taxi a la'],
    ['es', 'Reserve una mesa para'],
    ['es', 'Eh'],
  ])('%s: %s', (language, text) => {
    expect(isUnfinished(text, language)).toBe(true);
  });
});

describe('a sentence that is complete, or may be', () => {
  test.each([
    ['en', ''],
    ['en', 'Premium'],
    ['en', 'The second one'],
    ['en', "I don't want it"],
    ['en', 'Turn it off'],
    ['en', 'Hold on.'],
    ['en', 'Go on'],
    ['en', 'What is it for?'],
    ['en', 'Hmm'],
    ['de', 'Mach das Licht an'],
    ['de', 'Hör auf'],
    ['de', 'Ich nehme das'],
    ['fr', 'Bien sûr'],
    ['fr', 'Celle-là'],
    ['es', 'Para'],
    ['es', 'Sí'],
    ['es', 'Para mí'],
    // A language without tables, so that its words are unknown.
    ['ja', 'to'],
  ])('%s: %s', (language, text) => {
    expect(isUnfinished(text, language)).toBe(false);
  });
});
