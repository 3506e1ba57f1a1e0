import { expect, test } from 'vitest';
import type { QuestionRecord } from '../../../../src/actors/contracts/records.ts';
import { readUtterance } from '../../../../src/actors/session/questions/user-words.ts';

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
  askedAgain: false,
  readBack: false,
};
const approval: QuestionRecord = { ...rides, kind: 'approval' };

test('P3: accepts an option as an answer, even before the whole question has been heard', () => {
  expect(readUtterance(rides, 'economy, please', { typed: false })).toEqual({
    to: 'question',
    decisive: true,
    answer: { userResponse: 'Economy', optionId: 'economy' },
  });
});

const toLead = { to: 'lead', about: 'sub_1.q1' };

test.each(['the cheaper one', 'asdf', "I don't want it any more", 'economy or premium'])(
  'USER-WORDS-7: sends an utterance that names no option to the lead agent with the question: %s',
  (words) => {
    for (const typed of [true, false]) {
      expect(readUtterance(rides, words, { typed })).toEqual(toLead);
      expect(readUtterance({ ...rides, timesUnclear: 1 }, words, { typed })).toEqual(toLead);
    }
  },
);

test.each(['the cheaper one', 'asdf'])(
  'USER-WORDS-7: repeats the question once, then sends unclear replies to a lead without tools: %s',
  (words) => {
    for (const typed of [true, false]) {
      const heard = { typed, leadSettles: false };
      expect(readUtterance(rides, words, heard)).toEqual({ to: 'again' });
      expect(readUtterance({ ...rides, timesUnclear: 1 }, words, heard)).toEqual(toLead);
    }
  },
);

test('USER-WORDS-7: accepts an utterance that declines all options as the answer', () => {
  for (const typed of [true, false])
    expect(readUtterance(rides, 'neither', { typed })).toEqual({
      to: 'question',
      decisive: false,
      answer: { userResponse: 'neither' },
    });
});

test('USER-WORDS-7: accepts any utterance as the answer to a free-text question', () => {
  const name: QuestionRecord = { ...rides, options: [], question: 'What is your name?' };
  expect(readUtterance(name, 'Ada', { typed: false })).toMatchObject({
    to: 'question',
    answer: { userResponse: 'Ada' },
  });
  expect(readUtterance(name, 'why do you ask?', { typed: false })).toEqual(toLead);
});

test('P3: accepts only a clear yes or no as the answer to an approval, even after unclear replies', () => {
  const unclear = { ...approval, timesUnclear: 5, askedAgain: true };
  expect(readUtterance(approval, 'well I guess so', { typed: true })).toEqual({ to: 'again' });
  // The question has already been asked again once, so only the buttons and the lead agent remain.
  expect(readUtterance(unclear, 'well I guess so', { typed: true })).toEqual(toLead);
  expect(readUtterance(unclear, 'yes', { typed: false })).toMatchObject({
    answer: { approved: true },
  });
  expect(readUtterance(unclear, 'no', { typed: false })).toMatchObject({
    answer: { approved: false },
  });
  expect(readUtterance(approval, "okay, wait, don't run that", { typed: false })).toMatchObject({
    answer: { approved: false },
  });
});

test('P3: recognises an approval in the language of the current lead agent', () => {
  const said = (text: string, language?: string) =>
    readUtterance(approval, text, { typed: false, language });
  expect(said('ja, bitte', 'de-AT')).toMatchObject({ answer: { approved: true } });
  expect(said('nein, lieber nicht', 'de')).toMatchObject({ answer: { approved: false } });
  expect(said('Moment', 'de')).toEqual({ to: 'hold', forMs: 30_000 });
  expect(said('oui, vas-y', 'fr')).toMatchObject({ answer: { approved: true } });
  expect(said('sí, adelante', 'es')).toMatchObject({ answer: { approved: true } });
  expect(said('ja, bitte')).toEqual({ to: 'again' });
  // Only the buttons work for a language that has no tables.
  expect(said('kyllä', 'fi')).toEqual({ to: 'again' });
});

test.each([
  'yes, and from now on',
  'Yes, and from now on',
  'always',
  'yes always',
  'approve_lasting',
  'the third one',
])('USER-WORDS-3: never grants lasting permission because of an utterance: %s', (words) => {
  const lasting = { id: 'approve_lasting', label: 'Yes, and from now on' };
  const options = [{ id: 'approve', label: 'Yes' }, { id: 'deny', label: 'No' }, lasting];
  for (const typed of [true, false])
    expect(JSON.stringify(readUtterance({ ...approval, options }, words, { typed }))).not.toContain(
      '"optionId"',
    );
});

test('USER-WORDS-3: asks for confirmation of a yes, but not of a no, if several approvals are open', () => {
  expect(readUtterance(approval, 'approve', { typed: false, approvals: 2 })).toEqual({
    to: 'readBack',
  });
  expect(
    readUtterance({ ...approval, readBack: true }, 'approve', { typed: false, approvals: 2 }),
  ).toMatchObject({
    answer: { approved: true },
  });
  expect(readUtterance(approval, 'approve', { typed: false, approvals: 1 })).toMatchObject({
    answer: { approved: true },
  });
  expect(readUtterance(approval, 'no', { typed: false, approvals: 2 })).toMatchObject({
    answer: { approved: false },
  });
  expect(readUtterance(approval, 'wait', { typed: false, approvals: 2 })).toEqual({
    to: 'hold',
    forMs: 30_000,
  });
  expect(readUtterance(rides, 'economy', { typed: false, approvals: 2 })).toMatchObject({
    to: 'question',
  });
});

test('passes an unrelated utterance to the lead agent, and postpones the question if asked to', () => {
  expect(readUtterance(rides, 'what time is it?', { typed: false })).toEqual(toLead);
  expect(readUtterance(rides, 'hang on a second', { typed: false })).toEqual({
    to: 'hold',
    forMs: 30_000,
  });
});
