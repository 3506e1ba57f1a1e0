// Converts the conversation, including its open calls, and single notes of the runtime to transport commands.
import type { Prompt } from '../../actors/notes/note.ts';
import type { NoteMarks, NoteWriter } from '../../actors/notes/note-marks.ts';
import { answerNote, recallNote, tellsCallsInWords } from './speech-prompts.ts';
import type { TransportCapabilities, TransportCommand } from '../connection/transport.ts';
import type { ReplayItem } from '../../actors/conversation/model-messages.ts';

/**
 * Returns the commands that restore a conversation on a new connection. A model that responds on its own is instructed
 * not to reply to results that an earlier connection received.
 */
export function replay(
  items: readonly ReplayItem[],
  can: TransportCapabilities,
  notes: NoteMarks,
): readonly TransportCommand[] {
  const inWords = tellsCallsInWords(can);
  const names = new Map<string, string>();
  return items.flatMap((item): readonly TransportCommand[] => {
    switch (item.type) {
      case 'message': {
        const { itemId, role, text } = item;
        if (item.note) return noteMessages(notes, itemId, item.note);
        const said = role === 'user' ? notes.guard(text) : text;
        return [{ type: 'message.add', itemId, role, text: said }];
      }
      case 'tool_call': {
        const { callId, toolName: name, arguments: args } = item;
        names.set(callId, name);
        const told = inWords
          ? notes.text(recallNote(callId, name, args), `${callId} called`)
          : undefined;
        return [
          {
            type: 'tool.recall',
            callId,
            name,
            arguments: args,
            ...(told === undefined ? {} : { told }),
          },
        ];
      }
      case 'tool_result': {
        const { callId } = item;
        const output = notes.guard(item.output);
        const note = answerNote(callId, names.get(callId) ?? null, output);
        const told = inWords ? notes.text(note, `${callId} answered`) : undefined;
        const silent = can.responds === 'by_itself';
        return [
          {
            type: 'tool.answer',
            callId,
            output,
            ...(told === undefined ? {} : { told }),
            ...(silent && { silent }),
          },
        ];
      }
    }
  });
}

export type AddMessage = Extract<TransportCommand, { type: 'message.add' }>;

/** Returns the commands that send a note. */
export function noteMessages(
  notes: NoteWriter,
  itemId: string,
  prompt: Prompt,
): readonly AddMessage[] {
  const type = 'message.add';
  // Earlier versions stored the prompt as plain text.
  if (typeof prompt === 'string') return [{ type, itemId, role: 'system', text: prompt }];
  return notes.messages(prompt, itemId).map(({ role, text, part }) => {
    const id = part === 'data' && prompt.says !== undefined ? `${itemId}.data` : itemId;
    return { type, itemId: id, role, text, ...(role === 'user' && { isNote: true as const }) };
  });
}
