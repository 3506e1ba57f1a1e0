// What the outbox is told.

import type { Stamped } from './effect.ts';
import type { OutboxItem } from './outbox-queue.ts';

export interface OutboxInput {
  /** Results waiting or reserved, and notices; questions come on top, one at a time. */
  readonly capacity: number;
  /**
   * Before something is said the gate must have been open, and nothing been tried, for so long,
   * in milliseconds. It counts from then, not from when there was something to say.
   */
  readonly quietMs: number;
  /** No audio by then: the attempt failed. */
  readonly offerTimeoutMs: number;
  /** No end of the audio by then: the attempt failed. */
  readonly playTimeoutMs: number;
  readonly maxAttempts: number;
}

type Unstamped =
  | { readonly type: 'outbox.reserve' }
  | { readonly type: 'outbox.unreserve' }
  | { readonly type: 'outbox.add'; readonly item: OutboxItem }
  | { readonly type: 'outbox.retract'; readonly deliveryId: string }
  /** News that is old by now: dropped if it still waits. Results and questions are none. */
  | { readonly type: 'outbox.outdate'; readonly deliveryId: string }
  | { readonly type: 'gate.opened' }
  | { readonly type: 'gate.closed'; readonly interruptible: boolean }
  | { readonly type: 'delivery.playing'; readonly generation: number }
  | {
      readonly type: 'delivery.heard';
      readonly generation: number;
      readonly grade: 'played' | 'assumed';
    }
  /** It was said in full, and nobody has acknowledged it: whoever has it may still do so. */
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

/** The identity that an event names, for the params of its effect; nothing where it names none. */
export const byOf = ({ by }: { readonly by?: string }): { readonly by?: string } =>
  by === undefined ? {} : { by };
