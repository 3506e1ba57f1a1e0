// The events of the session's machine, and their payloads.

import type { Stamped } from './effect.ts';
import type { Failure } from './outcome.ts';

export interface SessionInput {
  readonly maxReconnects: number;
  /** The longest time until a connection is ready, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs?: number;
  /** The longest time until the lead agent's successor is ready, in milliseconds. @defaultValue 30000 */
  readonly transferTimeoutMs?: number;
  /** The longest time that transcription may take after an utterance ended, in milliseconds. */
  readonly settleTimeoutMs: number;
  /** The longest time that subagents may take to stop before they are killed, in milliseconds. */
  readonly closeGraceMs: number;
  /** The time without a client after which open questions are withdrawn, in milliseconds; null: never. */
  readonly detachGraceMs: number | null;
}

export const DEFAULT_CONNECT_TIMEOUT_MS = 30_000;
export const DEFAULT_TRANSFER_TIMEOUT_MS = 30_000;

type Unstamped =
  | { readonly type: 'session.start' }
  | { readonly type: 'session.close' }
  /**
   * Another process continues the session: no client is attached, the transport is not connected, all are
   * silent.
   */
  | { readonly type: 'session.recovered' }
  /**
   * The session resumes where it was parked, idle: the transport is not connected; nothing else has changed.
   */
  | { readonly type: 'session.woken' }
  | { readonly type: 'transport.ready' }
  /** `retryInMs` null: trying again is pointless. */
  | {
      readonly type: 'transport.lost';
      readonly error: Failure;
      readonly retryInMs: number | null;
    }
  /** The connection was closed to be resumed on another one, which must be opened now. */
  | { readonly type: 'transport.renewing' }
  /** Another connection has taken its place. */
  | { readonly type: 'transport.replaced' }
  /** Another agent is to lead. `transferId` names this attempt and no other. */
  | { readonly type: 'transfer.started'; readonly transferId: string; readonly to: string }
  /** The agent leads, or (`error`) it does not and the one before it still does. */
  | {
      readonly type: 'transfer.ended';
      readonly transferId: string;
      readonly error: Failure | null;
    }
  | { readonly type: 'subagents.ended' }
  | { readonly type: 'client.attached' }
  | { readonly type: 'client.detached' }
  | { readonly type: 'utterance.started' }
  | { readonly type: 'utterance.ended' }
  | { readonly type: 'utterance.settled' }
  | { readonly type: 'response.requested' }
  /** The model has been silent for a while: its turn continues when a tool has answered. */
  | { readonly type: 'response.waiting' }
  | { readonly type: 'response.ended' }
  | { readonly type: 'playout.started' }
  | { readonly type: 'playout.drained' }
  | { readonly type: 'deadline.connect'; readonly dueAt: number }
  | { readonly type: 'deadline.transfer'; readonly dueAt: number }
  | { readonly type: 'deadline.reconnect'; readonly dueAt: number }
  | { readonly type: 'deadline.settle'; readonly dueAt: number }
  | { readonly type: 'deadline.detach'; readonly dueAt: number }
  | { readonly type: 'deadline.close'; readonly dueAt: number };

export type SessionMachineEvent = Unstamped & Stamped;

export type Lost = Pick<
  Extract<SessionMachineEvent, { type: 'transport.lost' }>,
  'at' | 'error' | 'retryInMs'
>;
