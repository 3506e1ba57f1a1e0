// The views of a session's services.

import type { EventDropReason, EventPriority } from '../../machines/index.ts';

/** Numbers of events since this process loaded the session. */
export interface ServiceCounts {
  /** Events that waited for the agent, or still do. */
  readonly accepted: number;
  /** Events that the agent reported to the user. */
  readonly told: number;
  /** Events that the agent did not report. */
  readonly silent: number;
  /** Events on which the agent failed. */
  readonly failed: number;
  /** Events that were dropped before the agent saw them; `service.dropped` gave the reason. */
  readonly dropped: number;
  /** Events that `shouldInvoke` rejected. */
  readonly ignored: number;
  /** Inputs that were no `ExternalEvent`, or too large. */
  readonly invalid: number;
}

export interface EventSourceView {
  readonly name: string;
  readonly state: 'created' | 'starting' | 'running' | 'releasing' | 'backing_off' | 'stopped';
  /** The number of consecutive failures. */
  readonly failures: number;
  /** The error of the last failure. */
  readonly error: string | null;
}

export interface ServiceView {
  /** The name of the agent. */
  readonly name: string;
  readonly state: 'created' | 'idle' | 'invoking' | 'waiting' | 'stopped';
  /** The number of waiting events. */
  readonly waiting: number;
  readonly counts: ServiceCounts;
  readonly sources: readonly EventSourceView[];
}

/** An event that no agent handled completely. */
export interface DroppedEvent {
  readonly service: string;
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  readonly priority: EventPriority;
  /** `cancelled`: the agent was cancelled while working on it. */
  readonly reason: EventDropReason | 'cancelled';
}
