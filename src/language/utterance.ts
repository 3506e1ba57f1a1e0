// Converts spoken or typed text to comparable words. It ignores case, accents, punctuation and apostrophes, and writes
// numbers as digits, ordinals as `#2`, and symbols as words. Labels, descriptions, tables and utterances are all
// converted to this form.

import { ownValue } from '../values/own-value.ts';
import type { AnswerLanguage } from './language.ts';

export interface Utterance {
  /** The original text, trimmed. */
  readonly raw: string;
  readonly words: readonly string[];
  /** The indexes of words that stand for a noun ("the premium one"). */
  readonly proforms: ReadonlySet<number>;
  /** The indexes of the words that are followed by a punctuation mark. */
  readonly breaks: ReadonlySet<number>;
  /** Whether the text was written as a question. */
  readonly asks: boolean;
}

/** Scripts that do not use spaces, in which each character is treated as a word. */
const unspaced =
  '\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}';

/** Returns the comparable form of a whole string. */
export function fold(text: string): string {
  return (
    text
      .normalize('NFKC')
      // Both case conversions are needed: ß becomes SS, and sigma has two lower-case forms.
      .toUpperCase()
      .toLowerCase()
      .normalize('NFD')
      .replace(/[\u0300-\u036F]/g, '')
      .normalize('NFC')
      .trim()
  );
}

/** Returns the words of a text, without case, accents and punctuation, separated by single spaces. */
export function plainWords(text: string): string {
  return fold(text)
    .replace(/['’ʼ`´]/g, '')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

export function isNumber(word: string | undefined): word is string {
  return word !== undefined && /^\d+(?:\.\d+)?$/.test(word);
}

/** Returns the n of an ordinal (`#2`); null for any other word. */
export function ordinalOf(word: string): number | null {
  return word.startsWith('#') ? Number(word.slice(1)) : null;
}

export function wordsOf(text: string, language: AnswerLanguage): readonly string[] {
  return readUtterance(text, language).words;
}

export function readUtterance(text: string, language: AnswerLanguage): Utterance {
  const { spoken, breaks: spokenBreaks } = spokenWords(text, language);
  const standing = proformsIn(spoken, language);
  const words: string[] = [];
  const proforms = new Set<number>();
  const breaks = new Set<number>();
  for (let index = 0; index < spoken.length;) {
    if (standing.has(index)) proforms.add(words.length);
    const cardinal = readCardinal(spoken, index, language);
    words.push(cardinal ? String(cardinal.value) : canonical(spoken[index] as string, language));
    index = cardinal ? cardinal.end : index + 1;
    if (spokenBreaks.has(index - 1)) breaks.add(words.length - 1);
  }
  return { raw: text.trim(), words, proforms, breaks, asks: /[?？؟]["'”’»)\s]*$/u.test(text) };
}

/** Returns the rest of the utterance, starting with the word at `start`. */
export function from(said: Utterance, start: number): Utterance {
  const shifted = (indexes: ReadonlySet<number>): ReadonlySet<number> =>
    new Set([...indexes].filter((index) => index >= start).map((index) => index - start));
  return {
    ...said,
    words: said.words.slice(start),
    proforms: shifted(said.proforms),
    breaks: shifted(said.breaks),
  };
}

function spokenWords(
  text: string,
  language: AnswerLanguage,
): { readonly spoken: string[]; readonly breaks: ReadonlySet<number> } {
  let folded = fold(text);
  // French elides: "l'économique" is two words.
  if (language.elisions.length > 0)
    folded = folded.replace(
      new RegExp(`(?<!\\p{L})(${language.elisions.join('|')})['’ʼ\`´]`, 'gu'),
      '$1 ',
    );
  folded = folded.replace(/['’ʼ`´]/g, '').replace(/(?<=\d),(?=\d{3}(?!\d))/g, '');
  for (const symbol of language.prefixSymbols) {
    folded = folded.replace(
      new RegExp(`\\${symbol}\\s*(\\d+(?:\\.\\d+)?)`, 'g'),
      (_, amount: string) => `${amount} ${symbol}`,
    );
  }
  for (const [symbol, word] of Object.entries(language.symbols)) {
    folded = folded.replaceAll(symbol, ` ${word} `);
  }
  const spoken: string[] = [];
  const breaks = new Set<number>();
  let end = 0;
  for (const { 0: found, index } of folded.matchAll(wordPatternOf(language))) {
    if (spoken.length > 0 && /[,.;:!?…–—]|\s-\s/.test(folded.slice(end, index)))
      breaks.add(spoken.length - 1);
    spoken.push(...(ownValue(language.synonyms, found) ?? found).split(' '));
    end = index + found.length;
  }
  return { spoken, breaks };
}

const wordPatterns = new WeakMap<AnswerLanguage, RegExp>();

/** Returns the pattern from a cache, because building it takes longer than converting an utterance. */
function wordPatternOf(language: AnswerLanguage): RegExp {
  const known = wordPatterns.get(language);
  if (known) return known;
  const suffix = language.ordinalSuffixes.map((end) => `${end}(?!\\p{L})`).join('|');
  const made = new RegExp(
    [
      `[${unspaced}]`,
      suffix === '' ? '' : `\\d+(?:${suffix})`,
      '\\d+(?:\\.\\d+)?',
      `(?:(?![${unspaced}])[\\p{L}\\p{M}])+`,
      '\\p{N}',
    ]
      .filter((alternative) => alternative !== '')
      .join('|'),
    'gu',
  );
  wordPatterns.set(language, made);
  return made;
}

/** Parses a number written in words: `twenty four`, `two hundred and six`. */
function readCardinal(
  spoken: readonly string[],
  start: number,
  { cardinals, multipliers, numberJoint }: AnswerLanguage,
): { readonly value: number; readonly end: number } | null {
  let value = ownValue(cardinals, spoken[start]);
  if (value === undefined) return null;
  let end = start + 1;
  let total = 0;
  // The largest number that may be added next: 9 after `twenty`, 99 after `hundred`.
  let room = value >= 20 ? 9 : 0;
  for (;;) {
    const multiplier = ownValue(multipliers, spoken[end]);
    if (multiplier !== undefined && value > 0) {
      value *= multiplier;
      room = multiplier - 1;
      if (multiplier >= 1_000) {
        total += value;
        value = 0;
      }
      end += 1;
      continue;
    }
    const joint = room > 9 && spoken[end] === numberJoint ? 1 : 0;
    const more = ownValue(cardinals, spoken[end + joint]);
    if (more === undefined || more === 0 || more > room) return { value: total + value, end };
    value += more;
    room = room > 9 && more >= 20 ? 9 : 0;
    end += joint + 1;
  }
}

interface ProformTables {
  readonly proforms: ReadonlySet<string>;
  readonly noise: ReadonlySet<string>;
  readonly leads: ReadonlySet<string>;
  readonly frame: ReadonlySet<string>;
}

const proformTables = new WeakMap<AnswerLanguage, ProformTables>();

function proformTablesOf(language: AnswerLanguage): ProformTables {
  let tables = proformTables.get(language);
  if (!tables) {
    const { proforms, numberLeads, leadIns, hesitations, polite, frame, consent } = language;
    const phrases = [...leadIns, ...hesitations, ...polite].flatMap((phrase) => phrase.split(' '));
    tables = {
      proforms: new Set(proforms),
      noise: new Set([...phrases, ...consent.yes]),
      leads: new Set(numberLeads),
      frame: new Set(frame),
    };
    proformTables.set(language, tables);
  }
  return tables;
}

/**
 * Returns the indexes of the words that stand for a noun: `one` in "the premium one", but not in "one", "option one" or
 * "the one ticket".
 */
function proformsIn(spoken: readonly string[], language: AnswerLanguage): ReadonlySet<number> {
  const { proforms, noise, leads, frame } = proformTablesOf(language);
  const found = new Set<number>();
  let previous: string | undefined;
  for (const [index, word] of spoken.entries()) {
    const next = spoken[index + 1];
    const isEnd = next === undefined || noise.has(next) || frame.has(next);
    if (proforms.has(word) && previous !== undefined && !leads.has(previous) && isEnd)
      found.add(index);
    if (!noise.has(word)) previous = word;
  }
  return found;
}

function canonical(word: string, { ordinals, ordinalSuffixes }: AnswerLanguage): string {
  const ordinal = ownValue(ordinals, word);
  if (ordinal !== undefined) return `#${ordinal}`;
  const suffix = ordinalSuffixes.find((end) => word.endsWith(end));
  if (suffix && isNumber(word.slice(0, -suffix.length))) return `#${Number.parseInt(word, 10)}`;
  return word;
}
