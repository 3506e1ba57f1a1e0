// The client of a session under test. Its microphone is always open. Its loudspeaker plays received audio in real time,
// reports the played part, and drops the rest on request.
//
// Owns:     the client's time.
// Does not: know the text of the audio, or judge.

import type { VoiceSession } from '../../voice-session.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';
import { Loudspeaker, type Play } from './loudspeaker.ts';

export const TICK_MS = 100;
const SAMPLE_RATE_HZ = 24_000;
/** The amplitude of the user's voice. */
export const LOUDNESS = 8000;
/** How long it takes to process audio that is sent again, in milliseconds. Speaking it took longer. */
export const HEARD_AGAIN_MS = 600;

export class Client {
  /** The user speaks. */
  isLoud = false;
  /** The client reports what it has played. */
  reports = true;
  #session: VoiceSession;
  readonly #environment: SimulatedEnvironment;
  readonly #loudspeaker: Loudspeaker;
  #subscriptions: { unsubscribe(): void }[] = [];
  #cancelTick: () => void = () => {};

  constructor(session: VoiceSession, environment: SimulatedEnvironment) {
    this.#session = session;
    this.#environment = environment;
    const loudspeaker = new Loudspeaker(
      () => environment.clock.now(),
      (report) => {
        if (this.reports) this.#session.playout.next(report);
      },
    );
    this.#loudspeaker = loudspeaker;
    this.join(session);
    this.#tick();
  }

  /**
   * Connects to this session, which continues the previous one. The loudspeaker drops the audio of the previous
   * session.
   */
  join(session: VoiceSession): void {
    const loudspeaker = this.#loudspeaker;
    this.#leave();
    loudspeaker.clear();
    this.#session = session;
    this.#subscriptions = [
      session.audioOut.subscribe((frame) => loudspeaker.took(frame)),
      session.events.subscribe((event) => {
        if (event.type === 'playout.clear') loudspeaker.clear();
      }),
    ];
  }

  /** The playbacks, in the order in which they started. */
  get plays(): readonly Play[] {
    return this.#loudspeaker.plays;
  }

  /** Returns whether any audio is left to play. */
  get isPlaying(): boolean {
    return this.#loudspeaker.isPlaying;
  }

  /** The total time for which items have been played, in milliseconds. */
  get playedMs(): number {
    return this.plays.reduce((total, { playedMs }) => total + playedMs, 0);
  }

  stop(): void {
    this.#cancelTick();
    this.#leave();
  }

  #leave(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  #tick(): void {
    const { scheduler } = this.#environment;
    this.#cancelTick = scheduler.schedule(() => this.#tick(), TICK_MS, { isBackground: true });
    const samples = new Int16Array((SAMPLE_RATE_HZ * TICK_MS) / 1000);
    this.#session.audioIn.next({
      samples: this.isLoud ? samples.fill(LOUDNESS) : samples,
      sampleRateHz: SAMPLE_RATE_HZ,
    });
    this.#loudspeaker.play(TICK_MS);
  }
}
