// Converts the conversation for a voice transport after a reconnect, so that the model continues where it
// was: messages, tool calls and their outputs (errors too). A call in flight stays open: its answer is still
// to come, under the same id.

import { asArguments } from '../../values/json.ts';
import { promptText, type Note } from '../notes/note.ts';
import {
  isFailed,
  isMessage,
  messageText,
  toolOutputText,
  type ConversationItem,
} from './items.ts';
import { preambleId, transferNote } from './model-messages.ts';

export type ReplayItem =
  | {
      readonly type: 'message';
      readonly itemId: string;
      readonly role: 'system' | 'user' | 'assistant';
      readonly text: string;
      /** The note; absent for a message, or a note of an earlier version. */
      readonly note?: Note;
    }
  | {
      readonly type: 'tool_call';
      readonly callId: string;
      readonly toolName: string;
      /** JSON text of an object. */
      readonly arguments: string;
      /** Whether it has no result yet. */
      readonly open: boolean;
    }
  | {
      readonly type: 'tool_result';
      readonly callId: string;
      readonly output: string;
      readonly isError: boolean;
    };

export function toReplay(
  items: readonly ConversationItem[],
  preamble: readonly Note[],
): readonly ReplayItem[] {
  const answered = new Set<string>();
  for (const item of items) if (item.role === 'tool_result') answered.add(item.callId);

  const replay: ReplayItem[] = preamble.map((note) => ({
    type: 'message',
    itemId: preambleId(note),
    role: 'system',
    text: promptText(note),
    note,
  }));
  for (const item of items) {
    if (isMessage(item)) {
      // The new connection can know an unfinished utterance only by the words understood so far.
      if (item.text.trim() === '') continue;
      const { id: itemId, role, note } = item;
      const text = messageText(item);
      replay.push({ type: 'message', itemId, role, text, ...(note && { note }) });
    } else if (item.role === 'transfer') {
      const note = transferNote(item);
      const text = promptText(note);
      replay.push({ type: 'message', itemId: item.id, role: 'system', text, note });
    } else if (item.role === 'tool_call') {
      replay.push({
        type: 'tool_call',
        callId: item.callId,
        toolName: item.toolName,
        arguments: JSON.stringify(asArguments(item.args)),
        open: !answered.has(item.callId),
      });
    } else {
      replay.push({
        type: 'tool_result',
        callId: item.callId,
        output: toolOutputText(item.output),
        isError: isFailed(item.output),
      });
    }
  }
  return replay;
}
