// Converts a language's tables to the form of utterances, once per language. Interprets words that consist only of
// listed phrases: a yes, a no, politeness, asides, and the name of the action.

import type { AnswerLanguage, ClockTables, ConsentTables } from './language.ts';
import { fold, wordsOf } from './utterance.ts';

export type Words = readonly string[];
export type Phrases = readonly Words[];

export interface Tables {
  readonly language: AnswerLanguage;
  /** Words that do not affect a choice: politeness, hesitation and agreement. */
  readonly noise: ReadonlySet<string>;
  /** The hesitation sounds in `noise`; `thinking` also includes politeness. */
  readonly hesitations: ReadonlySet<string>;
  readonly thinking: ReadonlySet<string>;
  /** Sounds that do not express anything. */
  readonly fillers: ReadonlySet<string>;
  /** Words that show attention or introduce an answer; alone, they do not answer a free-text question. */
  readonly listening: ReadonlySet<string>;
  /** Words that surround an option's name, without `noise`. */
  readonly frame: ReadonlySet<string>;
  readonly phrases: { readonly [name in PhraseTable | ConsentTable]: Phrases };
  /** The forms of each action's verb, keyed by the first word of the tool's name. */
  readonly verbs: readonly (readonly [verb: string, forms: readonly VerbForm[]])[];
  readonly clock: { readonly [name in keyof ClockTables]: Phrases };
  /** The endings of regular infinitives, with the endings that replace them in an imperative. */
  readonly infinitives: readonly (readonly [ending: string, commands: Phrases])[];
  /** The prefixes of separable verbs. */
  readonly separable: Words;
}

export interface VerbForm {
  readonly head: Words;
  /** The separated prefix of a verb: `ab` in `schick … ab`. */
  readonly tail: Words;
}

const phraseTables = [
  'polite',
  'leadIns',
  'unfinished',
  'negations',
  'doubts',
  'quantifiers',
  'nones',
  'references',
  'holds',
  'holdTails',
  'musings',
  'musingTails',
  'holdReasons',
  'corrections',
  'bareCorrections',
  'repeats',
  'repeatsAlone',
  'commands',
  'putOffs',
  'putOffTails',
  'withdrawals',
  'callOffs',
  'requests',
  'beforehand',
  'joints',
  'digressionStarts',
  'questionStarts',
  'requestStarts',
] as const satisfies readonly (keyof AnswerLanguage)[];
type PhraseTable = (typeof phraseTables)[number];

const consentTables = [
  'yes',
  'asides',
  'pronouns',
  'no',
  'refusals',
  'notRefusals',
  'afterwards',
  'indefinites',
  'adjustments',
  'lastings',
  'conditions',
  'ironies',
  'asks',
  'yesLabels',
  'noLabels',
] as const satisfies readonly (keyof ConsentTables)[];
type ConsentTable = (typeof consentTables)[number];

const made = new WeakMap<AnswerLanguage, Tables>();

export function tablesOf(language: AnswerLanguage): Tables {
  let tables = made.get(language);
  if (!tables) {
    tables = make(language);
    made.set(language, tables);
  }
  return tables;
}

export function sameWords(a: Words, b: Words): boolean {
  return a.length === b.length && standsAt(a, 0, b);
}

/** Returns the indexes at which `phrase` begins in `words`. Words for which `isFree` returns false are ignored. */
export function findPhrase(
  words: Words,
  phrase: Words,
  isFree: (index: number) => boolean = () => true,
): number[] {
  const found: number[] = [];
  for (let start = 0; start + phrase.length <= words.length; start += 1) {
    if (standsAt(words, start, phrase) && phrase.every((_, n) => isFree(start + n))) {
      found.push(start);
    }
  }
  return found;
}

export function standsAt(words: Words, start: number, phrase: Words): boolean {
  return phrase.every((word, n) => words[start + n] === word);
}

/** Returns the length of the longest of these phrases at `start`; 0 if none begins there. */
export function phraseAt(words: Words, start: number, phrases: Phrases): number {
  let longest = 0;
  for (const phrase of phrases) {
    if (phrase.length > longest && standsAt(words, start, phrase)) longest = phrase.length;
  }
  return longest;
}

function make(language: AnswerLanguage): Tables {
  const phrasesOf = (entries: readonly string[]): Phrases =>
    entries.map((entry) => wordsOf(entry, language)).filter(({ length }) => length > 0);
  const phrases = Object.fromEntries([
    ...phraseTables.map((name) => [name, phrasesOf(language[name])]),
    ...consentTables.map((name) => [name, phrasesOf(language.consent[name])]),
  ]) as Tables['phrases'];
  const fillers = new Set(phrasesOf(language.fillers).flat());
  const hesitations = new Set(phrasesOf(language.hesitations).flat());
  const thinking = new Set([...phrases.polite.flat(), ...hesitations]);
  const assents = phrases.yes.filter(({ length }) => length === 1);
  const noise = new Set([...thinking, ...[...phrases.leadIns, ...assents].flat()]);
  const listening = new Set([...thinking, ...phrases.leadIns.flat()]);
  const leads = phrasesOf(language.numberLeads);
  const frame = new Set([...phrasesOf(language.frame), ...leads].flat());
  const verbs = Object.entries(language.consent.verbs).map(([verb, forms]) => {
    const spoken = forms.map((form): VerbForm => {
      const [head = '', tail = ''] = form.split('…');
      return { head: wordsOf(head, language), tail: wordsOf(tail, language) };
    });
    return [verb, spoken] as const;
  });
  const { infinitives, separable } = language.consent;
  const clock = Object.fromEntries(
    Object.entries(language.clock).map(([name, entries]) => [name, phrasesOf(entries)]),
  ) as Tables['clock'];
  return {
    language,
    noise,
    hesitations,
    thinking,
    fillers,
    listening,
    frame,
    phrases,
    verbs,
    clock,
    infinitives: Object.entries(infinitives).map(([ending, commands]) => [
      ending,
      commands.map((command) => fold(command).split(' ')),
    ]),
    separable: separable.map(fold),
  };
}

type Verdict = 'action' | 'yes' | 'no';
type Said = Verdict | 'nothing';

/** The verdicts, from weak to strong. If an utterance has two verdicts, the stronger one wins. */
const WEIGHT: readonly Said[] = ['nothing', 'action', 'yes', 'no'];

/**
 * Returns the verdict if the words are a sequence of listed phrases; null if a word remains or there are no words.
 * `action`: the words only name the action.
 */
export function verdictOf(words: Words, phrases: Tables['phrases'], names: Names): Verdict | null {
  return verdictsOf(words, phrases, names)[0] ?? null;
}

/** Like `verdictOf`, but for the words from each index to the end, in a single pass. */
export function verdictsOf(
  words: Words,
  phrases: Tables['phrases'],
  names: Names,
): readonly (Verdict | null)[] {
  const lists: readonly { readonly entries: Phrases; readonly says: Said }[] = [
    { entries: phrases.no, says: 'no' },
    { entries: phrases.yes, says: 'yes' },
    { entries: phrases.polite, says: 'nothing' },
    { entries: phrases.asides, says: 'nothing' },
  ];
  // The possible verdicts of the words from each index to the end. "Please do not" can be read in two ways, and only
  // one of them reaches the end.
  const readings: Set<Said>[] = [...words, ''].map(() => new Set());
  readings[words.length]?.add('nothing');
  for (let start = words.length - 1; start >= 0; start -= 1) {
    const named = names.byFirst.get(words[start] as string) ?? [];
    for (const { entries, says } of [...lists, { entries: named, says: 'action' as const }])
      for (const entry of entries) {
        if (!standsAt(words, start, entry)) continue;
        for (const said of readings[start + entry.length] ?? [])
          readings[start]?.add(WEIGHT.indexOf(says) > WEIGHT.indexOf(said) ? says : said);
      }
  }
  return readings.map((whole) => {
    if (whole.has('no')) return 'no';
    if (whole.has('yes')) return 'yes';
    return whole.has('action') ? 'action' : null;
  });
}

/** The names of an action that may accompany a yes. */
export interface Names {
  readonly byFirst: ReadonlyMap<string, Phrases>;
  /** The words of each name, joined by spaces. */
  readonly all: ReadonlySet<string>;
}

export const noNames: Names = { byFirst: new Map(), all: new Set() };
