// The loudspeaker of a client. It plays received audio in order, tracks what it has played, and drops the rest on
// request.
//
// Owns:     the record of the audio that was really played, and when.
// Does not: wait (its owner advances time), know the text of the audio, or judge.

import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { PlayoutReport } from '../../voice/spoken-lead.ts';

/** An item as the loudspeaker received it. */
export interface Play {
  /** The `itemId` of the frames; empty if they have none. */
  readonly itemId: string;
  /** The `responseId` of the item's first frame; empty if it has none. */
  readonly responseId: string;
  /** The duration of the item's audio that has arrived, in milliseconds. */
  sentMs: number;
  /** The duration of the item's audio that has been played, in milliseconds. */
  playedMs: number;
  /** The item was stopped and the unplayed part was dropped. */
  isCleared: boolean;
  /** When the item started to play, in milliseconds since 1970; `Infinity` before that. */
  firstAt: number;
  /** When the item last played, in milliseconds since 1970; `-Infinity` before that. */
  lastAt: number;
}

export class Loudspeaker {
  /** The playbacks, in the order in which they started. */
  readonly plays: Play[] = [];
  readonly #now: () => number;
  readonly #report: (report: PlayoutReport) => void;

  /** `report` receives the reports that the client sends to the session. */
  constructor(now: () => number, report: (report: PlayoutReport) => void) {
    this.#now = now;
    this.#report = report;
  }

  /** Returns whether any audio is left to play. */
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

  /** Plays audio for this long. */
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
      // More audio for the last item may arrive, but everything so far has been played.
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
