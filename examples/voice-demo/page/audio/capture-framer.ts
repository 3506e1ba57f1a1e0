// Cuts the sound of the microphone into frames of 20 ms, and closes with silence: the
// server hears that an utterance is over by the silence after it, so when the microphone
// is shut, a second of it is still sent.

const FRAMES_PER_SECOND = 50;
const CLOSING_SILENCE_FRAMES = 50;

export interface CapturedFrame {
  readonly samples: Int16Array;
  /** Loudness from 0 to 1. */
  readonly level: number;
}

export class CaptureFramer {
  #frame: Int16Array;
  #filled = 0;
  #energy = 0;
  #isOpen = false;
  #silenceLeft = 0;

  constructor(sampleRateHz: number) {
    this.#frame = new Int16Array(Math.round(sampleRateHz / FRAMES_PER_SECOND));
  }

  setOpen(isOpen: boolean): void {
    if (this.#isOpen && !isOpen) this.#silenceLeft = CLOSING_SILENCE_FRAMES;
    this.#isOpen = isOpen;
  }

  /** The frames that are complete with this sound, which is full scale at ±1. */
  push(input: Float32Array): CapturedFrame[] {
    const frames: CapturedFrame[] = [];
    for (const sample of input) {
      if (!this.#isOpen && this.#silenceLeft === 0) break;
      const heard = this.#isOpen ? Math.max(-1, Math.min(1, sample)) : 0;
      this.#frame[this.#filled++] = Math.round(heard * 32_767);
      this.#energy += heard * heard;
      if (this.#filled === this.#frame.length) frames.push(this.#take());
    }
    return frames;
  }

  #take(): CapturedFrame {
    const samples = this.#frame;
    const level = Math.min(1, Math.sqrt(this.#energy / samples.length) * 4);
    this.#frame = new Int16Array(samples.length);
    this.#filled = 0;
    this.#energy = 0;
    if (!this.#isOpen) this.#silenceLeft -= 1;
    return { samples, level };
  }
}
