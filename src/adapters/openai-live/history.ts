// The conversation so far in the form of the first event of a session: messages only, at most 128 and 8,192
// tokens together.
//
// HISTORY-1. The newest messages are kept, complete and in order; only the newest of all may be cut.
// HISTORY-2. If messages were left out, the first one states how many.

import { unmarkedNotes, type NoteWriter } from '../../actors/notes/note-marks.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import { toldAs } from './model-words.ts';
import { estimateTokens, headOf } from './tokens.ts';
import type { HistoryMessage } from './wire/index.ts';

const MAX_MESSAGES = 128;
const MAX_TOKENS = 8_192;
/** The tokens that the server adds around each message. */
const TOKENS_AROUND = 8;
/** For the note of HISTORY-2. */
const RESERVED_TOKENS = 64;

/** Returns the messages with the content of these commands. */
export function historyOf(
  commands: readonly TransportCommand[],
  notes: NoteWriter = unmarkedNotes,
): readonly HistoryMessage[] {
  const all = commands.map(messageOf).filter((message) => message !== null);
  const kept: HistoryMessage[] = [];
  let tokensLeft = MAX_TOKENS - RESERVED_TOKENS;
  for (const message of all.toReversed()) {
    const fits = estimateTokens(message.text) + TOKENS_AROUND <= tokensLeft;
    if (kept.length === MAX_MESSAGES - 1 || (!fits && kept.length > 0)) break;
    const text = fits ? message.text : headOf(message.text, tokensLeft - TOKENS_AROUND);
    kept.unshift({ ...message, text });
    tokensLeft -= estimateTokens(text) + TOKENS_AROUND;
  }
  const missing = all.length - kept.length;
  if (missing === 0) return kept;
  const said = sentence`The conversation began earlier: ${missing} older messages are left out here.`;
  return [
    { role: 'developer', text: notes.text(note(said), `history without ${missing}`) },
    ...kept,
  ];
}

function messageOf(command: TransportCommand): HistoryMessage | null {
  const { type } = command;
  if (type === 'tool.recall' || type === 'tool.answer')
    return { role: 'user', text: toldAs(command) };
  if (type !== 'message.add' || command.text.trim() === '') return null;
  return { role: command.role === 'system' ? 'developer' : command.role, text: command.text };
}
