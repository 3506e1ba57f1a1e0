// The built-in speech engine: Silero and Moonshine in one thread, Flite in another. English; no key, no
// network, about 350 MB of memory. Models with an external replacement are not loaded.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { wholeSoundOf, type Transcriber, type Voice } from '../../../voice/speech/voice.ts';
import { FLITE_VOICES } from './flite.ts';
import { SILERO_WINDOW_MS } from './silero.ts';
import type { SpeechDetector, SpeechEngine, SpokenRequest } from './speech-engine.ts';
import { SpeechThread } from './speech-thread.ts';

/** External speech to text and text to speech, in place of the engine's own. */
export interface SpeechParts {
  readonly transcriber?: Transcriber | undefined;
  readonly voice?: Voice | undefined;
}

/** The name of an external voice. */
const OWN_VOICE = 'own';

/** Creates the engine; loads nothing before `start`. `parts`: the external replacements. */
export function createBuiltInEngine(parts: SpeechParts = {}): SpeechEngine {
  const transcriber = new SpeechThread(parts.transcriber ? 'detector' : 'transcriber');
  const mouth = parts.voice ? null : new SpeechThread('mouth');
  let lastStreamId = 0;

  const createDetector = (sampleRateHz: number): SpeechDetector => {
    const streamId = (lastStreamId += 1);
    let closed = false;
    return {
      windowMs: SILERO_WINDOW_MS,
      push: async (samples) =>
        closed ? [] : transcriber.call('detect', { streamId, sound: { samples, sampleRateHz } }),
      close: () => {
        if (closed) return;
        closed = true;
        // If the thread is gone, so is the stream.
        transcriber.call('forget', { streamId }).catch(() => undefined);
      },
    };
  };

  const engine: SpeechEngine = {
    voices: FLITE_VOICES,
    start: async () => {
      await Promise.all([transcriber.start(), mouth?.start()]);
    },
    createDetector,
    transcribe: (speech: AudioFrame) => transcriber.call('transcribe', speech),
    synthesize: async (request: SpokenRequest) =>
      mouth ? mouth.call('synthesize', request) : SILENCE,
    close: async () => {
      await Promise.all([transcriber.close(), mouth?.close()]);
    },
  };
  return withParts(engine, parts);
}

const SILENCE: AudioFrame = { samples: new Int16Array(0), sampleRateHz: 24_000 };

/** Returns the engine with external replacements. Only the engine is started and closed. */
export function withParts(engine: SpeechEngine, { transcriber, voice }: SpeechParts): SpeechEngine {
  return {
    voices: voice ? [OWN_VOICE] : engine.voices,
    start: () => engine.start(),
    createDetector: (sampleRateHz) => engine.createDetector(sampleRateHz),
    transcribe: (speech) => (transcriber ?? engine).transcribe(speech),
    synthesize: (request, signal = new AbortController().signal) =>
      voice
        ? wholeSoundOf(voice, { text: request.text, speed: request.speed, signal })
        : engine.synthesize(request, signal),
    close: () => engine.close(),
  };
}
