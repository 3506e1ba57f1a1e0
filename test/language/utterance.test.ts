import { expect, test } from 'vitest';
import { english } from '../../src/language/english.ts';
import { literal } from '../../src/language/language.ts';
import { languageFor } from '../../src/language/languages.ts';
import { readUtterance, wordsOf } from '../../src/language/utterance.ts';

test.each([
  ["I'd LIKE  the—Économy, please!", 'id like the economy please'],
  ['don’t', 'dont'],
  ['twenty-four', '24'],
  ['two hundred and six', '206'],
  ['one hundred and seventy five', '175'],
  ['twelve hundred', '1200'],
  ['two thousand and twenty six', '2026'],
  ['three hundred thousand', '300000'],
  ['four five', '4 5'],
  ['twenty thirty', '20 30'],
  ['1,250.50', '1250.50'],
  ['$12 or $ 24', '12 dollar or 24 dollar'],
  ['5 mins', '5 minute'],
  ['7pm', '7 pm'],
  ['second', '#2'],
  ['2nd 11th', '#2 #11'],
  ['#3', 'number 3'],
  ['B12', 'b 12'],
  ['ﬁne', 'fine'],
  ['日本語 ok', '日 本 語 okay'],
  ['ΕΛΛΆΔΟΣ ελλάδοσ', 'ελλαδος ελλαδος'],
  ['हिन्दी', 'हिन्दी'],
])('%s', (text, words) => {
  expect(wordsOf(text, english).join(' ')).toBe(words);
});

test.each([
  ['the premium one', [2]],
  ['the second one please', [2]],
  ['one', []],
  ['um one', []],
  ['option one', []],
  ['the one ticket', []],
  ["I'd like one", [2]],
])('recognises "one" as a substitute for a noun: %s', (text, indexes) => {
  expect([...readUtterance(text, english).proforms]).toEqual(indexes);
});

test.each([
  ['Economy?', true],
  ['"Economy?" ', true],
  ['Economy? Yes.', false],
  ['経済？', true],
])('detects whether %s is a question', (text, asks) => {
  expect(readUtterance(text, english).asks).toBe(asks);
});

test('takes words literally in a language without tables', () => {
  expect(wordsOf('the second one, 2nd', literal).join(' ')).toBe('the second one 2 nd');
  expect(languageFor('en-US')).toBe(english);
  expect(languageFor('xx')).toBe(literal);
});
