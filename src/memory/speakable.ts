// A short text that can be said aloud, made of a result that cannot: whole sentences from its
// beginning, without markup. It chooses, it does not understand: an agent that hands in a
// summary of its own does better.

import type { JSONValue } from 'ai';
import { head } from '../values/clip.ts';

const DEFAULT_CHARS = 400;
/** Of a text; what is said comes from its beginning. */
const READ_CHARS = 8000;

/** Where an object says what it is about. */
const TELLING = ['summary', 'answer', 'message', 'title', 'headline', 'description'];

/** At most `maxChars` characters, without line breaks; empty only if the result is. @defaultValue 400 */
export function speakable(result: JSONValue, maxChars = DEFAULT_CHARS): string {
  if (typeof result !== 'string') return described(result, maxChars);
  const words = withoutMarkup(head(result, READ_CHARS));
  // Nothing but code or a table: nobody would want to hear it.
  if (words === '' && result.trim() !== '')
    return sentences(`A text with ${counted(result.trim().split('\n').length, 'line')}.`, maxChars);
  return sentences(words, maxChars);
}

function described(value: Exclude<JSONValue, string>, maxChars: number): string {
  if (Array.isArray(value)) return `A list of ${counted(value.length, 'item')}.`;
  if (typeof value !== 'object' || value === null) return String(value);
  for (const name of TELLING) {
    const told = (value as Record<string, JSONValue>)[name];
    if (typeof told === 'string' && told.trim() !== '') return speakable(told, maxChars);
  }
  const names = Object.keys(value);
  const shown = names.slice(0, 8).join(', ');
  const more = names.length > 8 ? ', …' : '';
  return sentences(`A result with ${counted(names.length, 'part')}: ${shown}${more}.`, maxChars);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Markdown as it would be read aloud. */
function withoutMarkup(text: string): string {
  return (
    text
      .replace(/^(```|~~~)[\s\S]*?(^\1|$(?![\s\S]))/gm, ' ')
      .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
      .replace(/^[ \t]*\|.*\|[ \t\r]*$/gm, ' ')
      // A heading or an item of a list ends like a sentence.
      .replace(/^[ \t]*(?:#{1,6}|[-*+•]|\d+[.)])[ \t]+(.*?)[ \t]*$/gm, (_, line: string) =>
        /[.!?:;…]$/.test(line) || line === '' ? line : `${line}.`,
      )
      .replace(/^[ \t]*(?:[-*_=][ \t]*){3,}$/gm, ' ')
      .replace(/^[ \t]*>[ \t]?/gm, '')
      .replace(/(?<![\w*])(\*{1,3}|_{1,3})(?=\S)([^*_\n]*)\1(?!\w)/g, '$2')
      .replace(/`+([^`\n]*)`+/g, '$1')
      .replace(/\s+/g, ' ')
      .trim()
  );
}

function sentences(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const room = text.slice(0, maxChars);
  // From a third on a whole sentence is better than more words.
  const end = Math.max(...['. ', '! ', '? ', '。'].map((mark) => room.lastIndexOf(mark)));
  if (end >= maxChars / 3) return room.slice(0, end + 1);
  const word = room.slice(0, maxChars - 1);
  const cut = word.lastIndexOf(' ');
  return `${(cut > maxChars / 2 ? word.slice(0, cut) : word).replace(/[\uD800-\uDBFF]$/, '').trimEnd()}…`;
}
