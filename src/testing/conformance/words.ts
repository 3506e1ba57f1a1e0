// The words by which the runtime tells a model things, as far as a suite must know them.

/** Does this text tell the model that these words of the user answered a question? */
export function questionAnswered(text: string, words: string): boolean {
  return text.includes(`${JSON.stringify(words)} answered a question of`);
}

/** As transcripts differ: in case, white space and marks. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
