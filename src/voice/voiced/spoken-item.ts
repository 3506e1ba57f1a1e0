// One message of a text model while it is spoken: its sentences and their positions in the sound, so that
// played sound can be mapped to words.
//
// Owns:     the words of the item, and how much of its sound was passed on.
// Does not: synthesise, or know how much was played.
//
// Invariants
//   SPOKEN-ITEM-1. `textUntil` never returns words whose sound was not passed on, and returns all words whose
//       sound was played.
//   SPOKEN-ITEM-2. A sentence of unknown length is assumed to be as long as similar ones.

import { SentenceChunker } from '../speech/sentence-chunker.ts';
import { placeWords } from '../speech/spoken-words.ts';

/** Milliseconds per character, before the pace of the voice is known. */
const FIRST_GUESS_MS = 65;

interface Sentence {
  readonly text: string;
  readonly startMs: number;
  /** The length of the sound that was passed on. */
  soundMs: number;
  /** The length of the whole sentence, as far as known. */
  lengthMs: number;
}

export class SpokenItem {
  readonly itemId: string;
  /** The model is not to remember the words of the item. */
  readonly isOutOfBand: boolean;
  readonly #chunker = new SentenceChunker();
  readonly #sentences: Sentence[] = [];
  #msPerCharacter = FIRST_GUESS_MS;
  #written = '';
  #shown = 0;
  /** Whether the model has finished writing it. */
  isWritten = false;

  constructor(itemId: string, isOutOfBand: boolean) {
    this.itemId = itemId;
    this.isOutOfBand = isOutOfBand;
  }

  /** The whole text written by the model. */
  get written(): string {
    return this.#written;
  }

  /** The sound that was passed on, in milliseconds. */
  get soundMs(): number {
    return this.#sentences.reduce((sum, { soundMs }) => sum + soundMs, 0);
  }

  /** Adds text, or (`final`) sets the whole of it. Returns the sentences that can be spoken now. */
  write(text: string, final: boolean): readonly string[] {
    if (this.isWritten) return [];
    const isWhole = final && text.startsWith(this.#written);
    const added = isWhole ? text.slice(this.#written.length) : final ? '' : text;
    this.#written += added;
    const pieces = this.#chunker.push(added);
    return final ? [...pieces, ...this.end()] : pieces;
  }

  /** Marks the text as complete. Returns the rest to be spoken. */
  end(): readonly string[] {
    this.isWritten = true;
    return this.#chunker.flush();
  }

  /** Starts a sentence. */
  begin(text: string): void {
    const lengthMs = text.length * this.#msPerCharacter;
    this.#sentences.push({ text, startMs: this.soundMs, soundMs: 0, lengthMs });
    this.#shown = 0;
  }

  /** Records sound that is about to be passed on. Returns the words that begin in it. */
  sounds(durationMs: number): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.soundMs += durationMs;
    sentence.lengthMs = Math.max(sentence.lengthMs, sentence.soundMs);
    const words = placeWords(sentence.text, 0, sentence.lengthMs);
    return this.#show(words.filter(({ startMs }) => startMs < sentence.soundMs));
  }

  /** Ends the sentence. Returns its words that were not shown yet. */
  spoken(): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.lengthMs = sentence.soundMs;
    if (sentence.soundMs > 0) this.#msPerCharacter = sentence.soundMs / sentence.text.length;
    return this.#show([sentence]);
  }

  /** Returns the words of which more than half had sounded by then. */
  textUntil(ms: number): string {
    return this.#sentences
      .flatMap(({ text, startMs, soundMs, lengthMs }) =>
        placeWords(text, startMs, lengthMs).filter(
          (word) => (word.startMs + word.endMs) / 2 <= Math.min(ms, startMs + soundMs),
        ),
      )
      .map(({ text }) => text)
      .join('');
  }

  /** Returns those words of the sentence that were not shown yet. */
  #show(words: readonly { readonly text: string }[]): string {
    const text = words.map((word) => word.text).join('');
    const added = text.slice(this.#shown);
    this.#shown += added.length;
    return added;
  }
}
