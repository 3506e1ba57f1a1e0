// Folds the records of a session from its journal again. They must be the same (SESSION-RECORDS-2).

import { expect, vi } from 'vitest';
import { SessionRecords } from '../../src/actors/session/state/session-records.ts';
import { received } from '../../src/actors/contracts/session-protocol.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import type { Journal } from '../../src/index.ts';

type Options = readonly [
  agentName: string,
  limits?: ConstructorParameters<typeof SessionRecords>[1],
  promptStyle?: ConstructorParameters<typeof SessionRecords>[2],
];

/**
 * Creates a journal that holds the entries in the form in which they are written, as JSON. `inner` decides when they
 * are stored.
 */
export function writtenJournal(inner?: Journal): Journal & { readonly entries: JournalEntry[] } {
  const entries: JournalEntry[] = [];
  return {
    entries,
    append(entry) {
      entries.push(JSON.parse(JSON.stringify(entry)) as JournalEntry);
      return inner?.append(entry);
    },
    read: () => entries,
  };
}

/** Watches the records of the sessions that are created after this. */
export function recordsOfSessions(): { readonly latest: SessionRecords } {
  const fold = vi.spyOn(SessionRecords.prototype, 'fold');
  fold.mockClear();
  return {
    get latest() {
      return fold.mock.contexts.at(-1) as SessionRecords;
    },
  };
}

/**
 * Folds the entries of one session again. The result omits facts that only the unit knows (whom the user addressed).
 * The conversation contains the user's words in any case.
 */
export function refolded(
  entries: readonly JournalEntry[],
  sessionId: string,
  options: Options = ['lead'],
): SessionRecords {
  const records = new SessionRecords(...options);
  const requested = new Map<string, JournalEntry['event']>();
  for (const { unit, actor, at, event } of entries) {
    if (unit !== sessionId) continue;
    const fold = (to: string, one: JournalEntry['event']): void => {
      const known = received(to, { ...one, at });
      if (known) records.fold(known);
    };
    const { transferId, utteranceId, text, startedAt } = event as { [field: string]: unknown };
    switch (event.type) {
      case 'user.said':
        records.userSaid(utteranceId as string, text as string, startedAt as number);
        break;
      case 'transfer.requested':
        requested.set(transferId as string, { ...event, type: 'transfer.started' });
        break;
      case 'transfer.ended':
        fold('session', { ...event, ...requested.get(transferId as string) });
        fold(actor, event);
        break;
      default:
        fold(actor, event);
    }
  }
  return records;
}

/**
 * Checks that the current records follow from the journal alone. The session must be idle, with no delivery in
 * progress.
 */
export function expectFromJournal(live: SessionRecords, again: SessionRecords): void {
  expect(again.conversation.toJSON()).toEqual(live.conversation.toJSON());
  expect(again.agentName).toBe(live.agentName);
  expect(again.directives).toEqual(live.directives);
  expect(again.facts.turns).toBe(live.facts.turns);
  // The unit's effects remove items that have ended, so the records from the journal may contain more.
  for (const [callId, call] of live.calls) expect(again.calls.get(callId)).toEqual(call);
  for (const [id, delivery] of live.deliveries)
    if (delivery.callId !== null) expect(again.delivery(id)).toEqual(delivery);
}
