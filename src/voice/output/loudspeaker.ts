// The sound on its way to the client. It can be stopped at once, and go on from where it was
// heard: what was sent is kept until it is known to be played.
//
//   playing ── pause ─▶ paused ─┬─ goOn ─▶ playing    the rest, as new items `<id>~2` …
//      ▲                        └─ drop ─┐
//      └──────── drop ◀─────────────────-┘            nothing of it is heard any more
//
// Owns:     the stream of sound, what of it may still be needed, and the names that the client
//           knows its items by.
// Does not: decide when speech stops or goes on (interruptions), or what was heard (speech): to
//           them a pause is a client that plays nothing for a while.
//
// Invariants
//   LOUDSPEAKER-1. What goes on begins where the last report ended: nothing is left out, and only what
//       was played since that report is heard twice.
//   LOUDSPEAKER-2. Sound of a paused item reaches the client once it goes on, in order, or never.
//   LOUDSPEAKER-3. A report is translated to the item that the model made: of each the reports name the
//       same milliseconds, however often it was paused.
//   LOUDSPEAKER-4. At most `KEPT_MS` of sound is kept. Where that is not enough there is no pause.

import { Subject, type Observable } from 'rxjs';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';

const KEPT_MS = 120_000;
/** Reports of a name that was given so long ago come no more. */
const MAX_RENAMED = 50;

/** So much of an item was played, from its beginning. */
export interface PlayedItem {
  readonly itemId: string;
  readonly playedMs: number;
}

interface Kept {
  readonly frame: AudioFrame;
  readonly itemId: string;
  /** Where in its item it begins. */
  readonly startMs: number;
}

/** The client knows an item, from a point on, by another name. */
interface Renamed {
  readonly itemId: string;
  readonly alias: string;
  readonly offsetMs: number;
}

export class Loudspeaker {
  readonly #clear: () => void;
  readonly #audioOut = new Subject<AudioFrame>();
  /** How much was said of the items of which something may still be needed. */
  readonly #saidMs = new Map<string, number>();
  #kept: Kept[] = [];
  #keptMs = 0;
  #isWhole = true;
  #renamed: readonly Renamed[] = [];
  #pauses = 0;
  #isPaused = false;
  /** The client's word on where it stopped, since the pause. */
  #stoppedAt: PlayedItem | null = null;

  /** `clear`: tells the client to drop what it has not played. */
  constructor(clear: () => void) {
    this.#clear = clear;
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#audioOut.asObservable();
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  say(frame: AudioFrame): void {
    const { itemId = '' } = frame;
    const startMs = this.#saidMs.get(itemId) ?? 0;
    const durationMs = frameDurationMs(frame);
    this.#saidMs.set(itemId, startMs + durationMs);
    // LOUDSPEAKER-4: what follows a hole is of no use.
    this.#isWhole &&= this.#keptMs + durationMs <= KEPT_MS;
    if (this.#isWhole) {
      this.#kept.push({ frame, itemId, startMs });
      this.#keptMs += durationMs;
    }
    if (!this.#isPaused) this.#send(frame, itemId);
  }

  /** The client's word on what it played, in the terms of what was made. */
  played(report: PlayedItem): PlayedItem {
    const renamed = this.#renamed.find(({ alias }) => alias === report.itemId);
    const itemId = renamed?.itemId ?? report.itemId;
    const playedMs = Math.max(0, report.playedMs) + (renamed?.offsetMs ?? 0);
    // A client that is told to stop also reports what it had not begun: that says nothing of what came before.
    const hasBegun = report.playedMs > 0;
    if (hasBegun) this.#wasPlayed(itemId, playedMs);
    if (this.#isPaused && (hasBegun || !this.#stoppedAt)) this.#stoppedAt = { itemId, playedMs };
    return { itemId, playedMs };
  }

  /** Silence, and perhaps not for good. False: it could not go on; nothing has changed then. */
  pause(): boolean {
    if (!this.#isWhole || this.#isPaused) return false;
    this.#isPaused = true;
    this.#stoppedAt = null;
    this.#clear();
    return true;
  }

  /** From where it was heard. Returns where that is; null: there is nothing left of it. */
  goOn(): PlayedItem | null {
    this.#isPaused = false;
    this.#pauses += 1;
    // The client has heard of each of them, and dropped it.
    for (const [itemId, saidMs] of this.#saidMs) {
      const first = this.#kept.find((kept) => kept.itemId === itemId);
      const alias = `${itemId}~${this.#pauses + 1}`;
      const renamed = { itemId, alias, offsetMs: first?.startMs ?? saidMs };
      if (itemId !== '') this.#renamed = [...this.#renamed, renamed].slice(-MAX_RENAMED);
    }
    for (const { frame, itemId } of this.#kept) this.#send(frame, itemId);
    const [first] = this.#kept;
    return first ? { itemId: first.itemId, playedMs: first.startMs } : null;
  }

  /** Silence, for good. Returns where the client stopped, if it was paused and has said so. */
  drop(): PlayedItem | null {
    const stoppedAt = this.#stoppedAt;
    // One that is paused has dropped it all.
    if (!this.#isPaused) this.#clear();
    this.drained();
    return stoppedAt;
  }

  /** Sound that is no speech: nobody asks whether it was heard. */
  murmur(frame: AudioFrame): void {
    this.#audioOut.next(frame);
  }

  /** What of it is not played shall not be. */
  endMurmur(): void {
    // Speech that is on its way is worth more than silence.
    if (this.#kept.length === 0) this.#clear();
  }

  /** Nothing of what was said is to be played any more. */
  drained(): void {
    this.#isPaused = false;
    this.#stoppedAt = null;
    this.#saidMs.clear();
    this.#kept = [];
    this.#keptMs = 0;
    this.#isWhole = true;
  }

  /** Nothing follows. */
  complete(): void {
    this.drained();
    this.#audioOut.complete();
  }

  #send(frame: AudioFrame, itemId: string): void {
    const renamed = this.#renamed.findLast((each) => each.itemId === itemId);
    this.#audioOut.next(renamed ? { ...frame, itemId: renamed.alias } : frame);
  }

  /** It was played: what came before this item, and so much of it. */
  #wasPlayed(itemId: string, playedMs: number): void {
    if (!this.#saidMs.has(itemId)) return;
    for (const earlier of this.#saidMs.keys()) {
      if (earlier === itemId) break;
      this.#saidMs.delete(earlier);
    }
    for (let [first] = this.#kept; first; [first] = this.#kept) {
      const isEarlier = !this.#saidMs.has(first.itemId);
      if (!isEarlier && first.itemId !== itemId) break;
      const rest = isEarlier ? null : restOf(first, playedMs);
      this.#keptMs -= frameDurationMs(first.frame) - (rest ? frameDurationMs(rest.frame) : 0);
      if (rest) {
        this.#kept[0] = rest;
        break;
      }
      this.#kept.shift();
    }
  }
}

/** What of it is not played; null: nothing. */
function restOf(kept: Kept, playedMs: number): Kept | null {
  const { frame, startMs } = kept;
  const { samples, sampleRateHz } = frame;
  const skipped = Math.round(((playedMs - startMs) * sampleRateHz) / 1000);
  if (skipped <= 0) return kept;
  if (skipped >= samples.length) return null;
  const rest = { ...frame, samples: samples.subarray(skipped) };
  return { ...kept, frame: rest, startMs: startMs + (skipped * 1000) / sampleRateHz };
}
