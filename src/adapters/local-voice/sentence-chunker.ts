// Cuts the text of a model, as it streams in, into pieces that are spoken one at a
// time: sentences where possible, so that the first sound comes early and the voice
// does not break inside a phrase.
//
// C1. The pieces, joined, are exactly the text.
// C2. No piece is longer than `MAX_PIECE_LENGTH` plus one word.

const MAX_PIECE_LENGTH = 240;
/** Before anything was said a long sentence is begun at a comma. */
const EARLY_PIECE_LENGTH = 60;

const ABBREVIATION =
  /(?:^|[\s("'])(?:mr|mrs|ms|dr|prof|st|no|vs|etc|e\.g|i\.e|approx|dept|inc|ltd|[a-z])\.$/i;
const SENTENCE_END = /[.!?…]+["')\]]*\s+|\n+\s*/g;
const CLAUSE_END = /[,;:]["')\]]*\s+/g;

export class SentenceChunker {
  #text = '';
  #first = true;

  /** The pieces that are complete now. */
  push(delta: string): string[] {
    this.#text += delta;
    const pieces: string[] = [];
    for (let end = this.#nextEnd(); end > 0; end = this.#nextEnd()) {
      pieces.push(this.#text.slice(0, end));
      this.#text = this.#text.slice(end);
      this.#first = false;
    }
    return pieces;
  }

  /** The rest: the last piece, if any. */
  flush(): string[] {
    const rest = this.#text;
    this.#text = '';
    this.#first = true;
    return rest === '' ? [] : [rest];
  }

  /** Where the first piece ends; 0 when that is not known yet. */
  #nextEnd(): number {
    const sentenceEnd = this.#sentenceEnd();
    if (sentenceEnd > 0 && sentenceEnd <= MAX_PIECE_LENGTH) return sentenceEnd;
    if (this.#first && this.#text.length > EARLY_PIECE_LENGTH) {
      const clauseEnd = lastEnd(CLAUSE_END, this.#text.slice(0, MAX_PIECE_LENGTH));
      if (clauseEnd > 0) return clauseEnd;
    }
    if (this.#text.length <= MAX_PIECE_LENGTH) return 0;
    const start = this.#text.slice(0, MAX_PIECE_LENGTH);
    const spaceEnd = lastEnd(CLAUSE_END, start) || start.search(/\s\S*$/) + 1;
    if (spaceEnd > 0) return spaceEnd;
    // One endless word.
    return MAX_PIECE_LENGTH;
  }

  #sentenceEnd(): number {
    for (const match of this.#text.matchAll(SENTENCE_END)) {
      const end = match.index + match[0].length;
      // More white space may follow; it belongs to this piece.
      if (end === this.#text.length && match[0].includes('\n')) return 0;
      const upToMark = this.#text.slice(0, match.index + match[0].trimEnd().length);
      if (this.#text.slice(0, end).trim() !== '' && !ABBREVIATION.test(upToMark)) return end;
    }
    return 0;
  }
}

function lastEnd(pattern: RegExp, text: string): number {
  let end = 0;
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length;
  return end;
}
