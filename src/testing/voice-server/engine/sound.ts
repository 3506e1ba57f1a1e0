// The fake's audio: a quiet tone that is split into pieces, each with the words that start in it.

import { placeWords } from '../../../voice/speech/spoken-words.ts';
import type { VoiceStep } from './control.ts';

const MS_PER_CHARACTER = 60;
const TONE_HZ = 220;
const LOUDNESS = 3_000;
export const PIECE_MS = 100;

/** Returns the default duration of a spoken text. */
export function speechMs(text: string): number {
  return Math.max(1, text.length) * MS_PER_CHARACTER;
}

/** Returns the PCM16 samples of a tone that continues from `fromMs`. */
export function tone(fromMs: number, durationMs: number, sampleRateHz: number): Int16Array {
  const samples = new Int16Array(Math.round((durationMs * sampleRateHz) / 1000));
  const first = Math.round((fromMs * sampleRateHz) / 1000);
  for (let index = 0; index < samples.length; index += 1) {
    const phase = (2 * Math.PI * TONE_HZ * (first + index)) / sampleRateHz;
    samples[index] = Math.round(LOUDNESS * Math.sin(phase));
  }
  return samples;
}

/** A piece of speech: its audio and the words that start in it. */
export interface SpeechPiece {
  readonly words: string;
  readonly startMs: number;
  readonly durationMs: number;
}

/** Splits a spoken step into pieces of 100 ms. Together, the pieces contain every word. */
export function* piecesOf(step: Extract<VoiceStep, { say: string }>): Generator<SpeechPiece> {
  const totalMs = step.durationMs ?? speechMs(step.say);
  const words = placeWords(step.say, 0, totalMs);
  for (let startMs = 0; startMs < totalMs; startMs += PIECE_MS) {
    const endMs = Math.min(totalMs, startMs + PIECE_MS);
    const later = endMs >= totalMs ? -1 : words.findIndex((word) => word.startMs >= endMs);
    const due = words.splice(0, later < 0 ? words.length : later);
    yield {
      words: due.map(({ text }) => text).join(''),
      startMs,
      durationMs: endMs - startMs,
    };
  }
}
