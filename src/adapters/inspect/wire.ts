// The messages to an inspector: those of `@statelyai/inspect` 0.7.2, as its receivers read them. Source: the
// package's own types and output (2026-11).

/** The version of the schema; a receiver does not recognise a message without one. */
export const WIRE_VERSION = '0.7.2';

interface BaseMessage {
  /** The permanent name of the actor in the inspector: its path, such as `ses_1/outbox`. */
  readonly sessionId: string;
  /** The actor at the top of its tree. */
  readonly rootId: string;
  /** When it happened: milliseconds since 1970, as text. */
  readonly createdAt: string;
  readonly id: null;
  readonly _version: string;
}

/** An event as shown; `type` is always there. */
export interface ShownEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A snapshot as shown. Only machines have `value`, `tags`, `children` and `historyValue`. */
export interface ShownSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly value?: unknown;
  readonly context?: unknown;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly tags?: unknown;
  readonly children?: unknown;
  readonly historyValue?: unknown;
}

/** Announces an actor. Sent again when another one replaces it under the same id. */
export interface ActorMessage extends BaseMessage {
  readonly type: '@xstate.actor';
  /** The last part of its path. */
  readonly name: string;
  readonly parentId: string | undefined;
  /** The configuration of its machine, as JSON text; `{"id": …}` for an actor that is no machine. */
  readonly definition: string;
  /** The first snapshot. */
  readonly snapshot: ShownSnapshot;
}

/** Reports an event sent to an actor. */
export interface EventMessage extends BaseMessage {
  readonly type: '@xstate.event';
  readonly event: ShownEvent;
  readonly sourceId: string | undefined;
}

/** Reports the snapshot of an actor after an event. */
export interface SnapshotMessage extends BaseMessage {
  readonly type: '@xstate.snapshot';
  readonly event: ShownEvent;
  readonly snapshot: ShownSnapshot;
}

export type InspectorMessage = ActorMessage | EventMessage | SnapshotMessage;
