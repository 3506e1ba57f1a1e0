// Faults planted in a service or its sources, each with the property that must catch it.

import {
  eventSourceMachine,
  serviceMachine,
  type ServiceMachineEvent,
  type ServiceSnapshot,
} from '../../../src/machines/index.ts';
import { candidates, forget, mutate, provide, stateOf, without, type Fault } from './mutate.ts';

type Service = typeof serviceMachine;
type Source = typeof eventSourceMachine;
type Refused = Extract<ServiceMachineEvent, { type: 'invocation.refused' }>;

/** Stopping the service does not stop the sources. */
export const sourcesLeftRunning: Service = mutate(serviceMachine, (chart) => {
  const { on } = stateOf(chart, 'working');
  const stop = on['service.stop'] as { actions: unknown };
  stop.actions = without(stop.actions, 'stopSources');
});

export const serviceFaults: readonly Fault<Service>[] = [
  {
    fault: 'what gives way to an urgent event is not told',
    machine: mutate(serviceMachine, (chart) => {
      const displacing = candidates(stateOf(chart, 'working').on['event.arrived'])[2] as {
        actions: unknown;
      };
      displacing.actions = without(displacing.actions, 'dropped');
    }),
    property: 'SERVICE-MACHINE-1: what arrived and is not over is what it has',
  },
  {
    fault: 'what arrives when it is full is not told',
    machine: mutate(serviceMachine, (chart) => {
      candidates(stateOf(chart, 'working').on['event.arrived']).pop();
    }),
    property: 'every event is taken',
  },
  {
    fault: 'what waits is forgotten at the stop without a word',
    machine: mutate(serviceMachine, (chart) => {
      const { on } = stateOf(chart, 'working');
      const stop = on['service.stop'] as { actions: unknown };
      stop.actions = without(stop.actions, 'dropped');
    }),
    property: 'SERVICE-MACHINE-1: what arrived and is not over is what it has',
  },
  {
    fault: 'there is always room',
    machine: provide(serviceMachine, 'guards', { hasRoom: () => true }),
    property: 'SERVICE-MACHINE-4: so many wait at most',
  },
  {
    fault: 'the end of another invocation counts',
    machine: provide(serviceMachine, 'guards', { isCurrent: () => true }),
    property: 'SERVICE-MACHINE-4: an event is dropped only for a stated reason',
  },
  {
    fault: 'it is tried for ever',
    machine: provide(serviceMachine, 'guards', {
      mayTryAgain: (
        { context }: Pick<ServiceSnapshot, 'context'>,
        { eventId, retryable }: Refused,
      ) => context.current?.eventId === eventId && retryable,
    }),
    property: 'SERVICE-MACHINE-5: none was refused more often than it may be',
  },
  {
    fault: 'a refusal is never tried again',
    machine: mutate(serviceMachine, (chart) =>
      forget(stateOf(chart, 'working', 'waiting'), 'deadline.retry'),
    ),
    property: 'waiting ends by a deadline',
  },
];

export const sourceFaults: readonly Fault<Source>[] = [
  {
    fault: 'a failed attempt is not released',
    machine: mutate(eventSourceMachine, (chart) => {
      const [failed] = [stateOf(chart, 'live').on['source.failed'] as { target: string }];
      failed.target = 'backing_off';
    }),
    property: 'EVENT-SOURCE-1: each attempt is begun once, and released once when it is over',
  },
  {
    fault: 'a stop while it is released releases it again',
    machine: mutate(eventSourceMachine, (chart) => {
      const { on } = stateOf(chart, 'releasing', 'to_restart');
      delete on['source.stop'];
      stateOf(chart, 'releasing').on['source.stop'] = { target: '.for_good', reenter: true };
    }),
    property: 'EVENT-SOURCE-1: each attempt is begun once, and released once when it is over',
  },
  {
    fault: 'the failure of an earlier attempt counts',
    machine: provide(eventSourceMachine, 'guards', { isAttempt: () => true }),
    property: 'EVENT-SOURCE-4: news of another attempt, and another deadline, change nothing',
  },
  {
    fault: 'a release that hangs is waited for',
    machine: mutate(eventSourceMachine, (chart) =>
      forget(stateOf(chart, 'releasing', 'to_restart'), 'deadline.release'),
    ),
    property: 'a release ends by a deadline',
  },
  {
    fault: 'what was released for good is started again',
    machine: mutate(eventSourceMachine, (chart) => {
      const { on } = stateOf(chart, 'releasing', 'for_good');
      on['source.released'] = { target: '#eventSource.live', actions: [] };
    }),
    property: 'EVENT-SOURCE-1: the next attempt has the next number',
  },
  {
    fault: 'failures are never forgotten',
    machine: mutate(eventSourceMachine, (chart) => {
      const failed = stateOf(chart, 'live').on['source.failed'] as { actions: object[] };
      failed.actions[0] = {
        type: 'countFailure',
        params: ({ event }: { event: object }) => ({ ...event, at: 0 }),
      };
    }),
    property: 'EVENT-SOURCE-2: the pause doubles up to its longest, less the jitter',
  },
];
