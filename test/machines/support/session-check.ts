// Explores every state of a session and checks its properties (SESSION-1 to SESSION-11).
//
// Time: each of the six timers starts at 0, and only its `dueAt` distinguishes it from a stale timer, so the key omits
// times. Two consecutive reconnects may fail.

import {
  floorOf,
  gateIsOpen,
  gateOf,
  restMs,
  sessionMachine,
  type DeadlineInput,
  type SessionInput,
  type SessionMachineEvent,
  type SessionSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { paramsOf, same, started, running } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

export const sessionInput: Required<SessionInput> = {
  maxReconnects: 2,
  connectTimeoutMs: 11,
  transferTimeoutMs: 13,
  settleTimeoutMs: 3,
  closeGraceMs: 5,
  detachGraceMs: 7,
};

type Machine = typeof sessionMachine;
type S = SessionSnapshot;
type Connection = S['value']['connection'];

/** Differs from every other delay, so that no delay is mistaken for another. */
const retryInMs = 2;
const error = { code: 'TRANSPORT_LOST', message: 'The line is dead', retryable: true } as const;
const refused = { code: 'REFUSED', message: 'It would not have it', retryable: false } as const;

/**
 * The losses since the last connection, whether the last loss was hopeless, whether the session has ever been
 * connected, the number of ends, and the transfers that have started and not ended.
 */
interface Ghost {
  readonly losses: number;
  readonly hopeless: boolean;
  readonly hasBegun: boolean;
  readonly ended: number;
  readonly transfers: number;
}

/** The timers: each has the id of the deadline, the state that owns it, its event, and its due time. */
const clocks = [
  {
    id: 'connect',
    event: 'deadline.connect',
    owns: (s: S) => s.matches({ connection: 'connecting' }),
    dueAt: (s: S) => s.context.connectBy,
  },
  {
    id: 'transfer',
    event: 'deadline.transfer',
    owns: (s: S) => s.matches({ connection: 'transferring' }),
    dueAt: (s: S) => s.context.transferBy,
  },
  {
    id: 'reconnect',
    event: 'deadline.reconnect',
    owns: (s: S) =>
      s.matches({ connection: 'reconnecting' }) || s.matches({ connection: 'resting' }),
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

/** The events with which another process takes over. */
const BEGINS: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

function sessionEvents({ context }: S): readonly SessionMachineEvent[] {
  const at = 0;
  const { connectBy, transferBy, reconnectAt, closeBy, settleBy, detachedUntil } = context;
  return [
    { type: 'session.start', at },
    { type: 'session.close', at },
    { type: 'session.reconnect', at },
    { type: 'session.recovered', at },
    { type: 'session.woken', at },
    { type: 'transport.ready', at },
    { type: 'transport.lost', at, error, retryInMs },
    { type: 'transport.lost', at, error, retryInMs: null },
    { type: 'transport.renewing', at },
    { type: 'transport.replaced', at },
    ...['t1', 't2'].flatMap((transferId): SessionMachineEvent[] => [
      { type: 'transfer.started', at, transferId, to: 'b' },
      { type: 'transfer.ended', at, transferId, error: null },
      { type: 'transfer.ended', at, transferId, error: refused },
    ]),
    { type: 'subagents.ended', at },
    { type: 'client.attached', at },
    { type: 'client.detached', at },
    { type: 'utterance.started', at },
    { type: 'utterance.ended', at },
    { type: 'utterance.settled', at },
    { type: 'response.requested', at },
    { type: 'response.waiting', at },
    { type: 'response.ended', at },
    { type: 'playout.started', at },
    { type: 'playout.drained', at },
    ...[0, 1].flatMap((late): SessionMachineEvent[] => [
      { type: 'deadline.connect', at: connectBy + late, dueAt: connectBy + late },
      { type: 'deadline.transfer', at: transferBy + late, dueAt: transferBy + late },
      { type: 'deadline.reconnect', at: reconnectAt + late, dueAt: reconnectAt + late },
      { type: 'deadline.close', at: closeBy + late, dueAt: closeBy + late },
      { type: 'deadline.settle', at: settleBy + late, dueAt: settleBy + late },
      { type: 'deadline.detach', at: detachedUntil + late, dueAt: detachedUntil + late },
    ]),
  ];
}

const connectionOf = (snapshot: S): Connection => snapshot.value.connection;
const isResting = (snapshot: S): boolean => ['resting', 'refused'].includes(connectionOf(snapshot));
const isClosed = (snapshot: S): boolean => snapshot.matches({ connection: 'closed' });
/** The events after which the session continues on another connection. */
const another: ReadonlySet<string> = new Set([
  'transport.lost',
  'transport.renewing',
  'transport.replaced',
]);
const linked: ReadonlySet<Connection> = new Set(['connecting', 'active', 'transferring']);

/** Explores the session machine or a faulty version of it. */
export function checkSession(
  machine: Machine = sessionMachine,
  onViolation: OnViolation = 'collect',
) {
  const input = sessionInput;
  return checkMachine<Machine, Ghost>(machine, {
    name: 'session',
    input,
    onViolation,
    key: ({ value, context: { failures, error: why, transferId, hasBegun } }) => [
      value,
      failures,
      hasBegun,
      why?.code,
      value.connection === 'transferring' ? transferId : null,
    ],
    events: sessionEvents,
    end: isClosed,
    ghost: {
      initial: { losses: 0, hopeless: false, hasBegun: false, ended: 0, transfers: 0 },
      next(ghost, { event, effects }, before, after) {
        let { losses, hopeless } = ghost;
        const lost = event.type === 'transport.lost' && linked.has(connectionOf(before));
        if (lost || event.type === 'deadline.connect') {
          losses += 1;
          hopeless = lost && event['retryInMs'] === null;
        }
        if (connectionOf(after) === 'active') losses = 0;
        // Another process starts counting at zero and has no running transfer.
        const isNew = BEGINS.has(event.type) && connectionOf(after) === 'created';
        // A session that was resting when it hibernated is still resting.
        const isRested = event.type === 'session.woken' && isResting(before);
        if (isNew && !isRested) [losses, hopeless] = [0, false];
        const hasBegun =
          ghost.hasBegun ||
          connectionOf(after) === 'active' ||
          (isNew && connectionOf(before) !== 'created');
        // More than two ends are no worse than two.
        const ended = Math.min(2, ghost.ended + paramsOf(effects, 'ended').length);
        const transfers =
          (isNew ? 0 : ghost.transfers) +
          paramsOf(effects, 'transfer').length -
          paramsOf(effects, 'transferEnded').length;
        return {
          losses: Math.min(losses, input.maxReconnects + 2),
          hopeless,
          hasBegun,
          ended,
          transfers,
        };
      },
    },
    invariants: {
      'SESSION-1: it says once that it has ended': (snapshot, { ended }) =>
        ended === (isClosed(snapshot) ? 1 : 0),
      'SESSION-2: the gate is open only while connected, attached, and both parties are quiet': (
        snapshot,
      ) =>
        !gateIsOpen(snapshot) ||
        ['idle', 'waiting'].some((model) =>
          same(snapshot.value, {
            connection: 'active',
            client: 'attached',
            user: 'silent',
            model,
            playout: 'drained',
          }),
        ),
      'SESSION-2: nobody has the floor while the gate is open, but a model that waits': (
        snapshot,
      ) =>
        !gateIsOpen(snapshot) ||
        floorOf(snapshot) === (snapshot.matches({ model: 'waiting' }) ? 'model' : 'nobody'),
      'SESSION-10: the gate does not wait for what a model waits for': (snapshot) =>
        !snapshot.matches({ model: 'waiting' }) ||
        gateIsOpen(snapshot) ===
          (snapshot.hasTag('connected') &&
            snapshot.matches({ client: 'attached' }) &&
            snapshot.matches({ user: 'silent' }) &&
            snapshot.matches({ playout: 'drained' })),
      'SESSION-2: only our own speech is interrupted, and only where the wire can': (snapshot) =>
        gateOf(snapshot, false) !== 'interruptible' &&
        (gateOf(snapshot, true) !== 'interruptible' || floorOf(snapshot) === 'model') &&
        (gateOf(snapshot, true) === 'open') === gateIsOpen(snapshot),
      'SESSION-4: it rests after so many losses in a row, or closes if it was never connected': (
        snapshot,
        { losses, hopeless, hasBegun },
      ) =>
        (losses <= input.maxReconnects && !(hopeless && losses > 0)) ||
        (hasBegun
          ? ['resting', 'refused', 'connecting', 'created', 'closing', 'closed']
          : ['closing', 'closed']
        ).includes(connectionOf(snapshot)),
      'SESSION-4: it rests with the reason': (snapshot) =>
        !isResting(snapshot) ||
        [error.code, 'CONNECT_TIMEOUT'].includes(snapshot.context.error?.code ?? ''),
      'SESSION-4: a session that was connected closes only when it is told to': (
        snapshot,
        { hasBegun },
      ) =>
        !hasBegun ||
        !['closing', 'closed'].includes(connectionOf(snapshot)) ||
        snapshot.context.error === null,
      'SESSION-5: one transfer is under way while it transfers, none else': (
        snapshot,
        { transfers },
      ) => transfers === (snapshot.matches({ connection: 'transferring' }) ? 1 : 0),
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
      'SESSION-1: nothing leaves closed': (before, _event, after) =>
        !isClosed(before) || isClosed(after),
      'SESSION-1: closing ends with its subagents, or kills them': (
        before,
        { type },
        after,
        effects,
      ) => {
        const kills = paramsOf(effects, 'killSubagents').length;
        if (!before.matches({ connection: 'closing' })) return kills === 0;
        if (!isClosed(after)) return after.matches({ connection: 'closing' });
        return type === 'subagents.ended' ? kills === 0 : type === 'deadline.close' && kills === 1;
      },
      'SESSION-1: whoever closes stops the subagents, whoever has closed is disconnected': (
        before,
        { type },
        after,
        effects,
      ) => {
        const closes = connectionOf(after) !== connectionOf(before);
        const isClosing = connectionOf(after) === 'closing';
        // SESSION-9: another process stops the subagents again.
        const closing = isClosing && (closes || type === 'session.recovered');
        const closed = closes && isClosed(after);
        return (
          paramsOf(effects, 'stopSubagents').length === (closing ? 1 : 0) &&
          paramsOf(effects, 'disconnect').length === (closed ? 1 : 0) &&
          same(paramsOf(effects, 'ended'), closed ? [{ error: after.context.error }] : [])
        );
      },
      'SESSION-3: a lost connection forgets what it was in the middle of, not the device': (
        before,
        { type },
        after,
      ) => {
        if (!another.has(type)) return true;
        const [was, is] = [before.value, after.value];
        return (
          is.model === 'idle' &&
          is.user === 'silent' &&
          is.playout === was.playout &&
          same(is.client, was.client)
        );
      },
      'SESSION-9: after a recovery nobody is connected, there or speaking; what was closing still is':
        (before, { type }, after) => {
          if (type !== 'session.recovered') return true;
          const was = connectionOf(before);
          return (
            connectionOf(after) === (was === 'closing' || was === 'closed' ? was : 'created') &&
            (was === 'closed' ||
              (!after.matches({ client: 'attached' }) &&
                after.matches({ user: 'silent' }) &&
                after.matches({ model: 'idle' }) &&
                after.matches({ playout: 'drained' })))
          );
        },
      'SESSION-5: the end of a transfer closes nothing, and somebody leads on': (
        before,
        event,
        after,
      ) => {
        const ends = event.type === 'transfer.ended' || event.type === 'deadline.transfer';
        if (!ends || same(before.value, after.value)) return !ends;
        return (
          before.matches({ connection: 'transferring' }) && after.matches({ connection: 'active' })
        );
      },
      'SESSION-5: a transfer ends as itself, and says how': (before, event, after, effects) => {
        const ended = paramsOf(effects, 'transferEnded');
        if (ended.length === 0) return true;
        const [{ transferId, error: why } = { transferId: '', error: null }] = ended;
        const isNamed = event.type === 'transfer.ended';
        return (
          transferId === before.context.transferId &&
          (!isNamed || event['transferId'] === transferId) &&
          (isNamed ? same(why, event['error']) : why !== null) &&
          !after.matches({ connection: 'transferring' })
        );
      },
      'SESSION-6: what is not ready in time is hung up, nothing else is': (
        before,
        { type },
        _after,
        effects,
      ) =>
        paramsOf(effects, 'hangUp').length === (type === 'deadline.connect' ? 1 : 0) &&
        (type !== 'deadline.connect' || before.matches({ connection: 'connecting' })),
      'SESSION-7: a turn ends when the model has come to an end by itself': (
        before,
        { type },
        _after,
        effects,
      ) =>
        paramsOf(effects, 'turnEnded').length ===
        (type === 'response.ended' && !before.matches({ model: 'idle' }) ? 1 : 0),
      'SESSION-10: a model waits in the middle of its turn, and only says so itself': (
        before,
        { type },
        after,
      ) =>
        !after.matches({ model: 'waiting' }) ||
        before.matches({ model: 'waiting' }) ||
        (before.matches({ model: 'generating' }) && type === 'response.waiting'),
      'SESSION-4: it tries again a while after each loss': (before, event, after, effects) => {
        const tries = after.matches({ connection: 'connecting' });
        const begins = tries && !before.matches({ connection: 'connecting' });
        const attempt = after.context.failures + 1;
        if (!same(paramsOf(effects, 'connect'), begins ? [{ attempt }] : [])) return false;
        if (!begins) return true;
        const cause = {
          created: 'session.start',
          reconnecting: 'deadline.reconnect',
        };
        const was = connectionOf(before);
        return isResting(before)
          ? ['session.reconnect', 'client.attached'].includes(event.type) ||
              (event.type === 'deadline.reconnect' && was === 'resting')
          : event.type === (cause[was as keyof typeof cause] ?? 'transport.renewing');
      },
      'SESSION-8: one that is renewed has not failed': (before, { type }, after) =>
        type !== 'transport.renewing' ||
        same(before.value.connection, after.value.connection) ||
        (after.matches({ connection: 'connecting' }) &&
          after.context.failures === 0 &&
          after.context.error === null),
      'SESSION-4: being connected starts the count again': (before, _event, after) =>
        connectionOf(after) !== 'active' ||
        connectionOf(before) === 'active' ||
        (after.context.failures === 0 && after.context.error === null),
      'each deadline is that of its state': (before, event, after, effects) => {
        const { at } = event;
        const begun = clocks.filter(
          ({ id, owns }) =>
            owns(after) &&
            (!owns(before) || (id === 'close' && event.type === 'session.recovered')),
        );
        const delay = {
          connect: input.connectTimeoutMs,
          transfer: input.transferTimeoutMs,
          // A session that has waited for a connection without success reconnects at once, unless it is resting.
          reconnect:
            event.type !== 'deadline.connect'
              ? retryInMs
              : connectionOf(after) === 'reconnecting'
                ? 0
                : (restMs(before.context, input.connectTimeoutMs, 0) ?? NaN),
          close: input.closeGraceMs,
          settle: input.settleTimeoutMs,
          detach: input.detachGraceMs ?? 0,
        };
        return same(
          started(effects, 'deadline').toSorted(byEvent),
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
      'SESSION-6: connecting ends by itself': {
        when: (snapshot) => snapshot.matches({ connection: 'connecting' }),
        exits: ['deadline.connect'],
      },
      'SESSION-5: transferring ends by itself': {
        when: (snapshot) => snapshot.matches({ connection: 'transferring' }),
        exits: ['deadline.transfer'],
      },
      'reconnecting ends by itself': {
        when: (snapshot) => snapshot.matches({ connection: 'reconnecting' }),
        exits: ['deadline.reconnect'],
      },
      'SESSION-11: a resting session tries again by itself, if it may help': {
        when: (snapshot) => snapshot.matches({ connection: 'resting' }),
        exits: ['deadline.reconnect'],
      },
      'SESSION-11: a resting session can be asked to try again': {
        when: isResting,
        exits: ['session.reconnect'],
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
      'it closes because it was never connected': (snapshot, { losses, hasBegun }) =>
        isClosed(snapshot) && losses > input.maxReconnects && !hasBegun,
      'it rests': (snapshot) => snapshot.matches({ connection: 'resting' }),
      'it is refused': (snapshot) => snapshot.matches({ connection: 'refused' }),
      'it transfers': (snapshot) => snapshot.matches({ connection: 'transferring' }),
      'it closes in peace': (snapshot) => isClosed(snapshot) && snapshot.context.error === null,
    },
  });
}

function byEvent(one: DeadlineInput, other: DeadlineInput): number {
  return one.event.localeCompare(other.event);
}
