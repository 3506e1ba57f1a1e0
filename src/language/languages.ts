// The languages in which answers are understood. To add one: a file of tables, and a line here.

import { english } from './english.ts';
import { french } from './french.ts';
import { german } from './german.ts';
import { literal, type AnswerLanguage } from './language.ts';
import { spanish } from './spanish.ts';

const languages: readonly AnswerLanguage[] = [english, german, french, spanish];

/** Returns the tables for a language tag such as `en-US`; an unknown language matches literally. */
export function languageFor(tag: string): AnswerLanguage {
  const code = tag.toLowerCase().split(/[-_]/)[0];
  return languages.find((language) => language.code === code) ?? literal;
}
