// The phrases that inform a model, as far as the suite needs them.

import { readNotes } from '../../actors/notes/note.ts';

/**
 * Tells whether this text informs the model that these user words were for a subagent: as an answer to its question, or
 * about it.
 */
export function questionAnswered(text: string, words: string): boolean {
  return readNotes(text).some(
    ({ quotes }) => quotes['words'] === words && quotes['subagent'] !== undefined,
  );
}

/** Returns the text that a model reads: the text itself and its quotations. */
export function readable(text: string): string {
  const values = readNotes(text).map(({ quotes }) => quotes);
  return [text, ...values.flatMap(stringsIn)].join('\n');
}

/** Returns the texts that these instructions refer to, according to their note marks. */
export function spokenOf(instructions: string, remembered: readonly string[]): readonly string[] {
  const marks = instructions.match(/(?<=\bnote )[\w-]+/g) ?? [];
  return remembered.filter((text) => marks.some((mark) => text.includes(` ${mark}]`)));
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/** Removes differences between transcripts: case, white space and punctuation. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** Whether these words are a plain yes, or a plain no, of a simulated user: in English, or in a language without tables. */
export const isPlainYes = (words: string): boolean => /^(?:yes|sim)$/.test(plain(words));
export const isPlainNo = (words: string): boolean => /^(?:no|não)$/.test(plain(words));

/** Whether an approval with this answer is given. */
export const saysYes = (answer: string | null): boolean => /^(?:yes|sim)\b/i.test(answer ?? '');
