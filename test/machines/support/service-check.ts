// Explores every state of a service and checks its properties (SERVICE-MACHINE-1 to SERVICE-MACHINE-6).
//
// Two events may wait behind the current one, and an invocation is attempted twice. Normal events are n1 to n3, and
// urgent events are u1 to u3. The id of an ended event may occur again as a new event.

import {
  serviceMachine,
  type ServiceMachineEvent,
  type ServiceSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

const serviceInput = { maxWaiting: 2, maxInvocations: 2, baseDelayMs: 2, maxDelayMs: 8 } as const;

const normal = ['n1', 'n2', 'n3'];
const urgent = ['u1', 'u2', 'u3'];
const priorityOf = (id: string) => (id.startsWith('u') ? 'urgent' : 'normal');

type Machine = typeof serviceMachine;
type S = ServiceSnapshot;

/** The events that arrived and have not ended, in the order of arrival. */
type Ghost = readonly string[];

const outstanding = ({ context: { current, waiting } }: S): readonly string[] =>
  [current, ...waiting].flatMap((event) => (event ? [event.eventId] : []));
const isInvoking = (snapshot: S): boolean => snapshot.matches({ working: 'invoking' });
const isWaiting = (snapshot: S): boolean => snapshot.matches({ working: 'waiting' });

function serviceEvents(snapshot: S): readonly ServiceMachineEvent[] {
  const known = outstanding(snapshot);
  const events: ServiceMachineEvent[] = [
    { type: 'service.start', at: 0 },
    { type: 'service.stop', at: 0 },
    { type: 'deadline.retry', at: 0, dueAt: snapshot.context.retryAt },
    { type: 'deadline.retry', at: 0, dueAt: snapshot.context.retryAt + 1 },
  ];
  // The first two free ids stand for all free ids. A known id arrives again.
  for (const ids of [normal, urgent]) {
    const free = ids.filter((id) => !known.includes(id)).slice(0, 1);
    for (const eventId of [...free, ...ids.filter((id) => known.includes(id))])
      events.push({ type: 'event.arrived', at: 0, eventId, priority: priorityOf(eventId) });
  }
  for (const eventId of [...known, 'another']) {
    events.push({ type: 'invocation.ended', at: 0, eventId });
    for (const retryable of [true, false])
      events.push({ type: 'invocation.refused', at: 0, eventId, retryable, jitter: 0 });
  }
  return events;
}

/** Explores the service machine or a faulty version of it. */
export function checkService(
  machine: Machine = serviceMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'service',
    input: serviceInput,
    onViolation,
    key: ({ value, context: { current, waiting } }) => [value, current, waiting],
    events: serviceEvents,
    // SERVICE-MACHINE-1: a working service accepts every event that arrives.
    unhandled: ({ type }, snapshot) => type !== 'event.arrived' || !snapshot.matches('working'),
    ghost: {
      initial: [],
      next(ghost, { event, effects, outcome }, before) {
        const over = [
          ...paramsOf(effects, 'settled').map(({ eventId }) => eventId),
          ...paramsOf(effects, 'dropped').flatMap(({ eventIds }) => eventIds),
        ];
        const arrived = event as unknown as { type: string; eventId: string };
        const isNew =
          arrived.type === 'event.arrived' &&
          outcome === 'taken' &&
          !outstanding(before).includes(arrived.eventId);
        const all = isNew ? [...ghost, arrived.eventId] : ghost;
        // An event that ends twice, or that never arrived, stays in the list in a form that violates a property.
        const unknown = over.filter((id, n) => !all.includes(id) || over.indexOf(id) !== n);
        return [...all.filter((id) => !over.includes(id)), ...unknown.map((id) => `? ${id}`)];
      },
    },
    invariants: {
      'SERVICE-MACHINE-1: what arrived and is not over is what it has': (snapshot, ghost) =>
        same(ghost.toSorted(), outstanding(snapshot).toSorted()),
      'SERVICE-MACHINE-1: each accepted event is there once': (snapshot) =>
        new Set(outstanding(snapshot)).size === outstanding(snapshot).length,
      'SERVICE-MACHINE-2: an invocation runs in invoking only, and only one': (snapshot) =>
        same(
          running(snapshot),
          isInvoking(snapshot) ? ['invocation'] : isWaiting(snapshot) ? ['deadline'] : [],
        ) && (snapshot.context.current !== null) === isInvoking(snapshot),
      'SERVICE-MACHINE-3: urgent before normal': ({ context: { waiting } }) =>
        waiting.every(
          ({ priority }, n) =>
            priority === 'urgent' || waiting.slice(n).every((e) => e.priority === 'normal'),
        ),
      'SERVICE-MACHINE-4: so many wait at most': (snapshot) =>
        outstanding(snapshot).length <= serviceInput.maxWaiting + 1,
      'SERVICE-MACHINE-5: none was refused more often than it may be': (snapshot) =>
        [snapshot.context.current, ...snapshot.context.waiting].every(
          (event) => event === null || event.refusals < serviceInput.maxInvocations,
        ),
      'SERVICE-MACHINE-6: what is stopped has nothing left': (snapshot, ghost) =>
        !snapshot.matches('stopped') || (ghost.length === 0 && outstanding(snapshot).length === 0),
    },
    steps: {
      'SERVICE-MACHINE-1: an event that arrives is accepted or dropped': (
        before,
        event,
        _after,
        effects,
      ) => {
        if (event.type !== 'event.arrived' || !before.matches('working')) return true;
        const { eventId } = event as { eventId: string };
        const accepted = paramsOf(effects, 'accepted').filter((e) => e.eventId === eventId);
        const dropped = paramsOf(effects, 'dropped').filter((e) => e.eventIds.includes(eventId));
        const isNew = !outstanding(before).includes(eventId);
        return accepted.length + dropped.length === (isNew ? 1 : 0);
      },
      'SERVICE-MACHINE-2: an invocation is of the event that came first': (
        before,
        event,
        after,
        effects,
      ) => {
        const [begun] = started(effects, 'invocation') as unknown as readonly { eventId: string }[];
        if (!begun) return true;
        const { eventId } = event as unknown as { eventId: string };
        const first = before.context.waiting[0]?.eventId ?? eventId;
        return begun.eventId === first && after.context.current?.eventId === first;
      },
      'SERVICE-MACHINE-3: first come, first served in each class; a refused one goes to the front':
        (before, event, after) =>
          [normal, urgent].every((ids) => {
            const of = ({ context }: S) =>
              context.waiting.map(({ eventId }) => eventId).filter((id) => ids.includes(id));
            const { eventId } = event as unknown as { eventId: string };
            const was = of(before);
            const before_ =
              event.type === 'invocation.refused' && ids.includes(eventId)
                ? [eventId, ...was]
                : was;
            const expected = event.type === 'event.arrived' ? [...before_, eventId] : before_;
            return of(after).every(
              (id, n, all) => n === 0 || expected.indexOf(all[n - 1] ?? '') < expected.indexOf(id),
            );
          }),
      'SERVICE-MACHINE-4: an event is dropped only for a stated reason': (
        before,
        event,
        _after,
        effects,
      ) =>
        paramsOf(effects, 'dropped').every(({ eventIds, reason }) => {
          const full = before.context.waiting.length >= serviceInput.maxWaiting;
          const arrived = event as unknown as { eventId: string; priority: string };
          const youngest = before.context.waiting.findLast(({ priority }) => priority === 'normal');
          switch (reason) {
            case 'full':
              return (
                event.type === 'event.arrived' &&
                full &&
                same(eventIds, [arrived.eventId]) &&
                (arrived.priority === 'normal' || youngest === undefined)
              );
            case 'displaced':
              return (
                event.type === 'event.arrived' &&
                full &&
                arrived.priority === 'urgent' &&
                same(eventIds, [youngest?.eventId])
              );
            case 'refused':
              return (
                event.type === 'invocation.refused' &&
                same(eventIds, [before.context.current?.eventId]) &&
                (!(event as { retryable: boolean }).retryable ||
                  before.context.current?.refusals === serviceInput.maxInvocations - 1)
              );
            case 'stopped':
              return event.type === 'service.stop' && same(eventIds, outstanding(before));
          }
        }),
      'SERVICE-MACHINE-5: the pause grows with each refusal': (before, event, after) =>
        !isWaiting(after) ||
        isWaiting(before) ||
        after.context.retryAt ===
          (event.at as number) + Math.min(8, 2 * 2 ** (before.context.current?.refusals ?? 0)),
      'SERVICE-MACHINE-5: a deadline that is not the armed one is ignored': (
        before,
        event,
        after,
      ) =>
        event.type !== 'deadline.retry' ||
        (event as { dueAt: number }).dueAt === before.context.retryAt ||
        same(before.value, after.value),
      'SERVICE-MACHINE-6: they are started once, and stopped once': (
        before,
        { type },
        after,
        effects,
      ) =>
        paramsOf(effects, 'startSources').length ===
          (type === 'service.start' && before.matches('created') ? 1 : 0) &&
        paramsOf(effects, 'stopSources').length ===
          (before.status === 'active' && after.matches('stopped') ? 1 : 0),
    },
    waits: {
      'invoking ends by the invocation': { when: isInvoking, exits: ['invocation.ended'] },
      'waiting ends by a deadline': { when: isWaiting, exits: ['deadline.retry'] },
      'whatever lives can be stopped': { when: () => true, exits: ['service.stop'] },
    },
    reachable: {
      'an urgent event waits behind a refused one and goes first': (snapshot) =>
        isWaiting(snapshot) &&
        snapshot.context.waiting[0]?.priority === 'urgent' &&
        snapshot.context.waiting.some(
          ({ priority, refusals }) => priority === 'normal' && refusals > 0,
        ),
      'the queue is full and one was refused': (snapshot) =>
        isWaiting(snapshot) && snapshot.context.waiting.length === 3,
    },
  });
}
