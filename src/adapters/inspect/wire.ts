// What is sent to an inspector: the messages of `@statelyai/inspect` 0.7.2, as its
// receivers read them. Source: the package's own types and output (2026-11).

/** The version of the schema; a receiver takes a message without one for something else. */
export const WIRE_VERSION = '0.7.2';

interface BaseMessage {
  /** Names the actor for as long as the inspector lives: its path, such as `ses_1/outbox`. */
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

/** A snapshot as shown. `value`, `tags`, `children` and `historyValue` are those of machines. */
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

/** An actor exists. Sent again when another one takes its place under the same id. */
export interface ActorMessage extends BaseMessage {
  readonly type: '@xstate.actor';
  /** The last part of its path. */
  readonly name: string;
  readonly parentId: string | undefined;
  /** The configuration of its machine, as JSON text; `{"id": …}` for an actor that is no machine. */
  readonly definition: string;
  /** As it was when it began. */
  readonly snapshot: ShownSnapshot;
}

/** An actor was sent an event. */
export interface EventMessage extends BaseMessage {
  readonly type: '@xstate.event';
  readonly event: ShownEvent;
  readonly sourceId: string | undefined;
}

/** An actor took an event in, and this is what it is now. */
export interface SnapshotMessage extends BaseMessage {
  readonly type: '@xstate.snapshot';
  readonly event: ShownEvent;
  readonly snapshot: ShownSnapshot;
}

export type InspectorMessage = ActorMessage | EventMessage | SnapshotMessage;
