// Transcribes a stretch of sound: finds the speech in it, cuts it out with a little of the silence around it
// (the model hears nothing in long silence), and has each part transcribed.

import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { silenceThreshold } from './endpointing.ts';
import type { SpeechEngine } from './speech/speech-engine.ts';

/** Known speech probabilities of a sound. */
export interface KnownSpeech {
  /** The probability of speech in each window, from the first sample on. */
  readonly windows: readonly number[];
  readonly windowMs: number;
  readonly threshold: number;
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

const DEFAULT_THRESHOLD = 0.5;
/** A longer pause separates two transcriptions. */
const LONGEST_PAUSE_MS = 600;
/** The model cannot handle more at once. */
const LONGEST_SPAN_MS = 24_000;
/** A span that is too long is cut at the quietest window of its last part. */
const CUT_WITHIN_MS = 6_000;
/** Silence kept before and after speech; the second setting is tried if the first gives no words. */
const PADDINGS = [
  { beforeMs: 250, afterMs: 300 },
  { beforeMs: 100, afterMs: 100 },
] as const;

/** Returns the words in a sound; empty if there are none. @throws the engine's error */
export async function hear(
  engine: SpeechEngine,
  sound: AudioFrame,
  known?: KnownSpeech,
): Promise<string> {
  const speech = known ?? (await detect(engine, sound));
  const words: string[] = [];
  for (const span of findSpeech(speech)) {
    const text = await transcribe(engine, sound, span);
    if (text !== '') words.push(text);
  }
  return words.join(' ');
}

/** Returns the stretches of speech: close ones joined, long ones cut. */
export function findSpeech({ windows, windowMs, threshold }: KnownSpeech): Span[] {
  const spans: { first: number; last: number }[] = [];
  let current: { first: number; last: number } | undefined;
  for (const [index, probability] of windows.entries()) {
    const pauseMs = current === undefined ? Infinity : (index - current.last - 1) * windowMs;
    if (current !== undefined && pauseMs < LONGEST_PAUSE_MS) {
      if (probability >= silenceThreshold(threshold)) current.last = index;
    } else if (probability >= threshold) {
      current = { first: index, last: index };
      spans.push(current);
    }
  }
  return spans.flatMap(({ first, last }) =>
    cutSpan(windows, first, last, Math.floor(LONGEST_SPAN_MS / windowMs), windowMs),
  );
}

function cutSpan(
  windows: readonly number[],
  first: number,
  last: number,
  longest: number,
  windowMs: number,
): Span[] {
  const spans: Span[] = [];
  let start = first;
  while (last - start + 1 > longest) {
    let cut = start + longest - 1;
    const earliest = cut - Math.floor(CUT_WITHIN_MS / windowMs);
    for (let index = cut; index > earliest; index -= 1) {
      if ((windows[index] as number) < (windows[cut] as number)) cut = index;
    }
    spans.push({ startMs: start * windowMs, endMs: cut * windowMs });
    start = cut;
  }
  spans.push({ startMs: start * windowMs, endMs: (last + 1) * windowMs });
  return spans;
}

async function detect(engine: SpeechEngine, sound: AudioFrame): Promise<KnownSpeech> {
  const detector = engine.createDetector(sound.sampleRateHz);
  try {
    const windows = await detector.push(sound.samples);
    return { windows, windowMs: detector.windowMs, threshold: DEFAULT_THRESHOLD };
  } finally {
    detector.close();
  }
}

async function transcribe(engine: SpeechEngine, sound: AudioFrame, span: Span): Promise<string> {
  const sampleAt = (ms: number): number => Math.round((ms * sound.sampleRateHz) / 1000);
  for (const { beforeMs, afterMs } of PADDINGS) {
    const start = Math.max(0, sampleAt(span.startMs - beforeMs));
    const samples = sound.samples.slice(start, sampleAt(span.endMs + afterMs));
    const text = await engine.transcribe({ samples, sampleRateHz: sound.sampleRateHz });
    if (text !== '') return text;
  }
  return '';
}
