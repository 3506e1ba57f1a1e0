// What a session is told: the events of its machine, and what they carry.

import type { Stamped } from './effect.ts';
import type { Failure } from './outcome.ts';

export interface SessionInput {
  readonly maxReconnects: number;
  /** A connection may take so long to be ready, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs?: number;
  /** The lead agent's successor may take so long to be ready, in milliseconds. @defaultValue 30000 */
  readonly transferTimeoutMs?: number;
  /** What the user said may still be transcribed for so long after it ended, in milliseconds. */
  readonly settleTimeoutMs: number;
  /** Subagents may take so long to stop before they are killed, in milliseconds. */
  readonly closeGraceMs: number;
  /** Open questions are withdrawn when nobody was attached for so long; null: never. */
  readonly detachGraceMs: number | null;
}

export const DEFAULT_CONNECT_TIMEOUT_MS = 30_000;
export const DEFAULT_TRANSFER_TIMEOUT_MS = 30_000;

type Unstamped =
  | { readonly type: 'session.start' }
  | { readonly type: 'session.close' }
  /** Another process goes on with it: nobody is connected, attached or speaking any more. */
  | { readonly type: 'session.recovered' }
  /** It goes on where it was put away, idle: nobody is connected, and nothing else has changed. */
  | { readonly type: 'session.woken' }
  | { readonly type: 'transport.ready' }
  /** `retryInMs` null: trying again is pointless. */
  | {
      readonly type: 'transport.lost';
      readonly error: Failure;
      readonly retryInMs: number | null;
    }
  /** It was hung up, to go on over another one: that is to be opened now. */
  | { readonly type: 'transport.renewing' }
  /** Another connection has taken its place. */
  | { readonly type: 'transport.replaced' }
  /** Another agent shall lead. `transferId` names this attempt and no other. */
  | { readonly type: 'transfer.started'; readonly transferId: string; readonly to: string }
  /** It leads, or (`error`) it does not and the one before it still does. */
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
  /** The model has said nothing more for a while: its turn goes on when a tool has answered. */
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
