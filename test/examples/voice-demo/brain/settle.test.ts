import { expect, test } from 'vitest';
import { saySettled, settle } from '../../../../examples/voice-demo/brain/settle.ts';

const ride = {
  id: 'q1',
  subagent: 'ride_booker',
  options: [
    { id: 'economy', label: 'Economy', detail: '$12, 5 min' },
    { id: 'premium', label: 'Premium', detail: '$24, 3 min' },
  ],
};

const over = (words: string) => {
  const settled = settle(words, { type: 'asked', open: [ride], answered: [] });
  return settled && { ...settled.call.input, rest: settled.rest };
};

test.each([
  ['the cheaper one', { action: 'answer', optionId: 'economy' }],
  ['the quickest', { action: 'answer', optionId: 'premium' }],
  ['which one is cheaper?', { action: 'explain' }],
  ["I don't want it any more", { action: 'cancel' }],
  ['forget the ride', { action: 'cancel' }],
  ['not now', { action: 'later' }],
  ['sorry, what?', { action: 'repeat' }],
  ['Premium, and book me a table', { action: 'answer', quote: 'Premium', rest: 'book me a table' }],
])('"%s" is about the question', (words, expected) => {
  expect(over(words)).toMatchObject({ questionId: 'q1', ...expected });
});

test.each(['book me a table for two', 'cancel the report', 'is premium any good?', 'hello'])(
  '"%s" is about something else',
  (words) => {
    expect(over(words)).toBeNull();
  },
);

test('an answer of a moment ago is corrected', () => {
  const asked = { type: 'asked', open: [], answered: [ride] } as const;
  expect(settle('sorry, I meant premium', asked)?.call.input).toMatchObject({
    action: 'correct',
    optionId: 'premium',
  });
  expect(settle('thank you', asked)).toBeNull();
  expect(saySettled({ status: 'refused', tell: 'It is too late: …' })).toContain('too late');
});
