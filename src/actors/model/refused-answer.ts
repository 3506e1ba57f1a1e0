// The note that tells a model why its answer was refused. The answer checks write the note; a run that ends without an
// accepted answer reads the reason from it. Does not import `ai` or `zod`, which a subagent's log must not load.

import { note, readNotes, sentence, type Note } from '../notes/note.ts';

const REFUSED = sentence`Your answer was not accepted, for the quoted reason. Answer again, with nothing but JSON of the agreed shape.`;

/** The beginning of this message in earlier versions; the reason and another line followed. */
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
