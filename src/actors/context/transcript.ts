// A part of the conversation as JSON, for a model that is to read it and not to answer it. An item that is
// too long is cut with a mark.

import {
  isMessage,
  messageText,
  toolOutputText,
  type ConversationItem,
} from '../conversation/items.ts';
import { clip } from '../../values/clip.ts';
import { transferNote } from '../conversation/model-messages.ts';
import { promptText } from '../notes/note.ts';

/** Returns one entry per item, in order. `maxItemChars`: the limit of each. */
export function transcriptOf(
  items: readonly ConversationItem[],
  maxItemChars: number,
): { readonly speaker: string; readonly text: string }[] {
  return items.map((item) => {
    const [speaker, text] = entryOf(item);
    return { speaker, text: clip(text, maxItemChars) };
  });
}

function entryOf(item: ConversationItem): readonly [speaker: string, text: string] {
  if (isMessage(item)) return [item.role, messageText(item)];
  if (item.role === 'transfer') return ['system', promptText(transferNote(item))];
  if (item.role === 'tool_call')
    return ['tool call', `${item.toolName} ${JSON.stringify(item.args)}`];
  const kind = item.output.type === 'error' ? 'tool error' : 'tool result';
  return [kind, `${item.toolName} ${toolOutputText(item.output)}`];
}
