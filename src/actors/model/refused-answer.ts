// The note that tells a model why its answer was refused. The checks of answers write this note. If a run ends without
// an accepted answer, the reason is read from the note. Does not import `ai` or `zod`, because a subagent's log, which
// uses this file, must not load them.

import { note, readNotes, sentence, type Note } from '../notes/note.ts';

const REFUSED = sentence`Your answer was not accepted, for the quoted reason. Answer again, with nothing but JSON of the agreed shape.`;

/** The beginning of this message in earlier versions; it is followed by the reason and another line. */
const WAS_REFUSED = 'Your answer was not accepted: ';

export function refusedAnswer(reason: string): Note {
  return note(REFUSED, { reason });
}

/** Returns the reason from such a message; null for any other message. */
export function refusalIn(message: unknown): string | null {
  if (typeof message !== 'string') return null;
  if (message.startsWith(WAS_REFUSED))
    return message.slice(WAS_REFUSED.length, message.lastIndexOf('\n'));
  const refused = readNotes(message).find(({ says }) => says === REFUSED);
  return refused === undefined ? null : String(refused.quotes['reason']);
}
