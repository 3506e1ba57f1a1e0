// What a voice model remembers of the conversation, kept true: what was heard, not what was
// made, and what it must know without speaking to it.
//
// Owns:     the emulation of what a wire cannot do to the model's memory, and the notes that
//           wait because the wire would have them answered.
// Does not: decide what is worth a note, or keep the conversation (books).
//
// Invariants
//   MODEL-MEMORY-1. Of what was broken off the model remembers what was heard: its end is taken out of
//       its memory, or it is told where it was cut, as it is of what it did not make itself.
//   MODEL-MEMORY-2. A note makes nobody speak. Where the wire has a note answered, it waits for the next
//       request to speak and goes before it; of those that wait the newest `MAX_NOTES` stay
//       (the conversation has them all).
//
// Where an item cannot be deleted nothing is done about words that were not for the model:
// the note that they were answered says so, and an utterance without words says nothing.

import type { Prompt } from '../../actors/notes/note.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { unheardNote, UNPLAYED_NOTE } from './speech-prompts.ts';
import { noteMessages, type AddMessage } from '../connection/note-messages.ts';
import type { Played } from './playout.ts';
import type { TransportCapabilities, TransportCommand } from '../connection/transport.ts';
import type { VoiceTranscript } from './voice-transcript.ts';

const MAX_NOTES = 50;

export class ModelMemory {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #capabilities: TransportCapabilities;
  readonly #send: (command: TransportCommand) => void;
  #waiting: (readonly AddMessage[])[] = [];
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
  note(prompt: Prompt): void {
    this.tell(this.#transcript.note(prompt), prompt);
  }

  /** What is about to be asked for is about this. Once for each id. */
  noteOnce(itemId: string, prompt: Prompt): void {
    if (this.#core.books.conversation.get(itemId)) return;
    this.#transcript.note(prompt, itemId);
    this.tell(itemId, prompt);
  }

  /** It has seen this; whoever comes later has not, and reads the note. */
  noteShown(itemId: string, prompt: Prompt): void {
    this.#transcript.note(prompt, itemId);
  }

  /** A note that is in the conversation, by this id. */
  tell(itemId: string, prompt: Prompt): void {
    this.#add(noteMessages(this.#core.notes, itemId, prompt));
  }

  /** Words that the user typed. */
  typed(itemId: string, words: string): void {
    const text = this.#core.notes.guard(words);
    this.#add([{ type: 'message.add', itemId, role: 'user', text }]);
  }

  /** Messages of the conversation that nobody shall answer. */
  #add(messages: readonly AddMessage[]): void {
    if (this.#capabilities.silentContext) for (const message of messages) this.#send(message);
    else this.#waiting = [...this.#waiting, messages].slice(-MAX_NOTES);
  }

  /** Is this one that waits? */
  isWaiting(command: TransportCommand): boolean {
    if (command.type !== 'message.add') return false;
    return this.#waiting.flat().some(({ itemId }) => itemId === command.itemId);
  }

  /** The model is about to be asked to speak: now it may be told. */
  tellWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting.flat()) this.#send(message);
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
