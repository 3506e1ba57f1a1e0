// `withVoice`: makes a transport with a text model appear as one with a speaking model.

import { check, type ChecksOf } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { isSampleRateHz } from '../audio/resampler.ts';
import { checkVoice, soundOf, type Voice } from '../speech/voice.ts';
import type { Transport } from '../connection/transport.ts';
import { VoicedConnection } from './voiced-connection.ts';
import { cutsWords } from './voiced-memory.ts';

export interface WithVoiceOptions {
  /** The text to speech: `aiSdkVoice(…)` of `offstage/ai-sdk-speech`, or an implementation of your own. */
  readonly voice: Voice;
  /**
   * The rate of the sound that the session gets; the voice's sound is resampled to it. @defaultValue 24000
   */
  readonly sampleRateHz?: number;
  /**
   * A sentence is synthesised when at most this much sound is unplayed, in milliseconds: this much is wasted,
   * and paid for, when the user interrupts. @defaultValue 5000
   */
  readonly maxAheadMs?: number;
  /** The speed of the voice: 1 is its own pace, 0.25 to 4. @defaultValue 1 */
  readonly speed?: number;
  /**
   * Returns the text to synthesise for a sentence of the model; an empty result is skipped.
   * @defaultValue removes the marks of Markdown
   */
  readonly spoken?: (text: string) => string;
}

export const defaultWithVoiceOptions = {
  sampleRateHz: 24_000,
  maxAheadMs: 5000,
  speed: 1,
} as const satisfies Partial<WithVoiceOptions>;

const optionsSchema = z.strictObject({
  voice: z.custom<Voice>().optional(),
  sampleRateHz: z.number().refine(isSampleRateHz, 'expected 8000 to 48000').optional(),
  maxAheadMs: z.number().nonnegative().optional(),
  speed: z.number().min(0.25).max(4).optional(),
  spoken: z.custom<(text: string) => string>((value) => typeof value === 'function').optional(),
} satisfies ChecksOf<WithVoiceOptions>);

/** A transport that speaks in a voice of the session. */
export interface VoicedTransport extends Transport {
  readonly voice: Voice;
}

/**
 * Gives a voice to a text model, over any transport whose `capabilities.output` is `text`, such as
 * `openaiRealtime({ output: 'text' })`: the model's text is cut into sentences, each is synthesised ahead of
 * playback, and the part that the user did not hear is removed from the model's memory. A failing voice ends
 * the response as failed: its delivery is offered again.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`, or `TEXT_OUTPUT_NEEDED` for a transport whose model speaks
 *   itself.
 */
export function withVoice(transport: Transport, options: WithVoiceOptions): VoicedTransport {
  const { voice, sampleRateHz, maxAheadMs, speed, spoken } = checked(options);
  const { capabilities: inner } = check(
    'withVoice(transport, options)',
    transportSchema,
    transport,
  );
  if (inner.output !== 'text') {
    throw new ConfigurationError(
      'TEXT_OUTPUT_NEEDED',
      `withVoice: the model of \`${transport.name}\` speaks itself. Expected a transport that answers in text, such as openaiRealtime({ output: 'text' })`,
    );
  }
  return {
    name: `${transport.name}+voice`,
    voice,
    capabilities: Object.freeze({
      ...inner,
      output: 'audio',
      outputSampleRateHz: sampleRateHz,
      truncatesAudio: cutsWords(inner),
    }),
    connect: (configuration, context) =>
      new VoicedConnection(transport.connect(configuration, context), context, {
        capabilities: inner,
        sampleRateHz,
        maxAheadMs,
        async *sound(text, signal) {
          const words = spoken(text);
          if (words !== '') yield* soundOf(voice, { text: words, speed, signal });
        },
      }),
  };
}

const transportSchema = z.custom<Transport>((value) => {
  const { name, connect, capabilities } = (value ?? {}) as Partial<Transport>;
  return (
    typeof name === 'string' &&
    typeof connect === 'function' &&
    typeof capabilities?.output === 'string'
  );
}, 'expected a transport');

function checked(options: WithVoiceOptions) {
  const given = readable('withVoice', options);
  check('withVoice', optionsSchema, given);
  checkVoice('voice', given.voice);
  return { spoken: withoutMarks, ...defaultWithVoiceOptions, ...given };
}

/** Returns the text as it is read aloud; empty if it has nothing to pronounce. */
function withoutMarks(text: string): string {
  const words = text
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replace(/[*_`#~|>]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /[\p{L}\p{N}]/u.test(words) ? words : '';
}
