// Records a voice session's speech in the conversation, which subagents and new connections read, and sends it to clients.
//
// Owns:     how speech becomes text (the partials, the end, the part heard before an interruption), and the words of
//           the user's unfinished utterances.
// Does not: decide to whom an utterance is addressed.

import type { ConversationItem } from '../../actors/conversation/items.ts';
import type { Prompt } from '../../actors/notes/note.ts';
import {
  intoConversation,
  noted,
  type Unfinished,
} from '../../actors/session/state/live-conversation.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { ProviderError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import type { Played } from './playout.ts';
import type { TransportEvent } from '../connection/transport.ts';

/** The maximum number of unfinished model messages. */
const MAX_UNFINISHED = 32;

export class VoiceTranscript {
  readonly #core: LeadSession;
  /** The words heard so far in the user's unfinished utterances, by utterance id. */
  readonly #unfinished = new Map<string, string>();

  /** The conversation item that each unfinished model message replies to (see `Responses.repliesTo`). */
  readonly #repliesTo = new Map<string, string | null>();

  constructor(core: LeadSession) {
    this.#core = core;
  }

  /** The start times of utterances whose words are shown to clients before the addressee is known. */
  readonly #shown = new Map<string, number>();

  /** The words heard so far in all unfinished utterances. */
  get unfinished(): string {
    return [...this.#unfinished.values()].join(' ').trim();
  }

  /** Returns the words heard so far in an utterance; empty if there are none. */
  unfinishedOf(utteranceId: string): string {
    return (this.#unfinished.get(utteranceId) ?? '').trim();
  }

  /** Marks an utterance as finished, so that no more words are expected. */
  finished(utteranceId: string): void {
    this.#unfinished.delete(utteranceId);
  }

  /** Removes the unfinished utterances, because the connection or agent that was listening is gone. */
  reset(): void {
    this.#unfinished.clear();
  }

  /** Handles the loss of the connection: unfinished messages end with the words received so far. */
  connectionLost(): void {
    this.reset();
    for (const unfinished of this.#core.records.unfinished) this.#said(unfinished);
  }

  /** Records the user's words so far. */
  userPartial(utteranceId: string, text: string, startedAt: number): void {
    this.#unfinished.set(utteranceId, text);
    this.#shown.set(utteranceId, startedAt);
    forgetOldest(this.#shown, MAX_UNFINISHED);
    const item = { id: utteranceId, role: 'user', text, final: false, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  /** Withdraws the words of an utterance that is not addressed to any agent. */
  withdraw(id: string): void {
    const at = this.#shown.get(id);
    if (at === undefined) return;
    this.#shown.delete(id);
    const item = { id, role: 'user', text: '', final: true, at } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  /** Records the model's words; partials are appended. `repliesTo`: see `Responses.repliesTo`. */
  modelSaid(
    event: Extract<TransportEvent, { type: 'assistant.transcribed' }>,
    repliesTo: string | null | undefined,
  ): void {
    const { records } = this.#core;
    const { itemId, text, final } = event;
    const said = records.item(itemId);
    const saidAt = said?.at ?? this.#now();
    if (isOpen(said) && repliesTo !== undefined) this.#repliesTo.set(itemId, repliesTo);
    // Words that arrive late do not change an interrupted message.
    if (isOpen(said) && !final) {
      // A message that exceeds the clients' size limit is not sent again for each word.
      if (records.saying(itemId, text, saidAt)) this.#show(itemId);
      if (records.sayings > MAX_UNFINISHED) this.#finishOldest();
      return;
    }
    if (isOpen(said)) this.#said({ itemId, text, saidAt });
    else this.#show(itemId);
  }

  /** If a model starts messages without ever ending one, ends the oldest message with its words so far. */
  #finishOldest(): void {
    const [oldest] = this.#core.records.unfinished;
    if (!oldest) return;
    this.#said(oldest);
    this.#core.reportError(
      new ProviderError(
        'TOO_MANY_MESSAGES',
        `The model has begun more than ${MAX_UNFINISHED} messages and ended none: the oldest counts as ended`,
      ),
      'transport',
    );
  }

  /** Truncates an item to the part that the user has heard. Returns the words that were heard; null if unknown. */
  cut({ itemId: id, playedMs, sentMs }: Played): string | null {
    const { records, projection } = this.#core;
    const said = records.conversation.get(id);
    let heard: string | null = null;
    if (said?.role === 'assistant') {
      const text = heardPart(said.text, playedMs / sentMs);
      heard = text;
      const repliesTo = this.#repliesTo.get(id);
      this.#repliesTo.delete(id);
      intoConversation(this.#core, {
        type: 'assistant.cut',
        itemId: id,
        text,
        audioHeardMs: playedMs,
        ...(said.partial && { saidAt: said.at }),
        ...(said.partial && repliesTo !== undefined ? { repliesTo } : {}),
      });
      this.#show(id);
    }
    projection.emit({ type: 'speech.interrupted', itemId: id, playedMs });
    return heard;
  }

  wordsOf(itemIds: Iterable<string>): string {
    const said = [...itemIds].map((itemId) => this.#core.records.item(itemId));
    return said.flatMap((item) => (item?.role === 'assistant' ? [item.text] : [])).join(' ');
  }

  /** Returns whether one of these items contains a question from the lead agent to the user. */
  asks(itemIds: readonly string[]): boolean {
    const { conversation } = this.#core.records;
    return itemIds.some((itemId) => {
      const said = conversation.get(itemId);
      return said?.role === 'assistant' && /[?？؟]/.test(said.text);
    });
  }

  /** Records a note from the runtime to the model. Returns the id of the note's item. */
  note(prompt: Prompt, id = this.#core.host.environment.ids.next('note')): string {
    intoConversation(this.#core, noted(id, prompt, 'system', this.#now()));
    return id;
  }

  /** Records a finished model message. */
  #said({ itemId, text, saidAt }: Unfinished): void {
    const repliesTo = this.#repliesTo.get(itemId);
    this.#repliesTo.delete(itemId);
    intoConversation(this.#core, {
      type: 'assistant.said',
      itemId,
      text,
      saidAt,
      ...(repliesTo === undefined ? {} : { repliesTo }),
    });
    this.#show(itemId);
  }

  /** Sends a model message to clients. */
  #show(itemId: string): void {
    const { records, projection } = this.#core;
    const said = records.item(itemId);
    if (said?.role !== 'assistant') return;
    const { id, role, text, at, partial, interrupted } = said;
    const item = { id, role, text, final: !partial, at, ...(interrupted && { interrupted }) };
    projection.emit({ type: 'transcript.changed', item });
  }

  #now(): number {
    return this.#core.host.environment.clock.now();
  }
}

/** Returns whether more words of the item may follow. */
function isOpen(item: ConversationItem | undefined): boolean {
  return item === undefined || (item.role === 'assistant' && item.partial);
}

/** Returns the words in the played part of the audio, assuming an even pace of speech. */
function heardPart(text: string, fraction: number): string {
  if (fraction >= 1) return text;
  const words = text.split(/(?<=\s)/).flatMap(wordsIn);
  const heard = Math.floor(words.length * Math.max(0, fraction));
  return words.slice(0, heard).join('').trimEnd();
}

/** Scripts that do not use spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });

function wordsIn(piece: string): readonly string[] {
  return UNSPACED.test(piece)
    ? [...segmenter.segment(piece)].map(({ segment }) => segment)
    : [piece];
}
