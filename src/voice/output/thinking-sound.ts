// What the user hears while the lead agent waits for a tool and nobody speaks: a soft sound, so
// that silence is not taken for a lost call.
//
// Owns:     when it begins and ends, and its pace.
// Does not: know who works or speaks (turns), or track what is played: it is no speech.
//
// Invariants
//   THINKING-SOUND-1. It is heard only while it is wanted, from `afterMs` on, and ends at once.
//   THINKING-SOUND-2. It has no item and no response: nothing of it is heard, interrupted or remembered.
//   THINKING-SOUND-3. It leaves in real time, at most `AHEAD_MS` early, so that little is to be taken back.

import type { Environment } from '../../actors/ports/environment.ts';
import { createResampler } from '../audio/resampler.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';

const FRAME_MS = 100;
const AHEAD_MS = 200;

export interface ThinkingSoundOptions {
  /** Played over and over: mono, 8 to 48 kHz, at least 100 ms. `workingSound()` makes one. */
  readonly loop: AudioFrame;
  /** It begins after so much silence, in milliseconds. @defaultValue 800 */
  readonly afterMs?: number;
}

export interface ThinkingSoundPorts {
  /** Does the user wait for a tool, and nobody speaks? */
  isWanted(): boolean;
  sounds(frame: AudioFrame): void;
  /** What of it is not played shall not be. */
  ends(): void;
}

export class ThinkingSound {
  readonly #environment: Environment;
  readonly #ports: ThinkingSoundPorts;
  readonly #loop: Int16Array;
  readonly #sampleRateHz: number;
  readonly #afterMs: number;
  #position = 0;
  #cancel: (() => void) | null = null;
  #isHeard = false;

  /** `sampleRateHz`: that of the model's sound. */
  constructor(
    environment: Environment,
    { loop, afterMs = 800 }: ThinkingSoundOptions,
    sampleRateHz: number,
    ports: ThinkingSoundPorts,
  ) {
    const resampler = createResampler({ fromHz: loop.sampleRateHz, toHz: sampleRateHz });
    const parts = [resampler.process(loop.samples), resampler.flush()];
    this.#environment = environment;
    this.#ports = ports;
    this.#loop = Int16Array.from(parts.flatMap((part) => [...part]));
    this.#sampleRateHz = sampleRateHz;
    this.#afterMs = afterMs;
  }

  /** Something has changed: it may be time to begin, or to end. */
  look(): void {
    const isWanted = this.#ports.isWanted();
    if (!isWanted) this.#end();
    else this.#cancel ??= this.#after(this.#afterMs, () => this.#begin());
  }

  /** It is not wanted any more, whatever happens. */
  stop(): void {
    this.#end();
  }

  #begin(): void {
    this.#position = 0;
    this.#isHeard = true;
    for (let ms = FRAME_MS; ms < AHEAD_MS; ms += FRAME_MS) this.#sound();
    this.#goOn();
  }

  #goOn(): void {
    this.#sound();
    this.#cancel = this.#after(FRAME_MS, () => this.#goOn());
  }

  #end(): void {
    this.#cancel?.();
    this.#cancel = null;
    const wasHeard = this.#isHeard;
    this.#isHeard = false;
    if (wasHeard) this.#ports.ends();
  }

  #sound(): void {
    const samples = new Int16Array((this.#sampleRateHz * FRAME_MS) / 1000);
    for (let n = 0; n < samples.length; n += 1) {
      samples[n] = this.#loop[this.#position] as number;
      this.#position = (this.#position + 1) % this.#loop.length;
    }
    this.#ports.sounds({ samples, sampleRateHz: this.#sampleRateHz });
  }

  #after(ms: number, task: () => void): () => void {
    return this.#environment.scheduler.schedule(task, ms);
  }
}
