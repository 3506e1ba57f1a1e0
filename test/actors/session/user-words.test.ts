import { expect, test } from 'vitest';
import type { QuestionRecord } from '../../../src/actors/session/records.ts';
import { readUtterance } from '../../../src/actors/session/user-words.ts';

const rides: QuestionRecord = {
  requestId: 'sub_1.q1',
  subagentId: 'sub_1',
  subagentName: 'ride_booker',
  kind: 'question',
  question: 'Economy or Premium?',
  options: [
    { id: 'economy', label: 'Economy' },
    { id: 'premium', label: 'Premium' },
  ],
  timeoutMs: 1000,
  askedAt: 0,
  answer: null,
  timesUnclear: 0,
};
const approval: QuestionRecord = { ...rides, kind: 'approval' };

test('P3: an option is an answer, also before the question was heard to its end', () => {
  expect(readUtterance(rides, 'economy, please', false)).toEqual({
    to: 'question',
    decisive: true,
    answer: { userResponse: 'Economy', optionId: 'economy' },
  });
});

test('spoken words that name no option are asked for again once, then the asker has to tell', () => {
  const words = 'the cheaper one';
  expect(readUtterance(rides, words, false)).toEqual({ to: 'again' });
  expect(readUtterance({ ...rides, timesUnclear: 1 }, words, false)).toEqual({
    to: 'question',
    decisive: false,
    answer: { userResponse: words },
  });
});

test('typed words are as they were meant, but for a slip of one or two', () => {
  expect(readUtterance(rides, 'the cheaper one', true)).toMatchObject({ to: 'question' });
  expect(readUtterance(rides, 'asdf', true)).toEqual({ to: 'again' });
});

test('P3: consent is an exact yes or no, however often it is asked for', () => {
  const unclear = { ...approval, timesUnclear: 5 };
  expect(readUtterance(unclear, 'well I guess so', true)).toEqual({ to: 'again' });
  expect(readUtterance(unclear, 'yes', false)).toMatchObject({ answer: { approved: true } });
  expect(readUtterance(unclear, 'no', false)).toMatchObject({ answer: { approved: false } });
  expect(readUtterance(approval, "okay, wait, don't run that", false).to).not.toBe('question');
});

test('what is clearly for the lead agent goes there; a wait is for nobody', () => {
  expect(readUtterance(rides, 'what time is it?', false)).toEqual({ to: 'lead' });
  expect(readUtterance(rides, 'hang on a second', false)).toEqual({ to: 'nobody' });
});
