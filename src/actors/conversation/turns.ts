// Turns: one party's stretch of holding the floor. Ten utterances of the user in a row are one turn; tool
// calls, results, notes and transfers belong to no stretch and do not end one.

import { isMessage, messageText, type ConversationItem } from './items.ts';
import { clip } from '../../values/clip.ts';

/** One stretch of one party, as one string. */
export interface ConversationTurn {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** When it began, milliseconds since 1970. */
  readonly at: number;
}

/** Returns the turns of `items`, oldest first, each cut at `maxCharsPerTurn`. Empty messages make no turn. */
export function turnsOf(
  items: readonly ConversationItem[],
  maxCharsPerTurn: number,
): readonly ConversationTurn[] {
  const turns: { role: 'user' | 'assistant'; at: number; parts: string[] }[] = [];
  for (const item of items) {
    if (!isMessage(item) || item.role === 'system') continue;
    const text = messageText(item).trim();
    if (text === '') continue;
    const open = turns.at(-1);
    if (open?.role === item.role) open.parts.push(text);
    else turns.push({ role: item.role, at: item.at, parts: [text] });
  }
  return turns.map(({ role, at, parts }) => ({
    role,
    at,
    content: clip(parts.join(' '), maxCharsPerTurn),
  }));
}
