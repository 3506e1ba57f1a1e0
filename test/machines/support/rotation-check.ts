// Explores every state of a rotation and checks its properties (ROTATION-1 to ROTATION-4).
//
// Time: a connection is opened at 0 and due at 10. After 20, the replacement stops waiting. Events occur at 5 (early),
// 10 (due) or 20 (late). The key counts failures up to 3.

import {
  rotationMachine,
  type RotationEvent,
  type RotationFact,
  type RotationSnapshot,
} from '../../../src/machines/rotation-machine.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const input = { baseDelayMs: 2, maxDelayMs: 8, connectTimeoutMs: 3 } as const;
const DUE = 10;
const LAST = 20;

type Machine = typeof rotationMachine;
type S = RotationSnapshot;

/**
 * The prepared candidates that have not been used, dropped or lost; whether there is a connection; and whether a
 * transfer is running.
 */
interface Ghost {
  readonly candidates: number;
  readonly hasConnection: boolean;
  readonly transfers: boolean;
}

const making = (snapshot: S): boolean => snapshot.matches('making');

function factsOf(snapshot: S): readonly RotationFact[] {
  const { dueAt, lastAt, attemptBy, retryAt } = snapshot.context;
  const canOpen = snapshot.matches('idle') || snapshot.matches('held');
  const timers: RotationFact[] = [];
  for (const id of running(snapshot)) {
    if (id === 'due') timers.push({ type: 'deadline.due', dueAt: dueAt ?? 0 });
    if (id === 'last') timers.push({ type: 'deadline.last', dueAt: lastAt });
    if (id === 'attempt') timers.push({ type: 'deadline.attempt', dueAt: attemptBy });
    if (id === 'retry') timers.push({ type: 'deadline.retry', dueAt: retryAt });
  }
  return [
    ...(canOpen
      ? ([
          { type: 'connection.opened', dueAt: null, lastAt: 0 },
          { type: 'connection.opened', dueAt: DUE, lastAt: LAST },
        ] as const)
      : []),
    { type: 'connection.expiring', lastAt: LAST },
    { type: 'connection.rested' },
    { type: 'connection.lost' },
    { type: 'connection.closed' },
    { type: 'transfer.began' },
    { type: 'transfer.ended' },
    ...(making(snapshot)
      ? ([
          { type: 'candidate.ready' },
          { type: 'candidate.lost', jitter: 0 },
          { type: 'candidate.lost', jitter: 0.5 },
        ] as const)
      : []),
    ...timers,
  ];
}

function rotationEvents(snapshot: S): readonly RotationEvent[] {
  return factsOf(snapshot).flatMap((fact) =>
    [5, DUE, LAST].flatMap((at) =>
      [true, false].flatMap((isIdle) =>
        [true, false].map((canResume) => ({ ...fact, at, isIdle, canResume })),
      ),
    ),
  );
}

const count = (effects: Parameters<typeof paramsOf>[0], type: string): number =>
  paramsOf(effects, type as never).length;

/** Explores the rotation machine or a faulty version of it. */
export function checkRotation(
  machine: Machine = rotationMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'rotation',
    input,
    onViolation,
    key: ({ value, context: { dueAt, lastAt, failures } }) => [
      value,
      dueAt,
      lastAt,
      Math.min(failures, 3),
    ],
    events: rotationEvents,
    end: (snapshot) => snapshot.matches('idle'),
    ghost: {
      initial: { candidates: 0, hasConnection: false, transfers: false },
      next({ candidates, hasConnection, transfers }, { event: { type }, effects }) {
        const over = count(effects, 'drop') + count(effects, 'takeOver');
        const lost = type === 'candidate.lost' ? 1 : 0;
        const renews = count(effects, 'renew') > 0;
        const ends = type === 'connection.lost' || type === 'connection.closed' || renews;
        const has =
          type === 'connection.opened' ||
          count(effects, 'takeOver') > 0 ||
          (hasConnection && !ends);
        return {
          candidates: candidates + count(effects, 'prepare') - over - lost,
          hasConnection: has,
          transfers:
            has && type !== 'transfer.ended' && type !== 'connection.opened'
              ? transfers || type === 'transfer.began'
              : false,
        };
      },
    },
    invariants: {
      'ROTATION-1: there is one candidate while one is made, else none': (
        snapshot,
        { candidates },
      ) => candidates === (making(snapshot) ? 1 : 0),
      'ROTATION-3: without a connection there is nothing to exchange': (
        snapshot,
        { hasConnection },
      ) => hasConnection || snapshot.matches('idle'),
      'each timer runs in its own state': (snapshot) => {
        const timer = snapshot.matches('limited')
          ? ['due']
          : snapshot.matches('awaiting') || snapshot.matches({ making: 'prepared' })
            ? ['last']
            : snapshot.matches({ making: 'preparing' })
              ? ['attempt']
              : snapshot.matches('pausing')
                ? ['retry']
                : [];
        return same(running(snapshot), timer);
      },
    },
    steps: {
      'ROTATION-2: the exchange is made while both are idle, or at the last moment': (
        before,
        event,
        _after,
        effects,
      ) => {
        const exchanges = count(effects, 'takeOver') + count(effects, 'renew');
        if (exchanges === 0) return true;
        const { at, isIdle, type } = event as RotationEvent;
        const isLast = type === 'deadline.last' || type === 'connection.lost';
        return exchanges === 1 && (isIdle || isLast || at >= before.context.lastAt);
      },
      'ROTATION-2: one that is closed first can be gone on from, unless it is late': (
        _before,
        event,
        _after,
        effects,
      ) =>
        count(effects, 'renew') === 0 ||
        (event as RotationEvent).canResume ||
        event.type === 'deadline.last',
      'ROTATION-2: a ready candidate takes the place of one that is lost': (
        before,
        { type },
        _after,
        effects,
      ) =>
        type !== 'connection.lost' ||
        count(effects, 'takeOver') === (before.matches({ making: 'prepared' }) ? 1 : 0),
      'ROTATION-3: nothing is exchanged during a transfer': (before, { type }, _after, effects) =>
        !before.matches('held') || type === 'transfer.ended' || effects.every(isNoExchange),
      'ROTATION-4: after a failure there is a pause that grows': (before, event, after) => {
        const { type, at } = event as RotationEvent;
        if (type !== 'candidate.lost' && type !== 'deadline.attempt') return true;
        const { failures, retryAt } = after.context;
        const wholeMs = Math.min(8, 2 * 2 ** (failures - 1));
        const jitter = (event as { jitter?: number }).jitter ?? 0;
        return (
          after.matches('pausing') &&
          failures === before.context.failures + 1 &&
          retryAt === at + wholeMs * (1 - jitter / 2)
        );
      },
    },
    waits: {
      'ROTATION-2: who waits for a pause waits until the last moment only': {
        when: (snapshot) =>
          snapshot.matches('awaiting') || snapshot.matches({ making: 'prepared' }),
        exits: ['deadline.last'],
      },
      'ROTATION-4: a candidate that says nothing is given up': {
        when: (snapshot) => snapshot.matches({ making: 'preparing' }),
        exits: ['deadline.attempt'],
      },
      'ROTATION-4: another one follows': {
        when: (snapshot) => snapshot.matches('pausing'),
        exits: ['deadline.retry'],
      },
    },
    reachable: {
      'it fails three times': ({ context }) => context.failures === 3,
      'it waits to go on from the old one': (snapshot) => snapshot.matches('awaiting'),
      'it stands ready': (snapshot) => snapshot.matches({ making: 'prepared' }),
      'a transfer holds it': (snapshot) => snapshot.matches('held'),
    },
  });
}

function isNoExchange({ type }: { readonly type: string }): boolean {
  return !['prepare', 'takeOver', 'renew'].includes(type);
}
