// The replies that a lead agent owes the user, both for models that answer on their own and for models that do not.

import { describe, expect, test } from 'vitest';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { TurnChart } from '../../../src/actors/session/lead/turn-chart.ts';
import { replyIsExpected } from '../../../src/machines/index.ts';
import { sessionIn, turnOf } from '../../support/turn.ts';

function repliesOf(answersWords: boolean, answersResults = answersWords) {
  const environment = simulatedEnvironment();
  const world = { isBusy: false, overdue: 0, taken: 0, unanswered: 0 };
  const chart = new TurnChart(
    sessionIn(environment),
    { ...turnOf({ answersWords }), answersResults },
    () => !world.isBusy,
    {
      overdue: () => (world.overdue += 1),
      reply: () => (world.taken += 1),
      unanswered: () => (world.unanswered += 1),
    },
  );
  const isWanted = (): boolean => !chart.snapshot.matches({ reply: 'none' });
  const replies = {
    get isExpected() {
      return replyIsExpected(chart.snapshot);
    },
    /** Returns whether a reply is still expected. */
    toWords(typed: boolean) {
      chart.send({ type: 'reply.toWords', typed });
      return isWanted();
    },
    /** `before`: the responses in progress when the result arrives. */
    toResult(before: readonly string[] = []) {
      for (const responseId of before) chart.send({ type: 'response.began', responseId });
      chart.send({ type: 'call.answered', callId: 'c1', respond: true });
      for (const responseId of before) chart.send({ type: 'response.ended', responseId });
    },
    given: (responseId: string | null = null) => chart.send({ type: 'model.spoke', responseId }),
    /**
     * Requests the reply that is due. Its response ends at once and `says` something or nothing. Returns false if no
     * reply is due.
     */
    take({ says = true, done = false } = {}) {
      const { taken } = world;
      chart.send({ type: 'choose' });
      const isTaken = world.taken > taken;
      if (isTaken && says) chart.send({ type: 'model.spoke', responseId: null });
      chart.send({ type: 'request.ended', continuesAs: null, done });
      return isTaken;
    },
    /** Requests the reply that is due and cancels it before its first word because the user makes a sound. */
    takeAndCallOff(utteranceId: string) {
      chart.send({ type: 'choose' });
      chart.send({ type: 'user.began', utteranceId });
      chart.send({ type: 'response.cancelled', responseId: null });
      chart.send({ type: 'request.ended', continuesAs: null });
    },
    coughed(utteranceId: string) {
      chart.send({ type: 'user.ended', utteranceId });
      chart.send({ type: 'user.understood', utteranceId });
    },
    cameToNothing: () => chart.send({ type: 'reply.failed' }),
    userSpeaks: () => chart.send({ type: 'user.spoke' }),
    moved: (wasReplying: boolean) => chart.send({ type: 'reply.moved', wasReplying }),
    cutOff: () => chart.send({ type: 'reply.cutOff' }),
    resume() {
      chart.send({ type: 'urgent.over' });
      return isWanted();
    },
    ask: () => chart.send({ type: 'reply.wanted' }),
    stop: () => chart.send({ type: 'reply.forgotten' }),
  };
  return { environment, world, replies };
}

describe('REPLIES-1: expected replies', () => {
  test('each cause one request to a model that speaks when asked', () => {
    const { replies } = repliesOf(false);
    expect(replies.toWords(false)).toBe(true);
    expect([replies.take(), replies.take()]).toEqual([true, false]);
    replies.toResult();
    expect(replies.take()).toBe(true);
    // A reply that was spoken in part is not requested again.
    replies.cameToNothing();
    expect(replies.isExpected).toBe(false);
  });

  test('cause a request to a model that responds on its own, but only after a long silence', async () => {
    const { replies, environment, world } = repliesOf(true);
    replies.toWords(false);
    expect(replies.take()).toBe(false);
    expect(replies.isExpected).toBe(true);
    await environment.advance(5000);
    expect(world.overdue).toBe(1);
    expect(replies.take()).toBe(true);
    expect(replies.isExpected).toBe(false);
  });

  test('suspend their timeout while either party is speaking or working', async () => {
    const { replies, environment, world } = repliesOf(true);
    world.isBusy = true;
    replies.toResult();
    await environment.advance(20_000);
    expect(world.overdue).toBe(0);
    replies.given();
    expect(environment.pendingTimers).toBe(0);
  });

  test('REPLIES-2: count the next reply as the answer to a result, not the one in progress', async () => {
    const { replies, environment, world } = repliesOf(true);
    world.isBusy = true;
    replies.toResult(['before']);
    await environment.advance(6000);
    replies.given('before');
    expect(replies.isExpected).toBe(true);
    world.isBusy = false;
    await environment.advance(5000);
    expect([world.overdue, replies.take()]).toEqual([1, true]);
    replies.toResult(['before']);
    replies.given('after');
    expect(replies.isExpected).toBe(false);
  });

  test('cause an immediate request for typed text, which the model does not answer on its own', () => {
    const { replies } = repliesOf(true);
    replies.given();
    expect(replies.toWords(true)).toBe(true);
    replies.given();
    expect(replies.take()).toBe(true);
  });

  test('cause one reminder if the model spoke along with its call but not about the result', async () => {
    const { replies, environment, world } = repliesOf(true);
    replies.toWords(false);
    replies.given();
    replies.toResult();
    await environment.advance(5000);
    expect(replies.take({ says: false, done: true })).toBe(true);
    expect(replies.isExpected).toBe(false);
    expect([world.overdue, world.unanswered, environment.pendingTimers]).toEqual([1, 0, 0]);
    // The model has not answered the next utterance.
    replies.userSpeaks();
    replies.toWords(false);
    await environment.advance(5000);
    expect(replies.take({ says: false, done: true })).toBe(true);
    expect(replies.isExpected).toBe(true);
  });

  test('cause a limited number of requests to a model that remains silent', async () => {
    const { replies, environment } = repliesOf(true);
    replies.toWords(false);
    let asked = 0;
    for (let round = 0; round < 10; round += 1) {
      await environment.advance(5000);
      if (!replies.take({ says: false })) continue;
      asked += 1;
      replies.cameToNothing();
    }
    expect(asked).toBe(3);
  });

  test('cause two more requests after empty replies, and then one report (TURN-7)', () => {
    const { replies, world } = repliesOf(false);
    replies.toWords(false);
    expect([1, 2, 3, 4].map(() => replies.take({ says: false }))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(world.unanswered).toBe(1);
    replies.toWords(false);
    expect([replies.take({ says: false }), replies.take()]).toEqual([true, true]);
    expect(world.unanswered).toBe(1);
  });

  test('remain due if a cough cancels them before the first word (TURN-7)', () => {
    const { replies, world } = repliesOf(false);
    replies.toWords(false);
    replies.takeAndCallOff('u2');
    expect(replies.take()).toBe(false);
    replies.coughed('u2');
    expect([replies.take(), world.taken, world.unanswered]).toEqual([true, 2, 0]);
  });
});

test('REPLIES-3: end for an utterance that has been answered but not for a later one', () => {
  const { replies } = repliesOf(true);
  replies.userSpeaks();
  replies.given();
  expect(replies.toWords(false)).toBe(false);
  replies.userSpeaks();
  expect(replies.toWords(false)).toBe(true);
});

test('cause a request on a new connection if the model was expected to respond on its own', () => {
  const { replies, environment } = repliesOf(true);
  replies.toWords(false);
  replies.moved(false);
  expect(replies.take()).toBe(true);
  replies.moved(false);
  expect(replies.take()).toBe(false);
  replies.moved(true);
  expect(replies.take()).toBe(true);
  expect(environment.pendingTimers).toBe(0);
});

test('repeat if cut off, unless the user has said something else', () => {
  const { replies } = repliesOf(false);
  replies.cutOff();
  expect([replies.resume(), replies.take(), replies.resume()]).toEqual([true, true, false]);
  replies.cutOff();
  replies.toWords(false);
  replies.take();
  expect(replies.resume()).toBe(false);
});

test('end after a stop', () => {
  const { replies, environment } = repliesOf(true);
  replies.toWords(false);
  replies.ask();
  replies.stop();
  expect(replies.take()).toBe(false);
  expect(environment.pendingTimers).toBe(0);
});
