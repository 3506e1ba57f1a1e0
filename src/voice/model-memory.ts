// What a voice model remembers of the conversation, kept true: what was heard, not what was
// made, and what it must know without speaking to it.
//
// Owns:     the emulation of what a wire cannot do to the model's memory, and the notes that
//           wait because the wire would have them answered.
// Does not: decide what is worth a note, or keep the conversation (books).
//
// Invariants
//   M1. Of what was broken off the model remembers what was heard: its end is taken out of
//       its memory, or it is told where it was cut, as it is of what it did not make itself.
//   M2. A note makes nobody speak. Where the wire has a note answered, it waits for the next
//       request to speak and goes before it; of those that wait the newest `MAX_NOTES` stay
//       (the conversation has them all).
//
// Where an item cannot be deleted nothing is done about words that were not for the model:
// the note that they were answered says so, and an utterance without words says nothing.

import type { LeadSession } from '../actors/session/session-parts.ts';
import { unheardNote, UNPLAYED_NOTE } from './speech-prompts.ts';
import type { Played } from './playout.ts';
import type { TransportCapabilities, TransportCommand } from './transport.ts';
import type { VoiceTranscript } from './voice-transcript.ts';

const MAX_NOTES = 50;

type Message = Extract<TransportCommand, { type: 'message.add' }>;

export class ModelMemory {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #capabilities: TransportCapabilities;
  readonly #send: (command: TransportCommand) => void;
  #waiting: Message[] = [];
  /** Items that were made on another connection: where there is one now, they are only text. */
  #ofAnother: ReadonlySet<string> = new Set();

  constructor(
    core: LeadSession,
    transcript: VoiceTranscript,
    capabilities: TransportCapabilities,
    send: (command: TransportCommand) => void,
  ) {
    this.#core = core;
    this.#transcript = transcript;
    this.#capabilities = capabilities;
    this.#send = send;
  }

  /** The model shall know this, and not speak to it. */
  note(text: string): void {
    this.add({ type: 'message.add', itemId: this.#transcript.note(text), role: 'system', text });
  }

  /** What is about to be asked for is about this. Once for each id. */
  noteOnce(itemId: string, text: string): void {
    if (this.#core.books.conversation.get(itemId)) return;
    this.#transcript.note(text, itemId);
    this.add({ type: 'message.add', itemId, role: 'system', text });
  }

  /** It has seen this; whoever comes later has not, and reads the note. */
  noteShown(itemId: string, text: string): void {
    this.#transcript.note(text, itemId);
  }

  /** A message of the conversation that nobody shall answer. */
  add(message: Message): void {
    if (this.#capabilities.silentContext) this.#send(message);
    else this.#waiting = [...this.#waiting, message].slice(-MAX_NOTES);
  }

  /** Is this one that waits? */
  isWaiting(command: TransportCommand): boolean {
    if (command.type !== 'message.add') return false;
    return this.#waiting.some(({ itemId }) => itemId === command.itemId);
  }

  /** The model is about to be asked to speak: now it may be told. */
  tellWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting) this.#send(message);
  }

  /** The connection is gone, and of these items it is not known yet how much is heard. */
  lineLost(unsettled: readonly string[]): void {
    this.#ofAnother = new Set(unsettled);
  }

  /** Another connection has been told the conversation. */
  retold(): void {
    this.#waiting = [];
  }

  /** The user heard only a part of this item. */
  heardPart(cut: Played): void {
    const { itemId, playedMs } = cut;
    const heard = this.#transcript.cut(cut);
    if (this.#capabilities.truncatesAudio && !this.#ofAnother.has(itemId))
      this.#send({ type: 'playout.truncate', itemId, playedMs });
    else this.note(unheardNote(heard, playedMs));
  }

  /** Nothing of this item was played. */
  unplayed(itemId: string): void {
    if (itemId !== '' && this.#capabilities.truncatesAudio)
      this.#send({ type: 'playout.truncate', itemId, playedMs: 0 });
  }

  /** Nothing of a response was played. */
  silenced(): void {
    if (!this.#capabilities.truncatesAudio) this.note(UNPLAYED_NOTE);
  }

  /** The model shall not answer it, nor believe that it was meant. */
  forget(itemId: string): void {
    if (this.#capabilities.deletesItems) this.#send({ type: 'item.delete', itemId });
  }
}
