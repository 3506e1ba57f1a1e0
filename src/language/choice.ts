// The options as words, and the words of an utterance that could name one.

import type { AnswerOption } from './match.ts';
import type { Tables, Words } from './tables.ts';
import { readUtterance, wordsOf, type Utterance } from './utterance.ts';

export interface Choice {
  readonly option: AnswerOption;
  readonly label: Words;
  /** The words of label and description that distinguish the option from others. */
  readonly content: Words;
}

export function choicesOf(options: readonly AnswerOption[], tables: Tables): readonly Choice[] {
  return options.map((option) => {
    const { label, description = '' } = option;
    const said = readUtterance(`${label}\n${description}`, tables.language);
    return {
      option,
      label: wordsOf(label, tables.language),
      content: contentOf(said, tables).map((index) => said.words[index] as string),
    };
  });
}

/**
 * Tells whether a word says nothing about the chosen option: politeness, hesitation, "I'd like the … one".
 */
export function isSlight(
  { words, proforms }: Utterance,
  { frame, noise }: Tables,
  index: number,
): boolean {
  const word = words[index] ?? '';
  return proforms.has(index) || frame.has(word) || noise.has(word);
}

/** Returns the indexes of the other words. */
export function contentOf(said: Utterance, tables: Tables): readonly number[] {
  return [...said.words.keys()].filter((index) => !isSlight(said, tables, index));
}
