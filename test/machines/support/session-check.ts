// Every state of a session: what may come, and what shall hold in it (V1 to V4).
//
// Time: each of the four clocks starts at 0 and is told from a stale one by its `dueAt` only, so
// the key leaves moments out. Two failed reconnects in a row are allowed.

import {
  floorOf,
  gateIsOpen,
  gateOf,
  sessionMachine,
  type DeadlineInput,
  type SessionInput,
  type SessionMachineEvent,
  type SessionSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, running, same, spawned } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

export const sessionInput: SessionInput = {
  maxReconnects: 2,
  settleTimeoutMs: 3,
  closeGraceMs: 5,
  detachGraceMs: 7,
};

type Machine = typeof sessionMachine;
type S = SessionSnapshot;
type Connection = S['value']['connection'];

/** Unlike every other delay, so that one is not taken for the other. */
const retryInMs = 2;
const error = { code: 'TRANSPORT_LOST', message: 'The line is dead', retryable: true } as const;

/** Losses since it was last connected; whether somebody gave up or closed it. */
interface Ghost {
  readonly losses: number;
  readonly hopeless: boolean;
  readonly ended: number;
}

/** The clocks: the id of the deadline, the state that owns it, its event and when it is due. */
const clocks = [
  {
    id: 'reconnect',
    event: 'deadline.reconnect',
    owns: (s: S) => s.matches({ connection: 'reconnecting' }),
    dueAt: (s: S) => s.context.reconnectAt,
  },
  {
    id: 'close',
    event: 'deadline.close',
    owns: (s: S) => s.matches({ connection: 'closing' }),
    dueAt: (s: S) => s.context.closeBy,
  },
  {
    id: 'settle',
    event: 'deadline.settle',
    owns: (s: S) => s.matches({ user: 'settling' }),
    dueAt: (s: S) => s.context.settleBy,
  },
  {
    id: 'detach',
    event: 'deadline.detach',
    owns: (s: S) => s.matches({ client: { detached: 'counting' } }),
    dueAt: (s: S) => s.context.detachedUntil,
  },
] as const;

function sessionEvents({ context }: S): readonly SessionMachineEvent[] {
  const at = 0;
  const { reconnectAt, closeBy, settleBy, detachedUntil } = context;
  return [
    { type: 'session.start', at },
    { type: 'session.close', at },
    { type: 'transport.ready', at },
    { type: 'transport.lost', at, error, retryInMs },
    { type: 'transport.lost', at, error, retryInMs: null },
    { type: 'transfer.started', at },
    { type: 'transfer.ended', at },
    { type: 'subagents.ended', at },
    { type: 'client.attached', at },
    { type: 'client.detached', at },
    { type: 'utterance.started', at },
    { type: 'utterance.ended', at },
    { type: 'utterance.settled', at },
    { type: 'response.requested', at },
    { type: 'response.ended', at },
    { type: 'playout.started', at },
    { type: 'playout.drained', at },
    ...[0, 1].flatMap((late): SessionMachineEvent[] => [
      { type: 'deadline.reconnect', at: reconnectAt + late, dueAt: reconnectAt + late },
      { type: 'deadline.close', at: closeBy + late, dueAt: closeBy + late },
      { type: 'deadline.settle', at: settleBy + late, dueAt: settleBy + late },
      { type: 'deadline.detach', at: detachedUntil + late, dueAt: detachedUntil + late },
    ]),
  ];
}

const connectionOf = (snapshot: S): Connection => snapshot.value.connection;
const isClosed = (snapshot: S): boolean => snapshot.matches({ connection: 'closed' });
const linked: ReadonlySet<Connection> = new Set(['connecting', 'active', 'transferring']);

/** Explores a session, or a faulty one in its place. */
export function checkSession(
  machine: Machine = sessionMachine,
  onViolation: OnViolation = 'collect',
) {
  const input = sessionInput;
  return checkMachine<Machine, Ghost>(machine, {
    name: 'session',
    input,
    onViolation,
    key: ({ value, context: { failures, error: why }, children }) => [
      value,
      failures,
      why?.code,
      running({ children }),
    ],
    events: sessionEvents,
    end: isClosed,
    ghost: {
      initial: { losses: 0, hopeless: false, ended: 0 },
      next(ghost, { event, effects }, before, after) {
        let { losses, hopeless } = ghost;
        const lost = event.type === 'transport.lost' && linked.has(connectionOf(before));
        if (lost) {
          losses += 1;
          hopeless ||= event['retryInMs'] === null;
        }
        if (connectionOf(after) === 'active') losses = 0;
        // Twice is once too often, and so is more.
        const ended = Math.min(2, ghost.ended + paramsOf(effects, 'ended').length);
        return { losses: Math.min(losses, input.maxReconnects + 2), hopeless, ended };
      },
    },
    invariants: {
      'V1: it says once that it has ended': (snapshot, { ended }) =>
        ended === (isClosed(snapshot) ? 1 : 0),
      'V2: the gate is open only while connected, attached, and both parties are quiet': (
        snapshot,
      ) =>
        !gateIsOpen(snapshot) ||
        same(snapshot.value, {
          connection: 'active',
          client: 'attached',
          user: 'silent',
          model: 'idle',
          playout: 'drained',
        }),
      'V2: nobody has the floor while the gate is open': (snapshot) =>
        !gateIsOpen(snapshot) || floorOf(snapshot) === 'nobody',
      'V2: only our own speech is interrupted, and only where the wire can': (snapshot) =>
        gateOf(snapshot, false) !== 'interruptible' &&
        (gateOf(snapshot, true) !== 'interruptible' || floorOf(snapshot) === 'model') &&
        (gateOf(snapshot, true) === 'open') === gateIsOpen(snapshot),
      'V4: so many losses in a row close it': (snapshot, { losses, hopeless }) =>
        (losses <= input.maxReconnects && !hopeless) ||
        ['closing', 'closed'].includes(connectionOf(snapshot)),
      'V4: it says why': (snapshot, { losses, hopeless }) =>
        (losses <= input.maxReconnects && !hopeless) || snapshot.context.error?.code === error.code,
      'each deadline is armed in the state that owns it': (snapshot) =>
        same(
          running(snapshot),
          clocks
            .filter(({ owns }) => owns(snapshot))
            .map(({ id }) => id)
            .toSorted(),
        ),
    },
    steps: {
      'V1: nothing leaves closed': (before, _event, after) => !isClosed(before) || isClosed(after),
      'V1: closing ends with its subagents, or kills them': (before, { type }, after, effects) => {
        const kills = paramsOf(effects, 'killSubagents').length;
        if (!before.matches({ connection: 'closing' })) return kills === 0;
        if (!isClosed(after)) return after.matches({ connection: 'closing' });
        return type === 'subagents.ended' ? kills === 0 : type === 'deadline.close' && kills === 1;
      },
      'V1: whoever closes stops the subagents, whoever has closed is disconnected': (
        before,
        _event,
        after,
        effects,
      ) => {
        const closes = connectionOf(after) !== connectionOf(before);
        const closing = closes && connectionOf(after) === 'closing';
        const closed = closes && isClosed(after);
        return (
          paramsOf(effects, 'stopSubagents').length === (closing ? 1 : 0) &&
          paramsOf(effects, 'disconnect').length === (closed ? 1 : 0) &&
          same(paramsOf(effects, 'ended'), closed ? [{ error: after.context.error }] : [])
        );
      },
      'V3: a lost connection forgets what it was in the middle of, not the device': (
        before,
        { type },
        after,
      ) => {
        if (type !== 'transport.lost') return true;
        const [was, is] = [before.value, after.value];
        return (
          is.model === 'idle' &&
          is.user === 'silent' &&
          is.playout === was.playout &&
          same(is.client, was.client)
        );
      },
      'V4: it tries again a while after each loss': (before, event, after, effects) => {
        const tries = after.matches({ connection: 'connecting' });
        const begins = tries && !before.matches({ connection: 'connecting' });
        const attempt = after.context.failures + 1;
        if (!same(paramsOf(effects, 'connect'), begins ? [{ attempt }] : [])) return false;
        if (!begins) return true;
        return before.matches({ connection: 'created' })
          ? event.type === 'session.start'
          : event.type === 'deadline.reconnect';
      },
      'V4: being connected starts the count again': (before, _event, after) =>
        connectionOf(after) !== 'active' ||
        connectionOf(before) === 'active' ||
        (after.context.failures === 0 && after.context.error === null),
      'each deadline is that of its state': (before, { at }, after, effects) => {
        const begun = clocks.filter(({ owns }) => owns(after) && !owns(before));
        const delay = {
          reconnect: retryInMs,
          close: input.closeGraceMs,
          settle: input.settleTimeoutMs,
          detach: input.detachGraceMs ?? 0,
        };
        return same(
          spawned(effects, 'deadline').toSorted(byEvent),
          begun
            .map(({ id, event }) => ({ dueAt: (at as number) + delay[id], event }))
            .toSorted(byEvent),
        );
      },
      'a deadline that is not the armed one is ignored': (before, event) =>
        clocks.every(
          (clock) =>
            clock.event !== event.type ||
            ((event as { dueAt: number }).dueAt === clock.dueAt(before) && clock.owns(before)),
        ),
      'whoever waits long enough for the user gives up': (before, { type }, _after, effects) =>
        paramsOf(effects, 'giveUpOnUser').length === (type === 'deadline.detach' ? 1 : 0) &&
        (type !== 'deadline.detach' || before.matches({ client: { detached: 'counting' } })),
    },
    waits: {
      'closing ends by itself': {
        when: (snapshot) => snapshot.matches({ connection: 'closing' }),
        exits: ['deadline.close'],
      },
      'reconnecting ends by itself': {
        when: (snapshot) => snapshot.matches({ connection: 'reconnecting' }),
        exits: ['deadline.reconnect'],
      },
      'settling ends by itself': {
        when: (snapshot) => snapshot.matches({ user: 'settling' }),
        exits: ['deadline.settle'],
      },
      'whatever is not closed can be closed': {
        when: (snapshot) => !['closing', 'closed'].includes(connectionOf(snapshot)),
        exits: ['session.close'],
      },
    },
    reachable: {
      'the gate opens': gateIsOpen,
      'it closes because the line is dead': (snapshot, { losses }) =>
        isClosed(snapshot) && losses > input.maxReconnects,
      'it closes in peace': (snapshot) => isClosed(snapshot) && snapshot.context.error === null,
    },
  });
}

function byEvent(one: DeadlineInput, other: DeadlineInput): number {
  return one.event.localeCompare(other.event);
}
