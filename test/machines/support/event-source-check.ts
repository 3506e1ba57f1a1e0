// Explores every state of an event source and checks its properties (EVENT-SOURCE-1 to EVENT-SOURCE-5).
//
// Time: each attempt starts at 0 and fails at 0 (too early) or at 10 (after it was stable). The key counts failures up
// to 4, where the pause reaches its maximum, and omits times.

import {
  eventSourceMachine,
  type EventSourceEvent,
  type EventSourceSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const sourceInput = { baseDelayMs: 2, maxDelayMs: 8, stableMs: 10, stopTimeoutMs: 5 } as const;

type Machine = typeof eventSourceMachine;
type S = EventSourceSnapshot;

/** The number of times that the latest attempt was started and released. Earlier attempts have already been checked. */
interface Ghost {
  readonly attempt: number;
  readonly begun: number;
  readonly released: number;
}

const isLive = (snapshot: S): boolean => snapshot.matches('live');

function sourceEvents({ context }: S): readonly EventSourceEvent[] {
  const { attempt, restartAt, releaseBy } = context;
  return [
    { type: 'source.start', at: 0 },
    { type: 'source.stop', at: 0 },
    { type: 'source.started', at: 0, attempt },
    { type: 'source.started', at: 0, attempt: attempt - 1 },
    { type: 'source.failed', at: 0, attempt, jitter: 0 },
    { type: 'source.failed', at: 0, attempt, jitter: 0.5 },
    { type: 'source.failed', at: 10, attempt, jitter: 0 },
    { type: 'source.failed', at: 0, attempt: attempt - 1, jitter: 0 },
    { type: 'source.released', at: 0, attempt },
    { type: 'source.released', at: 0, attempt: attempt - 1 },
    { type: 'deadline.restart', at: 0, dueAt: restartAt },
    { type: 'deadline.restart', at: 0, dueAt: restartAt + 1 },
    { type: 'deadline.release', at: 0, dueAt: releaseBy },
    { type: 'deadline.release', at: 0, dueAt: releaseBy + 1 },
  ];
}

/** Explores the event source machine or a faulty version of it. */
export function checkEventSource(
  machine: Machine = eventSourceMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'event source',
    input: sourceInput,
    onViolation,
    key: ({ value, context }) => [value, Math.min(context.failures, 4)],
    events: sourceEvents,
    ghost: {
      initial: { attempt: 0, begun: 0, released: 0 },
      next(ghost, { effects }, _before, after) {
        const begun = started(effects, 'attempt').length;
        const released = started(effects, 'release').length;
        const { attempt } = after.context;
        return begun > 0
          ? { attempt: Math.min(attempt, 2), begun, released }
          : { ...ghost, released: ghost.released + released };
      },
    },
    invariants: {
      'EVENT-SOURCE-1: an attempt runs in live only, its release in releasing only': (snapshot) => {
        const expected = isLive(snapshot)
          ? ['attempt']
          : snapshot.matches('releasing')
            ? ['deadline', 'release']
            : snapshot.matches('backing_off')
              ? ['deadline']
              : [];
        return same(running(snapshot), expected);
      },
      'EVENT-SOURCE-1: each attempt is begun once, and released once when it is over': (
        snapshot,
        ghost,
      ) =>
        ghost.begun === (ghost.attempt === 0 ? 0 : 1) &&
        ghost.released === (ghost.attempt === 0 || isLive(snapshot) ? 0 : 1),
    },
    steps: {
      'EVENT-SOURCE-1: the next attempt has the next number': (before, _event, after, effects) =>
        started(effects, 'attempt').every(
          (input) =>
            (input as unknown as { attempt: number }).attempt === before.context.attempt + 1,
        ) && after.context.attempt === before.context.attempt + started(effects, 'attempt').length,
      'EVENT-SOURCE-2: the pause doubles up to its longest, less the jitter': (
        before,
        event,
        after,
      ) => {
        if (event.type !== 'source.failed' || !isLive(before) || isLive(after)) return true;
        const { at, jitter } = event as unknown as { at: number; jitter: number };
        const wholeMs = Math.min(8, 2 * 2 ** (after.context.failures - 1));
        return after.context.restartAt === at + wholeMs * (1 - jitter / 2);
      },
      'EVENT-SOURCE-2: failures are counted one by one': (before, event, after) =>
        after.context.failures === before.context.failures ||
        (event.type === 'source.failed' &&
          after.context.failures === (event.at === 10 ? 1 : before.context.failures + 1)),
      'EVENT-SOURCE-3: a stable attempt forgets the failures before it': (before, event, after) =>
        event.type !== 'source.failed' ||
        event.at !== 10 ||
        !isLive(before) ||
        after.context.failures === 1,
      'EVENT-SOURCE-4: news of another attempt, and another deadline, change nothing': (
        before,
        event,
        after,
      ) => {
        const news = event as unknown as { attempt?: number; dueAt?: number };
        const { attempt, restartAt, releaseBy } = before.context;
        const isStale =
          (news.attempt !== undefined && news.attempt !== attempt) ||
          (event.type === 'deadline.restart' && news.dueAt !== restartAt) ||
          (event.type === 'deadline.release' && news.dueAt !== releaseBy);
        return !isStale || same(before.value, after.value);
      },
      'EVENT-SOURCE-5: nothing begins after stop': (before, { type }, _after, effects) =>
        !(type === 'source.stop' || before.matches({ releasing: 'for_good' })) ||
        started(effects, 'attempt').length === 0,
      'EVENT-SOURCE-5: a release that hangs is given up, and only then': (
        _before,
        { type },
        after,
        effects,
      ) =>
        paramsOf(effects, 'abandoned').length ===
        (type === 'deadline.release' && !after.matches('releasing') && effects.length > 0 ? 1 : 0),
    },
    waits: {
      'a release ends by a deadline': {
        when: (snapshot) => snapshot.matches('releasing'),
        exits: ['deadline.release'],
      },
      'backing off ends by another attempt': {
        when: (snapshot) => snapshot.matches('backing_off'),
        exits: ['deadline.restart'],
      },
      'whatever lives can be stopped': {
        when: (snapshot) => !snapshot.matches({ releasing: 'for_good' }),
        exits: ['source.stop'],
      },
      'an attempt may fail at any time': { when: isLive, exits: ['source.failed'] },
    },
    reachable: {
      'it fails four times in a row': ({ context }) => context.failures === 4,
      'it runs again after a failure': (snapshot) =>
        snapshot.matches({ live: 'running' }) && snapshot.context.failures > 0,
      'it is stopped while it is being released': (snapshot) =>
        snapshot.matches({ releasing: 'for_good' }) && snapshot.context.failures > 0,
    },
  });
}
