// `offstage/otel`

export { meteredJournal } from './watched-journals.ts';
export type { MeteredJournalOptions } from './watched-journals.ts';
export type { EventLoggerProvider, EventLogRecord } from './instruments.ts';
export { tracedHandler } from './traced-handler.ts';
export type { TracedHandlerOptions } from './traced-handler.ts';
export { tracedJournal } from './watched-journals.ts';
export type { TracedJournalOptions } from './watched-journals.ts';
