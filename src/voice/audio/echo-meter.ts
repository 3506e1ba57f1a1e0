// Measures how much the microphone's sound is like what the loudspeaker plays. The loudness of an echo rises and falls
// with that of the loudspeaker, however quiet it is and whatever the room adds; the user's voice does not.
//
// Owns:     the loudness of the last seconds of both sounds, on the session's clock.
// Does not: decide what an utterance is, remove an echo, or read a clock.

import type { AudioFrame } from './audio-frame.ts';

/** The microphone hears the loudspeaker, if both are at least this much alike. */
export const ECHO_LIKENESS = 0.8;

const BIN_MS = 16;
/** 800 ms: of shorter sounds the user's own is too often like another by chance. */
const WINDOW_BINS = 50;
/** The sound takes this long, in bins, from the loudspeaker to the session; reports of a client may be late as well. */
const LAGS = { least: -8, most: 31 };
const KEPT_BINS = 256;
/** A stream whose sound comes this much later than expected was interrupted; on a busy machine, sound is often late. */
const GAP_MS = 500;
/** After this long without both sounds there is nothing to compare. */
const STALE_MS = 400;
const SILENCE_DB = -90;
/** A sound whose level varies less has no shape. */
const LEAST_DEVIATION_DB = 3;
/** The level is that of every fourth sample. */
const STRIDE = 4;
const MAX_ITEMS = 50;

export interface Comparison {
  /** 0 to 1. */
  readonly likeness: number;
  /** How much louder the microphone's sound is than the loudspeaker's. */
  readonly gainDb: number;
}

interface Said {
  readonly levels: Levels;
  /** How many of its bins have been played. */
  played: number;
}

export class EchoMeter {
  readonly #said = new Map<string, Said>();
  readonly #nearLevels = new Levels();
  readonly #near = new Timeline();
  readonly #far = new Timeline();

  /** Records sound that is sent to the loudspeaker. */
  said({ itemId, ...frame }: AudioFrame): void {
    if (itemId === undefined) return;
    let said = this.#said.get(itemId);
    if (!said) this.#said.set(itemId, (said = { levels: new Levels(), played: 0 }));
    said.levels.take(frame);
    for (const oldest of this.#said.keys()) {
      if (this.#said.size <= MAX_ITEMS) break;
      this.#said.delete(oldest);
    }
  }

  /** Records that the loudspeaker has played an item as far as this. `now`: milliseconds since 1970. */
  played(itemId: string, playedMs: number, now: number): void {
    const said = this.#said.get(itemId);
    if (!said) return;
    const end = Math.min(Math.floor(playedMs / BIN_MS), said.levels.all.length);
    if (end <= said.played) return;
    // The rest of an item before this one is behind it, or was dropped.
    for (const earlier of this.#said.keys()) {
      if (earlier === itemId) break;
      this.#said.delete(earlier);
    }
    // Between two items there may be a pause of any length.
    const gapMs = said.played === 0 ? BIN_MS : GAP_MS;
    this.#far.append(said.levels.all.slice(said.played, end), now, gapMs);
    said.played = end;
  }

  /** Records sound of the microphone. */
  heard(frame: AudioFrame, now: number): void {
    this.#nearLevels.take(frame);
    this.#near.append(this.#nearLevels.all.splice(0), now, GAP_MS);
  }

  /** Compares the last 800 ms of both; null if one of them is not known that long. */
  compare(now: number): Comparison | null {
    const endAt = Math.min(this.#near.endAt, this.#far.endAt);
    if (!(now - endAt < STALE_MS)) return null;
    const near = this.#near.window(endAt, WINDOW_BINS);
    if (near === null) return null;
    let best: Comparison = { likeness: 0, gainDb: SILENCE_DB };
    for (let lag = LAGS.least; lag <= LAGS.most; lag += 1) {
      const far = this.#far.window(endAt - lag * BIN_MS, WINDOW_BINS);
      if (far === null) continue;
      const likeness = correlation(near, far);
      if (likeness >= best.likeness) best = { likeness, gainDb: mean(near) - mean(far) };
    }
    return best;
  }
}

/** The levels of a stream of sound, one for each bin. */
class Levels {
  readonly all: number[] = [];
  #energy = 0;
  #samples = 0;

  take({ samples, sampleRateHz }: AudioFrame): void {
    const perBin = (sampleRateHz * BIN_MS) / 1000;
    for (let index = 0; index < samples.length; index += STRIDE) {
      const sample = (samples[index] ?? 0) / 32_768;
      this.#energy += sample * sample;
      this.#samples += STRIDE;
      if (this.#samples < perBin) continue;
      this.all.push(10 * Math.log10((this.#energy * STRIDE) / this.#samples + 1e-9));
      this.#energy = 0;
      this.#samples -= perBin;
    }
  }
}

/** Levels on the session's clock. */
class Timeline {
  #levels: number[] = [];
  #endAt = Number.NEGATIVE_INFINITY;

  get endAt(): number {
    return this.#endAt;
  }

  /**
   * Adds levels whose sound ended about now. The sound of a stream has no gaps, only delays: it is silent in between
   * only if it comes more than `gapMs` later than expected.
   */
  append(levels: readonly number[], now: number, gapMs: number): void {
    const endAt = this.#endAt + levels.length * BIN_MS;
    const lateMs = now - endAt;
    // Early sound shows that all before it came late.
    if (lateMs >= 0 && lateMs <= gapMs) this.#endAt = endAt;
    else this.#endAt = now;
    const missing = lateMs > gapMs ? Math.min(KEPT_BINS, Math.floor(lateMs / BIN_MS)) : 0;
    this.#levels.push(...Array.from({ length: missing }, () => SILENCE_DB), ...levels);
    this.#levels = this.#levels.slice(-KEPT_BINS);
  }

  /** Returns the levels before a time; null if they are not known. */
  window(endAt: number, count: number): readonly number[] | null {
    const end = this.#levels.length - Math.round((this.#endAt - endAt) / BIN_MS);
    if (end > this.#levels.length || end < count) return null;
    return this.#levels.slice(end - count, end);
  }
}

/** Pearson's correlation; 0 if one of them has no shape. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  let [both, varianceA, varianceB] = [0, 0, 0];
  for (const [index, value] of a.entries()) {
    const [x, y] = [value - meanA, (b[index] ?? 0) - meanB];
    both += x * y;
    varianceA += x * x;
    varianceB += y * y;
  }
  const least = a.length * LEAST_DEVIATION_DB ** 2;
  return varianceA < least || varianceB < least ? 0 : both / Math.sqrt(varianceA * varianceB);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
