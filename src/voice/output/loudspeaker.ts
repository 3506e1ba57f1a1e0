// The model's sound on its way to the client. It can be paused at once and continued from where it was heard:
// sent sound is kept until the client has reported it as played.
//
//   playing ── pause ─▶ paused ─┬─ goOn ─▶ playing    the rest, as new items `<id>~2` …
//      ▲                        └─ drop ─┐
//      └──────── drop ◀─────────────────-┘            nothing of it is heard any more
//
// Owns:     the stream of sound, the kept part of it, and the names by which the client knows the items.
// Does not: decide when speech stops or continues (interruptions), or how much was heard (speech): both see a
//           pause as a client that plays nothing for a while.
//
// Invariants
//   LOUDSPEAKER-1. Continued sound begins where the last report ended: nothing is left out, and only the
//       sound played since that report is heard twice.
//   LOUDSPEAKER-2. Sound of a paused item reaches the client in order after the item continues, or never.
//   LOUDSPEAKER-3. Each report is translated to the item that the model made: its milliseconds stay those of
//       that item, however often it was paused.
//   LOUDSPEAKER-4. At most `KEPT_MS` of sound is kept. If more would be needed, the item cannot be paused.

import { Subject, type Observable } from 'rxjs';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';

const KEPT_MS = 120_000;
/** Number of names whose reports are still translated; older names are forgotten. */
const MAX_RENAMED = 50;

/** How far an item was played, from its beginning. */
export interface PlayedItem {
  readonly itemId: string;
  readonly playedMs: number;
}

interface Kept {
  readonly frame: AudioFrame;
  readonly itemId: string;
  /** The position in its item where this sound begins. */
  readonly startMs: number;
}

/** Another name by which the client knows an item from some position on. */
interface Renamed {
  readonly itemId: string;
  readonly alias: string;
  readonly offsetMs: number;
}

export class Loudspeaker {
  readonly #clear: () => void;
  readonly #audioOut = new Subject<AudioFrame>();
  /** The length of the sound sent for each item that may still be needed. */
  readonly #saidMs = new Map<string, number>();
  #kept: Kept[] = [];
  #keptMs = 0;
  #isWhole = true;
  #renamed: readonly Renamed[] = [];
  #pauses = 0;
  #isPaused = false;
  /** The position where the client stopped, as reported since the pause. */
  #stoppedAt: PlayedItem | null = null;

  /** @param clear Tells the client to drop the sound that it has not played. */
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
    // LOUDSPEAKER-4: sound behind a hole is useless.
    this.#isWhole &&= this.#keptMs + durationMs <= KEPT_MS;
    if (this.#isWhole) {
      this.#kept.push({ frame, itemId, startMs });
      this.#keptMs += durationMs;
    }
    if (!this.#isPaused) this.#send(frame, itemId);
  }

  /** Translates a report of the client to the item that the model made. */
  played(report: PlayedItem): PlayedItem {
    const renamed = this.#renamed.find(({ alias }) => alias === report.itemId);
    const itemId = renamed?.itemId ?? report.itemId;
    const playedMs = Math.max(0, report.playedMs) + (renamed?.offsetMs ?? 0);
    // A client that is told to stop also reports items that it had not begun: that implies nothing about
    // earlier items.
    const hasBegun = report.playedMs > 0;
    if (hasBegun) this.#wasPlayed(itemId, playedMs);
    if (this.#isPaused && (hasBegun || !this.#stoppedAt)) this.#stoppedAt = { itemId, playedMs };
    return { itemId, playedMs };
  }

  /**
   * Stops the sound so that it can continue later. Returns false, and changes nothing, if it could not
   * continue.
   */
  pause(): boolean {
    if (!this.#isWhole || this.#isPaused) return false;
    this.#isPaused = true;
    this.#stoppedAt = null;
    this.#clear();
    return true;
  }

  /** Continues from where the sound was heard. Returns that position; null if no sound is left. */
  resume(): PlayedItem | null {
    this.#isPaused = false;
    this.#pauses += 1;
    // The client knows each of these names and has dropped its sound.
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

  /** Drops the sound for good. Returns where the client stopped, if it was paused and has reported that. */
  drop(): PlayedItem | null {
    const stoppedAt = this.#stoppedAt;
    // A paused client has already dropped all sound.
    if (!this.#isPaused) this.#clear();
    this.drained();
    return stoppedAt;
  }

  /** Plays background sound that is not speech: no report tells whether it was heard. */
  playBackground(frame: AudioFrame): void {
    this.#audioOut.next(frame);
  }

  /** Drops the background sound that the client has not played. */
  endBackground(): void {
    // Speech that is on its way takes precedence over silencing the background sound.
    if (this.#kept.length === 0) this.#clear();
  }

  /** Forgets the kept sound: none of it will be played any more. */
  drained(): void {
    this.#isPaused = false;
    this.#stoppedAt = null;
    this.#saidMs.clear();
    this.#kept = [];
    this.#keptMs = 0;
    this.#isWhole = true;
  }

  /** Ends the stream. */
  complete(): void {
    this.drained();
    this.#audioOut.complete();
  }

  #send(frame: AudioFrame, itemId: string): void {
    const renamed = this.#renamed.findLast((each) => each.itemId === itemId);
    this.#audioOut.next(renamed ? { ...frame, itemId: renamed.alias } : frame);
  }

  /** Records that all sound before this item was played, and the item itself up to `playedMs`. */
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

/** Returns the unplayed part of the kept sound; null if all was played. */
function restOf(kept: Kept, playedMs: number): Kept | null {
  const { frame, startMs } = kept;
  const { samples, sampleRateHz } = frame;
  const skipped = Math.round(((playedMs - startMs) * sampleRateHz) / 1000);
  if (skipped <= 0) return kept;
  if (skipped >= samples.length) return null;
  const rest = { ...frame, samples: samples.subarray(skipped) };
  return { ...kept, frame: rest, startMs: startMs + (skipped * 1000) / sampleRateHz };
}
