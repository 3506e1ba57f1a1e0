// The items of a conversation as plain, serialisable records, together with their limits, the order in which they are
// dropped, and the turns that they form.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import { isJson, isTooDeep, TOO_DEEP } from '../../values/json.ts';
import { clip, cutMark } from '../../values/clip.ts';
import { echoChars, echoSchema, type Echo } from '../../values/echo.ts';
import { promptText, type Note } from '../notes/note.ts';

interface ItemBase {
  /** The item's permanent id: the provider's id, if there is one. */
  readonly id: string;
  /**
   * When the item started (for speech: when the utterance started), in milliseconds since 1970. Determines the order of
   * the log.
   */
  readonly at: number;
}

/** A spoken or typed message, or a note. */
export interface MessageItem extends ItemBase {
  /** The speaker of the message. */
  readonly role: 'user' | 'assistant' | 'system';
  /** The text of the message. */
  readonly text: string;
  /** Whether more text may follow. */
  readonly partial: boolean;
  /** For a message from the user: its author's identity, if the app vouched for one. */
  readonly by?: string;
  /**
   * For a message from the lead agent: the last item that the model had read when it started to reply. Null if the
   * message is not a (complete) reply. Absent if unknown; the message then counts as a reply to all earlier items.
   */
  readonly repliesTo?: string | null;
  /** Whether the user interrupted the message. */
  readonly interrupted?: boolean;
  /** How much of the message's audio was heard, in milliseconds. */
  readonly audioHeardMs?: number;
  /**
   * For a message from the lead agent: the provider's own data, which is sent back with the parts after the response's
   * last call. If it is absent although the calls of the response have an `echo`, the response was cut off.
   */
  readonly echo?: Echo;
  /** The number of characters dropped because of `maxItemChars`. */
  readonly omittedChars?: number;
  /** The note; absent for an ordinary message, or if an earlier version stored the note as text. */
  readonly note?: Note;
  /** The number of characters in the note. */
  readonly noteChars?: number;
}

/** A call that the lead agent made. */
export interface ToolCallItem extends ItemBase {
  /** Distinguishes calls from the other items. */
  readonly role: 'tool_call';
  /** The id of the call. */
  readonly callId: string;
  /** The name of the tool. */
  readonly toolName: string;
  /** The arguments of the call. */
  readonly args: JSONValue;
  /** The text for the model while the result is pending. */
  readonly pendingText?: string;
  /** Whether the model made another call after this one in the same response. @defaultValue false */
  readonly isFollowed?: boolean;
  /**
   * The last item that the model had read when it made the call. Null if the model was delivering a result. Absent if unknown.
   */
  readonly repliesTo?: string | null;
  /** The id of the response that made the call; also the id of the response's message, if it has text. */
  readonly responseId?: string;
  /** The provider's own data, which is sent back with the call and the parts between the previous call and this one. */
  readonly echo?: Echo;
  /** The length of the arguments as JSON text. */
  readonly chars: number;
}

/** A result, or the reason why there is none. */
export type ToolOutput =
  /** `failed`: the value is an error. */
  | { readonly type: 'value'; readonly value: JSONValue; readonly failed?: boolean }
  | { readonly type: 'error'; readonly message: string };

export interface ToolResultItem extends ItemBase {
  /** Distinguishes results from the other items. */
  readonly role: 'tool_result';
  /** The id of the call. */
  readonly callId: string;
  /** The name of the tool. */
  readonly toolName: string;
  /** The result, as the model reads it. */
  readonly output: ToolOutput;
  /** Whether the result only states that the work continues. @defaultValue false */
  readonly isPending?: boolean;
  /** Whether the lead agent must respond to the result. @defaultValue true */
  readonly wantsReply?: boolean;
  /** The length of the output as text. */
  readonly chars: number;
}

/** A change of the lead agent. */
export interface TransferItem extends ItemBase {
  /** Distinguishes transfers from the other items. */
  readonly role: 'transfer';
  /** The previous lead agent. */
  readonly from: string;
  /** The new lead agent. */
  readonly to: string;
}

/** An item of a conversation: a message, a tool call, its result, or a transfer to another agent. */
export type ConversationItem = MessageItem | ToolCallItem | ToolResultItem | TransferItem;

const base = { id: z.string().min(1), at: z.number() };
const json: z.ZodType<JSONValue> = z.json();
export const noteSchema: z.ZodType<Note> = z.object({
  says: z.string().optional(),
  quotes: z.record(z.string(), json).optional(),
  turns: z
    .array(
      z.object({
        subagentId: z.string(),
        how: z.enum(['completed', 'completed with error', 'reports']),
        error: z.string().optional(),
        text: z.string(),
      }),
    )
    .optional(),
});

export const conversationItemSchema: z.ZodType<ConversationItem> = z.discriminatedUnion('role', [
  z.object({
    ...base,
    role: z.enum(['user', 'assistant', 'system']),
    text: z.string(),
    partial: z.boolean(),
    by: z.string().optional(),
    repliesTo: z.string().nullable().optional(),
    interrupted: z.boolean().optional(),
    audioHeardMs: z.number().nonnegative().optional(),
    omittedChars: z.number().int().nonnegative().optional(),
    echo: echoSchema.optional(),
    note: noteSchema.optional(),
    noteChars: z.number().int().nonnegative().optional(),
  }),
  z.object({
    ...base,
    role: z.literal('tool_call'),
    callId: z.string().min(1),
    toolName: z.string(),
    args: json,
    pendingText: z.string().optional(),
    isFollowed: z.boolean().optional(),
    repliesTo: z.string().nullable().optional(),
    responseId: z.string().optional(),
    echo: echoSchema.optional(),
    chars: z.number().int().nonnegative(),
  }),
  z.object({
    ...base,
    role: z.literal('tool_result'),
    callId: z.string().min(1),
    toolName: z.string(),
    output: z.discriminatedUnion('type', [
      z.object({ type: z.literal('value'), value: json, failed: z.boolean().optional() }),
      z.object({ type: z.literal('error'), message: z.string() }),
    ]),
    isPending: z.boolean().optional(),
    wantsReply: z.boolean().optional(),
    chars: z.number().int().nonnegative(),
  }),
  z.object({ ...base, role: z.literal('transfer'), from: z.string(), to: z.string() }),
]);

export function isMessage(item: ConversationItem): item is MessageItem {
  return item.role === 'user' || item.role === 'assistant' || item.role === 'system';
}

/** Returns the number of characters that an item counts towards `maxChars`. */
export function charsOf(item: ConversationItem): number {
  if (isMessage(item)) return item.text.length + (item.noteChars ?? 0) + echoChars(item.echo);
  if (item.role === 'transfer') return item.from.length + item.to.length;
  return item.chars + (item.role === 'tool_call' ? echoChars(item.echo) : 0);
}

/** Returns a message's text, with a marker if the text was cut. */
export function messageText(item: MessageItem): string {
  if (item.note) return promptText(item.note);
  return item.omittedChars ? `${item.text} ${cutMark(item.omittedChars)}` : item.text;
}

/**
 * Returns a value as JSON data and as JSON text. A value that JSON cannot represent is replaced by a description of it.
 * JSON data is returned without copying it, because the log shares the values of events.
 */
export function asJson(value: unknown): { readonly value: JSONValue; readonly text: string } {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
    if (text !== undefined && isJson(value)) return { value, text };
    if (text !== undefined && isTooDeep(JSON.parse(text)))
      text = JSON.stringify(`[not JSON: ${TOO_DEEP}]`);
  } catch (error) {
    text = JSON.stringify(`[not JSON: ${messageOf(error)}]`);
  }
  // For `undefined`, a function or a symbol, `JSON.stringify` returns no text.
  text ??= 'null';
  return { value: JSON.parse(text) as JSONValue, text };
}

/** Returns whether the output is an error rather than a result. */
export function isFailed(output: ToolOutput): boolean {
  return output.type === 'error' || output.failed === true;
}

/** Returns a tool's output as text for a model; an error becomes a JSON object with `error`. */
export function toolOutputText(output: ToolOutput): string {
  if (output.type === 'error') return JSON.stringify({ error: output.message });
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
}

/** The limits of the log; beyond them, the oldest items are dropped. */
export interface ConversationLimits {
  /** The maximum number of items. */
  readonly maxItems: number;
  /** The maximum total length of all items, in characters. */
  readonly maxChars: number;
  /** The maximum length of one item, in characters; a longer item is cut and marked. */
  readonly maxItemChars: number;
}

const defaultConversationLimits = {
  maxItems: 500,
  maxChars: 200_000,
  maxItemChars: 20_000,
} as const satisfies ConversationLimits;

/** @throws {ConfigurationError} if a limit is not a positive whole number, or one item may exceed the whole log. */
export function checkedLimits(partial: Partial<ConversationLimits>): ConversationLimits {
  const limits = { ...defaultConversationLimits, ...partial };
  for (const [name, value] of Object.entries(limits)) {
    if (Number.isInteger(value) && value > 0) continue;
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`${name}\` to be a whole number > 0, got \`${String(value)}\``,
    );
  }
  if (limits.maxItemChars > limits.maxChars) {
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`maxItemChars\` to be at most \`maxChars\` (${limits.maxChars}), got \`${limits.maxItemChars}\``,
    );
  }
  return limits;
}

export function totalChars(items: readonly ConversationItem[]): number {
  return items.reduce((sum, item) => sum + charsOf(item), 0);
}

/** Results by call id. */
export type Results = ReadonlyMap<string, ToolResultItem>;

/** Returns the results by call id: searching the items for each call would take quadratic time. */
export function resultsIn(items: readonly ConversationItem[]): Results {
  return new Map(
    items.flatMap((item) => (item.role === 'tool_result' ? [[item.callId, item] as const] : [])),
  );
}

/** Returns the result of a call; undefined for any other item, or if the call has no result yet. */
export function resultOf(item: ConversationItem, results: Results): ToolResultItem | undefined {
  return item.role === 'tool_call' ? results.get(item.callId) : undefined;
}

/** Returns whether the item is an unfinished utterance or a running call. */
export function isOpen(item: ConversationItem, results: Results): boolean {
  if (isMessage(item)) return item.partial;
  return item.role === 'tool_call' && !results.has(item.callId);
}

/**
 * Groups the items that must be kept or dropped together: the text, calls and results of one response. Providers refuse
 * an incomplete group.
 */
export function stepsIn(
  items: readonly ConversationItem[],
): ReadonlyMap<ConversationItem, readonly ConversationItem[]> {
  const keys = new Map<string, string>();
  for (const item of items)
    if (item.role === 'tool_call') keys.set(item.callId, item.responseId ?? item.id);
  const steps = new Map<string, ConversationItem[]>();
  const stepOf = new Map<ConversationItem, readonly ConversationItem[]>();
  for (const item of items) {
    const key = ('callId' in item ? keys.get(item.callId) : undefined) ?? item.id;
    const step = steps.get(key) ?? [];
    steps.set(key, step);
    step.push(item);
    stepOf.set(item, step);
  }
  return stepOf;
}

/** Drops the oldest steps until the rest is within the limits; drops steps with open items only if no others are left. */
export function withinLimits(
  items: readonly ConversationItem[],
  { maxItems, maxChars }: ConversationLimits,
): readonly ConversationItem[] {
  let excessItems = items.length - maxItems;
  let excessChars = totalChars(items) - maxChars;
  if (excessItems <= 0 && excessChars <= 0) return items;
  const results = resultsIn(items);
  const steps = stepsIn(items);
  const gone = new Set<ConversationItem>();
  for (const sparesOpen of [true, false]) {
    for (const item of items) {
      if (excessItems <= 0 && excessChars <= 0) break;
      const step = steps.get(item) ?? [];
      if (gone.has(item) || (sparesOpen && step.some((one) => isOpen(one, results)))) continue;
      for (const one of step) {
        gone.add(one);
        excessItems -= 1;
        excessChars -= charsOf(one);
      }
    }
  }
  return items.filter((item) => !gone.has(item));
}

/**
 * A turn: all consecutive text from one party, as one string. Ten consecutive utterances from the user are one turn;
 * tool calls, results, notes and transfers are not part of a turn and do not end it.
 */
export interface ConversationTurn {
  /** The speaker of the turn. */
  readonly role: 'user' | 'assistant';
  /** The text of the turn. */
  readonly content: string;
  /** When the turn started, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * The maximum length of a turn, except the user's last turn, which is kept whole because it may have caused the task.
 */
const MAX_TURN_CHARS = 2000;

/** Returns the turns of `items`, oldest first. A message without text is not part of any turn. */
export function turnsOf(items: readonly ConversationItem[]): readonly ConversationTurn[] {
  const turns: { role: 'user' | 'assistant'; at: number; parts: string[] }[] = [];
  for (const item of items) {
    if (!isMessage(item) || item.role === 'system') continue;
    const text = messageText(item).trim();
    if (text === '') continue;
    const open = turns.at(-1);
    if (open?.role === item.role) open.parts.push(text);
    else turns.push({ role: item.role, at: item.at, parts: [text] });
  }
  const request = turns.findLast(({ role }) => role === 'user');
  return turns.map((turn) => {
    const { role, at, parts } = turn;
    const text = parts.join(' ');
    return { role, at, content: turn === request ? text : clip(text, MAX_TURN_CHARS) };
  });
}
