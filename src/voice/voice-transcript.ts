// What is said in a voice session, written down: into the conversation, that subagents
// and reconnects read, and onto screens.
//
// Owns:     how speech becomes text: partials, the end, and what is left of it after
//           an interruption.
// Does not: decide who is meant by what was said.

import type { LeadSession } from '../actors/session/session-parts.ts';
import type { Played } from './playout.ts';
import type { TransportEvent } from './transport.ts';

export class VoiceTranscript {
  readonly #core: LeadSession;

  constructor(core: LeadSession) {
    this.#core = core;
  }

  /** The user's words so far. */
  userPartial(utteranceId: string, text: string, startedAt: number): void {
    const item = { id: utteranceId, role: 'user', text, final: false, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  /** The model's words; partials append. */
  modelSaid(event: Extract<TransportEvent, { type: 'assistant.transcribed' }>): void {
    const { books, projection } = this.#core;
    const { itemId: id, text, final } = event;
    const at = books.conversation.get(id)?.at ?? this.#now();
    const begun = books.conversation.begin({ id, role: 'assistant', at });
    books.conversation = final ? begun.finish(id, text) : begun.append(id, text);
    const item = books.conversation.get(id);
    if (item?.role !== 'assistant') return;
    // What was cut off stays as it was heard, whatever comes late.
    const interrupted = item.interrupted === true;
    projection.emit({
      type: 'transcript.changed',
      item: {
        id,
        role: 'assistant',
        text: item.text,
        final: final || interrupted,
        at,
        ...(interrupted ? { interrupted } : {}),
      },
    });
  }

  /** Of this item the user heard only a part. */
  cut({ itemId: id, playedMs, sentMs }: Played): void {
    const { books, projection } = this.#core;
    const said = books.conversation.get(id);
    if (said?.role === 'assistant') {
      const text = heardPart(said.text, playedMs / sentMs);
      books.conversation = books.conversation.interrupt(id, { audioHeardMs: playedMs, text });
      const item = { id, role: 'assistant', text, final: true, at: said.at } as const;
      projection.emit({ type: 'transcript.changed', item: { ...item, interrupted: true } });
    }
    projection.emit({ type: 'speech.interrupted', itemId: id, playedMs });
  }

  /** A word of the runtime to the model. Returns the id of its item. */
  note(text: string, id = this.#core.host.environment.ids.next('note')): string {
    const { books } = this.#core;
    books.conversation = books.conversation.add({ id, role: 'system', text, at: this.#now() });
    return id;
  }

  #now(): number {
    return this.#core.host.environment.clock.now();
  }
}

/** The words that fit into the part of the audio that was played: speech is even enough for that. */
function heardPart(text: string, fraction: number): string {
  if (fraction >= 1) return text;
  const words = text.split(/(?<=\s)/);
  const heard = Math.floor(words.length * Math.max(0, fraction));
  return words.slice(0, heard).join('').trimEnd();
}
