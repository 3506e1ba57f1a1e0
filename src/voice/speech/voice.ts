// The ports for text to speech (`Voice`) and speech to text (`Transcriber`). `offstage/ai-sdk-speech` adapts the speech
// models of providers; any other object that implements the method works too.

import { raceAbort } from '../../values/race-abort.ts';
import { ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { anObject, check } from '../../values/checks.ts';
import { isSampleRateHz } from '../audio/resampler.ts';

/** A request for speech. */
export interface VoiceRequest {
  /** About one sentence, as written by the model. */
  readonly text: string;
  /** The relative speed; 1 is the voice's normal pace. @defaultValue 1 */
  readonly speed?: number;
  /** Aborts when the speech is no longer needed. The synthesis should then stop, and may reject. */
  readonly signal: AbortSignal;
}

/** Text to speech. */
export interface Voice {
  /**
   * Returns the audio for a text (mono, 8000 to 48000 Hz), either as a whole or in pieces as they are generated.
   * Returns no samples if the text contains nothing to say.
   */
  synthesize(request: VoiceRequest): Promise<AudioFrame> | AsyncIterable<AudioFrame>;
}

/** Speech to text. */
export interface Transcriber {
  /** Returns the words in one stretch of speech (mono, about 0.2 to 25 seconds); empty if there are none. */
  transcribe(speech: AudioFrame): Promise<string>;
}

/** @param option The name of the option, for the error message. @throws {ConfigurationError} `INVALID_OPTION` */
export function checkVoice(option: string, voice: unknown): void {
  checkMethod(option, 'a voice', voice, 'synthesize');
}

/** @param option The name of the option, for the error message. @throws {ConfigurationError} `INVALID_OPTION` */
export function checkTranscriber(option: string, transcriber: unknown): void {
  checkMethod(option, 'transcriber', transcriber, 'transcribe');
}

function checkMethod(option: string, what: string, value: unknown, method: string): void {
  check(`\`${option}\``, anObject(`${what}: an object with a method \`${method}\``, method), value);
}

/**
 * Streams a voice's audio, in any of the forms that a voice can return. Ends immediately when the signal aborts, even
 * if the voice ignores the signal.
 * @throws {ProviderError} `INVALID_AUDIO` if the audio is invalid
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
    // This call is not awaited, because `return` of a busy iterator would delay the end.
    void Promise.resolve(pieces.return?.()).catch(() => {});
  }
}

/** Returns the complete audio. @throws {ProviderError} `INVALID_AUDIO`, and the voice's errors */
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
