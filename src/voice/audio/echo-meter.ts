// Measures how similar the microphone's audio is to the loudspeaker's. The loudness of an echo rises and falls with the
// loudspeaker's, however quiet the echo is; the loudness of the user's voice does not.
//
//   ECHO-3. In a room whose echo has been measured, audio that is no louder than the echo is attenuated so much that no
//       transport mistakes it for a voice. A voice that speaks over the echo passes unchanged.
//
// Owns:     the loudness of both signals over the last seconds, on the session's clock, and the room's echo.
// Does not: decide what counts as an utterance, or read a clock.

import { forgetOldest } from '../../values/forget-oldest.ts';
import type { AudioFrame } from './audio-frame.ts';

/** The minimum similarity at which the microphone is considered to pick up the loudspeaker. */
export const ECHO_LIKENESS = 0.8;
/** After an echo was measured, the room is assumed to have one for this time. */
const ROOM_MS = 120_000;
/** An echo that is louder than this cannot be distinguished from a voice over the echo. */
const LOUDEST_ECHO_DB = -6;
/** Since it was measured, the room's echo may have become louder by at most this amount. */
const LOUDER_DB = 6;
/**
 * Reports and reflections can shift the echo by this many bins. After a loud bin, a voice lasts for `VOICE_BINS`.
 */
const AROUND_BINS = { before: 8, after: 3 };
const VOICE_BINS = 12;
/** 80 ms, for the quiet start of a word. When the echo is known, the transport receives all audio with this delay. */
const ONSET_BINS = 5;
/** After the last report, the playing audio is known for this many bins. */
const AHEAD_BINS = 40;
/** The gain applied to an echo before a transport receives it: -30 dB. */
const QUIET = 0.03;

const BIN_MS = 16;
/** 800 ms. In a shorter window, the user's voice would too often resemble the loudspeaker's audio by chance. */
const WINDOW_BINS = 50;
/** The delay from the loudspeaker to the session, in bins; negative because a client's reports may be late. */
const LAGS = { least: -8, most: 31 };
const KEPT_BINS = 256;
/** A stream that is more than this late was interrupted. On a busy machine, audio is often late, but by less. */
const GAP_MS = 500;
/** The two streams are not compared if their newest common audio is older than this. */
const STALE_MS = 400;
const SILENCE_DB = -90;
/** If the loudspeaker is quieter than this, no microphone picks up its audio. */
const AUDIBLE_DB = -60;
/**
 * Audio that is quieter than the window's loudest bin by more than this counts as silence. Without this limit, any two
 * silences would match, and so would any two onsets.
 */
const RANGE_DB = 30;
/** 192 ms: the minimum amount of audio on either side for a comparison. */
const LEAST_BINS = 12;
/** A level that varies by less than this is not compared (standard deviation). */
const LEAST_DEVIATION_DB = 3;
/** The levels of a stream are computed from every fourth sample, but a gated frame is measured in full. */
const STRIDE = 4;
const MAX_ITEMS = 50;

export interface Comparison {
  /** 0 to 1. */
  readonly likeness: number;
  /** How much louder the microphone's audio is than the loudspeaker's, in dB. */
  readonly gainDb: number;
}

interface Echo extends Comparison {
  /** The delay of the microphone, in bins. */
  readonly lag: number;
}

/** Audio that the transport has not received yet. */
interface Held {
  readonly samples: Int16Array;
  /** For each sample, 1 if it belongs to the echo. */
  readonly isEcho: Uint8Array;
  readonly sampleRateHz: number;
}

interface Said {
  readonly levels: Levels;
  /** The number of bins that have been played. */
  played: number;
}

export class EchoMeter {
  readonly #said = new Map<string, Said>();
  readonly #nearLevels = new Levels();
  readonly #near = new Timeline();
  readonly #far = new Timeline();
  /** The latest comparison that detected an echo. */
  #heard: Echo | null = null;
  #room: { echo: Echo | null; at: number } = { echo: null, at: Number.NEGATIVE_INFINITY };
  /** The delayed audio, once an echo is known. */
  #held: Held | null = null;
  /** The number of further bins that count as voice. */
  #voiceBins = 0;
  #gain = 1;

  /** Records that an echo was detected. `now`: milliseconds since 1970. */
  wasEcho(now: number): void {
    const heard = this.#heard;
    const isQuiet = heard !== null && heard.gainDb <= LOUDEST_ECHO_DB;
    this.#room = { echo: isQuiet ? heard : this.#room.echo, at: now };
  }

  /** Whether an echo was detected within `ROOM_MS`. */
  echoes(now: number): boolean {
    return now - this.#room.at < ROOM_MS;
  }

  /** Records audio that is sent to the loudspeaker. */
  said({ itemId, ...frame }: AudioFrame): void {
    if (itemId === undefined) return;
    let said = this.#said.get(itemId);
    if (!said) this.#said.set(itemId, (said = { levels: new Levels(), played: 0 }));
    said.levels.take(frame);
    forgetOldest(this.#said, MAX_ITEMS);
  }

  /** Records that the loudspeaker has played an item up to `playedMs`. `now`: milliseconds since 1970. */
  played(itemId: string, playedMs: number, now: number): void {
    const said = this.#said.get(itemId);
    if (!said) return;
    const end = Math.min(Math.floor(playedMs / BIN_MS), said.levels.all.length);
    if (end <= said.played) return;
    // The rest of an earlier item has been played or dropped.
    for (const earlier of this.#said.keys()) {
      if (earlier === itemId) break;
      this.#said.delete(earlier);
    }
    // A pause of any length may separate two items.
    const gapMs = said.played === 0 ? BIN_MS : GAP_MS;
    this.#far.append(said.levels.all.slice(said.played, end), now, gapMs);
    said.played = end;
  }

  /** Compares the last 800 ms of both signals; null if too little of either signal is known. */
  compare(now: number): Comparison | null {
    const endAt = Math.min(this.#near.endAt, this.#far.endAt);
    if (!(now - endAt < STALE_MS)) return null;
    const near = this.#near.window(endAt, WINDOW_BINS);
    if (near === null) return null;
    let best: Echo | null = null;
    for (let lag = LAGS.least; lag <= LAGS.most; lag += 1) {
      const compared = likenessOf(near, this.#far.window(endAt - lag * BIN_MS, WINDOW_BINS));
      if (compared && compared.likeness >= (best?.likeness ?? 0)) best = { ...compared, lag };
    }
    if (best && best.likeness >= ECHO_LIKENESS) this.#heard = best;
    return best;
  }

  /** Records microphone audio and returns it without the room's echo (ECHO-3). */
  heard(frame: AudioFrame, now: number): AudioFrame {
    this.#nearLevels.take(frame);
    this.#near.append(this.#nearLevels.all.splice(0), now, GAP_MS);
    const { echo } = this.#room;
    const isGated = echo !== null && this.echoes(now);
    if (!isGated && this.#held === null) return frame;
    const held = this.#hold(frame);
    const isVoice = echo && isGated ? this.#voiceIn(frame, now, echo) : [];
    const perBin = Math.round((frame.sampleRateHz * BIN_MS) / 1000);
    for (const [bin, voice] of isVoice.entries()) {
      const at = held.samples.length - frame.samples.length + bin * perBin;
      if (voice) held.isEcho.fill(0, Math.max(0, at - ONSET_BINS * perBin), at + perBin);
      else held.isEcho.fill(1, at, at + perBin);
    }
    return { ...frame, samples: this.#release(frame.samples.length) };
  }

  /**
   * Adds a frame to the delayed audio. The delay is needed because the onset of a voice is recognised only once the
   * voice is loud.
   */
  #hold({ samples, sampleRateHz }: AudioFrame): Held {
    const before =
      this.#held?.sampleRateHz === sampleRateHz
        ? this.#held
        : {
            samples: new Int16Array(Math.round((sampleRateHz * ONSET_BINS * BIN_MS) / 1000)),
            isEcho: new Uint8Array(Math.round((sampleRateHz * ONSET_BINS * BIN_MS) / 1000)),
          };
    const all = new Int16Array(before.samples.length + samples.length);
    all.set(before.samples);
    all.set(samples, before.samples.length);
    const isEcho = new Uint8Array(all.length);
    isEcho.set(before.isEcho);
    return (this.#held = { samples: all, isEcho, sampleRateHz });
  }

  #release(length: number): Int16Array {
    const held = this.#held as Held;
    const released = held.samples.slice(0, length);
    for (const [index, sample] of released.entries()) {
      // An abrupt change of gain would be audible as a click.
      this.#gain += ((held.isEcho[index] ? QUIET : 1) - this.#gain) / 32;
      released[index] = sample * this.#gain;
    }
    this.#held = {
      ...held,
      samples: held.samples.slice(length),
      isEcho: held.isEcho.slice(length),
    };
    return released;
  }

  /** Returns, for each bin of a frame, whether the bin contains anything other than echo. */
  #voiceIn({ samples, sampleRateHz }: AudioFrame, now: number, { lag, gainDb }: Echo): boolean[] {
    const perBin = Math.round((sampleRateHz * BIN_MS) / 1000);
    const silenceDb = Math.max(AUDIBLE_DB, this.#near.quietDb + LOUDER_DB);
    const isVoice: boolean[] = [];
    for (let at = 0; at < samples.length; at += perBin) {
      const level = levelOf(samples.subarray(at, at + perBin));
      const sounded = now - ((samples.length - at) * 1000) / sampleRateHz;
      const echoDb = this.#playedAbout(sounded - lag * BIN_MS) + gainDb + LOUDER_DB;
      if (level > Math.max(echoDb, silenceDb)) this.#voiceBins = VOICE_BINS;
      else if (this.#voiceBins > 0) this.#voiceBins -= 1;
      else if (level > Math.max(silenceDb, echoDb - 2 * LOUDER_DB)) this.#room.at = now;
      isVoice.push(this.#voiceBins > 0 || echoDb < AUDIBLE_DB);
    }
    return isVoice;
  }

  /** Returns the loudspeaker's loudest level around this time, including audio played since the last report. */
  #playedAbout(time: number): number {
    const ahead = Math.round((time - this.#far.endAt) / BIN_MS);
    const next: number[] = [];
    for (const { levels, played } of this.#said.values())
      if (next.length < AHEAD_BINS) next.push(...levels.all.slice(played, played + AHEAD_BINS));
    // Audio that was sent but not yet reported as played may have started at any time.
    const [from, to] =
      ahead > AHEAD_BINS
        ? [0, AHEAD_BINS]
        : [ahead - AROUND_BINS.before, ahead + AROUND_BINS.after];
    return Math.max(
      this.#far.loudest(time, AROUND_BINS.before, AROUND_BINS.after),
      ...next.slice(Math.max(0, from), Math.max(0, to)),
    );
  }
}

function levelOf(samples: Int16Array): number {
  let energy = 0;
  for (const sample of samples) energy += (sample / 32_768) ** 2;
  return 10 * Math.log10(energy / Math.max(1, samples.length) + 1e-9);
}

/** An audio stream's levels, one per bin. */
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

/** The levels on the session's clock. */
class Timeline {
  #levels: number[] = [];
  #endAt = Number.NEGATIVE_INFINITY;

  get endAt(): number {
    return this.#endAt;
  }

  /**
   * Adds the levels of audio that ended about now. A delayed stream counts as contiguous. If it is more than `gapMs`
   * late, the gap is filled with silence.
   */
  append(levels: readonly number[], now: number, gapMs: number): void {
    const endAt = this.#endAt + levels.length * BIN_MS;
    const lateMs = now - endAt;
    // If audio arrives early, all earlier audio must have been late.
    if (lateMs >= 0 && lateMs <= gapMs) this.#endAt = endAt;
    else this.#endAt = now;
    const missing = lateMs > gapMs ? Math.min(KEPT_BINS, Math.floor(lateMs / BIN_MS)) : 0;
    this.#levels.push(...Array.from({ length: missing }, () => SILENCE_DB), ...levels);
    this.#levels = this.#levels.slice(-KEPT_BINS);
  }

  /** The background level. A fifth of the stored bins are quieter. */
  get quietDb(): number {
    const sorted = this.#levels.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 5)] ?? SILENCE_DB;
  }

  /** Returns the highest level around a point in time. */
  loudest(time: number, before: number, after: number): number {
    const index = this.#levels.length + Math.round((time - this.#endAt) / BIN_MS);
    return Math.max(
      SILENCE_DB,
      ...this.#levels.slice(Math.max(0, index - before), Math.max(0, index + after)),
    );
  }

  /** Returns the levels before a point in time; null if they are unknown. */
  window(endAt: number, count: number): readonly number[] | null {
    const end = this.#levels.length - Math.round((this.#endAt - endAt) / BIN_MS);
    if (end > this.#levels.length || end < count) return null;
    return this.#levels.slice(end - count, end);
  }
}

/** Compares two windows in those bins in which at least one contains audio; null if there are too few such bins. */
function likenessOf(
  near: readonly number[],
  far: readonly number[] | null,
): Omit<Echo, 'lag'> | null {
  if (far === null || Math.max(...far) < AUDIBLE_DB) return null;
  const floors = { near: Math.max(...near) - RANGE_DB, far: Math.max(...far) - RANGE_DB };
  const [a, b]: [number[], number[]] = [[], []];
  for (const [index, level] of near.entries()) {
    const other = far[index] ?? SILENCE_DB;
    if (level <= floors.near && other <= floors.far) continue;
    a.push(Math.max(level, floors.near));
    b.push(Math.max(other, floors.far));
  }
  if (a.length < LEAST_BINS) return null;
  return { likeness: correlation(a, b), gainDb: mean(a) - mean(b) };
}

/** Returns Pearson's correlation; 0 if either level hardly varies. */
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
