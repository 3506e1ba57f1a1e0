// One message of a model that writes, as it is spoken: its sentences, and where each is in the
// sound. So that what was played can be told in words.
//
// Owns:     the words of the item, and how much of its sound was handed on.
// Does not: synthesise, or know what was played.
//
// Invariants
//   SPOKEN-ITEM-1. `textUntil` never gives words whose sound was not handed on, and gives all where it was.
//   SPOKEN-ITEM-2. A sentence of which the length is not known yet is taken to be as long as others like it.

import { SentenceChunker } from '../speech/sentence-chunker.ts';
import { placeWords } from '../speech/spoken-words.ts';

/** How long a character is spoken, before anything is known of the voice. */
const FIRST_GUESS_MS = 65;

interface Sentence {
  readonly text: string;
  readonly startMs: number;
  /** Sound that was handed on. */
  soundMs: number;
  /** Of the whole sentence, as far as is known. */
  lengthMs: number;
}

export class SpokenItem {
  readonly itemId: string;
  /** It has said nothing that the model shall remember. */
  readonly isOutOfBand: boolean;
  readonly #chunker = new SentenceChunker();
  readonly #sentences: Sentence[] = [];
  #msPerCharacter = FIRST_GUESS_MS;
  #written = '';
  #shown = 0;
  /** The model will add nothing to it. */
  isWritten = false;

  constructor(itemId: string, isOutOfBand: boolean) {
    this.itemId = itemId;
    this.isOutOfBand = isOutOfBand;
  }

  /** All that the model has written. */
  get written(): string {
    return this.#written;
  }

  /** Sound that was handed on, in milliseconds. */
  get soundMs(): number {
    return this.#sentences.reduce((sum, { soundMs }) => sum + soundMs, 0);
  }

  /** More text, or (`final`) the whole of it. Returns the sentences that can be spoken now. */
  write(text: string, final: boolean): readonly string[] {
    if (this.isWritten) return [];
    const isWhole = final && text.startsWith(this.#written);
    const added = isWhole ? text.slice(this.#written.length) : final ? '' : text;
    this.#written += added;
    const pieces = this.#chunker.push(added);
    return final ? [...pieces, ...this.end()] : pieces;
  }

  /** Nothing more will be written. Returns what is left to be spoken. */
  end(): readonly string[] {
    this.isWritten = true;
    return this.#chunker.flush();
  }

  /** This is spoken now. */
  begin(text: string): void {
    const lengthMs = text.length * this.#msPerCharacter;
    this.#sentences.push({ text, startMs: this.soundMs, soundMs: 0, lengthMs });
    this.#shown = 0;
  }

  /** Sound of it is about to be handed on. Returns the words that begin in it. */
  sounds(durationMs: number): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.soundMs += durationMs;
    sentence.lengthMs = Math.max(sentence.lengthMs, sentence.soundMs);
    const words = placeWords(sentence.text, 0, sentence.lengthMs);
    return this.#show(words.filter(({ startMs }) => startMs < sentence.soundMs));
  }

  /** It was spoken to its end. Returns the words that were not shown yet. */
  spoken(): string {
    const sentence = this.#sentences.at(-1);
    if (!sentence) return '';
    sentence.lengthMs = sentence.soundMs;
    if (sentence.soundMs > 0) this.#msPerCharacter = sentence.soundMs / sentence.text.length;
    return this.#show([sentence]);
  }

  /** The words that had sounded for the greater part by then. */
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

  /** Of these words of the sentence, those that were not shown. */
  #show(words: readonly { readonly text: string }[]): string {
    const text = words.map((word) => word.text).join('');
    const added = text.slice(this.#shown);
    this.#shown += added.length;
    return added;
  }
}
