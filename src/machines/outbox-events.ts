// The configuration and the events of the outbox.

import type { Stamped } from './effect.ts';
import type { OutboxItem } from './outbox-queue.ts';

export interface OutboxInput {
  /** Results waiting or reserved, and notices; questions come on top, one at a time. */
  readonly capacity: number;
  /**
   * The time that the gate must have been open without any attempt before an item is said, in milliseconds.
   * It counts from then, not from the arrival of the item.
   */
  readonly quietMs: number;
  /** Time until the audio must have begun; then the attempt has failed. */
  readonly offerTimeoutMs: number;
  /** Time until the audio must have ended; then the attempt has failed. */
  readonly playTimeoutMs: number;
  readonly maxAttempts: number;
}

type Unstamped =
  | { readonly type: 'outbox.reserve' }
  | { readonly type: 'outbox.unreserve' }
  | { readonly type: 'outbox.add'; readonly item: OutboxItem }
  | { readonly type: 'outbox.retract'; readonly deliveryId: string }
  /** The item is out of date: dropped if it still waits. Never sent for results and questions. */
  | { readonly type: 'outbox.outdate'; readonly deliveryId: string }
  | { readonly type: 'gate.opened' }
  | { readonly type: 'gate.closed'; readonly interruptible: boolean }
  | { readonly type: 'delivery.playing'; readonly generation: number }
  | {
      readonly type: 'delivery.heard';
      readonly generation: number;
      readonly grade: 'played' | 'assumed';
    }
  /** The item was said in full and not acknowledged; the client that has it may still do so. */
  | { readonly type: 'delivery.told'; readonly generation: number }
  | { readonly type: 'delivery.interrupted'; readonly generation: number }
  | { readonly type: 'delivery.failed'; readonly generation: number }
  /** `by`: the identity that the app vouches for. */
  | { readonly type: 'delivery.shown'; readonly deliveryId: string; readonly by?: string }
  | { readonly type: 'delivery.dismissed'; readonly deliveryId: string; readonly by?: string }
  | { readonly type: 'client.attached' }
  | { readonly type: 'client.detached' }
  | { readonly type: 'utterance.ended' }
  | { readonly type: 'deadline.quiet'; readonly dueAt: number }
  | { readonly type: 'deadline.offer'; readonly dueAt: number }
  | { readonly type: 'deadline.play'; readonly dueAt: number };

export type OutboxEvent = Unstamped & Stamped;

/** Returns the identity that an event names, for the params of its effect; empty if it names none. */
export const byOf = ({ by }: { readonly by?: string }): { readonly by?: string } =>
  by === undefined ? {} : { by };
