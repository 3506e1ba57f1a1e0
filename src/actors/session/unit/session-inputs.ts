// The inputs with which the machines and the records of a session begin. The first entry holds them: a process
// that continues the session may have other options, and the same events would then lead to another state.

import { z } from 'zod';
import type { OutboxInput, SessionInput } from '../../../machines/index.ts';
import type { ConversationLimits } from '../../conversation/limits.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import { amount, flag, maybe, misshapen, text } from '../../runtime/event-shapes.ts';
import { setAsideIn } from '../../runtime/set-aside.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';
import type { ConsolidationOptions } from '../state/batches.ts';

export const OPENED = 'session.opened';

const limit = z.union([amount, z.literal('Infinity')]);

/** The inputs as they are written down. */
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
  /** True if the lead agent's speech can be stopped in mid-sentence. */
  readonly canInterrupt: boolean;
  /** The rules by which results are told together; null: each is told by itself. @defaultValue null */
  readonly batches?: ConsolidationOptions | null;
  /**
   * The inputs of the records in the process that began the session; each process has books of its own.
   * @defaultValue unknown
   */
  readonly books?: RecordsInput;
}

export interface RecordsInput {
  /** The agent that leads first. */
  readonly agentName: string;
  readonly limits: Partial<ConversationLimits>;
  readonly promptStyle: PromptStyle;
}

/** Builds the first entry of a session. */
export function openedWith(inputs: SessionInputs): {
  readonly type: typeof OPENED;
  readonly inputs: unknown;
} {
  return { type: OPENED, inputs: JSON.parse(JSON.stringify(inputs, infinityAsText)) as unknown };
}

/** The actor that the first entry is for. */
export const OPENING_ACTOR = 'opening';

/** Tells whether the life of a session begins with this entry. */
export function isOpening({ actor, event }: JournalEntry): boolean {
  return event.type === OPENED && actor === OPENING_ACTOR;
}

/** Returns the inputs with which a session of the journal began; null: its beginning is missing. */
export function inputsIn(entries: readonly JournalEntry[]): SessionInputs | null {
  const [first] = entries;
  if (!first || !isOpening(first) || setAsideIn(entries).has(first.seq)) return null;
  if (misshapen(first.event, OPENING)) return null;
  try {
    return inputsOf((first.event as unknown as { readonly inputs: unknown }).inputs);
  } catch {
    // Nested too deeply to be read.
    return null;
  }
}

/** Restores the inputs from the form that `openedWith` made of them. */
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
