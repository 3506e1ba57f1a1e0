// The words of an assistant item, and their times. When a client stops playing, they determine which part has to be
// removed from the model's memory.
//
// SPOKEN-WORDS-1. `text()` returns the text that was sent and not truncated, in written order.
// SPOKEN-WORDS-2. After `truncate`, no more words are added.

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

  /** The duration of the audio that was sent or, after a truncation, of its remaining part. */
  get durationMs(): number {
    return this.#durationMs;
  }

  /** Adds a word that starts `startMs` after the start of the item. */
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

/** Returns a sentence's words, with the sentence's audio divided among them in proportion to their length. */
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
