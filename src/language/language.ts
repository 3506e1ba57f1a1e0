// The data by which answers in a language are matched: tables of words, and rules of spelling. Their phrases are
// written plainly ("don't") and converted to the form of utterances (see `utterance.ts`) when a table is first used.
// `languages.ts` lists the languages.

/** Returns the entries of a table: `list` splits at commas, `words` at blanks. */
export const list = (text: string): string[] => text.trim().split(/(?<!\s)\s*,\s*/);
export const words = (text: string): string[] => text.trim().split(/\s+/);

/** The words of a yes or a no to an action that will really run. Every list may be empty. */
export interface ConsentTables {
  /** The only words that approve. None may contain a negation. */
  readonly yes: readonly string[];
  /**
   * Words that decide nothing but may accompany a yes or a no: `okay`, `then`, `sounds good`. None may contain a
   * negation.
   */
  readonly asides: readonly string[];
  /** Words that may stand between the verb of the action and its object: `yes, send it`. */
  readonly pronouns: readonly string[];
  /** Words that deny. */
  readonly no: readonly string[];
  /** Words that deny at any position: `yes, but don't send it`. */
  readonly refusals: readonly string[];
  /** Beginnings of a question whether an action may run: `may I`. The action follows. */
  readonly asks: readonly string[];
  /** Longer phrases that contain a refusal or a no and deny nothing: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** Words after the `and` that joins another wish to a yes: `and then book a table`. */
  readonly afterwards: readonly string[];
  /** Words after the verb of a wish whose object is new: `book a table`. */
  readonly indefinites: readonly string[];
  /** Verbs after a yes that change the action instead of beginning another wish: `add`, `make it`. */
  readonly adjustments: readonly string[];
  /** Phrases that accompany a yes, concern later actions, and do not limit the yes: `don't ask me again`. */
  readonly lastings: readonly string[];
  /** Words that begin a condition: `if`. A refusal in a condition denies nothing, and beside it no yes approves. */
  readonly conditions: readonly string[];
  /** Assent that is as often ironic, or meant to put the assistant off: `yeah right`. It is no consent. */
  readonly ironies: readonly string[];
  /**
   * The forms of an action's verb as a command or an infinitive, by the first word of a tool's name: `send` as
   * `envoyez`. A separable verb has its parts around `…`: `schick … ab`. The verb in the tool's name itself is
   * understood in every language.
   */
  readonly verbs: Readonly<Record<string, readonly string[]>>;
  /**
   * The endings of infinitives, each with the endings that replace it in a command: `en` as `e`, `en Sie`. They derive
   * the command from the infinitive in a question, if no table lists the verb.
   */
  readonly infinitives: Readonly<Record<string, readonly string[]>>;
  /** Prefixes that separate from the verb in a command: `ein` in `schalte … ein`. */
  readonly separable: readonly string[];
  /** Beginnings of the label that is the yes, or the no, among the options. */
  readonly yesLabels: readonly string[];
  readonly noLabels: readonly string[];
}

/** The words of times of the day. Every list may be empty. */
export interface ClockTables {
  /** Words after an hour: `o'clock`. */
  readonly marks: readonly string[];
  /** Words before a time: `at`. */
  readonly leads: readonly string[];
  readonly am: readonly string[];
  readonly pm: readonly string[];
  /** Words between minutes and an hour, for minutes after the hour (`past`) and before it (`to`). */
  readonly past: readonly string[];
  readonly to: readonly string[];
  readonly quarters: readonly string[];
  /** Words before an hour for thirty minutes after it (`half past`), or before it (German `halb`). */
  readonly halfPast: readonly string[];
  readonly halfTo: readonly string[];
}

/** The tables of one language. Every list may be empty. */
export interface AnswerLanguage {
  /** `en`, `de`, …: the first part of a BCP 47 tag. */
  readonly code: string;

  /** The words as which symbols are spoken: `%` as `percent`. */
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
  /** Words for the last of any number of options. */
  readonly lastWords: readonly string[];
  /** Words for the first and the second of exactly two options. */
  readonly ofTwo: { readonly first: readonly string[]; readonly second: readonly string[] };
  /** Words before a position: `option two`. They include mishearings of such words. */
  readonly numberLeads: readonly string[];
  /** Numbers in the form in which they are misheard after such a word: `option to`. */
  readonly numberHomophones: Readonly<Record<string, number>>;
  /** Words, including numbers, that can stand for a noun: `the premium one`. */
  readonly proforms: readonly string[];

  readonly clock: ClockTables;
  /** Endings that a word of a label may have in an answer: German `e` in `das rote`. */
  readonly inflections: readonly string[];

  /** Whether the verb of the action comes last in a question: "soll ich sie schicken?". */
  readonly verbsLast: boolean;
  /** Words that lose their vowel before another word: `l` in "l'eau". */
  readonly elisions: readonly string[];

  /** Phrases that never change the meaning. */
  readonly polite: readonly string[];
  /** Words that only introduce an answer: `okay`. In an approval they are no consent. */
  readonly leadIns: readonly string[];
  /** Sounds made while thinking. */
  readonly hesitations: readonly string[];
  /** Hesitations without any meaning, not even doubt: `um`, unlike `hmm`. */
  readonly fillers: readonly string[];
  /**
   * Words with which a sentence seldom ends: `to`, `the`, `because`. A speaker who pauses after such a word gets more
   * time. A word that ends many sentences ("turn it off") does not belong here.
   */
  readonly unfinished: readonly string[];
  /** Words around the name of an option: `I'd like the … one`. */
  readonly frame: readonly string[];

  /** Negations: an utterance with one of them outside the name of an option chooses nothing. */
  readonly negations: readonly string[];
  /** Words that turn the mention of an option into an opinion or a condition: it is no choice. */
  readonly doubts: readonly string[];
  /** Words for several, none, or any of the options. */
  readonly quantifiers: readonly string[];
  /** Words that decline all options: `neither`, `none of them`. */
  readonly nones: readonly string[];

  /** Words that describe an option without naming it: `cheaper`, `the other`. */
  readonly references: readonly string[];

  /** Phrases that ask for time. */
  readonly holds: readonly string[];
  /** Words that may follow a phrase of `holds`: `wait a second`. */
  readonly holdTails: readonly string[];
  /** Phrases of thinking aloud: beside a choice they belong to it; alone they ask for time. */
  readonly musings: readonly string[];
  /** Continuations of thinking aloud that contain no answer: `let me see what …`. */
  readonly musingTails: readonly string[];
  /** Continuations of a request for time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Phrases that take back the words before them: `scratch that`. */
  readonly corrections: readonly string[];
  /** Words that correct only before punctuation: a bare `no` may also negate the next words. */
  readonly bareCorrections: readonly string[];
  /** Beginnings of a request to hear the question again. */
  readonly repeats: readonly string[];
  /** Requests to hear the question again that count only if nothing else is said. */
  readonly repeatsAlone: readonly string[];
  /** Phrases that dismiss the question; the lead agent must receive them. */
  readonly commands: readonly string[];
  /** Phrases that stop the current speech: `not now`, `that's enough`. They do not if more is said. */
  readonly putOffs: readonly string[];
  /** Words that may follow a phrase of `putOffs`: `thanks`, `for now`. */
  readonly putOffTails: readonly string[];
  /** Phrases that withdraw the subject of the question: `don't need`, `any more`. */
  readonly withdrawals: readonly string[];
  /** Beginnings that cancel the subject of a question for words: `don't send anything`. */
  readonly callOffs: readonly string[];
  /** Beginnings of a request: imperatives, `I want you to`. */
  readonly requests: readonly string[];
  /** Words at the end of a request that precedes the answer: `first`. */
  readonly beforehand: readonly string[];
  /** Words that join a request to an answer: `and`. */
  readonly joints: readonly string[];
  /** Beginnings of an utterance that is for the lead agent, whatever follows. */
  readonly digressionStarts: readonly string[];
  /** Beginnings of a question. */
  readonly questionStarts: readonly string[];
  /** Beginnings of a question that make a choice: `how about …`. */
  readonly requestStarts: readonly string[];

  readonly consent: ConsentTables;

  /** Words by which a listener shows attention without taking the turn: `I see`, `go on`. */
  readonly backchannels: readonly string[];
  /** Requests for a moment with which a model acknowledges an answer: `one moment please`. */
  readonly moments: readonly string[];
  /** Replies to a user who asks for time: `take your time`. */
  readonly patience: readonly string[];
  /** Words beside a request for a moment that confirm the answer: `got it`. */
  readonly agreements: readonly string[];

  /**
   * Phonetic rules: replacements in order, from lower-case letters to upper-case codes. Without rules, options are not
   * matched by sound or spelling.
   */
  readonly sounds: readonly (readonly [pattern: RegExp, code: string])[];
  /**
   * Prefixes that reverse the meaning of a word: `un`. A word with such a prefix never nearly matches the word without
   * it.
   */
  readonly negativePrefixes: readonly string[];
  /** Groups of codes that sound alike. */
  readonly similarSounds: readonly string[];
}

/** The tables for an unknown language, in which only equal words match. */
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
