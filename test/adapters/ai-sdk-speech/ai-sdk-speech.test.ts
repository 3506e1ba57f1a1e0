// The AI SDK's speech models and transcription models as voices and transcribers.

import { createOpenAI } from '@ai-sdk/openai';
import type {
  SpeechModelV4,
  SpeechModelV4CallOptions,
  TranscriptionModelV4,
  TranscriptionModelV4CallOptions,
} from '@ai-sdk/provider';
import { describe, expect, test } from 'vitest';
import {
  aiSdkTranscriber,
  aiSdkVoice,
  type AiSdkVoiceOptions,
} from '../../../src/adapters/ai-sdk-speech/index.ts';
import { ConfigurationError, ProviderError } from '../../../src/values/errors.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import { encodePcm16 } from '../../../src/voice/audio/pcm16.ts';
import { decodeWav, encodeWav } from '../../../src/voice/audio/wav.ts';

const samples = Int16Array.from([1, -2, 3000, -4000]);
const response = { timestamp: new Date(0), modelId: 'voice-1' };
const { signal } = new AbortController();

function speechModel(audio: Uint8Array | (() => Promise<Uint8Array>)) {
  const asked: SpeechModelV4CallOptions[] = [];
  const model: SpeechModelV4 = {
    specificationVersion: 'v4',
    provider: 'acme.speech',
    modelId: 'voice-1',
    doGenerate: async (options) => {
      asked.push(options);
      const made = typeof audio === 'function' ? await audio() : audio;
      return { audio: made, warnings: [], response };
    },
  };
  return { model, asked };
}

function say(model: SpeechModelV4, options?: AiSdkVoiceOptions, speed?: number) {
  const request = { text: 'Hello.', signal, ...(speed !== undefined && { speed }) };
  return aiSdkVoice(model, options).synthesize(request) as Promise<AudioFrame>;
}

describe('aiSdkVoice', () => {
  test("requests WAV, and decodes it at the file's sample rate", async () => {
    const { model, asked } = speechModel(encodeWav({ samples, sampleRateHz: 22_050 }));
    expect(await say(model, { voice: 'ada', language: 'en' })).toEqual({
      samples,
      sampleRateHz: 22_050,
    });
    expect(asked).toMatchObject([
      { text: 'Hello.', voice: 'ada', language: 'en', outputFormat: 'wav', abortSignal: signal },
    ]);
    expect(asked[0]?.speed).toBeUndefined();
    await say(model, {}, 1.2);
    expect(asked[1]?.speed).toBe(1.2);
  });

  test.each([
    [{ outputFormat: 'pcm' }, 24_000],
    [{ outputFormat: 'pcm_16000' }, 16_000],
    [{ outputFormat: 'linear16', sampleRateHz: 48_000 }, 48_000],
  ])('reads raw samples at the sample rate from the options: %o', async (options, sampleRateHz) => {
    const { model } = speechModel(encodePcm16(samples));
    expect(await say(model, options)).toEqual({ samples, sampleRateHz });
  });

  test('decodes WAV even if raw samples were requested', async () => {
    const { model } = speechModel(encodeWav({ samples, sampleRateHz: 8000 }));
    expect(await say(model, { outputFormat: 'pcm' })).toEqual({ samples, sampleRateHz: 8000 });
  });

  test.each([
    ['MP3', [0xff, 0xfb, 0x90, 0x00]],
    ['MP3', [...Buffer.from('ID3\x04')]],
    ['Ogg', [...Buffer.from('OggS')]],
    ['FLAC', [...Buffer.from('fLaC')]],
    ['without a header of WAV', [1, 2, 3, 4]],
  ])('describes audio that is neither WAV nor raw samples: %s', async (name, bytes) => {
    const { model } = speechModel(Uint8Array.from([...bytes, ...Array<number>(12).fill(0)]));
    const failed = say(model);
    await expect(failed).rejects.toThrow(ProviderError);
    await expect(failed).rejects.toThrow(new RegExp(`acme.speech "voice-1", got .*${name}`));
    await expect(failed).rejects.toMatchObject({ code: 'UNSUPPORTED_AUDIO' });
  });

  test('rejects with a ProviderError that names the failed provider', async () => {
    const { model } = speechModel(() => Promise.reject(new Error('no credit')));
    const failed = say(model, { maxRetries: 0 });
    await expect(failed).rejects.toThrow(/acme\.speech "voice-1": no credit/);
    await expect(failed).rejects.toMatchObject({ code: 'VOICE_FAILED' });
  });

  test('returns silence for text that produces no audio', async () => {
    const { model } = speechModel(new Uint8Array(0));
    expect((await say(model)).samples).toHaveLength(0);
  });

  test.each([
    [{ outputFormat: 'mp3' }, /outputFormat.*'mp3'/],
    [{ outputFormat: 'pcm_96000' }, /outputFormat.*8000 to 48000.*'pcm_96000'/],
    [{ sampleRateHz: 5 }, /sampleRateHz/],
    [{ pitch: 2 } as never, /pitch/],
  ])('refuses %o and names the invalid option', (options, message) => {
    const { model } = speechModel(new Uint8Array(0));
    expect(() => aiSdkVoice(model, options)).toThrow(ConfigurationError);
    expect(() => aiSdkVoice(model, options)).toThrow(message);
  });

  test('refuses a value that is not a model', () => {
    expect(() => aiSdkVoice({} as never)).toThrow(/`model`/);
  });

  test('speaks through a real provider package', async () => {
    const requests: unknown[] = [];
    const openai = createOpenAI({
      apiKey: 'some-key',
      fetch: async (_url, init) => {
        requests.push(JSON.parse(init?.body as string));
        const body = Buffer.from(encodeWav({ samples, sampleRateHz: 24_000 }));
        return new Response(body, { headers: { 'content-type': 'audio/wav' } });
      },
    });
    const voice = aiSdkVoice(openai.speech('gpt-4o-mini-tts'), { voice: 'coral' });
    expect(await voice.synthesize({ text: 'Hello.', signal })).toEqual({
      samples,
      sampleRateHz: 24_000,
    });
    expect(requests).toMatchObject([
      { model: 'gpt-4o-mini-tts', input: 'Hello.', voice: 'coral', response_format: 'wav' },
    ]);
  });
});

describe('aiSdkTranscriber', () => {
  function transcriptionModel(text: () => string) {
    const asked: TranscriptionModelV4CallOptions[] = [];
    const model: TranscriptionModelV4 = {
      specificationVersion: 'v4',
      provider: 'acme.transcription',
      modelId: 'transcriber-1',
      doGenerate: async (options) => {
        asked.push(options);
        return {
          text: text(),
          segments: [],
          language: 'en',
          durationInSeconds: 1,
          warnings: [],
          response,
        };
      },
    };
    return { model, asked };
  }
  const speech: AudioFrame = { samples: new Int16Array(48_000).fill(100), sampleRateHz: 48_000 };

  test('sends a WAV file, and returns the transcript', async () => {
    const { model, asked } = transcriptionModel(() => ' Hello there. ');
    const providerOptions = { acme: { language: 'en' } };
    expect(await aiSdkTranscriber(model, { providerOptions }).transcribe(speech)).toBe(
      'Hello there.',
    );
    expect(asked).toMatchObject([{ mediaType: 'audio/wav', providerOptions }]);
    const sent = decodeWav(asked[0]?.audio as Uint8Array);
    expect(sent.sampleRateHz).toBe(16_000);
    expect(sent.samples).toHaveLength(16_000);
  });

  test('returns an empty string if nothing was said', async () => {
    const { model } = transcriptionModel(() => '');
    expect(await aiSdkTranscriber(model).transcribe(speech)).toBe('');
  });

  test('rejects with a ProviderError that names the failed provider', async () => {
    const { model } = transcriptionModel(() => {
      throw new Error('no credit');
    });
    const failed = aiSdkTranscriber(model, { maxRetries: 0 }).transcribe(speech);
    await expect(failed).rejects.toThrow(/acme\.transcription "transcriber-1": no credit/);
    await expect(failed).rejects.toMatchObject({ code: 'TRANSCRIPTION_FAILED' });
  });

  test('refuses invalid options and a value that is not a model', () => {
    const { model } = transcriptionModel(() => '');
    expect(() => aiSdkTranscriber(model, { sampleRateHz: 1 })).toThrow(ConfigurationError);
    expect(() => aiSdkTranscriber(null as never)).toThrow(/`model`/);
  });

  test('transcribes through a real provider package', async () => {
    let fileType = '';
    const openai = createOpenAI({
      apiKey: 'some-key',
      fetch: async (_url, init) => {
        const body = init?.body;
        const file = body instanceof FormData ? body.get('file') : null;
        if (file instanceof File) fileType = file.type;
        return Response.json({ text: 'Hello.' });
      },
    });
    const transcriber = aiSdkTranscriber(openai.transcription('gpt-4o-mini-transcribe'));
    expect(await transcriber.transcribe(speech)).toBe('Hello.');
    expect(fileType).toBe('audio/wav');
  });
});
