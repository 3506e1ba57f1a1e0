// `offstage/services`: agents that watch event sources.

export { pollingSource } from '../actors/services/polling-source.ts';
export type { Polled, PollingSourceOptions } from '../actors/services/polling-source.ts';
export type { SessionServiceViews } from '../actors/session/view/base-session.ts';
export type {
  EmitEvent,
  EventReceipt,
  EventRefusal,
  EventSourceConfig,
  EventSourceContext,
  ExternalEvent,
} from '../actors/ports/event-source.ts';
export type { DroppedEvent } from '../actors/contracts/session-views.ts';
export type { EventSourceView } from '../actors/contracts/session-views.ts';
export type { ServiceCounts } from '../actors/contracts/session-views.ts';
export type { ServiceView } from '../actors/contracts/session-views.ts';
