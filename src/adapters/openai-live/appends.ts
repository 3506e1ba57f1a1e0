// Sends texts into the model's context, in appends of at most 500 tokens.
//
// Owns: event ids, which appends are not answered yet, and what belongs to what. Does not:
// say what follows from that: that the server took a text in proves nothing of its being said.
//
// APPENDS-1. A text of several appends counts as taken in when the last of them is, and as refused when one
//     of them is. Its ticket is the event id of the last.
// APPENDS-2. Some servers do not say which append they answer: then the answer is for the oldest of its
//     channel.
// APPENDS-4. Each append of a quotation begins like the first one, so that no piece of it appears as unquoted
//     text.
// APPENDS-3. Texts to remember that are not taken in yet are recorded, so that a session that resumes from
//     this one gets them again.

import { shortNameOf, type NoteWriter } from '../../actors/notes/note-marks.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import { MAX_APPEND_TOKENS, estimateTokens, splitText } from './tokens.ts';
import { append, type AppendChannel } from './wire/index.ts';

export type AppendEvent = ReturnType<typeof append>;

/** A longer text would push the conversation itself out of the model's context. */
const MAX_PIECES = 16;
const MAX_PENDING = 512;

interface Pending {
  readonly channel: AppendChannel;
  readonly ticket: string;
  /** APPENDS-3; null: it need not be repeated. */
  readonly memory: string | null;
}

export class Appends {
  readonly #newEventId: () => string;
  readonly #notes: NoteWriter;
  /** By event id, oldest first. */
  readonly #pending = new Map<string, Pending>();

  constructor(newEventId: () => string, notes: NoteWriter) {
    this.#newEventId = newEventId;
    this.#notes = notes;
  }

  /** The texts that are not taken in yet (APPENDS-3), in order. */
  get untaken(): readonly string[] {
    return [...this.#pending.values()].flatMap(({ memory }) => memory ?? []);
  }

  /** Returns the events for this text; none for white space. `isKept`: to be remembered (APPENDS-3). */
  say(
    channel: AppendChannel,
    text: string,
    delegationId: string | null,
    isKept: boolean,
  ): readonly AppendEvent[] {
    const events = withinBounds(piecesOf(text), this.#notes).map((piece) =>
      append(this.#newEventId(), channel, piece, delegationId),
    );
    const ticket = events.at(-1)?.event_id ?? '';
    for (const { event_id: eventId, content } of events)
      this.#pending.set(eventId, { channel, ticket, memory: isKept ? content : null });
    for (const eventId of this.#pending.keys()) {
      if (this.#pending.size <= MAX_PENDING) break;
      this.#pending.delete(eventId);
    }
    return events;
  }

  /** Records that the server took an append in. @returns the ticket of the text that is now complete */
  accepted(channel: AppendChannel, clientEventId: string | null | undefined): string | null {
    const eventId = clientEventId ?? this.#oldestOf(channel);
    const pending = eventId === null ? undefined : this.#pending.get(eventId);
    if (eventId === null || pending === undefined) return null;
    this.#pending.delete(eventId);
    return pending.ticket === eventId ? eventId : null;
  }

  /** Records that the server refused an append. @returns the ticket of its text */
  refused(clientEventId: string): string | null {
    const pending = this.#pending.get(clientEventId);
    this.#pending.delete(clientEventId);
    return pending?.ticket ?? null;
  }

  #oldestOf(channel: AppendChannel): string | null {
    for (const [eventId, pending] of this.#pending) if (pending.channel === channel) return eventId;
    return null;
  }
}

const OPENER = /^\[(?:note|data) [^\]\n]+\] /gm;
const MAX_OPENER_TOKENS = 32;

/** A quotation that is too long continues in the next append as the same quotation. */
function piecesOf(text: string): readonly string[] {
  if (estimateTokens(text) <= MAX_APPEND_TOKENS) return splitText(text);
  let opener = '';
  return splitText(text, MAX_APPEND_TOKENS - MAX_OPENER_TOKENS).map((piece) => {
    const openers = piece.match(OPENER) ?? [];
    const isCovered = opener === '' || (openers[0] !== undefined && piece.startsWith(openers[0]));
    const whole = isCovered ? piece : `${opener}… ${piece}`;
    opener = openers.at(-1) ?? opener;
    return whole;
  });
}

function withinBounds(pieces: readonly string[], notes: NoteWriter): readonly string[] {
  const left = pieces.slice(MAX_PIECES - 1);
  if (left.length <= 1) return pieces;
  const characters = left.reduce((sum, { length }) => sum + length, 0);
  const said = note(sentence`The rest, ${characters} characters, is left out here.`);
  return [
    ...pieces.slice(0, MAX_PIECES - 1),
    notes.text(said, `left out ${shortNameOf(left.join(''))}`),
  ];
}
