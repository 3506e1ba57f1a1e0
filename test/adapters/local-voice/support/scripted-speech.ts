// A speech engine without speech. The audio is a constant whose loudness carries its meaning. Loud audio is speech;
// `words` contains the words for each loudness.

import type { SpeechDetector, SpeechEngine } from '../../../../src/adapters/local-voice/index.ts';

const RATE_HZ = 24_000;
const WINDOW_MS = 20;
const WINDOW_SAMPLES = (RATE_HZ * WINDOW_MS) / 1000;
const SPEECH_LOUDNESS = 500;
/** The duration of one character of synthesized text. */
export const MS_PER_CHARACTER = 20;

export interface ScriptedSpeech extends SpeechEngine {
  /** The synthesized texts, in order. */
  readonly spoken: { text: string; voice: string; speed: number }[];
  /** The results of the next calls of `transcribe`; after those, `words` decides. */
  readonly nextTranscriptions: (() => Promise<string>)[];
  /** Makes the next push to a detector reject. */
  failDetection(): void;
  /** Detectors answer when this promise resolves. */
  detectionHeldUntil: Promise<unknown>;
  closed: boolean;
}

export function scriptedSpeech(words: Readonly<Record<number, string>> = {}): ScriptedSpeech {
  let detectionFails = false;
  const engine: ScriptedSpeech = {
    voices: ['slt', 'rms'],
    spoken: [],
    nextTranscriptions: [],
    closed: false,
    detectionHeldUntil: Promise.resolve(),
    failDetection: () => {
      detectionFails = true;
    },
    start: () => Promise.resolve(),
    createDetector: (sampleRateHz): SpeechDetector => {
      if (sampleRateHz !== RATE_HZ) throw new Error(`expected ${RATE_HZ}, got ${sampleRateHz}`);
      let rest: number[] = [];
      return {
        windowMs: WINDOW_MS,
        push: (samples) => {
          if (detectionFails) {
            detectionFails = false;
            return Promise.reject(new Error('the transcriber is gone'));
          }
          rest.push(...samples);
          const windows: number[] = [];
          while (rest.length >= WINDOW_SAMPLES) {
            const loudness = rest[WINDOW_SAMPLES / 2] as number;
            windows.push(loudness >= SPEECH_LOUDNESS ? 0.9 : 0.01);
            rest = rest.slice(WINDOW_SAMPLES);
          }
          return engine.detectionHeldUntil.then(() => windows);
        },
        close: () => undefined,
      };
    },
    transcribe: ({ samples }) => {
      const scripted = engine.nextTranscriptions.shift();
      if (scripted !== undefined) return scripted();
      const loudness = samples.reduce((most, sample) => Math.max(most, sample), 0);
      return Promise.resolve(words[loudness] ?? '');
    },
    synthesize: (request) => {
      engine.spoken.push(request);
      const samples = new Int16Array((request.text.length * MS_PER_CHARACTER * RATE_HZ) / 1000);
      return Promise.resolve({ samples: samples.fill(7), sampleRateHz: RATE_HZ });
    },
    close: () => {
      engine.closed = true;
      return Promise.resolve();
    },
  };
  return engine;
}

/** Audio of constant loudness. */
export function tone(loudness: number, durationMs: number): Int16Array {
  return new Int16Array((durationMs * RATE_HZ) / 1000).fill(loudness);
}
