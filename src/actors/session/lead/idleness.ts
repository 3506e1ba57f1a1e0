// Does nothing of a session go on, so that it can leave memory until somebody wants something of
// it? And until when, if nobody does?
//
// Does not: put it away, or wake it (session-pool.ts).

import { floorOf } from '../../../machines/index.ts';
import type { Upkeep } from '../../context/upkeep.ts';
import type { Delegation } from '../../subagents/delegation.ts';
import type { UserDoor } from '../questions/user-door.ts';
import type { Books } from '../state/books.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import type { Leads } from './leads.ts';

/** What decides whether anything goes on by itself. */
export interface QuietSession {
  readonly unit: SessionUnit;
  readonly delegation: Delegation;
  readonly books: Books;
  readonly door: UserDoor;
  readonly leads: Leads;
}

interface IdleSession extends QuietSession {
  readonly services: { readonly views: readonly unknown[] };
  readonly upkeep: Pick<Upkeep, 'isBusy'>;
}

/** Calls in these states wait for somebody else. */
const WAITING: ReadonlySet<unknown> = new Set(['delegated', 'settled']);

/**
 * Nothing is said, called, told or looked at: what there is waits for the user, for time, or for
 * somebody from outside. `ownClients`: so many that are attached only embed it.
 */
export function isIdle(
  { unit, delegation, services, books, door, upkeep, leads }: IdleSession,
  ownClients: number,
): boolean {
  const session = unit.session.getSnapshot();
  const { pending, current } = unit.outbox.getSnapshot().context;
  const isTelling = current !== null || pending.some(({ resting }) => !resting);
  const isCalling = unit.calls.ids.some((id) => !WAITING.has(unit.calls.stateOf(id)?.value));
  return (
    session.value.connection === 'active' &&
    floorOf(session) === 'nobody' &&
    books.unfinished.length === 0 &&
    // Who is there may speak at any time.
    door.clients <= ownClients &&
    // What waits to be told is told as soon as somebody is there.
    !(isTelling && door.isAttached) &&
    !isCalling &&
    // What an agent does as it enters or leaves would be broken off, and done again.
    !leads.transfers.isUnderWay &&
    !unit.unit.isBusy &&
    // It would be broken off, and begun again after the next turn.
    !upkeep.isBusy &&
    delegation.isIdle &&
    // Their sources listen only as long as they are here.
    services.views.length === 0
  );
}

/**
 * Nothing goes on that could say something: no model or tool works, no subagent runs, and what is due
 * has been told. What there is waits for the user (questions that were put), for time, or for somebody
 * from outside; also what nobody is there to hear.
 */
export function isQuiet({ unit, delegation, books, door, leads }: QuietSession): boolean {
  const session = unit.session.getSnapshot();
  const { pending, current } = unit.outbox.getSnapshot().context;
  const isTelling = current !== null || pending.some(({ resting }) => !resting);
  return (
    session.value.connection === 'active' &&
    floorOf(session) === 'nobody' &&
    books.unfinished.length === 0 &&
    !(isTelling && door.isAttached) &&
    !unit.calls.ids.some((id) => !WAITING.has(unit.calls.stateOf(id)?.value)) &&
    !leads.transfers.isUnderWay &&
    !unit.unit.isBusy &&
    delegation.isIdle
  );
}

/** When something happens by itself, milliseconds since 1970; null: nothing does. */
export function nextDueAt({ unit, delegation }: QuietSession): number | null {
  const next = Math.min(unit.unit.nextDueAt, delegation.nextDueAt);
  return next === Infinity ? null : next;
}
