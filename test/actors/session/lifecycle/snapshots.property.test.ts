// SCOPE-SNAPSHOTS-3: a session continues from a snapshot in the same way as from all entries before it. Plays whole
// conversations with all kinds of faults and compares the following steps at each of their snapshots.

import { expect, test } from 'vitest';
import { nothingFollows, replayHost } from '../../../../src/actors/replay/entry-by-entry.ts';
import { SessionRecords } from '../../../../src/actors/session/state/session-records.ts';
import { SessionUnit } from '../../../../src/actors/session/unit/session-unit.ts';
import { replaySession, type ReplayView } from '../../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../../src/entries/journal.ts';
import { simulateOnce } from '../../../../src/testing/index.ts';
import { sessionEntries } from '../../../support/session-entries.ts';
import { snapshotIn } from '../../../../src/actors/session/lifecycle/session-journal.ts';

const isSnapshot = ({ event }: JournalEntry): boolean => event.type === 'session.snapshot';

const OVER = new Set(['answered', 'expired', 'withdrawn', 'superseded']);

/** Returns the parts that are due. A session that continues from a snapshot deletes ended parts sooner. */
function due(view: ReplayView) {
  const { questions, subagents, calls, ...rest } = { ...view, at: 0 };
  const isLive = ({ state }: (typeof subagents)[number]): boolean =>
    !['completed', 'cancelled', 'failed'].includes(state);
  return {
    ...rest,
    questions: questions.filter(({ state }) => !OVER.has(state)),
    calls: calls.filter(({ state }) => state !== 'settled'),
    live: subagents.filter(isLive),
    ended: subagents.filter((one) => !isLive(one)).map(({ id, outcome }) => [id, outcome?.text]),
  };
}

/** Expects that a session restored from the snapshot would write the same snapshot. */
function expectWhole(entry: JournalEntry): void {
  const snapshot = snapshotIn(entry);
  if (!snapshot) throw new Error('Expected a snapshot');
  const host = replayHost(entry.at);
  const records = new SessionRecords('nobody');
  const ports = { ...nothingFollows, draft: records.draft, fold: () => [] };
  const unit = new SessionUnit(host, { id: entry.unit, ...snapshot.inputs }, ports);
  unit.restore(snapshot.unit, snapshot.inputs, entry.seq);
  records.restore(snapshot.books);
  expect(
    JSON.parse(JSON.stringify({ unit: unit.toSnapshot(), records: records.toSnapshot() })),
  ).toEqual({
    unit: snapshot.unit,
    records: snapshot.books,
  });
}

async function lived(session: 'text' | 'voice', seed: number): Promise<readonly JournalEntry[]> {
  const { record, broken } = await simulateOnce(seed, {
    session,
    snapshots: { afterEntries: 12, trim: false },
  });
  expect(broken).toEqual([]);
  return sessionEntries(record);
}

test.each([
  ['text', 12],
  ['voice', 6],
] as const)(
  'SCOPE-SNAPSHOTS-3, by %s: continues from a snapshot exactly as from the whole journal',
  { timeout: 120_000 },
  async (session, seeds) => {
    let compared = 0;
    let snapshots = 0;
    for (let seed = 1; seed <= seeds; seed += 1) {
      const entries = await lived(session, seed);
      const whole = [...replaySession(entries)].map(({ entry }) => entry);
      expect(whole).toEqual(entries);
      for (const [begins, entry] of entries.entries()) {
        if (!isSnapshot(entry)) continue;
        snapshots += 1;
        expectWhole(entry);
        const all = replaySession(entries);
        for (let number = 0; number < begins; number += 1) all.next();
        for (const after of replaySession(entries.slice(begins))) {
          const before = all.next().value;
          if (!before) throw new Error('Expected as many steps');
          expect(after.isAccepted).toBe(before.isAccepted);
          expect(due(after.view)).toEqual(due(before.view));
          compared += 1;
          // Later entries contain other snapshots.
          if (compared % 20 === 0) break;
        }
      }
    }
    expect(snapshots).toBeGreaterThan(3 * seeds);
    expect(compared).toBeGreaterThan(200);
  },
);
