// A session's conversation, as an immutable value: every operation returns a new log, so that a callback never sees a
// partial change.
//
// Owns:     the messages in order; the lead agent's calls and their results; the summary of items that are no longer in
//           the log; the limits.
// Does not: decide when an utterance ends, write the summary, or call a model.
//
// Invariants
//   CONVERSATION-1. Items are ordered by `at`, the time at which they started, regardless of when their text arrives.
//       Items with the same `at` keep the order in which they were added, unless an item names the item that it
//       precedes. A transcript that arrives late fills the item that was started for it, or is inserted at the position
//       given by its `at`.
//   CONVERSATION-2. An id names one item: starting or finishing the item again changes nothing.
//   CONVERSATION-3. Partial text is appended unchanged, including white space and repetitions.
//   CONVERSATION-4. A result follows its call, and a call has at most one result. Every result belongs to a call, and
//       only a call that is still running has no result.
//   CONVERSATION-5. The log stays within its limits. Open items (a running call, an unfinished utterance) are dropped
//       last.
//   CONVERSATION-6. The log drops items that a summary covers.
//
// An operation that does not apply is not an error: text for an unknown or finished item, or a result for an unknown
// call, leaves the log unchanged.

import { withoutUndefined } from '../../values/without-undefined.ts';
import { z } from 'zod';
import type { ModelMessage } from 'ai';
import { ProtocolError } from '../../values/errors.ts';
import {
  asJson,
  checkedLimits,
  conversationItemSchema,
  isMessage,
  isOpen,
  resultOf,
  resultsIn,
  stepsIn,
  totalChars,
  turnsOf,
  withinLimits,
  type ConversationItem,
  type ConversationLimits,
  type ConversationTurn,
  type MessageItem,
  type ToolOutput,
  type ToolResultItem,
} from './items.ts';
import { clip, head } from '../../values/clip.ts';
import type { Echo } from '../../values/echo.ts';
import { clippedNote, noteChars, promptText, type Note } from '../notes/note.ts';
import {
  preambleOf,
  toModelMessages,
  toReplay,
  type ModelMessageOptions,
  type ReplayItem,
} from './model-messages.ts';

/** An item's position. */
interface Place {
  readonly id: string;
  /** When the item started, in milliseconds since 1970. */
  readonly at: number;
  /** The item that directly precedes this one, if the model's provider reports it; `at` is adjusted to match. */
  readonly after?: string | null | undefined;
  /** The item that directly follows this one; set only if both started in the same millisecond. */
  readonly before?: string | null | undefined;
  /** For a message from the user: the author's identity. */
  readonly by?: string;
  /** For a message from the lead agent; see `MessageItem`. */
  readonly repliesTo?: string | null;
  readonly echo?: Echo | undefined;
}

export type ToolResultInput = {
  readonly callId: string;
  readonly at: number;
  readonly id?: string;
  /** @defaultValue false */
  readonly isPending?: boolean;
  /** @defaultValue true */
  readonly wantsReply?: boolean | undefined;
} & (
  | {
      readonly value: unknown;
      /** Whether the value is an error. @defaultValue false */
      readonly failed?: boolean | undefined;
    }
  | { readonly error: string }
);

interface State {
  readonly items: readonly ConversationItem[];
  readonly summary: string | null;
  readonly evicted: number;
}

const stateSchema: z.ZodType<State> = z.object({
  items: z
    .array(conversationItemSchema)
    .refine((items) => new Set(items.map(({ id }) => id)).size === items.length, 'ids repeat')
    .refine((items) => items.every(({ at }, i) => at >= (items[i - 1]?.at ?? at)), 'out of order'),
  summary: z.string().nullable(),
  evicted: z.number().int().nonnegative(),
});

export class ConversationLog {
  /** The items in order (CONVERSATION-1). */
  readonly items: readonly ConversationItem[];
  /** A model's summary of everything before the items; null if there is none. */
  readonly summary: string | null;
  /** The number of items that were dropped after the last summary and are not part of any summary. */
  readonly evicted: number;
  readonly limits: ConversationLimits;

  private constructor(state: State, limits: ConversationLimits) {
    this.items = state.items;
    this.summary = state.summary;
    this.evicted = state.evicted;
    this.limits = limits;
  }

  /** @throws {ConfigurationError} if a limit is not a positive whole number, or one item may exceed the whole log. */
  static empty(limits: Partial<ConversationLimits> = {}): ConversationLog {
    return new ConversationLog({ items: [], summary: null, evicted: 0 }, checkedLimits(limits));
  }

  /**
   * Reads the output of `toJSON`.
   * @throws {ProtocolError} for any other value.
   */
  static fromJSON(value: unknown, limits: Partial<ConversationLimits> = {}): ConversationLog {
    const parsed = stateSchema.safeParse(value);
    if (!parsed.success) {
      throw new ProtocolError(
        'MALFORMED_CONVERSATION',
        `Expected what ConversationLog.toJSON() returns: ${z.prettifyError(parsed.error)}`,
        { raw: value, cause: parsed.error },
      );
    }
    const { items, ...rest } = parsed.data;
    return ConversationLog.empty(limits).#with(items, rest);
  }

  toJSON(): State {
    return { items: this.items, summary: this.summary, evicted: this.evicted };
  }

  get(id: string): ConversationItem | undefined {
    // The item to change is usually the newest, so the search starts at the end.
    return this.items.findLast((item) => item.id === id);
  }

  /** Starts a message whose text follows, and thereby reserves its place. */
  begin(message: Place & { readonly role: MessageItem['role'] }): ConversationLog {
    return this.#insert(message, ({ id, at }) => ({
      id,
      at,
      role: message.role,
      text: '',
      partial: true,
      ...(message.by === undefined ? {} : { by: message.by }),
      ...(message.repliesTo === undefined ? {} : { repliesTo: message.repliesTo }),
      ...(message.echo === undefined ? {} : { echo: message.echo }),
    }));
  }

  /** Adds a whole message, or finishes the message that was started with this id. */
  add(
    message: Place & { readonly role: MessageItem['role']; readonly text: string },
  ): ConversationLog {
    return this.begin(message).finish(message.id, message.text);
  }

  /** Adds a note from the runtime. With the role `user`, the note replaces a user turn. */
  addNote(
    place: Place & { readonly role: 'system' | 'user'; readonly note: Note },
  ): ConversationLog {
    const { id, role } = place;
    if (this.get(id)) return this;
    const { maxItemChars } = this.limits;
    const note = clippedNote(place.note, maxItemChars);
    const { says = '', ...data } = note;
    // A note in place of a user turn counts as a turn; all other notes are statements of the runtime.
    const text = role === 'user' ? promptText(data) : says;
    return this.add({ ...place, text }).#change(id, (item) => ({
      ...item,
      note,
      noteChars: noteChars(note),
    }));
  }

  /** Appends text to an unfinished message, unchanged (CONVERSATION-3). */
  append(id: string, delta: string): ConversationLog {
    return this.#change(id, (item) =>
      item.partial && delta !== ''
        ? this.#withText(item, item.text + delta, item.omittedChars)
        : item,
    );
  }

  /** Removes this many characters from the end of a message, and ignores all text that arrives later. */
  omit(id: string, chars: number): ConversationLog {
    return this.#change(id, (item) =>
      chars > 0 ? { ...item, omittedChars: (item.omittedChars ?? 0) + chars } : item,
    );
  }

  /** Replaces the text of a message, whether finished or not, with a better transcript or a correction. */
  correct(id: string, text: string): ConversationLog {
    return this.#change(id, (item) => (item.text === text ? item : this.#withText(item, text)));
  }

  /** Finishes a message; `text`, if given, replaces its text. A second call has no effect (CONVERSATION-2). */
  finish(id: string, text?: string): ConversationLog {
    return this.#change(id, (item) => {
      if (!item.partial) return item;
      const whole = text === undefined ? item : this.#withText(item, text);
      return { ...whole, partial: false };
    });
  }

  /** Marks a message as interrupted by the user; `text`, if known, is the part that was heard. */
  interrupt(
    id: string,
    heard: { readonly audioHeardMs?: number; readonly text?: string } = {},
  ): ConversationLog {
    return this.#change(id, (item) => ({
      ...(heard.text === undefined ? item : this.#withText(item, heard.text)),
      ...(heard.audioHeardMs === undefined ? {} : { audioHeardMs: heard.audioHeardMs }),
      partial: false,
      interrupted: true,
    }));
  }

  /**
   * Removes an item, such as words that were not meant for the lead agent. A call and its result are removed together.
   */
  remove(id: string): ConversationLog {
    const target = this.get(id);
    if (!target) return this;
    const isPart = (item: ConversationItem): boolean =>
      item === target || ('callId' in item && 'callId' in target && item.callId === target.callId);
    return this.#with(this.items.filter((item) => !isPart(item)));
  }

  toolCall(call: {
    readonly callId: string;
    readonly toolName: string;
    readonly args: unknown;
    readonly at: number;
    /** The text for the model while the result is pending. */
    readonly pendingText?: string;
    readonly isFollowed?: boolean | undefined;
    readonly repliesTo?: string | null | undefined;
    readonly responseId?: string | undefined;
    readonly echo?: Echo | undefined;
    /** @defaultValue the call's id */
    readonly id?: string;
    readonly after?: string | null | undefined;
  }): ConversationLog {
    const { callId, toolName, pendingText, isFollowed = false, repliesTo, responseId, echo } = call;
    if (this.#call(callId)) return this;
    const { value, text } = asJson(call.args);
    const tooLong = text.length > this.limits.maxItemChars;
    return this.#insert({ ...call, id: call.id ?? callId }, ({ id, at }) => ({
      id,
      at,
      role: 'tool_call',
      callId,
      toolName,
      args: tooLong ? { truncated: clip(text, this.limits.maxItemChars) } : value,
      ...(isFollowed && { isFollowed }),
      ...withoutUndefined({ pendingText, repliesTo, responseId, echo }),
      chars: Math.min(text.length, this.limits.maxItemChars),
    }));
  }

  /** Adds a call's result, or the reason why there is none. Only the first result counts (CONVERSATION-4). */
  toolResult(result: ToolResultInput): ConversationLog {
    const call = this.#call(result.callId);
    if (!call || this.isAnswered(result.callId)) return this;
    const { maxItemChars } = this.limits;
    let output: ToolOutput;
    let chars: number;
    if ('error' in result) {
      output = { type: 'error', message: clip(result.error, maxItemChars) };
      chars = output.message.length;
    } else {
      const { value, text } = asJson(result.value);
      const tooLong = text.length > maxItemChars;
      const whole = typeof value === 'string' ? value : text;
      output = {
        type: 'value',
        value: tooLong ? clip(whole, maxItemChars) : value,
        ...(result.failed === true ? { failed: true } : {}),
      };
      chars = Math.min(text.length, maxItemChars);
    }
    const { isPending = false, wantsReply = true } = result;
    const kind = { ...(isPending && { isPending }), ...(!wantsReply && { wantsReply }) };
    const place = { id: result.id ?? `${call.callId}.result`, at: Math.max(result.at, call.at) };
    return this.#insert(place, ({ id, at }): ToolResultItem => {
      const { callId, toolName } = call;
      return { id, at, role: 'tool_result', callId, toolName, output, ...kind, chars };
    });
  }

  /** Marks the results of calls as needing no reply, because the user learns their content from a delivery. */
  withoutReplyTo(callIds: readonly string[]): ConversationLog {
    return this.#with(
      this.items.map((item) =>
        item.role === 'tool_result' && callIds.includes(item.callId)
          ? { ...item, wantsReply: false }
          : item,
      ),
    );
  }

  /** Records a change of the lead agent. */
  transfer(transfer: Place & { readonly from: string; readonly to: string }): ConversationLog {
    const { from, to } = transfer;
    return this.#insert(transfer, ({ id, at }) => ({ id, at, role: 'transfer', from, to }));
  }

  isAnswered(callId: string): boolean {
    return this.items.some((item) => item.role === 'tool_result' && item.callId === callId);
  }

  /** How full the log is. Above 1, the oldest items are dropped, so the owner should request a summary before then. */
  get load(): number {
    const { maxItems, maxChars } = this.limits;
    return Math.max(this.items.length / maxItems, totalChars(this.items) / maxChars);
  }

  /**
   * Replaces the covered items with `text` (CONVERSATION-6). By default, all finished items are covered. If the
   * conversation continued while the summary was being written, pass `upTo` to say which items are covered: the
   * summarised log (text that was added later is kept), the id of its last item (nothing is covered if that item was
   * dropped), or the ids of its items. Open items stay.
   */
  setSummary(text: string, upTo?: string | ConversationLog | readonly string[]): ConversationLog {
    const ids = Array.isArray(upTo) ? new Set<string>(upTo) : null;
    const last =
      typeof upTo === 'string' ? this.items.findIndex(({ id }) => id === upTo) : Infinity;
    const results = resultsIn(this.items);
    const before = upTo instanceof ConversationLog ? resultsIn(upTo.items) : results;
    const isCovered = (item: ConversationItem): boolean => {
      if (isOpen(item, results)) return false;
      // A call that was still open in the summarised log is covered if its result is covered.
      if (resultOf(item, results)) return true;
      if (ids) return ids.has(item.id);
      if (!(upTo instanceof ConversationLog)) return this.items.indexOf(item) <= last;
      const then = upTo.get(item.id);
      return then !== undefined && !isOpen(then, before) && sameWords(then, item);
    };
    const steps = stepsIn(this.items);
    const items = this.items.filter((item) => !steps.get(item)?.every(isCovered));
    return this.#with(items, { summary: text, evicted: 0 });
  }

  /**
   * Returns the last `count` turns, oldest first. A turn is all consecutive text from one party, over any number of
   * items; tool calls and results are not part of it. Includes unfinished speech. A turn is shortened to 2,000
   * characters, except the user's last turn.
   */
  recentTurns(count: number): readonly ConversationTurn[] {
    return count < 1 ? [] : turnsOf(this.items).slice(-count);
  }

  /** Returns the conversation for a text model. */
  toModelMessages(options?: ModelMessageOptions): ModelMessage[] {
    return toModelMessages(this.items, preambleOf(this.summary, this.evicted), options);
  }

  /** Returns the conversation for a voice transport after a reconnect. */
  toReplay(): readonly ReplayItem[] {
    return toReplay(this.items, preambleOf(this.summary, this.evicted));
  }

  #call(callId: string) {
    return this.items.find((item) => item.role === 'tool_call' && item.callId === callId) as
      | Extract<ConversationItem, { role: 'tool_call' }>
      | undefined;
  }

  #insert(
    place: Place,
    make: (where: { id: string; at: number }) => ConversationItem,
  ): ConversationLog {
    const { items } = this;
    if (this.get(place.id)) return this;
    const leader = place.after ? items.findIndex(({ id }) => id === place.after) : -1;
    let index = leader + 1;
    let { at } = place;
    if (leader === -1) {
      index = items.length;
      while (index > 0 && (items[index - 1] as ConversationItem).at > at) index -= 1;
      const next =
        place.before === undefined
          ? -1
          : items.findIndex((item) => item.id === place.before && item.at === at);
      if (next !== -1) index = next;
    } else {
      at = Math.max(at, (items[leader] as ConversationItem).at);
      at = Math.min(at, items[index]?.at ?? at);
    }
    return this.#with([
      ...items.slice(0, index),
      make({ id: place.id, at }),
      ...items.slice(index),
    ]);
  }

  #change(id: string, change: (item: MessageItem) => MessageItem): ConversationLog {
    const index = this.items.findLastIndex((item) => item.id === id);
    const item = this.items[index];
    if (!item || !isMessage(item)) return this;
    const changed = change(item);
    return changed === item ? this : this.#with(this.items.with(index, changed));
  }

  #withText(item: MessageItem, text: string, alreadyOmitted = 0): MessageItem {
    const { omittedChars: _, ...rest } = item;
    // All text after a cut is dropped, so that the remaining text has no gap.
    const kept = alreadyOmitted > 0 ? item.text : head(text, this.limits.maxItemChars);
    const omittedChars = alreadyOmitted + text.length - kept.length;
    return omittedChars === 0 ? { ...rest, text: kept } : { ...rest, text: kept, omittedChars };
  }

  #with(items: readonly ConversationItem[], rest: Partial<State> = {}): ConversationLog {
    const kept = withinLimits(items, this.limits);
    const evicted = (rest.evicted ?? this.evicted) + items.length - kept.length;
    const summary = rest.summary ?? this.summary;
    return new ConversationLog({ items: kept, summary, evicted }, this.limits);
  }
}

function sameWords(then: ConversationItem, now: ConversationItem): boolean {
  return !isMessage(then) || !isMessage(now) || then.text === now.text;
}
