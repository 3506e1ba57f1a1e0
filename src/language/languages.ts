// The languages in which the runtime understands answers: the built-in ones and those that an app adds.
//
// Owns:     the list of languages by code, and the validation of added tables.
// Does not: interpret utterances.
//
// LANGUAGES-1. All sessions of a process share the list, so each session and its local voice interpret words with the
//     same tables. Journal entries contain the interpretation of each utterance, so adding tables does not change past
//     interpretations.

import { ConfigurationError } from '../values/errors.ts';
import {
  checkOptions,
  optional,
  shown,
  type OptionCheck,
  type OptionChecks,
} from '../values/plain-checks.ts';
import { english } from './english.ts';
import { french } from './french.ts';
import { german } from './german.ts';
import { literal, type AnswerLanguage, type ConsentTables } from './language.ts';
import { spanish } from './spanish.ts';
import { findPhrase } from './tables.ts';
import { fold, wordsOf } from './utterance.ts';

const languages = new Map<string, AnswerLanguage>(
  [english, german, french, spanish].map((language) => [language.code, language]),
);

/** Returns the tables for a language tag such as `en-US`. In an unknown language, words match only literally. */
export function languageFor(tag: string): AnswerLanguage {
  const [code = ''] = tag.toLowerCase().split(/[-_]/);
  return languages.get(code) ?? literal;
}

/**
 * Returns the tables of a built-in or added language for a tag such as `en-GB`; for an unknown language, empty tables
 * with the code `und`.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the tag is not a string.
 */
export function answerLanguageFor(tag: string): AnswerLanguage {
  if (typeof tag !== 'string')
    throw new ConfigurationError(
      'INVALID_ARGUMENT',
      `answerLanguageFor: expected a language tag such as "en-GB", got ${shown(tag)}`,
    );
  return languageFor(tag);
}

/** The tables of a language, as written by an app. Every table except `code` is optional; a missing one is empty. */
export interface AnswerLanguageTables extends Partial<Omit<AnswerLanguage, 'code' | 'consent'>> {
  /** `it`, `pt`, …: the first part of a BCP 47 tag. */
  readonly code: string;
  /** The words that approve or refuse an action. @defaultValue all of these tables are empty, so no words approve */
  readonly consent?: Partial<ConsentTables>;
}

/**
 * Adds a language in which this process understands answers, or replaces the language that has the same code. Call it
 * before the first session starts, and test the tables against a corpus (see docs/conversation.md).
 *
 * ```ts
 * addAnswerLanguage({ code: 'it', holds: ['aspetta'], consent: { yes: ['sì'], no: ['no'] } });
 * ```
 * @returns the complete tables.
 * @throws {ConfigurationError} `INVALID_OPTION` if a table is invalid, or if a consent phrase contains a negation.
 */
export function addAnswerLanguage(tables: AnswerLanguageTables): AnswerLanguage {
  const given = checkOptions<AnswerLanguageTables>('addAnswerLanguage', tableChecks, tables);
  const consent =
    given.consent === undefined
      ? {}
      : checkOptions<Partial<ConsentTables>>(
          'addAnswerLanguage: consent',
          consentChecks,
          given.consent,
        );
  const language = foldedKeys({
    ...literal,
    ...withoutUndefined(given),
    consent: { ...literal.consent, ...withoutUndefined(consent) },
  });
  checkConsent(language);
  languages.set(language.code, language);
  return language;
}

/** Returns the tables with the accents removed from lookup words, because spoken words are compared without accents. */
function foldedKeys(language: AnswerLanguage): AnswerLanguage {
  const keys = <Value>(record: Readonly<Record<string, Value>>): Record<string, Value> =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [fold(key), value]));
  const all = (list: readonly string[]): readonly string[] => list.map(fold);
  const { synonyms, ofTwo } = language;
  return {
    ...language,
    synonyms: keys(
      Object.fromEntries(Object.entries(synonyms).map(([word, same]) => [word, fold(same)])),
    ),
    cardinals: keys(language.cardinals),
    multipliers: keys(language.multipliers),
    numberJoint: fold(language.numberJoint),
    ordinals: keys(language.ordinals),
    numberHomophones: keys(language.numberHomophones),
    lastWords: all(language.lastWords),
    ofTwo: { first: all(ofTwo.first), second: all(ofTwo.second) },
    numberLeads: all(language.numberLeads),
    proforms: all(language.proforms),
    elisions: all(language.elisions),
  };
}

/** Rejects a yes that contains a negation, because a refusal could then approve an action (MATCH-APPROVAL-2). */
function checkConsent(language: AnswerLanguage): void {
  const { consent, negations } = language;
  const denials = [...negations, ...consent.no, ...consent.refusals];
  for (const table of ['yes', 'asides'] as const)
    for (const phrase of consent[table]) {
      const words = wordsOf(phrase, language);
      const denial = denials.find((one) => {
        const denied = wordsOf(one, language);
        return denied.length > 0 && findPhrase(words, denied).length > 0;
      });
      if (denial === undefined) continue;
      throw new ConfigurationError(
        'INVALID_OPTION',
        `addAnswerLanguage: consent.${table}: expected no negation, got ${shown(phrase)}, which contains "${denial}"`,
      );
    }
}

function withoutUndefined<Tables extends object>(tables: Tables): Tables {
  const entries = Object.entries(tables).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Tables;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isRecordOf = (value: unknown, isValue: (one: unknown) => boolean): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every(isValue);
const isWhole = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

function expecting(what: string, fits: (value: unknown) => boolean): OptionCheck {
  return optional((value) => (fits(value) ? null : `expected ${what}`));
}

const keysOf = (value: object): string => Object.keys(value).toSorted().join();
const sameKeys = (one: object, other: object): boolean => keysOf(one) === keysOf(other);

const text = expecting('a text', isText);
const texts = expecting('a list of texts', isTexts);
const textByWord = expecting('texts by word', (value) => isRecordOf(value, isText));
const numberByWord = expecting('whole numbers by word', (value) => isRecordOf(value, isWhole));
const anObject = expecting('an object', (value) => isRecordOf(value, () => true));

const consentChecks: OptionChecks<ConsentTables> = {
  yes: texts,
  asides: texts,
  pronouns: texts,
  no: texts,
  refusals: texts,
  asks: texts,
  notRefusals: texts,
  afterwards: texts,
  indefinites: texts,
  adjustments: texts,
  lastings: texts,
  conditions: texts,
  ironies: texts,
  verbs: expecting('lists of texts by the first word of a tool', (value) =>
    isRecordOf(value, isTexts),
  ),
  infinitives: expecting('lists of texts by the ending of an infinitive', (value) =>
    isRecordOf(value, isTexts),
  ),
  separable: texts,
  yesLabels: texts,
  noLabels: texts,
};

const tableChecks: OptionChecks<AnswerLanguageTables> = {
  code: (value) =>
    isText(value) && /^[a-z]{2,3}$/.test(value)
      ? null
      : 'expected the code of a language, such as "it"',
  symbols: textByWord,
  prefixSymbols: texts,
  synonyms: textByWord,
  cardinals: numberByWord,
  multipliers: numberByWord,
  numberJoint: text,
  ordinals: numberByWord,
  ordinalSuffixes: texts,
  lastWords: texts,
  ofTwo: expecting(
    'an object with the lists `first` and `second`',
    (value) => isRecordOf(value, isTexts) && sameKeys(value as object, literal.ofTwo),
  ),
  numberLeads: texts,
  numberHomophones: numberByWord,
  proforms: texts,
  clock: expecting(
    'an object with the lists of `ClockTables`',
    (value) => isRecordOf(value, isTexts) && sameKeys(value as object, literal.clock),
  ),
  inflections: texts,
  verbsLast: expecting('a boolean', (value) => typeof value === 'boolean'),
  elisions: texts,
  polite: texts,
  leadIns: texts,
  hesitations: texts,
  fillers: texts,
  unfinished: texts,
  frame: texts,
  negations: texts,
  doubts: texts,
  quantifiers: texts,
  nones: texts,
  references: texts,
  holds: texts,
  holdTails: texts,
  musings: texts,
  musingTails: texts,
  holdReasons: texts,
  corrections: texts,
  bareCorrections: texts,
  repeats: texts,
  repeatsAlone: texts,
  commands: texts,
  putOffs: texts,
  putOffTails: texts,
  withdrawals: texts,
  callOffs: texts,
  requests: texts,
  beforehand: texts,
  joints: texts,
  digressionStarts: texts,
  questionStarts: texts,
  requestStarts: texts,
  consent: anObject,
  backchannels: texts,
  moments: texts,
  patience: texts,
  agreements: texts,
  sounds: expecting(
    'a list of pairs of a pattern and a code',
    (value) =>
      Array.isArray(value) &&
      value.every(
        (rule) =>
          Array.isArray(rule) && rule.length === 2 && rule[0] instanceof RegExp && isText(rule[1]),
      ),
  ),
  negativePrefixes: texts,
  similarSounds: texts,
};
