// The entry `offstage/journal`: a pool of sessions that sleep in their journal. It also exports the entries, errors,
// redaction and wake times for apps that write or read a journal.

export { createSessionPool } from '../actors/pool/session-pool.ts';
export type { SessionPool, SessionPoolOptions } from '../actors/pool/session-pool.ts';
export type { DeskItem } from '../actors/pool/session-desk.ts';
export type { Desk } from '../actors/ports/desk.ts';
export type { Clock, Random } from '../actors/ports/environment.ts';
export type {
  JournalEntry,
  JournalPosition,
  JournalQuery,
  ScopeSummary,
} from '../actors/ports/journal.ts';
export { journalEntryOf } from '../actors/ports/journal-entry.ts';
export { JournalError } from '../actors/ports/journal-error.ts';
export type { ScopeInUse } from '../actors/ports/journal-error.ts';
export { memoryWakeTimes } from '../actors/ports/wake-times.ts';
export type { WakeTime, WakeTimes } from '../actors/ports/wake-times.ts';
export type { MemoryJournal } from '../actors/runtime/memory-journal.ts';
export { applyRetention, forgetSession } from '../actors/runtime/forgetting.ts';
export { redactingJournal } from '../actors/runtime/redacting-journal.ts';
export type { RedactionOptions } from '../actors/runtime/redacting-journal.ts';
export { SECRET_NAMES } from '../values/secrets.ts';
export type { QuarantinedEntry } from '../actors/contracts/session-views.ts';
