// The loudspeaker of a client: plays in order what it gets, knows what it has played, and drops
// the rest when told to.
//
// Owns:     what was really played, and when.
// Does not: wait (whoever has it lets time pass), know what was said, or judge.

import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { PlayoutReport } from '../../voice/voice-session.ts';

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

export class Loudspeaker {
  /** In the order in which they began. */
  readonly plays: Play[] = [];
  readonly #now: () => number;
  readonly #report: (report: PlayoutReport) => void;

  /** `report`: what a client tells the session. */
  constructor(now: () => number, report: (report: PlayoutReport) => void) {
    this.#now = now;
    this.#report = report;
  }

  /** Something is to be played still. */
  get isPlaying(): boolean {
    return this.plays.some((play) => !play.isCleared && play.playedMs < play.sentMs);
  }

  took(frame: AudioFrame): void {
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

  /** So much time has passed. */
  play(ms: number): void {
    let leftMs = ms;
    for (const play of this.plays) {
      const dueMs = play.isCleared ? 0 : Math.min(leftMs, play.sentMs - play.playedMs);
      if (dueMs <= 0) continue;
      play.playedMs += dueMs;
      play.lastAt = this.#now();
      play.firstAt = Math.min(play.firstAt, play.lastAt);
      leftMs -= dueMs;
      this.#tell(play);
      if (leftMs <= 0) return;
    }
  }

  clear(): void {
    for (const play of this.plays) {
      // The last one may go on: all that there was of it has been played.
      const isOver = play.playedMs >= play.sentMs && play !== this.plays.at(-1);
      if (play.isCleared || isOver) continue;
      play.isCleared = true;
      this.#tell(play);
    }
  }

  #tell({ itemId, playedMs }: Play): void {
    this.#report({ itemId, playedMs });
  }
}
