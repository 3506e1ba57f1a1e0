// The data for matching answers in one language: word tables and spelling rules. The phrases are written as usual
// ("don't"). When a table is first used, they are converted to the form of utterances (see `utterance.ts`).
// `languages.ts` contains the list of languages.

/** Returns the entries of a table: `list` splits at commas, `words` at spaces. */
export const list = (text: string): string[] => text.trim().split(/(?<!\s)\s*,\s*/);
export const words = (text: string): string[] => text.trim().split(/\s+/);

/** The words that approve or refuse an action. Every list may be empty. */
export interface ConsentTables {
  /** The only words that approve an action. They must not contain a negation. */
  readonly yes: readonly string[];
  /**
   * Words that may accompany a yes or a no but do not decide anything: `okay`, `then`, `sounds good`. They must not
   * contain a negation.
   */
  readonly asides: readonly string[];
  /** Words that may stand between the action's verb and its object: `yes, send it`. */
  readonly pronouns: readonly string[];
  /** Words that deny. */
  readonly no: readonly string[];
  /** Words that deny an action wherever they occur: `yes, but don't send it`. */
  readonly refusals: readonly string[];
  /** The beginnings of questions that ask for permission to run an action: `may I`. The action follows. */
  readonly asks: readonly string[];
  /** Longer phrases that contain a refusal or a no but do not deny an action: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** Words that follow `and` when it adds another request to a yes: `and then book a table`. */
  readonly afterwards: readonly string[];
  /** Words that follow the verb of a request if its object is new: `book a table`. */
  readonly indefinites: readonly string[];
  /** Verbs that, after a yes, change the action instead of starting another request: `add`, `make it`. */
  readonly adjustments: readonly string[];
  /** Phrases after a yes that concern later actions and do not limit the yes: `don't ask me again`. */
  readonly lastings: readonly string[];
  /**
   * Words that introduce a condition: `if`. A refusal in a condition does not deny the action, and a conditional yes
   * does not approve it.
   */
  readonly conditions: readonly string[];
  /** Phrases of agreement that are often ironic or dismissive: `yeah right`. They do not approve an action. */
  readonly ironies: readonly string[];
  /**
   * The imperative and infinitive forms of an action's verb, keyed by the first word of the tool's name: `send` to
   * `envoyez`. `…` separates the parts of a separable verb: `schick … ab`. The runtime understands the verb in the
   * tool's name in every language.
   */
  readonly verbs: Readonly<Record<string, readonly string[]>>;
  /**
   * Each ending of an infinitive, with the endings that replace it in an imperative: `en` to `e`, `en Sie`. If no table
   * lists a verb, these endings turn the infinitive in the question into the imperative.
   */
  readonly infinitives: Readonly<Record<string, readonly string[]>>;
  /** Prefixes that are separated from the verb in an imperative: `ein` in `schalte … ein`. */
  readonly separable: readonly string[];
  /** The beginnings of labels that mean yes or no. */
  readonly yesLabels: readonly string[];
  /** The beginnings of labels that mean no: a plain `no` from the user chooses the option with such a label. */
  readonly noLabels: readonly string[];
}

/** The words used for times of day. Every list may be empty. */
export interface ClockTables {
  /** Words that follow an hour: `o'clock`. */
  readonly marks: readonly string[];
  /** Words that precede a time: `at`. */
  readonly leads: readonly string[];
  /** Words after a time that place it before noon: `in the morning`. */
  readonly am: readonly string[];
  /** Words after a time that place it after noon: `in the evening`. */
  readonly pm: readonly string[];
  /**
   * Words between minutes and an hour. `past` lists those for minutes after the hour, and `to` those for minutes before
   * it.
   */
  readonly past: readonly string[];
  /** Words for minutes before the hour: `to` in `ten to nine`. */
  readonly to: readonly string[];
  /** Words that mean fifteen minutes: `quarter`. */
  readonly quarters: readonly string[];
  /** Words before an hour that mean thirty minutes after it (`half past`) or before it (German `halb`). */
  readonly halfPast: readonly string[];
  /** Words before an hour that mean thirty minutes before it: German `halb`. */
  readonly halfTo: readonly string[];
}

/** The tables of one language. Every list may be empty. */
export interface AnswerLanguage {
  /** `en`, `de`, …: the first part of a BCP 47 tag. */
  readonly code: string;

  /** The spoken form of symbols: `%` as `percent`. */
  readonly symbols: Readonly<Record<string, string>>;
  /** Symbols that are written before a number but spoken after it: `$`. */
  readonly prefixSymbols: readonly string[];
  /** Synonyms: `mins` as `minute`. */
  readonly synonyms: Readonly<Record<string, string>>;

  /** The number that each number word means: `seven` as 7. `multipliers` contains the words that multiply. */
  readonly cardinals: Readonly<Record<string, number>>;
  /** `hundred`, `thousand`. */
  readonly multipliers: Readonly<Record<string, number>>;
  /** A word that may follow a multiplier: `two hundred and six`. */
  readonly numberJoint: string;
  /** The position that each ordinal word means, counted from 1: `second` as 2. */
  readonly ordinals: Readonly<Record<string, number>>;
  /** Suffixes that turn a number in digits into an ordinal: `2nd`. */
  readonly ordinalSuffixes: readonly string[];
  /** Words for the last option. */
  readonly lastWords: readonly string[];
  /** Words for the first and for the second of two options. */
  readonly ofTwo: { readonly first: readonly string[]; readonly second: readonly string[] };
  /** Words that precede a position: `option two`. The list should include common recognition errors. */
  readonly numberLeads: readonly string[];
  /** Misrecognised numbers after such a word: `option to`. */
  readonly numberHomophones: Readonly<Record<string, number>>;
  /** Words, including numerals, that can replace a noun: `the premium one`. */
  readonly proforms: readonly string[];

  /** The words with which speakers tell a time of day, so that `quarter to ten` chooses the option `9:45`. */
  readonly clock: ClockTables;
  /** Endings that a speaker may add to a label word: German `e` in `das rote`. */
  readonly inflections: readonly string[];

  /** Whether questions put the action's verb last, as in "soll ich sie schicken?". */
  readonly verbsLast: boolean;
  /** Words that lose their vowel before the next word: `l` in "l'eau". */
  readonly elisions: readonly string[];

  /** Phrases that never change the meaning of an utterance. */
  readonly polite: readonly string[];
  /** Words that introduce an answer: `okay`. They do not approve an action. */
  readonly leadIns: readonly string[];
  /** Sounds of thinking. */
  readonly hesitations: readonly string[];
  /** Hesitations that do not express anything, not even doubt: `um`, unlike `hmm`. */
  readonly fillers: readonly string[];
  /**
   * Words that seldom end a sentence: `to`, `the`, `because`. A speaker who pauses after such a word is given more
   * time. Do not list words that often end a sentence ("turn it off").
   */
  readonly unfinished: readonly string[];
  /** Words that surround the name of an option: `I'd like the … one`. */
  readonly frame: readonly string[];

  /** Negations. An utterance with a negation outside an option's name does not choose an option. */
  readonly negations: readonly string[];
  /** Words that turn the mention of an option into an opinion or a condition, which is not a choice. */
  readonly doubts: readonly string[];
  /** Words that refer to several options, to none or to any. */
  readonly quantifiers: readonly string[];
  /** Words that decline all options: `neither`, `none of them`. */
  readonly nones: readonly string[];

  /** Words that describe an option without naming it: `cheaper`, `the other`. */
  readonly references: readonly string[];

  /** Phrases that ask for time. */
  readonly holds: readonly string[];
  /** Words that may follow a phrase in `holds`: `wait a second`. */
  readonly holdTails: readonly string[];
  /** Phrases of thinking aloud. Next to a choice they are ignored; on their own, they ask for time. */
  readonly musings: readonly string[];
  /** Continuations of thinking aloud that do not contain an answer: `let me see what …`. */
  readonly musingTails: readonly string[];
  /** Continuations of a request for more time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Phrases that retract the preceding words: `scratch that`. */
  readonly corrections: readonly string[];
  /** Words that are a correction only before punctuation, because a bare `no` may also negate the next words. */
  readonly bareCorrections: readonly string[];
  /** The beginnings of requests to repeat the question. */
  readonly repeats: readonly string[];
  /** Requests to repeat the question that count only if the user says nothing else. */
  readonly repeatsAlone: readonly string[];
  /** Phrases that dismiss the question; they are passed to the lead agent. */
  readonly commands: readonly string[];
  /**
   * Phrases that ask the agent to stop speaking: `not now`, `that's enough`. They have no effect if the user says
   * anything else.
   */
  readonly putOffs: readonly string[];
  /** Words that may follow a phrase in `putOffs`: `thanks`, `for now`. */
  readonly putOffTails: readonly string[];
  /** Phrases that withdraw the subject of the question: `don't need`, `any more`. */
  readonly withdrawals: readonly string[];
  /** The beginnings of a free-text answer that withdraws the subject of the question: `don't send anything`. */
  readonly callOffs: readonly string[];
  /** The beginnings of a request: imperatives, `I want you to`. */
  readonly requests: readonly string[];
  /** Words that show that a request comes before the answer: `first`. */
  readonly beforehand: readonly string[];
  /** Words between an answer and a further request: `and`. */
  readonly joints: readonly string[];
  /** The beginnings of utterances that are always passed to the lead agent. */
  readonly digressionStarts: readonly string[];
  /** Beginnings of a question. */
  readonly questionStarts: readonly string[];
  /** Beginnings of a question that nevertheless chooses an option: `how about …`. */
  readonly requestStarts: readonly string[];

  /** The words with which users approve or refuse an action. */
  readonly consent: ConsentTables;

  /** Words with which a listener shows attention without taking a turn: `I see`, `go on`. */
  readonly backchannels: readonly string[];
  /** The model's phrases that acknowledge an answer and ask for a moment: `one moment please`. */
  readonly moments: readonly string[];
  /** The model's replies when the user has asked for time: `take your time`. */
  readonly patience: readonly string[];
  /** The model's confirmations of an answer, before or after a phrase from `moments`: `got it`. */
  readonly agreements: readonly string[];

  /**
   * Phonetic rules: an ordered list of replacements that turn lower-case letters into upper-case codes. Without these
   * rules, options are not matched by sound or spelling.
   */
  readonly sounds: readonly (readonly [pattern: RegExp, code: string])[];
  /**
   * Prefixes that reverse the meaning of a word: `un`. A word with such a prefix never counts as similar to the word
   * without it.
   */
  readonly negativePrefixes: readonly string[];
  /** Groups of phonetic codes that sound alike. */
  readonly similarSounds: readonly string[];
}

/** The tables for an unknown language, in which only identical words match. */
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
