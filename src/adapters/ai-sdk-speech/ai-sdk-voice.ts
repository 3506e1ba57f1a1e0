// Text to speech by a speech model of the AI SDK, of any provider package.

import { generateSpeech, NoSpeechGeneratedError, type SpeechModel } from 'ai';
import { z } from 'zod';
import { messageOf, ProviderError } from '../../values/errors.ts';
import { isSampleRateHz } from '../../voice/audio/resampler.ts';
import type { Voice } from '../../voice/speech/voice.ts';
import { check } from '../../values/checks.ts';
import { checkFormat, decodeAudio, rawRateOf } from './audio-file.ts';
import { modelName, modelSchema } from './model-name.ts';

type ProviderOptions = NonNullable<Parameters<typeof generateSpeech>[0]['providerOptions']>;

export interface AiSdkVoiceOptions {
  /** The provider's name of the voice. @defaultValue that of the provider */
  readonly voice?: string;
  /**
   * WAV or raw PCM of 16 bits, by the provider's name: `wav`, `pcm`, `pcm_24000`, `linear16`. Other formats
   * are not decoded. @defaultValue 'wav'
   */
  readonly outputFormat?: string;
  /** The rate of raw PCM. @defaultValue the rate in the name (`pcm_16000`), else 24000 */
  readonly sampleRateHz?: number;
  /** The style of speech, for models that support it. @defaultValue none */
  readonly instructions?: string;
  /** ISO 639-1, such as `en`. @defaultValue none */
  readonly language?: string;
  /** As for `generateSpeech`. @defaultValue none */
  readonly providerOptions?: ProviderOptions;
  /** @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The first pause is two seconds. @defaultValue 1 */
  readonly maxRetries?: number;
}

export const defaultAiSdkVoiceOptions = {
  outputFormat: 'wav',
  maxRetries: 1,
} as const satisfies AiSdkVoiceOptions;

const text = z.string().min(1);

const optionsSchema = z.strictObject({
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
 * Creates a `Voice` from a speech model: `aiSdkVoice(openai.speech('gpt-4o-mini-tts'), { voice: 'coral' })`.
 * For `withVoice`, `localVoice`, and fillers. Each sentence is one `generateSpeech`.
 *
 * Its promises reject with a `ProviderError`: `UNSUPPORTED_AUDIO` if the provider returned neither WAV nor
 * PCM, `VOICE_FAILED` for anything else.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function aiSdkVoice(model: SpeechModel, options: AiSdkVoiceOptions = {}): Voice {
  check('aiSdkVoice', optionsSchema, options);
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
        // Many providers lack this setting, and warn.
        ...(speed !== 1 && { speed }),
        abortSignal: signal,
      }).then(
        ({ audio }) => audio.uint8Array,
        (cause: unknown) => {
          // The text has nothing to pronounce.
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
