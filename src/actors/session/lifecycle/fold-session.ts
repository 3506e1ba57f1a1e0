// What an event of a session's unit means to its books, and what follows from it within the
// unit: the same for a session that lives, one that comes back, and one that is looked at again.
//
// Owns:     the way of an event to whoever folds it.
// Does not: fold (books, user-input, transfer), or know the app: what an event needs of it is in it.

import type { Stamped } from '../../../machines/index.ts';
import type { Message, UnitEvent } from '../../runtime/commit-unit.ts';
import type { Books } from '../state/books.ts';
import type { SessionUnit } from '../unit/session-unit.ts';
import { transferRequested } from '../lead/transfer.ts';
import { answerGiven, userSaid } from '../questions/user-input.ts';

export function foldSessionEvent(
  books: Books,
  unit: SessionUnit,
  actor: string,
  event: UnitEvent & Stamped,
): readonly Message[] {
  const carried = event as UnitEvent & Stamped & Record<string, unknown>;
  switch (event.type) {
    case 'user.said':
      return userSaid(books, unit, carried as never);
    case 'answer.given':
      return answerGiven(books, unit, carried as never);
    case 'transfer.requested':
      return transferRequested(unit, carried as never);
    case 'directive.set':
      unit.unit.post('directives', { kind: 'do', name: 'changed', params: undefined });
      break;
    case 'conversation.summarised':
      unit.unit.post('conversation', { kind: 'do', name: 'summarised', params: carried });
      break;
    default:
      break;
  }
  return books.fold(actor, carried);
}

/**
 * Forgets what is over, as a session that lives does when it carries the effects out. Returns what it
 * was: `question sub_1:1`.
 */
export function forgetWhatIsOver(books: Books, unit: SessionUnit): readonly string[] {
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
    books.questions.delete(id);
    books.deliveries.delete(id);
  }
  return over.map(({ kind, id }) => `${kind} ${id}`);
}
