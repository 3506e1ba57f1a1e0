// The parts of the outbox's statechart: the items and their order, the events, the context, the effects, the guards and
// the actions.
//
// Owns:     the order of the items (OUTBOX-4), and the count of attempts.
// Does not: decide when an action applies (outbox-machine.ts).

import { assign, not, or, setup, stateIn } from 'xstate';
import { activities, effect, type Deadline, type EffectsOf, type Stamped } from './effect.ts';

/** The kind of an item's content. */
export type DeliveryKind = 'result' | 'question' | 'notice' | 'progress';
/** The priority class of an item. An `urgent` item is spoken first and may interrupt. */
export type DeliveryPriority = 'normal' | 'high' | 'urgent';

/** How the result of a background call reaches the user. */
export const DELIVERY_MODES = ['when_idle', 'interrupt', 'silent', 'skip_if_busy'] as const;
/** How a result reaches the user. */
export type DeliveryMode = (typeof DELIVERY_MODES)[number];

/** An item to be spoken. The host stores its text under `deliveryId`. */
export interface OutboxItem {
  /** The id of the delivery. */
  readonly deliveryId: string;
  /** The kind of content. */
  readonly kind: DeliveryKind;
  /** The item's class, which orders the waiting items. */
  readonly priority: DeliveryPriority;
  /** A later item with the same key (the progress of one subagent) replaces this item. Null if none does. */
  readonly replaces: string | null;
  /** Whether the item uses a reserved place. */
  readonly reserved: boolean;
  /** The time after which the item is out of date; null if it never is. Results and questions never expire. */
  readonly expiresAt: number | null;
  /**
   * Whether the item rests as a card from the start and is never spoken. `if_busy`: it rests unless it arrives while
   * the gate is open and the queue is empty. @defaultValue 'never'
   */
  readonly rests?: 'never' | 'always' | 'if_busy';
  /**
   * The lead agent has read the item and may mention it in its reply, so the item is not offered before
   * `delivery.unread`.
   * @defaultValue false
   */
  readonly read?: boolean;
}

/** Why an item will not be spoken. */
export type DropReason = 'full' | 'expired' | 'replaced';
/**
 * How certain it is that the user heard the item. `assumed`: the transport does not report playback. `told`: the item
 * was spoken in full, no client acknowledged it, and it was removed to make room for later items. `read`: the user read
 * it in a channel of `reach`.
 */
export type HearingGrade = 'played' | 'assumed' | 'shown' | 'told' | 'read';

/** An item that is waiting or being spoken. */
export type Waiting = OutboxItem & {
  readonly attempts: number;
  readonly resting: boolean;
  /** The attempt that spoke the item in full; the item rests until it is acknowledged. Absent if no attempt did so. */
  readonly toldIn?: number;
  /** When the user last interrupted the item, in milliseconds since 1970. Absent if the user has not interrupted it. */
  readonly interruptedAt?: number;
  /** The first attempt in which the user heard a sentence or more. Absent if each attempt starts from the beginning. */
  readonly begunIn?: number;
};

const rank: Record<DeliveryPriority, number> = { urgent: 0, high: 1, normal: 2 };

export const keeps = (item: OutboxItem): boolean =>
  item.kind === 'result' || item.kind === 'question';

export const isUrgent = (item: OutboxItem | null | undefined): boolean =>
  item?.priority === 'urgent';

/** Returns whether the item was spoken in full but not acknowledged. */
export const isTold = ({ toldIn }: { readonly toldIn?: number }): boolean => toldIn !== undefined;

/** Returns whether the user can postpone the item: it is not a question and may still be spoken. */
export const mayRest = (item: Waiting): boolean =>
  item.kind !== 'question' && item.rests !== 'always' && !isTold(item);

/** A claim to a delivery. A claimed delivery is not offered by the outbox. */
interface Claim {
  /** The id of the claimed delivery. */
  readonly deliveryId: string;
  /** False while the outbox is still speaking the delivery. */
  readonly granted: boolean;
}

const isClaimed = ({ claims = [] }: { readonly claims?: readonly Claim[] }, id: string): boolean =>
  claims.some(({ deliveryId }) => deliveryId === id);

/**
 * Returns the next item to speak. Skips items that are resting, that the lead agent has read, or that a channel has
 * claimed.
 */
export const next = (queue: Pick<OutboxContext, 'pending' | 'claims'>): Waiting | undefined =>
  queue.pending.find(
    ({ deliveryId, resting, read }) => !resting && read !== true && !isClaimed(queue, deliveryId),
  );

/** Returns the claim that can be granted now that its delivery is not being spoken. */
export const grantable = ({
  claims = [],
  current,
}: Pick<OutboxContext, 'claims' | 'current'>): Claim | undefined =>
  claims.find(({ deliveryId, granted }) => !granted && deliveryId !== current?.deliveryId);

/**
 * Returns whether there is room for another item without a reserved place. Items that were spoken in full do not count.
 * Admission also calls this function.
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

/** Inserts an item after the other items of its class, or before them if it was interrupted. */
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

/** The limits and pauses of an outbox. */
export interface OutboxInput {
  /**
   * The maximum number of notices and of waiting or reserved results. Questions are not counted; only one waits at a
   * time.
   */
  readonly capacity: number;
  /**
   * An item is spoken only after the gate has been open without an attempt for at least this time, in milliseconds. The
   * time is measured from the opening of the gate or the end of the last attempt, not from the arrival of the item.
   */
  readonly quietMs: number;
  /**
   * The same time after a question, during which the user may answer it. It ends early if the user speaks or the
   * question is answered. In milliseconds. @defaultValue `quietMs`
   */
  readonly answerMs?: number;
  /** If the audio has not started after this time, the attempt fails. */
  readonly offerTimeoutMs: number;
  /** If the audio has not ended after this time, the attempt fails. */
  readonly playTimeoutMs: number;
  /** The maximum number of attempts to deliver an item. */
  readonly maxAttempts: number;
}

type OutboxFact =
  | { readonly type: 'outbox.reserve' }
  | { readonly type: 'outbox.unreserve' }
  | { readonly type: 'outbox.add'; readonly item: OutboxItem }
  | { readonly type: 'outbox.retract'; readonly deliveryId: string }
  /** The user does not want to hear the item now, so it rests like a silent item. Never sent for questions. */
  | { readonly type: 'outbox.rest'; readonly deliveryId: string }
  /** The item is out of date and is dropped if it is still waiting. Never sent for results and questions. */
  | { readonly type: 'outbox.outdate'; readonly deliveryId: string }
  | { readonly type: 'gate.opened' }
  | { readonly type: 'gate.closed'; readonly interruptible: boolean }
  /** `attempt` and `deliveryIds` show a reader of the journal what is playing; several items may be spoken together. */
  | {
      readonly type: 'delivery.playing';
      readonly generation: number;
      readonly attempt?: number;
      readonly deliveryIds?: readonly string[];
    }
  | {
      readonly type: 'delivery.heard';
      readonly generation: number;
      readonly grade: 'played' | 'assumed';
      /** The time by which the user had heard the whole item, in milliseconds since 1970. @defaultValue unknown */
      readonly heardAt?: number;
    }
  /** The item was spoken in full without an acknowledgement; the client may still send one. */
  | { readonly type: 'delivery.told'; readonly generation: number }
  /** `begun`: the user heard at least the first sentence, so the next attempt continues from there. */
  | {
      readonly type: 'delivery.interrupted';
      readonly generation: number;
      readonly begun?: boolean;
    }
  | { readonly type: 'delivery.failed'; readonly generation: number }
  /** `by`: the identity that the app vouches for. */
  | {
      readonly type: 'delivery.shown';
      readonly deliveryId: string;
      readonly by?: string;
      /** @defaultValue 'shown' */
      readonly grade?: 'read';
    }
  | { readonly type: 'delivery.dismissed'; readonly deliveryId: string; readonly by?: string }
  /** The lead agent has read the item with a tool and may report it in its reply. */
  | { readonly type: 'delivery.read'; readonly deliveryId: string }
  /** The reply did not report the item. */
  | { readonly type: 'delivery.unread'; readonly deliveryId: string }
  /** A channel is about to send the item to the user. The item may have left the outbox already. */
  | { readonly type: 'outbox.claim'; readonly deliveryId: string }
  | { readonly type: 'outbox.unclaim'; readonly deliveryId: string }
  | { readonly type: 'client.attached' }
  | { readonly type: 'client.detached' }
  | { readonly type: 'utterance.ended' }
  | { readonly type: 'deadline.quiet'; readonly dueAt: number }
  | { readonly type: 'deadline.offer'; readonly dueAt: number }
  | { readonly type: 'deadline.play'; readonly dueAt: number };

/** The events of `outboxMachine`. */
export type OutboxEvent = OutboxFact & Stamped;

/** Returns the identity in an event, for the effect's params; empty if the event has none. */
export const byOf = ({ by }: { readonly by?: string }): { readonly by?: string } =>
  by === undefined ? {} : { by };

export interface OutboxContext extends OutboxInput {
  /** The waiting items. */
  readonly pending: readonly Waiting[];
  /** The item that is being delivered; null if there is none. */
  readonly current: Waiting | null;
  /** Numbers the attempts. */
  readonly generation: number;
  /** The number of places that are reserved for results that have not arrived yet. */
  readonly reserved: number;
  /** The time at which the gate opened or the last attempt ended, whichever is later. */
  readonly quietSince: number;
  /** The question that was spoken last, while the user may still answer it. */
  readonly asked?: string | null;
  /** Absent if there are no claims. */
  readonly claims?: readonly Claim[];
  /**
   * The deadline of the current state, in milliseconds since 1970: the end of the pause, of the offer or of playback.
   */
  readonly dueAt: number;
  /** The transport can stop its audio, so urgent items may interrupt. */
  readonly interruptible: boolean;
}

/** Returns the earliest time at which the next item may be spoken. */
export const quietUntil = ({ quietSince, quietMs, answerMs, asked }: OutboxContext): number =>
  quietSince + Math.max(quietMs, (typeof asked === 'string' && answerMs) || 0);

/** Returns whether later progress of the same subagent is waiting. */
const isOutdone = ({ current, pending }: Pick<OutboxContext, 'current' | 'pending'>): boolean =>
  current !== null && pending.some((other) => replaces(current, other));

/** Returns the items that were spoken but not acknowledged, except questions, which end in their own way. */
const toldOf = ({ pending }: Pick<OutboxContext, 'pending'>): readonly Waiting[] =>
  pending.filter((item) => isTold(item) && item.kind !== 'question');

/** Returns the unacknowledged item that was spoken earliest. */
export const oldestTold = (context: Pick<OutboxContext, 'pending'>): Waiting | undefined =>
  toldOf(context).toSorted((a, b) => (a.toldIn ?? 0) - (b.toldIn ?? 0))[0];

const effects = {
  /** Offers the item now. A `delivery.*` event with the same generation follows. */
  offer: effect<{
    readonly deliveryId: string;
    readonly generation: number;
    readonly attempt: number;
    /** The first attempt in which the user heard a sentence or more; continue from there. Absent if there is none. */
    readonly begunIn?: number;
  }>(),
  /** The user has started to hear the item. */
  begun: effect<{ readonly deliveryId: string }>(),
  /** Stops the current speech because this urgent item is waiting. */
  interrupt: effect<{ readonly deliveryId: string }>(),
  /** Abandons the current attempt because its item was answered, shown or withdrawn. */
  abandon: effect<{ readonly deliveryId: string; readonly generation: number }>(),
  /** The user has received the item. */
  delivered: effect<{
    readonly deliveryId: string;
    readonly grade: HearingGrade;
    readonly by?: string;
    readonly heardAt?: number;
  }>(),
  /** The user dismissed the item. */
  dismissed: effect<{ readonly deliveryId: string; readonly by?: string }>(),
  /** These items will not be spoken; `reason` says why. */
  dropped: effect<{ readonly deliveryIds: readonly string[]; readonly reason: DropReason }>(),
  /** The item could not be spoken in `attempts` attempts, so it is shown as a card. */
  card: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
  /** The item was spoken in full without an acknowledgement and is shown as a card until it is acknowledged. */
  told: effect<{ readonly deliveryId: string; readonly generation: number }>(),
  /** The item is not spoken. The lead agent is informed of it, and a screen shows it as a card. */
  rested: effect<{ readonly deliveryId: string }>(),
  /** The claim is granted, so the item is not offered until `outbox.unclaim`. */
  claimed: effect<{ readonly deliveryId: string }>(),
  /** The item was not heard and is waiting again. */
  returned: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
};

export type OutboxEffects = EffectsOf<typeof effects>;

export const outboxSetup = setup({
  types: {
    input: {} as OutboxInput,
    context: {} as OutboxContext,
    events: {} as OutboxEvent,
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    beginQuiet: assign((_, { at }: Stamped) => ({ quietSince: at })),
    awaitQuiet: assign(({ context }) => ({ dueAt: quietUntil(context) })),
    noteAsked: assign(({ context: { current } }) => ({
      asked: current?.kind === 'question' ? current.deliveryId : null,
    })),
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
    /** The item frees the slot and rests until it is acknowledged. */
    keepTold: assign(({ context }) => {
      const item = context.current;
      if (item === null) return {};
      const told = { ...item, resting: true, toldIn: context.generation };
      return { current: null, pending: insert(context.pending, told, 'front') };
    }),
    markInterrupted: assign(
      ({ context }, { at, begun = false }: Stamped & { readonly begun?: boolean }) => ({
        current: context.current && {
          ...context.current,
          interruptedAt: at,
          ...(begun && { begunIn: context.current.begunIn ?? context.current.attempts }),
        },
      }),
    ),
    /** Makes the item rest until it is shown or dismissed. If it is being spoken, the attempt ends. */
    rest: assign(({ context }, { deliveryId }: { deliveryId: string }) => {
      const { current, pending } = context;
      const asSilent = (item: Waiting): Waiting => ({ ...item, resting: true, rests: 'always' });
      return current?.deliveryId === deliveryId
        ? { current: null, pending: insert(pending, asSilent(current), 'front') }
        : {
            pending: pending.map((item) =>
              item.deliveryId === deliveryId ? asSilent(item) : item,
            ),
          };
    }),
    markRead: assign(
      ({ context }, { deliveryId, read }: { deliveryId: string; read: boolean }) => ({
        pending: context.pending.map((item) =>
          item.deliveryId === deliveryId ? { ...item, read } : item,
        ),
      }),
    ),
    removeTold: assign(({ context }, { generation }: { generation: number }) => ({
      pending: context.pending.filter(({ toldIn }) => toldIn !== generation),
    })),
    removeOldestTold: assign(({ context }) => ({
      pending: context.pending.filter((item) => item !== oldestTold(context)),
    })),
    /** Offers a question again, with its current text, after it was spoken in full. */
    addAgain: assign(({ context }, { item }: { item: OutboxItem }) => ({
      pending: insert(
        context.pending.filter(({ deliveryId }) => deliveryId !== item.deliveryId),
        { ...item, attempts: 0, resting: false, rests: 'never' },
        'back',
      ),
    })),
    /** No client could hear this attempt, so it does not count as a failed attempt. */
    forgiveAttempt: assign(({ context }) => ({
      current: context.current && { ...context.current, attempts: context.current.attempts - 1 },
    })),
    countAnew: assign(({ context: { current } }) => ({
      current: current && { ...current, attempts: 1 },
    })),
    remove: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      asked: context.asked === deliveryId ? null : context.asked,
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
    /** Adds an item that rests until it is shown or dismissed. */
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
    claim: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      claims: [...(context.claims ?? []), { deliveryId, granted: false }],
    })),
    unclaim: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      claims: context.claims?.filter((claim) => claim.deliveryId !== deliveryId) ?? [],
    })),
    grant: assign(({ context }) => ({
      claims:
        context.claims?.map((claim) =>
          claim === grantable(context) ? { ...claim, granted: true } : claim,
        ) ?? [],
    })),
    clear: assign({ current: null }),
    wake: assign(({ context }) => ({
      asked: null,
      pending: context.pending.map((item) =>
        item.resting && item.rests !== 'always' && !isTold(item)
          ? { ...item, resting: false, attempts: 0 }
          : item,
      ),
    })),
  },
  guards: {
    gateIsOpen: stateIn({ gate: 'open' }),
    isClaimed: ({ context }, { deliveryId }: { deliveryId: string }) =>
      isClaimed(context, deliveryId),
    isGrantable: ({ context }) => grantable(context) !== undefined,
    hasNext: ({ context }) => next(context) !== undefined,
    isUrgent: ({ context }) => isUrgent(next(context)),
    /** An item is waiting and the pause is over. An urgent item does not wait for the pause. */
    isDue: ({ context, event: { at } }) => {
      const item = next(context);
      return item !== undefined && (at >= quietUntil(context) || isUrgent(item));
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
    mayRestCurrent: ({ context: { current } }, { deliveryId }: { deliveryId: string }) =>
      current?.deliveryId === deliveryId && mayRest(current),
    isOutdoneItem: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.current?.deliveryId === deliveryId && isOutdone(context),
    mayRestPending: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.pending.some((item) => item.deliveryId === deliveryId && mayRest(item)),
    isPendingOrAsked: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.asked === deliveryId ||
      context.pending.some((item) => item.deliveryId === deliveryId),
    /** The question that caused the longer pause has been answered. */
    waitsForNoAnswer: ({ context }) => context.dueAt > quietUntil(context),
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
