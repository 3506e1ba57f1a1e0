// What a conversation is made of: plain, serialisable records.

import type { JSONValue } from 'ai';
import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';
import { isJson, isTooDeep, TOO_DEEP } from '../../values/json.ts';
import { cutMark } from '../../values/clip.ts';
import { promptText, type Note } from '../notes/note.ts';

interface ItemBase {
  /** Names the item for ever; where a wire has ids of its own, that id. */
  readonly id: string;
  /** When it *began* (for speech: when the utterance began), milliseconds since 1970. Orders the log. */
  readonly at: number;
}

/** Something that was said, typed or noted. */
export interface MessageItem extends ItemBase {
  readonly role: 'user' | 'assistant' | 'system';
  readonly text: string;
  /** More text may follow. */
  readonly partial: boolean;
  /** Of the user: who said it, where the app vouched for somebody. */
  readonly by?: string;
  /** The user broke it off. */
  readonly interrupted?: boolean;
  /** How much of its sound was heard, milliseconds. */
  readonly audioHeardMs?: number;
  /** Characters beyond `maxItemChars` that were not kept. */
  readonly omittedChars?: number;
  /** The note that it is; absent: it is words, or a note of an earlier version. */
  readonly note?: Note;
  /** How long that is. */
  readonly noteChars?: number;
}

/** A call that the lead agent made. */
export interface ToolCallItem extends ItemBase {
  readonly role: 'tool_call';
  readonly callId: string;
  readonly toolName: string;
  readonly args: JSONValue;
  /** What the model was told while the result is due. */
  readonly pendingText?: string;
  /** The model made another call after it, in the same response. @defaultValue false */
  readonly isFollowed?: boolean;
  /** Length of the arguments as JSON text. */
  readonly chars: number;
}

/** A result, or why there is none. */
export type ToolOutput =
  /** `failed`: the value tells of an error. */
  | { readonly type: 'value'; readonly value: JSONValue; readonly failed?: boolean }
  | { readonly type: 'error'; readonly message: string };

export interface ToolResultItem extends ItemBase {
  readonly role: 'tool_result';
  readonly callId: string;
  readonly toolName: string;
  readonly output: ToolOutput;
  /** Length of the output as text. */
  readonly chars: number;
}

/** The lead agent changed. */
export interface TransferItem extends ItemBase {
  readonly role: 'transfer';
  readonly from: string;
  readonly to: string;
}

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
    interrupted: z.boolean().optional(),
    audioHeardMs: z.number().nonnegative().optional(),
    omittedChars: z.number().int().nonnegative().optional(),
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
    chars: z.number().int().nonnegative(),
  }),
  z.object({ ...base, role: z.literal('transfer'), from: z.string(), to: z.string() }),
]);

export function isMessage(item: ConversationItem): item is MessageItem {
  return item.role === 'user' || item.role === 'assistant' || item.role === 'system';
}

/** How much of the log's character budget an item takes. */
export function charsOf(item: ConversationItem): number {
  if (isMessage(item)) return item.text.length + (item.noteChars ?? 0);
  return item.role === 'transfer' ? item.from.length + item.to.length : item.chars;
}

/** The text of a message, with a mark where it was cut. */
export function messageText(item: MessageItem): string {
  if (item.note) return promptText(item.note);
  return item.omittedChars ? `${item.text} ${cutMark(item.omittedChars)}` : item.text;
}

/**
 * Any value as JSON data and as JSON text; in the place of what JSON cannot say stands why.
 * What is JSON already is taken as it is, and not copied: the log holds what events carry.
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
  // `undefined`, a function or a symbol has no JSON text at all.
  text ??= 'null';
  return { value: JSON.parse(text) as JSONValue, text };
}

/** Is it an error, and not what the tool came to? */
export function isFailed(output: ToolOutput): boolean {
  return output.type === 'error' || output.failed === true;
}

/** A tool's output as the text that a model reads; an error stays recognisable as one. */
export function toolOutputText(output: ToolOutput): string {
  if (output.type === 'error') return JSON.stringify({ error: output.message });
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
}
