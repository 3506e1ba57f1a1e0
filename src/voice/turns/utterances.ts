// The start times of the user's utterances on the session's clock, and whether the user has the floor. A
// transport counts from the first audio that it received; the session knows how much it sent and when.
//
// Owns:     the mapping from transport time to session time, the starts of utterances, and which of them have
//           no known words yet.
// Does not: detect speech.

/** Utterances without a transcript are forgotten after this many others. */
const KEPT = 50;

export class Utterances {
  #sentMs = 0;
  readonly #beginnings = new Map<string, number>();
  readonly #untranscribed = new Set<string>();
  #isSpeaking = false;
  #latest: string | null = null;

  /** Records audio of the user that went to the transport. */
  sent(durationMs: number): void {
    this.#sentMs += durationMs;
  }

  /** Restarts the count for a new connection. */
  reset(): void {
    this.#sentMs = 0;
    this.#beginnings.clear();
    this.#untranscribed.clear();
    this.#isSpeaking = false;
  }

  /** Whether the user speaks, or the words and the addressee of the last utterance are not known yet. */
  get hasFloor(): boolean {
    return this.#isSpeaking || this.#untranscribed.size > 0;
  }

  ended(utteranceId: string): void {
    // After the client is gone its words are not waited for.
    if (!this.#isSpeaking) return;
    this.#isSpeaking = false;
    this.#untranscribed.add(utteranceId);
  }

  /** Records that an utterance is settled: its words are known, or it had none. */
  understood(utteranceId: string): void {
    this.#untranscribed.delete(utteranceId);
  }

  /** Stops waiting for words that have not arrived by now. */
  wordsAreOverdue(): void {
    this.#untranscribed.clear();
  }

  /** The id of the utterance that the user is saying; null if there is none. */
  get open(): string | null {
    return this.#isSpeaking ? this.#latest : null;
  }

  /** Handles the loss of the client: neither the end of the utterance nor its words are waited for. */
  giveUpWaiting(): void {
    this.#untranscribed.clear();
    this.#isSpeaking = false;
  }

  /**
   * Handles the start of speech, `audioStartMs` after the first audio. Returns the start on the session's
   * clock. `takesFloor`: false for background noise, which is not waited for.
   */
  began(utteranceId: string, audioStartMs: number, now: number, takesFloor: boolean): number {
    // Audio is sent as it is recorded: the length sent since the start tells how long ago it was.
    const at = now - Math.max(0, this.#sentMs - audioStartMs);
    if (takesFloor) {
      this.#isSpeaking = true;
      this.#latest = utteranceId;
    }
    this.#beginnings.set(utteranceId, at);
    for (const id of this.#beginnings.keys()) {
      if (this.#beginnings.size <= KEPT) break;
      this.#beginnings.delete(id);
    }
    return at;
  }

  /** When the oldest utterance without known words began; null if the user does not have the floor. */
  get unknownSince(): number | null {
    const open = [...this.#untranscribed, ...(this.#isSpeaking ? [this.#latest ?? ''] : [])];
    const begun = open.flatMap((id) => this.#beginnings.get(id) ?? []);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  beganAt(utteranceId: string): number | undefined {
    return this.#beginnings.get(utteranceId);
  }
}
