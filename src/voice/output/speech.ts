// The current speech of the session as the user hears it: the audio on its way to the speaker, the offer
// being said, and the remainder of both after an interruption.
//
// Owns:     the playout, the attempt under way, and the speech that was cut off.
// Does not: talk to the model; its owner receives events.
//
// Invariants
//   SPEECH-1. An attempt ends in exactly one of heard, interrupted, failed, or is given up by the session.
//   SPEECH-2. A stop reaches the client at once. The heard part follows from the client's report; without a
//       report within `clearReportMs` it follows from the previous one.
//   SPEECH-3. A client that stops reporting does not block the session: long after all sound must have been
//       played, the speaker counts as silent and the unreported sound as not heard. An attempt whose playback
//       had begun counts as interrupted.

import type { Environment } from '../../actors/ports/environment.ts';
import type { Attempt } from '../connection/attempt.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { Playout, type Played } from './playout.ts';

/** The client reports about every 100 ms: after this long without a report none will come. */
const STALL_GRACE_MS = 5000;

export interface SpeechPorts {
  /** Reports that audio is on its way again. */
  started(): void;
  /** Reports that no audio is on its way any more. */
  drained(): void;
  /** Reports that the user begins to hear the attempt. */
  begun(attempt: Attempt): void;
  heard(attempt: Attempt): void;
  interrupted(attempt: Attempt): void;
  /** Tells the client to drop the sound that it has not played. */
  clear(): void;
  /** Reports the part of an item that the user heard before it was cut off. */
  cut(item: Played): void;
  /** Reports that the heard part of all cut-off speech is known. */
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

  /** The ids of the items that were sent and are not played to their end. */
  get playing(): readonly string[] {
    return this.#playout.current.map(({ itemId }) => itemId);
  }

  /** The ids in `playing` and those of cut-off items whose heard part is not known yet. */
  get unsettled(): readonly string[] {
    return [...this.playing, ...this.#cut.map(({ itemId }) => itemId)];
  }

  /** The ids of the responses whose sound plays or is about to. */
  get playingOf(): readonly string[] {
    return this.#playout.current.map(({ responseId }) => responseId);
  }

  get attempt(): Attempt | null {
    return this.#attempt;
  }

  /** Makes this attempt the one being said. */
  begin(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  /** Gives up the attempt for reasons of the session. */
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

  /** Marks the audio of a response as complete. */
  completed(responseId: string): void {
    this.#over(this.#playout.complete(responseId));
  }

  /** Marks all audio as complete; sound that has come plays on. */
  completedAll(): void {
    for (const { responseId } of this.#playout.current) this.completed(responseId);
  }

  /** Handles a client report of played sound. */
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

  /** Stops all speech at once. `isGenerating`: the attempt's response will still report its end. */
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

  /** Stops waiting for reports: the last one counts. */
  stopWaiting(): void {
    this.#endCut?.();
    this.#cancelStall?.();
  }

  /** Ends the attempt if it has been heard. */
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
      // If the client reports nothing at all, it is unknown whether the speech was heard.
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

  /** Ends the attempt: these items will not be played any further, so their content was not heard. */
  #endAttempt(items: readonly Played[]): void {
    const attempt = this.#attempt;
    if (!attempt || !items.some(({ responseId }) => responseId === attempt.responseId)) return;
    this.#attempt = null;
    this.#ports.interrupted(attempt);
  }
}
