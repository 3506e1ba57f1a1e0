// A ride by voice, with a voice model that the test controls: delegation, a spoken question, an answer by voice or by
// button, barge-in, detach, and reconnect.

import { describe, expect, test } from 'vitest';
import { VoiceSession } from '../../src/voice-session.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { rideByVoice } from '../support/ride.ts';

async function ride() {
  const errors: unknown[] = [];
  const opened = await rideByVoice({ onError: (error) => errors.push(error) });
  const { environment, model, play } = opened;
  /** Plays until the question has been requested and the lead agent is silent again. */
  const untilAsked = async (): Promise<void> => {
    model().utterance('book me a ride to the airport');
    await environment.settle();
    model().call({ callId: 'call_1', name: 'book_ride', arguments: '{"destination":"airport"}' });
    await environment.settle();
    await play(model().speak('I am on it.'));
    await environment.advance(400);
  };
  return { ...opened, errors, untilAsked };
}

describe('a ride by voice alone', () => {
  test('asks, accepts the answer, books and delivers, without repeating anything', async () => {
    const { environment, session, model, play, state, untilAsked, errors } = await ride();
    await untilAsked();
    expect(model().openRequests[0]?.about).toContain('Economy or Premium?');
    await play(model().speak('Economy or Premium?'));
    expect(state().questions[0]).toMatchObject({ state: 'open' });

    const answer = model().utterance('economy, please');
    await environment.settle();
    // The answer is for the subagent, so it is removed from the lead model's conversation and the model gets no
    // request.
    expect(
      model()
        .of('item.delete')
        .map(({ itemId }) => itemId),
    ).toEqual([answer]);
    expect(state().questions[0]).toMatchObject({ state: 'answered', answer: 'Economy' });

    await environment.advance(400);
    expect(model().openRequests[0]?.about).toContain('Your economy ride is booked.');
    await play(model().speak('Your economy ride is booked.'));
    await environment.advance(400);
    expect(state().deliveries.find(({ kind }) => kind === 'result')).toMatchObject({
      state: 'delivered',
      grade: 'played',
    });
    await environment.advance(600_000);
    expect(model().openRequests).toEqual([]);
    expect(errors).toEqual([]);
    const closed = session.close();
    await environment.advance(10_000);
    await closed;
    expect(environment.pendingTimers).toBe(0);
  });

  test('P4: delivers an interrupted result once more', async () => {
    const { environment, model, play, state, untilAsked } = await ride();
    await untilAsked();
    await play(model().speak('Economy or Premium?'));
    model().utterance('premium');
    await environment.settle();
    await environment.advance(400);
    const first = model().begin('Your premium ride is booked.', 2000);
    await play(first.itemId, 500);
    model().speechStarted('barge');
    await environment.settle();
    await play(first.itemId, 520);
    // The speech is longer than a backchannel. The model remembers the words that were heard.
    await environment.advance(2000);
    expect(model().of('response.cancel')).toHaveLength(1);
    first.end('cancelled');
    expect(model().of('playout.truncate').at(-1)).toMatchObject({
      itemId: first.itemId,
      playedMs: 520,
    });
    expect(state().deliveries.find(({ kind }) => kind === 'result')).toMatchObject({
      state: 'pending',
    });
    model().speechEnded('barge', 'hold on a second, what time is it?');
    await environment.settle();
    await play(model().speak('It is noon.'));
    await environment.advance(400);
    await play(model().speak('As I said, your premium ride is booked.'));
    expect(state().deliveries.find(({ kind }) => kind === 'result')).toMatchObject({
      state: 'delivered',
      attempts: 2,
    });
    await environment.advance(600_000);
    expect(model().openRequests).toEqual([]);
  });

  test('P3: does not accept an utterance that preceded the question as its answer', async () => {
    const { environment, model, state, untilAsked } = await ride();
    await untilAsked();
    // The question is offered, but no word of it has been played.
    const question = model().begin('Economy or Premium?', 1000);
    model().utterance('economy would be nice some day');
    await environment.settle();
    question.end('cancelled');
    await environment.settle();
    expect(state().questions[0]?.state).toBe('presenting');
    expect(model().openRequests).toHaveLength(1);
  });

  test('accepts a button press once the question is shown, and refuses a second answer', async () => {
    const { environment, session, untilAsked, state, model, play } = await ride();
    await untilAsked();
    const requestId = state().questions[0]?.requestId ?? '';
    const tooEarly = session.answer(requestId, { optionId: 'economy' });
    await environment.settle();
    expect(await tooEarly).toEqual({ accepted: false, reason: 'not_presented' });
    session.questionShown(requestId);
    const wrong = session.answer(requestId, { optionId: 'helicopter' });
    const first = session.answer(requestId, { optionId: 'premium' });
    const second = session.answer(requestId, { optionId: 'economy' });
    await environment.settle();
    expect(await wrong).toEqual({ accepted: false, reason: 'invalid_option' });
    expect(await first).toEqual({ accepted: true });
    expect(await second).toEqual({ accepted: false, reason: 'over' });
    // The question is no longer spoken.
    await environment.settle();
    expect(model().of('response.cancel')).toHaveLength(1);
    model().begin('Economy or', 0).end('cancelled');
    await environment.advance(400);
    await play(model().speak('Your premium ride is booked.'));
    expect(state().subagents[0]).toMatchObject({ state: 'completed' });
  });

  test('parks a question when the client detaches and asks again under the original id', async () => {
    const { environment, session, detach, untilAsked, state, model, play } = await ride();
    await untilAsked();
    await play(model().speak('Economy or Premium?'));
    const before = state().questions[0];
    detach();
    await environment.advance(600_000);
    expect(state().questions[0]).toMatchObject({ state: 'parked', requestId: before?.requestId });
    session.attach();
    await environment.advance(400);
    await play(model().speak('Economy or Premium?'));
    expect(state().questions[0]).toMatchObject({ state: 'open', requestId: before?.requestId });
    model().utterance('the first one');
    await environment.settle();
    expect(state().questions[0]).toMatchObject({ state: 'answered', answer: 'Economy' });
  });

  test('passes the conversation to a new connection and asks again if the old one is lost mid-question', async () => {
    const { environment, transport, untilAsked, state, model, play } = await ride();
    await untilAsked();
    const question = model().begin('Economy or Premium?', 1000);
    model().drop();
    // The audio that has been received continues to play.
    await play(question.itemId);
    await environment.settle();
    expect(state().connection).toBe('reconnecting');
    await environment.advance(1000);
    expect(transport.connections).toHaveLength(2);
    expect(state().connection).toBe('active');
    expect(
      model()
        .of('tool.recall')
        .map(({ callId }) => callId),
    ).toEqual(['call_1']);
    await environment.advance(400);
    await play(model().speak('Economy or Premium?'));
    model().utterance('economy');
    await environment.advance(400);
    expect(model().openRequests[0]?.about).toContain('Your economy ride is booked.');
  });

  test('interrupts for an urgent notice and repeats the question that it interrupted', async () => {
    const { environment, session, model, play, state, untilAsked } = await ride();
    await untilAsked();
    const question = model().begin('Economy or Premium?', 3000);
    await play(question.itemId, 200);
    session.notifyBackground('Order 7 was lost', { priority: 'urgent', label: 'ORDER' });
    await environment.settle();
    expect(model().of('response.cancel')).toHaveLength(1);
    question.end('cancelled');
    await play(question.itemId, 220);
    await environment.advance(400);
    expect(model().openRequests[0]?.about).toContain('Order 7 was lost');
    await play(model().speak('Order 7 was lost.'));
    await environment.advance(400);
    expect(model().openRequests[0]?.about).toContain('Economy or Premium?');
    expect(state().questions[0]?.state).toBe('presenting');
  });
});

describe('a model that falls silent', () => {
  test('ends its response and reports the reason without ending the session', async () => {
    const { environment, model, play, state, untilAsked, errors } = await ride();
    await untilAsked();
    // The lead agent starts to ask and never finishes.
    await play(model().begin('Economy or', 400).itemId, 200);
    await environment.advance(31_000);
    expect(errors.map(String)).toContainEqual(expect.stringContaining('no activity'));
    await environment.advance(5000);
    await play(model().speak('Economy or Premium?'));
    expect(state().questions[0]).toMatchObject({ state: 'open' });
  });
});

describe('a greeting', () => {
  test('waits for a client and is spoken once', async () => {
    const environment = simulatedEnvironment();
    const transport = new FakeTransport();
    const session = new VoiceSession({
      environment,
      transport,
      agents: [{ name: 'lead', instructions: 'You talk.', greeting: 'Greet the user.' }],
    });
    await session.start();
    await environment.advance(10_000);
    expect(transport.current.openRequests).toEqual([]);
    const leave = session.attach();
    await environment.settle();
    expect(transport.current.openRequests).toHaveLength(1);
    session.playout.next({ itemId: transport.current.speak('Hello!'), playedMs: 1000 });
    leave();
    session.attach();
    await environment.advance(10_000);
    expect(transport.current.openRequests).toEqual([]);
  });
});
