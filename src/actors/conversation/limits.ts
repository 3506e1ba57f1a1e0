// The limits of a conversation, and the order in which items are dropped.

import { ConfigurationError } from '../../values/errors.ts';
import { charsOf, isMessage, type ConversationItem, type ToolResultItem } from './items.ts';

export interface ConversationLimits {
  readonly maxItems: number;
  /** The number of characters of all items together. */
  readonly maxChars: number;
  /** The number of characters of one item; a longer one is cut with a mark. */
  readonly maxItemChars: number;
}

export const defaultConversationLimits = {
  maxItems: 500,
  maxChars: 200_000,
  maxItemChars: 20_000,
} as const satisfies ConversationLimits;

/**
 * @throws {ConfigurationError} if a limit is not a positive whole number, or one item may be larger than all.
 */
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

/** Results by the ids of their calls. */
export type Results = ReadonlyMap<string, ToolResultItem>;

/** Collects the results once: searching all items for each call would be quadratic. */
export function resultsIn(items: readonly ConversationItem[]): Results {
  return new Map(
    items.flatMap((item) => (item.role === 'tool_result' ? [[item.callId, item] as const] : [])),
  );
}

/** Returns the result of a call, if `item` is a call and has one. */
export function resultOf(item: ConversationItem, results: Results): ToolResultItem | undefined {
  return item.role === 'tool_call' ? results.get(item.callId) : undefined;
}

/** Returns whether the item is an unfinished utterance, or a call in flight. */
export function isOpen(item: ConversationItem, results: Results): boolean {
  if (isMessage(item)) return item.partial;
  return item.role === 'tool_call' && !results.has(item.callId);
}

/** Drops the oldest items until the rest fits; open items only if no others are left. */
export function withinLimits(
  items: readonly ConversationItem[],
  { maxItems, maxChars }: ConversationLimits,
): readonly ConversationItem[] {
  let excessItems = items.length - maxItems;
  let excessChars = totalChars(items) - maxChars;
  if (excessItems <= 0 && excessChars <= 0) return items;
  const results = resultsIn(items);
  const gone = new Set<ConversationItem>();
  const giveUp = (item: ConversationItem): void => {
    gone.add(item);
    excessItems -= 1;
    excessChars -= charsOf(item);
  };
  for (const sparesOpen of [true, false]) {
    for (const item of items) {
      if (excessItems <= 0 && excessChars <= 0) break;
      if (gone.has(item) || (sparesOpen && isOpen(item, results))) continue;
      giveUp(item);
      const result = resultOf(item, results);
      if (result) giveUp(result);
    }
  }
  return items.filter((item) => !gone.has(item));
}
