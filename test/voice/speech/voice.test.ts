import { describe, expect, test } from 'vitest';
import { ProviderError } from '../../../src/values/errors.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { soundOf, wholeSoundOf, type Voice } from '../../../src/voice/speech/voice.ts';

const frame = (...samples: number[]): AudioFrame => ({
  samples: Int16Array.from(samples),
  sampleRateHz: 16_000,
});

function request(controller = new AbortController()) {
  return { text: 'Hello.', signal: controller.signal };
}

describe('the audio of a voice', () => {
  test('has the same samples whether it arrives whole or in pieces', async () => {
    const whole: Voice = { synthesize: async () => frame(1, 2, 3) };
    const pieces: Voice = {
      async *synthesize() {
        yield frame(1);
        yield frame(2, 3);
      },
    };
    expect(await wholeSoundOf(whole, request())).toEqual(frame(1, 2, 3));
    expect(await wholeSoundOf(pieces, request())).toEqual(frame(1, 2, 3));
    const none: Voice = { async *synthesize() {} };
    expect((await wholeSoundOf(none, request())).samples).toHaveLength(0);
  });

  test('ends without an error if it is aborted, even if the voice then throws', async () => {
    const controller = new AbortController();
    const voice: Voice = {
      async *synthesize({ signal }) {
        yield frame(1);
        await new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
        });
      },
    };
    const heard: AudioFrame[] = [];
    for await (const piece of soundOf(voice, request(controller))) {
      heard.push(piece);
      void Promise.resolve().then(() => controller.abort());
    }
    expect(heard).toEqual([frame(1)]);
    // After the abort, no audio is requested from the voice.
    const refuses: Voice = { synthesize: () => Promise.reject(new Error('asked')) };
    for await (const piece of soundOf(refuses, request(controller))) heard.push(piece);
    expect(heard).toHaveLength(1);
  });

  test('fails if the voice fails or returns no audio', async () => {
    const failing: Voice = { synthesize: () => Promise.reject(new Error('no credit')) };
    await expect(wholeSoundOf(failing, request())).rejects.toThrow('no credit');
    const silly = { synthesize: async () => ({ samples: [1], sampleRateHz: 16_000 }) };
    const failed = wholeSoundOf(silly as unknown as Voice, request());
    await expect(failed).rejects.toThrow(ProviderError);
    await expect(failed).rejects.toMatchObject({ code: 'INVALID_AUDIO' });
  });
});
