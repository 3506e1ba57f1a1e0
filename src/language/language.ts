// The data that the matching of answers has for a language: tables of words, and how they are written. Their phrases are
// written plainly ("don't") and brought to the form of utterances (see `utterance.ts`) when a table is first
// used. `languages.ts` lists the languages.

/** Returns the entries of a table: `list` divides by commas, `words` by blanks. */
export const list = (text: string): string[] => text.trim().split(/(?<!\s)\s*,\s*/);
export const words = (text: string): string[] => text.trim().split(/\s+/);

/** The words of a yes or a no to an action that will really run. Every list may be empty. */
export interface ConsentTables {
  /** The only words that approve. None may contain a negation. */
  readonly yes: readonly string[];
  /**
   * Words that decide nothing, but may stand beside a yes or a no: `okay`, `then`, `sounds good`. None may
   * contain a negation.
   */
  readonly asides: readonly string[];
  /** Words that may stand between the verb of the action and its object: `yes, send it`. */
  readonly pronouns: readonly string[];
  /** Words that deny. */
  readonly no: readonly string[];
  /** Words that deny wherever they stand: `yes, but don't send it`. */
  readonly refusals: readonly string[];
  /** Beginnings of a question whether an action may run: `may I`. The action follows. */
  readonly asks: readonly string[];
  /** Longer phrases with a refusal or a no in them that deny nothing: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** Words behind the `and` that follows a yes, before a wish of its own: `and then book a table`. */
  readonly afterwards: readonly string[];
  /** Words behind the verb of a wish that is about nothing known: `book a table`. */
  readonly indefinites: readonly string[];
  /** Verbs behind a yes that change the action, and are no wish of its own: `add`, `make it`. */
  readonly adjustments: readonly string[];
  /** What may be said beside a yes of later actions: `don't ask me again`. It takes nothing of the yes back. */
  readonly lastings: readonly string[];
  /** Words that begin a condition: `if`. A refusal in it denies nothing, and no yes approves beside it. */
  readonly conditions: readonly string[];
  /**
   * Assent that is as often meant ironically, or to put the assistant off: `yeah right`. It is no consent.
   */
  readonly ironies: readonly string[];
  /**
   * The forms of an action's verb as a command or an infinitive, by the first word of a tool's name: `send`
   * as `envoyez`. A separable verb has its parts around `…`: `schick … ab`. The verb of the tool itself is
   * understood in every language.
   */
  readonly verbs: Readonly<Record<string, readonly string[]>>;
  /**
   * How a command is made from the infinitive in a question, if no table lists the verb: the endings of infinitives,
   * and by each what stands in its place in a command: `en` as `e`, `en Sie`.
   */
  readonly infinitives: Readonly<Record<string, readonly string[]>>;
  /** Prefixes that leave the verb in a command: `ein` in `schalte … ein`. */
  readonly separable: readonly string[];
  /** A label that begins with one of these is the yes (the no) among the options. */
  readonly yesLabels: readonly string[];
  readonly noLabels: readonly string[];
}

/** How times of the day are said. Every list may be empty. */
export interface ClockTables {
  /** Words after an hour: `o'clock`. */
  readonly marks: readonly string[];
  /** Words before a time: `at`. */
  readonly leads: readonly string[];
  readonly am: readonly string[];
  readonly pm: readonly string[];
  /** Words between minutes and the hour that they follow, or come before: `past`, `to`. */
  readonly past: readonly string[];
  readonly to: readonly string[];
  readonly quarters: readonly string[];
  /** Words before an hour for thirty minutes after it, or before it: `half past`, German `halb`. */
  readonly halfPast: readonly string[];
  readonly halfTo: readonly string[];
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
  /** A word that may stand after a multiplier: `two hundred and six`. */
  readonly numberJoint: string;
  readonly ordinals: Readonly<Record<string, number>>;
  /** Suffixes that make a digit an ordinal: `2nd`. */
  readonly ordinalSuffixes: readonly string[];
  /** Words for the last option, however many there are. */
  readonly lastWords: readonly string[];
  /** Words for the first and the second of exactly two options. */
  readonly ofTwo: { readonly first: readonly string[]; readonly second: readonly string[] };
  /** Words before a position: `option two`. Mishearings of them belong here too. */
  readonly numberLeads: readonly string[];
  /** Numbers as they are misheard after such a word: `option to`. */
  readonly numberHomophones: Readonly<Record<string, number>>;
  /** Words, numbers among them, that can stand for a noun: `the premium one`. */
  readonly proforms: readonly string[];

  readonly clock: ClockTables;
  /** Endings that a word of a label may have in an answer: German `e` in `das rote`. */
  readonly inflections: readonly string[];

  /** Whether the verb of the action is the last word of a question: "soll ich sie schicken?". */
  readonly verbsLast: boolean;
  /** Words that lose their vowel before another word: `l` in "l'eau". */
  readonly elisions: readonly string[];

  /** Phrases that never change the meaning. */
  readonly polite: readonly string[];
  /** Words that only lead into an answer: `okay`. In an approval they are no consent. */
  readonly leadIns: readonly string[];
  /** Sounds of thinking. */
  readonly hesitations: readonly string[];
  /** Hesitations that mean nothing at all, not even doubt: `um`, unlike `hmm`. */
  readonly fillers: readonly string[];
  /**
   * Words that a sentence seldom ends with: `to`, `the`, `because`. A speaker who pauses after one of them is
   * given more time. A word that ends many sentences ("turn it off") does not belong here.
   */
  readonly unfinished: readonly string[];
  /** Words around the name of an option: `I'd like the … one`. */
  readonly frame: readonly string[];

  /** Negations: with one of them outside the name of an option, nothing is chosen. */
  readonly negations: readonly string[];
  /** A mention of an option with one of these is an opinion or a condition, not a choice. */
  readonly doubts: readonly string[];
  /** Several, none, or any of the options: an answer in words. */
  readonly quantifiers: readonly string[];
  /** Those that decline all options: `neither`, `none of them`. */
  readonly nones: readonly string[];

  /** Words that describe an option without naming it: `cheaper`, `the other`. */
  readonly references: readonly string[];

  /** Phrases that ask for time. */
  readonly holds: readonly string[];
  /** Words that may follow such a phrase: `wait a second`. */
  readonly holdTails: readonly string[];
  /** Thinking aloud: beside a choice it belongs to the choice, alone it asks for time. */
  readonly musings: readonly string[];
  /** Continuations of thinking aloud, without an answer: `let me see what …`. */
  readonly musingTails: readonly string[];
  /** Continuations of asking for time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Phrases that take back the words before them: `scratch that`. */
  readonly corrections: readonly string[];
  /** Corrections only if punctuation follows: a bare `no` may also negate the words after it. */
  readonly bareCorrections: readonly string[];
  /** Beginnings of a request to hear the question again. */
  readonly repeats: readonly string[];
  /** Requests to hear the question again, if nothing else is said. */
  readonly repeatsAlone: readonly string[];
  /** Phrases that dismiss the question: the lead agent must hear them. */
  readonly commands: readonly string[];
  /** Phrases that stop what is being told: `not now`, `that's enough`. They put off nothing if more is said. */
  readonly putOffs: readonly string[];
  /** Words that may follow such a phrase: `thanks`, `for now`. */
  readonly putOffTails: readonly string[];
  /** Phrases that withdraw the subject of the question: `don't need`, `any more`. */
  readonly withdrawals: readonly string[];
  /** Beginnings that call off what a question for words is about: `don't send anything`. */
  readonly callOffs: readonly string[];
  /** Beginnings of a request: imperatives, `I want you to`. */
  readonly requests: readonly string[];
  /** Words at the end of a request that comes before the answer: `first`. */
  readonly beforehand: readonly string[];
  /** Words that join a request to an answer: `and`. */
  readonly joints: readonly string[];
  /** Beginnings of an utterance for the lead agent, whatever follows. */
  readonly digressionStarts: readonly string[];
  /** Beginnings of a question. */
  readonly questionStarts: readonly string[];
  /** Beginnings of a question that choose: `how about …`. */
  readonly requestStarts: readonly string[];

  readonly consent: ConsentTables;

  /** Words by which a listener shows attention, and takes no turn: `I see`, `go on`. */
  readonly backchannels: readonly string[];
  /** Requests for a moment, as a model acknowledges an answer: `one moment please`. */
  readonly moments: readonly string[];
  /** What may be said to somebody who asks for time: `take your time`. */
  readonly patience: readonly string[];
  /** Words beside a request for a moment that agree to have heard the answer: `got it`. */
  readonly agreements: readonly string[];

  /**
   * Phonetic rules: replacements in order, from lower-case letters to upper-case codes. Empty: no matching by
   * sound or spelling.
   */
  readonly sounds: readonly (readonly [pattern: RegExp, code: string])[];
  /**
   * Prefixes that turn a word into its opposite: `un`. A word with one never nearly matches the word without.
   */
  readonly negativePrefixes: readonly string[];
  /** Codes that sound alike. */
  readonly similarSounds: readonly string[];
}

/** No language in particular: only literally equal words match. */
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
  clock: {
    marks: [],
    leads: [],
    am: [],
    pm: [],
    past: [],
    to: [],
    quarters: [],
    halfPast: [],
    halfTo: [],
  },
  inflections: [],
  verbsLast: false,
  elisions: [],
  polite: [],
  leadIns: [],
  hesitations: [],
  fillers: [],
  unfinished: [],
  frame: [],
  negations: [],
  doubts: [],
  quantifiers: [],
  nones: [],
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
  putOffs: [],
  putOffTails: [],
  withdrawals: [],
  callOffs: [],
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
    afterwards: [],
    indefinites: [],
    adjustments: [],
    lastings: [],
    conditions: [],
    ironies: [],
    asks: [],
    verbs: {},
    infinitives: {},
    separable: [],
    yesLabels: [],
    noLabels: [],
  },
  backchannels: [],
  moments: [],
  patience: [],
  agreements: [],
  sounds: [],
  negativePrefixes: [],
  similarSounds: [],
};
