// Transcribes audio. It transcribes the spans of speech with only a little silence around each, because the model does
// not transcribe anything if the silence is long.
//
// HEARING-1. If a short utterance matches no option while a choice is open, it is transcribed again with a different
//     amount of silence around it. The second result replaces the first only if it exactly matches an option or a
//     command. This never happens for an approval, or if the first result is an answer.

import { languageFor } from '../../language/languages.ts';
import { matchAnswer } from '../../language/match-answer.ts';
import { sameWords, tablesOf } from '../../language/tables.ts';
import { wordsOf } from '../../language/utterance.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { LONGEST_PAUSE_MS, silenceThreshold } from './endpointer.ts';
import type { OpenQuestion } from './end-of-turn.ts';
import type { SpeechEngine } from './speech/speech-engine.ts';

/** The speech probabilities that have already been computed for the audio. */
export interface KnownSpeech {
  /** The speech probability of each window, starting at the first sample. */
  readonly windows: readonly number[];
  readonly windowMs: number;
  readonly threshold: number;
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

const DEFAULT_THRESHOLD = 0.5;
/** The longest span that the model can transcribe in one call. */
const LONGEST_SPAN_MS = 24_000;
/** The final part of a long span. The span is cut at the quietest window in this part. */
const CUT_WITHIN_MS = 6_000;
interface Padding {
  readonly beforeMs: number;
  readonly afterMs: number;
}

/**
 * The durations of silence to keep before and after speech. The second value is tried if the first one yields no words.
 */
const PADDINGS: readonly Padding[] = [
  { beforeMs: 250, afterMs: 300 },
  { beforeMs: 100, afterMs: 100 },
];
/** The pause that separates two transcriptions. */
const PARTING_PAUSE_MS = LONGEST_PAUSE_MS;
/** HEARING-1: an utterance of this length or longer is not transcribed again. */
const SHORT_MS = 1_200;
/**
 * With these paddings, 41 of 48 one-word answers are transcribed correctly, compared with 34 with `PADDINGS` alone.
 * None of the answers was transcribed as another word of the list.
 */
const OTHER_PADDINGS: readonly Padding[] = [
  { beforeMs: 100, afterMs: 100 },
  { beforeMs: 400, afterMs: 200 },
  { beforeMs: 250, afterMs: 100 },
  { beforeMs: 150, afterMs: 500 },
];

/** The question and the language of the words. */
export interface Context {
  readonly question: OpenQuestion | null;
  /** The language of the words. */
  readonly language: string;
}

/** Like `transcribeSound`, but for an utterance while a question is open (HEARING-1). */
export async function hearUtterance(
  engine: SpeechEngine,
  sound: AudioFrame,
  speech: KnownSpeech,
  context: Context,
): Promise<string> {
  const text = await transcribeSound(engine, sound, speech);
  const [span, ...others] = findSpeech(speech);
  if (span === undefined || others.length > 0 || span.endMs - span.startMs >= SHORT_MS) return text;
  const { question, language } = context;
  if (question?.kind !== 'choice') return text;
  const isUnknown = text === '' || matchAnswer(question, text, { language }).kind === 'unclear';
  if (!isUnknown) return text;
  for (const padding of OTHER_PADDINGS) {
    const other = await engine.transcribe(cutOut(sound, span, padding));
    if (isExact(other, question, language)) return other;
  }
  return text;
}

/** Returns whether a text exactly matches an option or a command. */
function isExact(text: string, { options }: OpenQuestion, language: string): boolean {
  const tables = tablesOf(languageFor(language));
  const words = wordsOf(text, tables.language);
  if (words.length === 0) return false;
  const { yes, no, holds, commands, repeatsAlone } = tables.phrases;
  const isOneOf = (phrases: readonly (readonly string[])[]): boolean =>
    phrases.some((phrase) => sameWords(words, phrase));
  // A yes or no counts only in the first result.
  if (isOneOf(yes) || isOneOf(no)) return false;
  const labels = options.map(({ label }) => wordsOf(label, tables.language));
  return isOneOf(labels) || isOneOf([...holds, ...commands, ...repeatsAlone]);
}

/** Returns the words in the audio; empty if there are none. @throws the engine's error */
export async function transcribeSound(
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

/** Returns the speech spans. Spans that are close together are joined, and long spans are split. */
export function findSpeech({ windows, windowMs, threshold }: KnownSpeech): Span[] {
  const spans: { first: number; last: number }[] = [];
  let current: { first: number; last: number } | undefined;
  for (const [index, probability] of windows.entries()) {
    const pauseMs = current === undefined ? Infinity : (index - current.last - 1) * windowMs;
    if (current !== undefined && pauseMs < PARTING_PAUSE_MS) {
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
  for (const padding of PADDINGS) {
    const text = await engine.transcribe(cutOut(sound, span, padding));
    if (text !== '') return text;
  }
  return '';
}

function cutOut(
  { samples, sampleRateHz }: AudioFrame,
  { startMs, endMs }: Span,
  { beforeMs, afterMs }: Padding,
): AudioFrame {
  const sampleAt = (ms: number): number => Math.round((ms * sampleRateHz) / 1000);
  const start = Math.max(0, sampleAt(startMs - beforeMs));
  // Fills the span with zeros where it extends past the end of the audio.
  const cut = new Int16Array(sampleAt(endMs + afterMs) - start);
  cut.set(samples.subarray(start, start + cut.length));
  return { samples: cut, sampleRateHz };
}
