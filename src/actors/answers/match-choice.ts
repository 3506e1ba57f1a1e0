// Which option did the user choose?
//
// The ways to say it, the surest first; the first that leads anywhere decides:
//   the label or the id, alone  →  yes or no among the options  →  (no answer at all: a
//   wait, a question, a negation …)  →  the label in a sentence  →  its position, or words
//   that only it has  →  nearly its label.

import { choicesOf, contentOf, isSlight, type Choice } from './choice.ts';
import {
  digression,
  hold,
  unclear,
  type AnswerOption,
  type Match,
  type MatchEvidence,
} from './match.ts';
import { nearestOption } from './nearest-option.ts';
import { positionsIn } from './positions.ts';
import { isCommand, isHold, startsDigression, startsQuestion, wantsRepeat } from './side-talk.ts';
import { findPhrase, sameWords, standsAt, type Tables, type Words } from './tables.ts';
import { fold, isNumber, wordsOf, type Utterance } from './utterance.ts';

/** Content words beside a label in a sentence; with more it is rather a remark that mentions it. */
const maxWordsBeside = 3;

/** Where a label stands in the utterance. */
interface Mention {
  readonly choice: Choice;
  readonly start: number;
  readonly end: number;
}

/** The labels in an utterance, and what is around them. */
interface Sentence {
  readonly mentions: readonly Mention[];
  /** Belongs to no label. */
  readonly isOutside: (index: number) => boolean;
  readonly isDoubted: boolean;
  readonly choices: readonly Choice[];
  readonly said: Utterance;
  readonly tables: Tables;
}

export function matchChoice(
  options: readonly AnswerOption[],
  said: Utterance,
  tables: Tables,
): Match {
  const choices = choicesOf(options, tables);
  const named = byName(choices, said, tables) ?? byMeaning(choices, said, tables);
  if (named) return named;
  if (said.words.length === 0) return unclear;

  const mentions = mentionsIn(choices, said, tables);
  const isOutside = (index: number): boolean =>
    !mentions.some(({ start, end }) => index >= start && index < end);
  const has = (phrases: readonly Words[]): boolean =>
    phrases.some((phrase) => findPhrase(said.words, phrase, isOutside).length > 0);

  if (wantsRepeat(said, tables)) return unclear;
  if (isHold(said, tables, 'anywhere', isOutside)) return hold;
  if (isCommand(said, tables) || startsDigression(said, tables)) return digression;
  if (has(tables.phrases.quantifiers)) return { kind: 'free_text', text: said.raw };
  if (startsQuestion(said, tables)) return digression;
  if (has(tables.phrases.negations)) return unclear;

  const isDoubted = has(tables.phrases.doubts);
  return (
    byMention({ mentions, isOutside, choices, said, tables, isDoubted }) ??
    byPositionOrWords(choices, said, tables) ??
    byNearness(choices, said, tables) ??
    (said.asks ? digression : unclear)
  );
}

/** The utterance is the label, or the id. Word boundaries do not count: "wi-fi" is "wifi". */
function byName(
  choices: readonly Choice[],
  said: Utterance,
  { noise, language }: Tables,
): Match | null {
  const spoken = fold(said.raw);
  if (spoken === '') return null;
  const bare = (words: Words): string => words.filter((word) => !noise.has(word)).join('');
  const ways: readonly [MatchEvidence, (choice: Choice) => boolean][] = [
    ['label', ({ option }) => fold(option.label) === spoken],
    ['label', ({ label }) => label.length > 0 && label.join('') === said.words.join('')],
    ['label', ({ label }) => bare(label) !== '' && bare(label) === bare(said.words)],
    ['id', ({ option }) => fold(option.id) === spoken],
    ['id', ({ option }) => sameWords(wordsOf(option.id, language), said.words)],
  ];
  for (const [how, isNamed] of ways) {
    const match = theOne(choices.filter(isNamed), how, 1);
    if (match) return match;
  }
  return null;
}

/** "Yeah" where one option is a yes: only words of the closed lists. */
function byMeaning(
  choices: readonly Choice[],
  { words }: Utterance,
  { phrases }: Tables,
): Match | null {
  const polite = new Set([...phrases.polite, ...phrases.leadIns].flat());
  const plain = words.filter((word) => !polite.has(word));
  const means = (list: readonly Words[]): boolean => list.some((entry) => sameWords(entry, plain));
  const begins = (starts: readonly Words[]) =>
    choices.filter(({ label }) => starts.some((start) => standsAt(label, 0, start)));
  if (means(phrases.no)) return theOne(begins(phrases.noLabels), 'meaning', 0.95);
  if (means(phrases.yes)) return theOne(begins(phrases.yesLabels), 'meaning', 0.95);
  return null;
}

/** The labels in the utterance. One that lies in a longer one ("save" in "don't save") is not meant. */
function mentionsIn(
  choices: readonly Choice[],
  said: Utterance,
  tables: Tables,
): readonly Mention[] {
  const { words, proforms } = said;
  const isOrdinary = (word: string, _: number, label: Words): boolean =>
    tables.frame.has(word) || tables.noise.has(word) || (label.length === 1 && word.length === 1);
  const all: Mention[] = [];
  for (const choice of choices) {
    const { label } = choice;
    if (label.length === 0) continue;
    for (const start of findPhrase(words, label, (index) => !proforms.has(index))) {
      const mention = { choice, start, end: start + label.length };
      if (!label.every(isOrdinary) || isPointOf(said, mention, tables)) all.push(mention);
    }
  }
  return all.filter(
    (mention) =>
      !all.some(
        (other) =>
          other.start <= mention.start &&
          other.end >= mention.end &&
          other.end - other.start > mention.end - mention.start,
      ),
  );
}

/** A label such as "OK" or "A" is also an ordinary word: it must begin or end the sentence, and be all it says. */
function isPointOf(said: Utterance, { start, end }: Mention, tables: Tables): boolean {
  const indexes = [...said.words.keys()];
  const says = (index: number): boolean =>
    !tables.noise.has(said.words[index] as string) && !said.proforms.has(index);
  return (
    indexes.every((index) => (index >= start && index < end) || isSlight(said, tables, index)) &&
    (start === 0 || !indexes.slice(end).some(says))
  );
}

function byMention({
  mentions,
  isOutside,
  choices,
  said,
  tables,
  isDoubted,
}: Sentence): Match | null {
  if (mentions.length === 0) return null;
  const mentioned = new Set(mentions.map(({ choice }) => choice));
  // "The first one, premium": which of the two?
  for (const position of positionsIn(said, tables, choices.length, isOutside).named) {
    const choice = choices[position];
    if (choice) mentioned.add(choice);
  }
  if (mentioned.size > 1) return ambiguous([...mentioned]);
  if (isDoubted) return unclear;
  const beside = contentOf(said, tables).filter(isOutside);
  if (beside.length > maxWordsBeside) return unclear;
  return theOne([...mentioned], 'label', beside.length === 0 ? 0.95 : 0.8);
}

/** "The second one"; "the twelve dollar one". Nothing but that may be said. */
function byPositionOrWords(
  choices: readonly Choice[],
  said: Utterance,
  tables: Tables,
): Match | null {
  const positions = positionsIn(said, tables, choices.length);
  const byPosition = positions.isAll ? choices.filter((_, n) => positions.named.has(n)) : [];

  const content = contentOf(said, tables).map((index) => said.words[index] as string);
  const byWords = content.length === 0 ? [] : choices.filter((choice) => saysAll(choice, content));

  // A bare number that the labels themselves have ("2 tickets") is not a position.
  const [only] = content;
  const isInLabel =
    content.length === 1 && isNumber(only) && choices.some(({ label }) => label.includes(only));
  if (positions.isBare && isInLabel) return theOne(byWords, 'words', 0.85);

  const both = new Set([...byPosition, ...byWords]);
  if (both.size > 1) return ambiguous([...both]);
  return theOne(byPosition, 'ordinal', 0.95) ?? theOne(byWords, 'words', 0.85);
}

/** All these words are its words; a number also counts the same thing ("5 minutes", "12 dollars"). */
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
