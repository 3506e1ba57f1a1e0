// A session's conversation in two forms. The stored conversation depends only on committed events. The readable
// conversation also contains text that is not committed yet and messages that are still in progress.
//
// Owns:     the conversation, and the text on its way into it.
// Does not: post events to the session's unit (`intoConversation` does so for the speaker), or store the calls whose
//           results it contains (records).
//
// Invariants
//   LIVE-CONVERSATION-1. The stored conversation is a function of the folded events. Nothing else changes the stored
//       conversation, and a step does not read anything else.
//   LIVE-CONVERSATION-2. Text is readable before its event is committed. It appears in the position that it will have
//       when the event is folded.
//   LIVE-CONVERSATION-3. Text of a message that is still in progress is never stored, because deltas are not events.
//   LIVE-CONVERSATION-4. A message precedes all items that arrived while it was in progress, even if they started in
//       the same millisecond.
//   LIVE-CONVERSATION-5. Appending text takes constant time. Only the start of an unfinished message is readable, and
//       its pieces are joined only when it is complete.

import { parsedOrText } from '../../../values/json.ts';
import { head as headOf } from '../../../values/clip.ts';
import { ConversationLog } from '../../conversation/conversation.ts';
import type { ConversationItem, ConversationLimits } from '../../conversation/items.ts';
import type { Prompt } from '../../notes/note.ts';
import type { ConversationEvent } from '../../contracts/records.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import { Cell, Draft } from '../../runtime/draft.ts';

/** A message that the lead agent has not finished. */
interface Saying {
  readonly saidAt: number;
  /** The start of the text, which is readable before the message is complete (LIVE-CONVERSATION-5). */
  head: string;
  /** The whole text, as a list of pieces. */
  readonly pieces: string[];
  chars: number;
  /** The last item that arrived before this message and started in the same millisecond. */
  readonly behind: string | null;
  /** The item that the message follows, if the speaker knows it. */
  readonly after: string | undefined;
}

/** The text so far of a message that is in progress. */
export interface Unfinished {
  readonly itemId: string;
  readonly text: string;
  readonly saidAt: number;
}

export class LiveConversation {
  readonly #empty: ConversationLog;
  readonly #draft: Draft;
  readonly #kept: Cell<ConversationLog>;
  /** Events that were posted to the unit but have not been folded yet, in order. */
  readonly #ahead: ConversationEvent[] = [];
  readonly #saying = new Map<string, Saying>();
  /** The stored conversation together with the posted events, or null if it must be computed again. */
  #told: ConversationLog | null = null;
  #read: ConversationLog | null = null;
  readonly #outputOf: (callId: string) => unknown;

  /** `outputOf`: returns a call's result, or undefined if it is unknown. */
  constructor(
    limits: Partial<ConversationLimits>,
    outputOf: (callId: string) => unknown,
    draft = new Draft(),
  ) {
    this.#draft = draft;
    this.#empty = ConversationLog.empty(limits);
    this.#kept = new Cell(draft, this.#empty);
    this.#outputOf = outputOf;
  }

  /** The conversation of the folded events (LIVE-CONVERSATION-1). */
  get kept(): ConversationLog {
    return this.#kept.value;
  }

  /** Resumes from a stored conversation, as JSON. */
  restore(rest: unknown): void {
    this.change(({ limits }) => ConversationLog.fromJSON(rest, limits));
  }

  /** Resets the stored conversation. Keeps text that has been posted or is still in progress. */
  reset(): void {
    this.change(() => this.#empty);
  }

  /** The readable conversation. */
  get log(): ConversationLog {
    this.#read ??= [...this.#saying].reduce((log, [id, { saidAt: at, head, chars, after }]) => {
      const before = this.#follower(id);
      const begun = log.begin({ id, role: 'assistant', at, before, after });
      return begun.append(id, head).omit(id, chars - head.length);
    }, this.#withAhead);
    return this.#read;
  }

  /**
   * Returns one item of the readable conversation. A message in progress is read without computing the rest of the
   * conversation.
   */
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

  /** Applies an event to the stored conversation. */
  change(change: (kept: ConversationLog) => ConversationLog): void {
    this.#kept.value = change(this.kept);
    this.#draft.later(() => this.#changed());
  }

  /** Folds an event of the session's unit. The event then no longer counts as posted. */
  fold(event: ConversationEvent): void {
    this.#kept.value = this.#after(this.kept, event);
    this.#draft.later(() => {
      const about = isAbout(event);
      const index = this.#ahead.findIndex((one) => isAbout(one) === about);
      if (index !== -1) this.#ahead.splice(index, 1);
      // The oldest posted event was folded, so the readable conversation does not change. Once all posted events have
      // been folded, the readable conversation is the stored one, so no second copy is needed.
      if (index !== 0 || this.#ahead.length === 0) this.#changed();
    });
  }

  /** Makes an event readable before it is posted to the unit, and returns the event to post. */
  expect(event: ConversationEvent): ConversationEvent {
    let told = event;
    if (event.type === 'assistant.said' || event.type === 'assistant.cut') {
      const before = this.#follower(event.itemId);
      if (before !== null) told = { ...event, before };
      this.#saying.delete(event.itemId);
    }
    // The event follows all posted events, so none of them has to be applied again.
    this.#told = this.#after(this.#withAhead, told);
    this.#read = null;
    this.#ahead.push(told);
    return told;
  }

  /**
   * Appends text to a message that the lead agent started at `saidAt`. `after` is the item that the message follows.
   * Returns whether the readable part has grown.
   */
  saying(itemId: string, words: string, saidAt: number, after?: string): boolean {
    const saying = this.#saying.get(itemId) ?? {
      saidAt,
      head: '',
      pieces: [],
      chars: 0,
      behind: this.#withAhead.items.findLast(({ at }) => at === saidAt)?.id ?? null,
      after,
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

  /** The number of messages that are in progress. */
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
    this.#told ??= this.#ahead.reduce((log, event) => this.#after(log, event), this.kept);
    return this.#told;
  }

  /**
   * Returns the first item that arrived while this message was in progress and started in the same millisecond
   * (LIVE-CONVERSATION-4).
   */
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
        const { itemId: id, text, saidAt: at, before, after, repliesTo, echo } = event;
        return log.add({ id, role: 'assistant', text, at, before, after, repliesTo, echo });
      }
      case 'assistant.cut': {
        const { itemId: id, text, audioHeardMs, saidAt: at, before, repliesTo } = event;
        const place = { id, role: 'assistant', before, repliesTo } as const;
        const begun = at === undefined ? log : log.begin({ ...place, at });
        return begun.interrupt(id, { text, audioHeardMs });
      }
      case 'tool.called': {
        const { callId, name: toolName, arguments: json, calledAt: at = 0 } = event;
        const { isFollowed, repliesTo, responseId, after, echo } = event;
        return log.toolCall({
          callId,
          toolName,
          args: parsedOrText(json),
          at,
          isFollowed,
          repliesTo,
          responseId,
          after,
          echo,
        });
      }
      case 'call.answered': {
        const { callId, answeredAt: at, failed, isOver, wantsReply } = event;
        const value = 'output' in event ? event.output : this.#outputOf(callId);
        if (value === undefined) return log;
        return log.toolResult({ callId, at, value, failed, isPending: !isOver, wantsReply });
      }
    }
  }

  #changed(): void {
    this.#told = null;
    this.#read = null;
  }
}

/** Builds the event for a note from the runtime. */
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
  readonly records: { expect(event: ConversationEvent): ConversationEvent };
}

/** Adds a message, a call or an answer to the conversation (readable immediately) and posts it to the unit. */
export function intoConversation(session: Session, event: ConversationEvent): void {
  const told = session.records.expect(event);
  if (told.type === 'tool.called') session.receive('calls', told);
  else session.receive('conversation', told);
}

/**
 * Returns the key of an event. Events of the same kind and key are folded in the order in which they were posted.
 */
function isAbout(event: ConversationEvent): string {
  return `${event.type} ${'itemId' in event ? event.itemId : event.callId}`;
}
