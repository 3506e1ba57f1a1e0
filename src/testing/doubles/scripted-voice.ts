// A voice for tests: a quiet tone that is as long as the spoken text. The same text always sounds the same. The test
// controls latency and failures.

import type { Environment } from '../../actors/ports/environment.ts';
import { ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { Voice, VoiceRequest } from '../../voice/speech/voice.ts';
import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { readable } from '../../values/plain-checks.ts';
const SAMPLE_RATE_HZ = 24_000;
const TONE_HZ = 220;
const LOUDNESS = 3000;

/** The options of `scriptedVoice`. */
export interface ScriptedVoiceOptions {
  /** Its clock measures the time that synthesis takes. */
  readonly environment: Environment;
  /** The duration per spoken character, in milliseconds. @defaultValue 60 */
  readonly msPerCharacter?: number;
  /** The delay before audio is available, in milliseconds. @defaultValue 0 */
  readonly latencyMs?: number;
}

/** A voice for tests: a quiet tone that is as long as the spoken text. */
export interface ScriptedVoice extends Voice {
  /** The texts that the session asked the voice to speak, in order. */
  readonly said: readonly string[];
  /** The texts whose synthesis the session aborted before any audio was available. */
  readonly aborted: readonly string[];
  /** Makes the next `times` requests fail. @defaultValue 1 */
  fail(times?: number): void;
}

const optionsSchema = z.strictObject({
  environment: anObject('an environment'),
  msPerCharacter: z.number().nonnegative().optional(),
  latencyMs: z.number().nonnegative().optional(),
} satisfies ChecksOf<ScriptedVoiceOptions>);

/** Creates a voice for tests of sessions that use the transport `withVoice(…)` or a spoken filler. */
export function scriptedVoice(options: ScriptedVoiceOptions): ScriptedVoice {
  const given = readable('scriptedVoice', options);
  check('scriptedVoice', optionsSchema, given);
  const { environment, msPerCharacter = 60, latencyMs = 0 } = given;
  const said: string[] = [];
  const aborted: string[] = [];
  let failures = 0;
  const speak = async ({ text, speed = 1, signal }: VoiceRequest): Promise<AudioFrame> => {
    said.push(text);
    const fails = failures > 0;
    if (fails) failures -= 1;
    await passed(environment, latencyMs, signal);
    if (signal.aborted) aborted.push(text);
    if (fails) throw new ProviderError('VOICE_FAILED', 'The scripted voice was told to fail');
    const durationMs = (text.length * msPerCharacter) / speed;
    const samples = new Int16Array(Math.round((durationMs * SAMPLE_RATE_HZ) / 1000));
    for (let index = 0; index < samples.length; index += 1)
      samples[index] = Math.round(
        LOUDNESS * Math.sin((2 * Math.PI * TONE_HZ * index) / SAMPLE_RATE_HZ),
      );
    return { samples, sampleRateHz: SAMPLE_RATE_HZ };
  };
  return {
    said,
    aborted,
    synthesize: speak,
    fail: (times = 1) => {
      failures += times;
    },
  };
}

async function passed({ scheduler }: Environment, ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const cancel = scheduler.schedule(resolve, ms);
    const stop = (): void => {
      cancel();
      resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}
