// One connection's conversation. It contains the items in order, both in the client's form and in the model's form.
//
// Owns:     items, their audio (the latest two minutes), and the words that were recognised and spoken. It does not
//           send events (`realtime-session.ts`) or call the model (`language-model.ts`).

import type { AssistantContent } from 'ai';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { SpokenWords } from '../../voice/speech/spoken-words.ts';
import { Refusal, type WireItem } from './wire-events.ts';

const MAX_ITEMS = 5_000;
const SAMPLES_PER_MS = 24;
/** Audio is stored for `conversation.item.retrieve`, up to two minutes (5.8 MB). */
const MAX_KEPT_SAMPLES = 120_000 * SAMPLES_PER_MS;

/** A message part as the model remembers it. */
export type RememberedPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly url: string }
  /** User audio. `words` resolves once the words have been recognised, and never rejects. */
  | { readonly type: 'sound'; readonly words: Promise<string> }
  /** The part of the assistant's speech that has been heard. */
  | { readonly type: 'speech'; readonly words: SpokenWords };

type ReasoningPart = Extract<Exclude<AssistantContent, string>[number], { type: 'reasoning' }>;

/**
 * The data that a thinking model must receive again together with its call: the reasoning before the call, and
 * signatures.
 */
export interface CallEcho {
  readonly reasoning: readonly ReasoningPart[];
  readonly providerOptions?: ReasoningPart['providerOptions'];
}

/** An item as the model remembers it. */
export type Remembered =
  | {
      readonly kind: 'message';
      readonly role: 'system' | 'user' | 'assistant';
      readonly parts: readonly RememberedPart[];
    }
  | {
      readonly kind: 'call';
      readonly callId: string;
      readonly name: string;
      readonly arguments: string;
      /**
       * The data that the provider must receive again together with the call; absent if there is none or if the call is
       * from another connection.
       */
      readonly echo?: CallEcho | undefined;
    }
  | { readonly kind: 'answer'; readonly callId: string; readonly output: string };

export interface ConversationItem {
  readonly id: string;
  /** The item in the protocol's form, without audio. The object is replaced when the item changes. */
  wire: WireItem;
  remembered: Remembered;
  /** Audio at 24 kHz, in chunks. Old audio is removed. */
  sound: Int16Array[];
}

export class Conversation {
  #items: ConversationItem[] = [];

  get items(): readonly ConversationItem[] {
    return this.#items;
  }

  get lastId(): string | null {
    return this.#items.at(-1)?.id ?? null;
  }

  find(id: string): ConversationItem | undefined {
    return this.#items.find((item) => item.id === id);
  }

  /** Returns the id of the preceding item. */
  previousId(id: string): string | null {
    const index = this.#items.findIndex((item) => item.id === id);
    return this.#items[index - 1]?.id ?? null;
  }

  /**
   * Adds an item at the end or after `previousItemId` (`root` means at the start).
   * @returns the id of the preceding item
   * @throws {Refusal} if the id is already used, `previousItemId` does not exist, or there are too many items
   */
  add(item: ConversationItem, previousItemId?: string | null): string | null {
    if (this.find(item.id) !== undefined) {
      const message = `Item with id '${item.id}' already exists in the conversation.`;
      throw new Refusal('invalid_value', message, 'item.id');
    }
    if (this.#items.length >= MAX_ITEMS) {
      throw new Refusal('conversation_full', `A conversation holds at most ${MAX_ITEMS} items.`);
    }
    this.#items.splice(this.#indexAfter(previousItemId), 0, item);
    this.#forgetOldSound();
    return this.previousId(item.id);
  }

  /** Deletes an item. @returns whether the item existed */
  delete(id: string): boolean {
    const index = this.#items.findIndex((item) => item.id === id);
    if (index >= 0) this.#items.splice(index, 1);
    return index >= 0;
  }

  #indexAfter(previousItemId: string | null | undefined): number {
    if (previousItemId === null || previousItemId === undefined) return this.#items.length;
    if (previousItemId === 'root') return 0;
    const index = this.#items.findIndex((item) => item.id === previousItemId);
    if (index >= 0) return index + 1;
    const message = `Previous item with id '${previousItemId}' not found in the conversation.`;
    throw new Refusal('invalid_value', message, 'previous_item_id');
  }

  #forgetOldSound(): void {
    let kept = 0;
    for (const item of this.#items.toReversed()) {
      kept += item.sound.reduce((sum, piece) => sum + piece.length, 0);
      if (kept > MAX_KEPT_SAMPLES) item.sound = [];
    }
  }
}

/** Returns the item with its audio, in the form of `conversation.item.retrieved`. */
export function withSound(item: ConversationItem): WireItem {
  const { wire, sound } = item;
  if (wire.type !== 'message' || wire.role === 'system' || sound.length === 0) return wire;
  const audio = joinAsBase64(sound);
  if (wire.role === 'user') {
    const content = wire.content.map((part) =>
      part.type === 'input_audio' ? { ...part, audio } : part,
    );
    return { ...wire, content };
  }
  const content = wire.content.map((part) =>
    part.type === 'output_audio' ? { ...part, audio } : part,
  );
  return { ...wire, content };
}

/**
 * Removes the part of an item that was not heard: its audio, and its words from the model's memory.
 * @throws {Refusal} if the item has no audio from the model, or less than `endMs` of it
 */
export function truncateSpeech(item: ConversationItem, endMs: number): void {
  const { remembered, wire } = item;
  const [part] = remembered.kind === 'message' ? remembered.parts : [];
  if (part?.type !== 'speech' || part.words.durationMs === 0) {
    const message = 'Only model output audio messages can be truncated';
    throw new Refusal('unsupported_content_type', message, 'item_id');
  }
  // Clients round to whole milliseconds.
  const durationMs = Math.ceil(part.words.durationMs);
  if (endMs > durationMs) {
    const message = `Audio content of ${durationMs}ms is already shorter than ${endMs}ms`;
    throw new Refusal('invalid_value', message, 'audio_end_ms');
  }
  part.words.truncate(endMs);
  let left = Math.floor(endMs * SAMPLES_PER_MS);
  item.sound = item.sound.flatMap((piece) => {
    const kept = piece.subarray(0, Math.max(0, left));
    left -= piece.length;
    return kept.length === 0 ? [] : [kept];
  });
  if (wire.type === 'message' && wire.role === 'assistant' && wire.content.length > 0) {
    const transcript = part.words.text();
    item.wire = { ...wire, content: [{ type: 'output_audio', transcript }] };
  }
}

function joinAsBase64(pieces: readonly Int16Array[]): string {
  const all = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let filled = 0;
  for (const piece of pieces) {
    all.set(piece, filled);
    filled += piece.length;
  }
  return encodePcm16Base64(all);
}
