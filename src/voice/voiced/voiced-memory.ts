// What a model that writes remembers of what it said: it knows all that it wrote, and shall know
// what was heard.
//
// Owns:     the items that may still be cut, and what stands for them in the model's conversation.
// Does not: know what was played; it is told.
//
// Invariants
//   VOICED-MEMORY-1. Where the wire can delete an item, what was not heard of it is taken out: in its place
//        stands what was. It is never put back.
//   VOICED-MEMORY-2. Elsewhere the session tells the model what was heard of an item that it cut; of what was
//        never spoken it is told here.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import { noteMessages } from '../connection/note-messages.ts';
import { UNPLAYED_NOTE, unheardNote } from '../output/speech-prompts.ts';
import type { TransportCapabilities, TransportCommand } from '../connection/transport.ts';
import type { SpokenItem } from './spoken-item.ts';
import type { SpokenResponse } from './spoken-response.ts';

/** What was said so long ago is not cut any more. */
const MAX_ITEMS = 100;

interface Remembered {
  readonly item: SpokenItem;
  /** Of the message in the model's conversation; null: there is none any more. */
  memoryId: string | null;
  text: string;
  heardMs: number;
  cuts: number;
}

/** What was written can be cut on this wire. */
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

  /** The user heard only so much of this item. */
  heard(itemId: string, playedMs: number): void {
    const remembered = this.#items.get(itemId);
    if (remembered) this.#cut(remembered, playedMs, false);
  }

  /** Something of it may be cut from now on. */
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

  /** It was not spoken to its end, whatever is played of it. */
  brokenOff({ items, isOutOfBand }: SpokenResponse, noteId: () => string, notes: NoteWriter): void {
    if (isOutOfBand) return;
    if (cutsWords(this.#can)) {
      // What the model wrote last, before it knew, we may not have seen.
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
