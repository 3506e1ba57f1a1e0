// What a conversation may hold, and what is given up first.

import { ConfigurationError } from '../../errors.ts';
import { charsOf, isMessage, type ConversationItem, type ToolResultItem } from './items.ts';

export interface ConversationLimits {
  readonly maxItems: number;
  /** Of all items together. */
  readonly maxChars: number;
  /** Of one item; what is longer is cut, and says so. */
  readonly maxItemChars: number;
}

export const defaultConversationLimits = {
  maxItems: 500,
  maxChars: 200_000,
  maxItemChars: 20_000,
} as const satisfies ConversationLimits;

/** @throws {ConfigurationError} when a limit is not a positive whole number, or an item may be larger than all. */
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

/** The result of a call, if `item` is a call and there is one. */
export function resultOf(
  item: ConversationItem,
  items: readonly ConversationItem[],
): ToolResultItem | undefined {
  if (item.role !== 'tool_call') return undefined;
  for (const other of items) {
    if (other.role === 'tool_result' && other.callId === item.callId) return other;
  }
  return undefined;
}

/** An utterance that goes on, or a call in flight. */
export function isOpen(item: ConversationItem, items: readonly ConversationItem[]): boolean {
  if (isMessage(item)) return item.partial;
  return item.role === 'tool_call' && !resultOf(item, items);
}

/** Gives up the oldest until the rest fits; what is open only if nothing else is left. */
export function withinLimits(
  items: readonly ConversationItem[],
  { maxItems, maxChars }: ConversationLimits,
): readonly ConversationItem[] {
  let excessItems = items.length - maxItems;
  let excessChars = totalChars(items) - maxChars;
  const gone = new Set<ConversationItem>();
  const giveUp = (item: ConversationItem): void => {
    gone.add(item);
    excessItems -= 1;
    excessChars -= charsOf(item);
  };
  for (const sparesOpen of [true, false]) {
    for (const item of items) {
      if (excessItems <= 0 && excessChars <= 0) break;
      if (gone.has(item) || (sparesOpen && isOpen(item, items))) continue;
      giveUp(item);
      const result = resultOf(item, items);
      if (result) giveUp(result);
    }
  }
  return gone.size === 0 ? items : items.filter((item) => !gone.has(item));
}
