// What has left the speaker. Audio is made faster than it plays, so only the client
// knows; it reports played milliseconds by item, and everything here follows from that.
//
// Owns:     for each item, how much was sent to the client and how much it played.
// Does not: hold audio, or decide what an interruption means.
//
// Invariants
//   PLAYOUT-1. Played never exceeds sent, and never goes back.
//   PLAYOUT-2. An item is over when its response is complete and it was played to its end, or
//       when the client was told to drop the rest.
//   PLAYOUT-3. Items play in the order in which they were sent: a report that one has begun means
//       that those before it were played.

/** Clients count in frames of 20 ms; the last one may not be reported in full. */
const TOLERANCE_MS = 30;

interface Tracked {
  readonly itemId: string;
  readonly responseId: string;
  sentMs: number;
  playedMs: number;
  isComplete: boolean;
}

/** How much of an item the user heard. */
export type Played = Readonly<Omit<Tracked, 'isComplete'>>;

export class Playout {
  readonly #items = new Map<string, Tracked>();

  /** Nothing is playing, or about to. */
  get isDrained(): boolean {
    return this.#items.size === 0;
  }

  /** What was sent and is not reported as played, of all items together. */
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

  /** No more audio comes for this response. Returns the items that are over by that. */
  complete(responseId: string): readonly Played[] {
    for (const item of this.#items.values())
      if (item.responseId === responseId) item.isComplete = true;
    return this.#takeOver();
  }

  /** The client has played so much of the item. Returns the items that are over by that. */
  played(itemId: string, playedMs: number): readonly Played[] {
    const item = this.#items.get(itemId);
    if (!item || !(playedMs >= 0)) return [];
    // A client that is told to stop also reports what it had not begun.
    if (playedMs > 0)
      for (const earlier of this.#items.values()) {
        if (earlier === item) break;
        earlier.playedMs = earlier.sentMs;
      }
    item.playedMs = Math.max(item.playedMs, Math.min(playedMs, item.sentMs));
    return this.#takeOver();
  }

  /** The client drops what it has not played. Returns what was cut off, in order. */
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
