// What is said in a voice session, written down: into the conversation, that subagents
// and reconnects read, and onto screens.
//
// Owns:     how speech becomes text: partials, the end, and what is left of it after
//           an interruption; what was understood so far of what the user still says.
// Does not: decide who is meant by what was said.

import type { ConversationItem } from '../../actors/conversation/items.ts';
import type { Prompt } from '../../actors/notes/note.ts';
import { intoConversation, noted } from '../../actors/session/state/live-conversation.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { ProviderError } from '../../values/errors.ts';
import type { Played } from './playout.ts';
import type { TransportEvent } from '../connection/transport.ts';

/** So many messages the model may be saying at a time. */
const MAX_UNFINISHED = 32;

export class VoiceTranscript {
  readonly #core: LeadSession;
  /** What the user is saying, as far as it was understood, by utterance. */
  readonly #unfinished = new Map<string, string>();

  constructor(core: LeadSession) {
    this.#core = core;
  }

  /** What was understood of what the user has not ended saying. */
  get unfinished(): string {
    return [...this.#unfinished.values()].join(' ').trim();
  }

  /** What was understood so far of an utterance; empty: nothing. */
  unfinishedOf(utteranceId: string): string {
    return (this.#unfinished.get(utteranceId) ?? '').trim();
  }

  /** It is whole, or nothing more will come of it. */
  finished(utteranceId: string): void {
    this.#unfinished.delete(utteranceId);
  }

  /** Whoever listened is gone. */
  reset(): void {
    this.#unfinished.clear();
  }

  /** The connection is gone: what it had begun to say or to understand stays as it is. */
  lost(): void {
    this.reset();
    for (const { itemId, text, saidAt } of this.#core.books.unfinished) {
      intoConversation(this.#core, { type: 'assistant.said', itemId, text, saidAt });
      this.#show(itemId);
    }
  }

  /** The user's words so far. */
  userPartial(utteranceId: string, text: string, startedAt: number): void {
    this.#unfinished.set(utteranceId, text);
    const item = { id: utteranceId, role: 'user', text, final: false, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  /** The model's words; partials append. */
  modelSaid(event: Extract<TransportEvent, { type: 'assistant.transcribed' }>): void {
    const { books } = this.#core;
    const { itemId, text, final } = event;
    const said = books.item(itemId);
    const saidAt = said?.at ?? this.#now();
    // What was cut off stays as it was heard, whatever comes late.
    if (isOpen(said) && !final) {
      // What is too long to be shown is not shown again with every word.
      if (books.saying(itemId, text, saidAt)) this.#show(itemId);
      if (books.sayings > MAX_UNFINISHED) this.#finishOldest();
      return;
    }
    if (isOpen(said))
      intoConversation(this.#core, { type: 'assistant.said', itemId, text, saidAt });
    this.#show(itemId);
  }

  /** A model that begins messages and ends none: what it said of the oldest is all of it. */
  #finishOldest(): void {
    const [oldest] = this.#core.books.unfinished;
    if (!oldest) return;
    const { itemId, text, saidAt } = oldest;
    intoConversation(this.#core, { type: 'assistant.said', itemId, text, saidAt });
    this.#show(itemId);
    this.#core.reportError(
      new ProviderError(
        'TOO_MANY_MESSAGES',
        `The model has begun more than ${MAX_UNFINISHED} messages and ended none: the oldest counts as ended`,
      ),
      'transport',
    );
  }

  /** Of this item the user heard only a part. Returns what, in words; null: they are not known. */
  cut({ itemId: id, playedMs, sentMs }: Played): string | null {
    const { books, projection } = this.#core;
    const said = books.conversation.get(id);
    let heard: string | null = null;
    if (said?.role === 'assistant') {
      const text = heardPart(said.text, playedMs / sentMs);
      heard = text;
      intoConversation(this.#core, {
        type: 'assistant.cut',
        itemId: id,
        text,
        audioHeardMs: playedMs,
        ...(said.partial && { saidAt: said.at }),
      });
      this.#show(id);
    }
    projection.emit({ type: 'speech.interrupted', itemId: id, playedMs });
    return heard;
  }

  /** The lead agent asks the user something in one of these items. */
  asks(itemIds: readonly string[]): boolean {
    const { conversation } = this.#core.books;
    return itemIds.some((itemId) => {
      const said = conversation.get(itemId);
      return said?.role === 'assistant' && /[?？؟]/.test(said.text);
    });
  }

  /** A word of the runtime to the model. Returns the id of its item. */
  note(prompt: Prompt, id = this.#core.host.environment.ids.next('note')): string {
    intoConversation(this.#core, noted(id, prompt, 'system', this.#now()));
    return id;
  }

  /** What is written down of what the model said. */
  #show(itemId: string): void {
    const { books, projection } = this.#core;
    const said = books.item(itemId);
    if (said?.role !== 'assistant') return;
    const { id, role, text, at, partial, interrupted } = said;
    const item = { id, role, text, final: !partial, at, ...(interrupted && { interrupted }) };
    projection.emit({ type: 'transcript.changed', item });
  }

  #now(): number {
    return this.#core.host.environment.clock.now();
  }
}

/** More of it may come. */
function isOpen(item: ConversationItem | undefined): boolean {
  return item === undefined || (item.role === 'assistant' && item.partial);
}

/** The words that fit into the part of the audio that was played: speech is even enough for that. */
function heardPart(text: string, fraction: number): string {
  if (fraction >= 1) return text;
  const words = text.split(/(?<=\s)/);
  const heard = Math.floor(words.length * Math.max(0, fraction));
  return words.slice(0, heard).join('').trimEnd();
}
