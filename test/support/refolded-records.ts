// The books of a session, folded again from what its journal has: they must be what they were (SESSION-RECORDS-2).

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

/** A journal that has the entries as they are written: as JSON. `inner`: when they are kept. */
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

/** Watches the books of the sessions that follow. */
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
 * Folds the entries of one session again. What only its unit knows is left out (whom the user's
 * words are for); the conversation has them whoever they are for.
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

/** What the books have now follows from the journal alone. At rest: nothing is on its way, or being said. */
export function expectFromJournal(live: SessionRecords, again: SessionRecords): void {
  expect(again.conversation.toJSON()).toEqual(live.conversation.toJSON());
  expect(again.agentName).toBe(live.agentName);
  expect(again.directives).toEqual(live.directives);
  expect(again.facts.turns).toBe(live.facts.turns);
  // What is over is forgotten by the effects of the unit: the journal's books may have more.
  for (const [callId, call] of live.calls) expect(again.calls.get(callId)).toEqual(call);
  for (const [id, delivery] of live.deliveries)
    if (delivery.callId !== null) expect(again.delivery(id)).toEqual(delivery);
}
