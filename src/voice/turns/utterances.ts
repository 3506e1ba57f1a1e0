// When the user's utterances began, on our clock, and whether the user has the floor. A
// wire counts from the first audio it got; we know how much we sent and when.
//
// Owns:     the mapping from the wire's time to ours, the beginnings of utterances, and
//           which of them are not known in words yet.
// Does not: detect speech.

/** Utterances that never get a transcript are forgotten after so many others. */
const KEPT = 50;

export class Utterances {
  #sentMs = 0;
  readonly #beginnings = new Map<string, number>();
  readonly #untranscribed = new Set<string>();
  #isSpeaking = false;
  #latest: string | null = null;

  /** Audio of the user went to the wire. */
  sent(durationMs: number): void {
    this.#sentMs += durationMs;
  }

  /** A new connection counts from zero again. */
  reset(): void {
    this.#sentMs = 0;
    this.#beginnings.clear();
    this.#untranscribed.clear();
    this.#isSpeaking = false;
  }

  /** The user speaks, or it is not known yet what they said and to whom. */
  get hasFloor(): boolean {
    return this.#isSpeaking || this.#untranscribed.size > 0;
  }

  ended(utteranceId: string): void {
    // Nobody waits for the words of somebody who has gone.
    if (!this.#isSpeaking) return;
    this.#isSpeaking = false;
    this.#untranscribed.add(utteranceId);
  }

  /** It is known what was said, or that it was nothing. */
  understood(utteranceId: string): void {
    this.#untranscribed.delete(utteranceId);
  }

  /** Words that have not come by now are not waited for. */
  wordsAreOverdue(): void {
    this.#untranscribed.clear();
  }

  /** The utterance that the user is saying, or null. */
  get open(): string | null {
    return this.#isSpeaking ? this.#latest : null;
  }

  /** Whoever spoke has gone: neither the end of it nor its words are waited for. */
  giveUpWaiting(): void {
    this.#untranscribed.clear();
    this.#isSpeaking = false;
  }

  /**
   * Speech was detected, `audioStartMs` after the first audio. Returns when it began, on our clock.
   * `takesFloor`: false for a noise in the background, which nobody waits for.
   */
  began(utteranceId: string, audioStartMs: number, now: number, takesFloor: boolean): number {
    // Audio is sent as it is recorded: what was sent after the beginning is how long ago it was.
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

  /** When the user began to say what is not known in words yet; null: they have not the floor. */
  get unknownSince(): number | null {
    const open = [...this.#untranscribed, ...(this.#isSpeaking ? [this.#latest ?? ''] : [])];
    const begun = open.flatMap((id) => this.#beginnings.get(id) ?? []);
    return begun.length === 0 ? null : Math.min(...begun);
  }

  beganAt(utteranceId: string): number | undefined {
    return this.#beginnings.get(utteranceId);
  }
}
