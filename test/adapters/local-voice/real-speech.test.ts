// The real transcriber and the real voice: the transcriber understands Flite's speech and the speech of the answer.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  localVoice,
  type LocalVoice,
  type LocalVoiceAddress,
} from '../../../src/adapters/local-voice/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { speak } from '../../support/speech/speak.ts';
import { scriptedModel } from './support/scripted-model.ts';
import { tone } from './support/scripted-speech.ts';
import { WireClient } from './support/wire-client.ts';

const ANSWER = 'Economy it is. The driver comes at noon.';
const COMPLETED = 'conversation.item.input_audio_transcription.completed';

const model = scriptedModel([ANSWER]);
let voice: LocalVoice;
let address: LocalVoiceAddress;

beforeAll(async () => {
  voice = localVoice({ model, environment: nodeEnvironment() });
  address = await voice.start();
});
afterAll(() => voice.close());

/** Returns only the words. */
function plain(text: string): string {
  return text.toLowerCase().replace(/[^a-z ]/g, '');
}

async function connect(turnDetection: Record<string, unknown> | null): Promise<WireClient> {
  const client = await WireClient.connect(address);
  client.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      audio: {
        input: { transcription: { model: 'moonshine-tiny' }, turn_detection: turnDetection },
      },
    },
  });
  return client;
}

describe('a spoken conversation', () => {
  test('recognises “economy please”, and speaks an answer that is transcribed verbatim', async () => {
    const client = await connect({ type: 'server_vad', silence_duration_ms: 300 });
    client.speak(tone(0, 400));
    client.speak(await speak('economy please'));
    client.speak(tone(0, 600));

    const started = await client.next('input_audio_buffer.speech_started');
    const stopped = await client.next('input_audio_buffer.speech_stopped');
    expect(stopped['item_id']).toBe(started['item_id']);
    // The speech itself starts about 200 ms after the silence, and 300 ms of padding come before it.
    expect(started['audio_start_ms']).toBeGreaterThan(100);
    expect(started['audio_start_ms']).toBeLessThan(600);
    const heard = await client.next(COMPLETED);
    expect(plain(heard['transcript'])).toBe('economy please');

    const { response } = await client.next('response.done');
    expect(response).toMatchObject({
      status: 'completed',
      output: [{ content: [{ type: 'output_audio', transcript: ANSWER }] }],
    });
    expect(JSON.stringify(model.prompt(0))).toContain(heard['transcript']);
    const sound = client.events
      .filter(({ type }) => type === 'response.output_audio.delta')
      .flatMap(({ delta }) => [...decodePcm16Base64(delta)]);
    expect(sound.length / 24_000).toBeGreaterThan(2);
    expect(client.invalid).toEqual([]);

    // The server's own answer, spoken to it by a client that holds the button.
    const listener = await connect(null);
    listener.speak(Int16Array.from(sound));
    listener.send({ type: 'input_audio_buffer.commit' });
    const again = await listener.next(COMPLETED);
    expect(plain(again['transcript'])).toBe(plain(ANSWER));
    for (const each of [client, listener]) each.socket.close();
  });

  test('does not mistake silence or noise for speech', async () => {
    const client = await connect({ type: 'server_vad', silence_duration_ms: 300 });
    let seed = 1;
    const noise = new Int16Array(48_000).map(() => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return (seed / 2 ** 31 - 0.5) * 600;
    });
    client.speak(tone(0, 1_000));
    client.speak(noise);
    // The end of this utterance proves that the server has heard everything before it.
    client.speak(await speak('never mind'));
    client.speak(tone(0, 600));
    const heard = await client.next(COMPLETED);
    expect(plain(heard['transcript'])).toBe('never mind');
    expect(client.count('input_audio_buffer.speech_started')).toBe(1);
    client.socket.close();
  });

  test('waits after an unfinished sentence, and joins the two halves', async () => {
    const client = await connect({ type: 'semantic_vad', create_response: false });
    client.speak(tone(0, 400));
    client.speak(await speak('Make me a sales report for'));
    // Twice as long as a pause that ends a turn.
    client.speak(tone(0, 1_000));
    client.speak(await speak('the last week.'));
    client.speak(tone(0, 1_000));
    const heard = await client.next(COMPLETED);
    expect(plain(heard['transcript'])).toBe('make me a sales report for the last week');
    expect(client.count('input_audio_buffer.speech_started')).toBe(1);
    client.socket.close();
  });

  test('transcribes the whole manual commit, even if it contains a pause', async () => {
    const client = await connect(null);
    client.speak(tone(0, 2_000));
    client.speak(await speak('no thanks'));
    client.speak(tone(0, 3_000));
    client.speak(await speak('never mind'));
    client.speak(tone(0, 2_000));
    client.send({ type: 'input_audio_buffer.commit' });
    const heard = await client.next(COMPLETED);
    expect(plain(heard['transcript'])).toBe('no thanks never mind');
    client.socket.close();
  });
});
