// Turns any result into a short text for speech, which has whole sentences from the beginning of the result and no
// markup. It only selects sentences. A summary that the agent writes is better.

import type { JSONValue } from 'ai';
import { head } from '../values/clip.ts';

const DEFAULT_CHARS = 400;
/** The number of characters that are read. The spoken text comes from these first characters. */
const READ_CHARS = 8000;

/** The properties that usually contain the subject of an object. */
const TELLING = ['summary', 'answer', 'message', 'title', 'headline', 'description'];

/** Returns at most `maxChars` characters without line breaks; empty only if the result is empty. @defaultValue 400 */
export function speakable(result: JSONValue, maxChars = DEFAULT_CHARS): string {
  if (typeof result !== 'string') return described(result, maxChars);
  const words = withoutMarkup(head(result, READ_CHARS));
  // A result that is only code or a table is not worth reading aloud.
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

/** Returns the text that a person would read aloud from this Markdown text. */
function withoutMarkup(text: string): string {
  return (
    text
      .replace(/^(```|~~~)[\s\S]*?(^\1|$(?![\s\S]))/gm, ' ')
      .replace(/!?\[([^[\]\n]*)\]\([^)[\n]*\)/g, '$1')
      .replace(/^[ \t]*\|.*\|[ \t\r]*$/gm, ' ')
      // A heading or a list item ends like a sentence.
      .replace(/^[ \t]*(?:#{1,6}|[-*+•]|\d+[.)])[ \t](.*)$/gm, (_, rest: string) => {
        const line = rest.trim();
        return /[.!?:;…]$/.test(line) || line === '' ? line : `${line}.`;
      })
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
  // If whole sentences make up at least a third of the length, they are better than more text that breaks off.
  const end = Math.max(...['. ', '! ', '? ', '。'].map((mark) => room.lastIndexOf(mark)));
  if (end >= maxChars / 3) return room.slice(0, end + 1);
  const word = room.slice(0, maxChars - 1);
  const cut = word.lastIndexOf(' ');
  return `${(cut > maxChars / 2 ? word.slice(0, cut) : word).replace(/[\uD800-\uDBFF]$/, '').trimEnd()}…`;
}
