// Decides whether a session is idle, so that it can leave memory until an event from outside, and computes
// the time at which it acts by itself.
//
// Does not: put it away, or wake it (session-pool.ts).

import { floorOf } from '../../../machines/index.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { Delegation } from '../../subagents/delegation.ts';
import type { UserInput } from '../questions/user-input.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Leads } from './leads.ts';

/** The parts of a session that may act by themselves. */
export interface QuietSession {
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly records: SessionRecords;
  readonly userInput: UserInput;
  readonly leads: Leads;
}

interface IdleSession extends QuietSession {
  readonly services: { readonly views: readonly unknown[] };
  readonly upkeep: Pick<Upkeep, 'isBusy'>;
}

/** States of calls that wait for an event from outside. */
const WAITING: ReadonlySet<unknown> = new Set(['delegated', 'settled']);

/**
 * Tells whether nothing is said, called, told or examined: everything that is open waits for the user, for
 * time, or for an event from outside. `ownClients`: number of attached clients that only embed it.
 */
export function isIdle(
  { unit, delegation, services, records, userInput, upkeep, leads }: IdleSession,
  ownClients: number,
): boolean {
  const session = unit.session.getSnapshot();
  const { pending, current } = unit.outbox.getSnapshot().context;
  const isTelling = current !== null || pending.some(({ resting }) => !resting);
  const isCalling = unit.calls.ids.some((id) => !WAITING.has(unit.calls.stateOf(id)?.value));
  return (
    session.value.connection === 'active' &&
    floorOf(session) === 'nobody' &&
    records.unfinished.length === 0 &&
    // An attached client may speak at any time.
    userInput.clients <= ownClients &&
    // A due delivery is told as soon as a client is attached.
    !(isTelling && userInput.isAttached) &&
    !isCalling &&
    // The hooks of an agent that enters or leaves would be broken off, and run again.
    !leads.transfers.isUnderWay &&
    !unit.unit.isBusy &&
    // It would be broken off, and begun again after the next turn.
    !upkeep.isBusy &&
    delegation.isIdle &&
    // Their sources listen only while the session is in memory.
    services.views.length === 0
  );
}

/**
 * Tells whether nothing goes on that could say something: no model or tool works, no subagent runs, and every
 * due delivery was told. Everything that is open waits for the user (questions that were put), for time, or
 * for an event from outside; so does a delivery without a listener.
 */
export function isQuiet({ unit, delegation, records, userInput, leads }: QuietSession): boolean {
  const session = unit.session.getSnapshot();
  const { pending, current } = unit.outbox.getSnapshot().context;
  const isTelling = current !== null || pending.some(({ resting }) => !resting);
  return (
    session.value.connection === 'active' &&
    floorOf(session) === 'nobody' &&
    records.unfinished.length === 0 &&
    !(isTelling && userInput.isAttached) &&
    !unit.calls.ids.some((id) => !WAITING.has(unit.calls.stateOf(id)?.value)) &&
    !leads.transfers.isUnderWay &&
    !unit.unit.isBusy &&
    delegation.isIdle
  );
}

/** Returns the time at which the session acts by itself, milliseconds since 1970; null: it does not. */
export function nextDueAt({ unit, delegation }: QuietSession): number | null {
  const next = Math.min(unit.unit.nextDueAt, delegation.nextDueAt);
  return next === Infinity ? null : next;
}
