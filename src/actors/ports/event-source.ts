// A source of events for a service: a webhook, a poll, a queue, a database. The app or an adapter implements a source,
// and the service calls it, not the other way round.
//
// Guarantees to the implementer
//   - `start` is called again only after the previous attempt is released: its signal was aborted, `stop` was called,
//     and both `stop` and the promise of `start` have settled, or exceeded the service's `stopTimeoutMs`.
//   - `stop` is called once for each `start`, even if `start` threw.
//   - An error at any time ends only this attempt. The source is restarted, with increasing delays.
//
// Duties of the implementer
//   - Free all resources when the signal aborts or `stop` is called.
//   - An event emitted afterwards is refused, as its receipt says.

import type { EventPriority } from '../../machines/index.ts';
import type { Environment } from './environment.ts';

/** An external event, as a source emits it. */
export interface ExternalEvent {
  /** The system that emitted the event, such as `webhook`, without blanks, brackets or quotes. */
  readonly source: string;
  /** The type of the event, such as `order.status_changed`, without blanks, brackets or quotes. */
  readonly type: string;
  /** The event's data: JSON, or a value that `JSON.stringify` converts; at most the service's `maxEventBytes`. */
  readonly data: unknown;
  /** `urgent` may interrupt speech to the user. @defaultValue 'normal' */
  readonly priority?: EventPriority;
}

/** Why an event was refused. */
export type EventRefusal =
  /** The event does not match `ExternalEvent`, or its data is not JSON. */
  | 'invalid'
  | 'too_large'
  /** `shouldInvoke` returned false. */
  | 'ignored'
  /** Too many events are queued; the source may try again later. */
  | 'full'
  /** The attempt or the service has ended. */
  | 'stopped';

/** The result of emitting an event: the event is in the journal and queued for the agent, or it was refused. */
export type EventReceipt =
  | { readonly accepted: true; readonly eventId: string }
  | { readonly accepted: false; readonly reason: EventRefusal; readonly message: string };

/** Emits an event. The receipt may be ignored; the promise never rejects. */
export type EmitEvent = (event: ExternalEvent) => Promise<EventReceipt>;

/** The context that a source receives together with `emit`. */
export interface EventSourceContext {
  /** The source of time and randomness. */
  readonly environment: Environment;
  /**
   * Reports a failure of this attempt after `start` has returned: the attempt is released, and the source is restarted
   * later.
   */
  fail(error: unknown): void;
  /** Reports an error to the session's `onError`. The attempt continues. */
  report(error: unknown): void;
}

/** A source of events for a service, such as a webhook or a poll. */
export interface EventSourceConfig {
  /** The name of the source in views and errors; unique within its service. */
  readonly name: string;
  /**
   * Starts to emit. May return when the source is ready, or run until the signal aborts. If it throws or rejects, the
   * attempt has failed.
   */
  start(emit: EmitEvent, signal: AbortSignal, context: EventSourceContext): void | Promise<void>;
  /** Frees the resources of `start`; not needed if aborting the signal is enough. */
  stop?(): void | Promise<void>;
}
