// What the session is saying at the moment, as the user hears it: the audio on its way
// to the speaker, the offer that is being said, and what remains of both when the user
// breaks in.
//
// Owns:     the playout, the attempt under way, and what was cut off.
// Does not: talk to the model; whoever owns it is told what happened.
//
// Invariants
//   SPEECH-1. An attempt ends in exactly one of heard, interrupted, failed, or is given up by us.
//   SPEECH-2. When speech is stopped the client is told at once; how much was heard is the
//       client's word, or its last report if it says nothing within `clearReportMs`.
//   SPEECH-3. A client that reports nothing any more, long after all must have been played, holds
//       up nobody: the speaker is taken as silent, and what it played as not heard. What it had
//       begun to play is interrupted by that.

import type { Environment } from '../../actors/ports/environment.ts';
import type { Attempt } from '../connection/attempt.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { Playout, type Played } from './playout.ts';

/** The client reports about every 100 ms: after so long without a word there will be none. */
const STALL_GRACE_MS = 5000;

export interface SpeechPorts {
  /** Audio is on its way again. */
  started(): void;
  /** Nothing is on its way any more. */
  drained(): void;
  /** The user begins to hear the attempt. */
  begun(attempt: Attempt): void;
  heard(attempt: Attempt): void;
  interrupted(attempt: Attempt): void;
  /** The client shall drop what it has not played. */
  clear(): void;
  /** The user heard only so much of this item. */
  cut(item: Played): void;
  /** Everything that was cut off is settled. */
  settled(): void;
}

export class Speech {
  readonly #ports: SpeechPorts;
  readonly #environment: Environment;
  readonly #clearReportMs: number;
  readonly #playout = new Playout();
  #attempt: Attempt | null = null;
  #isPlaying = false;
  #cut: readonly Played[] = [];
  #endCut: (() => void) | null = null;
  #lastWordAt = 0;
  #cancelStall: (() => void) | null = null;

  constructor(ports: SpeechPorts, environment: Environment, clearReportMs: number) {
    this.#ports = ports;
    this.#environment = environment;
    this.#clearReportMs = clearReportMs;
  }

  get isSilent(): boolean {
    return this.#playout.isDrained;
  }

  /** What was sent and is not played to its end. */
  get playing(): readonly string[] {
    return this.#playout.current.map(({ itemId }) => itemId);
  }

  /** Those, and what was cut off and is not settled: how much of each is heard is still to be seen. */
  get unsettled(): readonly string[] {
    return [...this.playing, ...this.#cut.map(({ itemId }) => itemId)];
  }

  /** The responses of which something plays, or is about to. */
  get playingOf(): readonly string[] {
    return this.#playout.current.map(({ responseId }) => responseId);
  }

  get attempt(): Attempt | null {
    return this.#attempt;
  }

  /** From now on it is this offer that is being said. */
  begin(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  /** The attempt is over, for reasons of our own. */
  giveUp(): void {
    this.#attempt = null;
  }

  sent(frame: AudioFrame): void {
    const { itemId = '', responseId = '' } = frame;
    this.#playout.sent(itemId, responseId, frameDurationMs(frame));
    this.#lastWordAt = this.#environment.clock.now();
    if (this.#isPlaying) return;
    this.#isPlaying = true;
    this.#watchStall(this.#playout.unplayedMs + STALL_GRACE_MS);
    this.#ports.started();
  }

  /** No more audio comes for this response. */
  completed(responseId: string): void {
    this.#over(this.#playout.complete(responseId));
  }

  /** No more audio comes at all; what has come goes on playing. */
  completedAll(): void {
    for (const { responseId } of this.#playout.current) this.completed(responseId);
  }

  /** The client's word on what it played. */
  played(itemId: string, playedMs: number): void {
    const cut = this.#cut.find((item) => item.itemId === itemId);
    if (cut) {
      const known = { ...cut, playedMs: Math.min(Math.max(playedMs, 0), cut.sentMs) };
      this.#cut = this.#cut.map((item) => (item === cut ? known : item));
      this.#endCut?.();
      return;
    }
    this.#lastWordAt = this.#environment.clock.now();
    const attempt = this.#attempt;
    const item = this.#playout.current.find((current) => current.itemId === itemId);
    const over = this.#playout.played(itemId, playedMs);
    if (attempt && item && item.responseId === attempt.responseId) {
      if (!attempt.hasBegun && playedMs > 0) {
        attempt.hasBegun = true;
        this.#ports.begun(attempt);
      }
      attempt.played(itemId, playedMs);
    }
    this.#over(over);
  }

  /** Silence, now. `isGenerating`: the attempt's response will still say how it ended. */
  stop(isGenerating: boolean): void {
    if (this.#playout.isDrained) return;
    this.#endCut?.();
    this.#cut = this.#playout.clear();
    this.#ports.clear();
    this.#drained();
    const cancel = this.#environment.scheduler.schedule(
      () => this.#endCut?.(),
      this.#clearReportMs,
    );
    this.#endCut = () => {
      cancel();
      this.#endCut = null;
      this.#settleCut(isGenerating);
    };
  }

  /** Nobody will report any more: the last word counts. */
  stopWaiting(): void {
    this.#endCut?.();
    this.#cancelStall?.();
  }

  /** Has the attempt been heard? If so it is over. */
  checkHeard(): void {
    const attempt = this.#attempt;
    if (!attempt?.isHeard) return;
    this.#attempt = null;
    if (!attempt.hasBegun) this.#ports.begun(attempt);
    this.#ports.heard(attempt);
  }

  #over(items: readonly Played[]): void {
    for (const { itemId, playedMs, responseId } of items)
      if (responseId === this.#attempt?.responseId) this.#attempt.played(itemId, playedMs);
    this.checkHeard();
    if (this.#playout.isDrained) this.#drained();
  }

  #watchStall(delayMs: number): void {
    const { clock, scheduler } = this.#environment;
    this.#cancelStall = scheduler.schedule(() => {
      const silentSince = this.#lastWordAt + this.#playout.unplayedMs + STALL_GRACE_MS;
      const leftMs = silentSince - clock.now();
      if (leftMs > 0) {
        this.#watchStall(leftMs);
        return;
      }
      const stalled = this.#playout.clear();
      this.#drained();
      // Of one that reports nothing at all nobody knows: it may well have been heard.
      if (this.#attempt?.hasBegun) this.#endAttempt(stalled);
    }, delayMs);
  }

  #drained(): void {
    this.#cancelStall?.();
    this.#cancelStall = null;
    if (!this.#isPlaying) return;
    this.#isPlaying = false;
    this.#ports.drained();
  }

  #settleCut(isGenerating: boolean): void {
    const cut = this.#cut;
    this.#cut = [];
    for (const item of cut) {
      if (this.#attempt?.responseId === item.responseId)
        this.#attempt.played(item.itemId, item.playedMs);
      this.#ports.cut(item);
    }
    this.checkHeard();
    if (!isGenerating) this.#endAttempt(cut);
    this.#ports.settled();
  }

  /** Of these items no more is played: what they were to say was not heard. */
  #endAttempt(items: readonly Played[]): void {
    const attempt = this.#attempt;
    if (!attempt || !items.some(({ responseId }) => responseId === attempt.responseId)) return;
    this.#attempt = null;
    this.#ports.interrupted(attempt);
  }
}
