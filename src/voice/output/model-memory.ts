// Keeps a voice model's memory accurate. The memory should contain the words that were heard rather than those that
// were generated, and facts that need no reply.
//
// Owns:     the emulation of memory operations that a transport lacks, and the queue of notes for transports whose
//           model would respond to a note.
// Does not: decide which facts need a note, or store the conversation (records).
//
// Invariants
//   MODEL-MEMORY-1. After an interruption, the model's memory contains only the part that was heard: the rest is
//       deleted, or a note tells the model where its speech was cut off. The model also receives such a note about
//       speech on an earlier connection.
//   MODEL-MEMORY-2. A note does not cause the model to speak. If the model would respond to a note, the note is queued
//       until the next response request. Only the newest `MAX_NOTES` queued notes are sent. The conversation contains
//       all of them.
//
// If a transport cannot delete items, words that were not addressed to the model remain in its memory, and a note
// states that they have been answered. An utterance without words needs no note.

import type { Prompt } from '../../actors/notes/note.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
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
  /** Items from an earlier connection, which the current model has only as text. */
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

  /** Informs the model of a fact without requesting a response. */
  note(prompt: Prompt): void {
    this.sendNote(this.#transcript.note(prompt), prompt);
  }

  /** Sends the note to which the next request refers, unless the conversation already contains it. */
  noteOnce(itemId: string, prompt: Prompt): void {
    if (this.#core.records.conversation.get(itemId)) return;
    this.#transcript.note(prompt, itemId);
    this.sendNote(itemId, prompt);
  }

  /** Records a note, which this model does not need, for later connections. */
  noteShown(itemId: string, prompt: Prompt): void {
    this.#transcript.note(prompt, itemId);
  }

  /** Sends a note that the conversation already contains under this id. */
  sendNote(itemId: string, prompt: Prompt): void {
    this.#add(noteMessages(this.#core.notes, itemId, prompt));
  }

  /** Sends words that the user typed. */
  typed(itemId: string, words: string): void {
    const text = this.#core.notes.guard(words);
    this.#add([{ type: 'message.add', itemId, role: 'user', text }]);
  }

  /** Sends messages that the model must not respond to, or queues them. */
  #add(messages: readonly AddMessage[]): void {
    if (this.#capabilities.silentContext) for (const message of messages) this.#send(message);
    else this.#queued = [...this.#queued, messages].slice(-MAX_NOTES);
  }

  isQueued(command: TransportCommand): boolean {
    if (command.type !== 'message.add') return false;
    return this.#queued.flat().some(({ itemId }) => itemId === command.itemId);
  }

  /** Sends the queued notes just before a response request. */
  sendQueued(): void {
    const queued = this.#queued;
    this.#queued = [];
    for (const message of queued.flat()) this.#send(message);
  }

  /** Handles the loss of the connection. It is not known yet how much of the `unsettled` items was heard. */
  connectionLost(unsettled: readonly string[]): void {
    this.#ofAnother = new Set(unsettled);
  }

  /** Clears the queue, because a new connection receives the notes together with the conversation. */
  clearQueue(): void {
    this.#queued = [];
  }

  /** Truncates an item to the part that the user has heard. Returns the words that were heard; null if unknown. */
  heardPart(cut: Played): string | null {
    const { itemId, playedMs } = cut;
    const heard = this.#transcript.cut(cut);
    if (this.#capabilities.truncatesAudio && !this.#ofAnother.has(itemId))
      this.#send({ type: 'playout.truncate', itemId, playedMs });
    else this.note(unheardNote(heard, playedMs));
    return heard;
  }

  /** Removes an item that was not played at all. */
  unplayed(itemId: string): void {
    if (itemId !== '' && this.#capabilities.truncatesAudio)
      this.#send({ type: 'playout.truncate', itemId, playedMs: 0 });
  }

  /** Informs the model that no part of a response was played. */
  silenced(): void {
    if (!this.#capabilities.truncatesAudio) this.note(UNPLAYED_NOTE);
  }

  /** Removes an item that the model must not respond to, or consider to be addressed to it. */
  forget(itemId: string): void {
    if (this.#capabilities.deletesItems) this.#send({ type: 'item.delete', itemId });
  }
}
