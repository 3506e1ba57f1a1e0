// The entries that another process finds after a crash.

import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import { appendAll, check, claimAll, entry, expectKept, type JournalScene } from './case.ts';
import { sameJson } from './same-json.ts';

/** Checks that the kept entries are a beginning of `begun`, and contain every acknowledged one. */
async function expectBeginning(
  journal: Journal,
  begun: readonly JournalEntry[],
  acknowledged: ReadonlySet<JournalEntry>,
): Promise<number> {
  const kept = await journal.read({ scope: 'scope' });
  check(
    sameJson(kept, begun.slice(0, kept.length)),
    () => 'what is kept after a crash is no beginning of what was appended',
  );
  for (const [at, one] of begun.entries())
    check(
      at < kept.length || !acknowledged.has(one),
      () => `entry ${at + 1} was acknowledged, and is gone after a crash`,
    );
  return kept.length;
}

export const crashScenes: readonly JournalScene[] = [
  {
    name: 'what was acknowledged is there after a crash, as it was',
    needs: ['reopen'],
    async play({ journal, reopen }) {
      const entries = [
        entry(1),
        entry(1, { unit: 'other' }),
        entry(2),
        entry(1, { scope: 'second' }),
      ];
      await appendAll(journal, entries);
      const after = await reopen();
      await expectKept(after, entries.slice(0, 3), { scope: 'scope' });
      await expectKept(after, entries.slice(3), { scope: 'second' });
    },
  },
  {
    name: 'a crash in the middle leaves a beginning of what was appended',
    needs: ['reopen'],
    async play({ journal, reopen }) {
      const begun = Array.from({ length: 40 }, (_, index) => entry(1, { unit: `unit ${index}` }));
      await claimAll(journal, begun);
      const acknowledged = new Set<JournalEntry>();
      const appends = begun.map(async (one) => {
        await journal.append(one);
        acknowledged.add(one);
      });
      // An append without an answer before the crash never settles, or is refused.
      for (const append of appends) append.catch(() => {});
      await appends[0];
      const known = new Set(acknowledged);
      await expectBeginning(await reopen(), begun, known);
    },
  },
  {
    name: 'after a crash it goes on where it was, also with an append whose answer was lost',
    needs: ['reopen'],
    async play({ journal, reopen }) {
      await appendAll(journal, [entry(1), entry(2)]);
      const after = await reopen();
      await appendAll(after, [entry(2), entry(3)]);
      await expectKept(after, [entry(1), entry(2), entry(3)], { scope: 'scope' });
    },
  },
  {
    name: 'what was forgotten stays forgotten after a crash',
    needs: ['reopen', 'forget'],
    async play({ journal, reopen }) {
      await appendAll(journal, [entry(1), entry(1, { scope: 'gone' })]);
      await journal.forget?.('gone');
      await expectKept(await reopen(), [entry(1)]);
    },
  },
];
