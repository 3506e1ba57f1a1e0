// `offstage/otel`

export { tracedJournal } from './traced-journal.ts';
export type { TracedJournalOptions } from './traced-journal.ts';
