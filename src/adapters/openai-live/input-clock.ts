// Keeps the session's time running. Its time is the sound that it gets: without sound the model neither hears
// nor speaks nor reads appends, and after half a minute the server gives up. So silence is sent in real time
// whenever the user sends nothing (a muted microphone, a page in the background).
//
// Owns: the length of sound that the server got, of the user and of silence. Does not: buffer sound.
//
// INPUT-CLOCK-1. Silence begins after `GAP_MS` without sound, and ends with the next sound of the user: it
//     never replaces sound that was only late.
// INPUT-CLOCK-2. Times of the server are converted to times of the user's sound: silence does not count.

import type { Environment } from '../../actors/ports/environment.ts';

/** Longer than the pauses of a client that sends continuously. */
const GAP_MS = 300;
export const SILENCE_FRAME_MS = 100;
const MAX_STRETCHES = 64;

/** Silence that the server got at its time `atMs`. */
interface Stretch {
  readonly atMs: number;
  durationMs: number;
}

export class InputClock {
  readonly #environment: Environment;
  readonly #sendSilence: () => void;
  readonly #stretches: Stretch[] = [];
  #totalMs = 0;
  #lastAt = 0;
  #cancel: () => void = () => {};

  constructor(environment: Environment, sendSilence: () => void) {
    this.#environment = environment;
    this.#sendSilence = sendSilence;
  }

  /** Starts the time of the session. */
  start(): void {
    this.#lastAt = this.#environment.clock.now();
    this.#watch(GAP_MS);
  }

  stop(): void {
    this.#cancel();
  }

  /** Records sound of the user sent to the server. */
  sent(durationMs: number): void {
    this.#totalMs += durationMs;
    this.#lastAt = this.#environment.clock.now();
  }

  /** INPUT-CLOCK-2 */
  toSentMs(serverMs: number): number {
    let silenceMs = 0;
    for (const { atMs, durationMs } of this.#stretches)
      silenceMs += Math.min(durationMs, Math.max(0, serverMs - atMs));
    return serverMs - silenceMs;
  }

  #watch(delayMs: number): void {
    const { clock, scheduler } = this.#environment;
    this.#cancel = scheduler.schedule(
      () => {
        const missingMs = this.#lastAt + GAP_MS - clock.now();
        if (missingMs <= 0) this.#fill();
        this.#watch(missingMs > 0 ? missingMs : SILENCE_FRAME_MS);
      },
      delayMs,
      { isBackground: true },
    );
  }

  #fill(): void {
    const last = this.#stretches.at(-1);
    if (last && last.atMs + last.durationMs === this.#totalMs) last.durationMs += SILENCE_FRAME_MS;
    else this.#stretches.push({ atMs: this.#totalMs, durationMs: SILENCE_FRAME_MS });
    this.#totalMs += SILENCE_FRAME_MS;
    this.#forgetOldest();
    this.#sendSilence();
  }

  /** Merges the two oldest stretches: they no longer need to be distinguished. */
  #forgetOldest(): void {
    const [first, second] = this.#stretches;
    if (this.#stretches.length <= MAX_STRETCHES || !first || !second) return;
    const durationMs = first.durationMs + second.durationMs;
    this.#stretches.splice(0, 2, { atMs: second.atMs - first.durationMs, durationMs });
  }
}
