// `offstage/cloudflare`

export { durableObjectJournal } from './durable-object-journal.ts';
export type { DurableObjectJournalOptions } from './durable-object-journal.ts';
export { hostSession } from './session-host.ts';
export type { HostedSession, SessionHost, SessionHostOptions } from './session-host.ts';
export { workersEnvironment } from './workers-environment.ts';
export type { DurableObjectContext, DurableSocket, DurableStorage } from './platform.ts';
