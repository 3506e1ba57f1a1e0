// Corrects the memory of a text model: the model knows everything that it wrote, and is told which part was
// heard.
//
// Owns:     the items that may still be cut, and their replacements in the model's conversation.
// Does not: know how much was played; it receives reports.
//
// Invariants
//   VOICED-MEMORY-1. If the wire can delete an item, its unheard part is removed: a message with the heard
//        part replaces it. The removed part is never put back.
//   VOICED-MEMORY-2. Otherwise the session tells the model which part of a cut item was heard; this component
//        tells it about text that was never spoken.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import { UNPLAYED_NOTE, unheardNote } from '../output/speech-prompts.ts';
import type { TransportCapabilities, TransportCommand } from '../connection/transport.ts';
import type { SpokenItem } from './spoken-item.ts';
import type { SpokenResponse } from './spoken-response.ts';
import { noteMessages } from '../output/replay.ts';

/** Only this many of the newest items can still be cut. */
const MAX_ITEMS = 100;

interface Remembered {
  readonly item: SpokenItem;
  /** The id of the message in the model's conversation; null if there is none any more. */
  memoryId: string | null;
  text: string;
  heardMs: number;
  cuts: number;
}

/** Returns whether written text can be cut on this wire. */
export function cutsWords(can: TransportCapabilities): boolean {
  return can.deletesItems && can.silentContext;
}

export class VoicedMemory {
  readonly #can: TransportCapabilities;
  readonly #send: (command: TransportCommand) => void;
  readonly #items = new Map<string, Remembered>();

  constructor(can: TransportCapabilities, send: (command: TransportCommand) => void) {
    this.#can = can;
    this.#send = send;
  }

  /** Cuts an item to the part that the user heard. */
  heard(itemId: string, playedMs: number): void {
    const remembered = this.#items.get(itemId);
    if (remembered) this.#cut(remembered, playedMs, false);
  }

  /** Records an item that may be cut from now on. */
  said(item: SpokenItem): void {
    if (item.isOutOfBand || this.#items.has(item.itemId)) return;
    const { itemId } = item;
    const begun = { item, memoryId: itemId, text: '', heardMs: Number.POSITIVE_INFINITY, cuts: 0 };
    this.#items.set(itemId, begun);
    for (const oldest of this.#items.keys()) {
      if (this.#items.size <= MAX_ITEMS) break;
      this.#items.delete(oldest);
    }
  }

  /** Handles a response that was not spoken to its end, however much of it is played. */
  brokenOff({ items, isOutOfBand }: SpokenResponse, noteId: () => string, notes: NoteWriter): void {
    if (isOutOfBand) return;
    if (cutsWords(this.#can)) {
      // The model may have written more before it learned of the cancellation.
      for (const { itemId } of items) {
        const remembered = this.#items.get(itemId);
        if (remembered) this.#cut(remembered, Number.POSITIVE_INFINITY, true);
      }
      return;
    }
    const soundMs = items.reduce((sum, item) => sum + item.soundMs, 0);
    const isWritten = items.some(({ written }) => written.trim() !== '');
    if (!isWritten || !this.#can.silentContext) return;
    const spoken = items.map((item) => item.textUntil(Number.POSITIVE_INFINITY)).join('');
    const note = soundMs === 0 ? UNPLAYED_NOTE : unheardNote(spoken.trim(), soundMs);
    for (const message of noteMessages(notes, noteId(), note)) this.#send(message);
  }

  #cut(remembered: Remembered, playedMs: number, isUnsure: boolean): void {
    if (!cutsWords(this.#can)) return;
    const { item, memoryId, cuts } = remembered;
    remembered.heardMs = Math.min(remembered.heardMs, playedMs);
    const text = item.textUntil(remembered.heardMs).trimEnd();
    const isKnown = cuts > 0 || !isUnsure;
    const before = cuts > 0 ? remembered.text : item.written.trimEnd();
    if (memoryId === null || (isKnown && text === before)) return;
    remembered.cuts += 1;
    remembered.text = text;
    remembered.memoryId = text === '' ? null : `${item.itemId}.${remembered.cuts}`;
    if (remembered.memoryId !== null) {
      this.#send({
        type: 'message.add',
        itemId: remembered.memoryId,
        role: 'assistant',
        text,
        afterItemId: memoryId,
      });
    }
    this.#send({ type: 'item.delete', itemId: memoryId });
  }
}
