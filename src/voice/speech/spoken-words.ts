// An assistant item's words and their times. When a client stops playing, they show which part must be removed from the
// model's memory.
//
// SPOKEN-WORDS-1. `text()` is the text that was sent and not truncated, in written order.
// SPOKEN-WORDS-2. After `truncate`, no word is added.

interface SpokenWord {
  /** The word with the white space around it. */
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

export class SpokenWords {
  #words: SpokenWord[] = [];
  #durationMs = 0;
  #truncated = false;

  /** The duration of the sent audio, or after a truncation, of its remaining part. */
  get durationMs(): number {
    return this.#durationMs;
  }

  /** Adds a word that starts at `startMs` of the item. */
  addWord(word: SpokenWord): void {
    if (!this.#truncated) this.#words.push(word);
  }

  addSound(durationMs: number): void {
    if (!this.#truncated) this.#durationMs += durationMs;
  }

  text(): string {
    return this.#words.map((word) => word.text).join('');
  }

  /** Keeps the words that had been more than half spoken at `atMs`. */
  truncate(atMs: number): void {
    this.#truncated = true;
    this.#durationMs = Math.min(this.#durationMs, atMs);
    this.#words = this.#words.filter(({ startMs, endMs }) => (startMs + endMs) / 2 <= atMs);
  }
}

/** Returns a sentence's words, dividing the sentence's audio among them in proportion to their length. */
export function placeWords(sentence: string, startMs: number, durationMs: number): SpokenWord[] {
  const words = sentence.match(/(?:^\s+)?\S+\s*/g) ?? (sentence === '' ? [] : [sentence]);
  let characters = 0;
  const timeOf = (count: number): number => startMs + (durationMs * count) / sentence.length;
  return words.map((text) => {
    const from = characters;
    characters += text.length;
    return { text, startMs: timeOf(from), endMs: timeOf(characters) };
  });
}
