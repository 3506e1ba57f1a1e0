// The conversation of a session as it is read, and what of it is kept. What is kept follows
// from committed events alone. What is read is that, and on top of it what was said but is not
// committed yet, and what is being said.
//
// Owns:     the conversation, and the words that are on their way into it.
// Does not: tell the session's unit of them (`intoConversation` is for whoever says something),
//           or keep the calls whose results it names (books).
//
// Invariants
//   LIVE-CONVERSATION-1. What is kept is a function of the folded events: nothing else changes it.
//   LIVE-CONVERSATION-2. What was said can be read at once, whenever its event is committed; then it stands
//       where the same event puts it when it is folded again.
//   LIVE-CONVERSATION-3. Words that are still being said are never kept: a rate is no event.
//   LIVE-CONVERSATION-5. Words are appended in constant time: what is read of a message is its beginning, and its
//       whole is put together once, when it is over.
//   LIVE-CONVERSATION-4. What is said stands before whatever came while it was being said, also if that began
//       in the same millisecond.

import { head as headOf } from '../../../values/clip.ts';
import { ConversationLog } from '../../conversation/conversation.ts';
import type { ConversationItem } from '../../conversation/items.ts';
import type { ConversationLimits } from '../../conversation/limits.ts';
import type { Prompt } from '../../notes/note.ts';
import type { ConversationEvent } from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';

/** What the lead agent is saying. */
interface Saying {
  readonly saidAt: number;
  /** What of it is read (LIVE-CONVERSATION-5). */
  head: string;
  /** All of it, in pieces. */
  readonly pieces: string[];
  chars: number;
  /** The item that stood last of those that began in the same millisecond. */
  readonly behind: string | null;
}

/** What is being said, as far as it came. */
export interface Unfinished {
  readonly itemId: string;
  readonly text: string;
  readonly saidAt: number;
}

export class LiveConversation {
  readonly #empty: ConversationLog;
  #kept: ConversationLog;
  /** Told to the unit and not folded yet, in this order. */
  readonly #ahead: ConversationEvent[] = [];
  readonly #saying = new Map<string, Saying>();
  /** What is kept, and what will be; null: to be worked out. */
  #told: ConversationLog | null = null;
  #read: ConversationLog | null = null;
  readonly #outputOf: (callId: string) => unknown;

  /** `outputOf`: what a call has come to; undefined: nothing is known of it. */
  constructor(limits: Partial<ConversationLimits>, outputOf: (callId: string) => unknown) {
    this.#empty = ConversationLog.empty(limits);
    this.#kept = this.#empty;
    this.#outputOf = outputOf;
  }

  /** What follows from the events that were folded (LIVE-CONVERSATION-1). */
  get kept(): ConversationLog {
    return this.#kept;
  }

  /** Goes on from what was kept; `rest` is the JSON of it. */
  restore(rest: unknown): void {
    this.#kept = ConversationLog.fromJSON(rest, this.#kept.limits);
    this.#changed();
  }

  /** Nothing was folded. What is on its way, or being said, is. */
  reset(): void {
    this.#kept = this.#empty;
    this.#changed();
  }

  /** As it is read. */
  get log(): ConversationLog {
    this.#read ??= [...this.#saying].reduce((log, [id, { saidAt: at, head, chars }]) => {
      const before = this.#follower(id);
      const begun = log.begin({ id, role: 'assistant', at, before });
      return begun.append(id, head).omit(id, chars - head.length);
    }, this.#withAhead);
    return this.#read;
  }

  /** One item of it, as it is read. What is being said is not worth working out all the rest for. */
  item(id: string): ConversationItem | undefined {
    const saying = this.#read ? undefined : this.#saying.get(id);
    if (!saying) return this.log.get(id);
    const { saidAt: at, head, chars } = saying;
    const begun = this.#empty.begin({ id, role: 'assistant', at });
    return begun
      .append(id, head)
      .omit(id, chars - head.length)
      .get(id);
  }

  /** Takes in what an event does to what is kept. */
  change(change: (kept: ConversationLog) => ConversationLog): void {
    this.#kept = change(this.#kept);
    this.#changed();
  }

  /** Takes in an event of the session's unit: it is not on its way any more. */
  fold(event: ConversationEvent): void {
    const about = isAbout(event);
    const index = this.#ahead.findIndex((one) => isAbout(one) === about);
    if (index !== -1) this.#ahead.splice(index, 1);
    this.#kept = this.#after(this.#kept, event);
    // The oldest of those that were shown ahead: what is read is what it was. With the last one, what
    // is kept says it all: nothing is held twice.
    if (index !== 0 || this.#ahead.length === 0) this.#changed();
  }

  /** Shows what is about to be told to the unit; returns it as it shall be told. */
  expect(event: ConversationEvent): ConversationEvent {
    let told = event;
    if (event.type === 'assistant.said' || event.type === 'assistant.cut') {
      const before = this.#follower(event.itemId);
      if (before !== null) told = { ...event, before };
      this.#saying.delete(event.itemId);
    }
    // Behind all that is ahead: nothing of it need be worked out again.
    this.#told = this.#after(this.#withAhead, told);
    this.#read = null;
    this.#ahead.push(told);
    return told;
  }

  /**
   * More words of what the lead agent began to say at `saidAt`. Returns whether more of it is read
   * than before.
   */
  saying(itemId: string, words: string, saidAt: number): boolean {
    const saying = this.#saying.get(itemId) ?? {
      saidAt,
      head: '',
      pieces: [],
      chars: 0,
      behind: this.#withAhead.items.findLast(({ at }) => at === saidAt)?.id ?? null,
    };
    this.#saying.set(itemId, saying);
    const isWhole = saying.chars === saying.head.length;
    const { maxItemChars } = this.#empty.limits;
    if (isWhole) saying.head = headOf(saying.head + words, maxItemChars);
    const hasGrown = isWhole && saying.head.length > saying.chars;
    saying.pieces.push(words);
    saying.chars += words.length;
    this.#read = null;
    return hasGrown;
  }

  /** How many messages are being said. */
  get sayings(): number {
    return this.#saying.size;
  }

  get unfinished(): readonly Unfinished[] {
    return [...this.#saying].map(([itemId, { pieces, saidAt }]) => ({
      itemId,
      text: pieces.join(''),
      saidAt,
    }));
  }

  get #withAhead(): ConversationLog {
    this.#told ??= this.#ahead.reduce((log, event) => this.#after(log, event), this.#kept);
    return this.#told;
  }

  /** What came first while this was being said, in the millisecond in which it began (LIVE-CONVERSATION-4). */
  #follower(itemId: string): string | null {
    const saying = this.#saying.get(itemId);
    if (!saying) return null;
    const { saidAt, behind } = saying;
    const alike = this.#withAhead.items.filter(({ at }) => at === saidAt);
    return alike[alike.findIndex(({ id }) => id === behind) + 1]?.id ?? null;
  }

  #after(log: ConversationLog, event: ConversationEvent): ConversationLog {
    switch (event.type) {
      case 'conversation.noted': {
        const { itemId: id, role, text, saidAt: at, note } = event;
        return note ? log.addNote({ id, role, note, at }) : log.add({ id, role, text, at });
      }
      case 'assistant.said': {
        const { itemId: id, text, saidAt: at, before } = event;
        return log.add({ id, role: 'assistant', text, at, before });
      }
      case 'assistant.cut': {
        const { itemId: id, text, audioHeardMs, saidAt: at, before } = event;
        const begun = at === undefined ? log : log.begin({ id, role: 'assistant', at, before });
        return begun.interrupt(id, { text, audioHeardMs });
      }
      case 'tool.called': {
        const { callId, name: toolName, arguments: json, calledAt: at = 0, isFollowed } = event;
        return log.toolCall({ callId, toolName, args: parsed(json), at, isFollowed });
      }
      case 'call.answered': {
        const { callId, answeredAt: at, failed } = event;
        const value = 'output' in event ? event.output : this.#outputOf(callId);
        return value === undefined ? log : log.toolResult({ callId, at, value, failed });
      }
    }
  }

  #changed(): void {
    this.#told = null;
    this.#read = null;
  }
}

/** A note of the runtime, as the session's unit is told of it. */
export function noted(
  itemId: string,
  prompt: Prompt,
  role: 'system' | 'user',
  saidAt: number,
): ConversationEvent {
  const type = 'conversation.noted';
  if (typeof prompt === 'string') return { type, itemId, role, text: prompt, saidAt };
  return { type, itemId, role, text: prompt.says ?? '', saidAt, note: prompt };
}

interface Session extends Receiver {
  readonly books: { expect(event: ConversationEvent): ConversationEvent };
}

/**
 * Something was said, called or answered: it can be read at once, and the session's unit is told.
 */
export function intoConversation(session: Session, event: ConversationEvent): void {
  const told = session.books.expect(event);
  if (told.type === 'tool.called') session.receive('calls', told);
  else session.receive('conversation', told);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Events of one kind about one thing are folded in the order in which they were told. */
function isAbout(event: ConversationEvent): string {
  return `${event.type} ${'itemId' in event ? event.itemId : event.callId}`;
}
