// Keeps texts within the limits of the wire, which counts tokens and refuses texts that are too long. Without
// a tokenizer, tokens are estimated from above, so that a piece may be smaller than possible, but is not
// refused. Prose and code are estimated at nearly twice the count of OpenAI's tokenizers; only random letters
// may be estimated below it.
//
// TOKENS-1. No piece is estimated above its limit; together they are the text, except for white space at the
//     cuts.
// TOKENS-2. A cut is at the end of a sentence if one fits, else between words, else between characters.

/** The limit of one append: the server refuses more. */
export const MAX_APPEND_TOKENS = 500;

// English prose has more than 4 letters in a token; keys and codes have about 1.5.
const LOWER_CASE = 0.35;
const UPPER_CASE = 0.8;
const SPACE = 0.4;

/** Returns about the maximum number of tokens of this text. */
export function estimateTokens(text: string): number {
  let tokens = 0;
  for (const character of text) tokens += tokensOf(character);
  return Math.ceil(tokens);
}

function tokensOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x61 && code <= 0x7a) return LOWER_CASE;
  if (code >= 0x41 && code <= 0x5a) return UPPER_CASE;
  if (code === 0x20) return SPACE;
  // The rarest alphabets take two tokens for a letter, the others much less.
  if (code < 0x8_00) return 1;
  return code < 0x1_00_00 ? 2 : 4;
}

const sentences = new Intl.Segmenter(undefined, { granularity: 'sentence' });

/** Returns the text in pieces of at most `maxTokens` each (TOKENS-1, TOKENS-2); none for white space. */
export function splitText(text: string, maxTokens = MAX_APPEND_TOKENS): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  const flush = (): void => {
    if (piece.trim() !== '') pieces.push(piece.trim());
    piece = '';
  };
  for (const part of partsOf(text, maxTokens)) {
    if (estimateTokens(piece + part) > maxTokens) flush();
    piece += part;
  }
  flush();
  return pieces;
}

/** Returns the beginning of a text, at most `maxTokens` long. */
export function headOf(text: string, maxTokens: number): string {
  let tokens = 0;
  let head = '';
  for (const character of text) {
    tokens += tokensOf(character);
    if (tokens > maxTokens) break;
    head += character;
  }
  return head;
}

/** Yields the largest parts within `maxTokens`: sentences, words, pieces of words. */
function* partsOf(text: string, maxTokens: number): Generator<string> {
  for (const { segment } of sentences.segment(text)) {
    if (estimateTokens(segment) <= maxTokens) yield segment;
    else
      for (const word of segment.split(/(?<=\s)/)) {
        for (let rest = word; rest !== '';) {
          const head = headOf(rest, maxTokens);
          yield head;
          rest = rest.slice(head.length);
        }
      }
  }
}
