// Adds texts to the model's context within the protocol's limits. During a session, a text is sent in appends of at
// most 500 tokens. The earlier conversation is sent in the session's first event, as at most 128 messages and 8,192
// tokens.
//
// The server counts tokens and rejects texts that are too long. This module has no tokenizer and overestimates the
// number of tokens. A piece may therefore be smaller than necessary but is not rejected. For prose and code, the
// estimate is nearly twice the count of OpenAI's tokenizers. Only random letters may be underestimated.
//
// Owns:     event ids, the appends without a response, and the assignment of appends to texts. It does not conclude
//           that a text was spoken, because the server's acceptance of the text does not prove this.
//
// APPENDS-1. A text of several appends counts as accepted when its last append is accepted, and as rejected when any
//     append is rejected. Its ticket is the event id of the last append.
// APPENDS-2. The responses of some servers do not name the append. Such a response applies to the oldest append of its
//     channel.
// APPENDS-4. If a quotation needs several appends, each of them starts like the first one, so that no piece looks like
//     unquoted text.
// APPENDS-3. Texts that the model must remember are stored until the server accepts them, so that they can be sent
//     again to a resumed session.
//
// HISTORY-1. The newest messages remain complete and in order. Only the last message may be cut.
// HISTORY-2. If messages were omitted, the first message states how many.
//
// TOKENS-1. The estimated size of a piece never exceeds its limit. Joined together, the pieces equal the text, except
//     for white space at the cuts.
// TOKENS-2. A text is cut at the end of a sentence if one fits, otherwise between words, otherwise between characters.

import { shortNameOf, type NoteWriter, unmarkedNotes } from '../../actors/notes/note-marks.ts';
import { note, sentence } from '../../actors/notes/note.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import { toldAs } from './model-words.ts';
import { append, type AppendChannel, type HistoryMessage } from './wire.ts';

export type AppendEvent = ReturnType<typeof append>;

/** The maximum number of pieces per text. A longer text would push the conversation out of the model's context. */
const MAX_PIECES = 16;
const MAX_PENDING = 512;

interface Pending {
  readonly channel: AppendChannel;
  readonly ticket: string;
  /** The text to send again to a resumed session (APPENDS-3); null if this is not needed. */
  readonly memory: string | null;
}

export class Appends {
  readonly #newEventId: () => string;
  readonly #notes: NoteWriter;
  /** The appends without a response, by event id, oldest first. */
  readonly #pending = new Map<string, Pending>();

  constructor(newEventId: () => string, notes: NoteWriter) {
    this.#newEventId = newEventId;
    this.#notes = notes;
  }

  /** The texts that the server has not accepted yet (APPENDS-3), in order. */
  get untaken(): readonly string[] {
    return [...this.#pending.values()].flatMap(({ memory }) => memory ?? []);
  }

  /**
   * Returns the events for this text; empty if the text is only white space. `isKept`: whether the model must remember
   * the text (APPENDS-3).
   */
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

  /** Records that an append was accepted. @returns the text's ticket if all appends of the text have been accepted */
  accepted(channel: AppendChannel, clientEventId: string | null | undefined): string | null {
    const eventId = clientEventId ?? this.#oldestOf(channel);
    const pending = eventId === null ? undefined : this.#pending.get(eventId);
    if (eventId === null || pending === undefined) return null;
    this.#pending.delete(eventId);
    return pending.ticket === eventId ? eventId : null;
  }

  /** Records that an append was rejected. @returns the text's ticket */
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

const OPENER = /^\[(?:note|data) [^\]\s]+\] /gm;
const MAX_OPENER_TOKENS = 32;

/** Splits a text into pieces. A quotation that is too long is continued in the next piece as the same quotation. */
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

const MAX_MESSAGES = 128;
const MAX_TOKENS = 8_192;
/** The tokens that the server adds around each message. */
const TOKENS_AROUND = 8;
/** The tokens in the omission note (HISTORY-2). */
const RESERVED_TOKENS = 64;

/** Returns the content of these commands as messages. */
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

/** The maximum number of tokens per append. The server rejects longer appends. */
export const MAX_APPEND_TOKENS = 500;

// English prose has more than 4 letters per token; keys and codes have about 1.5.
const LOWER_CASE = 0.35;
const UPPER_CASE = 0.8;
const SPACE = 0.4;

/** Returns an upper estimate of the number of tokens in this text. */
export function estimateTokens(text: string): number {
  let tokens = 0;
  for (const character of text) tokens += tokensOf(character);
  return Math.ceil(tokens);
}

function tokensOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x61 && code <= 0x7a) return LOWER_CASE;
  if (code >= 0x41 && code <= 0x5a) return UPPER_CASE;
  if (code === 0x20) return SPACE;
  // The rarest alphabets need two tokens per letter; the others need far fewer.
  if (code < 0x8_00) return 1;
  return code < 0x1_00_00 ? 2 : 4;
}

const sentences = new Intl.Segmenter(undefined, { granularity: 'sentence' });

/**
 * Splits a text into pieces of at most `maxTokens` (TOKENS-1, TOKENS-2). A text of only white space yields no pieces.
 */
export function splitText(text: string, maxTokens = MAX_APPEND_TOKENS): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  const flush = (): void => {
    if (piece.trim() !== '') pieces.push(piece.trim());
    piece = '';
  };
  for (const part of partsOf(text, maxTokens)) {
    if (estimateTokens(piece + part) > maxTokens) flush();
    piece += part;
  }
  flush();
  return pieces;
}

/** Returns the longest start of a text that has at most `maxTokens` tokens. */
export function headOf(text: string, maxTokens: number): string {
  let tokens = 0;
  let head = '';
  for (const character of text) {
    tokens += tokensOf(character);
    if (tokens > maxTokens) break;
    head += character;
  }
  return head;
}

/** Yields the largest parts within `maxTokens`: sentences, otherwise words, otherwise pieces of words. */
function* partsOf(text: string, maxTokens: number): Generator<string> {
  for (const { segment } of sentences.segment(text)) {
    if (estimateTokens(segment) <= maxTokens) yield segment;
    else
      for (const word of segment.split(/(?<=\s)/)) {
        for (let rest = word; rest !== '';) {
          const head = headOf(rest, maxTokens);
          yield head;
          rest = rest.slice(head.length);
        }
      }
  }
}
