// Where the events of a service come from: a webhook, a poll, a queue, a database. A source is
// code of the app or of an adapter; the service calls it, never the other way round.
//
// Guarantees to the implementer
//   - `start` is called again only after the attempt before it was released: its signal was
//     aborted, `stop` was called, and both `stop` and the promise of `start` have settled, or
//     took longer than the service's `stopTimeoutMs`.
//   - `stop` is called once for each `start`, also for one that threw.
//   - Whatever it throws, and whenever, ends this attempt only. It is started again, later and later.
// Duties of the implementer
//   - Free everything when the signal aborts or `stop` is called.
//   - What it emits afterwards is refused, and says so in the receipt.

import type { EventPriority } from '../../machines/index.ts';
import type { Environment } from './environment.ts';

/** Something that happened outside, as a source tells it. */
export interface ExternalEvent {
  /** The system that it comes from, such as `webhook`: no blanks, brackets or quotes. */
  readonly source: string;
  /** What happened, such as `order.status_changed`: no blanks, brackets or quotes. */
  readonly type: string;
  /** JSON, or what `JSON.stringify` makes of it; at most the service's `maxEventBytes`. */
  readonly data: unknown;
  /** `urgent` may interrupt what is being said to the user. @defaultValue 'normal' */
  readonly priority?: EventPriority;
}

/** Why an event was not taken. */
export type EventRefusal =
  /** It is no `ExternalEvent`, or its data is not JSON. */
  | 'invalid'
  | 'too_large'
  /** `shouldInvoke` said no. */
  | 'ignored'
  /** Too many wait already: try again later. */
  | 'full'
  /** The attempt, or the service, is over. */
  | 'stopped';

/** What became of an event: it is in the journal and waits for the agent, or it was not taken. */
export type EventReceipt =
  | { readonly accepted: true; readonly eventId: string }
  | { readonly accepted: false; readonly reason: EventRefusal; readonly message: string };

/** Hands an event over. The receipt may be ignored; the promise never rejects. */
export type EmitEvent = (event: ExternalEvent) => Promise<EventReceipt>;

/** What a source may use beside `emit`. */
export interface EventSourceContext {
  /** Time and chance. */
  readonly environment: Environment;
  /** This attempt has failed, though `start` has returned: it is released and started again later. */
  fail(error: unknown): void;
  /** Something went wrong that this attempt survives; the session's `onError` learns of it. */
  report(error: unknown): void;
}

export interface EventSourceConfig {
  /** Names it in views and errors; unique within its service. */
  readonly name: string;
  /**
   * Begins to emit. It may return when it is up, or go on until the signal aborts. What it
   * throws or rejects with is a failure.
   */
  start(emit: EmitEvent, signal: AbortSignal, context: EventSourceContext): void | Promise<void>;
  /** Frees what `start` holds, if the signal does not do that alone. */
  stop?(): void | Promise<void>;
}
