// Recognizes a report that ends before announced work. "Now let me save the results." as the last words of a
// subagent means that it was cut off, or gave up its turn too early.

import { ownWords } from './find-claims.ts';

/** The characters at the end of a report that are read. */
const MAX_READ_CHARS = 20_000;

const ACTIONS =
  'save|write|store|send|create|compile|check|search|look|fetch|read|analy[sz]e|start|begin|continue|proceed|try|do|run|get|gather|find|use|call|update|add|book|reserve|order|verify|review|summari[sz]e|put|make|generate|draft|calculate|compute|open|click|collect|prepare|build|examine|investigate|query|retrieve|download|upload|test|finish|complete|work|take|move|explore|dig';

const opening = String.raw`(?:(?:ok(?:ay)?|alright|great|good|perfect|now|next|first|then|so|finally|and|with that)[,.!:]?\s+)*`;
const announcement = new RegExp(
  String.raw`^${opening}(?:let me|let us|let['’]s|I['’]ll|I will|I['’]m going to|I am going to|I need to|I should)\s+(?:now |next |then |first |also |just |quickly |go ahead and |start by |proceed to |begin by )*(?:${ACTIONS})(?:e?ing)?\b`,
  'i',
);

/** An offer, or a promise that depends on another party, is an end. */
const depends =
  /\b(?:if|once|when|whenever|unless|until|as soon as|after you|upon|would you|let you know|let me know)\b|\?$/i;

/** Tells whether the last sentence only announces the next action. */
export function isUnfinished(text: string): boolean {
  const said = ownWords(text.slice(-MAX_READ_CHARS)).trimEnd();
  const last = said
    .slice(-600)
    .split(/(?<=[.!?])\s+|\n+/)
    .findLast((sentence) => /[\p{L}]/u.test(sentence))
    ?.replace(/^\s*(?:[-*+•>]|\d+[.)])\s+/, '')
    .replace(/\*\*|__/g, '')
    .trim();
  return last !== undefined && announcement.test(last) && !depends.test(last);
}
