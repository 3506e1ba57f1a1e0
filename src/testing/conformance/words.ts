// Finds the phrases in a model's input that the conformance suite checks.

import { readNotes } from '../../actors/notes/note.ts';

/**
 * Returns whether this text informs the model that this utterance was for a subagent, either as an answer to its
 * question or as a comment on it.
 */
export function questionAnswered(text: string, words: string): boolean {
  return readNotes(text).some(
    ({ quotes }) => quotes['words'] === words && quotes['subagent'] !== undefined,
  );
}

/** Returns the text that a model reads: the text itself, and what it quotes. */
export function readable(text: string): string {
  const values = readNotes(text).map(({ quotes }) => quotes);
  return [text, ...values.flatMap(stringsIn)].join('\n');
}

/** Returns the remembered texts that these instructions refer to by note marker. */
export function spokenOf(instructions: string, remembered: readonly string[]): readonly string[] {
  const marks = instructions.match(/(?<=\bnote )[\w-]+/g) ?? [];
  return remembered.filter((text) => marks.some((mark) => text.includes(` ${mark}]`)));
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/** Removes differences between transcripts: letter case, white space and punctuation. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** Whether this text is a simulated user's plain yes or plain no, in English or in a language without tables. */
export const isPlainYes = (words: string): boolean => /^(?:yes|sim)$/.test(plain(words));
export const isPlainNo = (words: string): boolean => /^(?:no|não)$/.test(plain(words));

/** Whether this answer gives the approval. */
export const saysYes = (answer: string | null): boolean => /^(?:yes|sim)\b/i.test(answer ?? '');
