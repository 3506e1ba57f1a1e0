// The built-in speech engine: Silero and Moonshine in one thread, Flite in another.
// English; no key, no network, about 350 MB of memory.

import type { AudioFrame } from '../../../voice/audio-frame.ts';
import { FLITE_VOICES } from './flite.ts';
import { SILERO_WINDOW_MS } from './silero.ts';
import type { SpeechDetector, SpeechEngine, SpokenRequest } from './speech-engine.ts';
import { SpeechThread } from './speech-thread.ts';

/** Makes the engine; nothing is loaded before `start`. */
export function createBuiltInEngine(): SpeechEngine {
  const ears = new SpeechThread('ears');
  const mouth = new SpeechThread('mouth');
  let lastStreamId = 0;

  const createDetector = (sampleRateHz: number): SpeechDetector => {
    const streamId = (lastStreamId += 1);
    let closed = false;
    return {
      windowMs: SILERO_WINDOW_MS,
      push: async (samples) =>
        closed ? [] : ears.call('detect', { streamId, sound: { samples, sampleRateHz } }),
      close: () => {
        if (closed) return;
        closed = true;
        // When the thread is gone, so is the stream.
        ears.call('forget', { streamId }).catch(() => undefined);
      },
    };
  };

  return {
    voices: FLITE_VOICES,
    start: async () => {
      await Promise.all([ears.start(), mouth.start()]);
    },
    createDetector,
    transcribe: (speech: AudioFrame) => ears.call('transcribe', speech),
    synthesize: (request: SpokenRequest) => mouth.call('synthesize', request),
    close: async () => {
      await Promise.all([ears.close(), mouth.close()]);
    },
  };
}
