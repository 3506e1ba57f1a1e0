// Finds the side effects that a report claims. It reads English, and only statements in the reporter's own
// name: reports are full of other people's actions, quotations and drafts.
//
// Invariants
//   FIND-CLAIMS-1. A doubtful statement is no claim: a description of data accuses no subagent.

import { clip, head } from '../values/clip.ts';
import { CLAIMING, effectVerb, THINGS, type EffectVerb } from './effect-words.ts';

export interface Claim {
  /** The original sentence; at most 300 characters. */
  readonly text: string;
  readonly verb: EffectVerb;
  /** The words after the verb, in lower case: the object of the action. */
  readonly words: readonly string[];
  /** In the passive: "has been sent". */
  readonly passive: boolean;
}

const MAX_READ_CHARS = 20_000;
const MAX_CLAIMS = 10;
const MAX_READ_SENTENCE_CHARS = 1000;
const MAX_SENTENCE_CHARS = 300;

const VERB = `(?<verb>${CLAIMING})`;
const ADVERBS = '(?:(?:now|also|just|already|then|successfully|finally|since|both) )*';
const OBJECT = '(?= (?:the|an?|your|it|them|this|that|these|those|all|both|two|three|\\d+)\\b)';

const firstPerson = new RegExp(`\\b(?:I|we)(?:['’]ve| have)? ${ADVERBS}${VERB}\\b`, 'i');
/** "I found a flight and booked it": no other subject may come in between. */
const coordinated = new RegExp(
  `\\bI(?:['’]ve| have)? \\w+(?:(?! that\\b| who\\b| which\\b| he\\b| she\\b| they\\b| it (?:was|is|has)\\b)[^;:])*? and ${ADVERBS}${VERB}${OBJECT}`,
  'i',
);
/** "Booked the flight.", "Done: sent it." */
const elliptical = new RegExp(
  `^(?:(?:all )?(?:done|finished|ok(?:ay)?|success|great)[.!:,;—–-]* +)?${ADVERBS}${VERB}${OBJECT}`,
  'i',
);
/**
 * "Your flight has been booked", "The mail was successfully sent": not "was sent", which data also contain.
 */
const passive = new RegExp(
  `\\byour (?:[\\w-]+ ){1,5}?(?:has|have) been ${ADVERBS}${VERB}\\b` +
    `|\\b(?:has|have|was|were|been) (?:been )?successfully (?<verb2>${CLAIMING})\\b`,
  'i',
);

const hypothetical =
  /\b(?:if|once|when|unless|until|whether|before|after|would|could|should|might|may|can)\b/i;
const nothing =
  /^ (?:(?:nothing|no|none|neither|money|time|you|attention|up to|by|about)\b|\$|€|£|[\d.]+ ?%)/i;

/** Returns the claims of a report, in its order; at most ten. */
export function findClaims(text: string): Claim[] {
  const all = sentencesIn(ownWords(head(text, MAX_READ_CHARS)));
  const claims: Claim[] = [];
  all.forEach(({ sentence, isItem }, index) => {
    const isOutermost = !isItem && (index === 0 || index === all.length - 1);
    const claim = claimIn(sentence, isOutermost);
    if (claim && claims.length < MAX_CLAIMS) claims.push(claim);
  });
  return claims;
}

function claimIn(sentence: string, isOutermost: boolean): Claim | null {
  if (sentence.endsWith('?') || spokenBySomebody.test(sentence)) return null;
  for (const pattern of [firstPerson, coordinated, ...(isOutermost ? [elliptical] : []), passive]) {
    const match = pattern.exec(sentence);
    const past = match?.groups?.['verb'] ?? match?.groups?.['verb2'];
    const verb = past === undefined ? undefined : effectVerb(past);
    if (!match || !verb || past === undefined) continue;
    const after = sentence.slice(match.index + match[0].length);
    if (hypothetical.test(sentence.slice(0, match.index)) || nothing.test(after)) continue;
    if (/^ordered$/i.test(past) && /\bby\b/.test(after)) continue;
    const words = sentence.toLowerCase().match(/[\p{L}\p{N}-]+/gu) ?? [];
    if (verb.needsThing && !words.some((word) => THINGS.has(word))) continue;
    return {
      text: clip(sentence, MAX_SENTENCE_CHARS),
      verb,
      words,
      passive: pattern === passive,
    };
  }
  return null;
}

/** "Anna: I sent it.", but not "Status: I sent it." */
const spokenBySomebody =
  /^(?!(?:done|result|results|summary|status|note|update|answer|ok|okay|report|final answer|actions?(?: taken)?)\b)[\p{L}\p{N} .'’_-]{1,40}: (?:I|we)\b/iu;

/**
 * Returns the text without code, quotations and letters: their contents are not the reporter's own
 * statements.
 */
export function ownWords(text: string): string {
  return text
    .replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, ' … ')
    .replace(/^[ \t]*>.*$/gm, ' ')
    .replace(/"[^"\n]{0,2000}"|“[^”]{0,2000}”|«[^»]{0,2000}»/g, ' … ')
    .replace(
      /^[ \t*]*(?:dear|hi|hello|hey)\b[^\n]{0,60}[,!:]?[ \t]*$[\s\S]*?(?:^[ \t]*(?:best|kind|warm|regards|sincerely|cheers|thanks|yours)\b[^\n]*(?:\n[^\n]*)?$|$(?![\s\S]))/gim,
      ' … ',
    );
}

interface Sentence {
  readonly sentence: string;
  /** The sentence belongs to a list or a table. */
  readonly isItem: boolean;
}

function sentencesIn(text: string): Sentence[] {
  return text.split('\n').flatMap((line) => {
    const isItem = /^\s*(?:[-*+•|]|\d+[.)])\s/.test(line);
    const plain = line
      .replace(/^\s*(?:#{1,6}|[-*+•|]|\d+[.)])\s+/, '')
      .replace(/\*\*|__/g, '')
      .trim();
    const parts = plain === '' ? [] : plain.split(/(?<=[.!?])\s+(?=\S)/);
    return parts.map((sentence) => ({ sentence: head(sentence, MAX_READ_SENTENCE_CHARS), isItem }));
  });
}
