// The entry `offstage/postgres-journal`.

export { postgresJournal } from './postgres-journal.ts';
export type { PostgresJournal, PostgresJournalOptions } from './postgres-journal.ts';
