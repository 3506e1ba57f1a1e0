// A wake time as a row of a table: its check, and the start of reading.

import { JournalError } from '../../actors/ports/journal-error.ts';
import type { WakeTime } from '../../actors/ports/wake-times.ts';
import { checkName } from './stored-entry.ts';

/** The position before all wake times. */
export const BEFORE_ALL: WakeTime = { at: -Infinity, scope: '' };

/** @throws {JournalError} `INVALID_ENTRY` for a scope or a time that cannot be stored. */
export function checkWakeTime(scope: string, at: number | null): void {
  checkName(scope);
  if (at !== null && Number.isNaN(at))
    throw new JournalError('INVALID_ENTRY', `Expected a time for ${scope}, got NaN`, {
      retryable: false,
    });
}
