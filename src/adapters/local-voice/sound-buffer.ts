// Sound of the user that is not committed yet, addressed by its time since the
// first sample of the connection.

/** Holds a stretch of one stream of samples. */
export class SoundBuffer {
  readonly #samplesPerMs: number;
  #chunks: Int16Array[] = [];
  #startSample = 0;
  #endSample = 0;

  constructor(sampleRateHz: number) {
    this.#samplesPerMs = sampleRateHz / 1000;
  }

  /** The time of the first held sample. */
  get startMs(): number {
    return this.#startSample / this.#samplesPerMs;
  }

  /** The length of all appended sound. */
  get endMs(): number {
    return this.#endSample / this.#samplesPerMs;
  }

  get durationMs(): number {
    return this.endMs - this.startMs;
  }

  append(samples: Int16Array): void {
    if (samples.length === 0) return;
    this.#chunks.push(samples);
    this.#endSample += samples.length;
  }

  /** Takes the held sound from `fromMs` to `toMs`, and drops earlier sound. */
  take(fromMs: number, toMs: number): Int16Array {
    this.dropBefore(fromMs);
    const count = this.#clamp(toMs) - this.#startSample;
    const taken = new Int16Array(Math.max(0, count));
    let filled = 0;
    for (const chunk of this.#chunks) {
      if (filled === taken.length) break;
      const part = chunk.subarray(0, taken.length - filled);
      taken.set(part, filled);
      filled += part.length;
    }
    this.dropBefore(toMs);
    return taken;
  }

  /** Drops the sound before `ms`. */
  dropBefore(ms: number): void {
    let surplus = this.#clamp(ms) - this.#startSample;
    if (surplus <= 0) return;
    this.#startSample += surplus;
    let whole = 0;
    while (surplus > 0) {
      const chunk = this.#chunks[whole] as Int16Array;
      if (chunk.length > surplus) {
        this.#chunks[whole] = chunk.subarray(surplus);
        break;
      }
      surplus -= chunk.length;
      whole += 1;
    }
    this.#chunks.splice(0, whole);
  }

  #clamp(ms: number): number {
    const sample = Math.round(ms * this.#samplesPerMs);
    return Math.min(Math.max(sample, this.#startSample), this.#endSample);
  }
}
