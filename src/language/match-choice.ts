// Finds the option that the user chose.
//
// Tries the ways to name an option in this order, from certain to uncertain, and uses the first match: the label or the
//   id, alone → yes or no among the options → the words after the last hold or correction → (no answer at all: a wait,
//   a question, a request, a negation …) → the label in a sentence → its position, or words that only it has → nearly
//   its label.
//
// Positions are "the second one", "option two", "number 2", "the last", "the former", and a bare "two". A near match of
// a label (a typing error, or a recognition error such as "a con me" for "economy") counts if the utterance contains
// only that name (apart from words such as "I'd like …"), the name is similar enough, and no other option is about as
// similar.

import {
  described,
  digression,
  hold,
  repeat,
  unclear,
  type AnswerOption,
  type Match,
  type MatchEvidence,
} from './match.ts';
import {
  asksAside,
  commandAtStart,
  isCommand,
  isHold,
  lastTurn,
  requestsIn,
  startsDigression,
  startsQuestion,
  wantsRepeat,
  withdraws,
  type Turn,
} from './side-talk.ts';
import {
  findPhrase,
  phraseAt,
  sameWords,
  standsAt,
  type Tables,
  type Words,
  verdictOf,
  type Names,
} from './tables.ts';
import { asLabelled, choicesOf, contentOf, isSlight, labelWord, type Choice } from './choice.ts';
import { fold, from, isNumber, ordinalOf, wordsOf, type Utterance } from './utterance.ts';
import { minSimilarity, nearestOption } from './nearest-option.ts';
import { similarity } from './similarity.ts';
import { isTime, timesIn } from './times.ts';

/**
 * The maximum number of other content words in a sentence with a label; a longer sentence is probably a remark.
 */
const maxWordsBeside = 3;

/** The maximum number of words in a sentence that mentions an option and other things; a longer one is a remark. */
const LONGEST_CHOICE = 8;

/** The maximum number of other words next to "neither" or "I don't care"; a longer sentence is about something else. */
const MOST_BESIDE_QUANTIFIER = 3;
/** At least this many words unrelated to the options count as a separate sentence. */
const SENTENCE_WORDS = 3;

/** The parsed question. */
interface Asked {
  readonly choices: readonly Choice[];
  readonly tables: Tables;
  readonly topic: Words;
}

/** The position of a label in the utterance. */
interface Mention {
  readonly choice: Choice;
  readonly start: number;
  readonly end: number;
}

/** The labels in an utterance, and the words around them. */
interface Sentence {
  readonly mentions: readonly Mention[];
  /** Returns whether the word is outside every label. */
  readonly isOutside: (index: number) => boolean;
  readonly isDoubted: boolean;
  readonly choices: readonly Choice[];
  readonly said: Utterance;
  readonly tables: Tables;
}

/** Matches an utterance to the options of a question. `topic`: the words in the question that name its subject. */
export function matchChoice(
  options: readonly AnswerOption[],
  said: Utterance,
  tables: Tables,
  topic: Words = [],
): Match {
  return read({ choices: choicesOf(options, tables), tables, topic }, said, null);
}

/** The maximum number of words in an utterance that declines all options, including polite words. */
const MOST_NONE_WORDS = 12;

/** Returns whether the utterance says only "neither", apart from politeness. */
function declinesAll({ words, asks }: Utterance, { phrases, noise }: Tables): boolean {
  if (words.length > MOST_NONE_WORDS) return false;
  const plain = words.filter((word) => !noise.has(word));
  const start = phraseAt(plain, 0, phrases.bareCorrections);
  return [plain, plain.slice(start), words].some(
    (some) => !asks && phrases.nones.some((phrase) => sameWords(some, phrase)),
  );
}

/** Reads an utterance. `after`: whether the preceding words asked for time or retracted something. */
function read(asked: Asked, said: Utterance, after: Turn['kind'] | null): Match {
  const { choices, tables, topic } = asked;
  const named = byName(choices, said, tables) ?? byMeaning(choices, said, tables);
  if (named) return named;
  if (said.words.length === 0) return unclear;

  const mentions = mentionsIn(choices, said, tables);
  const mentioned = new Set(
    mentions.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, n) => start + n)),
  );
  const isOutside = (index: number): boolean => !mentioned.has(index);
  const has = (phrases: readonly Words[]): boolean =>
    phrases.some((phrase) => findPhrase(said.words, phrase, isOutside).length > 0);

  if (wantsRepeat(said, tables)) return repeat;
  const turned = afterTurn(asked, said, mentions, isOutside);
  if (turned) return turned;
  if (isHold(said, tables, 'whole')) return hold;
  if (isCommand(said, tables) || startsDigression(said, tables)) return digression;
  if (mentions.length === 0 && commandAtStart(said, tables).length > 0) return digression;
  if (withdraws(said, tables, topic)) return digression;

  const sentence = {
    mentions,
    isOutside,
    choices,
    said,
    tables,
    isDoubted: has(tables.phrases.doubts),
  };
  const beside = contentOf(said, tables).filter(isOutside);
  const alien = beside.filter((index) => {
    const word = said.words[index] as string;
    return ordinalOf(word) === null && !isAbout(word, asked);
  }).length;
  if (startsQuestion(said, tables)) return digression;
  if (hasOwnRequest(said, asked, isOutside, alien)) return digression;
  if (declinesAll(said, tables)) return { kind: 'none', text: said.raw };
  if (has(tables.phrases.quantifiers))
    return beside.length > MOST_BESIDE_QUANTIFIER
      ? digression
      : { kind: 'free_text', text: said.raw };
  const isLong =
    after !== 'hold' && alien >= SENTENCE_WORDS && tables.phrases.references.length > 0;
  if (has(tables.phrases.negations))
    return byContrast(sentence) ?? (isLong && mentions.length === 0 ? digression : unclear);
  const found =
    byMention(sentence) ??
    byTime(choices, said, tables) ??
    byPositionOrWords(choices, said, tables) ??
    byOrdinalOf(asked, said) ??
    byPositionOrWords(choices, asLabelled(said, choices, tables), tables) ??
    byNearness(choices, said, tables);
  // "Honey, do we like the premium one?", "The premium one is quiet?", "Premium and a coffee".
  const isDoubtful =
    (said.asks && alien > 0) ||
    isAboutOther(sentence, asked) ||
    asksAside(said, tables) ||
    addsTo(sentence, asked);
  if (found?.kind === 'option' && isDoubtful) return { ...found, doubt: true };
  if (found) return found;
  if (said.asks) return digression;
  const bare = withoutRequest(asked, said);
  if (bare) return bare;
  if (describes(sentence, alien)) return described;
  return isLong ? digression : unclear;
}

/**
 * Interprets the words that follow the last hold or correction: "economy, no wait, premium". If no words follow, the
 * user has asked for time, or has retracted a choice without making another.
 */
function afterTurn(
  asked: Asked,
  said: Utterance,
  mentions: readonly Mention[],
  isOutside: (index: number) => boolean,
): Match | null {
  const { tables } = asked;
  const chooses = (word: string, index: number): boolean =>
    !said.proforms.has(index) &&
    (isNumber(word) ||
      ordinalOf(word) !== null ||
      asked.choices.some(({ content }) =>
        content.includes(labelWord(word, asked.choices, tables)),
      ));
  // The index before which the first name ends. The name is a label, a label within a longer one, or a word of an
  // option.
  const named = asked.choices.flatMap(({ label }) =>
    label.length > 0 ? findPhrase(said.words, label).map((start) => start + label.length) : [],
  );
  const first = said.words.findIndex(chooses);
  const ends = [...mentions.map(({ end }) => end), ...named, ...(first === -1 ? [] : [first + 1])];
  const firstEnd = ends.reduce((least, one) => Math.min(least, one), Infinity);
  const turn = lastTurn(said, tables, isOutside, (index) => firstEnd <= index);
  if (!turn) return null;
  const tail = from(said, turn.end);
  const isEmpty =
    tail.words.every((word) => tables.noise.has(word)) &&
    !byName(asked.choices, tail, tables) &&
    !byMeaning(asked.choices, tail, tables);
  if (isEmpty) return turn.kind === 'hold' ? hold : null;
  const match = read(asked, tail, turn.kind);
  if (turn.kind === 'correction') return match.kind === 'unclear' ? null : match;
  const isReason = phraseAt(tail.words, 0, tables.phrases.holdReasons) > 0;
  if (match.kind === 'option') {
    // "Hold on, let me ask my wife about premium."
    const own = mentionsIn(asked.choices, tail, tables);
    const beside = contentOf(tail, tables).filter(
      (index) => !own.some(({ start, end }) => index >= start && index < end),
    );
    return own.length > 0 && beside.length > (isReason ? 0 : 1) ? hold : match;
  }
  const isOwn = ['digression', 'repeat', 'ambiguous', 'free_text'].includes(match.kind);
  return isOwn && !isReason ? match : hold;
}

/** Finds the choice after a leading request: "Order me the twelve dollar one". */
function withoutRequest({ choices, tables }: Asked, said: Utterance): Match | null {
  const [start] = requestsIn(said, tables);
  if (start === undefined) return null;
  const isFirst = said.words.slice(0, start).every((word) => tables.noise.has(word));
  if (!isFirst) return null;
  const length = phraseAt(said.words, start, tables.phrases.requests);
  return byPositionOrWords(choices, from(said, start + length), tables);
}

/** Returns whether the word belongs to an option or to the question, or describes an option. */
function isAbout(word: string, { choices, topic, tables }: Asked): boolean {
  return (
    topic.includes(word) ||
    tables.phrases.references.some((phrase) => phrase.includes(word)) ||
    choices.some(({ label, content }) => label.includes(word) || content.includes(word))
  );
}

/** Returns whether the utterance requests something else: "order lunch", "premium, and book a table". */
function hasOwnRequest(
  said: Utterance,
  asked: Asked,
  isOutside: (index: number) => boolean,
  alien: number,
): boolean {
  const { tables } = asked;
  return requestsIn(said, tables, isOutside).some((start) => {
    const length = phraseAt(said.words, start, tables.phrases.requests);
    const rest = [...said.words.keys()].slice(start + length);
    const content = new Set(contentOf(said, tables));
    const own = rest.filter(
      (index) =>
        content.has(index) && isOutside(index) && !isAbout(said.words[index] as string, asked),
    );
    // "Cancel the ride" refers to the question's topic but does not choose an option.
    const dropsIt = phraseAt(said.words, start, tables.phrases.commands) > 0;
    const refers = rest.some((index) => refersToOption(said, index, asked));
    const isFirst = said.words.slice(0, start).every((word) => tables.noise.has(word));
    if (refers && isFirst) return own.length > 1 && alien > 1;
    return (
      own.length > 0 ||
      (dropsIt && rest.some((index) => asked.topic.includes(said.words[index] as string)))
    );
  });
}

/** Returns whether the word names, replaces or describes an option. */
function refersToOption({ words, proforms }: Utterance, index: number, { choices, tables }: Asked) {
  const word = words[index] as string;
  return (
    proforms.has(index) ||
    phraseAt(words, index, tables.phrases.references) > 0 ||
    choices.some(({ content }) => content.includes(word))
  );
}

/** Returns whether an option is preceded by words about something else: "my sister is vegan", "two minicabs". */
function isAboutOther({ mentions, said, tables }: Sentence, asked: Asked): boolean {
  const start = Math.min(...mentions.map((mention) => mention.start));
  return contentOf(said, tables).some(
    (index) => index < start && mentions.length > 0 && !isAbout(said.words[index] as string, asked),
  );
}

/** Returns whether the utterance adds something to an option: "premium and a coffee". */
function addsTo({ mentions, isOutside, said, tables }: Sentence, asked: Asked): boolean {
  const end = Math.min(...mentions.map((mention) => mention.end));
  const joint = said.words.findIndex(
    (_, index) =>
      index >= end && isOutside(index) && phraseAt(said.words, index, tables.phrases.joints) > 0,
  );
  return (
    joint !== -1 &&
    contentOf(said, tables).some(
      (index) => index > joint && isOutside(index) && !isAbout(said.words[index] as string, asked),
    )
  );
}

/** A label, or a word that occurs in only some of the labels. */
interface Naming {
  readonly named: readonly Choice[];
  readonly start: number;
  readonly end: number;
}

/** Returns the labels in the sentence, and the label words outside them. */
function namingsIn({ mentions, isOutside, choices, said, tables }: Sentence): readonly Naming[] {
  const namings: Naming[] = mentions.map(({ choice, start, end }) => ({
    named: [choice],
    start,
    end,
  }));
  for (const start of contentOf(said, tables).filter(isOutside)) {
    const word = labelWord(said.words[start] as string, choices, tables);
    const named = choices.filter(({ label }) => label.includes(word));
    const last = namings.at(-1);
    // "T" and "16" form one name.
    const both = last?.end === start ? last.named.filter((one) => named.includes(one)) : [];
    if (both.length > 0 && last) namings.splice(-1, 1, { ...last, named: both, end: start + 1 });
    else if (named.length > 0) namings.push({ named, start, end: start + 1 });
  }
  return namings.filter(({ named }) => named.length < choices.length);
}

/** Interprets a contrast that rules out all named options but one: "Not economy, premium", "not the T14, the T16". */
function byContrast(sentence: Sentence): Match | null {
  const { mentions, choices, said, tables, isDoubted } = sentence;
  const { words } = said;
  const namings = namingsIn(sentence);
  const isOutside = (index: number): boolean =>
    sentence.isOutside(index) && !namings.some(({ start, end }) => index >= start && index < end);
  // A bare "no" between two options may retract the first or rule out the second.
  const { bareCorrections } = tables.phrases;
  const negations = tables.phrases.negations.filter(
    (phrase) => !bareCorrections.some((bare) => sameWords(bare, phrase)),
  );
  if (bareCorrections.some((phrase) => findPhrase(words, phrase, isOutside).length > 0))
    return null;
  const isRuledOut = ({ start }: Naming): boolean => {
    for (let index = start - 1; index >= 0 && isOutside(index); index -= 1) {
      if (said.breaks.has(index)) return false;
      if (negations.some((phrase) => standsAt(words, index + 1 - phrase.length, phrase)))
        return true;
      if (!isSlight(said, tables, index)) return false;
    }
    return false;
  };
  const ruledOut = namings.filter(isRuledOut);
  const out = new Set(ruledOut.flatMap(({ named }) => named));
  const left = new Set(
    namings.filter((naming) => !isRuledOut(naming)).flatMap(({ named }) => named),
  );
  const negated = [...words.keys()].filter((index) => phraseAt(words, index, negations) > 0);
  const [only] = left;
  if (out.size === 0 || left.size !== 1 || !only || out.has(only)) return null;
  if (negated.length !== ruledOut.length || isDoubted || choices.length < 2) return null;
  // A sentence that contains label words may still be about something else.
  const hasParts = namings.length > mentions.length;
  const beside = contentOf(said, tables).filter(
    (index) => isOutside(index) && !negated.includes(index),
  );
  return hasParts && beside.length > 0 ? null : theOne([only], 'label', 0.8);
}

/** Returns whether most words in the sentence belong to the options or describe them. */
function describes({ said, choices, tables, isDoubted }: Sentence, alien: number): boolean {
  // If the language has no tables, the asker interprets the utterance.
  if (tables.phrases.references.length === 0) return true;
  if (isDoubted) return false;
  const asked = { choices, tables, topic: [] };
  const refers = [...said.words.keys()].filter(
    (index) => !said.proforms.has(index) && refersToOption(said, index, asked),
  ).length;
  return refers > 0 && alien <= refers;
}

/** Matches an utterance that is identical to a label or an id. Word boundaries are ignored: "wi-fi" equals "wifi". */
function byName(
  choices: readonly Choice[],
  said: Utterance,
  { noise, language }: Tables,
): Match | null {
  const spoken = fold(said.raw);
  if (spoken === '') return null;
  const bare = (words: Words): string => words.filter((word) => !noise.has(word)).join('');
  // In "No, sorry, yes", words that usually carry no meaning may still name an option.
  const namesOther = (choice: Choice): boolean =>
    choices.some(
      (other) =>
        other !== choice &&
        other.label.length > 0 &&
        findPhrase(said.words, other.label).length > 0 &&
        findPhrase(choice.label, other.label).length === 0,
    );
  const ways: readonly [MatchEvidence, (choice: Choice) => boolean][] = [
    ['label', ({ option }) => fold(option.label) === spoken],
    ['label', ({ label }) => label.length > 0 && label.join('') === said.words.join('')],
    [
      'label',
      (choice) =>
        bare(choice.label) !== '' && bare(choice.label) === bare(said.words) && !namesOther(choice),
    ],
    ['id', ({ option }) => fold(option.id) === spoken],
    ['id', ({ option }) => sameWords(wordsOf(option.id, language), said.words)],
  ];
  for (const [how, isNamed] of ways) {
    const match = theOne(choices.filter(isNamed), how, 1);
    if (match) return match;
  }
  return null;
}

/** Matches a yes or a no ("Yeah") to the option that means it, using only the closed lists. */
function byMeaning(
  choices: readonly Choice[],
  { words }: Utterance,
  { phrases, fillers }: Tables,
): Match | null {
  const polite = new Set([...phrases.polite, ...phrases.leadIns].flat());
  const plain = words.filter((word) => !polite.has(word));
  const means = (list: readonly Words[]): boolean => list.some((entry) => sameWords(entry, plain));
  const begins = (starts: readonly Words[]) =>
    choices.filter(({ label }) => starts.some((start) => standsAt(label, 0, start)));
  if (means(phrases.no)) return theOne(begins(phrases.noLabels), 'meaning', 0.95);
  if (means(phrases.yes)) return theOne(begins(phrases.yesLabels), 'meaning', 0.95);
  // The yes or no may have several words: "Oh yes, definitely", "no, let it run out".
  const spoken = words.filter((word) => !fillers.has(word));
  const only = (
    starts: readonly Words[],
    says: 'yes' | 'no',
    other: 'yes' | 'no',
  ): Match | null => {
    const named = begins(starts);
    const names = namesOf(named.map(({ label }) => label.slice(1)));
    const lists = { ...phrases, [other]: [] };
    return verdictOf(spoken, lists, names) === says ? theOne(named, 'meaning', 0.9) : null;
  };
  return only(phrases.noLabels, 'no', 'yes') ?? only(phrases.yesLabels, 'yes', 'no');
}

/** Returns the rest of each label that starts with a yes or a no, because the user may say these words as well. */
function namesOf(labels: readonly Words[]): Names {
  const rests = labels.filter(({ length }) => length > 0);
  return {
    byFirst: new Map(
      rests.map((words) => [words[0] as string, words.map((_, n) => words.slice(0, n + 1))]),
    ),
    all: new Set(rests.map((words) => words.join(' '))),
  };
}

/** Finds the labels in the utterance. A label within a longer one ("save" in "don't save") is ignored. */
function mentionsIn(
  choices: readonly Choice[],
  said: Utterance,
  tables: Tables,
): readonly Mention[] {
  const { words, proforms } = said;
  const content = contentOf(said, tables);
  const lastSaid = words.findLastIndex(
    (word, index) => !tables.noise.has(word) && !proforms.has(index),
  );
  // A label such as "OK" or "A" is also an ordinary word, so it counts only as the sole content word, at the start, or
  // at the end.
  const isPoint = ({ start, end }: Mention): boolean =>
    content.every((index) => index >= start && index < end) && (start === 0 || lastSaid < end);
  const isOrdinary = (word: string, _: number, label: Words): boolean =>
    tables.frame.has(word) || tables.noise.has(word) || (label.length === 1 && word.length === 1);
  const all: Mention[] = [];
  for (const choice of choices) {
    const { label } = choice;
    if (label.length === 0) continue;
    for (const start of findPhrase(words, label, (index) => !proforms.has(index))) {
      const mention = { choice, start, end: start + label.length };
      if (!label.every(isOrdinary) || isPoint(mention)) all.push(mention);
    }
  }
  // A label that contains another label is sorted before it.
  const ordered = all.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let outer: Mention | undefined;
  const whole = new Set<Mention>();
  for (const mention of ordered) {
    const isSame = outer?.start === mention.start && outer.end === mention.end;
    if (isSame || mention.end > (outer?.end ?? 0)) whole.add(mention);
    if (mention.end > (outer?.end ?? 0)) outer = mention;
  }
  return all.filter((mention) => whole.has(mention));
}

function byMention(sentence: Sentence): Match | null {
  const { mentions, isOutside, choices, said, tables, isDoubted } = sentence;
  if (mentions.length === 0) return null;
  const mentioned = new Set(mentions.map(({ choice }) => choice));
  // "The first one, premium" names two options.
  for (const position of positionsIn(said, tables, choices.length, isOutside).named) {
    const choice = choices[position];
    if (choice) mentioned.add(choice);
  }
  // "Navy and white" contains a word of another option's label.
  const others = namingsIn(sentence).filter(
    ({ named }) => !named.some((choice) => mentioned.has(choice)),
  );
  for (const { named } of others) for (const choice of named) mentioned.add(choice);
  if (mentioned.size > 1) return ambiguous([...mentioned]);
  if (isDoubted) return unclear;
  const beside = contentOf(said, tables).filter(isOutside);
  if (beside.length > maxWordsBeside) return unclear;
  const spoken = said.words.filter((word) => !tables.noise.has(word));
  if (beside.length > 1 && spoken.length > LONGEST_CHOICE) return unclear;
  // "Of white" may be a misheard "off-white".
  const [only] = mentioned;
  const heard = said.words.filter((_, index) => isOutside(index));
  const longer = choices.filter((choice) => {
    const isLonger = choice !== only && findPhrase(choice.label, only?.label ?? []).length > 0;
    const rest = choice.label.filter((word) => !only?.label.includes(word));
    return (
      isLonger &&
      rest.some((word) =>
        heard.some((one) => similarity(one, word, tables.language).letters >= minSimilarity),
      )
    );
  });
  if (only && longer.length > 0) return ambiguous([only, ...longer]);
  return theOne([...mentioned], 'label', beside.length === 0 ? 0.95 : 0.8);
}

/** Matches a position or distinguishing words, and nothing else: "the second one", "the twelve dollar one". */
function byPositionOrWords(
  choices: readonly Choice[],
  said: Utterance,
  tables: Tables,
): Match | null {
  const positions = positionsIn(said, tables, choices.length);
  const byPosition = positions.isAll ? choices.filter((_, n) => positions.named.has(n)) : [];

  const content = contentOf(said, tables).map((index) => said.words[index] as string);
  const byWords = content.length === 0 ? [] : choices.filter((choice) => saysAll(choice, content));

  // A bare number that occurs in the labels ("2 tickets") is not a position.
  const [only] = content;
  const isInLabel =
    content.length === 1 && isNumber(only) && choices.some(({ label }) => label.includes(only));
  if (positions.isBare && isInLabel) return theOne(byWords, 'words', 0.85);

  const both = new Set([...byPosition, ...byWords]);
  if (both.size > 1) return ambiguous([...both]);
  return theOne(byPosition, 'ordinal', 0.95) ?? theOne(byWords, 'words', 0.85);
}

/** Matches a time of day together with words of its option: "Tuesday at nine", "the four o'clock one". */
function byTime(choices: readonly Choice[], said: Utterance, tables: Tables): Match | null {
  const timed = choices.flatMap((choice) => {
    const [of] = timesIn(choice.label, tables);
    return of ? [{ choice, of }] : [];
  });
  if (timed.length === 0) return null;
  const isOwn = (word: string): boolean =>
    !isNumber(word) && timed.some(({ choice }) => choice.label.includes(word));
  const words = said.words.map((word, index) => (said.proforms.has(index) ? '' : word));
  const [time, ...others] = timesIn(words, tables, isOwn);
  if (!time || others.length > 0) return null;
  const rest = contentOf(said, tables)
    .filter((index) => index < time.start || index >= time.end)
    .map((index) => said.words[index] as string)
    .filter((word) => !tables.clock.leads.some(([lead]) => lead === word));
  const fits = (exactly: boolean): readonly Choice[] =>
    timed
      .filter(({ choice, of }) => isTime(time, of, exactly) && saysAll(choice, rest))
      .map(({ choice }) => choice);
  return theOne(fits(true), 'words', 0.9) ?? theOne(fits(false), 'words', 0.9);
}

/** Matches a position together with words of the option or of the question: "the first ICE", "the third plan". */
function byOrdinalOf({ choices, tables, topic }: Asked, said: Utterance): Match | null {
  const content = contentOf(said, tables).map((index) => said.words[index] as string);
  const [position, ...others] = content.flatMap((word) => ordinalOf(word) ?? []);
  const rest = content.filter((word) => ordinalOf(word) === null && !topic.includes(word));
  if (position === undefined || others.length > 0) return null;
  const having = choices.filter((choice) => saysAll(choice, rest));
  const meant = having[position - 1];
  // The position must select the same option whether all options are counted or only those that have these words.
  return meant && meant === choices[position - 1] ? theOne([meant], 'ordinal', 0.9) : null;
}

/** Returns whether all these words belong to the option and numbers count the same noun ("5 minutes", "12 dollars"). */
function saysAll({ content: own }: Choice, content: Words): boolean {
  return content.every((word, n) =>
    own.some((other, m) => {
      const counted = isNumber(word) ? content[n + 1] : undefined;
      return other === word && (counted === undefined || own[m + 1] === counted);
    }),
  );
}

function byNearness(choices: readonly Choice[], said: Utterance, tables: Tables): Match | null {
  const nearest = nearestOption(choices, said, tables);
  return nearest && theOne([nearest.best, ...nearest.rivals], nearest.how, nearest.score);
}

function theOne(found: readonly Choice[], how: MatchEvidence, confidence: number): Match | null {
  const [first] = found;
  if (!first) return null;
  if (found.length > 1) return ambiguous(found);
  const { id: optionId, label } = first.option;
  return { kind: 'option', optionId, label, how, confidence };
}

function ambiguous(choices: readonly Choice[]): Match {
  return { kind: 'ambiguous', optionIds: choices.map(({ option }) => option.id) };
}

export interface Positions {
  /** The indexes of the options at these positions, from 0. */
  readonly named: ReadonlySet<number>;
  /** Whether the utterance contains nothing but these positions. */
  readonly isAll: boolean;
  /** Whether the position is a plain number, without an ordinal or a word such as "option". */
  readonly isBare: boolean;
}

export function positionsIn(
  { words, proforms }: Utterance,
  { language, frame, noise }: Tables,
  count: number,
  isFree: (index: number) => boolean = () => true,
): Positions {
  const named = new Set<number>();
  const used = new Set<number>();
  words.forEach((word, index) => {
    if (!isFree(index)) return;
    const position = ordinal(word) ?? afterLead(index);
    if (position === null) return;
    named.add(position - 1);
    used.add(index);
  });
  const rest = words.flatMap((word, index) =>
    used.has(index) || proforms.has(index) || noise.has(word) || frame.has(word) ? [] : [word],
  );
  const isBare = named.size === 0 && rest.length === 1 && isNumber(rest[0]);
  if (isBare) named.add(Number(rest[0]) - 1);
  for (const position of named) {
    if (!Number.isInteger(position) || position < 0 || position >= count) named.delete(position);
  }
  return { named, isAll: isBare || rest.length === 0, isBare };

  function ordinal(word: string): number | null {
    const { lastWords, ofTwo } = language;
    if (lastWords.includes(word)) return count;
    if (count === 2 && ofTwo.first.includes(word)) return 1;
    if (count === 2 && ofTwo.second.includes(word)) return 2;
    return ordinalOf(word);
  }

  function afterLead(index: number): number | null {
    if (!language.numberLeads.includes(words[index - 1] ?? '')) return null;
    const word = words[index] as string;
    if (isNumber(word)) return Number(word);
    const isEnd = words.slice(index + 1).every((next) => noise.has(next));
    const heard = Object.hasOwn(language.numberHomophones, word);
    return isEnd && heard ? (language.numberHomophones[word] as number) : null;
  }
}
