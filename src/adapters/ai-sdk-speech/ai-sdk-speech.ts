// Speech to text with an AI SDK transcription model and text to speech with an AI SDK speech model, from any provider
// package.
//
// A speech model returns bytes in some format. Any format other than WAV and raw PCM is rejected with an error that
// names the format, because this file has no decoder for it.

import {
  NoTranscriptGeneratedError,
  transcribe,
  type TranscriptionModel,
  generateSpeech,
  NoSpeechGeneratedError,
  type SpeechModel,
} from 'ai';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { messageOf, ProviderError, ConfigurationError } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { decodePcm16 } from '../../voice/audio/pcm16.ts';
import { isSampleRateHz, resampleSound } from '../../voice/audio/resampler.ts';
import { encodeWav, decodeWav, isWav } from '../../voice/audio/wav.ts';
import type { Transcriber, Voice } from '../../voice/speech/voice.ts';

type ProviderOptions = NonNullable<Parameters<typeof transcribe>[0]['providerOptions']>;

/** The options of `aiSdkTranscriber`. */
export interface AiSdkTranscriberOptions {
  /** Provider options for `transcribe`, such as `{ openai: { language: 'en' } }`. @defaultValue none */
  readonly providerOptions?: ProviderOptions;
  /** @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The sample rate of the WAV file to send. @defaultValue 16000 */
  readonly sampleRateHz?: number;
  /** The maximum number of retries. The first retry follows after two seconds. @defaultValue 1 */
  readonly maxRetries?: number;
}

/** The defaults of `aiSdkTranscriber`: 16 kHz, one retry. */
export const defaultAiSdkTranscriberOptions = {
  sampleRateHz: 16_000,
  maxRetries: 1,
} as const satisfies AiSdkTranscriberOptions;

const transcriberOptionsSchema = z.strictObject({
  providerOptions: z.record(z.string(), z.looseObject({})).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  sampleRateHz: z.number().refine(isSampleRateHz, 'expected 8000 to 48000').optional(),
  maxRetries: z.int().nonnegative().optional(),
});

/**
 * Creates a `Transcriber` from a transcription model:
 * `aiSdkTranscriber(openai.transcription('gpt-4o-mini-transcribe'))`. Intended for `localVoice`, which detects the
 * start and end of speech. Each stretch of speech is one `transcribe` call.
 *
 * On failure, calls reject with a `ProviderError` `TRANSCRIPTION_FAILED`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function aiSdkTranscriber(
  model: TranscriptionModel,
  options: AiSdkTranscriberOptions = {},
): Transcriber {
  check('aiSdkTranscriber', transcriberOptionsSchema, options);
  check('aiSdkTranscriber', modelSchema, { model });
  const { sampleRateHz, ...given } = { ...defaultAiSdkTranscriberOptions, ...options };
  const who = modelName(model);
  return {
    async transcribe(speech) {
      const samples = resampleSound(speech, sampleRateHz);
      try {
        const audio = encodeWav({ samples, sampleRateHz });
        const { text } = await transcribe({ ...given, model, audio });
        return text.trim();
      } catch (cause) {
        // The model heard no speech.
        if (NoTranscriptGeneratedError.isInstance(cause)) return '';
        const message = `${who}: ${messageOf(cause)}`;
        throw new ProviderError('TRANSCRIPTION_FAILED', message, { cause, retryable: true });
      }
    },
  };
}

/** The options of `aiSdkVoice`. */
export interface AiSdkVoiceOptions {
  /** The provider's name for the voice. @defaultValue the provider's default voice */
  readonly voice?: string;
  /**
   * The provider's name for WAV or raw 16-bit PCM: `wav`, `pcm`, `pcm_24000`, `linear16`. Other formats are rejected.
   * @defaultValue 'wav'
   */
  readonly outputFormat?: string;
  /** The sample rate of raw PCM. @defaultValue the rate in the format's name (`pcm_16000`), otherwise 24000 */
  readonly sampleRateHz?: number;
  /** The speaking style, for models that support it. @defaultValue none */
  readonly instructions?: string;
  /** ISO 639-1, such as `en`. @defaultValue none */
  readonly language?: string;
  /** Provider options for `generateSpeech`. @defaultValue none */
  readonly providerOptions?: ProviderOptions;
  /** @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The maximum number of retries, the first of which follows after two seconds. @defaultValue 1 */
  readonly maxRetries?: number;
}

/** The defaults of `aiSdkVoice`: WAV, one retry. */
export const defaultAiSdkVoiceOptions = {
  outputFormat: 'wav',
  maxRetries: 1,
} as const satisfies AiSdkVoiceOptions;

const text = z.string().min(1);

const voiceOptionsSchema = z.strictObject({
  voice: text.optional(),
  outputFormat: text.optional(),
  sampleRateHz: z.number().refine(isSampleRateHz, 'expected 8000 to 48000').optional(),
  instructions: text.optional(),
  language: text.optional(),
  providerOptions: z.record(z.string(), z.looseObject({})).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  maxRetries: z.int().nonnegative().optional(),
});

/**
 * Creates a `Voice` from a speech model: `aiSdkVoice(openai.speech('gpt-4o-mini-tts'), { voice: 'coral' })`. Intended
 * for `withVoice`, `localVoice` and fillers. Each sentence is one `generateSpeech` call.
 *
 * On failure, calls reject with a `ProviderError`: `UNSUPPORTED_AUDIO` if the provider returned neither WAV nor PCM,
 * `VOICE_FAILED` for any other failure.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function aiSdkVoice(model: SpeechModel, options: AiSdkVoiceOptions = {}): Voice {
  check('aiSdkVoice', voiceOptionsSchema, options);
  check('aiSdkVoice', modelSchema, { model });
  const { sampleRateHz, ...given } = { ...defaultAiSdkVoiceOptions, ...options };
  checkFormat(given.outputFormat);
  const who = modelName(model);
  const rawRateHz = rawRateOf(given.outputFormat, sampleRateHz);
  return {
    async synthesize({ text: words, speed = 1, signal }) {
      const bytes = await generateSpeech({
        ...given,
        model,
        text: words,
        // Many providers do not support this setting and return a warning for it.
        ...(speed !== 1 && { speed }),
        abortSignal: signal,
      }).then(
        ({ audio }) => audio.uint8Array,
        (cause: unknown) => {
          // The text contains nothing to say.
          if (NoSpeechGeneratedError.isInstance(cause)) return null;
          const message = `${who}: ${messageOf(cause)}`;
          throw new ProviderError('VOICE_FAILED', message, { cause, retryable: true });
        },
      );
      if (bytes === null || bytes.length === 0) {
        return { samples: new Int16Array(0), sampleRateHz: rawRateHz ?? 24_000 };
      }
      return decodeAudio(bytes, rawRateHz, who);
    },
  };
}

/** The providers' names for headerless 16-bit samples; some names include a rate: `pcm_16000`. */
const RAW = /^(?:pcm|raw|linear16|l16|s16le|pcm_s16le)(?:[_-]?(\d{4,5}))?$/i;
const WAV = /^(?:wav|wave|riff)(?:[_-].*)?$/i;
const DEFAULT_RAW_RATE_HZ = 24_000;

/** The first bytes of files in other formats. */
const MAGIC: readonly (readonly [name: string, at: number, bytes: readonly number[]])[] = [
  ['MP3', 0, [0x49, 0x44, 0x33]],
  ['MP3', 0, [0xff, 0xfb]],
  ['MP3', 0, [0xff, 0xf3]],
  ['MP3', 0, [0xff, 0xf2]],
  ['AAC', 0, [0xff, 0xf1]],
  ['AAC', 0, [0xff, 0xf9]],
  ['Ogg (Opus or Vorbis)', 0, [0x4f, 0x67, 0x67, 0x53]],
  ['FLAC', 0, [0x66, 0x4c, 0x61, 0x43]],
  ['WebM', 0, [0x1a, 0x45, 0xdf, 0xa3]],
  ['MP4', 4, [0x66, 0x74, 0x79, 0x70]],
];

/** Returns the sample rate of raw samples in this format; null if the format has a header that states it. */
function rawRateOf(outputFormat: string, sampleRateHz: number | undefined): number | null {
  const raw = RAW.exec(outputFormat);
  if (raw === null) return null;
  return sampleRateHz ?? (raw[1] === undefined ? DEFAULT_RAW_RATE_HZ : Number(raw[1]));
}

/** @throws {ConfigurationError} `INVALID_OPTION` if this file cannot decode the format */
function checkFormat(outputFormat: string): void {
  const rawRateHz = RAW.exec(outputFormat)?.[1] ?? DEFAULT_RAW_RATE_HZ;
  const isKnown = RAW.test(outputFormat) || WAV.test(outputFormat);
  if (isKnown && isSampleRateHz(Number(rawRateHz))) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `aiSdkVoice: expected \`outputFormat\` to be WAV or raw PCM, such as 'wav', 'pcm' or 'pcm_24000', 8000 to 48000 Hz, got '${outputFormat}'`,
  );
}

/**
 * Decodes the audio bytes that `who` returned. `rawRateHz`: the requested sample rate of raw PCM.
 * @throws {ProviderError} `UNSUPPORTED_AUDIO`, whose message names the format
 */
function decodeAudio(bytes: Uint8Array, rawRateHz: number | null, who: string): AudioFrame {
  if (isWav(bytes)) return decodeWavOf(bytes, who);
  const other = nameOf(bytes);
  // Raw samples may start with any bytes, but they rarely match the start of a known format.
  if (rawRateHz !== null && other === null) {
    return { samples: decodePcm16(wholeSamples(bytes)), sampleRateHz: rawRateHz };
  }
  const got =
    other ?? (rawRateHz === null ? 'something without a header of WAV' : 'something else');
  throw new ProviderError(
    'UNSUPPORTED_AUDIO',
    `aiSdkVoice: expected WAV or raw PCM from ${who}, got ${got}. Choose another \`outputFormat\`, as the provider names it`,
  );
}

function decodeWavOf(bytes: Uint8Array, who: string): AudioFrame {
  try {
    return decodeWav(bytes);
  } catch (cause) {
    throw new ProviderError('UNSUPPORTED_AUDIO', `${who}: ${messageOf(cause)}`, { cause });
  }
}

function nameOf(bytes: Uint8Array): string | null {
  const found = MAGIC.find(([, at, magic]) =>
    magic.every((byte, index) => bytes[at + index] === byte),
  );
  return found?.[0] ?? null;
}

/** Removes an incomplete last sample, which a truncated file may contain. */
function wholeSamples(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, bytes.length - (bytes.length % 2));
}

/** A model, or a model id for the gateway. */
const modelSchema = z.object({
  model: z.union([
    z.string().min(1),
    z.looseObject({ specificationVersion: z.string(), provider: z.string(), modelId: z.string() }),
  ]),
});

/** Returns a name such as `openai.speech "gpt-4o-mini-tts"`. */
function modelName(
  model: string | { readonly provider: string; readonly modelId: string },
): string {
  return typeof model === 'string' ? `"${model}"` : `${model.provider} "${model.modelId}"`;
}
