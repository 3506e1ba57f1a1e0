// The sound that the speaker has still to play, by item, and the played part of each.
// Runs in the audio thread; pure, so that it is tested without one.
//
// PLAYBACK-QUEUE-1. Samples are played in the order in which they came, each once, and none after `clear`.
// PLAYBACK-QUEUE-2. Reports never exceed what was pulled. One comes at least every `REPORT_MS` while
//     playing, one at the end of an item, one when the queue has run dry.
// PLAYBACK-QUEUE-3. `clear` reports the item that was playing (or would have been next), and no later one:
//     a report for an item means that those before it were played.

export interface PlayoutReport {
  readonly itemId: string;
  readonly playedMs: number;
}

interface Chunk {
  readonly itemId: string;
  readonly samples: Int16Array;
}

const REPORT_MS = 100;
/** The sound that is buffered before playing begins, so that the first late packet is not heard. */
const PREBUFFER_MS = 60;

export class PlaybackQueue {
  readonly #sampleRateHz: number;
  #chunks: Chunk[] = [];
  #offset = 0;
  #queued = 0;
  /** Samples of silence that may still be played while the queue fills. */
  #holdingBack = 0;
  #playing: { itemId: string; samples: number; reported: number } | null = null;

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz;
  }

  get queuedMs(): number {
    return (this.#queued * 1000) / this.#sampleRateHz;
  }

  push(itemId: string, samples: Int16Array): void {
    if (samples.length === 0) return;
    if (this.#queued === 0) this.#holdingBack = this.#samplesIn(PREBUFFER_MS);
    this.#chunks.push({ itemId, samples });
    this.#queued += samples.length;
  }

  /** Fills `output` with what comes next, then silence. Returns what there is to report. */
  pull(output: Float32Array): readonly PlayoutReport[] {
    const reports: PlayoutReport[] = [];
    let filled = 0;
    if (this.#queued > 0 && this.#mayPlay(output.length)) {
      while (filled < output.length) {
        const chunk = this.#chunks[0];
        if (!chunk) break;
        this.#begin(chunk.itemId, reports);
        const count = Math.min(output.length - filled, chunk.samples.length - this.#offset);
        for (let index = 0; index < count; index++)
          output[filled + index] = (chunk.samples[this.#offset + index] ?? 0) / 32_768;
        filled += count;
        this.#advance(count, chunk);
      }
      this.#report(reports, this.#queued === 0);
    }
    output.fill(0, filled);
    return reports;
  }

  /** Drops all that was not played. Returns the last word on what was. */
  clear(): PlayoutReport | null {
    const next = this.#chunks[0];
    const playing = this.#playing;
    this.#chunks = [];
    this.#offset = 0;
    this.#queued = 0;
    if (next && playing?.itemId !== next.itemId) return { itemId: next.itemId, playedMs: 0 };
    return playing && { itemId: playing.itemId, playedMs: this.#toMs(playing.samples) };
  }

  #mayPlay(samples: number): boolean {
    if (this.#holdingBack <= 0 || this.#queued >= this.#samplesIn(PREBUFFER_MS)) {
      this.#holdingBack = 0;
      return true;
    }
    this.#holdingBack -= samples;
    return false;
  }

  #begin(itemId: string, reports: PlayoutReport[]): void {
    if (this.#playing?.itemId === itemId) return;
    this.#report(reports, true);
    this.#playing = { itemId, samples: 0, reported: 0 };
  }

  #advance(count: number, chunk: Chunk): void {
    this.#queued -= count;
    this.#offset += count;
    if (this.#playing) this.#playing.samples += count;
    if (this.#offset < chunk.samples.length) return;
    this.#chunks.shift();
    this.#offset = 0;
  }

  #report(reports: PlayoutReport[], isDue: boolean): void {
    const playing = this.#playing;
    if (!playing) return;
    const news = playing.samples - playing.reported;
    if (news === 0 || (!isDue && news < this.#samplesIn(REPORT_MS))) return;
    playing.reported = playing.samples;
    reports.push({ itemId: playing.itemId, playedMs: this.#toMs(playing.samples) });
  }

  #samplesIn(ms: number): number {
    return (ms * this.#sampleRateHz) / 1000;
  }

  #toMs(samples: number): number {
    return (samples * 1000) / this.#sampleRateHz;
  }
}
