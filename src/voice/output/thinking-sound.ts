// A soft sound while the lead agent waits for a tool and no one speaks, so that silence is not mistaken for a
// lost connection.
//
// Owns:     when the sound begins and ends, and its pace.
// Does not: know who is working or speaking (turns), or track playback: the sound is not speech.
//
// Invariants
//   THINKING-SOUND-1. The sound is heard only while it is wanted, from `afterMs` on, and ends at once.
//   THINKING-SOUND-2. The sound has no item and no response: it is never heard, interrupted or remembered.
//   THINKING-SOUND-3. Frames leave in real time, at most `AHEAD_MS` early, so that few have to be dropped.

import type { Environment } from '../../actors/ports/environment.ts';
import { createResampler } from '../audio/resampler.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';

const FRAME_MS = 100;
const AHEAD_MS = 200;

export interface ThinkingSoundOptions {
  /** The sound, repeated: mono, 8 to 48 kHz, at least 100 ms. `workingSound()` makes one. */
  readonly loop: AudioFrame;
  /** Silence before the sound begins, in milliseconds. @defaultValue 800 */
  readonly afterMs?: number;
}

export interface ThinkingSoundPorts {
  /** Returns whether the user waits for a tool while no one speaks. */
  isWanted(): boolean;
  sounds(frame: AudioFrame): void;
  /** Drops the sound that the client has not played. */
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

  /** @param sampleRateHz The rate of the model's sound. */
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

  /** Reconsiders the state after a change: starts or stops the sound. */
  look(): void {
    const isWanted = this.#ports.isWanted();
    if (!isWanted) this.#end();
    else this.#cancel ??= this.#after(this.#afterMs, () => this.#begin());
  }

  /** Stops for good. */
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
