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
  /** Beginnings of a question whether something may be done: `may I`. What follows is the action. */
  readonly asks: readonly string[];
  /** Longer phrases with a refusal or a no in them that deny nothing: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** Assent that is as often meant ironically, or to put somebody off: `yeah right`. It consents to nothing. */
  readonly ironies: readonly string[];
  /**
   * How the verb of an action is said as a command or an infinitive, by the first word of a
   * tool's name: `send` as `envoyez`. A separable verb has its parts around `…`: `schick … ab`.
   * The verb of the tool itself is understood in every language.
   */
  readonly verbs: Readonly<Record<string, readonly string[]>>;
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

  /** In a question the verb of the action is its last word: "soll ich sie schicken?". */
  readonly verbsLast: boolean;
  /** Words that lose their vowel before another word: `l` in "l'eau". */
  readonly elisions: readonly string[];

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

  /** Describe an option without naming it: `cheaper`, `the other`. */
  readonly references: readonly string[];

  /** Asks for time. */
  readonly holds: readonly string[];
  /** May follow them: `wait a second`. */
  readonly holdTails: readonly string[];
  /** Thinks aloud: with a choice it is part of it, alone it asks for time. */
  readonly musings: readonly string[];
  /** How one goes on after thinking aloud, where no answer follows: `let me see what …`. */
  readonly musingTails: readonly string[];
  /** How one goes on after asking for time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Takes back what was said before: `scratch that`. */
  readonly corrections: readonly string[];
  /** The same, if punctuation follows: a bare `no` may also negate what comes next. */
  readonly bareCorrections: readonly string[];
  /** Beginnings of a wish to hear the question again. */
  readonly repeats: readonly string[];
  /** The same, if nothing else is said. */
  readonly repeatsAlone: readonly string[];
  /** Wants to be rid of the question: the lead agent must hear it. */
  readonly commands: readonly string[];
  /** What was asked about is not wanted any more: `don't need`, `any more`. */
  readonly withdrawals: readonly string[];
  /** Beginnings of a request: imperatives, `I want you to`. */
  readonly requests: readonly string[];
  /** A request with one of these at its end comes before the answer: `first`. */
  readonly beforehand: readonly string[];
  /** Join a request to an answer: `and`. */
  readonly joints: readonly string[];
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
  verbsLast: false,
  elisions: [],
  polite: [],
  leadIns: [],
  hesitations: [],
  fillers: [],
  frame: [],
  negations: [],
  doubts: [],
  quantifiers: [],
  references: [],
  holds: [],
  holdTails: [],
  musings: [],
  musingTails: [],
  holdReasons: [],
  corrections: [],
  bareCorrections: [],
  repeats: [],
  repeatsAlone: [],
  commands: [],
  withdrawals: [],
  requests: [],
  beforehand: [],
  joints: [],
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
    ironies: [],
    asks: [],
    verbs: {},
    yesLabels: [],
    noLabels: [],
  },
  sounds: [],
  negativePrefixes: [],
  similarSounds: [],
};
