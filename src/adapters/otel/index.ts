// `offstage/otel`

export { meteredJournal } from './metered-journal.ts';
export type { MeteredJournalOptions } from './metered-journal.ts';
export type { EventLoggerProvider, EventLogRecord } from './instruments.ts';
export { tracedHandler } from './traced-handler.ts';
export type { TracedHandlerOptions } from './traced-handler.ts';
export { tracedJournal } from './traced-journal.ts';
export type { TracedJournalOptions } from './traced-journal.ts';
