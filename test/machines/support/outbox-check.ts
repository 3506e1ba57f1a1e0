// Explores every state of the outbox with three items at a time and checks its properties (OUTBOX-1 to OUTBOX-11).
//
// The generation only grows, and only its equality matters. So the key omits it, and reports concern the current
// attempt or the previous one. Time is counted from `quietSince`. An event occurs at that time or, if the gate is open
// and there is no item to speak, when the pause is over. So the key omits `quietSince`, `dueAt`, `interruptedAt` and
// `begunIn`, which affect nothing. A notice expires at once or never.

import {
  outboxMachine,
  type OutboxItem,
  type OutboxSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import { outboxEvents, outboxInput, outboxScopes, pauseEnds } from './outbox-world.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof outboxMachine;
type S = OutboxSnapshot;

/** The history variables. */
interface Ghost {
  /** The item of the last `offer`. */
  readonly offered: string | null;
  /** The current item had to stop for an urgent one. */
  readonly interrupted: boolean;
}

const ranks = ['urgent', 'high', 'normal'];
const rankOf = ({ priority }: OutboxItem): number => ranks.indexOf(priority);
const isTold = ({ toldIn }: { readonly toldIn?: number }): boolean => toldIn !== undefined;
/**
 * Returns the key of the attempt that delivered an item (the last one, the one before, or an older one), followed by
 * the item's rank.
 */
const toldKey = ({ context }: S, { toldIn }: { readonly toldIn?: number }) => {
  if (toldIn === undefined) return null;
  const older = context.pending.filter((one) => (one.toldIn ?? Infinity) < toldIn).length;
  return [Math.min(2, context.generation - toldIn), older];
};
const idsOf = (items: readonly OutboxItem[]): readonly string[] =>
  items.map(({ deliveryId }) => deliveryId);
const itemsOf = ({ context: { pending, current } }: S) => [
  ...(current ? [current] : []),
  ...pending,
];
const isSpeaking = (snapshot: S): boolean => snapshot.matches({ slot: 'speaking' });
const gateIsOpen = (snapshot: S): boolean => snapshot.matches({ gate: 'open' });
const isKept = ({ kind }: OutboxItem): boolean => kind === 'result' || kind === 'question';
/** Returns whether, after this event, the lead agent has read an item and may still report it. */
const isReadAfter = (
  { deliveryId, read = false }: { readonly deliveryId: string; readonly read?: boolean },
  event: { readonly type: string; readonly deliveryId?: string },
): boolean => {
  if (event.deliveryId !== deliveryId) return read;
  return event.type === 'delivery.read' || (read && event.type !== 'delivery.unread');
};

const nextOf = ({ context }: S) => context.pending.find(({ resting, read }) => !resting && !read);
const urgentWaits = (snapshot: S): boolean =>
  snapshot.matches({ gate: 'closed' }) &&
  snapshot.context.interruptible &&
  nextOf(snapshot)?.priority === 'urgent' &&
  snapshot.context.current?.priority !== 'urgent';

/** The timers: each has its event, its due time if it is armed at `at`, and the state that owns it. */
const clocks = [
  {
    event: 'deadline.quiet',
    dueAt: (s: S) => pauseEnds(s),
    owns: (s: S) => s.matches({ slot: 'dwelling' }),
  },
  {
    event: 'deadline.offer',
    dueAt: (_: S, at: number) => at + outboxInput.offerTimeoutMs,
    owns: (s: S) => s.matches({ slot: { speaking: 'offered' } }),
  },
  {
    event: 'deadline.play',
    dueAt: (_: S, at: number) => at + outboxInput.playTimeoutMs,
    owns: (s: S) => s.matches({ slot: { speaking: 'playing' } }),
  },
] as const;

/** Returns whether the running attempt is over. */
const isOver = (before: S, after: S): boolean =>
  isSpeaking(before) &&
  (!isSpeaking(after) || after.context.generation !== before.context.generation);
const wakes = ({ type }: { readonly type: string }): boolean =>
  type === 'client.attached' || type === 'utterance.ended';

/** Returns the ids of the items that left in a step, each with its effect. */
function departures(event: { readonly type: string }, effects: Parameters<typeof paramsOf>[0]) {
  const all = effects as readonly { type: string; params: never }[];
  const named = (type: string) =>
    paramsOf(all, type).map(({ deliveryId }: { deliveryId: string }) => deliveryId);
  const { type, deliveryId } = event as { type: string; deliveryId?: string };
  return [
    ...named('delivered'),
    ...named('dismissed'),
    ...paramsOf(all, 'dropped').flatMap(
      ({ deliveryIds }: { deliveryIds: readonly string[] }) => deliveryIds,
    ),
    ...(type === 'outbox.retract' ? [deliveryId ?? ''] : []),
  ];
}

/** Explores the outbox machine or a faulty version of it. */
export function checkOutbox(
  machine: Machine = outboxMachine,
  scope = 'two results and a question',
  onViolation: OnViolation = 'collect',
) {
  const items = outboxScopes[scope] ?? [];
  const { capacity, maxAttempts } = outboxInput;
  const has = (kind: OutboxItem['kind']): boolean => items.some((one) => one.kind === kind);
  return checkMachine<Machine, Ghost>(machine, {
    name: `outbox with ${scope}`,
    input: outboxInput,
    onViolation,
    key: (snapshot) => {
      const { value, context } = snapshot;
      const { pending, current, reserved, interruptible, asked } = context;
      const brief = (one: (typeof pending)[number]) => [
        one.deliveryId,
        one.attempts,
        one.resting,
        one.rests,
        one.read === true,
        toldKey(snapshot, one),
      ];
      return [value, pending.map(brief), current && brief(current), reserved, interruptible, asked];
    },
    events: outboxEvents(items),
    end: (snapshot) => itemsOf(snapshot).length === 0 && snapshot.context.reserved === 0,
    ghost: {
      initial: { offered: null, interrupted: false },
      next({ offered, interrupted }, { effects }, _before, after) {
        const [offer] = paramsOf(effects, 'offer');
        return {
          offered: isSpeaking(after) ? (offer?.deliveryId ?? offered) : null,
          interrupted:
            !gateIsOpen(after) && (interrupted || paramsOf(effects, 'interrupt').length > 0),
        };
      },
    },
    invariants: {
      'OUTBOX-1: a pause counts only while the gate is open and something waits': (snapshot) =>
        !snapshot.matches({ slot: 'dwelling' }) ||
        (gateIsOpen(snapshot) && nextOf(snapshot) !== undefined),
      'OUTBOX-1: with an open gate and something to say there is a pause, or it is said': (
        snapshot,
      ) =>
        !snapshot.matches({ slot: 'empty' }) ||
        !gateIsOpen(snapshot) ||
        nextOf(snapshot) === undefined,
      'OUTBOX-2: what is being said was offered in this attempt': ({ context }, { offered }) =>
        (context.current?.deliveryId ?? null) === offered,
      'OUTBOX-3: each item is there once': (snapshot) => {
        const ids = idsOf(itemsOf(snapshot));
        return new Set(ids).size === ids.length;
      },
      'OUTBOX-3: something is being said exactly while the slot is in use': (snapshot) =>
        isSpeaking(snapshot) === (snapshot.context.current !== null),
      'OUTBOX-4: urgent before high before normal': ({ context: { pending } }) =>
        pending.every((one, index) => index === 0 || rankOf(pending[index - 1]!) <= rankOf(one)),
      'OUTBOX-5: an item rests exactly when it has been tried often enough, or was told': ({
        context,
      }) =>
        context.pending.every(
          (one) =>
            one.attempts <= maxAttempts &&
            one.resting === (one.rests === 'always' || one.attempts >= maxAttempts || isTold(one)),
        ),
      'OUTBOX-8: what is silent is never said': ({ context: { current } }) =>
        current?.rests !== 'always',
      'OUTBOX-6: no more than fits': ({ context: { pending, current, reserved } }) => {
        const held = [...pending, current].filter(
          (one) => one !== null && one.kind !== 'question' && !isTold(one),
        );
        return held.length + reserved <= capacity;
      },
      'OUTBOX-9: no more than fits rest as told': ({ context: { pending } }) =>
        pending.filter((one) => one.kind !== 'question' && isTold(one)).length <= capacity,
      'OUTBOX-9: what is being said is not told yet': ({ context: { current } }) =>
        current === null || !isTold(current),
      'OUTBOX-7: of each subagent only the latest progress waits': ({ context: { pending } }) =>
        pending.filter(({ replaces }) => replaces !== null).length <= 1,
      'its deadline is armed while it pauses, offers or plays': (snapshot) =>
        same(
          running(snapshot),
          snapshot.matches({ slot: 'dwelling' }) || isSpeaking(snapshot) ? ['deadline'] : [],
        ),
      'nothing is told to stop that is urgent itself': (snapshot, { interrupted }) =>
        !interrupted || !gateIsOpen(snapshot),
    },
    steps: {
      'OUTBOX-1: one at a time, from an open gate after a pause': (
        before,
        event,
        after,
        effects,
      ) => {
        const offers = paramsOf(effects, 'offer');
        const [offer] = offers;
        if (offer === undefined) return true;
        const { current, generation } = after.context;
        if (
          offers.length > 1 ||
          !gateIsOpen(after) ||
          (isSpeaking(before) && !isOver(before, after))
        )
          return false;
        if (offer.deliveryId !== current?.deliveryId) return false;
        if (generation !== before.context.generation + 1) return false;
        return current.priority === 'urgent' || (event.at as number) >= pauseEnds(after);
      },
      'OUTBOX-1: a pause begins when the gate opens, or an attempt ends': (
        before,
        event,
        after,
      ) => {
        const opens = gateIsOpen(after) && !gateIsOpen(before);
        const begins = opens || isOver(before, after);
        return after.context.quietSince === (begins ? event.at : before.context.quietSince);
      },
      'OUTBOX-1: what comes when the pause is over is said at once': (before, { at }, after) =>
        !after.matches({ slot: 'dwelling' }) ||
        before.matches({ slot: 'dwelling' }) ||
        (at as number) < pauseEnds(after),
      'OUTBOX-2: what ends as heard is this attempt': (before, event, _after, effects) =>
        paramsOf(effects, 'delivered').every(
          ({ deliveryId, grade }) =>
            grade === 'shown' ||
            grade === 'told' ||
            before.context.pending.some(
              (one) =>
                one.deliveryId === deliveryId &&
                one.toldIn === (event as { generation?: number }).generation,
            ) ||
            (isSpeaking(before) &&
              deliveryId === before.context.current?.deliveryId &&
              (event as { generation?: number }).generation === before.context.generation),
        ),
      'OUTBOX-2: a report about another attempt is ignored': (before, event) =>
        !('generation' in event) ||
        event.generation === before.context.generation ||
        (event.type === 'delivery.heard' &&
          before.context.pending.some(({ toldIn }) => toldIn === event.generation)),
      'OUTBOX-3: nothing is lost': (before, event, after, effects) => {
        const left = departures(event, effects);
        const added = event.type === 'outbox.add' ? [(event as { item: OutboxItem }).item] : [];
        const expected = [...idsOf(itemsOf(before)), ...idsOf(added)];
        const kept = new Set(expected.filter((id) => !left.includes(id)));
        const got = idsOf(itemsOf(after)).toSorted();
        return same([...kept].toSorted(), got) || `Expected ${[...kept].join()}, got ${got.join()}`;
      },
      'OUTBOX-3: what left is told once, and was there': (before, event, _after, effects) => {
        const left = departures(event, effects);
        const known = itemsOf(before).map(({ deliveryId }) => deliveryId);
        if (event.type === 'outbox.add')
          known.push((event as { item: OutboxItem }).item.deliveryId);
        // The pause after a question ends when the question leaves.
        if (typeof before.context.asked === 'string') known.push(before.context.asked);
        return new Set(left).size === left.length && left.every((id) => known.includes(id));
      },
      'OUTBOX-3: results and questions are never dropped': (_before, _event, _after, effects) =>
        paramsOf(effects, 'dropped')
          .flatMap(({ deliveryIds }) => deliveryIds)
          .every((id) => !isKept(items.find(({ deliveryId }) => deliveryId === id)!)),
      'OUTBOX-3: what is not worth saying any more is not said': (
        _before,
        event,
        _after,
        effects,
      ) =>
        paramsOf(effects, 'offer').every(({ deliveryId }) => {
          const { expiresAt } = items.find((one) => one.deliveryId === deliveryId)!;
          return expiresAt === null || expiresAt > (event.at as number);
        }),
      'OUTBOX-3: what was not heard waits again': (before, event, after) => {
        const notHeard = [
          'delivery.interrupted',
          'delivery.failed',
          'deadline.offer',
          'deadline.play',
          'client.detached',
        ];
        const { current } = before.context;
        if (current === null || !notHeard.includes(event.type)) return true;
        const isOutdone = before.context.pending.some(
          ({ replaces }) => replaces !== null && replaces === current.replaces,
        );
        return isOutdone || idsOf(itemsOf(after)).includes(current.deliveryId);
      },
      'OUTBOX-4: first come, first served in each class, and what was interrupted first': (
        before,
        event,
        after,
        effects,
      ) => {
        const left = departures(event, effects);
        const { current, pending } = before.context;
        const returned = current !== null && isOver(before, after) ? [current] : [];
        const added = event.type === 'outbox.add' ? [(event as { item: OutboxItem }).item] : [];
        const known = idsOf(itemsOf(before));
        const again = pending.filter(
          (one) => isTold(one) && one.kind === 'question' && idsOf(added).includes(one.deliveryId),
        );
        const queue = [
          ...returned,
          ...pending.filter((one) => !again.includes(one)),
          ...again,
          ...added.filter(({ deliveryId }) => !known.includes(deliveryId)),
        ].filter(({ deliveryId }) => !left.includes(deliveryId));
        const expected = idsOf(
          ranks.flatMap((rank) => queue.filter(({ priority }) => priority === rank)),
        );
        const [offer] = paramsOf(effects, 'offer');
        const got = idsOf(after.context.pending);
        if (offer === undefined) return same(got, expected);
        // The first item that is not resting was selected to be spoken.
        const resting = idsOf(
          pending.filter(
            (one) =>
              !again.includes(one) &&
              (isReadAfter(one, event) ||
                (one.resting && (one.rests === 'always' || isTold(one) || !wakes(event)))),
          ),
        );
        const exhausted = new Set(
          [
            ...paramsOf(effects, 'card'),
            ...paramsOf(effects, 'told'),
            ...paramsOf(effects, 'rested'),
          ].map(({ deliveryId }) => deliveryId),
        );
        const first = expected.find((id) => !resting.includes(id) && !exhausted.has(id));
        return (
          offer.deliveryId === first &&
          same(
            got,
            expected.filter((id) => id !== first),
          )
        );
      },
      'OUTBOX-5: a card for what was tried often enough, word for what was not': (
        before,
        event,
        after,
        effects,
      ) => {
        const { current, generation } = before.context;
        const [cards, returns] = [paramsOf(effects, 'card'), paramsOf(effects, 'returned')];
        const left = departures(event, effects);
        if (
          current === null ||
          !isOver(before, after) ||
          left.includes(current.deliveryId) ||
          event.type === 'delivery.told' ||
          event.type === 'outbox.rest'
        )
          return cards.length + returns.length === 0;
        const attempts = current.attempts - (event.type === 'client.detached' ? 1 : 0);
        const told = [{ deliveryId: current.deliveryId, generation, attempts }];
        return attempts >= maxAttempts
          ? same(cards, told) && returns.length === 0
          : same(returns, told) && cards.length === 0;
      },
      'OUTBOX-5: whoever speaks or comes wakes what rests': (_before, event, after) =>
        !wakes(event) ||
        after.context.pending.every((one) => !one.resting || one.rests === 'always' || isTold(one)),
      'OUTBOX-9: what was told in full rests and is told of, once': (
        before,
        event,
        after,
        effects,
      ) => {
        const told = paramsOf(effects, 'told');
        const { current, generation } = before.context;
        if (event.type !== 'delivery.told' || !isSpeaking(before)) return told.length === 0;
        if ((event as { generation: number }).generation !== generation) return told.length === 0;
        const { deliveryId } = current!;
        const kept = after.context.pending.find((one) => one.deliveryId === deliveryId);
        if (departures(event, effects).includes(deliveryId)) return told.length === 0;
        return (
          same(told, [{ deliveryId, generation }]) && kept?.toldIn === generation && kept.resting
        );
      },
      'OUTBOX-9: what was told rests as it is until it leaves, or is a question that is put again':
        (before, event, after) =>
          before.context.pending.filter(isTold).every((one) => {
            const now = itemsOf(after).find(({ deliveryId }) => deliveryId === one.deliveryId);
            const isPutAgain =
              event.type === 'outbox.add' &&
              (event as { item: OutboxItem }).item.deliveryId === one.deliveryId &&
              one.kind === 'question';
            return now === undefined || isPutAgain !== (now.toldIn === one.toldIn);
          }),
      'OUTBOX-9: what was told first makes room, and counts as told': (
        before,
        event,
        after,
        effects,
      ) => {
        const lapsed = paramsOf(effects, 'delivered').filter(({ grade }) => grade === 'told');
        const was = before.context.pending.filter(
          (one) => isTold(one) && one.kind !== 'question' && one.deliveryId !== undefined,
        );
        const isOneMore =
          event.type === 'delivery.told' &&
          after.context.generation >= before.context.generation &&
          isOver(before, after) &&
          before.context.current?.kind !== 'question';
        if (!isOneMore || was.length < capacity) return lapsed.length === 0;
        const first = was.toSorted((a, b) => (a.toldIn ?? 0) - (b.toldIn ?? 0))[0];
        return same(lapsed, [{ deliveryId: first?.deliveryId, grade: 'told' }]);
      },
      'OUTBOX-8: what comes silently, or cannot be said at once and skips then, rests and is told':
        (before, event, after, effects) => {
          const rested = paramsOf(effects, 'rested');
          if (event.type === 'outbox.rest') return true; // OUTBOX-10
          if (event.type !== 'outbox.add') return rested.length === 0;
          const { deliveryId, rests } = (event as { item: OutboxItem }).item;
          if (idsOf(itemsOf(before)).includes(deliveryId)) return rested.length === 0;
          const isBusy =
            !gateIsOpen(before) || before.context.current !== null || nextOf(before) !== undefined;
          const isSilent = rests === 'always' || (rests === 'if_busy' && isBusy);
          const kept = after.context.pending.find((one) => one.deliveryId === deliveryId);
          return isSilent
            ? same(rested, [{ deliveryId }]) && kept?.rests === 'always' && kept.resting
            : rested.length === 0 && kept?.rests !== 'always';
        },
      'OUTBOX-12: only the report about the reply makes a read item due again': (
        before,
        event,
        after,
        effects,
      ) => {
        const offered = new Set(paramsOf(effects, 'offer').map(({ deliveryId }) => deliveryId));
        return before.context.pending.every((one) => {
          if (!isReadAfter(one, event)) return true;
          const now = after.context.pending.find(({ deliveryId }) => deliveryId === one.deliveryId);
          return now ? now.read === true : !offered.has(one.deliveryId);
        });
      },
      'OUTBOX-10: what the user puts off rests as a card, unless it is a question or rests already':
        (before, event, after, effects) => {
          if (event.type !== 'outbox.rest') return true;
          const { deliveryId } = event as { deliveryId: string };
          const was = itemsOf(before).find((one) => one.deliveryId === deliveryId);
          const isPutOff =
            was !== undefined && was.kind !== 'question' && was.rests !== 'always' && !isTold(was);
          const now = after.context.pending.find((one) => one.deliveryId === deliveryId);
          if (departures(event, effects).includes(deliveryId)) return was?.kind === 'progress';
          return isPutOff
            ? same(paramsOf(effects, 'rested'), [{ deliveryId }]) &&
                now?.rests === 'always' &&
                now.resting
            : paramsOf(effects, 'rested').length === 0 && same(was, now ?? after.context.current);
        },
      'OUTBOX-10: a telling that the user interrupts is marked with its time': (
        before,
        event,
        after,
      ) => {
        const { current, generation } = before.context;
        const isInterrupted =
          event.type === 'delivery.interrupted' &&
          event.generation === generation &&
          before.matches({ slot: { speaking: 'playing' } });
        const was = current?.deliveryId;
        const now = itemsOf(after).find(({ deliveryId }) => deliveryId === was);
        return (
          !isInterrupted ||
          now === undefined ||
          (now as { interruptedAt?: number }).interruptedAt === event.at
        );
      },
      'OUTBOX-11: an offer says whether its beginning was heard, as the item does until it leaves':
        (before, event, after, effects) => {
          const begunIn = (one: { readonly begunIn?: number } | null): number | undefined =>
            one?.begunIn;
          const { current, generation } = before.context;
          const isBegun =
            event.type === 'delivery.interrupted' &&
            (event as { begun?: boolean }).begun === true &&
            event.generation === generation &&
            before.matches({ slot: { speaking: 'playing' } });
          const isAsBefore = itemsOf(before).every((one) => {
            const now = itemsOf(after).find(({ deliveryId }) => deliveryId === one.deliveryId);
            const expected =
              begunIn(one) ?? (isBegun && one === current ? current.attempts : undefined);
            return now === undefined || begunIn(now) === expected || event.type === 'outbox.add';
          });
          return (
            isAsBefore &&
            paramsOf(effects, 'offer').every(
              (offer) => (offer as { begunIn?: number }).begunIn === begunIn(after.context.current),
            )
          );
        },
      'OUTBOX-5: an attempt that nobody could hear does not count': (before, { type }, after) => {
        const { current } = before.context;
        if (type !== 'client.detached' || current === null) return true;
        const again = after.context.pending.find((one) => one.deliveryId === current.deliveryId);
        return again === undefined || again.attempts === current.attempts - 1;
      },
      'OUTBOX-5: an offer that the user speaks into is the first attempt': (
        before,
        { type },
        after,
      ) =>
        type !== 'utterance.ended' ||
        !before.matches({ slot: { speaking: 'offered' } }) ||
        after.context.current?.attempts === 1,
      'OUTBOX-6: a reserved result always fits': (_before, event, after) =>
        event.type !== 'outbox.add' ||
        !(event as { item: OutboxItem }).item.reserved ||
        idsOf(itemsOf(after)).includes((event as { item: OutboxItem }).item.deliveryId),
      'OUTBOX-7: the latest progress stays': (before, event, after) => {
        if (event.type !== 'outbox.add') return true;
        const { item: added } = event as { item: OutboxItem };
        const fits = before.context.pending.some(
          (one) => one.replaces === added.replaces && !isTold(one),
        );
        return added.replaces === null || !fits || idsOf(itemsOf(after)).includes(added.deliveryId);
      },
      'an attempt that is off is abandoned': (before, { type }, after, effects) => {
        const { current, generation } = before.context;
        const off = [
          'deadline.offer',
          'deadline.play',
          'client.detached',
          'outbox.retract',
          'outbox.rest',
        ];
        const isOff =
          isOver(before, after) && (off.includes(type) || type === 'delivery.dismissed');
        return same(
          paramsOf(effects, 'abandon').map((told) => [told.deliveryId, told.generation]),
          isOff ? [[current?.deliveryId, generation]] : [],
        );
      },
      'urgent interrupts what can be interrupted, at once': (before, event, after, effects) => {
        const caused = event.type === 'outbox.add' || event.type === 'gate.closed';
        const begins = urgentWaits(after) && !urgentWaits(before);
        const interrupts = paramsOf(effects, 'interrupt').length;
        if (begins && caused) return interrupts === 1;
        return interrupts === 0 || urgentWaits(after);
      },
      'the user begins to hear it once': (before, _event, after, effects) => {
        const plays = { slot: { speaking: 'playing' } } as const;
        const begins = after.matches(plays) && !before.matches(plays);
        const begun = paramsOf(effects, 'begun');
        return same(begun, begins ? [{ deliveryId: before.context.current?.deliveryId }] : []);
      },
      'each deadline is that of its state': (before, { at }, after, effects) => {
        const last = started(effects, 'deadline').at(-1);
        const owner = clocks.find(({ owns }) => owns(after));
        if (owner === undefined || (last === undefined && same(before.value, after.value)))
          return true;
        if (last === undefined) return same(before.value.slot, after.value.slot);
        return same(last, { dueAt: owner.dueAt(after, at as number), event: owner.event });
      },
      'a deadline that is not the armed one is ignored': (before, event) =>
        !('dueAt' in event) ||
        (event.dueAt === before.context.dueAt &&
          clocks.some((clock) => clock.event === event.type && clock.owns(before))),
    },
    waits: {
      'a pause ends by itself': {
        when: (snapshot) => snapshot.matches({ slot: 'dwelling' }),
        exits: ['deadline.quiet'],
      },
      'an offer ends by itself': {
        when: (snapshot) => snapshot.matches({ slot: { speaking: 'offered' } }),
        exits: ['deadline.offer'],
      },
      'what was told can be acknowledged by whoever was given it': {
        when: ({ context: { pending } }) => pending.some(isTold),
        exits: ['delivery.heard'],
      },
      'a playback ends by itself': {
        when: (snapshot) => snapshot.matches({ slot: { speaking: 'playing' } }),
        exits: ['deadline.play'],
      },
    },
    reachable: {
      'something is tried a second time': ({ context }) => context.current?.attempts === 2,
      'something rests while another is said': ({ context }) =>
        !has('result') || (context.current !== null && context.pending.some((one) => one.resting)),
      'something was told while another is said': ({ context }) =>
        scope === 'notices that expire' ||
        (context.current !== null && context.pending.some(isTold)),
      'everything waits': ({ context }) =>
        context.pending.length ===
        (has('progress') ? items.length - 1 : Math.min(items.length, has('question') ? 3 : 2)),
    },
  });
}
