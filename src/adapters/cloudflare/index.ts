// The entry `offstage/cloudflare`: sessions in a Durable Object.

export { durableObjectJournal } from './durable-object-journal.ts';
export { hostSession } from './session-host.ts';
export type { SessionHost } from './session-host.ts';
export { workersEnvironment } from './workers-environment.ts';
export type { DurableObjectContext, DurableSocket } from './platform.ts';
