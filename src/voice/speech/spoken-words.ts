// The words of an assistant item with their times. When a client stops playing, they show which end of the item the
// model's memory must lose.
//
// SPOKEN-WORDS-1. `text()` is the text that was sent and not truncated, in the order in which it was written.
// SPOKEN-WORDS-2. After `truncate` no word is added.

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

  /** The length of the audio that was sent, or, after a truncation, of its remaining part. */
  get durationMs(): number {
    return this.#durationMs;
  }

  /** Adds a word that begins to sound at `startMs` of the item. */
  addWord(word: SpokenWord): void {
    if (!this.#truncated) this.#words.push(word);
  }

  addSound(durationMs: number): void {
    if (!this.#truncated) this.#durationMs += durationMs;
  }

  text(): string {
    return this.#words.map((word) => word.text).join('');
  }

  /** Keeps the words of which more than half had sounded at `atMs`. */
  truncate(atMs: number): void {
    this.#truncated = true;
    this.#durationMs = Math.min(this.#durationMs, atMs);
    this.#words = this.#words.filter(({ startMs, endMs }) => (startMs + endMs) / 2 <= atMs);
  }
}

/** Returns the words of a sentence, each with a share of the sentence's audio in proportion to its length. */
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
