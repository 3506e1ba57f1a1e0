// Explores every state of a batch of up to three calls and checks its properties (BATCH-1 to BATCH-7).
//
// Time: it matters only to the two timers, which start at 0. The key omits `dueAt`.

import {
  batchMachine,
  type AtCeiling,
  type BatchEvent,
  type BatchSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof batchMachine;
type S = BatchSnapshot;

const ids = ['a', 'b', 'c'] as const;
const batchInput = { batchId: 'x', ceilingMs: 3, graceMs: 2 } as const;

/** The fate of a call, as an observer of the effects sees it. */
type Fate = 'none' | 'works' | 'ended' | 'passed' | 'seen' | 'left';

interface Ghost {
  readonly fates: Readonly<Record<string, Fate>>;
  /** The joint item is in the outbox. */
  readonly isOut: boolean;
  /** The results have been delivered together once, and never again. */
  readonly wasOut: boolean;
  /** The places in the outbox that are reserved for the results of this batch. */
  readonly places: number;
  /** The first failure. */
  readonly wrong: string | null;
}

function batchEvents({ context: { dueAt } }: S): readonly BatchEvent[] {
  const at = 0;
  return [
    ...ids.flatMap((id): BatchEvent[] => [
      { type: 'batch.joined', at, callId: id },
      { type: 'batch.left', at, callId: id },
      { type: 'batch.settled', at, callId: id },
      { type: 'batch.asking', at, callId: id },
      { type: 'batch.resumed', at, callId: id },
      { type: 'delivery.shown', at, deliveryId: id },
      { type: 'delivery.dismissed', at, deliveryId: id },
      { type: 'delivery.read', at, deliveryId: id },
    ]),
    { type: 'batch.replied', at },
    { type: 'batch.told', at, grade: 'played' },
    { type: 'deadline.ceiling', at: dueAt, dueAt },
    { type: 'deadline.grace', at: dueAt, dueAt },
    { type: 'deadline.ceiling', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'deadline.grace', at: dueAt + 1, dueAt: dueAt + 1 },
  ];
}

const holds = (s: S): boolean => s.matches({ gathering: 'holding' });
/** Returns the calls whose result has been neither delivered nor seen. */
const pending = ({ fates }: Ghost): readonly string[] => ids.filter((id) => fates[id] === 'ended');
const late = ({ context: { working, asking } }: S): readonly string[] =>
  working.filter((id) => !asking.includes(id));
type Effects = readonly { readonly type: string; readonly params: never }[];

const seenIn = (effects: Effects): readonly string[] =>
  [...paramsOf(effects, 'delivered'), ...paramsOf(effects, 'dismissed')].flatMap(
    (params) => (params as { deliveryIds: readonly string[] }).deliveryIds,
  );

/** Tracks the calls by the effects of the batch. */
function follow(ghost: Ghost, event: { readonly type: string }, effects: Effects): Ghost {
  const { callId = '' } = event as { callId?: string };
  const fates = { ...ghost.fates };
  let { isOut, places, wrong } = ghost;
  const move = (id: string, from: Fate, to: Fate): void => {
    if (fates[id] !== from) wrong ??= `${id} was ${fates[id]}, and is ${to}`;
    fates[id] = to;
  };
  if (event.type === 'batch.joined') fates[callId] = 'works';
  if (event.type === 'batch.left') move(callId, 'works', 'left');
  if (event.type === 'batch.settled') {
    move(callId, 'works', 'ended');
    places += 1;
  }
  const tells = paramsOf(effects, 'tell').length;
  const retracts = paramsOf(effects, 'retract').length;
  if (tells > 0 && ghost.wasOut) wrong ??= 'told together twice';
  isOut ||= tells > 0;
  for (const params of paramsOf(effects, 'pass'))
    move((params as { callId: string }).callId, 'ended', 'passed');
  for (const params of paramsOf(effects, 'passRead')) {
    const { callId: id, reserved } = params as { callId: string; reserved: boolean };
    move(id, 'ended', 'passed');
    if (reserved) places -= 1;
  }
  for (const id of seenIn(effects)) move(id, 'ended', 'seen');
  // An item fills a place when it enters the outbox and frees the place when it leaves.
  if (event.type === 'batch.told' || retracts > 0) {
    isOut = false;
    places -= 1;
  }
  places -= paramsOf(effects, 'pass').length;
  for (const params of paramsOf(effects, 'free')) places -= (params as { places: number }).places;
  return { fates, isOut, wasOut: ghost.wasOut || tells > 0, places, wrong };
}

/** Explores the batch machine or a faulty version of it. */
export function checkBatch(
  machine: Machine = batchMachine,
  atCeiling: AtCeiling = 'deliver',
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: `batch that ${atCeiling === 'deliver' ? 'tells later' : 'stops'} who is late`,
    input: { ...batchInput, atCeiling },
    onViolation,
    key: (snapshot) => {
      const { isReplying, working, asking, parts } = snapshot.context;
      return [
        snapshot.value,
        isReplying,
        working.toSorted(),
        asking.toSorted(),
        parts.toSorted(),
        running(snapshot),
      ];
    },
    events: batchEvents,
    ghost: {
      initial: { fates: {}, isOut: false, wasOut: false, places: 0, wrong: null },
      next(ghost, { event, effects, outcome }) {
        return outcome === 'taken' ? follow(ghost, event, effects as Effects) : ghost;
      },
    },
    invariants: {
      'BATCH-1: each result is told or seen once': (_snapshot, { wrong }) => wrong ?? true,
      'BATCH-1: what is neither told nor seen is still here': ({ context: { parts } }, ghost) =>
        same(parts.toSorted(), pending(ghost)),
      'BATCH-2: results wait for somebody, or for the end of the reply': (snapshot) =>
        !holds(snapshot) || late(snapshot).length > 0 || snapshot.context.isReplying,
      'BATCH-1: something waits exactly while it is held or told': (snapshot) =>
        snapshot.matches('closing') ||
        snapshot.context.parts.length > 0 === (holds(snapshot) || snapshot.matches('telling')),
      'BATCH-2: a clock runs while results wait': (snapshot) =>
        same(running(snapshot), holds(snapshot) || snapshot.matches('closing') ? ['deadline'] : []),
      'BATCH-3: who waits for the user works': ({ context: { working, asking } }) =>
        asking.every((id) => working.includes(id)),
      'BATCH-5: what is told together is in the outbox': (snapshot, ghost) =>
        snapshot.matches('telling') === ghost.isOut,
      'BATCH-6: as many places as results that wait': ({ context: { parts } }, { places }) =>
        places === parts.length || `Expected ${parts.length} places, got ${places}`,
      'BATCH-7: over when nobody works and nothing waits': ({ status, context }, ghost) =>
        status === 'active' || (context.working.length === 0 && pending(ghost).length === 0),
    },
    steps: {
      'BATCH-2: at the ceiling it is told what there is': (before, event, after, effects) => {
        const due = (event as { dueAt?: number }).dueAt === before.context.dueAt;
        if (event.type !== 'deadline.ceiling' || !due || !holds(before)) return true;
        const stops = atCeiling === 'cancel' && late(before).length > 0;
        if (stops)
          return (
            after.matches('closing') && same(paramsOf(effects, 'stop'), [{ callIds: late(before) }])
          );
        return (
          !holds(after) &&
          after.context.parts.length ===
            (after.matches('telling') ? before.context.parts.length : 0)
        );
      },
      'BATCH-3: nobody waits for one that asks the user': (before, event, after) =>
        event.type !== 'batch.asking' ||
        !holds(before) ||
        before.context.isReplying ||
        late(after).length > 0 ||
        !holds(after),
      'BATCH-4: a result alone is passed on at once': (before, event, _after, effects) => {
        if (event.type !== 'batch.settled' || !before.matches({ gathering: 'idle' })) return true;
        const { isReplying, working } = before.context;
        const { callId } = event as { callId: string };
        const isAlone = !isReplying && same(working, [callId]);
        return !isAlone || same(paramsOf(effects, 'pass'), [{ callId }]);
      },
      'BATCH-4: what is told together is more than one': (_before, _event, after, effects) =>
        paramsOf(effects, 'tell').length === 0 || after.context.parts.length > 1,
      'BATCH-5: what ends later is passed on by itself': (before, event, _after, effects) => {
        const { callId = '' } = event as { callId?: string };
        const isLate = before.matches('telling') || before.matches('trailing');
        if (event.type !== 'batch.settled' || !isLate) return true;
        const works = before.context.working.includes(callId);
        return same(paramsOf(effects, 'pass'), works ? [{ callId }] : []);
      },
      'a deadline that is not the armed one is ignored': (before, event, after) =>
        !event.type.startsWith('deadline.') ||
        (event as { dueAt: number }).dueAt === before.context.dueAt ||
        same(after.value, before.value),
      'each deadline is that of its state': (before, { at }, after, effects) => {
        const armed = started(effects, 'deadline');
        const now = at as number;
        const expected = [
          ...(holds(after) && !holds(before)
            ? [{ dueAt: now + batchInput.ceilingMs, event: 'deadline.ceiling' }]
            : []),
          ...(after.matches('closing') && !before.matches('closing')
            ? [{ dueAt: now + batchInput.graceMs, event: 'deadline.grace' }]
            : []),
        ];
        return same(
          armed.filter(({ event }) => expected.some((one) => one.event === event)),
          expected,
        );
      },
    },
    waits: {
      'BATCH-2: results wait no longer than the ceiling': {
        when: (snapshot) => holds(snapshot),
        exits: ['deadline.ceiling'],
      },
      'BATCH-2: who was told to stop is waited for no longer than the grace': {
        when: (snapshot) => snapshot.matches('closing'),
        exits: ['deadline.grace'],
      },
      'BATCH-1: what is told together is told to the end': {
        when: (snapshot) => snapshot.matches('telling'),
        exits: ['batch.told'],
      },
    },
    reachable: {
      'three are told together': ({ context, value }) =>
        value === 'telling' && context.parts.length === 3,
      'two are told together, the third by itself': (_snapshot, { wasOut, fates }) =>
        wasOut && Object.values(fates).includes('passed'),
      'nothing comes of any': ({ status }, { fates }) =>
        status === 'done' && ids.every((id) => fates[id] === 'left'),
    },
  });
}
