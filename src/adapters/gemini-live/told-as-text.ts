// Texts for messages that the protocol cannot represent: system messages, because it has no system role, and tool calls
// from an earlier connection, whose ids are unknown here. Pure.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import type { Turn } from './wire.ts';

type Command<T extends TransportCommand['type']> = Extract<TransportCommand, { type: T }>;

/** Asks the model to speak if no other message does so. */
export const YOUR_TURN = note(
  sentence`It is your turn. If you have not yet replied to the user's last words, or not yet told them a result above, do so now. Otherwise say nothing.`,
);

/**
 * Returns a system message as a note, because the protocol has no system role. The session's notes already have a
 * marker and are left unchanged.
 */
export function systemText(notes: NoteWriter, text: string, id: string): string {
  return text.startsWith('[') ? text : notes.text({ says: text }, id);
}

/** Returns one conversation message. */
export function messageTurn(
  notes: NoteWriter,
  { role, text, itemId }: Pick<Command<'message.add'>, 'role' | 'text' | 'itemId'>,
): Turn {
  return {
    role: role === 'assistant' ? 'model' : 'user',
    parts: [{ text: role === 'system' ? systemText(notes, text, itemId) : text }],
  };
}

/** Returns a call from an earlier connection. */
export function callTurn(
  notes: NoteWriter,
  { callId, name, arguments: args, told }: Omit<Command<'tool.recall'>, 'type'>,
): Turn {
  const text =
    told ??
    notes.text(
      note(sentence`You have made this call before.`, { callId, tool: name, arguments: args }),
      `${callId} called`,
    );
  return { role: 'user', parts: [{ text }] };
}

/** Returns the result of a call from an earlier connection. */
export function answerTurn(
  notes: NoteWriter,
  name: string | undefined,
  { callId, output, told }: Pick<Command<'tool.answer'>, 'callId' | 'output' | 'told'>,
): Turn {
  const text =
    told ??
    notes.text(
      note(sentence`The result of a call that you made before.`, {
        callId,
        ...(name !== undefined && { tool: name }),
        output,
      }),
      `${callId} answered`,
    );
  return { role: 'user', parts: [{ text }] };
}

/** Returns the combined text of these turns. */
export function textOf(turns: readonly Turn[]): readonly string[] {
  return turns.flatMap(({ parts }) => parts.flatMap((part) => ('text' in part ? [part.text] : [])));
}
