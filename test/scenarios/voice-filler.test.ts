// A filler while the user is waiting for the lead agent: it is spoken once, never delays an answer, and is not part of
// the conversation.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, defineTool } from '../../src/index.ts';
import { VoiceSession } from '../../src/voice-session.ts';
import {
  scriptedVoice,
  simulatedEnvironment,
  type ScriptedVoice,
  type SimulatedEnvironment,
} from '../../src/testing/index.ts';
import { frameDurationMs, type AudioFrame } from '../../src/voice/audio/audio-frame.ts';
import { workingSound } from '../../src/voice/audio/working-sound.ts';
import type { FillerOptions } from '../../src/voice/output/waiting.ts';
import type { Voice } from '../../src/voice/speech/voice.ts';
import { FakeTransport } from '../support/fake-transport.ts';
import { calls, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const AFTER_MS = 1000;
/** "Wait." in a voice that takes 100 ms for each character. */
const WORD = 'Wait.';
const WORD_MS = 500;

interface Setting extends VoiceTalkOptions {
  /** Speaks the filler. If null, the model speaks it. @defaultValue a scripted voice */
  readonly speaker?: ScriptedVoice | null;
  readonly say?: FillerOptions['say'];
}

function setting({ speaker, say = [WORD], ...options }: Setting = {}) {
  const environment =
    (options.environment as SimulatedEnvironment | undefined) ?? simulatedEnvironment();
  const voice =
    speaker === undefined ? scriptedVoice({ environment, msPerCharacter: 100 }) : speaker;
  let answer: (value: unknown) => void = () => {};
  const lookUp = defineTool({
    name: 'look_up',
    description: 'Looks it up',
    parameters: z.object({}),
    execute: () => new Promise((resolve) => (answer = resolve)),
  });
  const talk = voiceTalk({
    tools: [lookUp],
    transport: new FakeTransport({ speaksOutOfBand: voice === null }),
    filler: { afterMs: AFTER_MS, say, ...(voice && { voice }) },
    ...options,
    environment,
  });
  const sounds: AudioFrame[] = [];
  talk.session.audioOut.subscribe((frame) => sounds.push(frame));
  return {
    ...talk,
    sounds,
    said: () => voice?.said ?? [],
    answer: async (value: unknown) => {
      answer(value);
      await environment.settle();
    },
    clears: () => talk.events.filter(({ type }) => type === 'playout.clear').length,
    fillers: () => talk.state().transcript.filter(({ filler }) => filler),
    /** Makes the lead agent call a tool and wait for its result. */
    async calls(callId = 'call_1') {
      talk.model().call({ callId, name: 'look_up', arguments: '{}' });
      await environment.settle();
    },
  };
}

async function waiting(options: Setting = {}) {
  const talk = setting(options);
  await talk.start();
  await talk.say('look it up');
  await talk.calls();
  return talk;
}

describe('a filler spoken by a voice while a tool is running', () => {
  test('FILLER-1, FILLER-2: plays once after a delay and is marked as a filler', async () => {
    const { environment, sounds, said, fillers, state, model, clears, events } = await waiting();
    await environment.advance(AFTER_MS - 1);
    expect(sounds).toEqual([]);
    const before = events.length;
    await environment.advance(1);
    expect(said()).toEqual([WORD]);
    expect(sounds.map(({ itemId, responseId }) => itemId ?? responseId)).toEqual([undefined]);
    expect(fillers()).toMatchObject([{ role: 'assistant', text: WORD, final: true }]);
    await environment.advance(10_000);
    expect(said()).toEqual([WORD]);
    expect(events.slice(before).map(({ type }) => type)).toEqual(['transcript.changed']);
    expect(state().deliveries).toEqual([]);
    expect(model().openRequests).toEqual([]);
    expect(clears()).toBe(0);
    // Later readers of the conversation do not see the filler.
    model().drop();
    await environment.advance(10_000);
    expect(JSON.stringify(model().commands)).not.toContain(WORD);
  });

  test('FILLER-4: plays before the reply, which is requested without delay', async () => {
    const { environment, sounds, answer, asked, model, clears, state, play } = await waiting();
    await environment.advance(AFTER_MS + 100);
    await answer('found it');
    expect(asked()).toBe('reply');
    const itemId = model().speak('I found it.');
    await play(itemId);
    await environment.advance(5000);
    expect(clears()).toBe(0);
    expect(sounds.map((frame) => frame.itemId)).toEqual([undefined, itemId]);
    expect(state().transcript.at(-1)).not.toHaveProperty('interrupted');
  });

  test('FILLER-4: does not play if the tool answers quickly', async () => {
    const { environment, answer, said } = await waiting();
    await environment.advance(AFTER_MS - 100);
    await answer('found it');
    await environment.advance(50);
    expect(said()).toEqual([]);
  });

  test('FILLER-4: stops during its synthesis if the answer arrives', async () => {
    const environment = simulatedEnvironment();
    const speaker = scriptedVoice({ environment, latencyMs: 500 });
    const { answer, sounds, fillers, model } = await waiting({ environment, speaker });
    await environment.advance(AFTER_MS + 100);
    await answer('found it');
    model().speak('I found it.');
    await environment.advance(1000);
    expect(speaker.aborted).toEqual([WORD]);
    expect(sounds).toHaveLength(1);
    expect(fillers()).toEqual([]);
  });

  test('FILLER-4: plays to its end once it is audible, but never after the reply', async () => {
    let more: () => void = () => {};
    const piece = { samples: new Int16Array(6000), sampleRateHz: 24_000 };
    const streaming: Voice = {
      async *synthesize() {
        for (;;) {
          yield piece;
          await new Promise<void>((resolve) => (more = resolve));
        }
      },
    };
    const filler = { afterMs: AFTER_MS, say: [WORD], voice: streaming };
    const { environment, answer, sounds, model, clears } = await waiting({ filler });
    await environment.advance(AFTER_MS + 100);
    await answer('found it');
    more();
    await environment.settle();
    expect(sounds).toHaveLength(2);
    const itemId = model().speak('I found it.');
    more();
    await environment.settle();
    expect(sounds.map((frame) => frame.itemId)).toEqual([undefined, undefined, itemId]);
    expect(clears()).toBe(0);
  });

  test("FILLER-3: stops without clearing the client's audio if the user speaks before it is audible", async () => {
    const environment = simulatedEnvironment();
    const speaker = scriptedVoice({ environment, latencyMs: 500 });
    const { model, clears, sounds, fillers } = await waiting({ environment, speaker });
    await environment.advance(AFTER_MS + 100);
    model().speechStarted('u2');
    await environment.advance(1000);
    expect(speaker.aborted).toEqual([WORD]);
    expect([clears(), sounds.length, fillers().length]).toEqual([0, 0, 0]);
  });

  test('FILLER-3: stops immediately when the user speaks, and does not count as interrupted speech', async () => {
    const { environment, model, clears, fillers, events } = await waiting();
    await environment.advance(AFTER_MS + 100);
    model().speechStarted('u2');
    await environment.settle();
    expect(clears()).toBe(1);
    expect(fillers()).toMatchObject([{ text: WORD, interrupted: true }]);
    expect(events.filter(({ type }) => type === 'speech.interrupted')).toEqual([]);
  });

  test('FILLER-3: remains in the transcript if it has been played to its end', async () => {
    const { environment, model, clears, fillers } = await waiting();
    await environment.advance(AFTER_MS + WORD_MS + 100);
    model().speechStarted('u2');
    await environment.settle();
    expect(clears()).toBe(0);
    expect(fillers()[0]).not.toHaveProperty('interrupted');
  });

  test('FILLER-1: plays once for several calls in a row and again after the model has spoken', async () => {
    const { environment, answer, calls, said, model, play, say } = await waiting({
      say: ['One.', 'Two.'],
    });
    await environment.advance(AFTER_MS + WORD_MS);
    await answer('found something');
    await calls('call_2');
    await environment.advance(10_000);
    expect(said()).toEqual(['One.']);
    await answer('found it');
    await play(model().speak('I found it.'));
    await say('once more');
    await calls('call_3');
    await environment.advance(10_000);
    expect(said()).toEqual(['One.', 'Two.']);
  });

  test('FILLER-1: plays again after the model has spoken, even if the user has said nothing', async () => {
    const { environment, answer, said, model, play } = await waiting({ say: ['One.', 'Two.'] });
    await environment.advance(AFTER_MS + WORD_MS);
    await answer('found something');
    const saying = model().begin('There is something. I look further.', 1000);
    const { responseId } = saying;
    const call = { callId: 'call_2', name: 'look_up', arguments: '{}', responseId };
    model().events.next({ type: 'tool.called', ...call });
    saying.end();
    await environment.advance(2000);
    expect(said()).toEqual(['One.']);
    await play(saying.itemId);
    await environment.advance(10_000);
    expect(said()).toEqual(['One.', 'Two.']);
  });

  test('FILLER-1: does not play while a delivery is due or no client is attached', async () => {
    const { environment, session, said, leave } = await waiting();
    session.notifyBackground('The mail has come');
    await environment.advance(10_000);
    expect(said()).toEqual([]);
    leave();
    await environment.advance(10_000);
    expect(said()).toEqual([]);
  });

  test('FILLER-1: does not play while a question is open', async () => {
    const options = ['economy', 'premium'].map((id) => ({ id, label: id }));
    const script = steps(calls(['ask_user', { question: 'Economy or premium?', options }]));
    const { environment, start, use, pause, play, model, say, question, said, ...talk } = setting({
      subagents: { ride: { script, config: { interactive: true } } },
    });
    await start();
    await use('ride');
    await pause();
    await play(model().speak('Economy or premium?'));
    expect(question()?.state).toBe('open');
    await say('what is the weather like in Rome');
    await talk.calls('call_of_its_own');
    expect(talk.events.at(-1)).toMatchObject({ type: 'tool.called', name: 'look_up' });
    await environment.advance(5000);
    expect(question()?.state).toBe('open');
    expect(said()).toEqual([]);
  });

  test("plays in the agent's language and is silent in a language without phrases", async () => {
    const say = { de: ['Moment.'], fr: ['Un instant.'] };
    const german = await waiting({ say, agent: { language: 'de-AT' } });
    await german.environment.advance(AFTER_MS);
    expect(german.said()).toEqual(['Moment.']);
    const other = await waiting({ say, agent: { language: 'it' } });
    await other.environment.advance(10_000);
    expect(other.said()).toEqual([]);
  });

  test('pauses the thinking sound while it plays', async () => {
    const { environment, sounds } = await waiting({
      thinkingSound: { loop: workingSound(), afterMs: 200 },
    });
    await environment.advance(AFTER_MS - 1);
    expect(sounds.length).toBeGreaterThan(2);
    await environment.advance(1);
    const count = sounds.length;
    await environment.advance(WORD_MS);
    expect(sounds).toHaveLength(count);
    await environment.advance(300);
    expect(sounds.length).toBeGreaterThan(count);
  });

  test('reports a failing voice and continues without it', async () => {
    const environment = simulatedEnvironment();
    const speaker = scriptedVoice({ environment });
    speaker.fail();
    const { errors, answer, asked, fillers } = await waiting({ environment, speaker });
    await environment.advance(AFTER_MS);
    expect(errors).toMatchObject([{ where: 'filler', error: { code: 'VOICE_FAILED' } }]);
    expect(fillers()).toEqual([]);
    await answer('found it');
    expect(asked()).toBe('reply');
  });

  test('leaves no timer running when the session closes', async () => {
    const { environment, close } = await waiting();
    await environment.advance(AFTER_MS + 100);
    await close();
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('a filler spoken by a voice while the model has not started to speak', () => {
  test('FILLER-1: plays once and never after the model has started', async () => {
    const { environment, start, say, model, said, play } = setting();
    await start();
    await say('tell me something');
    await environment.advance(AFTER_MS);
    expect(said()).toEqual([WORD]);
    await play(model().speak('Once upon a time.'));
    await say('and then');
    await play(model().speak('There was a king.', 3000), 1000);
    await environment.advance(10_000);
    expect(said()).toEqual([WORD]);
  });

  test('FILLER-2: does not count as activity of the model', async () => {
    const { environment, start, say, errors } = setting({ voice: { responseTimeoutMs: 3000 } });
    await start();
    await say('tell me something');
    await environment.advance(3000);
    expect(errors).toMatchObject([{ error: { code: 'RESPONSE_TIMEOUT' } }]);
  });
});

describe('a filler spoken by the model itself', () => {
  test('FILLER-2, FILLER-5: plays out of band, and its audio has no item id', async () => {
    const { environment, model, sounds, fillers, answer, asked, state } = await waiting({
      speaker: null,
    });
    await environment.advance(AFTER_MS);
    expect(model().of('response.request').at(-1)).toMatchObject({
      outOfBand: true,
      instructions: expect.stringContaining(WORD),
    });
    model().speak('Wait, please.', 700);
    await environment.settle();
    expect(sounds).toMatchObject([{ sampleRateHz: 24_000 }]);
    expect(sounds[0]).not.toHaveProperty('itemId');
    expect(fillers()).toMatchObject([{ text: 'Wait, please.' }]);
    expect(state().transcript.filter(({ role }) => role === 'assistant')).toHaveLength(1);
    await answer('found it');
    expect(asked()).toBe('reply');
  });

  test('FILLER-4, FILLER-5: ends as cancelled if the answer arrives before the filler is audible', async () => {
    const { environment, model, answer, asked, sounds } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    const saying = model().begin('Wait.', 0);
    await answer('found it');
    expect(model().of('response.cancel')).toHaveLength(1);
    expect(asked()).toBeNull();
    saying.end('cancelled');
    await environment.settle();
    expect(asked()).toBe('reply');
    expect(sounds).toEqual([]);
  });

  test('FILLER-4: does not delay the reply if the model never speaks the filler', async () => {
    const { environment, model, answer, asked, sounds } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    await answer('found it');
    await environment.advance(1000);
    const requests = model().of('response.request');
    expect(requests.at(-1)?.responseKey).toMatch(/^reply/);
    // The older request is the one for the filler, which finally gets an answer.
    model().speak('Wait.');
    await environment.settle();
    expect(sounds).toEqual([]);
    expect(asked()).toBe('reply');
  });

  test('FILLER-6: stops if the model says something else, without delaying the reply', async () => {
    const { environment, model, answer, asked, sounds, fillers } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    const saying = model().begin('I have news about the report.', 0);
    const samples = new Int16Array(12_000);
    for (let ms = 0; ms < 20_000; ms += 500) {
      model().audio.next({ ...saying, samples, sampleRateHz: 24_000 });
      await environment.settle();
    }
    expect(fillers()).toMatchObject([{ interrupted: true }]);
    const heardMs = sounds.reduce((total, frame) => total + frameDurationMs(frame), 0);
    expect(heardMs).toBeGreaterThan(WORD_MS);
    expect(heardMs).toBeLessThan(3000);
    expect(model().of('response.cancel')).toHaveLength(1);
    saying.end('cancelled');
    await answer('found it');
    expect(asked()).toBe('reply');
  });

  test('FILLER-5: does not play while the model should be replying', async () => {
    const { environment, start, say, model } = setting({ speaker: null });
    await start();
    await say('tell me something');
    await environment.advance(20_000);
    expect(model().of('response.request')).toHaveLength(1);
  });

  test('does not prevent the reply if the server refuses the filler', async () => {
    const { environment, model, answer, asked } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    const { responseKey = '' } = model().of('response.request').at(-1) ?? {};
    const refused = { code: 'no', message: 'No.', responseKey, raw: null };
    model().begin('', 0);
    model().events.next({ type: 'transport.error', ...refused });
    await answer('found it');
    expect(asked()).toBe('reply');
  });

  test('does not cause a second request after a lost connection', async () => {
    const { environment, model, close } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    model().drop();
    await environment.advance(30_000);
    expect(JSON.stringify(model().commands)).not.toContain(WORD);
    await close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('ends when the connection is lost and is requested again during the next wait', async () => {
    const { environment, model, answer, play } = await waiting({ speaker: null });
    await environment.advance(AFTER_MS);
    model().begin('Wait.', 500);
    await environment.settle();
    model().drop();
    await environment.advance(5000);
    await answer('found it');
    const saying = model().begin('There is something. I look further.', 1000);
    const { responseId } = saying;
    const call = { callId: 'call_2', name: 'look_up', arguments: '{}', responseId };
    model().events.next({ type: 'tool.called', ...call });
    saying.end();
    await play(saying.itemId);
    await environment.advance(AFTER_MS);
    expect(model().of('response.request').at(-1)).toMatchObject({
      outOfBand: true,
      instructions: expect.stringContaining(WORD),
    });
  });
});

describe('construction', () => {
  const make = (filler: FillerOptions, transport = new FakeTransport()) => {
    return () =>
      new VoiceSession({
        environment: simulatedEnvironment(),
        transport,
        agents: [{ name: 'lead', instructions: 'Talk.' }],
        filler,
      });
  };

  test('requires a voice if the transport cannot speak out of band', () => {
    expect(make({})).toThrow(ConfigurationError);
    expect(make({})).toThrow(/`fake`.*`filler.voice`/s);
    expect(make({}, new FakeTransport({ speaksOutOfBand: true }))).not.toThrow();
    const voice = scriptedVoice({ environment: simulatedEnvironment() });
    expect(make({}, new FakeTransport({}, voice))).not.toThrow();
    expect(make({ voice })).not.toThrow();
  });

  const able = new FakeTransport({ speaksOutOfBand: true });
  test.each([
    [{ afterMs: -1 }, /afterMs/],
    [{ say: [] }, /say/],
    [{ say: [' '] }, /say/],
    [{ voice: {} as never }, /filler.voice.*synthesize/],
    [{ phrases: [] } as never, /phrases/],
  ] as const)('refuses %o', (filler, message) => {
    expect(make(filler, able)).toThrow(ConfigurationError);
    expect(make(filler, able)).toThrow(message);
  });

  test('refuses a model with text output as the lead agent', () => {
    const transport = new FakeTransport({ output: 'text' });
    const bare = () =>
      new VoiceSession({
        environment: simulatedEnvironment(),
        transport,
        agents: [{ name: 'lead', instructions: 'Talk.' }],
      });
    expect(bare).toThrow(ConfigurationError);
    expect(bare).toThrow(/withVoice/);
  });
});
