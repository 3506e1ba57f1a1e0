// Applies an event of a session's unit to its records, and returns the consequences within the unit: the same
// for a live session, a restored one, and one that is replayed.
//
// Owns:     the route of an event to the component that folds it.
// Does not: fold (records, user-input, transfer), or know the app: an event holds all that its folding needs.

import type { Received, SessionMessage } from '../../contracts/session-protocol.ts';
import type { SessionRecords } from '../state/session-records.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { transferRequested } from '../lead/lead-agents.ts';
import { answerGiven, userSaid } from '../questions/user-words.ts';

export function foldSessionEvent(
  records: SessionRecords,
  unit: SessionUnit,
  received: Received,
): readonly SessionMessage[] {
  const { kind, event } = received;
  if (kind === 'user') return userSaid(records, unit, event);
  if (kind === 'answers') return answerGiven(records, unit, event);
  if (kind === 'transfers') return transferRequested(unit, event);
  if (kind === 'directives') unit.post('directives.changed', undefined);
  if (event.type === 'conversation.summarised') unit.post('conversation.summarised', event);
  return records.fold(received);
}

/**
 * Forgets records that are over, as a live session does when it carries the effects out. Returns their names,
 * such as `question sub_1:1`.
 */
export function forgetWhatIsOver(records: SessionRecords, unit: SessionUnit): readonly string[] {
  const { questions, calls, batches } = unit;
  const over = Object.entries({ question: questions, call: calls, batch: batches }).flatMap(
    ([kind, members]) =>
      members.ids
        .filter((id) => members.stateOf(id)?.done === true)
        .map((id) => ({ kind, members, id })),
  );
  for (const { kind, members, id } of over) {
    members.forget(id);
    if (kind !== 'question') continue;
    records.questions.delete(id);
    records.deliveries.delete(id);
  }
  return over.map(({ kind, id }) => `${kind} ${id}`);
}
