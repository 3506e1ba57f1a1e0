// `offstage/services`: agents that watch event sources.

export { pollingSource } from '../actors/services/polling-source.ts';
export type { Polled, PollingSourceOptions } from '../actors/services/polling-source.ts';
export type {
  DroppedEvent,
  EventSourceView,
  ServiceCounts,
  ServiceView,
} from '../actors/contracts/service-view.ts';
export type { SessionServiceViews } from '../actors/session/view/base-session.ts';
export type {
  EmitEvent,
  EventReceipt,
  EventRefusal,
  EventSourceConfig,
  EventSourceContext,
  ExternalEvent,
} from '../actors/ports/event-source.ts';
