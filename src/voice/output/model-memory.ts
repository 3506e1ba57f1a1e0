// Keeps the conversation memory of a voice model accurate: the memory holds the words that were heard instead
// of those that were generated, and the facts that the model must know without speaking to them.
//
// Owns:     the emulation of memory operations that a transport lacks, and the notes that are queued because
//           the transport would have them answered.
// Does not: decide which facts are worth a note, or keep the conversation (records).
//
// Invariants
//   MODEL-MEMORY-1. After an interruption the model's memory holds only the part that was heard: the rest is
//       deleted from it, or a note tells the model where it was cut off. The model also gets such a note
//       about speech that it did not generate itself.
//   MODEL-MEMORY-2. A note makes no agent speak. If the transport would have a note answered, the note is
//       queued and sent just before the next request to speak; the newest `MAX_NOTES` queued notes are kept
//       (the conversation has them all).
//
// If a transport cannot delete items, words that were not addressed to the model stay in its memory: a note
// says that they were answered. An utterance without words needs none.

import type { Prompt } from '../../actors/notes/note.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { noteMessages, type AddMessage } from './replay.ts';
import { unheardNote, UNPLAYED_NOTE } from './speech-prompts.ts';
import type { Played } from './playout.ts';
import type { TransportCapabilities, TransportCommand } from '../connection/transport.ts';
import type { VoiceTranscript } from './voice-transcript.ts';

const MAX_NOTES = 50;

export class ModelMemory {
  readonly #core: LeadSession;
  readonly #transcript: VoiceTranscript;
  readonly #capabilities: TransportCapabilities;
  readonly #send: (command: TransportCommand) => void;
  #queued: (readonly AddMessage[])[] = [];
  /** Items made on an earlier connection: on the current connection they are only text. */
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

  /** Tells the model a fact without having it answered. */
  note(prompt: Prompt): void {
    this.sendNote(this.#transcript.note(prompt), prompt);
  }

  /** Sends the note that the next request is about; once per id. */
  noteOnce(itemId: string, prompt: Prompt): void {
    if (this.#core.records.conversation.get(itemId)) return;
    this.#transcript.note(prompt, itemId);
    this.sendNote(itemId, prompt);
  }

  /**
   * Records a note that this connection has already seen; later connections read it from the conversation.
   */
  noteShown(itemId: string, prompt: Prompt): void {
    this.#transcript.note(prompt, itemId);
  }

  /** Sends a note that the conversation already has under this id. */
  sendNote(itemId: string, prompt: Prompt): void {
    this.#add(noteMessages(this.#core.notes, itemId, prompt));
  }

  /** Sends words that the user typed. */
  typed(itemId: string, words: string): void {
    const text = this.#core.notes.guard(words);
    this.#add([{ type: 'message.add', itemId, role: 'user', text }]);
  }

  /** Adds messages that the model must not answer. */
  #add(messages: readonly AddMessage[]): void {
    if (this.#capabilities.silentContext) for (const message of messages) this.#send(message);
    else this.#queued = [...this.#queued, messages].slice(-MAX_NOTES);
  }

  /** Returns whether this command is to be queued. */
  isQueued(command: TransportCommand): boolean {
    if (command.type !== 'message.add') return false;
    return this.#queued.flat().some(({ itemId }) => itemId === command.itemId);
  }

  /** Sends the queued notes just before a request to speak. */
  sendQueued(): void {
    const queued = this.#queued;
    this.#queued = [];
    for (const message of queued.flat()) this.#send(message);
  }

  /** Handles the loss of the connection. The heard part of `unsettled` items is not known yet. */
  connectionLost(unsettled: readonly string[]): void {
    this.#ofAnother = new Set(unsettled);
  }

  /** Records that a new connection has received the conversation. */
  clearQueue(): void {
    this.#queued = [];
  }

  /** Cuts an item to the part that the user heard. Returns its words; null if they are unknown. */
  heardPart(cut: Played): string | null {
    const { itemId, playedMs } = cut;
    const heard = this.#transcript.cut(cut);
    if (this.#capabilities.truncatesAudio && !this.#ofAnother.has(itemId))
      this.#send({ type: 'playout.truncate', itemId, playedMs });
    else this.note(unheardNote(heard, playedMs));
    return heard;
  }

  /** Removes an item of which nothing was played. */
  unplayed(itemId: string): void {
    if (itemId !== '' && this.#capabilities.truncatesAudio)
      this.#send({ type: 'playout.truncate', itemId, playedMs: 0 });
  }

  /** Tells the model that no part of a response was played. */
  silenced(): void {
    if (!this.#capabilities.truncatesAudio) this.note(UNPLAYED_NOTE);
  }

  /** Removes an item that the model must neither answer nor take as addressed to it. */
  forget(itemId: string): void {
    if (this.#capabilities.deletesItems) this.#send({ type: 'item.delete', itemId });
  }
}
