// Tracks how much audio the client has played. The model generates audio faster than it is played, so only the client
// can report the current position. The client reports how many milliseconds of each item it has played, and all state
// in this module is derived from these reports.
//
// Owns:     how much of each item has been sent and played.
// Does not: store audio, or interpret an interruption.
//
// Invariants
//   PLAYOUT-1. The played duration never exceeds the sent duration and never decreases.
//   PLAYOUT-2. An item has ended when its response is complete and all of its audio has been played, or when the client
//       was instructed to drop the rest.
//   PLAYOUT-3. Items are played in the order in which they are sent. A report about an item therefore shows that all
//       earlier items have been played.

/**
 * The tolerance at the end of an item, because clients count in 20 ms frames and may not report the last frame in full.
 */
const TOLERANCE_MS = 30;

interface Tracked {
  readonly itemId: string;
  readonly responseId: string;
  sentMs: number;
  playedMs: number;
  isComplete: boolean;
}

/** How much of an item has been sent and played. */
export type Played = Readonly<Omit<Tracked, 'isComplete'>>;

export class Playout {
  readonly #items = new Map<string, Tracked>();

  /** Whether no audio is playing or about to play. */
  get isDrained(): boolean {
    return this.#items.size === 0;
  }

  /** The duration of audio that was sent but not yet reported as played, over all items, in milliseconds. */
  get unplayedMs(): number {
    let total = 0;
    for (const { sentMs, playedMs } of this.#items.values()) total += sentMs - playedMs;
    return total;
  }

  get current(): readonly Played[] {
    return [...this.#items.values()];
  }

  sent(itemId: string, responseId: string, durationMs: number): void {
    const item = this.#items.get(itemId);
    if (item) item.sentMs += durationMs;
    else
      this.#items.set(itemId, {
        itemId,
        responseId,
        sentMs: durationMs,
        playedMs: 0,
        isComplete: false,
      });
  }

  /** Marks a response as complete. Returns the items that end as a result. */
  complete(responseId: string): readonly Played[] {
    for (const item of this.#items.values())
      if (item.responseId === responseId) item.isComplete = true;
    return this.#takeOver();
  }

  /** Records the position up to which the client has played an item. Returns the items that end as a result. */
  played(itemId: string, playedMs: number): readonly Played[] {
    const item = this.#items.get(itemId);
    if (!item || !(playedMs >= 0)) return [];
    // A client that was instructed to stop also reports items that have not started, with 0 ms.
    if (playedMs > 0)
      for (const earlier of this.#items.values()) {
        if (earlier === item) break;
        earlier.playedMs = earlier.sentMs;
      }
    item.playedMs = Math.max(item.playedMs, Math.min(playedMs, item.sentMs));
    return this.#takeOver();
  }

  /** Drops the audio that has not been played. Returns the items that were cut off, in order. */
  clear(): readonly Played[] {
    const cut = this.current;
    this.#items.clear();
    return cut;
  }

  #takeOver(): readonly Played[] {
    const over: Played[] = [];
    for (const item of this.#items.values()) {
      if (!item.isComplete || item.playedMs < item.sentMs - TOLERANCE_MS) continue;
      item.playedMs = item.sentMs;
      over.push(item);
      this.#items.delete(item.itemId);
    }
    return over;
  }
}
