import { expect, test } from 'vitest';
import { leadReply } from '../../../../examples/voice-demo/rules/lead.ts';
import { saySettled, settle } from '../../../../examples/voice-demo/rules/settle.ts';

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
  ['Premium, please.', { action: 'answer', optionId: 'premium', rest: '' }],
  ['premium, sorry, I mean economy', { action: 'answer', optionId: 'economy', rest: '' }],
  ['the second one', { action: 'answer', optionId: 'premium' }],
  ['the one for twelve dollars', { action: 'answer', optionId: 'economy' }],
  ['whichever is faster', { action: 'answer', optionId: 'premium' }],
  ['not economy, the other one', { action: 'answer', optionId: 'premium' }],
  ['whatever costs less', { action: 'answer', optionId: 'economy' }],
  ['number two', { action: 'answer', optionId: 'premium' }],
  ['neither of them', { action: 'answer', text: 'neither of them' }],
  ['to the station instead', { action: 'cancel', rest: 'Book me a ride to the station' }],
  [
    'Premium, and make me a sales report for last week.',
    { action: 'answer', optionId: 'premium', rest: 'make me a sales report for last week.' },
  ],
])('recognises "%s" as a reply to the question', (words, expected) => {
  expect(over(words)).toMatchObject({ questionId: 'q1', ...expected });
});

test.each(['book me a table for two', 'cancel the report', 'is premium any good?', 'hello'])(
  'recognises "%s" as a change of subject',
  (words) => {
    expect(over(words)).toBeNull();
  },
);

const table = {
  subagent: 'table_booker',
  options: [
    { id: 'italian', label: 'Italian', detail: '7 PM, by the window' },
    { id: 'french', label: 'French', detail: '8:30 PM, in the garden' },
  ],
};

test.each([
  ['the one at half past eight', { action: 'answer', optionId: 'french' }],
  ['at seven, please', { action: 'answer', optionId: 'italian' }],
  ['I would like to sit in the garden', { action: 'answer', optionId: 'french' }],
  ['the last one', { action: 'answer', optionId: 'french' }],
  ['the earlier one', { action: 'answer', optionId: 'italian' }],
  ['sorry, we are five people', { action: 'cancel', rest: 'Book a table for 5 people' }],
])('recognises "%s" as a choice by a property of the option', (words, expected) => {
  const settled = settle(words, { type: 'asked', open: [table], answered: [] });
  expect(settled && { ...settled.call.input, rest: settled.rest }).toMatchObject(expected);
});

test.each([
  ['a sales report for last week', null],
  ['tell me a joke', null],
  ['a table for seven', null],
  ['the last one', 'French'],
  ['French, please', 'French'],
  ['French, and a ride to the airport', undefined],
])('recognises "%s" as a plain answer that needs no call: %s', (words, label) => {
  const settled = settle(words, { type: 'asked', open: [table], answered: [] });
  expect(settled && settled.named?.label).toBe(label);
});

test.each([
  ['Which one is cheaper?', 'That is Economy, $12, 15 min. Which one would you like?'],
  ['Which is the fastest?', 'That is Premium, $24, 8 min. Which one would you like?'],
  ['What is the difference?', 'There is Economy, $12, 15 min and Premium, $24, 8 min. Which one?'],
])('answers a question about the options with the requested detail: %s', (quote, expected) => {
  const options = [
    { label: 'Economy', description: '$12, 15 min' },
    { label: 'Premium', description: '$24, 8 min' },
  ];
  expect(saySettled({ status: 'explain_now', explain: { options } }, quote)).toBe(expected);
});

test('says that a button has already settled the question', () => {
  const refused = { status: 'refused', reason: 'already_settled', tell: '…' };
  expect(saySettled(refused, 'premium')).toBe('That is settled already.');
});

test('corrects the answer that was given last', () => {
  const asked = { type: 'asked', open: [], answered: [ride] } as const;
  expect(settle('sorry, I meant premium', asked)?.call.input).toMatchObject({
    action: 'correct',
    optionId: 'premium',
  });
  expect(settle('thank you', asked)).toBeNull();
  expect(saySettled({ status: 'refused', tell: 'It is too late: …' })).toContain('too late');
});

test.each([
  [
    ['the cheap one', 'make me a sales report for last week'],
    'the cheap one',
    'economy',
    ['generate_report'],
  ],
  [['the cheap one', 'sorry, premium'], 'premium', 'premium', []],
])('quotes one utterance of %j and answers the others', (said, quote, optionId, others) => {
  const notice = { type: 'asked', open: [ride], answered: [] } as const;
  const entries = [
    { kind: 'notice', notice } as const,
    ...said.map((text) => ({ kind: 'user', text }) as const),
  ];
  const conversation = { instructions: '', assignment: null, task: null, entries };
  const { calls } = leadReply(conversation, new Set(['settle_question', 'generate_report']));
  expect(calls.map(({ toolName }) => toolName)).toEqual(['settle_question', ...others]);
  expect(calls[0]?.input).toMatchObject({ action: 'answer', optionId, quote });
});
