// Cuts the text of a model, as it streams in, into pieces that are spoken one at a
// time: sentences where possible, so that the first sound comes early and the voice
// does not break inside a phrase.
//
// SENTENCE-CHUNKER-1. The pieces, joined, are exactly the text.
// SENTENCE-CHUNKER-2. No piece is longer than `MAX_PIECE_LENGTH`, but for white space at its end.
// SENTENCE-CHUNKER-3. A piece that was given is never taken back: what comes later does not change where it ended.
//
// Marks decide, and not `Intl.Segmenter`: that ends sentences at "Dr. " and at "am 3. Mai", and
// changes its mind about an end when more text comes. It is asked only for the words of a script
// without spaces.

const MAX_PIECE_LENGTH = 240;
/** Before anything was said a long sentence is begun at a comma. */
const EARLY_PIECE_LENGTH = 60;

/** What a full stop does not end: an abbreviation of any language, an initial, a number ("am 3. Mai"). */
const ABBREVIATIONS = [
  'mr|mrs|ms|dr|prof|rev|gen|st|mt|no|vs|etc|e\\.g|i\\.e|approx|dept|inc|ltd|fig',
  'jan|feb|aug|sept|oct|nov',
  'hr|fr|nr|bzw|usw|ca|ggf|evtl|inkl|z\\. ?b|d\\. ?h|u\\. ?a',
  'mme|mlle|cf|env|sr|sra|srta|ud|uds|núm|av|p\\. ?ej',
  '\\p{L}|\\d{1,3}',
].join('|');
const ABBREVIATION = new RegExp(`(?:^|[\\s("'«„“])(?:${ABBREVIATIONS})\\.$`, 'iu');

const CLOSERS = `["'”’»)\\]]*`;
/** A script without spaces needs none after its marks. */
const SENTENCE_END = new RegExp(
  `[.!?…।॥؟۔]+${CLOSERS}\\s+|[。！？｡]+["'”’」』）】]*\\s*|\\n+\\s*`,
  'gu',
);
const CLAUSE_END = new RegExp(`[,;:،؛]${CLOSERS}\\s+|[、，；：]\\s*`, 'gu');
const ELLIPSIS = /(?:…|\.{2,})$/;

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
    return lastEnd(CLAUSE_END, start) || start.search(/\s\S*$/) + 1 || wordEnd(this.#text);
  }

  #sentenceEnd(): number {
    for (const match of this.#text.matchAll(SENTENCE_END)) {
      const end = match.index + match[0].length;
      const isLast = end === this.#text.length;
      // More that belongs to this end may follow: white space, or another mark.
      if (isLast && !/[.!?…।॥؟۔]["'”’»)\]]*\s+$/u.test(match[0])) return 0;
      const upToMark = this.#text.slice(0, match.index + match[0].trimEnd().length);
      if (this.#text.slice(0, end).trim() === '' || ABBREVIATION.test(upToMark)) continue;
      if (ELLIPSIS.test(upToMark)) {
        // "Well... yes" goes on.
        if (isLast) return 0;
        if (/^\p{Ll}/u.test(this.#text.slice(end))) continue;
      }
      return end;
    }
    return 0;
  }
}

function lastEnd(pattern: RegExp, text: string): number {
  let end = 0;
  for (const match of text.matchAll(pattern)) end = match.index + match[0].length;
  return end;
}

/** The last end of a word that fits, in a script without spaces; else as much as fits. */
function wordEnd(text: string): number {
  let end = 0;
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });
  for (const { index } of segmenter.segment(text)) {
    if (index > MAX_PIECE_LENGTH) break;
    end = index;
  }
  return end || MAX_PIECE_LENGTH;
}
