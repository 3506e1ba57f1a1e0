// The order in which items are said: pure data, no machine.
//
// By class (urgent, high, normal), first come first served within a class. An item that was interrupted goes
// back to the front of its own class, so nothing overtakes it there.

export type DeliveryKind = 'result' | 'question' | 'notice' | 'progress';
export type DeliveryPriority = 'normal' | 'high' | 'urgent';

/** How the result of a background call wants to reach the user. */
export const DELIVERY_MODES = ['when_idle', 'interrupt', 'silent', 'skip_if_busy'] as const;
export type DeliveryMode = (typeof DELIVERY_MODES)[number];

/** An item that is to be said; the host keeps its text under `deliveryId`. */
export interface OutboxItem {
  readonly deliveryId: string;
  readonly kind: DeliveryKind;
  readonly priority: DeliveryPriority;
  /** A later one with the same key replaces it (the progress of one subagent). */
  readonly replaces: string | null;
  /** The item fills a reservation. */
  readonly reserved: boolean;
  /** The time after which the item is not worth saying; null: never. Results and questions never expire. */
  readonly expiresAt: number | null;
  /**
   * The item rests from the beginning, as a card that nothing wakes: always, or unless it arrives when the
   * gate is open and the queue is empty. @defaultValue 'never'
   */
  readonly rests?: 'never' | 'always' | 'if_busy';
}

/** Why an item is not said any more. */
export type DropReason = 'full' | 'expired' | 'replaced';
/**
 * How certain it is that the item was heard. `assumed`: the wire gives no correlation. `told`: it was told in
 * full, no client ever acknowledged it, and it made room for later ones of its kind.
 */
export type HearingGrade = 'played' | 'assumed' | 'shown' | 'told';

/** An item that waits, or is being said. */
export type Waiting = OutboxItem & {
  readonly attempts: number;
  readonly resting: boolean;
  /** The attempt that told it in full: it rests until it is acknowledged. Absent: no attempt did. */
  readonly toldIn?: number;
};

const rank: Record<DeliveryPriority, number> = { urgent: 0, high: 1, normal: 2 };

export const keeps = (item: OutboxItem): boolean =>
  item.kind === 'result' || item.kind === 'question';

export const isUrgent = (item: OutboxItem | null | undefined): boolean =>
  item?.priority === 'urgent';

/** Tells whether the item was told in full and not acknowledged. */
export const isTold = ({ toldIn }: { readonly toldIn?: number }): boolean => toldIn !== undefined;

/** Returns the next item to be said, or undefined. */
export const next = (queue: { readonly pending: readonly Waiting[] }): Waiting | undefined =>
  queue.pending.find((item) => !item.resting);

/**
 * Tells whether there is room for one more item without a reservation. Told items hold no room. Admission
 * asks this, too.
 */
export function hasRoom(queue: {
  readonly pending: readonly (OutboxItem & Pick<Waiting, 'toldIn'>)[];
  readonly current: OutboxItem | null;
  readonly reserved: number;
  readonly capacity: number;
}): boolean {
  const held = queue.pending.filter((item) => item.kind !== 'question' && !isTold(item)).length;
  const current = queue.current && queue.current.kind !== 'question' ? 1 : 0;
  return held + current + queue.reserved < queue.capacity;
}

export const replaces = (item: OutboxItem, other: OutboxItem): boolean =>
  item.replaces !== null && item.replaces === other.replaces;

export const isExpired = (item: OutboxItem, at: number): boolean =>
  item.expiresAt !== null && !keeps(item) && item.expiresAt <= at;

/**
 * Inserts by class, and within a class in order; an item that was interrupted goes back to the front of its
 * own.
 */
export function insert(
  pending: readonly Waiting[],
  item: Waiting,
  where: 'front' | 'back',
): Waiting[] {
  const at = pending.findIndex((other) =>
    where === 'front'
      ? rank[other.priority] >= rank[item.priority]
      : rank[other.priority] > rank[item.priority],
  );
  return at < 0 ? [...pending, item] : pending.toSpliced(at, 0, item);
}
