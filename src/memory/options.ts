// The limits of working memory, and the checks of a new entry.

import { z } from 'zod';
import { ConfigurationError } from '../values/errors.ts';
import { asJson, byteLength } from '../values/json.ts';
import type { NewMemoryEntry } from '../actors/ports/working-memory.ts';

const HOUR_MS = 3_600_000;

export interface WorkingMemoryLimits {
  /**
   * How long an entry of a subagent is kept if it names no time, in milliseconds. @defaultValue 14400000, 4
   * hours
   */
  readonly subagentTtlMs: number;
  /** The same for entries of the lead agent. @defaultValue 14400000 */
  readonly sessionTtlMs: number;
  /** The longest time an entry may ask for, in milliseconds. @defaultValue 604800000, a week */
  readonly maxTtlMs: number;
  /** The limit of one namespace; an existing key can always be overwritten. @defaultValue 50 */
  readonly maxEntries: number;
  /** The limit of one entry, in UTF-8. @defaultValue 1048576 */
  readonly maxEntryBytes: number;
  /** The limit of one session, with keys and labels. @defaultValue 16777216 */
  readonly maxSessionBytes: number;
  /** The limit of all sessions. @defaultValue 67108864 */
  readonly maxTotalBytes: number;
}

export const defaultWorkingMemoryLimits = {
  subagentTtlMs: 4 * HOUR_MS,
  sessionTtlMs: 4 * HOUR_MS,
  maxTtlMs: 7 * 24 * HOUR_MS,
  maxEntries: 50,
  maxEntryBytes: 1024 ** 2,
  maxSessionBytes: 16 * 1024 ** 2,
  maxTotalBytes: 64 * 1024 ** 2,
} as const satisfies WorkingMemoryLimits;

/** @throws {ConfigurationError} when a limit is unknown, not a whole number ≥ 1, or above `maxTtlMs`. */
export function checkedWorkingMemoryLimits(
  partial: Partial<WorkingMemoryLimits>,
): WorkingMemoryLimits {
  const limits = { ...defaultWorkingMemoryLimits, ...partial };
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(defaultWorkingMemoryLimits, name))
      throw new ConfigurationError(
        'INVALID_OPTION',
        `workingMemory: unknown limit \`${name}\`, expected one of ${Object.keys(defaultWorkingMemoryLimits).join(', ')}`,
      );
    if (!Number.isInteger(value) || value < 1)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `Expected \`${name}\` to be a whole number ≥ 1, got \`${String(value)}\``,
      );
  }
  const { maxTtlMs, subagentTtlMs, sessionTtlMs } = limits;
  if (Math.max(subagentTtlMs, sessionTtlMs) > maxTtlMs)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`subagentTtlMs\` and \`sessionTtlMs\` to be at most \`maxTtlMs\`, got ${subagentTtlMs}, ${sessionTtlMs} and ${maxTtlMs}`,
    );
  return limits;
}

const label = (maxChars: number): z.ZodString => z.string().trim().min(1).max(maxChars);

const labelsSchema = z.object({
  ttlMs: z.number().positive().optional(),
  category: label(100).optional(),
  tags: z.array(label(50)).max(20).optional(),
});

export type CheckedEntry =
  | {
      readonly ok: true;
      readonly text: string;
      readonly isText: boolean;
      readonly bytes: number;
      readonly ttlMs: number | undefined;
      readonly category: string | null;
      readonly tags: readonly string[];
    }
  | { readonly ok: false; readonly message: string };

/** Checks a new entry, except its key. */
export function checkEntry({ value, ttlMs, category, tags }: NewMemoryEntry): CheckedEntry {
  const labels = labelsSchema.safeParse({ ttlMs, category, tags });
  if (!labels.success) return { ok: false, message: z.prettifyError(labels.error) };
  const isText = typeof value === 'string';
  const json = isText ? { ok: true as const, text: value } : asJson(value);
  if (value === undefined || !json.ok)
    return { ok: false, message: `Expected a value that is JSON, got ${typeof value}` };
  const { text } = json;
  return {
    ok: true,
    text,
    isText,
    bytes: byteLength(text),
    ttlMs: labels.data.ttlMs,
    category: labels.data.category ?? null,
    tags: [...new Set(labels.data.tags)],
  };
}
