// Explores every state of a call that a client carries out and checks its properties (CLIENT-CALL-1 to CLIENT-CALL-4).
//
// Time: the call starts at 0. The deadlines of the states differ, and nothing else depends on time.

import {
  clientCallMachine,
  type ClientCallEvent,
  type ClientCallInput,
  type ClientCallSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { running, same } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof clientCallMachine;
type S = ClientCallSnapshot;

const MINUTE_MS = 60_000;

function clientCallEvents({ context: { dueAt } }: S): readonly ClientCallEvent[] {
  return [
    ...['ann', 'bob'].flatMap((by): ClientCallEvent[] => [
      { type: 'client.claimed', at: 0, by },
      { type: 'client.left', at: 0, by },
      { type: 'client.answered', at: 0, by },
      { type: 'client.answered', at: 0, by, failed: true },
    ]),
    { type: 'client.left', at: 0, by: null },
    { type: 'client.cancelled', at: 0 },
    { type: 'deadline.client', at: dueAt, dueAt },
    { type: 'deadline.client', at: dueAt + 1, dueAt: dueAt + 1 },
  ];
}

/** The clients that received the call. */
interface Ghost {
  readonly had: readonly string[];
}

const holderOf = ({ value, context }: S): string | null =>
  value === 'claimed' || value === 'left' ? context.by : null;

export type ClientCallTerms = Pick<ClientCallInput, 'absent' | 'idempotent'>;

/** Explores the machine of a client's call or a faulty version of it. */
export function checkClientCall(
  terms: ClientCallTerms,
  machine: Machine = clientCallMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'call at a client',
    input: { at: 0, subagentId: null, callId: 'c', timeoutMs: 5 * MINUTE_MS, ...terms },
    onViolation,
    events: clientCallEvents,
    ghost: {
      initial: { had: [] },
      next({ had }, _step, _before, after) {
        const holder = holderOf(after);
        return { had: holder === null || had.includes(holder) ? had : [...had, holder].toSorted() };
      },
    },
    invariants: {
      'CLIENT-CALL-2: a call runs at one client only, unless it may run twice': (
        _snapshot,
        { had },
      ) => terms.idempotent || had.length <= 1,
      'CLIENT-CALL-3: the time of the call bounds every wait': ({ context }) =>
        context.dueAt <= context.endsAt,
      'CLIENT-CALL-3: an open call has a deadline': (snapshot) =>
        same(running(snapshot), snapshot.status === 'active' ? ['deadline'] : []),
      'CLIENT-CALL-4: the name of a client that may have done it is kept': ({ context }, { had }) =>
        terms.idempotent || had.length === 0 || context.by === had[0],
      'a call that no client had is not answered': ({ value }, { had }) =>
        !['answered', 'failed', 'in_doubt'].includes(value) || had.length > 0,
    },
    steps: {
      'CLIENT-CALL-1: only the client that has the call answers it': (before, event, after) =>
        event.type !== 'client.answered' ||
        after.value === before.value ||
        ('by' in event && holderOf(before) === event.by),
      'CLIENT-CALL-1: no client takes the call of another': (before, event, after) =>
        event.type !== 'client.claimed' ||
        holderOf(before) === null ||
        holderOf(after) === holderOf(before),
      'CLIENT-CALL-2: a client that leaves with a call keeps it, unless it may run twice': (
        before,
        event,
        after,
      ) =>
        event.type !== 'client.left' ||
        before.value !== 'claimed' ||
        terms.idempotent ||
        after.context.by === before.context.by,
      'a deadline that is not the armed one is ignored': (before, event, after) =>
        event.type !== 'deadline.client' ||
        ('dueAt' in event && event.dueAt === before.context.dueAt) ||
        after.value === before.value,
    },
    waits: {
      'CLIENT-CALL-3: every open call ends by a deadline': {
        when: ({ status }) => status === 'active',
        exits: ['deadline.client'],
      },
      'every open call can be cancelled': {
        when: ({ status }) => status === 'active',
        exits: ['client.cancelled'],
      },
    },
    reachable: {
      'a result': ({ value }) => value === 'answered',
      'a failure': ({ value }) => value === 'failed',
      ...(terms.idempotent
        ? { 'a second client': (_snapshot: S, { had }: Ghost) => had.length > 1 }
        : { 'a doubt': ({ value }: S) => value === 'in_doubt' }),
      ...(terms.absent === 'fail' && { 'no client': ({ value }: S) => value === 'absent' }),
    },
  });
}
