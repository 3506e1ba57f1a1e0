// Makes the session's time advance. The server measures time by the audio that it receives. Without audio, the model
// does not listen, speak or read appends, and the server ends the session after half a minute. This clock therefore
// sends silence in real time whenever the user sends no audio (a muted microphone, a page in the background).
//
// Owns:     how much user audio and how much silence the server has received. It does not buffer audio.
//
// INPUT-CLOCK-1. Silence starts after `GAP_MS` without audio and ends when the user next sends audio. Silence is never
//     sent in place of late audio.
// INPUT-CLOCK-2. Server times are converted to times in the user's audio, which does not include the silence.

import type { Environment } from '../../actors/ports/environment.ts';

/** The time without audio after which silence is sent. A client that sends continuously has shorter pauses. */
const GAP_MS = 300;
export const SILENCE_FRAME_MS = 100;
const MAX_STRETCHES = 64;

/** A stretch of silence that the server received, starting at the server's time `atMs`. */
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

  /** Starts measuring the session's time. */
  start(): void {
    this.#lastAt = this.#environment.clock.now();
    this.#watch(GAP_MS);
  }

  stop(): void {
    this.#cancel();
  }

  /** Records user audio that was sent to the server. */
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

  /** Merges the two oldest stretches, which no longer need to be distinguished. */
  #forgetOldest(): void {
    const [first, second] = this.#stretches;
    if (this.#stretches.length <= MAX_STRETCHES || !first || !second) return;
    const durationMs = first.durationMs + second.durationMs;
    this.#stretches.splice(0, 2, { atMs: second.atMs - first.durationMs, durationMs });
  }
}
