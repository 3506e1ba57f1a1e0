// The entry `offstage/sqlite-journal`.

export { sqliteJournal } from './sqlite-journal.ts';
export type { SqliteJournal } from './sqlite-journal.ts';
