// The words by which the runtime tells a model things, as far as a suite must know them.

/** Does this text tell the model that these words of the user were for a subagent: its question's answer, or about it? */
export function questionAnswered(text: string, words: string): boolean {
  const quoted = JSON.stringify(words);
  return ['answered', 'were about'].some((became) =>
    text.includes(`${quoted} ${became} a question of`),
  );
}

/** As transcripts differ: in case, white space and marks. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
