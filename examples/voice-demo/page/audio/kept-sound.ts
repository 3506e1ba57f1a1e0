// The user's voice while the connection is away: the last seconds of it, so that a sentence that was begun before
// a short drop is heard whole after it.

export const KEPT_MS = 10_000;

export class KeptSound {
  #frames: Int16Array[] = [];
  #samples = 0;

  /** Keeps a frame; the oldest ones go when there is more than is kept. */
  push(samples: Int16Array, sampleRateHz: number): void {
    this.#frames.push(samples);
    this.#samples += samples.length;
    const most = (KEPT_MS * sampleRateHz) / 1000;
    while (this.#samples > most) this.#samples -= this.#frames.shift()?.length ?? this.#samples;
  }

  /** Gives what was kept, oldest first, and keeps it no longer. */
  take(): readonly Int16Array[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#samples = 0;
    return frames;
  }
}
