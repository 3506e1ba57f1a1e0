// Distinguishes the user from more distant voices (a television, the next table) by their loudness, because a speech
// detector reports all voices. It does not use a clock, because it derives time from the length of the audio.
//
// LEVEL-GATE-1. A window counts as speech only if it, or one of the two windows before it, is within `marginDb` of the
//     user's usual level. That level is the median of the last utterances with words. Before the first such utterance,
//     a window only has to be louder than the noise. The level of an utterance is the level of its nearest voice, so a
//     television during the utterance does not lower it.
// LEVEL-GATE-2. A much louder voice counts as the user's, and earlier levels are discarded.
// LEVEL-GATE-3. A user who has moved away can be recognised again. If a voice that is too quiet speaks for 2 s and then
//     pauses, the gate is lowered by 6 dB until the user is heard at the former level.
// LEVEL-GATE-4. An utterance starts and ends with its nearest voice. If audio is 20 dB quieter than that voice for half
//     a second before or after it, the audio does not belong to the utterance.

const REMEMBERED_UTTERANCES = 5;
const WINDOWS_IN_VIEW = 3;
/** The noise level. The quietest tenth of the last ten seconds was below it. */
const NOISE_FRACTION = 0.1;
const NOISE_MS = 10_000;
const ABOVE_NOISE_DB = 15;
/** LEVEL-GATE-1: a voice above this level need not be louder than the noise. */
const CERTAIN_DB = -40;
const LEAST_DB = -70;
const NEARER_DB = 10;
/**
 * LEVEL-GATE-4: the maximum difference in level within one voice, and the number of loud windows that make up a voice.
 */
const ONE_VOICE_DB = 20;
const VOICE_WINDOWS = 8;
/** The range below the loudest windows of the nearest voice. Quieter audio belongs to other voices. */
const NEAREST_DB = 12;
/** LEVEL-GATE-4: a voice may start quietly for 190 ms. Another voice counts only if it lasts half a second. */
const ONSET_WINDOWS = 6;
const ELSEWHERE_WINDOWS = 16;
const STEP_DB = 6;
/**
 * LEVEL-GATE-3: the duration of the quiet speech, and of the silence after it. A television usually continues without
 * such a pause.
 */
const SHUT_OUT_MS = { least: 2_000, most: 10_000, pause: 600, wait: 1_500 };

export class LevelGate {
  readonly #marginDb: number;
  /** The levels of the user's latest utterances. */
  #users: number[] = [];
  #loweredDb = 0;
  /** The levels of the latest windows, newest last. */
  readonly #levels: number[] = [];
  /** The loudest levels of the current utterance, loudest first. */
  #loudest: number[] = [];
  /** The duration of speech that was too quiet, and of the silence since then. */
  #shutOut = { speechMs: 0, silenceMs: 0 };

  constructor(marginDb: number) {
    this.#marginDb = marginDb;
  }

  /** Returns the probability that the user is speaking in a window, given the `probability` of any speech. */
  admit(probability: number, levelDb: number, windowMs: number, threshold: number): number {
    const level = Math.max(levelDb, LEAST_DB);
    this.#levels.push(level);
    if (this.#levels.length > NOISE_MS / windowMs) this.#levels.shift();
    const near = Math.max(...this.#levels.slice(-WINDOWS_IN_VIEW));
    const isLoud = near >= Math.max(this.#gateDb, this.#voiceDb - ONE_VOICE_DB);
    if (isLoud && probability >= threshold)
      this.#loudest = [...this.#loudest, level].toSorted((a, b) => b - a).slice(0, VOICE_WINDOWS);
    this.#watch(probability >= threshold && level >= this.#noiseGateDb, isLoud, windowMs);
    return isLoud ? probability : 0;
  }

  /** The level of the nearest voice in the current utterance; minus infinity if there is none. */
  get #voiceDb(): number {
    return this.#loudest[VOICE_WINDOWS - 1] ?? Number.NEGATIVE_INFINITY;
  }

  /** Handles the end of an utterance. */
  ended(): void {
    this.#loudest = [];
  }

  /** Records the level of an utterance with words. */
  accepted(levelDb: number): void {
    const usual = median(this.#users);
    if (usual !== null && levelDb > usual + NEARER_DB) this.#users = [];
    this.#users = [...this.#users, levelDb].slice(-REMEMBERED_UTTERANCES);
    if (usual === null || levelDb >= usual - this.#marginDb) this.#loweredDb = 0;
  }

  get #gateDb(): number {
    const usual = median(this.#users);
    return usual === null ? this.#noiseGateDb : usual - this.#marginDb - this.#loweredDb;
  }

  get #noiseGateDb(): number {
    const sorted = this.#levels.toSorted((a, b) => a - b);
    const noise = sorted[Math.floor(sorted.length * NOISE_FRACTION)] ?? LEAST_DB;
    return Math.min(noise + ABOVE_NOISE_DB, CERTAIN_DB);
  }

  /** LEVEL-GATE-3 */
  #watch(isVoice: boolean, isLoud: boolean, windowMs: number): void {
    const { speechMs, silenceMs } = this.#shutOut;
    if (isVoice && isLoud) this.#shutOut = { speechMs: 0, silenceMs: 0 };
    else if (isVoice) {
      const isOneSpeech = silenceMs < SHUT_OUT_MS.pause;
      this.#shutOut = { speechMs: (isOneSpeech ? speechMs : 0) + windowMs, silenceMs: 0 };
    } else this.#shutOut = { speechMs, silenceMs: silenceMs + windowMs };
    const waited = this.#shutOut;
    const isShutOut = speechMs >= SHUT_OUT_MS.least && speechMs <= SHUT_OUT_MS.most;
    if (waited.silenceMs < SHUT_OUT_MS.wait || !isShutOut) return;
    this.#loweredDb += STEP_DB;
    this.#shutOut = { speechMs: 0, silenceMs: 0 };
  }
}

/** Returns the audio's level in dBFS. */
export function levelOf(samples: Int16Array): number {
  let energy = 0;
  for (const sample of samples) energy += sample * sample;
  return 10 * Math.log10(energy / Math.max(1, samples.length) / 32_768 ** 2 + 1e-9);
}

/** Returns the level of an utterance's nearest voice, calculated from its speech levels; null if there is no speech. */
export function nearestLevel(levels: readonly number[]): number | null {
  const sorted = levels.toSorted((a, b) => b - a);
  const loud = sorted[Math.min(VOICE_WINDOWS, sorted.length) - 1];
  return loud === undefined ? null : median(sorted.filter((level) => level >= loud - NEAREST_DB));
}

/**
 * Counts the windows that precede the nearest voice and belong to a different voice (LEVEL-GATE-4). `levels`: the
 * levels of all windows.
 */
export function windowsBeforeNearest(levels: readonly number[]): number {
  const loud = levels.toSorted((a, b) => b - a)[VOICE_WINDOWS - 1];
  if (loud === undefined) return 0;
  const first = levels.findIndex((level) => level >= loud - ONE_VOICE_DB);
  return first < ELSEWHERE_WINDOWS ? 0 : first - ONSET_WINDOWS;
}

function median(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
}
