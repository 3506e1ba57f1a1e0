// A service with two sources, wired as at run time: a message from the service reaches both sources in the same step.

import { eventSourceMachine, serviceMachine, sourceMessages } from '../../../src/machines/index.ts';
import { checkSystem } from '../../../src/testing/check/index.ts';
import { started } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const machines = {
  service: serviceMachine,
  'source:a': eventSourceMachine,
  'source:b': eventSourceMachine,
};
type Machines = typeof machines;
const names = ['source:a', 'source:b'] as const;

const sourceInput = { baseDelayMs: 2, maxDelayMs: 2, stableMs: 10, stopTimeoutMs: 5 };

/** Counts the attempts of both sources that have started and not yet been released. */
export function checkServiceSystem(
  faulty: Partial<Machines> = {},
  onViolation: OnViolation = 'collect',
) {
  return checkSystem<Machines, readonly [number, number]>({
    name: 'service and sources',
    onViolation,
    mode: 'sync',
    actors: {
      service: {
        machine: faulty.service ?? serviceMachine,
        input: { maxWaiting: 1, maxInvocations: 1, baseDelayMs: 1, maxDelayMs: 1 },
        key: ({ value }) => value,
      },
      'source:a': {
        machine: faulty['source:a'] ?? eventSourceMachine,
        input: sourceInput,
        key: keyOf,
      },
      'source:b': {
        machine: faulty['source:b'] ?? eventSourceMachine,
        input: sourceInput,
        key: keyOf,
      },
    },
    route: (from, effect) =>
      from === 'service'
        ? sourceMessages(effect.type, ['a', 'b']).map(({ actor, event }) => ({
            to: actor,
            event: { ...event, at: 0 },
          }))
        : undefined,
    external({ actors }, id) {
      if (id === 'service')
        return [
          { type: 'service.start', at: 0 },
          { type: 'service.stop', at: 0 },
          { type: 'event.arrived', at: 0, eventId: 'e', priority: 'normal' },
          { type: 'invocation.ended', at: 0, eventId: 'e' },
        ];
      const { attempt, restartAt, releaseBy } = actors[id as 'source:a'].context;
      return [
        { type: 'source.started', at: 0, attempt },
        { type: 'source.failed', at: 0, attempt, jitter: 0 },
        { type: 'source.released', at: 0, attempt },
        { type: 'deadline.restart', at: 0, dueAt: restartAt },
        { type: 'deadline.release', at: 0, dueAt: releaseBy },
      ];
    },
    ghost: {
      initial: [0, 0],
      next(ghost, { actor, effects }) {
        return ghost.map((held, n) => {
          if (actor !== names[n]) return held;
          return held + started(effects, 'attempt').length - started(effects, 'release').length;
        }) as unknown as readonly [number, number];
      },
    },
    invariants: {
      'a source runs only while its service does': ({ actors }) =>
        names.every(
          (name) =>
            !(actors[name].matches('live') || actors[name].matches('backing_off')) ||
            actors.service.matches('working'),
        ),
      'what was begun is held once at most, and by nobody in the end': ({ actors, ghost }) =>
        ghost.every((held) => held === 0 || held === 1) &&
        names.every((name, n) => actors[name].status === 'active' || ghost[n] === 0),
      'a stopped service is stopping its sources': ({ actors }) =>
        actors.service.status === 'active' ||
        names.every(
          (name) =>
            actors[name].status === 'done' || actors[name].matches({ releasing: 'for_good' }),
        ),
    },
    reachable: {
      'one source runs while the other has failed': ({ actors }) =>
        actors['source:a'].matches({ live: 'running' }) &&
        actors['source:b'].matches('backing_off'),
    },
  });
}

function keyOf({ value }: { value: unknown }): unknown {
  return value;
}
