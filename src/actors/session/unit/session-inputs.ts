// What the machines and the books of a session begin with. It is written down with the first
// entry: a process that goes on with the session may have other options, and the same events
// would then lead somewhere else.

import { z } from 'zod';
import type { OutboxInput, SessionInput } from '../../../machines/index.ts';
import type { ConversationLimits } from '../../conversation/limits.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import { amount, flag, maybe, misshapen, text } from '../../runtime/event-shapes.ts';
import { setAsideIn } from '../../runtime/set-aside.ts';
import type { ConsolidationOptions } from '../state/consolidation.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';

export const OPENED = 'session.opened';

const limit = z.union([amount, z.literal('Infinity')]);

/** As they are written down. */
export const inputsShape = z.looseObject({
  session: z.looseObject({
    maxReconnects: limit,
    connectTimeoutMs: maybe(limit),
    transferTimeoutMs: maybe(limit),
    settleTimeoutMs: limit,
    closeGraceMs: limit,
    detachGraceMs: maybe(limit),
  }),
  outbox: z.looseObject({
    capacity: limit,
    quietMs: limit,
    offerTimeoutMs: limit,
    playTimeoutMs: limit,
    maxAttempts: limit,
  }),
  canInterrupt: flag,
  batches: maybe(
    z.looseObject({
      interactiveCeilingMs: limit,
      backgroundCeilingMs: limit,
      atCeiling: z.enum(['deliver', 'cancel']),
      graceMs: limit,
    }),
  ),
  books: maybe(
    z.looseObject({
      agentName: text,
      limits: z.record(z.string(), z.union([z.int().positive(), z.literal('Infinity')])),
      promptStyle: z.enum(['notice', 'turn']),
    }),
  ),
});

const OPENING = { [OPENED]: z.looseObject({ inputs: inputsShape }) };

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

/** The actor that the first entry is for. */
export const OPENING_ACTOR = 'opening';

/** Does the life of a session begin with this entry? */
export function isOpening({ actor, event }: JournalEntry): boolean {
  return event.type === OPENED && actor === OPENING_ACTOR;
}

/** What a session that the journal has began with; null: its beginning is not there. */
export function inputsIn(entries: readonly JournalEntry[]): SessionInputs | null {
  const [first] = entries;
  if (!first || !isOpening(first) || setAsideIn(entries).has(first.seq)) return null;
  if (misshapen(first.event, OPENING)) return null;
  try {
    return inputsOf((first.event as unknown as { readonly inputs: unknown }).inputs);
  } catch {
    // Nested so deeply that it cannot be read.
    return null;
  }
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
