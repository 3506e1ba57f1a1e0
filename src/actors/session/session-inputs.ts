// What the machines and the books of a session begin with. It is written down with the first
// entry: a process that goes on with the session may have other options, and the same events
// would then lead somewhere else.

import type { OutboxInput, SessionInput } from '../../machines/index.ts';
import type { ConversationLimits } from '../conversation/limits.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { ConsolidationOptions } from './consolidation.ts';
import type { PromptStyle } from './synthetic-turns.ts';

export const OPENED = 'session.opened';

export interface SessionInputs {
  readonly session: SessionInput;
  readonly outbox: OutboxInput;
  /** Can what the lead agent is saying be stopped in mid-sentence? */
  readonly canInterrupt: boolean;
  /** Which results are told together; null: each by itself. @defaultValue null */
  readonly batches?: ConsolidationOptions | null;
  /** Those of the process that began it; each process has books of its own. @defaultValue none are known */
  readonly books?: BooksInput;
}

export interface BooksInput {
  /** Who leads first. */
  readonly agentName: string;
  readonly limits: Partial<ConversationLimits>;
  readonly promptStyle: PromptStyle;
}

/** The first entry of a session. */
export function openedWith(inputs: SessionInputs): {
  readonly type: typeof OPENED;
  readonly inputs: unknown;
} {
  return { type: OPENED, inputs: JSON.parse(JSON.stringify(inputs, infinityAsText)) as unknown };
}

/** What a session that the journal has began with; null: its beginning is not there. */
export function inputsIn([first]: readonly JournalEntry[]): SessionInputs | null {
  if (first?.event.type !== OPENED) return null;
  return inputsOf((first.event as unknown as { readonly inputs: unknown }).inputs);
}

/** As they were given, from what `openedWith` made of them. */
export function inputsOf(inputs: unknown): SessionInputs {
  return JSON.parse(JSON.stringify(inputs), infinityFromText) as SessionInputs;
}

export function isSame(one: SessionInputs, other: SessionInputs): boolean {
  return JSON.stringify(openedWith(one)) === JSON.stringify(openedWith(other));
}

// JSON has no number for "no limit".
const NO_LIMIT = 'Infinity';
const infinityAsText = (_key: string, value: unknown): unknown =>
  value === Infinity ? NO_LIMIT : value;
const infinityFromText = (_key: string, value: unknown): unknown =>
  value === NO_LIMIT ? Infinity : value;
