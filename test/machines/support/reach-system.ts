// A delivery's plan for the channels together with the outbox that contains the delivery, wired as at run time (REACH-1
// to REACH-6, OUTBOX-13).
//
// The clock stands still, because only the order of events matters: a deadline may fire at any moment. The policy has
// two steps, and the first one may be repeated once.

import {
  outboxMachine,
  reachMachine,
  type OutboxEvent,
  type OutboxItem,
  type ReachEvent,
  type ReachStep,
} from '../../../src/machines/index.ts';
import { wire } from '../../../src/machines/session-wiring.ts';
import { checkSystem, type World } from '../../../src/testing/check/index.ts';
import { running, same } from './effects.ts';
import { outboxInput } from './outbox-world.ts';
import type { OnViolation } from './verdicts.ts';

const machines = { outbox: outboxMachine, 'reach:d': reachMachine };
type Machines = typeof machines;

/** Whether the user has heard, read or dismissed the delivery. */
interface Ghost {
  readonly isOver: boolean;
}
type W = World<Machines, Ghost>;

const QUIET_UNTIL = 10;
const AT = { at: 0 } as const;
const STEPS: readonly ReachStep[] = [
  { step: 0, by: 'mail', dueAt: 1, afterMs: 0 },
  { step: 1, by: 'sms', dueAt: 2, afterMs: 0 },
];

const isTaken = ({ actors }: W): boolean => typeof actors['reach:d'].value === 'object';
const isSending = ({ actors }: W): boolean => actors['reach:d'].matches({ taken: 'sending' });
const isSaying = ({ actors }: W): boolean => actors.outbox.context.current !== null;

function outboxEvents({ actors: { outbox } }: W): readonly OutboxEvent[] {
  const { generation, dueAt, pending } = outbox.context;
  const told = pending.flatMap(({ toldIn }) => toldIn ?? []);
  const about = [...new Set([generation, ...told])];
  return [
    { type: 'gate.opened', ...AT },
    { type: 'gate.closed', ...AT, interruptible: false },
    { type: 'client.attached', ...AT },
    { type: 'client.detached', ...AT },
    { type: 'deadline.quiet', at: dueAt, dueAt },
    { type: 'deadline.offer', at: dueAt, dueAt },
    { type: 'deadline.play', at: dueAt, dueAt },
    ...about.flatMap((attempt): OutboxEvent[] => [
      { type: 'delivery.playing', ...AT, generation: attempt },
      { type: 'delivery.heard', ...AT, generation: attempt, grade: 'played' },
      { type: 'delivery.told', ...AT, generation: attempt },
      { type: 'delivery.failed', ...AT, generation: attempt },
    ]),
    { type: 'delivery.shown', ...AT, deliveryId: 'd' },
    { type: 'delivery.dismissed', ...AT, deliveryId: 'd' },
  ];
}

function reachEvents({ actors: { 'reach:d': way } }: W): readonly ReachEvent[] {
  const { attempt, step, dueAt, sent } = way.context;
  const nexts = [
    null,
    ...(step === 0 ? [STEPS[1]!, ...(sent.length === 0 ? [STEPS[0]!] : [])] : []),
  ];
  return [
    { type: 'deadline.reach', ...AT, dueAt },
    { type: 'deadline.reach', ...AT, dueAt: dueAt - 1 },
    ...(dueAt < QUIET_UNTIL
      ? [{ type: 'deadline.reach', ...AT, dueAt, until: QUIET_UNTIL } as const]
      : []),
    ...[attempt, attempt - 1].flatMap((number) =>
      nexts.flatMap((next) =>
        (['failed', 'sent', 'delivered', 'read'] as const).map((receipt) => ({
          type: 'reach.ended' as const,
          ...AT,
          attempt: number,
          receipt,
          next,
        })),
      ),
    ),
    ...[0, 1, 2].flatMap((of) =>
      (['delivered', 'read'] as const).map((receipt) => ({
        type: 'reach.reported' as const,
        ...AT,
        step: of,
        receipt,
      })),
    ),
    // The question was answered, or the batch was withdrawn.
    { type: 'reach.over', ...AT },
  ];
}

/**
 * Explores the states of a plan with its outbox, or of faulty versions of these machines. `kind`: the kind of the
 * delivery.
 */
export function checkReach(
  kind: 'result' | 'question',
  faulty: Partial<Machines> = {},
  onViolation: OnViolation = 'collect',
) {
  const isQuestion = kind === 'question';
  const outbox = faulty.outbox ?? outboxMachine;
  return checkSystem<Machines, Ghost>({
    name: `a ${kind} and its way`,
    onViolation,
    mode: 'sync',
    actors: {
      outbox: {
        machine: outbox,
        input: outboxInput,
        start: withItem(outbox, kind),
        key: ({ value, context: { pending, current, claims, asked } }) => [
          value,
          [...pending, ...(current ? [current] : [])].map((item) => [
            item.attempts,
            item.resting,
            item.toldIn !== undefined,
          ]),
          current !== null,
          claims ?? [],
          asked,
        ],
      },
      'reach:d': {
        machine: faulty['reach:d'] ?? reachMachine,
        input: { deliveryId: 'd', since: 0, isQuestion, ...STEPS[0]! },
        key: ({ value, context: { step, dueAt, sent } }) => [
          value,
          step,
          dueAt,
          sent.map((one) => [one.step, one.receipt]),
        ],
      },
    },
    route: (from, effect) => {
      const [sender = ''] = from.split(':');
      return wire(sender, effect.type, effect.params)
        .filter(({ actor }) => actor in machines)
        .map(({ actor, event }) => ({ to: actor, event: { ...event, ...AT } }));
    },
    external: (world, id) => (id === 'outbox' ? outboxEvents(world) : reachEvents(world)),
    ghost: {
      initial: { isOver: false },
      next({ isOver }, { effects, event }) {
        const named = (type: string): boolean => effects.some((effect) => effect.type === type);
        const isHeard = named('delivered') && !isQuestion;
        return {
          isOver: isOver || isHeard || named('dismissed') || event.type === 'reach.over',
        };
      },
    },
    end: ({ actors }) => actors['reach:d'].status === 'done',
    invariants: {
      'REACH-1: what a channel sends is not said': (world) => !isSending(world) || !isSaying(world),
      'REACH-1: a channel sends only what the outbox has granted': (world) =>
        !isSending(world) ||
        same(world.actors.outbox.context.claims, [{ deliveryId: 'd', granted: true }]),
      'OUTBOX-13: the outbox holds back exactly what a way has taken': (world) =>
        isTaken(world) === (world.actors.outbox.context.claims ?? []).length > 0,
      'OUTBOX-13: a claim waits only while the item is being said': (world) =>
        !world.actors['reach:d'].matches({ taken: 'claiming' }) || isSaying(world),
      'REACH-3: what was heard, read or withdrawn is not sent any more': ({ actors, ghost }) =>
        !ghost.isOver || actors['reach:d'].status === 'done',
      'REACH-6: a way ends only with its delivery': ({ actors, ghost }) =>
        actors['reach:d'].status !== 'done' || ghost.isOver,
      'REACH-4: waits for a time, for a channel, or for the outbox': ({ actors }) => {
        const way = actors['reach:d'];
        const waits = way.matches('waiting')
          ? ['deadline']
          : way.matches({ taken: 'sending' })
            ? ['send']
            : [];
        return same(running(way), waits);
      },
      'REACH-5: what was read counts as heard': ({ actors, ghost }) => {
        const { sent, isQuestion: asks } = actors['reach:d'].context;
        const isRead = sent.some(({ receipt }) => receipt === 'read');
        const { pending, current } = actors.outbox.context;
        return !isRead || asks || (ghost.isOver && current === null && pending.length === 0);
      },
    },
    steps: {
      'REACH-1: sending begins and the item is not offered in between': (before, _step, after) =>
        !(isTaken(before) && isTaken(after) && !isSaying(before)) || !isSaying(after),
      'REACH-2: a step is taken only at its time': (before, { event }, after) =>
        isTaken(before) ||
        !isTaken(after) ||
        (event.type === 'deadline.reach' &&
          event['dueAt'] === before.actors['reach:d'].context.dueAt &&
          event['until'] === undefined),
      'REACH-3: what was read is not sent any more': (before, _step, after) =>
        isTaken(before) ||
        !isTaken(after) ||
        before.actors['reach:d'].context.sent.every(({ receipt }) => receipt !== 'read'),
      'REACH-2: a step is sent by the answer of the step before': (before, { event }, after) =>
        before.actors['reach:d'].context.step === after.actors['reach:d'].context.step ||
        event.type === 'reach.ended',
      'REACH-5: a receipt only rises, and only of a step that was sent': (before, _step, after) => {
        const earlier = before.actors['reach:d'].context.sent;
        const later = after.actors['reach:d'].context.sent;
        const ranks = ['failed', 'sent', 'delivered', 'read'];
        return (
          later.length >= earlier.length &&
          (later.length === earlier.length || isSending(before)) &&
          earlier.every(
            ({ receipt }, n) => ranks.indexOf(later[n]!.receipt) >= ranks.indexOf(receipt),
          )
        );
      },
      'REACH-5: a receipt of a step that was not sent changes nothing': (
        before,
        { actor, event },
        after,
      ) => {
        const { context } = before.actors['reach:d'];
        const isKnown =
          context.sent.some(({ step }) => step === event['step']) ||
          (isSending(before) && context.step === event['step']);
        return (
          event.type !== 'reach.reported' ||
          actor !== 'reach:d' ||
          isKnown ||
          same(before.actors['reach:d'].value, after.actors['reach:d'].value)
        );
      },
      'an answer of an earlier sending changes nothing': (before, { actor, event }, after) =>
        event.type !== 'reach.ended' ||
        actor !== 'reach:d' ||
        event['attempt'] === before.actors['reach:d'].context.attempt ||
        same(
          [before.actors['reach:d'].value, before.actors['reach:d'].context],
          [after.actors['reach:d'].value, after.actors['reach:d'].context],
        ),
    },
    waits: {
      'each time comes': {
        actors: ['reach:d'],
        when: (snapshot) => (snapshot.value as unknown) === 'waiting',
        exits: ['deadline.reach'],
      },
      'each sending ends': {
        actors: ['reach:d'],
        when: (snapshot) => same(snapshot.value, { taken: 'sending' }),
        exits: ['reach.ended'],
      },
      'a claim is granted when the attempt ends, or fails': {
        actors: ['reach:d'],
        when: (snapshot) => same(snapshot.value, { taken: 'claiming' }),
      },
    },
    reachable: {
      'the second step': ({ actors }) => actors['reach:d'].context.sent.length === 3,
      'a claim that waits': ({ actors }) => actors['reach:d'].matches({ taken: 'claiming' }),
      'a user who comes back and hears what was sent': (world) =>
        isSaying(world) && world.actors['reach:d'].context.sent.length > 0,
      'no step is left': ({ actors }) => actors['reach:d'].matches('spent'),
    },
  });
}

/** The outbox, which contains the delivery. */
function withItem(outbox: Machines['outbox'], kind: OutboxItem['kind']) {
  const item: OutboxItem = {
    deliveryId: 'd',
    kind,
    priority: 'normal',
    replaces: null,
    reserved: false,
    expiresAt: null,
  };
  const waiting = { ...item, attempts: 0, resting: false, rests: 'never' as const };
  return outbox.resolveState({
    value: { gate: 'closed', slot: 'empty' },
    context: {
      ...outboxInput,
      pending: [waiting],
      current: null,
      generation: 0,
      reserved: 0,
      quietSince: 0,
      asked: null,
      dueAt: 0,
      interruptible: false,
    },
  });
}
