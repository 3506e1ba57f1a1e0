// Commands to a session that is in a journal but runs in no process, and their effect in the next process.

import { expect, test } from 'vitest';
import { UnloadedSession } from '../../../src/actors/replay/unloaded-session.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import { CapacityError, type Journal } from '../../../src/index.ts';
import { textLife, world, type World } from '../../support/crashes.ts';
import { inMidQuestion, replayed, rideStory, wholeRide } from './support.ts';

/** Creates a world in which an earlier process left these entries. */
const leftBehind = (entries: readonly JournalEntry[]): World =>
  world({ inheritance: { entries, at: entries.at(-1)?.at ?? 0 } });

const rest = (of: World, id = 'ses') => {
  const { runtime } = of.begin();
  return UnloadedSession.claim(runtime.journal, id, of.environment);
};

async function goOn(of: World) {
  const talk = textLife(of, rideStory());
  await talk.start();
  await of.environment.settle();
  await of.environment.advance(60_000);
  const open = talk.state().questions.find(({ state }) => state === 'open');
  if (open) await talk.session.answer(open.requestId, { text: 'comfort' });
  await of.environment.advance(60_000);
  return talk;
}

const ride = (talk: Awaited<ReturnType<typeof goOn>>) =>
  talk.state().subagents.find(({ name }) => name === 'ride');

test('stores an answer that lets the next process book the ride', async () => {
  const { of, talk, question } = await inMidQuestion();
  talk.kill();
  const session = await rest(of);
  const receipt = await session.answer(question.requestId, { text: 'comfort' }, { by: 'ann' });
  expect(receipt).toEqual({ accepted: true, by: 'ann' });
  expect(session.view.questions).toMatchObject([{ state: 'answered' }]);
  const again = await session.answer(question.requestId, { text: 'coach' });
  expect(again).toMatchObject({ accepted: false });
  const next = await goOn(of);
  expect(ride(next)).toMatchObject({ state: 'completed' });
  expect(ride(next)?.outcome?.text).toContain('comfort');
  expect(ride(next)?.outcome?.text).not.toContain('coach');
});

test("UNLOADED-SESSION-1: returns receipts that match the next process's behaviour after any entry", async () => {
  const { of: whole, talk } = await wholeRide();
  talk.kill();
  const { entries } = whole;
  let answered = 0;
  let cancelled = 0;
  let heard = 0;
  for (let length = 1; length <= entries.length; length += 1) {
    const before = entries.slice(0, length);
    const { view } = replayed(before);
    const [question] = view.questions;
    const of = leftBehind(before);
    const writes = (type: string): number =>
      of.entries.slice(length).filter(({ event }) => event.type === type).length;
    const { requestId = 'sub_1.q1' } = question ?? {};
    const answer = await (await rest(of)).answer(requestId, { text: 'coach' });
    expect(writes('answer.given')).toBe(Number(answer.accepted));
    answered += Number(answer.accepted);
    const next = await goOn(of);
    if (answer.accepted) expect(ride(next)?.outcome?.text).toContain('coach');
    next.kill();

    const told = leftBehind(before);
    const session = await rest(told);
    const message = await session.message('sub_1', 'Take a window seat', { by: 'ann' });
    heard += Number(message.accepted);
    const reader = await goOn(told);
    const messages = told.entries.filter(({ event }) => event.type === 'subagent.message');
    expect(messages).toHaveLength(Number(message.accepted));
    if (message.accepted) expect(ride(reader)).toMatchObject({ state: 'completed' });
    reader.kill();

    const other = leftBehind(before);
    const receipt = await (await rest(other)).cancel('sub_1', 'no more', { by: 'ann' });
    cancelled += Number(receipt.accepted);
    const gone = await goOn(other);
    if (receipt.accepted) expect(ride(gone)).toMatchObject({ state: 'cancelled' });
    gone.kill();
  }
  expect(answered).toBeGreaterThan(2);
  expect(heard).toBeGreaterThan(10);
  expect(cancelled).toBeGreaterThan(10);
});

test('UNLOADED-SESSION-3: writes nothing for an invalid answer, an unknown id or an ended subagent', async () => {
  const { of, talk, question } = await inMidQuestion();
  talk.kill();
  const { length } = of.entries;
  const session = await rest(of);
  const { requestId } = question;
  expect(await session.answer(requestId, { optionId: 'none' })).toMatchObject({ accepted: false });
  await expect(session.answer(requestId, {})).rejects.toMatchObject({ code: 'INVALID_ANSWER' });
  expect(await session.answer('sub_9.q9', { text: 'x' })).toEqual({
    accepted: false,
    reason: 'unknown',
  });
  expect(await session.cancel('sub_9', 'x')).toEqual({ accepted: false, reason: 'unknown' });
  const ended = session.view.subagents.find(({ outcome }) => outcome !== null)?.id ?? '';
  expect(await session.message(ended, 'x')).toEqual({ accepted: false, reason: 'over' });
  await expect(session.cancel('sub_1', 'x', { by: '' })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  expect(of.entries).toHaveLength(length);
});

test('refuses a session that is unknown, closed or held by another process', async () => {
  const { of, talk } = await wholeRide();
  await expect(rest(of, 'ses_9')).rejects.toMatchObject({ code: 'UNKNOWN_SESSION' });
  await talk.close();
  await expect(rest(of)).rejects.toMatchObject({ code: 'UNKNOWN_SESSION' });
  const held: Journal = {
    append: () => expect.fail('wrote'),
    read: () => expect.fail('read'),
    claim: () => {
      throw new CapacityError('SCOPE_IN_USE', 'ses is in use by p1 at http://10.0.0.7');
    },
  };
  const claim = UnloadedSession.claim(held, 'ses', of.environment);
  await expect(claim).rejects.toMatchObject({ code: 'SCOPE_IN_USE' });
});

test('UNLOADED-SESSION-4: releases its claim, and makes only a hibernated session due immediately', async () => {
  const dueAfter = async (isAsleep: boolean) => {
    const { of, talk, question } = await inMidQuestion();
    if (isAsleep) expect(await talk.session.hibernate()).toBe(true);
    else talk.kill();
    const { runtime } = of.begin();
    const calls: string[] = [];
    const journal: Journal = {
      append: (entry) => runtime.journal.append(entry),
      read: (query) => runtime.journal.read(query),
      release: (scope) => void calls.push(`release ${scope}`),
      wakeTimes: {
        set: (scope, at) => void calls.push(`due ${scope} ${at === of.environment.clock.now()}`),
        earliest: () => [],
      },
    };
    const session = await UnloadedSession.claim(journal, 'ses', of.environment);
    const receipt = await session.answer(question.requestId, { text: 'comfort' });
    expect(receipt).toEqual({ accepted: true });
    await session.release();
    expect(ride(await goOn(of))?.outcome?.text).toContain('comfort');
    return calls;
  };
  expect(await dueAfter(true)).toEqual(['due ses true', 'release ses']);
  expect(await dueAfter(false)).toEqual(['release ses']);
});
