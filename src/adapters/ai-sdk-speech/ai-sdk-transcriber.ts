// Speech to text by a transcription model of the AI SDK, of any provider package.

import { NoTranscriptGeneratedError, transcribe, type TranscriptionModel } from 'ai';
import { z } from 'zod';
import { messageOf, ProviderError } from '../../values/errors.ts';
import { isSampleRateHz, resampleSound } from '../../voice/audio/resampler.ts';
import { encodeWav } from '../../voice/audio/wav.ts';
import type { Transcriber } from '../../voice/speech/voice.ts';
import { check } from '../../values/checks.ts';
import { modelName, modelSchema } from './model-name.ts';

type ProviderOptions = NonNullable<Parameters<typeof transcribe>[0]['providerOptions']>;

export interface AiSdkTranscriberOptions {
  /** The provider options of `transcribe`, such as `{ openai: { language: 'en' } }`. @defaultValue none */
  readonly providerOptions?: ProviderOptions;
  /** @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The rate of the WAV file that is sent. @defaultValue 16000 */
  readonly sampleRateHz?: number;
  /** The first pause is two seconds. @defaultValue 1 */
  readonly maxRetries?: number;
}

export const defaultAiSdkTranscriberOptions = {
  sampleRateHz: 16_000,
  maxRetries: 1,
} as const satisfies AiSdkTranscriberOptions;

const optionsSchema = z.strictObject({
  providerOptions: z.record(z.string(), z.looseObject({})).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  sampleRateHz: z.number().refine(isSampleRateHz, 'expected 8000 to 48000').optional(),
  maxRetries: z.int().nonnegative().optional(),
});

/**
 * Creates `Transcriber` from a transcription model: `aiSdkTranscriber(openai.transcription('gpt-4o-mini-transcribe'))`. For
 * `localVoice`, which detects the beginning and the end of speech; each stretch of it is one `transcribe`.
 *
 * Its promises reject with a `ProviderError` `TRANSCRIPTION_FAILED`.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function aiSdkTranscriber(
  model: TranscriptionModel,
  options: AiSdkTranscriberOptions = {},
): Transcriber {
  check('aiSdkTranscriber', optionsSchema, options);
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
        // The model heard no words.
        if (NoTranscriptGeneratedError.isInstance(cause)) return '';
        const message = `${who}: ${messageOf(cause)}`;
        throw new ProviderError('TRANSCRIPTION_FAILED', message, { cause, retryable: true });
      }
    },
  };
}
