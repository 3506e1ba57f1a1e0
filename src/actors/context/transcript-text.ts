// A stretch of the conversation as text, for a model that shall read it and not answer it.
//
// What was said is data: none of its lines can pass for another speaker, because only the
// first line of an entry stands at the margin. What is too long is cut, and says so.

import {
  isMessage,
  messageText,
  toolOutputText,
  type ConversationItem,
} from '../conversation/items.ts';
import { clip } from '../clip.ts';
import { transferNote } from '../conversation/model-messages.ts';
import { promptText } from '../notes/note.ts';
import { indented } from '../indented.ts';

/** One entry for each item, in order. `maxItemChars`: of each. */
export function transcriptText(items: readonly ConversationItem[], maxItemChars: number): string {
  return items
    .map((item) => {
      const [speaker, text] = entryOf(item);
      return `[${speaker}]: ${indented(clip(text, maxItemChars))}`;
    })
    .join('\n');
}

function entryOf(item: ConversationItem): readonly [speaker: string, text: string] {
  if (isMessage(item)) return [item.role, messageText(item)];
  if (item.role === 'transfer') return ['system', promptText(transferNote(item))];
  if (item.role === 'tool_call')
    return ['tool call', `${item.toolName} ${JSON.stringify(item.args)}`];
  const kind = item.output.type === 'error' ? 'tool error' : 'tool result';
  return [kind, `${item.toolName} ${toolOutputText(item.output)}`];
}
