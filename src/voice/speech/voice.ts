// The ports to a voice and to ears of one's own: text to speech and speech to text, whoever
// does them. A provider's models are adapted by `offstage/ai-sdk-speech`; anything else that can
// do the one thing is one, too.

import { raceAbort } from '../../actors/runtime/race-abort.ts';
import { ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { anObject, check } from '../../values/checks.ts';
import { isSampleRateHz } from '../audio/resampler.ts';

/** What is to be said. */
export interface VoiceRequest {
  /** A sentence or so, as the model wrote it. */
  readonly text: string;
  /** 1 is the voice's own pace. @defaultValue 1 */
  readonly speed?: number;
  /** Nobody wants to hear it any more: what is under way shall stop, and may reject. */
  readonly signal: AbortSignal;
}

/** Speaks: text to speech. */
export interface Voice {
  /**
   * The sound of a text, mono, 8000 to 48000 Hz: whole, or in pieces as it is made. No samples
   * where there is nothing that can be pronounced.
   */
  synthesize(request: VoiceRequest): Promise<AudioFrame> | AsyncIterable<AudioFrame>;
}

/** Understands: speech to text. */
export interface Ears {
  /** The words of one stretch of speech (mono, about 0.2 to 25 seconds); empty where there are none. */
  transcribe(speech: AudioFrame): Promise<string>;
}

/** `option`: what it was given as. @throws {ConfigurationError} `INVALID_OPTION` */
export function checkVoice(option: string, voice: unknown): void {
  checkMethod(option, 'a voice', voice, 'synthesize');
}

/** `option`: what they were given as. @throws {ConfigurationError} `INVALID_OPTION` */
export function checkEars(option: string, ears: unknown): void {
  checkMethod(option, 'ears', ears, 'transcribe');
}

function checkMethod(option: string, what: string, value: unknown, method: string): void {
  check(`\`${option}\``, anObject(`${what}: an object with a method \`${method}\``, method), value);
}

/**
 * What a voice says, as a stream, whichever form it has. Ends at once when the signal aborts,
 * whether the voice heeds it or not.
 * @throws {ProviderError} `INVALID_AUDIO` for what is no sound
 */
export async function* soundOf(voice: Voice, request: VoiceRequest): AsyncGenerator<AudioFrame> {
  const { signal } = request;
  if (signal.aborted) return;
  const pieces = iteratorOf(voice.synthesize(request));
  try {
    for (;;) {
      const next = await raceAbort(pieces.next(), signal);
      if (next.done) return;
      yield checkedSound(next.value);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    // One that is in the middle of something would keep us waiting.
    void Promise.resolve(pieces.return?.()).catch(() => {});
  }
}

/** All of a sound. @throws {ProviderError} `INVALID_AUDIO`, and what the voice throws */
export async function wholeSoundOf(voice: Voice, request: VoiceRequest): Promise<AudioFrame> {
  const frames: AudioFrame[] = [];
  for await (const frame of soundOf(voice, request)) frames.push(frame);
  const [first] = frames;
  if (!first) return { samples: new Int16Array(0), sampleRateHz: 24_000 };
  const samples = new Int16Array(frames.reduce((sum, frame) => sum + frame.samples.length, 0));
  let filled = 0;
  for (const frame of frames) {
    samples.set(frame.samples, filled);
    filled += frame.samples.length;
  }
  return { samples, sampleRateHz: first.sampleRateHz };
}

function iteratorOf(sound: ReturnType<Voice['synthesize']>): AsyncIterator<AudioFrame> {
  if (Symbol.asyncIterator in sound) return sound[Symbol.asyncIterator]();
  return (async function* () {
    yield await sound;
  })();
}

function checkedSound(frame: AudioFrame): AudioFrame {
  if (frame?.samples instanceof Int16Array && isSampleRateHz(frame.sampleRateHz)) return frame;
  const message =
    'Expected a voice to give { samples: Int16Array, sampleRateHz: 8000 to 48000 }, ' +
    `got ${typeof frame?.samples} at ${String(frame?.sampleRateHz)} Hz`;
  throw new ProviderError('INVALID_AUDIO', message);
}
