// What a session shows of its services.

import type { EventDropReason, EventPriority } from '../../machines/index.ts';

/** So many events, since this process has the session. */
export interface ServiceCounts {
  /** Waited for the agent, or still do. */
  readonly accepted: number;
  /** The user was told something. */
  readonly told: number;
  /** The agent saw nothing to tell. */
  readonly silent: number;
  /** The agent failed. */
  readonly failed: number;
  /** Not looked at, for a reason that `service.dropped` gave. */
  readonly dropped: number;
  /** `shouldInvoke` said no. */
  readonly ignored: number;
  /** No `ExternalEvent`, or too large. */
  readonly invalid: number;
}

export interface EventSourceView {
  readonly name: string;
  readonly state: 'created' | 'starting' | 'running' | 'releasing' | 'backing_off' | 'stopped';
  /** In a row. */
  readonly failures: number;
  /** Why it failed last. */
  readonly error: string | null;
}

export interface ServiceView {
  /** The agent's. */
  readonly name: string;
  readonly state: 'created' | 'idle' | 'invoking' | 'waiting' | 'stopped';
  /** Events that wait. */
  readonly waiting: number;
  readonly counts: ServiceCounts;
  readonly sources: readonly EventSourceView[];
}

/** An event that no agent looked at, or not to the end. */
export interface DroppedEvent {
  readonly service: string;
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  readonly priority: EventPriority;
  /** `cancelled`: somebody cancelled the agent at work. */
  readonly reason: EventDropReason | 'cancelled';
}
