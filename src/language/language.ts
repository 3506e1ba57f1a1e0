// The data for matching answers in one language: tables of words, and spelling rules. The phrases are written plainly
// ("don't"), and converted to the form of utterances (see `utterance.ts`) when a table is first used. `languages.ts`
// lists the languages.

/** Returns the entries of a table: `list` splits at commas, `words` at blanks. */
export const list = (text: string): string[] => text.trim().split(/(?<!\s)\s*,\s*/);
export const words = (text: string): string[] => text.trim().split(/\s+/);

/** The words that accept or refuse an action. Every list may be empty. */
export interface ConsentTables {
  /** The only words that approve; they must not contain a negation. */
  readonly yes: readonly string[];
  /**
   * Words that decide nothing, but may accompany a yes or a no: `okay`, `then`, `sounds good`. They must not contain a
   * negation.
   */
  readonly asides: readonly string[];
  /** Words that may stand between the verb of the action and its object: `yes, send it`. */
  readonly pronouns: readonly string[];
  /** Words that deny. */
  readonly no: readonly string[];
  /** Words that deny at any position: `yes, but don't send it`. */
  readonly refusals: readonly string[];
  /** The beginnings of a question that asks whether an action may run: `may I`. The action follows. */
  readonly asks: readonly string[];
  /** Longer phrases that contain a refusal or a no, but deny nothing: `don't know`, `no problem`. */
  readonly notRefusals: readonly string[];
  /** Words that follow `and` when it joins another wish to a yes: `and then book a table`. */
  readonly afterwards: readonly string[];
  /** Words that follow the verb of a wish with a new object: `book a table`. */
  readonly indefinites: readonly string[];
  /** Verbs after a yes that change the action instead of starting another wish: `add`, `make it`. */
  readonly adjustments: readonly string[];
  /** Phrases that accompany a yes, concern later actions, and do not limit the yes: `don't ask me again`. */
  readonly lastings: readonly string[];
  /**
   * Words that begin a condition: `if`. A refusal inside a condition does not deny, and a yes with a condition does not
   * approve.
   */
  readonly conditions: readonly string[];
  /** Phrases of assent that are often ironic or dismissive: `yeah right`. They do not consent. */
  readonly ironies: readonly string[];
  /**
   * The command and infinitive forms of an action's verb, keyed by the first word of the tool's name: `send` to `envoyez`.
   * `…` separates the parts of a separable verb: `schick … ab`. The tool name's own verb is understood in every language.
   */
  readonly verbs: Readonly<Record<string, readonly string[]>>;
  /**
   * Each ending of an infinitive, with the endings that replace it in a command: `en` to `e`, `en Sie`. If no table
   * lists the verb, these endings derive its command from the infinitive in the question.
   */
  readonly infinitives: Readonly<Record<string, readonly string[]>>;
  /** Prefixes that separate from the verb in a command: `ein` in `schalte … ein`. */
  readonly separable: readonly string[];
  /** The beginnings of the labels that mean yes or no. */
  readonly yesLabels: readonly string[];
  readonly noLabels: readonly string[];
}

/** The words of spoken times. Every list may be empty. */
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
  /** Words before an hour that mean thirty minutes after it (`half past`) or before it (German `halb`). */
  readonly halfPast: readonly string[];
  readonly halfTo: readonly string[];
}

/** The tables of one language. Every list may be empty. */
export interface AnswerLanguage {
  /** `en`, `de`, …: the first part of a BCP 47 tag. */
  readonly code: string;

  /** How symbols are spoken: `%` as `percent`. */
  readonly symbols: Readonly<Record<string, string>>;
  /** Symbols that are written before a number, but spoken after it: `$`. */
  readonly prefixSymbols: readonly string[];
  /** Synonyms: `mins` as `minute`. */
  readonly synonyms: Readonly<Record<string, string>>;

  readonly cardinals: Readonly<Record<string, number>>;
  /** `hundred`, `thousand`. */
  readonly multipliers: Readonly<Record<string, number>>;
  /** A word that may follow a multiplier: `two hundred and six`. */
  readonly numberJoint: string;
  readonly ordinals: Readonly<Record<string, number>>;
  /** Suffixes that turn digits into an ordinal: `2nd`. */
  readonly ordinalSuffixes: readonly string[];
  /** Words for the last option. */
  readonly lastWords: readonly string[];
  /** Words for the first and the second of two options. */
  readonly ofTwo: { readonly first: readonly string[]; readonly second: readonly string[] };
  /** Words before a position: `option two`. Includes common recognition errors. */
  readonly numberLeads: readonly string[];
  /** Numbers as they are misrecognised after such a word: `option to`. */
  readonly numberHomophones: Readonly<Record<string, number>>;
  /** Words, including numbers, that can stand for a noun: `the premium one`. */
  readonly proforms: readonly string[];

  readonly clock: ClockTables;
  /** Endings that an answer may add to a label word: German `e` in `das rote`. */
  readonly inflections: readonly string[];

  /** Whether the action's verb comes last in a question: "soll ich sie schicken?". */
  readonly verbsLast: boolean;
  /** Words that lose their vowel before another word: `l` in "l'eau". */
  readonly elisions: readonly string[];

  /** Phrases that never change the meaning. */
  readonly polite: readonly string[];
  /** Words that introduce an answer: `okay`. They do not approve an action. */
  readonly leadIns: readonly string[];
  /** Sounds of thinking. */
  readonly hesitations: readonly string[];
  /** Hesitations that express nothing, not even doubt: `um`, unlike `hmm`. */
  readonly fillers: readonly string[];
  /**
   * Words that seldom end a sentence: `to`, `the`, `because`. A speaker who pauses after such a word gets more time. Do
   * not list a word that ends many sentences ("turn it off").
   */
  readonly unfinished: readonly string[];
  /** Words around the name of an option: `I'd like the … one`. */
  readonly frame: readonly string[];

  /** Negations: an utterance that contains one outside an option's name chooses nothing. */
  readonly negations: readonly string[];
  /** Words that turn the mention of an option into an opinion or a condition, which chooses nothing. */
  readonly doubts: readonly string[];
  /** Words that mean several, no or any options. */
  readonly quantifiers: readonly string[];
  /** Words that decline all options: `neither`, `none of them`. */
  readonly nones: readonly string[];

  /** Words that describe an option without naming it: `cheaper`, `the other`. */
  readonly references: readonly string[];

  /** Phrases that ask for time. */
  readonly holds: readonly string[];
  /** Words that may follow a phrase from `holds`: `wait a second`. */
  readonly holdTails: readonly string[];
  /** Phrases of thinking aloud: next to a choice they are ignored; alone they ask for time. */
  readonly musings: readonly string[];
  /** Continuations of thinking aloud that contain no answer: `let me see what …`. */
  readonly musingTails: readonly string[];
  /** Continuations of a request for time: `hold on, I need to …`. */
  readonly holdReasons: readonly string[];
  /** Phrases that take back the words before them: `scratch that`. */
  readonly corrections: readonly string[];
  /** Words that correct only if punctuation follows, since a bare `no` may also negate the next words. */
  readonly bareCorrections: readonly string[];
  /** The beginnings of a request to repeat the question. */
  readonly repeats: readonly string[];
  /** Requests to repeat the question that count only if the user says nothing else. */
  readonly repeatsAlone: readonly string[];
  /** Phrases that dismiss the question; the lead agent must receive them. */
  readonly commands: readonly string[];
  /** Phrases that stop the current speech: `not now`, `that's enough`. They have no effect if the user says more. */
  readonly putOffs: readonly string[];
  /** Words that may follow a phrase from `putOffs`: `thanks`, `for now`. */
  readonly putOffTails: readonly string[];
  /** Phrases that withdraw the subject of the question: `don't need`, `any more`. */
  readonly withdrawals: readonly string[];
  /** Beginnings that cancel the subject of a question that expects words: `don't send anything`. */
  readonly callOffs: readonly string[];
  /** The beginnings of a request: imperatives, `I want you to`. */
  readonly requests: readonly string[];
  /** Words that end a request that precedes the answer: `first`. */
  readonly beforehand: readonly string[];
  /** Words that join a request to an answer: `and`. */
  readonly joints: readonly string[];
  /** Beginnings of an utterance for the lead agent, whatever follows. */
  readonly digressionStarts: readonly string[];
  /** Beginnings of a question. */
  readonly questionStarts: readonly string[];
  /** Beginnings of a question that chooses an option: `how about …`. */
  readonly requestStarts: readonly string[];

  readonly consent: ConsentTables;

  /** Words with which a listener shows attention without taking the turn: `I see`, `go on`. */
  readonly backchannels: readonly string[];
  /** The model's requests for a moment, as it acknowledges an answer: `one moment please`. */
  readonly moments: readonly string[];
  /** The model's replies to a user who asks for time: `take your time`. */
  readonly patience: readonly string[];
  /** Words of the model that confirm the answer, before or after a request for a moment: `got it`. */
  readonly agreements: readonly string[];

  /**
   * Phonetic rules: an ordered list of replacements that turn lower-case letters into upper-case codes. Without rules,
   * options are not matched by sound or spelling.
   */
  readonly sounds: readonly (readonly [pattern: RegExp, code: string])[];
  /**
   * Prefixes that reverse the meaning of a word: `un`. A word with such a prefix is never a near match of the word without it.
   */
  readonly negativePrefixes: readonly string[];
  /** Groups of phonetic codes that sound alike. */
  readonly similarSounds: readonly string[];
}

/** The tables of an unknown language, for which only equal words match. */
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
