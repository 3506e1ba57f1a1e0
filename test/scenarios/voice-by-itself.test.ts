// A voice model that answers speech unprompted: the requests that it still receives, what the user may hear of its
// speech during a subagent's question, and its memory.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { replaySession } from '../../src/entries/replay.ts';
import { createRuntime, defineTool, memoryJournal } from '../../src/index.ts';
import { whyWaiting } from '../../src/entries/machines.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import type { TransportCapabilities } from '../../src/voice/connection/transport.ts';
import { BY_ITSELF, FakeTransport } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const report = { script: () => say('Sales are up.') };
const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];
const ride = {
  script: steps(calls(['ask_user', { question: 'Economy or Premium?', options }]), ({ results }) =>
    say(`Got ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};

type Talk = ReturnType<typeof voiceTalk>;

/** Starts a conversation with a log of the client's audio. */
async function talkWith(
  talkOptions: VoiceTalkOptions = {},
  capabilities: Partial<TransportCapabilities> = {},
) {
  const transport = new FakeTransport({ ...BY_ITSELF, ...capabilities });
  const talk = voiceTalk({ ...talkOptions, transport });
  const heard: string[] = [];
  talk.session.audioOut.subscribe(({ itemId }) => heard.push(itemId ?? ''));
  await talk.start();
  return {
    ...talk,
    heard,
    told: () =>
      talk
        .model()
        .of('message.add')
        .map(({ text }) => text),
    floor: () => talk.state().floor,
  };
}

/** Plays until the model has called `ride` and the question has been heard. */
async function askedForRide(talk: Talk): Promise<void> {
  const { model, environment, say: utter, play, pause, speak } = talk;
  await utter('book a ride');
  const booking = model().beginByItself('', 0);
  const { responseId } = booking;
  model().events.next({
    type: 'tool.called',
    callId: 'call_1',
    name: 'ride',
    arguments: '{}',
    responseId,
  });
  booking.end();
  await environment.settle();
  await play(model().speakByItself('On it.'));
  await pause();
  await speak('Economy or Premium?');
  await environment.advance(100);
}

describe('requests to a model that answers on its own', () => {
  test('REPLIES-1: remain unsent if the model replies in time', async () => {
    const { say: utter, model, play, asked, floor, environment, session, pause } = await talkWith();
    await utter('hello');
    expect(asked()).toBeNull();
    expect(floor()).toBe('model');
    session.notifyBackground('News.');
    await environment.advance(2000);
    expect(asked()).toBeNull();
    const reply = model().beginByItself('Hello!', 1000);
    await environment.settle();
    reply.end();
    await pause();
    expect(asked()).toBeNull();
    await play(reply.itemId);
    expect(floor()).toBe('nobody');
    await pause();
    expect(asked()).toContain('News.');
  });

  test('REPLIES-1: ask a silent model for a reply a limited number of times', async () => {
    const { say: utter, model, asked, environment, floor } = await talkWith();
    await utter('hello?');
    await environment.advance(4900);
    expect(asked()).toBeNull();
    for (let round = 0; round < 3; round += 1) {
      await environment.advance(5000);
      expect(asked()).toBe('reply');
      model().lapse();
      await environment.settle();
    }
    await environment.advance(60_000);
    expect(asked()).toBeNull();
    expect(floor()).toBe('nobody');
  });

  test('REPLIES-1: repeat a failed response a few times and show when the next attempt is due', async () => {
    const journal = memoryJournal();
    const environment = simulatedEnvironment();
    const {
      say: utter,
      model,
      session,
    } = await talkWith({
      runtime: createRuntime({ environment, journal }),
      environment,
    });
    const wait = (laterMs = 0) => {
      const machines = [...replaySession(journal.read({ scope: session.id }))].at(-1)?.machines;
      return machines
        ? whyWaiting({ ...machines, at: machines.at + laterMs })[0]?.sentence
        : undefined;
    };
    const failed = async (responseId: string, responseKey: string | null): Promise<void> => {
      model().events.next({
        type: 'response.ended',
        responseId,
        responseKey,
        status: 'failed',
        reason: 'rate_limit_exceeded',
        audio: [],
      });
      await environment.settle();
    };
    await utter('hello?');
    await failed(model().beginByItself('', 0).responseId, null);
    expect(wait()).toMatch(
      /^gate closed: the lead agent's model call failed \(MODEL_ERROR\): attempt 2 of 3 in 5\.0 s$/,
    );
    expect(wait(5000)).toBe(
      'gate closed: the lead agent has its turn for 5.0 s; attempt 2 of 3, after its model call failed (MODEL_ERROR)',
    );
    for (let round = 0; round < 3; round += 1) {
      await environment.advance(5000);
      const request = model().openRequests.at(-1);
      await failed(`failed_${round}`, request?.responseKey ?? null);
    }
    expect(wait()).toContain('and is not made again: it is for the user to say something');
    await session.close();
  });

  test('REPLIES-2: ignore late transcripts to which the model has already replied', async () => {
    const { model, play, asked, environment, events, floor } = await talkWith();
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    const item = model().speakByItself('It is noon.');
    await play(item);
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'what time is it?',
      final: true,
    });
    await environment.advance(10_000);
    expect(asked()).toBeNull();
    expect(floor()).toBe('nobody');
    expect(events.filter(({ type }) => type === 'turn.ended')).toHaveLength(1);
  });

  test('ask for a reply to typed text, which the model does not hear', async () => {
    const { session, environment, model, asked } = await talkWith();
    await session.sendText('hello');
    await environment.settle();
    expect(model().of('message.add')).toMatchObject([{ role: 'user', text: 'hello' }]);
    expect(asked()).toBe('reply');
  });

  const clock = defineTool({
    name: 'clock',
    description: 'Tells the time',
    parameters: z.object({}),
    execute: () => 'noon',
  });
  const call = (talk: Pick<Talk, 'model'>): void => {
    const response = talk.model().beginByItself('', 0);
    const { responseId } = response;
    talk.model().events.next({
      type: 'tool.called',
      callId: 'c',
      name: 'clock',
      arguments: '{}',
      responseId,
    });
    response.end();
  };

  test("wait for the model's own reply to a tool result before they ask for one", async () => {
    const talk = await talkWith({ tools: [clock] });
    const { say: utter, model, environment, asked, floor } = talk;
    await utter('what time is it?');
    call(talk);
    await environment.settle();
    expect(model().of('tool.answer')).toEqual([
      { type: 'tool.answer', callId: 'c', output: 'noon' },
    ]);
    expect(asked()).toBeNull();
    expect(floor()).toBe('model');
    await environment.advance(5000);
    expect(asked()).toBe('reply');
  });

  test('ask for a reply to silent results if the model schedules its tool results', async () => {
    const talk = await talkWith({ tools: [clock] }, { schedulesToolResults: true });
    await talk.say('what time is it?');
    call(talk);
    await talk.environment.settle();
    expect(talk.model().of('tool.answer')).toMatchObject([{ output: 'noon', silent: true }]);
    expect(talk.asked()).toBe('reply');
  });

  test("RESPONSES-1: repeat a delivery that overlapped with the model's own response", async () => {
    const { session, model, play, pause, asked, speak, state } = await talkWith();
    session.notifyBackground('News.');
    await pause();
    expect(asked()).toContain('News.');
    const own = model().beginByItself('By the way …', 1000);
    own.end();
    expect(state().deliveries[0]).toMatchObject({ state: 'pending', attempts: 1 });
    model().lapse();
    await pause();
    // The question is not asked while the user is hearing the speech.
    expect(asked()).toBeNull();
    await play(own.itemId);
    await pause();
    await speak('News!');
    expect(state().deliveries[0]).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('RESPONSES-1: end as withdrawn if the model starts its own response first', async () => {
    const { session, model, pause } = await talkWith();
    session.notifyBackground('News.');
    await pause();
    const [request] = model().of('response.request');
    expect(model().of('response.withdraw')).toEqual([]);
    model().beginByItself('By the way …', 1000);
    expect(model().of('response.withdraw')).toMatchObject([{ responseKey: request?.responseKey }]);
  });

  test('RESPONSES-1: end as withdrawn after a dismissal if responses cannot be cancelled', async () => {
    const { session, model, state, pause, environment } = await talkWith(
      {},
      { cancelsResponses: false },
    );
    session.notifyBackground('News.');
    await pause();
    const [request] = model().of('response.request');
    session.dismiss(state().deliveries[0]?.deliveryId ?? '');
    await environment.settle();
    expect(model().of('response.withdraw')).toMatchObject([{ responseKey: request?.responseKey }]);
    expect(model().of('response.cancel')).toEqual([]);
  });

  test('RESPONSES-1: count a delivery as interrupted if its key is cancelled while its speech continues', async () => {
    const { session, model, play, pause, state, heard, asked, speak } = await talkWith();
    session.notifyBackground('News.');
    await pause();
    const telling = model().begin('News!', 1000);
    const [request] = model().of('response.request');
    model().events.next({
      type: 'response.ended',
      responseId: 'other',
      responseKey: request?.responseKey ?? '',
      status: 'cancelled',
      reason: 'somebody spoke',
      audio: [],
    });
    expect(state().deliveries[0]).toMatchObject({ state: 'pending' });
    expect(state().floor).toBe('model');
    model().events.next({
      type: 'response.ended',
      responseId: telling.responseId,
      responseKey: null,
      status: 'completed',
      reason: null,
      audio: [{ itemId: telling.itemId, durationMs: 1000 }],
    });
    await play(telling.itemId);
    expect(heard).toEqual([telling.itemId]);
    expect(state().deliveries[0]).toMatchObject({ state: 'pending', attempts: 1 });
    await pause();
    expect(asked()).toContain('News.');
    await speak('News, again.');
    expect(state().deliveries[0]).toMatchObject({ state: 'delivered' });
  });

  test("RESPONSES-6: cancel the model's own response if it neither continues nor ends", async () => {
    const { model, environment, errors, floor } = await talkWith();
    model().beginByItself('Well', 0);
    await environment.advance(30_000);
    expect(errors).toMatchObject([{ error: { code: 'RESPONSE_TIMEOUT' } }]);
    expect(model().of('response.cancel')).toHaveLength(1);
    await environment.advance(3000);
    expect(floor()).toBe('nobody');
  });

  test('survive a lost connection and are sent on the next one', async () => {
    const { say: utter, model, environment, asked } = await talkWith();
    await utter('hello');
    model().drop();
    await environment.advance(1000);
    expect(asked()).toBe('reply');
  });
});

describe('a model that is working', () => {
  test('MODEL-WORK-1: counts as busy, so that it receives no delivery and no request', async () => {
    const { say: utter, session, model, environment, asked, floor } = await talkWith();
    await utter('plan my week');
    model().events.next({ type: 'model.changed', status: 'working' });
    session.notifyBackground('News.');
    await environment.advance(20_000);
    expect(asked()).toBeNull();
    expect(floor()).toBe('model');
    model().events.next({ type: 'model.changed', status: 'idle' });
    await environment.advance(5000);
    expect(asked()).toBe('reply');
  });

  test('MODEL-WORK-2: counts as idle again after a long silence', async () => {
    const { session, model, environment, asked, errors } = await talkWith();
    model().events.next({ type: 'model.changed', status: 'working' });
    session.notifyBackground('News.');
    await environment.advance(29_000);
    expect(asked()).toBeNull();
    await environment.advance(2000);
    expect(errors).toMatchObject([{ error: { code: 'RESPONSE_TIMEOUT' } }]);
    expect(asked()).toContain('News.');
  });
});

describe('TURNS-7: an open question', () => {
  test("suppresses the model's own reply to the user's answer", async () => {
    const talk = await talkWith({ subagents: { ride } });
    await askedForRide(talk);
    const { model, environment, heard, question, told, events } = talk;
    heard.length = 0;
    model().speechStarted('u1');
    await environment.advance(500);
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    const own = model().beginByItself('Premium is booked!', 1000);
    await environment.advance(200);
    expect(heard).toEqual([]);
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'premium',
      final: true,
    });
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered', answer: 'Premium' });
    expect(model().of('response.cancel')).toHaveLength(1);
    own.end('cancelled');
    await environment.settle();
    expect(heard).toEqual([]);
    expect(told().slice(-3)).toEqual([
      expect.stringContaining('was not played'),
      expect.stringContaining('answered a subagent'),
      expect.stringContaining('"subagent":"ride"'),
    ]);
    expect(JSON.stringify(events)).not.toContain('Premium is booked!');
  });

  test('HELD-SPEECH-2: suppresses late speech and its calls after an answer was recognised', async () => {
    const talk = await talkWith({ subagents: { ride, report } });
    await askedForRide(talk);
    const { model, environment, heard, say: utter, question, state, speak, pause } = talk;
    heard.length = 0;
    await utter('premium');
    expect(question()?.state).toBe('answered');
    await environment.advance(100);
    const own = model().beginByItself('Premium!', 1000);
    const { responseId } = own;
    model().events.next({
      type: 'tool.called',
      callId: 'late',
      name: 'report',
      arguments: '{}',
      responseId,
    });
    own.end();
    await environment.settle();
    expect(heard).toEqual([]);
    expect(state().subagents).toHaveLength(1);
    expect(model().of('tool.answer').at(-1)).toMatchObject({ callId: 'late', silent: true });
    // The subagent's finding is still reported.
    await pause();
    await speak('You ride Premium.');
    expect(state().deliveries.find(({ kind }) => kind === 'result')?.state).toBe('delivered');
  });

  test('HELD-SPEECH-1: releases held replies in order once the utterance is passed to the lead agent', async () => {
    const talk = await talkWith({ subagents: { ride } });
    await askedForRide(talk);
    const { model, environment, heard, asked, question, state, play } = talk;
    heard.length = 0;
    model().speechStarted('u1');
    await environment.advance(500);
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    const own = model().beginByItself('It is noon.', 500);
    own.end();
    const shown = (): boolean =>
      state().transcript.some(({ text }: { text: string }) => text === 'It is noon.');
    await environment.settle();
    expect(heard).toEqual([]);
    expect(shown()).toBe(false);
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'what time is it?',
      final: true,
    });
    await environment.settle();
    expect(heard).toEqual([own.itemId]);
    expect(shown()).toBe(true);
    await play(own.itemId, 500);
    await environment.advance(10_000);
    expect(asked()).toBeNull();
    expect(question()?.state).toBe('open');
  });

  test("HELD-SPEECH-3: releases the model's reply if the transcript never arrives", async () => {
    const talk = await talkWith({ subagents: { ride } });
    await askedForRide(talk);
    const { model, environment, heard } = talk;
    heard.length = 0;
    model().speechStarted('u1');
    await environment.advance(500);
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    const own = model().beginByItself('Pardon?', 500);
    await environment.advance(4900);
    expect(heard).toEqual([]);
    await environment.advance(200);
    expect(heard).toEqual([own.itemId]);
  });

  test("HELD-SPEECH-3: holds the model's reply even before the user's speech has been inferred", async () => {
    const talk = await talkWith({ subagents: { ride } }, { utterances: 'inferred' });
    await askedForRide(talk);
    const { model, environment, heard, question } = talk;
    heard.length = 0;
    await environment.advance(1000);
    const own = model().beginByItself('Premium!', 500);
    await environment.advance(300);
    expect(heard).toEqual([]);
    // The user started before the model spoke, so no speech was interrupted.
    for (let sent = 0; sent < 5; sent += 1)
      talk.session.audioIn.next({ samples: new Int16Array(2400), sampleRateHz: 24_000 });
    model().speechStarted('u1');
    expect(model().of('response.cancel')).toEqual([]);
    model().speechEnded('u1', 'premium');
    await environment.settle();
    expect(question()).toMatchObject({ state: 'answered' });
    own.end('cancelled');
    await environment.settle();
    expect(heard).toEqual([]);
  });

  test('suppresses replies in pauses while the user keeps talking', async () => {
    const talk = await talkWith({ subagents: { ride } });
    await askedForRide(talk);
    const { model, environment, heard, play } = talk;
    heard.length = 0;
    model().speechStarted('u1');
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    const first = model().beginByItself('Well …', 500);
    await environment.advance(100);
    model().speechStarted('u2');
    first.end('cancelled');
    model().speechEnded('u2', 'what time is it?');
    model().events.next({
      type: 'utterance.transcribed',
      utteranceId: 'u1',
      text: 'tell me',
      final: true,
    });
    await environment.settle();
    expect(heard).toEqual([]);
    const second = model().speakByItself('Noon.');
    await play(second);
    expect(heard).toEqual([second]);
  });
});

describe("the model's memory", () => {
  test('MODEL-MEMORY-1: receives a note of what was heard if its audio cannot be truncated', async () => {
    const { say: utter, model, play, environment, told } = await talkWith();
    await utter('tell me a story');
    const story = model().beginByItself('Once upon a time there was a king.', 4000);
    await play(story.itemId, 2000);
    model().speechStarted('u2');
    // The model treats the audio as an interruption.
    story.end('cancelled');
    await environment.advance(300);
    expect(model().of('playout.truncate')).toEqual([]);
    expect(told()).toEqual([
      expect.stringContaining('heard only what is quoted'),
      expect.stringContaining('{"heard":"Once upon a time"}'),
    ]);
  });

  test('MODEL-MEMORY-2: receives a note only with the next request if the note alone would cause a reply', async () => {
    const {
      session,
      model,
      environment,
      say: utter,
    } = await talkWith({}, { silentContext: false });
    session.setDirective('tone', 'formal');
    await environment.settle();
    await utter('tell me a story');
    const story = model().beginByItself('Once upon a time there was a king.', 4000);
    await environment.settle();
    model().speechStarted('u2');
    await environment.advance(300);
    story.end('cancelled');
    expect(model().of('message.add')).toEqual([]);
    // This was a noise, so the session asks the model to repeat the interrupted words.
    model().speechEnded('u2', '');
    const types = () => model().commands.map(({ type }) => type);
    expect(types().slice(-3)).toEqual(['session.configure', 'message.add', 'response.request']);
  });
});

test('answers a call immediately if it cannot remain open, and delivers its result as a notice', async () => {
  const transport = new FakeTransport({ defersToolResults: false });
  const {
    start,
    say: utter,
    model,
    environment,
    speak,
    pause,
    asked,
  } = voiceTalk({
    transport,
    subagents: { report: { ...report, pending: null } },
  });
  await start();
  await utter('the report please');
  model().call({ callId: 'c1', name: 'report', arguments: '{}' });
  await environment.settle();
  expect(model().of('tool.answer')).toMatchObject([
    { callId: 'c1', output: expect.stringContaining('I am working on it') },
  ]);
  await speak('I am working on it.');
  await pause();
  expect(asked()).toContain('Sales are up.');
  expect(model().of('tool.answer')).toHaveLength(1);
});

test('leaves no timer or request behind after a close', async () => {
  const talk = await talkWith({ subagents: { ride } });
  await askedForRide(talk);
  const { model, environment, close } = talk;
  model().events.next({ type: 'model.changed', status: 'working' });
  model().speechStarted('u1');
  model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
  model().beginByItself('Well', 500);
  await environment.settle();
  await close();
  expect(environment.pendingTimers).toBe(0);
});
