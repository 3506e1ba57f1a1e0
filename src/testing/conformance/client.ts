// The client of a session under test: a microphone that is always open, and a loudspeaker
// that plays in time what it gets, says what it has played, and drops the rest when told to.
//
// Owns:     what was really played, and when.
// Does not: know what was said, or judge.

import { frameDurationMs, type AudioFrame } from '../../voice/audio-frame.ts';
import type { VoiceSession } from '../../voice/voice-session.ts';
import type { SimulatedEnvironment } from '../simulated-environment.ts';

export const TICK_MS = 100;
const SAMPLE_RATE_HZ = 24_000;
/** As loud as a voice. */
const LOUDNESS = 8000;

/** An item, as the loudspeaker had it. */
export interface Play {
  readonly itemId: string;
  readonly responseId: string;
  sentMs: number;
  playedMs: number;
  /** It was stopped: what had not been played by then was dropped. */
  isCleared: boolean;
  /** When it began to be heard, and was last heard; milliseconds since 1970. */
  firstAt: number;
  lastAt: number;
}

export class Client {
  /** In the order in which they began. */
  readonly plays: Play[] = [];
  /** The user speaks. */
  isLoud = false;
  /** The client reports what it plays. */
  reports = true;
  readonly #session: VoiceSession;
  readonly #environment: SimulatedEnvironment;
  readonly #subscriptions: { unsubscribe(): void }[];
  #cancelTick: () => void = () => {};

  constructor(session: VoiceSession, environment: SimulatedEnvironment) {
    this.#session = session;
    this.#environment = environment;
    this.#subscriptions = [
      session.audioOut.subscribe((frame) => this.#took(frame)),
      session.events.subscribe((event) => {
        if (event.type === 'playout.clear') this.#clear();
      }),
    ];
    this.#tick();
  }

  /** Something is to be played still. */
  get isPlaying(): boolean {
    return this.plays.some((play) => !play.isCleared && play.playedMs < play.sentMs);
  }

  /** In milliseconds, of all items together. */
  get playedMs(): number {
    return this.plays.reduce((total, { playedMs }) => total + playedMs, 0);
  }

  stop(): void {
    this.#cancelTick();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  #took(frame: AudioFrame): void {
    const { itemId = '', responseId = '' } = frame;
    const known = this.plays.findLast((play) => play.itemId === itemId && !play.isCleared);
    const sentMs = frameDurationMs(frame);
    if (known) known.sentMs += sentMs;
    else
      this.plays.push({
        itemId,
        responseId,
        sentMs,
        playedMs: 0,
        isCleared: false,
        firstAt: Number.POSITIVE_INFINITY,
        lastAt: Number.NEGATIVE_INFINITY,
      });
  }

  #tick(): void {
    const { scheduler } = this.#environment;
    this.#cancelTick = scheduler.schedule(() => this.#tick(), TICK_MS, { isBackground: true });
    const samples = new Int16Array((SAMPLE_RATE_HZ * TICK_MS) / 1000);
    this.#session.audioIn.next({
      samples: this.isLoud ? samples.fill(LOUDNESS) : samples,
      sampleRateHz: SAMPLE_RATE_HZ,
    });
    this.#play(TICK_MS);
  }

  #play(ms: number): void {
    let leftMs = ms;
    for (const play of this.plays) {
      const dueMs = play.isCleared ? 0 : Math.min(leftMs, play.sentMs - play.playedMs);
      if (dueMs <= 0) continue;
      play.playedMs += dueMs;
      play.lastAt = this.#environment.clock.now();
      play.firstAt = Math.min(play.firstAt, play.lastAt);
      leftMs -= dueMs;
      this.#report(play);
      if (leftMs <= 0) return;
    }
  }

  #clear(): void {
    for (const play of this.plays) {
      // The last one may go on: all that there was of it has been played.
      const isOver = play.playedMs >= play.sentMs && play !== this.plays.at(-1);
      if (play.isCleared || isOver) continue;
      play.isCleared = true;
      this.#report(play);
    }
  }

  #report({ itemId, playedMs }: Play): void {
    if (this.reports) this.#session.playout.next({ itemId, playedMs });
  }
}
