// The context, the effects, the guards and the actions of the charts of the outbox.
//
// Owns:     the arithmetic of the queue and of the attempts.
// Does not: decide when they apply (outbox-machine and outbox-slot do).

import { assign, not, or, setup, stateIn } from 'xstate';
import { activity, effect, type DeadlineInput, type Stamped, type EffectsOf } from './effect.ts';
import type { OutboxEvent, OutboxInput } from './outbox-events.ts';
import {
  hasRoom,
  insert,
  isExpired,
  isTold,
  isUrgent,
  keeps,
  next,
  replaces,
  type DropReason,
  type HearingGrade,
  type OutboxItem,
  type Waiting,
} from './outbox-queue.ts';

export interface OutboxContext extends OutboxInput {
  readonly pending: readonly Waiting[];
  readonly current: Waiting | null;
  /** Numbers the attempts. */
  readonly generation: number;
  readonly reserved: number;
  /** The time at which the gate opened, or the last attempt ended: the later of the two. */
  readonly quietSince: number;
  readonly dueAt: number;
  /** The transport can stop its audio: urgent items may interrupt. */
  readonly interruptible: boolean;
}

/** Tells whether later progress of the same subagent waits. */
const isOutdone = ({ current, pending }: Pick<OutboxContext, 'current' | 'pending'>): boolean =>
  current !== null && pending.some((other) => replaces(current, other));

/** Returns the items that were told and not acknowledged; questions end by themselves and are not counted. */
const toldOf = ({ pending }: Pick<OutboxContext, 'pending'>): readonly Waiting[] =>
  pending.filter((item) => isTold(item) && item.kind !== 'question');

/** Returns the told item that was told first. */
export const oldestTold = (context: Pick<OutboxContext, 'pending'>): Waiting | undefined =>
  toldOf(context).toSorted((a, b) => (a.toldIn ?? 0) - (b.toldIn ?? 0))[0];

const effects = {
  /** Offers the item now. One of the `delivery.*` events comes back with this generation. */
  offer: effect<{
    readonly deliveryId: string;
    readonly generation: number;
    readonly attempt: number;
  }>(),
  /** The user begins to hear it. */
  begun: effect<{ readonly deliveryId: string }>(),
  /** Stops the item that is being said: an urgent one waits. */
  interrupt: effect<{ readonly deliveryId: string }>(),
  /** Abandons the attempt under way: its item was answered, shown or withdrawn meanwhile. */
  abandon: effect<{ readonly deliveryId: string; readonly generation: number }>(),
  /** The item reached the user. */
  delivered: effect<{
    readonly deliveryId: string;
    readonly grade: HearingGrade;
    readonly by?: string;
  }>(),
  /** The user dismissed the item. */
  dismissed: effect<{ readonly deliveryId: string; readonly by?: string }>(),
  /** These items will not be said; `reason` says why. */
  dropped: effect<{ readonly deliveryIds: readonly string[]; readonly reason: DropReason }>(),
  /** The item could not be said in `attempts` attempts; show it as a card. */
  card: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
  /** The item was said in full and not acknowledged; show it as a card until it is. */
  told: effect<{ readonly deliveryId: string; readonly generation: number }>(),
  /** The item is not said: the lead model learns of it, and a screen shows it as a card. */
  rested: effect<{ readonly deliveryId: string }>(),
  /** The item was not heard and waits again. */
  returned: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
};

export type OutboxEffects = EffectsOf<typeof effects>;

export const outboxSetup = setup({
  types: {
    input: {} as OutboxInput,
    context: {} as OutboxContext,
    events: {} as OutboxEvent,
  },
  actors: { deadline: activity<DeadlineInput>('deadline') },
  actions: {
    ...effects,
    beginQuiet: assign((_, { at }: Stamped) => ({ quietSince: at })),
    awaitQuiet: assign(({ context }) => ({ dueAt: context.quietSince + context.quietMs })),
    take: assign(({ context }, { at }: Stamped) => {
      const item = next(context) ?? null;
      return {
        current: item && { ...item, attempts: item.attempts + 1 },
        pending: context.pending.filter((other) => other !== item),
        generation: context.generation + 1,
        dueAt: at + context.offerTimeoutMs,
      };
    }),
    startPlayClock: assign(({ context }, { at }: Stamped) => ({
      dueAt: at + context.playTimeoutMs,
    })),
    returnToQueue: assign(({ context }) => {
      const item = context.current;
      if (item === null) return {};
      const resting = item.attempts >= context.maxAttempts;
      return { current: null, pending: insert(context.pending, { ...item, resting }, 'front') };
    }),
    /** The item leaves the slot, and rests until it is acknowledged. */
    keepTold: assign(({ context }) => {
      const item = context.current;
      if (item === null) return {};
      const told = { ...item, resting: true, toldIn: context.generation };
      return { current: null, pending: insert(context.pending, told, 'front') };
    }),
    removeTold: assign(({ context }, { generation }: { generation: number }) => ({
      pending: context.pending.filter(({ toldIn }) => toldIn !== generation),
    })),
    removeOldestTold: assign(({ context }) => ({
      pending: context.pending.filter((item) => item !== oldestTold(context)),
    })),
    /** A question that was told is put again, in its current words. */
    addAgain: assign(({ context }, { item }: { item: OutboxItem }) => ({
      pending: insert(
        context.pending.filter(({ deliveryId }) => deliveryId !== item.deliveryId),
        { ...item, attempts: 0, resting: false, rests: 'never' },
        'back',
      ),
    })),
    /** No client could have heard this attempt, so it does not count against the wire. */
    forgiveAttempt: assign(({ context }) => ({
      current: context.current && { ...context.current, attempts: context.current.attempts - 1 },
    })),
    remove: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      pending: context.pending.filter((item) => item.deliveryId !== deliveryId),
    })),
    removeExpired: assign(({ context }, { at }: Stamped) => ({
      pending: context.pending.filter((item) => !isExpired(item, at)),
    })),
    add: assign(({ context }, { item }: { item: OutboxItem }) => ({
      reserved: item.reserved ? Math.max(0, context.reserved - 1) : context.reserved,
      pending: insert(
        context.pending.filter((other) => !replaces(item, other)),
        { ...item, attempts: 0, resting: false, rests: 'never' },
        'back',
      ),
    })),
    /** Adds an item that rests until it was shown or dismissed. */
    addSilent: assign(({ context }, { item }: { item: OutboxItem }) => ({
      reserved: item.reserved ? Math.max(0, context.reserved - 1) : context.reserved,
      pending: insert(
        context.pending,
        { ...item, attempts: 0, resting: true, rests: 'always' },
        'back',
      ),
    })),
    keepInterruptible: assign((_, { interruptible }: { interruptible: boolean }) => ({
      interruptible,
    })),
    clear: assign({ current: null }),
    wake: assign(({ context }) => ({
      pending: context.pending.map((item) =>
        item.resting && item.rests !== 'always' && !isTold(item)
          ? { ...item, resting: false, attempts: 0 }
          : item,
      ),
    })),
  },
  guards: {
    gateIsOpen: stateIn({ gate: 'open' }),
    hasNext: ({ context }) => next(context) !== undefined,
    isUrgent: ({ context }) => isUrgent(next(context)),
    /** An item waits, and the pause is over; an urgent item does not wait for the pause. */
    isDue: ({ context, event: { at } }) => {
      const item = next(context);
      const isQuiet = at >= context.quietSince + context.quietMs;
      return item !== undefined && (isQuiet || isUrgent(item));
    },
    isAnyExpired: ({ context, event: { at } }) =>
      context.pending.some((item) => isExpired(item, at)),
    isOutdone: ({ context }) => isOutdone(context),
    isOutdoneAttempt: ({ context }, { generation }: { generation: number }) =>
      generation === context.generation && isOutdone(context),
    isExhausted: ({ context }) =>
      context.current !== null && context.current.attempts >= context.maxAttempts,
    replacesOther: ({ context }, { item }: { item: OutboxItem }) =>
      context.pending.some((other) => replaces(item, other)),
    interruptsNow: ({ context }, { item }: { item: OutboxItem }) =>
      item.priority === 'urgent' && context.interruptible && !isUrgent(context.current),
    urgentMayInterrupt: ({ context }, { interruptible }: { interruptible: boolean }) =>
      interruptible && isUrgent(next(context)) && !isUrgent(context.current),
    isAttempt: ({ context }, { generation }: { generation: number }) =>
      generation === context.generation,
    isToldAttempt: ({ context }, { generation }: { generation: number }) =>
      context.pending.some(({ toldIn }) => toldIn === generation),
    isToldQuestion: ({ context }, { item }: { item: OutboxItem }) =>
      item.kind === 'question' &&
      context.pending.some((other) => other.deliveryId === item.deliveryId && isTold(other)),
    hasTooManyTold: ({ context }) => toldOf(context).length > context.capacity,
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    isCurrent: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.current?.deliveryId === deliveryId,
    isPending: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.pending.some((item) => item.deliveryId === deliveryId),
    isPendingNews: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.pending.some((item) => item.deliveryId === deliveryId && !keeps(item)),
    isSilent: (_, { item }: { item: OutboxItem }) => item.rests === 'always',
    isBusy: or([
      not(stateIn({ gate: 'open' })),
      ({ context }) => context.current !== null || next(context) !== undefined,
    ]),
    isKnown: ({ context }, { item }: { item: OutboxItem }) =>
      context.current?.deliveryId === item.deliveryId ||
      context.pending.some((other) => other.deliveryId === item.deliveryId),
    doesNotFit: ({ context }, { item }: { item: OutboxItem }) =>
      !item.reserved &&
      !keeps(item) &&
      !context.pending.some((other) => replaces(item, other) && !isTold(other)) &&
      !hasRoom(context),
  },
});
