// The entry point `offstage/services`: agents that watch event sources.

export { pollingSource } from '../actors/services/polling-source.ts';
export type { Polled } from '../actors/services/polling-source.ts';
export type { EmitEvent, EventSourceConfig, ExternalEvent } from '../actors/ports/event-source.ts';
export type { EventSourceView, ServiceView } from '../actors/contracts/session-views.ts';
