// Measures how much the microphone's sound is like what the loudspeaker plays. The loudness of an echo rises and falls
// with that of the loudspeaker, however quiet it is and whatever the room adds; the user's voice does not.
//
//   ECHO-3. In a room that was heard to echo, sound that is no louder than the echo is made so quiet that no transport
//       takes it for a voice; a voice over the echo passes as it is.
//
// Owns:     the loudness of the last seconds of both sounds on the session's clock, and the echo of the room.
// Does not: decide what an utterance is, or read a clock.

import { forgetOldest } from '../../values/forget-oldest.ts';
import type { AudioFrame } from './audio-frame.ts';

/** The microphone hears the loudspeaker, if both are at least this much alike. */
export const ECHO_LIKENESS = 0.8;
/** A room that echoed this long ago still does. */
const ROOM_MS = 120_000;
/** An echo that is louder than this cannot be told from a voice over it. */
const LOUDEST_ECHO_DB = -6;
/** The echo of the room is at most this much louder than when it was measured. */
const LOUDER_DB = 6;
/** Reports of playback and walls move the echo by so many bins; a voice is heard for so many. */
const AROUND_BINS = { before: 8, after: 3 };
const VOICE_BINS = 12;
/** 80 ms: a word begins quietly. So much later the transport hears everything, once an echo is known. */
const ONSET_BINS = 5;
/** The sound that is played next is known for this long, in bins, without a report. */
const AHEAD_BINS = 40;
/** The gain of the echo that a transport hears: -30 dB. */
const QUIET = 0.03;

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
/** Quieter sound of the loudspeaker is heard by no microphone. */
const AUDIBLE_DB = -60;
/**
 * Sound that is quieter than this, against the loudest of the window, is silence. Two silences are alike in any case, as
 * are two beginnings.
 */
const RANGE_DB = 30;
/** 192 ms in which either sounds; less says nothing. */
const LEAST_BINS = 12;
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

interface Echo extends Comparison {
  /** How much later the microphone hears the sound, in bins. */
  readonly lag: number;
}

/** Sound that has not gone to the transport yet. */
interface Held {
  readonly samples: Int16Array;
  /** 1: this sample is the echo's. */
  readonly isEcho: Uint8Array;
  readonly sampleRateHz: number;
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
  /** The newest comparison that showed an echo. */
  #heard: Echo | null = null;
  #room: { echo: Echo | null; at: number } = { echo: null, at: Number.NEGATIVE_INFINITY };
  /** The newest sound, since an echo was first known. */
  #held: Held | null = null;
  /** For so many bins more the sound is a voice's. */
  #voiceBins = 0;
  #gain = 1;

  /** Records that an echo was heard. `now`: milliseconds since 1970. */
  wasEcho(now: number): void {
    const heard = this.#heard;
    const isQuiet = heard !== null && heard.gainDb <= LOUDEST_ECHO_DB;
    this.#room = { echo: isQuiet ? heard : this.#room.echo, at: now };
  }

  /** Whether the room has echoed of late. */
  echoes(now: number): boolean {
    return now - this.#room.at < ROOM_MS;
  }

  /** Records sound that is sent to the loudspeaker. */
  said({ itemId, ...frame }: AudioFrame): void {
    if (itemId === undefined) return;
    let said = this.#said.get(itemId);
    if (!said) this.#said.set(itemId, (said = { levels: new Levels(), played: 0 }));
    said.levels.take(frame);
    forgetOldest(this.#said, MAX_ITEMS);
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

  /** Compares the last 800 ms of both; null if too little is known of one of them. */
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

  /** Records sound of the microphone, and returns it without the echo of the room (ECHO-3). */
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

  /** Adds a frame to the sound that is held back: an onset is known when the voice is loud. */
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
      // A step would be heard as a click.
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

  /** Returns for each bin of a frame whether it is no echo. */
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

  /** The loudest sound of the loudspeaker about this time, also of what it must have played since its last report. */
  #playedAbout(time: number): number {
    const ahead = Math.round((time - this.#far.endAt) / BIN_MS);
    const next: number[] = [];
    for (const { levels, played } of this.#said.values())
      if (next.length < AHEAD_BINS) next.push(...levels.all.slice(played, played + AHEAD_BINS));
    // Sound that was sent and not reported may be heard since any time.
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

  /** The level of the room: one in five of the last seconds' bins is quieter. */
  get quietDb(): number {
    const sorted = this.#levels.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 5)] ?? SILENCE_DB;
  }

  /** Returns the highest level about a time. */
  loudest(time: number, before: number, after: number): number {
    const index = this.#levels.length + Math.round((time - this.#endAt) / BIN_MS);
    return Math.max(
      SILENCE_DB,
      ...this.#levels.slice(Math.max(0, index - before), Math.max(0, index + after)),
    );
  }

  /** Returns the levels before a time; null if they are not known. */
  window(endAt: number, count: number): readonly number[] | null {
    const end = this.#levels.length - Math.round((this.#endAt - endAt) / BIN_MS);
    if (end > this.#levels.length || end < count) return null;
    return this.#levels.slice(end - count, end);
  }
}

/** Compares both where one of them sounds; null if that is too little. */
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
