// The sound that the user hears while the lead agent is waiting for a tool. The sound is not speech.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, defineTool } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import type { AudioFrame } from '../../src/voice/audio/audio-frame.ts';
import { workingSound } from '../../src/voice/audio/working-sound.ts';
import { BY_ITSELF, DELEGATES, FakeTransport } from '../support/fake-transport.ts';
import { calls, never, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const options = [
  { id: 'economy', label: 'Economy' },
  { id: 'premium', label: 'Premium' },
];

/** Makes the lead agent call a tool and wait for its result. */
async function waiting(options: VoiceTalkOptions = {}) {
  let answer: (value: unknown) => void = () => {};
  const lookUp = defineTool({
    name: 'look_up',
    description: 'Looks it up',
    parameters: z.object({}),
    execute: () => new Promise((resolve) => (answer = resolve)),
  });
  const talk = voiceTalk({
    tools: [lookUp],
    thinkingSound: { loop: workingSound(), afterMs: 500 },
    ...options,
  });
  const sounds: AudioFrame[] = [];
  talk.session.audioOut.subscribe((frame) => sounds.push(frame));
  await talk.start();
  await talk.say('look it up');
  talk.model().call({ callId: 'call_1', name: 'look_up', arguments: '{}' });
  await talk.environment.settle();
  return {
    ...talk,
    sounds,
    answer: async (value: unknown) => {
      answer(value);
      await talk.environment.settle();
    },
    clears: () => talk.events.filter(({ type }) => type === 'playout.clear').length,
  };
}

describe('the thinking sound while a tool is running', () => {
  test('THINKING-SOUND-1, THINKING-SOUND-3: starts after a delay and is sent in real time', async () => {
    const { environment, sounds } = await waiting();
    await environment.advance(499);
    expect(sounds).toEqual([]);
    await environment.advance(1);
    expect(sounds).toHaveLength(2);
    await environment.advance(5000);
    expect(sounds).toHaveLength(52);
    // The sound repeats the loop.
    const heard = sounds.flatMap(({ samples }) => [...samples]);
    const { samples: loop } = workingSound();
    expect(heard.slice(0, loop.length)).toEqual([...loop]);
    expect(heard.slice(loop.length, 2 * loop.length)).toEqual([...loop]);
  });

  test('THINKING-SOUND-2: does not count as speech', async () => {
    const { environment, sounds, state, events, clears } = await waiting();
    const before = events.length;
    await environment.advance(3000);
    expect(sounds.every(({ itemId, responseId }) => !itemId && !responseId)).toBe(true);
    expect(events.slice(before)).toEqual([]);
    expect(state().floor).toBe('model');
    expect(clears()).toBe(0);
  });

  test('THINKING-SOUND-1: does not stop before the lead agent speaks', async () => {
    const { environment, sounds, answer, clears, asked, model, play, state } = await waiting();
    await environment.advance(1000);
    await answer('found it');
    expect(asked()).toBe('reply');
    await environment.advance(1000);
    expect(clears()).toBe(0);
    const count = sounds.length;
    const itemId = model().speak('I found it.');
    expect(clears()).toBe(1);
    await play(itemId);
    await environment.advance(5000);
    expect(sounds.slice(count).map((frame) => frame.itemId)).toEqual([itemId]);
    expect(state().transcript.at(-1)).not.toHaveProperty('interrupted');
    expect(clears()).toBe(1);
  });

  test('THINKING-SOUND-1: stops when the user speaks and then resumes', async () => {
    const { environment, sounds, model, clears, events } = await waiting();
    await environment.advance(1000);
    model().speechStarted('u2');
    expect(clears()).toBe(1);
    const count = sounds.length;
    await environment.advance(3000);
    expect(sounds).toHaveLength(count);
    model().speechEnded('u2', '');
    await environment.advance(500);
    expect(sounds.length).toBeGreaterThan(count);
    expect(events.filter(({ type }) => type === 'speech.interrupted')).toEqual([]);
  });

  test('THINKING-SOUND-1: does not play before a quick reply', async () => {
    const { environment, sounds, answer, model, clears } = await waiting();
    await environment.advance(200);
    await answer('found it');
    await environment.advance(299);
    const itemId = model().speak('I found it.');
    await environment.advance(5000);
    expect(sounds.map((frame) => frame.itemId)).toEqual([itemId]);
    expect(clears()).toBe(0);
  });

  test('THINKING-SOUND-1: plays while a model is slow to reply', async () => {
    const talk = voiceTalk({ thinkingSound: { loop: workingSound(), afterMs: 500 } });
    const sounds: AudioFrame[] = [];
    talk.session.audioOut.subscribe((frame) => sounds.push(frame));
    await talk.start();
    await talk.say('hello');
    await talk.environment.advance(499);
    expect(sounds).toEqual([]);
    await talk.environment.advance(1000);
    expect(sounds.length).toBeGreaterThan(5);
    const count = sounds.length;
    const itemId = talk.model().speak('Hello.');
    await talk.environment.advance(3000);
    expect(sounds.slice(count).map((frame) => frame.itemId)).toEqual([itemId]);
  });

  test('waits until earlier speech has been played', async () => {
    const { environment, sounds, model, play, say: utter } = await waiting();
    await environment.advance(100);
    const saying = model().beginByItself('Let me see.', 2000);
    saying.end();
    await environment.advance(1900);
    expect(sounds).toHaveLength(1);
    await play(saying.itemId, 2000);
    await environment.advance(500);
    expect(sounds.length).toBeGreaterThan(1);
    await utter('thanks');
  });
});

describe('silence', () => {
  test('does not play if the user is absent', async () => {
    const { environment, sounds, leave } = await waiting();
    await environment.advance(1000);
    leave();
    await environment.settle();
    const count = sounds.length;
    await environment.advance(5000);
    expect(sounds).toHaveLength(count);
  });

  test('does not play after the session has closed', async () => {
    const { environment, close } = await waiting();
    await environment.advance(1000);
    await close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('does not play while the connection is lost', async () => {
    const { environment, sounds, model, transport } = await waiting();
    await environment.advance(1000);
    transport.autoReady = false;
    model().drop();
    await environment.settle();
    const count = sounds.length;
    await environment.advance(3000);
    expect(sounds).toHaveLength(count);
  });

  test('does not play if none is configured', async () => {
    const { environment, sounds } = await waiting({ thinkingSound: undefined as never });
    await environment.advance(5000);
    expect(sounds).toEqual([]);
  });
});

test("has the model's sample rate", async () => {
  const { environment, sounds } = await waiting({
    transport: new FakeTransport({ outputSampleRateHz: 16_000 }),
  });
  await environment.advance(1000);
  expect(sounds[0]).toMatchObject({ sampleRateHz: 16_000 });
  expect(sounds[0]?.samples).toHaveLength(1600);
});

test('plays while a delegation is being processed', async () => {
  let answer: (step: { text: string }) => void = () => {};
  const slow = scriptedModel({
    otherwise: () => new Promise<{ text: string }>((resolve) => (answer = resolve)),
  });
  const talk = voiceTalk({
    transport: new FakeTransport(DELEGATES),
    delegationModel: slow,
    thinkingSound: { loop: workingSound(), afterMs: 500 },
  });
  const { environment, session, model, events, start, say: utter } = talk;
  const sounds: AudioFrame[] = [];
  session.audioOut.subscribe((frame) => sounds.push(frame));
  await start();
  await utter('do something');
  model().events.next({ type: 'delegation.created', delegationId: 'd1' });
  await environment.advance(600);
  expect(sounds).toHaveLength(3);
  answer({ text: 'Nothing can be done.' });
  await environment.settle();
  expect(model().of('delegation.answer')).toHaveLength(1);
  await environment.advance(1000);
  expect(sounds).toHaveLength(3);
  expect(events.filter(({ type }) => type === 'playout.clear')).toHaveLength(1);
});

test('THINKING-SOUND-1: plays while a model continues a suppressed response', async () => {
  const ride = {
    script: steps(calls(['ask_user', { question: 'Which ride?', options }]), () => never()),
    config: { interactive: true },
  };
  const talk = voiceTalk({
    transport: new FakeTransport({ ...BY_ITSELF, cancelsResponses: false }),
    subagents: { ride },
    thinkingSound: { loop: workingSound(), afterMs: 500 },
    acknowledgement: false,
  });
  const { environment, session, model, start } = talk;
  await start();
  await talk.say('a ride, please');
  const response = model().beginByItself('', 0);
  const { responseId } = response;
  const call = { callId: 'c', name: 'ride', arguments: '{}', responseId };
  model().events.next({ type: 'tool.called', ...call });
  response.end();
  await talk.pause();
  await talk.play(model().speakByItself('On it.'));
  await talk.pause();
  await talk.speak('Which ride?');
  expect(talk.state().questions).toMatchObject([{ state: 'open' }]);
  const sounds: AudioFrame[] = [];
  session.audioOut.subscribe((frame) => sounds.push(frame));
  await talk.say('economy');
  // The model mistakes the answer for a request and replies to it.
  const unwanted = model().beginByItself('Economy is a fine choice, let me tell you why', 3000);
  await environment.advance(3000);
  expect(sounds.length).toBeGreaterThan(20);
  const { samples: loop } = workingSound();
  const [first] = sounds;
  expect([...(first?.samples ?? [])]).toEqual([...loop.subarray(0, first?.samples.length)]);
  unwanted.end();
  await environment.settle();
  const heard = sounds.length;
  await environment.advance(5000);
  expect(sounds).toHaveLength(heard);
});

test.each([
  [{ loop: { samples: new Int16Array(10), sampleRateHz: 24_000 } }, /at least 100 ms/],
  [{ loop: { samples: new Int16Array(24_000), sampleRateHz: 1 } }, /sampleRateHz/],
  [{ loop: workingSound(), afterMs: -1 }, /afterMs/],
] as const)('the session refuses an invalid sound', (thinkingSound, message) => {
  const make = () =>
    new VoiceSession({
      environment: simulatedEnvironment(),
      transport: new FakeTransport(),
      agents: [{ name: 'lead', instructions: 'Talk.' }],
      thinkingSound,
    });
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(message);
});
