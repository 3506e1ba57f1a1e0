// The words by which the runtime tells a model things, as far as a suite must know them.

import { readNotes } from '../../actors/notes/note.ts';

/** Does this text tell the model that these words of the user were for a subagent: its question's answer, or about it? */
export function questionAnswered(text: string, words: string): boolean {
  return readNotes(text).some(
    ({ quotes }) => quotes['words'] === words && quotes['subagent'] !== undefined,
  );
}

/** What a model reads in a text: what it says, and what is quoted in it. */
export function readable(text: string): string {
  const values = readNotes(text).map(({ quotes }) => quotes);
  return [text, ...values.flatMap(stringsIn)].join('\n');
}

/** The texts that these instructions speak of, by the marks of their notes. */
export function spokenOf(instructions: string, remembered: readonly string[]): readonly string[] {
  const marks = instructions.match(/(?<=\bnote )[\w-]+/g) ?? [];
  return remembered.filter((text) => marks.some((mark) => text.includes(` ${mark}]`)));
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/** As transcripts differ: in case, white space and marks. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
