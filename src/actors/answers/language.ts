// What the matching of answers knows of a language: tables of words, nothing else. The
// phrases in them are written plainly ("don't"); they are brought to the form that
// utterances have (see `utterance.ts`) when a table is first used. Which languages there
// are is said in `languages.ts`.

/** The words of a yes or a no to something that will really happen. Every list may be empty. */
export interface ConsentTables {
  /** The only words that approve. None may contain a negation. */
  readonly yes: readonly string[];
  /** Say nothing, but may stand beside a yes or a no: `okay`, `then`, `sounds good`. None may contain a negation. */
  readonly asides: readonly string[];
  /** May stand between the verb of the action and its object: `yes, send it`. */
  readonly pronouns: readonly string[];
  /** Words that deny. */
  readonly no: readonly string[];
  /** Deny wherever they stand: `yes, but don't send it`. */
  readonly refusals: readonly string[];
  /** Longer phrases with a refusal or a no in them that deny nothing: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** A label that begins with one of these is the yes (the no) among the options. */
  readonly yesLabels: readonly string[];
  readonly noLabels: readonly string[];
}

/** The tables of one language. Every list may be empty. */
export interface AnswerLanguage {
  /** `en`, `de`, …: the first part of a BCP 47 tag. */
  readonly code: string;

  /** Symbols that are spoken as words: `%` as `percent`. */
  readonly symbols: Readonly<Record<string, string>>;
  /** Symbols that are written before a number and spoken after it: `$`. */
  readonly prefixSymbols: readonly string[];
  /** Words that mean the same: `mins` as `minute`. */
  readonly synonyms: Readonly<Record<string, string>>;

  readonly cardinals: Readonly<Record<string, number>>;
  /** `hundred`, `thousand`. */
  readonly multipliers: Readonly<Record<string, number>>;
  /** May stand after a multiplier: `two hundred and six`. */
  readonly numberJoint: string;
  readonly ordinals: Readonly<Record<string, number>>;
  /** What makes a digit an ordinal: `2nd`. */
  readonly ordinalSuffixes: readonly string[];
  /** The last of any number of options. */
  readonly lastWords: readonly string[];
  /** The first and the second of exactly two options. */
  readonly ofTwo: { readonly first: readonly string[]; readonly second: readonly string[] };
  /** Words before a position: `option two`. Mishearings of them belong here too. */
  readonly numberLeads: readonly string[];
  /** What a number sounds like after such a word: `option to`. */
  readonly numberHomophones: Readonly<Record<string, number>>;
  /** Words, numbers among them, that can stand for a noun: `the premium one`. */
  readonly proforms: readonly string[];

  /** Phrases that never change what is meant. */
  readonly polite: readonly string[];
  /** Words that only lead into an answer: `okay`. In an approval they are no consent. */
  readonly leadIns: readonly string[];
  /** Sounds of thinking. */
  readonly hesitations: readonly string[];
  /** Those of them that say nothing at all, not even doubt: `um`, unlike `hmm`. */
  readonly fillers: readonly string[];
  /** Words around the name of an option: `I'd like the … one`. */
  readonly frame: readonly string[];

  /** Any of these outside the name of an option, and nothing is chosen. */
  readonly negations: readonly string[];
  /** A mention of an option with one of these is an opinion or a condition, not a choice. */
  readonly doubts: readonly string[];
  /** Several, none, or any of the options: an answer in words. */
  readonly quantifiers: readonly string[];

  /** Asks for time. */
  readonly holds: readonly string[];
  /** Thinks aloud: with a choice it is part of it, alone it asks for time. */
  readonly musings: readonly string[];
  /** How one goes on after asking for time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Beginnings of a wish to hear the question again. */
  readonly repeats: readonly string[];
  /** The same, if nothing else is said. */
  readonly repeatsAlone: readonly string[];
  /** Wants to be rid of the question: the lead agent must hear it. */
  readonly commands: readonly string[];
  /** Beginnings that are meant for the lead agent, whatever follows. */
  readonly digressionStarts: readonly string[];
  /** Beginnings of a question. */
  readonly questionStarts: readonly string[];
  /** Those of them that choose: `how about …`. */
  readonly requestStarts: readonly string[];

  readonly consent: ConsentTables;

  /** How it sounds: replacements in order, from lower-case letters to upper-case codes. Empty: no matching by sound or spelling. */
  readonly sounds: readonly (readonly [pattern: RegExp, code: string])[];
  /** What turns a word into its opposite: `un`. With and without it is never nearly the same. */
  readonly negativePrefixes: readonly string[];
  /** Codes that are easily taken for one another. */
  readonly similarSounds: readonly string[];
}

/** No language in particular: only what is literally the same matches. */
export const literal: AnswerLanguage = {
  code: 'und',
  symbols: {},
  prefixSymbols: [],
  synonyms: {},
  cardinals: {},
  multipliers: {},
  numberJoint: '',
  ordinals: {},
  ordinalSuffixes: [],
  lastWords: [],
  ofTwo: { first: [], second: [] },
  numberLeads: [],
  numberHomophones: {},
  proforms: [],
  polite: [],
  leadIns: [],
  hesitations: [],
  fillers: [],
  frame: [],
  negations: [],
  doubts: [],
  quantifiers: [],
  holds: [],
  musings: [],
  holdReasons: [],
  repeats: [],
  repeatsAlone: [],
  commands: [],
  digressionStarts: [],
  questionStarts: [],
  requestStarts: [],
  consent: {
    yes: [],
    asides: [],
    pronouns: [],
    no: [],
    refusals: [],
    notRefusals: [],
    yesLabels: [],
    noLabels: [],
  },
  sounds: [],
  negativePrefixes: [],
  similarSounds: [],
};
