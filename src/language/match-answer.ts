// Matches the user's spoken or typed words to a question (promise P3). The same words always give the same result. The
// caller decides whether the question may be answered at that time.
//
// Invariants
//   MATCH-ANSWER-1. Case and politeness never change the result. Punctuation changes it only if the words can be read
//       in two ways: a bare "no" between two options, a question after a form of address, or a command followed by more
//       words.
//   MATCH-ANSWER-2. The match is never a guess. If two options are about equally likely, the result is ambiguous. A
//       negation outside an option's name does not choose an option.
//   MATCH-ANSWER-3. An approval is never guessed.
//   MATCH-ANSWER-4. A text longer than `LONGEST_ANSWER_CHARS` goes to the lead agent without matching, which limits the
//       work.
//   MATCH-APPROVAL-1. An utterance approves only if it consists of phrases from the closed list `yes`. It may also
//       contain politeness, fillers, asides and the name of the action (if the question was whether to cancel: "yes,
//       cancel it"). Similar words are not enough: speech recognition turns "go ahead" into "no head".
//   MATCH-APPROVAL-2. An utterance that contains a negation never approves an action. If the utterance is a refusal, it
//       denies the action; otherwise (as with "no problem") the question is asked again. The action's verb on its own
//       ("cancel") neither denies nor approves.
//   MATCH-APPROVAL-3. "Wait" and a question neither approve nor deny, and a conditional yes does not approve. If an
//       utterance leaves any doubt, the question is asked again. An objection or a correction is passed to the lead
//       agent.
//   MATCH-APPROVAL-4. A filler ("um") does not change the result; a sound that expresses doubt ("hmm") is not a filler.
//   MATCH-APPROVAL-5. Agreement that is often ironic ("yeah, right") does not approve.
//   MATCH-APPROVAL-6. A symbol that is neither a letter nor punctuation ("yes ❌", "!yes") makes a yes unclear.
//   MATCH-APPROVAL-7. A yes or a no also counts if another request follows ("and then book a table"); the match
//       contains that request. After a yes, the request must be about something new: words that may change the action
//       make the yes unclear.
//   MATCH-APPROVAL-8. In a language without tables, no utterance approves or denies an action.

import { backchannelIn } from './backchannel.ts';
import { literal, type AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { digression, hold, repeat, unclear, type AnswerableQuestion, type Match } from './match.ts';
import { contentOf } from './choice.ts';
import { matchChoice } from './match-choice.ts';
import {
  asksAside,
  asksInClause,
  changesMind,
  commandAtStart,
  isCommand,
  isHold,
  isPutOff,
  requestsBeforehand,
  requestsInClause,
  startsDigression,
  wantsRepeat,
  withdraws,
  startsQuestion,
  requestsIn,
} from './side-talk.ts';
import {
  sameWords,
  tablesOf,
  type Tables,
  type Words,
  standsAt,
  type Phrases,
  type VerbForm,
  findPhrase,
  phraseAt,
  noNames,
  verdictOf,
  verdictsOf,
  type Names,
} from './tables.ts';
import { from, readUtterance, type Utterance, wordsOf } from './utterance.ts';

export interface MatchAnswerOptions {
  /**
   * A language tag, or custom tables. In a language without tables, a text matches only if it is identical to a label
   * or an id.
   * @defaultValue 'en'
   */
  readonly language?: string | AnswerLanguage;
}

/** The maximum length of a text that is matched, in UTF-16 code units. Two minutes of speech are shorter. */
const LONGEST_ANSWER_CHARS = 2_000;

/** Returns whether a text or its normalised form is too long; a single character such as ﷺ becomes many letters. */
function isTooLong(utterance: string): boolean {
  return (
    utterance.length > LONGEST_ANSWER_CHARS ||
    utterance.normalize('NFKC').length > LONGEST_ANSWER_CHARS
  );
}

export function matchAnswer(
  question: AnswerableQuestion,
  utterance: string,
  { language = 'en' }: MatchAnswerOptions = {},
): Match {
  // MATCH-ANSWER-4
  if (isTooLong(utterance))
    return question.kind === 'free_text'
      ? { kind: 'free_text', text: utterance.trim(), doubt: true }
      : digression;
  const tables = tablesOf(typeof language === 'string' ? languageFor(language) : language);
  const said = readUtterance(utterance, tables.language);
  const topic = topicOf(question, tables);
  switch (question.kind) {
    case 'choice': {
      const match = matchChoice(question.options, said, tables, topic);
      const labels = question.options.map(({ label }) => label);
      return match.kind === 'option' && hasSigns(utterance, labels)
        ? { ...match, doubt: true }
        : match;
    }
    case 'approval':
      return matchApproval(said, tables, question);
    case 'free_text':
      return matchFreeText(said, tables, question, topic);
  }
}

/** Letters, numbers and punctuation that occur in a sentence. */
const PLAIN = /^[\p{L}\p{M}\p{N}\s.,;:!?…'’‘ʼ"“”„«»()¡¿。、，！？।؟،؛–—-]*$/u;
/** Combining marks that strike through or enclose a letter. */
const STRUCK = /[\u0334-\u0338\u20D0-\u20FF]/;
/** Sentence-final punctuation, or a minus, directly before a word. */
const BEFORE_A_WORD =
  /(?<![\p{L}\p{N}\s.,;:!?…-])[!?-]+(?=[\p{L}\p{N}])|(?<=\s|^)[!?-]+(?=[\p{L}\p{N}])/u;

/** Returns whether the text contains characters that belong neither in a sentence nor in these labels. */
function hasSigns(text: string, labels: readonly string[] = []): boolean {
  const left = labels.reduce((rest, label) => rest.replaceAll(label, ''), text).normalize('NFC');
  return !PLAIN.test(left) || STRUCK.test(left) || BEFORE_A_WORD.test(left);
}

/**
 * Returns whether no interpretation was possible because the language has no tables; a model may then interpret the
 * words. Questions, option names, and symbols next to the words can be understood without tables (MATCH-APPROVAL-8).
 */
export function areTablesSilent(
  question: AnswerableQuestion,
  utterance: string,
  language: string,
): boolean {
  const { kind, options } = question;
  const tables = languageFor(language);
  if (tables !== literal || kind === 'free_text' || isTooLong(utterance)) return false;
  const said = readUtterance(utterance, tables);
  const labels = kind === 'choice' ? options.map(({ label }) => label) : [];
  if (said.words.length === 0 || said.asks || hasSigns(utterance, labels)) return false;
  return SILENT.has(matchAnswer(question, utterance, { language }).kind);
}

/** The matches that may only mean that the tables are empty. */
const SILENT: ReadonlySet<Match['kind']> = new Set(['unclear', 'digression', 'described']);

/** The minimum length of a word in the answer that counts as a repeated verb of the question. */
const MIN_VERB_CHARS = 3;

/** Matches an utterance as a free-text answer unless it clearly is not one, and may mark the answer as doubtful. */
function matchFreeText(
  said: Utterance,
  tables: Tables,
  { question = '' }: AnswerableQuestion,
  topic: Words,
): Match {
  if (said.raw === '') return unclear;
  if (isHold(said, tables, 'whole')) return hold;
  if (wantsRepeat(said, tables)) return repeat;
  // The microphone may have picked up the question from the loudspeaker.
  if (
    said.words.length > 2 &&
    sameWords(said.words, readUtterance(question, tables.language).words)
  )
    return unclear;
  const command = commandAtStart(said, tables);
  const isOther =
    isCommand(said, tables) ||
    (command.length > 0 && command.isClause) ||
    startsDigression(said, tables) ||
    asksInClause(said, tables) ||
    requestsBeforehand(said, tables) ||
    withdraws(said, tables, topic);
  if (isOther) return digression;
  const text = { kind: 'free_text', text: said.raw } as const;
  // "Before that, the news" puts another request first, but "First." is an answer.
  const isPutFirst = tables.phrases.beforehand.some(
    (phrase) => phrase.length < said.words.length && standsAt(said.words, 0, phrase),
  );
  // "Call it Rex." repeats the verb of "What shall it be called?" and is not another request.
  const asked = readUtterance(question, tables.language).words;
  const echoes = (index: number): boolean => {
    const verb = said.words[index] as string;
    return verb.length >= MIN_VERB_CHARS && asked.some((word) => word.startsWith(verb));
  };
  const requests = requestsIn(said, tables).filter((index) => !echoes(index));
  // An unnecessary turn of the lead agent costs less than a request that is mistaken for an answer.
  const isDoubtful =
    said.asks ||
    startsWithHold(said, tables) ||
    callsOff(said, tables) ||
    isPutFirst ||
    requests.length > 0 ||
    requestsInClause(said, tables) ||
    startsQuestion(said, tables) ||
    asksAside(said, tables) ||
    isPutOff(said, tables) ||
    changesMind(said, tables) ||
    answersNothing(said, tables);
  return isDoubtful ? { ...text, doubt: true } : text;
}

/** Returns whether the first clause asks for time: "one moment, my wife wants to say something". */
function startsWithHold({ words, breaks }: Utterance, { phrases, noise }: Tables): boolean {
  let end = words.findIndex((word) => !noise.has(word));
  let isHeld = false;
  for (let length = 1; length > 0 && end >= 0; end += length) {
    length = phraseAt(words, end, isHeld ? phrases.holdTails : phrases.holds);
    isHeld ||= length > 0;
  }
  // "Wait, make it Tuesday" corrects an earlier answer that the runtime did not receive.
  return (
    isHeld &&
    end < words.length &&
    breaks.has(end - 1) &&
    phraseAt(words, end, phrases.corrections) === 0
  );
}

/** Returns whether the utterance begins with a phrase like "don't send anything" and then continues. */
function callsOff({ words }: Utterance, { phrases, noise }: Tables): boolean {
  const start = words.findIndex((word) => !noise.has(word));
  const length = start < 0 ? 0 : phraseAt(words, start, phrases.callOffs);
  return length > 0 && words.length > start + length;
}

/**
 * Returns whether the words only show attention ("all right"), say "whatever", or say why the user cannot answer ("I
 * have to ask Tom").
 */
function answersNothing(said: Utterance, tables: Tables): boolean {
  const { phrases, noise, listening } = tables;
  const words = said.words.filter((word) => !noise.has(word));
  const isPlain = [...phrases.yes, ...phrases.no].some((phrase) => sameWords(said.words, phrase));
  return (
    said.words.every((word) => listening.has(word)) ||
    (!isPlain && backchannelIn(said.raw, tables.language.code) === 'whole') ||
    phrases.quantifiers.some((phrase) => sameWords(words, phrase)) ||
    (phraseAt(words, 0, phrases.holdReasons) > 1 && phraseAt(words, 0, phrases.musings) === 0)
  );
}

/** Returns the words of a question that name its topic. */
function topicOf({ question = '' }: AnswerableQuestion, tables: Tables): Words {
  const said = readUtterance(question, tables.language);
  const asking = new Set(tables.phrases.questionStarts.flat());
  return contentOf(said, tables)
    .map((index) => said.words[index] as string)
    .filter((word) => !asking.has(word));
}

const denied = { kind: 'denied' } as const satisfies Match;

const approved = { kind: 'approved' } as const satisfies Match;

/** The number of words after a requested action's verb that are compared. */
const MOST_OBJECT_WORDS = 8;

/** Matches a yes or a no to an approval question. */
function matchApproval(
  said: Utterance,
  tables: Tables,
  question: Pick<AnswerableQuestion, 'action' | 'question'>,
): Match {
  if (said.words.length === 0) return unclear;
  if (wantsRepeat(said, tables)) return repeat;
  const words = said.words.filter((word) => !tables.fillers.has(word));
  const utterance = { ...said, words };
  // The utterance consists only of hesitation sounds and politeness.
  const isSound = (word: string): boolean => tables.fillers.has(word) || tables.thinking.has(word);
  if (words.length < said.words.length && said.words.every(isSound)) return hold;

  const names = namesOf(question, tables);
  // "Cancel it" is not a refusal if the question was whether to cancel.
  const no = tables.phrases.no.filter((phrase) => !names.all.has(phrase.join(' ')));
  const listed = { ...tables.phrases, no };
  const verdict = verdictOf(words, listed, names);
  if (verdict === 'action' || (verdict && said.asks)) return unclear;
  // "Yes. No, wait. No." is a no; "no, wait, yes" is neither.
  const turned = verdictOf(words.slice(endOfTurns(words, tables, no)), listed, names);
  if (turned === 'no' && !said.asks) return denied;
  const isTakenBack = turned === 'yes' && verdict !== 'yes';
  if (isTakenBack && (verdict === 'no' || refuses(words, tables, no))) return unclear;
  if (verdict === 'yes' && isIronical(words, tables)) return unclear;
  if (verdict === 'yes' && hasSigns(said.raw)) return unclear;
  if (verdict) return verdict === 'no' ? denied : approved;
  const decided = decisionIn(utterance, tables, listed, names);
  if (decided === 'no') return { ...denied, more: true };
  if (decided) {
    const always = decided === 'always' && { always: true as const };
    return hasSigns(said.raw) || isIronical(words, tables)
      ? unclear
      : { ...approved, more: true, ...always };
  }
  // "Don't ask me again" is neither a refusal nor an approval.
  if (isLasting(utterance, tables)) return digression;
  if (isCommand(utterance, tables)) return denied;

  const isQuestion = said.asks || startsQuestion(utterance, tables);
  if (!isQuestion && refuses(words, tables, no)) return denied;
  const isAsked = isHold(utterance, tables, 'anywhere') && !asksAside(utterance, tables);
  if (isAsked || isHold(utterance, tables, 'whole'))
    // "Let me think … yes" is unclear rather than a request for time, because waiting would delay a user who has
    // already answered.
    return endsInConsent(words, tables) ? unclear : hold;
  const isOther =
    isQuestion ||
    asksAside(utterance, tables) ||
    startsDigression(utterance, tables) ||
    startsRequest(utterance, tables) ||
    remarks(utterance, tables, names);
  return isOther ? digression : unclear;
}

/**
 * If an utterance contains at least this many words besides a yes or a no, it cannot be a misheard yes: "that's too
 * much".
 */
const REMARK_WORDS = 3;

/**
 * Returns whether the words object to the action or correct it, and are too long for a misheard yes: "I've already paid
 * that", "only the blurry ones", "yes, but on Friday".
 */
function remarks({ words }: Utterance, tables: Tables, names: Names): boolean {
  const { phrases } = tables;
  const { yes, no, conditions, negations, doubts, references, afterwards, joints } = phrases;
  const has = (some: Phrases): boolean =>
    some.some((phrase) => findPhrase(words, phrase).length > 0);
  const spelled = words.join('');
  const isNearYes = yes.some((phrase) => phrase.length > 1 && spelled.includes(phrase.join('')));
  if (isNearYes || has(conditions)) return false;
  const beside = words.filter((word) => !tables.noise.has(word));
  // The yes may be followed by a change or another request.
  const length = phraseAt(words, 0, yes);
  if (length > 0)
    return (
      beside.length > 0 && has([...doubts, ...joints, ...afterwards]) && words.length > length + 1
    );
  if (has([...yes, ...no, ...negations])) return false;
  const isNamed = names.all.has(words.join(' '));
  return (
    !isNamed &&
    (beside.length >= REMARK_WORDS || (words.length > 1 && has([...doubts, ...references])))
  );
}

/** The maximum number of words in a yes or a no before another request. */
const MOST_DECISION_WORDS = 12;

/**
 * If the utterance is a yes or a no followed only by another request, returns that yes or no: "no, and book a table for
 * two", "yes, and then book a table". `always`: the user said yes and does not want to be asked again.
 */
function decisionIn(
  said: Utterance,
  tables: Tables,
  listed: Tables['phrases'],
  names: Names,
): 'yes' | 'no' | 'always' | null {
  const { words, breaks } = said;
  const { phrases } = tables;
  for (let end = Math.min(words.length - 1, MOST_DECISION_WORDS); end > 0; end -= 1) {
    const joint = phraseAt(words, end, phrases.joints);
    const rest = from(said, end + joint);
    const isAlways = isLasting(rest, tables);
    if (joint === 0 && !breaks.has(end - 1) && !isAlways) continue;
    const verdict = verdictOf(words.slice(0, end), listed, names);
    if (verdict !== 'yes' && verdict !== 'no') continue;
    if (isAlways && verdict === 'yes' && saysYes(said, tables)) return 'always';
    if (
      verdict === 'no'
        ? isWish(rest, tables, names, joint > 0)
        : saysYes(said, tables) && isOwnWish(rest, tables, names, joint > 0)
    )
      return verdict;
  }
  return null;
}

/** Returns whether the utterance begins with a word for yes: "go ahead and make me a backup" is not an approval. */
function saysYes({ words }: Utterance, { phrases, noise }: Tables): boolean {
  const isYes = (word: string): boolean => phrases.yesLabels.some((yes) => sameWords(yes, [word]));
  const first = words.find((word) => isYes(word) || !noise.has(word));
  return first !== undefined && isYes(first);
}

/**
 * Returns whether a no is followed by another request or a question; "No, send it to Peter" is about this action.
 */
function isWish(rest: Utterance, tables: Tables, names: Names, isJoined: boolean): boolean {
  const { phrases } = tables;
  const said = from(rest, skip(rest.words, 0, [...phrases.afterwards, ...phrases.polite]));
  const length = phraseAt(said.words, 0, phrases.requests);
  const isAbout = !isJoined && phraseAt(said.words, length, definites(tables)) > 0;
  if (length > 0) return !isAbout && !namesAction(said.words, names);
  return startsQuestion(said, tables) || startsDigression(said, tables);
}

/** Returns whether the user asks not to be asked again. */
function isLasting({ words }: Utterance, { phrases, noise }: Tables): boolean {
  const plain = words.filter((word) => !noise.has(word));
  return phrases.lastings.some((phrase) => sameWords(words, phrase) || sameWords(plain, phrase));
}

/** Returns whether a yes is followed only by a request for something new, which cannot change the action. */
function isOwnWish(rest: Utterance, tables: Tables, names: Names, isJoined: boolean): boolean {
  const { phrases } = tables;
  const { words } = rest;
  const start = skip(words, 0, [...phrases.afterwards, ...phrases.polite]);
  const request = phraseAt(words, start, phrases.requests);
  if (!isJoined || rest.asks || request === 0) return false;
  const object = words.slice(skip(words, start + request, phrases.polite));
  const isNew = phraseAt(object, 0, phrases.indefinites) > 0;
  const { negations, refusals, no, conditions, doubts, holds, corrections, beforehand } = phrases;
  const spoils = [
    ...negations,
    ...refusals,
    ...no,
    ...conditions,
    ...doubts,
    ...holds,
    ...beforehand,
  ];
  const isSpoiled = [...spoils, ...corrections, ...definites(tables)].some(
    (phrase) => findPhrase(words, phrase).length > 0,
  );
  const adjusts = phraseAt(words, start, phrases.adjustments) > 0;
  return isNew && !isSpoiled && !adjusts && !namesAction(words, names);
}

/** Returns the words that refer to something already mentioned: "it", "the", "my". */
function definites({ phrases }: Tables): Phrases {
  return phrases.pronouns.filter(
    (words) => !phrases.indefinites.some((phrase) => sameWords(phrase, words)),
  );
}

function namesAction(words: Words, { byFirst }: Names): boolean {
  return words.some((word) => byFirst.has(word));
}

/**
 * The names for the latest question in each language; they are cached because a question is matched against several
 * utterances.
 */
const lastNames = new WeakMap<Tables, { readonly key: string; readonly names: Names }>();

/** Returns the names of the action: "send", "send it", "send the email". */
function namesOf(question: Pick<AnswerableQuestion, 'action' | 'question'>, tables: Tables): Names {
  const key = JSON.stringify([question.action, question.question]);
  const last = lastNames.get(tables);
  if (last?.key === key) return last.names;
  const byFirst = new Map<string, Words[]>();
  const all = new Set<string>();
  for (const phrase of namePhrases(question, tables)) {
    const text = phrase.join(' ');
    if (all.has(text)) continue;
    all.add(text);
    const [first = ''] = phrase;
    const known = byFirst.get(first);
    if (known) known.push(phrase);
    else byFirst.set(first, [phrase]);
  }
  const names = { byFirst, all };
  lastNames.set(tables, { key, names });
  return names;
}

function namePhrases(
  { action = '', question = '' }: Pick<AnswerableQuestion, 'action' | 'question'>,
  tables: Tables,
): Phrases {
  const { language, phrases } = tables;
  const spoken = action.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ').replaceAll('_', ' ');
  const [verb, ...object] = wordsOf(spoken, language);
  const asked = askedAction(wordsOf(question, language), tables);
  const verbs = [...(verb === undefined ? [] : [verb]), ...(asked ? [asked.verb] : [])];
  if (verbs.length === 0) return [];
  const objects = [
    ...(object.length > 0 ? [object] : []),
    ...(asked?.objects ?? []).flatMap((words) => {
      const [first = '', ...rest] = words;
      const isDetermined = phrases.pronouns.some((pronoun) => sameWords(pronoun, [first]));
      return isDetermined && rest.length > 0 ? [words, rest] : [words];
    }),
  ];
  const after: Phrases = [
    [],
    ...objects,
    ...phrases.pronouns,
    ...phrases.pronouns.flatMap((pronoun) => objects.map((words) => [...pronoun, ...words])),
  ];
  return formsOf(verbs, tables).flatMap(({ head, tail }) => [
    ...after.map((words) => [...head, ...words, ...tail]),
    // The object may precede the verb: "es abschicken", "le envoyer".
    ...(language.code === 'en' ? [] : after.map((words) => [...words, ...head, ...tail])),
  ]);
}

function formsOf(verbs: Words, tables: Tables): readonly VerbForm[] {
  const spoken = tables.verbs.filter(
    ([verb, forms]) =>
      verbs.includes(verb) ||
      forms.some(
        ({ head, tail }) =>
          head.length === 1 && tail.length === 0 && verbs.includes(head[0] as string),
      ),
  );
  const isListed = (verb: string): boolean =>
    spoken.some(([, forms]) => forms.some(({ head }) => sameWords(head, [verb])));
  return [
    ...verbs.map((verb) => ({ head: [verb], tail: [] })),
    ...spoken.flatMap(([, forms]) => forms),
    ...verbs.filter((verb) => !isListed(verb)).flatMap((verb) => commandsOf(verb, tables)),
  ];
}

/** Derives the imperative forms of a regular verb from its infinitive: "einschalten" becomes "schalte … ein". */
function commandsOf(verb: string, { infinitives, separable }: Tables): readonly VerbForm[] {
  const rule = infinitives.find(([ending]) => verb.endsWith(ending));
  if (!rule) return [];
  const [ending, commands] = rule;
  const stem = verb.slice(0, -ending.length);
  const parts = separable
    .filter((prefix) => stem.startsWith(prefix) && stem.length - prefix.length >= MIN_VERB_CHARS)
    .map((prefix) => ({ bare: stem.slice(prefix.length), tail: [prefix] }));
  return [{ bare: stem, tail: [] }, ...parts].flatMap(({ bare, tail }) =>
    commands.map(([end, ...rest]) => ({ head: [`${bare}${end}`, ...rest], tail })),
  );
}

/**
 * Returns the action that a question asks about ("May I cancel your subscription?"); null unless it asks about exactly
 * one action.
 */
function askedAction(
  words: Words,
  { language, phrases, verbs }: Tables,
): { readonly verb: string; readonly objects: Phrases } | null {
  const length = phraseAt(words, 0, phrases.asks);
  // "Book the ride: may I do that?"
  const last = phrases.asks.find((phrase) => sameWords(phrase, words.slice(-phrase.length)));
  // "¿Envío el correo?" asks with a verb alone.
  const isVerb = verbs.some(([, forms]) =>
    forms.some(({ head, tail }) => tail.length === 0 && sameWords(head, words.slice(0, 1))),
  );
  const action = words.slice(length, words.length - (last?.length ?? 0));
  const isPlain = ![...phrases.joints, ...phrases.doubts, ...phrases.negations].some(
    (phrase) => findPhrase(action, phrase).length > 0,
  );
  if ((length === 0 && !last && !isVerb) || action.length === 0 || !isPlain) return null;
  const [verb, object] = language.verbsLast
    ? [action.at(-1) as string, action.slice(0, -1)]
    : [action[0] as string, action.slice(1)];
  const sizes = object.slice(0, MOST_OBJECT_WORDS).map((_, n) => n + 1);
  return { verb, objects: sizes.map((size) => object.slice(0, size)) };
}

/**
 * Returns whether the words contain an ironic phrase; a longer phrase that begins with it ("yeah, right away") does not
 * count.
 */
function isIronical(words: Words, { phrases }: Tables): boolean {
  return phrases.ironies.some((irony) =>
    findPhrase(words, irony).some((start) => {
      const last = start + irony.length - 1;
      return phraseAt(words, last, [...phrases.asides, ...phrases.yes]) <= 1;
    }),
  );
}

/** Returns whether the utterance starts with a request for another action, or for another version of this action. */
function startsRequest(said: Utterance, tables: Tables): boolean {
  const first = said.words.findIndex((word) => !tables.noise.has(word));
  const [start] = requestsIn(said, tables);
  return start !== undefined && start === first && start === 0;
}

/** Returns the index after the last phrase that asks for time or retracts something; 0 if there is none. */
function endOfTurns(words: Words, { phrases }: Tables, no: Phrases): number {
  const corrections = phrases.corrections.filter(
    (phrase) => !no.some((refusal) => sameWords(refusal, phrase)),
  );
  const turns = [...phrases.holds, ...corrections];
  return words.reduce((end, _, start) => {
    const length = phraseAt(words, start, turns);
    return length > 0 ? Math.max(end, start + length) : end;
  }, 0);
}

/**
 * Returns whether the words contain a refusal ("yes, but don't send it"), or start with a no and continue ("no, send it
 * to Peter").
 */
function refuses(words: Words, { phrases }: Tables, no: Phrases): boolean {
  // For each word: the furthest end of any harmless phrase that starts at or before that word.
  let reached = 0;
  const harmless = words.map((_, start) => {
    const length = phraseAt(words, start, phrases.notRefusals);
    return (reached = length > 0 ? Math.max(reached, start + length) : reached);
  });
  // "Yes, if no invoice is among them": a refusal inside a condition does not deny the action.
  const condition = words.findIndex((_, index) => phraseAt(words, index, phrases.conditions) > 0);
  const counts = (start: number, length: number): boolean =>
    (condition === -1 || start < condition) && (harmless[start] ?? 0) < start + length;
  for (const phrase of phrases.refusals)
    if (findPhrase(words, phrase).some((start) => counts(start, phrase.length))) return true;

  const beside = [...phrases.polite, ...phrases.asides, ...phrases.holds];
  const start = skip(words, 0, beside);
  const length = phraseAt(words, start, no);
  if (length === 0 || !counts(start, length)) return false;
  // A single odd word after a no may be a recognition error: "go ahead" may be heard as "no head".
  return words.length - skip(words, start + length, beside) !== 1;
}

function endsInConsent(words: Words, tables: Tables): boolean {
  return verdictsOf(words, tables.phrases, noNames).includes('yes');
}

/** Returns the first index, starting at `start`, at which no phrase of `phrases` begins. */
function skip(words: Words, start: number, phrases: Phrases): number {
  let index = start;
  for (let length = 1; length > 0; index += length) length = phraseAt(words, index, phrases);
  return index;
}
