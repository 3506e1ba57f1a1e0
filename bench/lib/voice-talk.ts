// A repeated conversation with every measured event: the user asks, the model answers at length, the user interrupts,
// the model calls a tool that works in the background, and tells the result when neither party speaks.

import type { WebSocket } from 'ws';
import { Device } from './voice-device.ts';
import { FRAME_MS, TimedSound } from './voice-frames.ts';
import { ModelPeer, type Answer } from './voice-model-peer.ts';

/** The measured times, in milliseconds. */
export interface Samples {
  /** The delay of the user's audio from the device to the model. */
  readonly up: number[];
  /** The delay of the model's audio from the model to the device. */
  readonly down: number[];
  /** From the report that the user has ended to the first audio of the answer at the device. */
  readonly turn: number[];
  /** From the report that the user begins, to silence at the device. */
  readonly bargeIn: number[];
  /** From the result of the background work to the request to tell it. */
  readonly offer: number[];
}

export const noSamples = (): Samples => ({ up: [], down: [], turn: [], bargeIn: [], offer: [] });

const LONG: Answer = { soundMs: 6000 };
const SHORT: Answer = { soundMs: 1000 };
const WITH_CALL: Answer = { soundMs: 1000, calls: 'run_errand' };
const UTTERANCE_MS = 1000;
const HEARD_BEFORE_BREAKING_IN_MS = 2000;
/** The pause after which a session tells a result at once: longer than its `quietMs`. */
const QUIET_MS = 500;
/** The limit of each wait; only an overloaded machine exceeds it. */
const PATIENCE_MS = 20_000;

type Timed = 'turn' | 'bargeIn' | 'offer';

export class Talk {
  readonly #samples: Samples;
  readonly #up: TimedSound;
  readonly #down: TimedSound;
  readonly #device: Device;
  readonly #model: ModelPeer;
  #answer: Answer | null = null;
  #timed: { readonly what: Timed; readonly since: number } | null = null;
  #waiting: { readonly isTrue: () => boolean; go(): void; ticks: number } | null = null;
  #isConfigured = false;
  #wasDelivered = false;

  constructor(device: WebSocket, model: WebSocket, samples: Samples) {
    this.#samples = samples;
    this.#up = new TimedSound(samples.up);
    this.#down = new TimedSound(samples.down);
    this.#device = new Device(device, this.#up, this.#down, {
      begun: () => this.#happened('turn'),
      cleared: () => this.#happened('bargeIn'),
      told: () => {
        this.#wasDelivered = true;
      },
    });
    this.#model = new ModelPeer(model, this.#up, this.#down, {
      configured: () => {
        this.#isConfigured = true;
      },
      asked: (metadata) => this.#takeAnswer(metadata),
    });
  }

  /** Advances by 20 ms. */
  tick(): void {
    if (!this.#isConfigured) return;
    this.#device.tick();
    this.#model.tick();
    const waiting = this.#waiting;
    if (!waiting) return;
    waiting.ticks += 1;
    if (waiting.ticks * FRAME_MS > PATIENCE_MS)
      throw new Error(`Never happened; too much load? ${this.#timed?.what ?? 'a pause'}`);
    if (!waiting.isTrue()) return;
    this.#waiting = null;
    waiting.go();
  }

  /** Repeats the conversation forever. */
  async converse(): Promise<void> {
    await this.#until(() => this.#isConfigured);
    for (;;) {
      await this.#ask(LONG);
      await this.#until(() => this.#device.playedMs >= HEARD_BEFORE_BREAKING_IN_MS);
      await this.#ask(WITH_CALL, true);
      await this.#until(() => this.#isIdle);
      await this.#pause(QUIET_MS);
      this.#wasDelivered = false;
      this.#time('offer', SHORT);
      this.#device.finishWork();
      await this.#until(() => this.#timed === null);
      // If the user continued before the result counts as heard, the session would rightly tell it again.
      await this.#until(() => this.#isIdle && this.#wasDelivered);
      await this.#pause(QUIET_MS);
    }
  }

  /** Makes the user ask, and waits until they begin to hear the answer. */
  async #ask(answer: Answer, breaksIn = false): Promise<void> {
    if (breaksIn) this.#time('bargeIn');
    this.#model.userBegins();
    await this.#pause(UTTERANCE_MS);
    if (this.#timed) await this.#until(() => this.#timed === null);
    this.#time('turn', answer);
    this.#model.userEnds('Tell me what you know.');
    await this.#until(() => this.#timed === null);
  }

  get #isIdle(): boolean {
    return !this.#model.isSpeaking && this.#device.isSilent;
  }

  #takeAnswer(metadata: Record<string, string>): Answer {
    const answer = this.#answer;
    if (!answer)
      throw new Error(`Asked to speak unexpectedly; too much load? ${JSON.stringify(metadata)}`);
    this.#answer = null;
    this.#happened('offer');
    return answer;
  }

  #time(what: Timed, answer: Answer | null = null): void {
    this.#answer = answer;
    this.#timed = { what, since: performance.now() };
  }

  #happened(what: Timed): void {
    if (this.#timed?.what !== what) return;
    this.#samples[what].push(performance.now() - this.#timed.since);
    this.#timed = null;
  }

  async #pause(durationMs: number): Promise<void> {
    let left = durationMs / FRAME_MS;
    await this.#until(() => {
      left -= 1;
      return left <= 0;
    });
  }

  #until(isTrue: () => boolean): Promise<void> {
    return new Promise((go) => {
      this.#waiting = { isTrue, go, ticks: 0 };
    });
  }
}
