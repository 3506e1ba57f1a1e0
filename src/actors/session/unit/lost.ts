import { UNIT, type UnfoldableEntry } from '../../runtime/set-aside.ts';
import type { Host } from '../../runtime/host.ts';
import { SESSION_VERSION } from './session-unit.ts';

/** The end of a session that could not continue with an entry (`onUnfoldable: 'lose'`). */
export const LOST = 'session.lost';

/** Writes down that the session is lost, and nothing else: the next session with its id begins anew. */
export function writeLost(
  { id, host }: { readonly id: string; readonly host: Host },
  seq: number,
  { entry }: UnfoldableEntry,
): void | Promise<void> {
  const { seq: lostBy, event, reason } = entry;
  const lost = { type: LOST, seq: lostBy, event, reason };
  return host.journal.append({
    scope: id,
    unit: id,
    seq,
    at: host.environment.clock.now(),
    actor: UNIT,
    definitionVersion: SESSION_VERSION,
    event: lost,
  });
}
