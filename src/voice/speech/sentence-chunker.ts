// Splits a model's streamed text into pieces that are spoken one at a time. The pieces are sentences where possible, so
// that the first audio is available early and the voice does not pause within a phrase.
//
// SENTENCE-CHUNKER-1. Joined together, the pieces are exactly the text.
// SENTENCE-CHUNKER-2. No piece is longer than `MAX_PIECE_LENGTH`, not counting trailing white space.
// SENTENCE-CHUNKER-3. A returned piece is final: later text does not change where it ended.
//
// The chunker relies on punctuation rather than on `Intl.Segmenter`, which ends sentences at "Dr. " and at "am 3. Mai"
// and moves boundaries when more text arrives. It uses `Intl.Segmenter` only to find words in scripts without spaces.

const MAX_PIECE_LENGTH = 240;
/**
 * The length of text that is searched for the end of a piece, so that a long text is not searched again for each piece.
 */
const MAX_READ_LENGTH = 2 * MAX_PIECE_LENGTH;
/** The first piece of a long sentence may end at a comma. */
const EARLY_PIECE_LENGTH = 60;

/**
 * Words after which a full stop does not end a sentence: abbreviations of any language, initials, numbers ("am 3. Mai").
 */
const ABBREVIATIONS = [
  'mr|mrs|ms|dr|prof|rev|gen|st|mt|no|vs|etc|e\\.g|i\\.e|approx|dept|inc|ltd|fig',
  'jan|feb|aug|sept|oct|nov',
  'hr|fr|nr|bzw|usw|ca|ggf|evtl|inkl|z\\. ?b|d\\. ?h|u\\. ?a',
  'mme|mlle|cf|env|sr|sra|srta|ud|uds|núm|av|p\\. ?ej',
  '\\p{L}|\\d{1,3}',
].join('|');
const ABBREVIATION = new RegExp(`(?:^|[\\s("'«„“])(?:${ABBREVIATIONS})\\.$`, 'iu');

const CLOSERS = `["'”’»)\\]]*`;
/** In scripts without spaces, punctuation is not followed by white space. */
const SENTENCE_END = new RegExp(
  `[.!?…।॥؟۔]+${CLOSERS}\\s+|[。！？｡]+["'”’」』）】]*\\s*|\\n+\\s*`,
  'gu',
);
const CLAUSE_END = new RegExp(`[,;:،؛]${CLOSERS}\\s+|[、，；：]\\s*`, 'gu');
const ELLIPSIS = /(?:…|\.\.)$/;

/** Splits a model's streamed text into pieces that are spoken one at a time, which are sentences where possible. */
export class SentenceChunker {
  #text = '';
  #first = true;

  /** Adds text. Returns the pieces that are complete. */
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

  /** Returns the remaining text as the last piece; an empty list if no text remains. */
  flush(): string[] {
    const rest = this.#text;
    this.#text = '';
    this.#first = true;
    return rest === '' ? [] : [rest];
  }

  /** Returns the position at which the first piece ends; 0 if this is not known yet. */
  #nextEnd(): number {
    const sentenceEnd = this.#sentenceEnd();
    if (sentenceEnd > 0 && sentenceEnd <= MAX_PIECE_LENGTH) return sentenceEnd;
    if (this.#first && this.#text.length > EARLY_PIECE_LENGTH) {
      const clauseEnd = lastEnd(CLAUSE_END, this.#text.slice(0, MAX_PIECE_LENGTH));
      if (clauseEnd > 0) return clauseEnd;
    }
    if (this.#text.length <= MAX_PIECE_LENGTH) return 0;
    const start = this.#text.slice(0, MAX_PIECE_LENGTH);
    return lastEnd(CLAUSE_END, start) || start.search(/\s\S*$/) + 1 || this.#wordEnd();
  }

  #sentenceEnd(): number {
    for (const match of this.#text.slice(0, MAX_READ_LENGTH).matchAll(SENTENCE_END)) {
      const end = match.index + match[0].length;
      if (end > MAX_PIECE_LENGTH) return 0;
      const isLast = end === this.#text.length;
      // White space or punctuation that belongs to the end of this sentence may still follow.
      if (isLast && !/[.!?…।॥؟۔]["'”’»)\]]*\s+$/u.test(match[0])) return 0;
      const upToMark = this.#text.slice(0, match.index + match[0].trimEnd().length);
      if (this.#text.slice(0, end).trim() === '' || ABBREVIATION.test(upToMark)) continue;
      if (ELLIPSIS.test(upToMark)) {
        // "Well... yes" is one sentence.
        if (isLast) return 0;
        if (/^\p{Ll}/u.test(this.#text.slice(end))) continue;
      }
      return end;
    }
    return 0;
  }

  /** In a script without spaces, returns the last word boundary that fits; if there is none, `MAX_PIECE_LENGTH`. */
  #wordEnd(): number {
    let end = 0;
    const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
    for (const { index } of segmenter.segment(this.#text.slice(0, MAX_READ_LENGTH))) {
      if (index > MAX_PIECE_LENGTH) break;
      end = index;
    }
    return end || MAX_PIECE_LENGTH;
  }
}

function lastEnd(pattern: RegExp, text: string): number {
  let end = 0;
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length;
  return end;
}
