// Translates a note of the runtime into commands for a transport.

import type { Prompt } from '../../actors/notes/note.ts';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { TransportCommand } from './transport.ts';

export type AddMessage = Extract<TransportCommand, { type: 'message.add' }>;

/** Returns the commands that send a note. */
export function noteMessages(
  notes: NoteWriter,
  itemId: string,
  prompt: Prompt,
): readonly AddMessage[] {
  const type = 'message.add';
  // Earlier versions kept the prompt as text.
  if (typeof prompt === 'string') return [{ type, itemId, role: 'system', text: prompt }];
  return notes.messages(prompt, itemId).map(({ role, text, part }) => {
    const id = part === 'data' && prompt.says !== undefined ? `${itemId}.data` : itemId;
    return { type, itemId: id, role, text, ...(role === 'user' && { isNote: true as const }) };
  });
}
