// A page's audio thread: the processors for the microphone and the speaker. This file has no imports, so that a page
// with a strict Content-Security-Policy can load it and a bundler can copy it.
//
// Owns:     the microphone's frames, the speaker's queue, and the count of played samples.
// Does not: know the protocol or objects of the main thread.
//
// Invariants
//   WORKLET-1. Samples are played once, in order of arrival, and none of them is played after `clear`.
//   WORKLET-2. The reported duration never exceeds the duration that was actually played. During playback, reports are
//       sent at least every `REPORT_MS`, at the end of each item, and when the queue runs empty.
//   WORKLET-3. `clear` reports the item that was playing or would have played next. It does not report any later item,
//       because a report for an item means that all earlier items were played.
//   WORKLET-4. When the microphone closes, it sends a second of silence, so that the server ends the utterance.

/* oxlint-disable unicorn/require-post-message-target-origin -- a port of the audio thread has no origin */

/** How much of an item has been played, measured from its start. */
export interface WorkletReport {
  /** The `itemId` of the frames that were played. */
  readonly itemId: string;
  /** The duration of the item that has been played so far, in milliseconds. */
  readonly playedMs: number;
}

/** 20 ms of the user's audio. */
export interface WorkletFrame {
  /** The mono samples. */
  readonly samples: Int16Array;
  /** Loudness from 0 to 1. */
  readonly level: number;
}

interface Chunk {
  /** Null for audio whose playback is not reported. */
  readonly itemId: string | null;
  readonly samples: Int16Array;
}

const REPORT_MS = 100;
/** The duration of audio to queue before playback starts, so that a late packet causes no gap at the beginning. */
const PREBUFFER_MS = 60;
const FRAMES_PER_SECOND = 50;
const CLOSING_SILENCE_FRAMES = 50;
const FULL_SCALE = 32_768;

/** The speaker's unplayed audio, by item, and how much of each item has been played. */
export class PlaybackQueue {
  readonly #sampleRateHz: number;
  #chunks: Chunk[] = [];
  #offset = 0;
  #queued = 0;
  /** The maximum amount of silence to play while the queue fills, in samples. */
  #holdingBack = 0;
  #playing: { itemId: string | null; samples: number; reported: number } | null = null;

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz;
  }

  /** Adds audio to the end of the queue. `itemId`: null for audio whose playback is not reported. */
  push(itemId: string | null, samples: Int16Array): void {
    if (samples.length === 0) return;
    if (this.#queued === 0) this.#holdingBack = this.#samplesIn(PREBUFFER_MS);
    this.#chunks.push({ itemId, samples });
    this.#queued += samples.length;
  }

  /** Fills `output` with queued audio, then with silence. Returns the reports that are due. */
  pull(output: Float32Array): readonly WorkletReport[] {
    const reports: WorkletReport[] = [];
    let filled = 0;
    if (this.#queued > 0 && this.#mayPlay(output.length)) {
      while (filled < output.length) {
        const chunk = this.#chunks[0];
        if (!chunk) break;
        this.#begin(chunk.itemId, reports);
        const count = Math.min(output.length - filled, chunk.samples.length - this.#offset);
        for (let index = 0; index < count; index++)
          output[filled + index] = (chunk.samples[this.#offset + index] ?? 0) / FULL_SCALE;
        filled += count;
        this.#advance(count, chunk);
      }
      this.#report(reports, this.#queued === 0);
    }
    output.fill(0, filled);
    return reports;
  }

  /** Drops the unplayed audio. Returns the last report. */
  clear(): WorkletReport | null {
    const next = this.#chunks.find(({ itemId }) => itemId !== null);
    const playing = this.#playing;
    this.#chunks = [];
    this.#offset = 0;
    this.#queued = 0;
    if (next?.itemId && playing?.itemId !== next.itemId)
      return { itemId: next.itemId, playedMs: 0 };
    if (!playing || playing.itemId === null) return null;
    return { itemId: playing.itemId, playedMs: this.#toMs(playing.samples) };
  }

  #mayPlay(samples: number): boolean {
    if (this.#holdingBack <= 0 || this.#queued >= this.#samplesIn(PREBUFFER_MS)) {
      this.#holdingBack = 0;
      return true;
    }
    this.#holdingBack -= samples;
    return false;
  }

  #begin(itemId: string | null, reports: WorkletReport[]): void {
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

  #report(reports: WorkletReport[], isDue: boolean): void {
    const playing = this.#playing;
    if (!playing || playing.itemId === null) return;
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

/** Splits the microphone's audio into frames. */
export class CaptureFramer {
  #frame: Int16Array;
  #filled = 0;
  #energy = 0;
  #isOpen = false;
  #silenceLeft = 0;

  constructor(sampleRateHz: number) {
    this.#frame = new Int16Array(Math.round(sampleRateHz / FRAMES_PER_SECOND));
  }

  /**
   * Opens or closes the microphone. After it is closed, a second of silence follows, so that the last utterance can
   * end.
   */
  setOpen(isOpen: boolean): void {
    if (this.#isOpen && !isOpen) this.#silenceLeft = CLOSING_SILENCE_FRAMES;
    this.#isOpen = isOpen;
  }

  /** Adds samples between -1 and 1. Returns the frames that are now complete. */
  push(input: Float32Array): WorkletFrame[] {
    const frames: WorkletFrame[] = [];
    for (const sample of input) {
      if (!this.#isOpen && this.#silenceLeft === 0) break;
      const heard = this.#isOpen ? Math.max(-1, Math.min(1, sample)) : 0;
      this.#frame[this.#filled++] = Math.round(heard * (FULL_SCALE - 1));
      this.#energy += heard * heard;
      if (this.#filled === this.#frame.length) frames.push(this.#take());
    }
    return frames;
  }

  #take(): WorkletFrame {
    const samples = this.#frame;
    const level = Math.min(1, Math.sqrt(this.#energy / samples.length) * 4);
    this.#frame = new Int16Array(samples.length);
    this.#filled = 0;
    this.#energy = 0;
    if (!this.#isOpen) this.#silenceLeft -= 1;
    return { samples, level };
  }
}

/** The global scope of the audio thread. */
interface AudioThread {
  readonly sampleRate: number;
  readonly AudioWorkletProcessor: new () => {
    readonly port: {
      postMessage(message: unknown, transfer?: readonly ArrayBufferLike[]): void;
      addEventListener(type: 'message', listener: (event: { readonly data: never }) => void): void;
      start(): void;
    };
  };
  registerProcessor(name: string, processor: unknown): void;
}

function register({ AudioWorkletProcessor, registerProcessor, sampleRate }: AudioThread): void {
  class Capture extends AudioWorkletProcessor {
    readonly #framer = new CaptureFramer(sampleRate);

    constructor() {
      super();
      this.port.addEventListener('message', ({ data }: { data: { readonly open: boolean } }) =>
        this.#framer.setOpen(data.open),
      );
      this.port.start();
    }

    process(inputs: Float32Array[][]): boolean {
      const input = inputs[0]?.[0];
      if (input)
        for (const frame of this.#framer.push(input))
          this.port.postMessage(frame, [frame.samples.buffer]);
      return true;
    }
  }

  class Playback extends AudioWorkletProcessor {
    readonly #queue = new PlaybackQueue(sampleRate);

    constructor() {
      super();
      this.port.addEventListener(
        'message',
        ({ data }: { data: Chunk | { readonly clear: true } }) => {
          if (!('clear' in data)) return this.#queue.push(data.itemId, data.samples);
          const report = this.#queue.clear();
          if (report) this.port.postMessage(report);
        },
      );
      this.port.start();
    }

    process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
      const output = outputs[0]?.[0];
      if (output) for (const report of this.#queue.pull(output)) this.port.postMessage(report);
      return true;
    }
  }

  registerProcessor('offstage-capture', Capture);
  registerProcessor('offstage-playback', Playback);
}

const thread = globalThis as Partial<AudioThread>;
if (thread.registerProcessor) register(thread as AudioThread);
