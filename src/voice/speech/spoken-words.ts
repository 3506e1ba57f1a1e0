// What an assistant item said, and when: so that a client which stopped playing can
// have the unheard end taken out of the model's memory.
//
// SPOKEN-WORDS-1. `text()` is what was sent and not truncated; words follow each other as they were written.
// SPOKEN-WORDS-2. After `truncate` nothing is added any more.

interface SpokenWord {
  /** With the white space around it. */
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

export class SpokenWords {
  #words: SpokenWord[] = [];
  #durationMs = 0;
  #truncated = false;

  /** Sound that was sent (or is left, after a truncation). */
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

  /** Keeps the words that had sounded for the greater part by `atMs`. */
  truncate(atMs: number): void {
    this.#truncated = true;
    this.#durationMs = Math.min(this.#durationMs, atMs);
    this.#words = this.#words.filter(({ startMs, endMs }) => (startMs + endMs) / 2 <= atMs);
  }
}

/** The words of a sentence, each with its share of the sentence's sound. */
export function placeWords(sentence: string, startMs: number, durationMs: number): SpokenWord[] {
  const words = sentence.match(/\s*\S+\s*/g) ?? (sentence === '' ? [] : [sentence]);
  let characters = 0;
  const timeOf = (count: number): number => startMs + (durationMs * count) / sentence.length;
  return words.map((text) => {
    const from = characters;
    characters += text.length;
    return { text, startMs: timeOf(from), endMs: timeOf(characters) };
  });
}
