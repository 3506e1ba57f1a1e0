// The app's transcriber and voice replace the engine's, but the engine still detects where speech starts and ends.

import { describe, expect, test } from 'vitest';
import { localVoice } from '../../../src/adapters/local-voice/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import type { Transcriber, Voice } from '../../../src/voice/index.ts';
import { gate, startHarness, userSays } from './support/harness.ts';
import { scriptedModel } from './support/scripted-model.ts';
import { scriptedSpeech, tone } from './support/scripted-speech.ts';

describe("an app's transcriber", () => {
  test('receives only speech, and returns the transcript', async () => {
    const heard: number[] = [];
    const transcriber: Transcriber = {
      transcribe: async ({ samples, sampleRateHz }) => {
        heard.push((samples.length * 1000) / sampleRateHz);
        return 'economy please';
      },
    };
    const { connect, model } = await startHarness({ transcriber, answers: [['Noted.']] });
    const client = await connect();
    client.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        output_modalities: ['text'],
        audio: {
          input: { transcription: { model: 'any' }, turn_detection: { type: 'server_vad' } },
        },
      },
    });
    client.speak(tone(0, 1000));
    client.speak(tone(4000, 600));
    client.speak(tone(0, 600));
    const done = await client.next('conversation.item.input_audio_transcription.completed');
    expect(done['transcript']).toBe('economy please');
    await client.next('response.done');
    expect(JSON.stringify(model.prompt(0))).toContain('economy please');
    expect(heard).toHaveLength(1);
    expect(heard[0]).toBeLessThan(1300);
  });
});

describe("an app's voice", () => {
  test('speaks with any voice that the client requests, at the requested speed', async () => {
    const said: { text: string; speed: number | undefined }[] = [];
    const voice: Voice = {
      async *synthesize({ text, speed }) {
        said.push({ text, speed });
        yield { samples: new Int16Array(8000).fill(5), sampleRateHz: 16_000 };
        yield { samples: new Int16Array(8000).fill(5), sampleRateHz: 16_000 };
      },
    };
    const { connect, speech } = await startHarness({ voice, answers: [['Hi there. Good day.']] });
    const client = await connect();
    client.send({
      type: 'session.update',
      session: { type: 'realtime', audio: { output: { voice: 'marin', speed: 1.2 } } },
    });
    client.send(userSays('Say hi'));
    client.send({ type: 'response.create' });
    await client.next('response.done');
    expect(said).toEqual([
      { text: 'Hi there. ', speed: 1.2 },
      { text: 'Good day.', speed: 1.2 },
    ]);
    expect(speech.spoken).toEqual([]);
    const samples = client.events.flatMap(({ type, delta }) =>
      type === 'response.output_audio.delta' ? [decodePcm16Base64(delta as string).length] : [],
    );
    const total = samples.reduce((sum, count) => sum + count, 0);
    // Includes the pause between the two sentences.
    expect(total / 24_000).toBeCloseTo(2.15, 2);
  });

  test('aborts its synthesis when the response is cancelled', async () => {
    const { opened: aborted, open } = gate();
    const { opened: begun, open: begin } = gate();
    const voice: Voice = {
      synthesize: ({ signal }) => {
        signal.addEventListener('abort', open);
        begin();
        return new Promise(() => {});
      },
    };
    const { connect } = await startHarness({ voice, answers: [['Hi there.']] });
    const client = await connect();
    client.send(userSays('Say hi'));
    client.send({ type: 'response.create' });
    await begun;
    client.send({ type: 'response.cancel' });
    await aborted;
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({ status: 'cancelled' });
  });

  test('fails the response if its synthesis fails', async () => {
    const voice: Voice = { synthesize: () => Promise.reject(new Error('no credit')) };
    const { connect } = await startHarness({ voice, answers: [['Hi there.']] });
    const client = await connect();
    client.send(userSays('Say hi'));
    client.send({ type: 'response.create' });
    const { response } = await client.next('response.done');
    expect(response).toMatchObject({ status: 'failed' });
  });
});

test.each([
  [{ transcriber: {} as Transcriber }, /localVoice\.transcriber.*transcribe/],
  [{ voice: {} as Voice }, /localVoice\.voice.*synthesize/],
])('refuses %o, and names the missing method', (parts, message) => {
  const make = () =>
    localVoice({
      model: scriptedModel(),
      environment: nodeEnvironment(),
      speech: scriptedSpeech(),
      ...parts,
    });
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(message);
});
