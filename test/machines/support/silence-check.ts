// Explores every state of a silence and checks its properties (SILENCE-1 to SILENCE-3).
//
// Time: a nudge is due after 2, and the user counts as away after 3. Each silence starts at 0 and ends at once, after
// 1, or at a deadline. The key includes the remaining time of the timers.

import {
  silenceMachine,
  type SilenceEvent,
  type SilenceSnapshot,
} from '../../../src/machines/silence-machine.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, running, same } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof silenceMachine;
type S = SilenceSnapshot;

const NUDGE_MS = 2;
const AWAY_MS = 3;
const input = { nudgeAfterMs: NUDGE_MS, awayAfterMs: AWAY_MS } as const;

/** The length of the silence without the time that a tool takes, and the reports so far. */
interface Ghost {
  readonly stillMs: number;
  /** The timers that have been started and not stopped. */
  readonly clocks: readonly string[];
  readonly nudges: number;
  readonly isAway: boolean;
}

const isStill = (snapshot: S): boolean => snapshot.matches('still');
const count = (effects: Parameters<typeof paramsOf>[0], type: string): number =>
  paramsOf(effects, type as never).length;

function eventsOf(snapshot: S): readonly SilenceEvent[] {
  const { nudgeLeftMs, awayLeftMs } = snapshot.context;
  const armed = running(snapshot);
  const nudgeAt = armed.includes('nudge') ? (nudgeLeftMs ?? 0) : null;
  const awayAt = armed.includes('away') ? (awayLeftMs ?? 0) : null;
  // An event occurs no later than the next deadline.
  const last = isStill(snapshot) ? Math.min(nudgeAt ?? 1, awayAt ?? 1, 1) : 0;
  const all: readonly SilenceEvent[] = [
    ...[...new Set([0, last])].flatMap((at) =>
      (['loud', 'waiting'] as const).map((to) => ({ type: 'silence.changed', to, at }) as const),
    ),
    { type: 'silence.changed', to: 'still', at: 0 },
    { type: 'user.noticed', at: 0 },
    ...(nudgeAt === null ? [] : [{ type: 'deadline.nudge', at: nudgeAt, dueAt: nudgeAt } as const]),
    ...(awayAt === null ? [] : [{ type: 'deadline.away', at: awayAt, dueAt: awayAt } as const]),
    { type: 'deadline.nudge', at: 0, dueAt: -1 },
    { type: 'deadline.away', at: 0, dueAt: -1 },
  ];
  return all;
}

/** Explores the silence machine or a faulty version of it. */
export function checkSilence(
  machine: Machine = silenceMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'silence',
    input,
    onViolation,
    key: ({ value, context: { nudgeLeftMs, awayLeftMs, isAway } }) => [
      value,
      nudgeLeftMs,
      awayLeftMs,
      isAway,
    ],
    events: eventsOf,
    end: (snapshot) => snapshot.matches('loud'),
    ghost: {
      initial: { stillMs: 0, clocks: [], nudges: 0, isAway: false },
      next({ stillMs, clocks, nudges, isAway }, { event, effects }, before, after) {
        const stopped = new Set(paramsOf(effects, 'stopActivity').map(({ id }) => id));
        const started = paramsOf(effects, 'startActivity').map(({ id }) => id);
        const at = (event as SilenceEvent).at;
        const was = stillMs + (isStill(before) && !isStill(after) ? at : 0);
        const isLoud = after.matches('loud');
        return {
          stillMs: isLoud ? 0 : Math.min(was, AWAY_MS),
          clocks: [...clocks.filter((id) => !stopped.has(id)), ...started],
          nudges: isLoud ? 0 : nudges + count(effects, 'nudge'),
          isAway: (isAway || count(effects, 'away') > 0) && count(effects, 'back') === 0,
        };
      },
    },
    invariants: {
      'SILENCE-1: the clocks run in a silence only': (snapshot, { clocks }) =>
        isStill(snapshot) || clocks.length === 0,
      'SILENCE-1: what is left is what has not passed': (snapshot, { stillMs, nudges }) =>
        !snapshot.matches('waiting') ||
        nudges > 0 ||
        snapshot.context.nudgeLeftMs === NUDGE_MS - Math.min(stillMs, NUDGE_MS),
      'SILENCE-1: they run until they have passed': (snapshot, { nudges }) =>
        !isStill(snapshot) ||
        same(
          running(snapshot).toSorted(),
          [
            ...(snapshot.context.awayLeftMs === null ? [] : ['away']),
            ...(nudges > 0 ? [] : ['nudge']),
          ].toSorted(),
        ),
      'SILENCE-2: a nudge is due once in a silence': (_, { nudges }) => nudges <= 1,
      'SILENCE-3: who is away is known': ({ context }, { isAway }) => context.isAway === isAway,
    },
    steps: {
      'SILENCE-1: a deadline that is not the armed one is ignored': (_before, event) =>
        !('dueAt' in event) || event.dueAt === event.at,
      'SILENCE-2: nobody who is away goes away': (before, _event, _after, effects) =>
        count(effects, 'away') === 0 || !before.context.isAway,
      'SILENCE-3: back is who was away and was noticed': (before, { type }, _after, effects) =>
        (count(effects, 'back') === 1) === (type === 'user.noticed' && before.context.isAway),
    },
    waits: {
      'SILENCE-1: a silence ends when somebody speaks': {
        when: isStill,
        exits: ['silence.changed'],
      },
      'SILENCE-2: a nudge comes': {
        when: (snapshot) => isStill(snapshot) && snapshot.context.nudgeLeftMs !== null,
        exits: ['deadline.nudge'],
      },
      'SILENCE-3: who says nothing goes away': {
        when: (snapshot) => isStill(snapshot) && snapshot.context.awayLeftMs !== null,
        exits: ['deadline.away'],
      },
      'SILENCE-3: who is away can come back': {
        when: ({ context }) => context.isAway,
        exits: ['user.noticed'],
      },
    },
    reachable: {
      'SILENCE-1: the clocks have stood while a tool worked': (snapshot, { stillMs }) =>
        snapshot.matches('waiting') && stillMs > 0 && snapshot.context.nudgeLeftMs === NUDGE_MS - 1,
      'somebody is away while the model speaks': ({ value, context }) =>
        value === 'loud' && context.isAway,
    },
  });
}
