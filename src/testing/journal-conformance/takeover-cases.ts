// Another process continues, either after a crash or by taking over a scope from a live process.

import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import {
  appendAll,
  check,
  claimAll,
  entry,
  expectKept,
  expectRefused,
  scenesOf,
  type JournalScene,
} from './case.ts';
import { sameJson } from './same-json.ts';

const inUse = (journal: Journal, scope: string): Promise<void> =>
  expectRefused('a claim of what another process writes', () => journal.claim?.(scope), {
    code: 'SCOPE_IN_USE',
  });

const fenced = (journal: Journal, seq: number): Promise<void> =>
  expectRefused('an append of whoever wrote the scope before', () => journal.append(entry(seq)), {
    code: 'FENCED',
    isForGood: true,
  });

export const claimScenes: readonly JournalScene[] = [
  ...scenesOf(['claim'], {
    async 'a scope that one process writes cannot be claimed by another'({ journal, another }) {
      await appendAll(journal, [entry(1)]);
      const other = await another();
      await inUse(other, 'scope');
      await appendAll(journal, [entry(2)]);
      await expectKept(other, [entry(1), entry(2)], { scope: 'scope' });
    },
    async 'different scopes are written by different processes'({ journal, another }) {
      const other = await another();
      await appendAll(journal, [entry(1, { scope: 'one' })]);
      await appendAll(other, [entry(1, { scope: 'two' })]);
      await inUse(journal, 'two');
      await inUse(other, 'one');
      await appendAll(journal, [entry(2, { scope: 'one' })]);
      await expectKept(other, [entry(1, { scope: 'one' }), entry(2, { scope: 'one' })], {
        scope: 'one',
      });
    },
    async 'whoever has claimed a scope may claim it again, and goes on'({ journal, another }) {
      await appendAll(journal, [entry(1)]);
      await Promise.all([journal.append(entry(2)), journal.claim?.('scope')]);
      await journal.append(entry(3));
      await inUse(await another(), 'scope');
      await expectKept(journal, [entry(1), entry(2), entry(3)]);
    },
    async 'what was released may be claimed at once, and is not written any more by who had it'({
      journal,
      another,
    }) {
      await appendAll(journal, [entry(1)]);
      const last = journal.append(entry(2));
      await journal.release?.('scope');
      // Entries that were appended before the scope was released belong to it.
      await last;
      await fenced(journal, 3);
      const other = await another();
      await other.claim?.('scope');
      await expectKept(other, [entry(1), entry(2)], { scope: 'scope' });
      await fenced(journal, 3);
      await other.append(entry(3));
      await expectKept(other, [entry(1), entry(2), entry(3)], { scope: 'scope' });
    },
    async 'to release what one does not write is no error, and changes nothing'({
      journal,
      another,
    }) {
      await appendAll(journal, [entry(1)]);
      const other = await another();
      await other.release?.('scope');
      await other.release?.('nowhere');
      await inUse(other, 'scope');
      await journal.append(entry(2));
    },
    async 'after the last sign of life another process takes over, and the first is fenced'({
      journal,
      another,
      stage,
    }) {
      await appendAll(journal, [entry(1), entry(1, { scope: 'second' })]);
      const other = await another();
      await inUse(other, 'scope');
      await stage.expire?.();
      await other.claim?.('scope');
      await expectKept(other, [entry(1)], { scope: 'scope' });
      // This process does not know yet that the other process has claimed the scope. It even appends the same entry.
      await fenced(journal, 2);
      await other.append(entry(2));
      await fenced(journal, 2);
      await journal.release?.('scope');
      await other.append(entry(3));
      await expectKept(other, [entry(1), entry(2), entry(3)], { scope: 'scope' });
    },
    async 'what was fenced harms nothing that came with it'({ journal, another, stage }) {
      const beside = (seq: number) => entry(seq, { scope: 'beside' });
      await appendAll(journal, [entry(1), beside(1)]);
      const other = await another();
      await stage.expire?.();
      await other.claim?.('scope');
      await Promise.all([fenced(journal, 2), journal.append(beside(2))]);
      await expectKept(other, [beside(1), beside(2)], { scope: 'beside' });
    },
    async 'a claim that was over goes on if nobody has taken it'({ journal, stage }) {
      await appendAll(journal, [entry(1)]);
      await stage.expire?.();
      await journal.append(entry(2));
      await expectKept(journal, [entry(1), entry(2)]);
    },
    async 'of several processes that claim at once one has it'({ journal, another }) {
      const journals = [journal, await another(), await another(), await another()];
      const outcomes = await Promise.allSettled(journals.map(async (one) => one.claim?.('scope')));
      const winners = journals.filter((_, at) => outcomes[at]?.status === 'fulfilled');
      check(winners.length === 1, () => `expected one process to have it, ${winners.length} have`);
      for (const one of journals)
        await (winners.includes(one) ? one.append(entry(1)) : fenced(one, 1));
      await expectKept(journal, [entry(1)]);
    },
  }),
  ...scenesOf(['claim', 'forget'], {
    async 'a scope that another process writes is not forgotten'({ journal, another, stage }) {
      await appendAll(journal, [entry(1)]);
      const other = await another();
      await expectRefused('to forget it', () => other.forget?.('scope'), { code: 'SCOPE_IN_USE' });
      await expectKept(journal, [entry(1)]);
      await stage.expire?.();
      await other.forget?.('scope');
      await expectKept(journal, []);
    },
  }),
];

/** Checks that the stored entries are a prefix of `begun` and include every acknowledged entry. */
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
  ...scenesOf(['reopen'], {
    async 'what was acknowledged is there after a crash, as it was'({ journal, reopen }) {
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
    async 'a crash in the middle leaves a beginning of what was appended'({ journal, reopen }) {
      const begun = Array.from({ length: 40 }, (_, index) => entry(1, { unit: `unit ${index}` }));
      await claimAll(journal, begun);
      const acknowledged = new Set<JournalEntry>();
      const appends = begun.map(async (one) => {
        await journal.append(one);
        acknowledged.add(one);
      });
      // An append that was pending at the time of the crash either never settles or is refused.
      for (const append of appends) append.catch(() => {});
      await appends[0];
      const known = new Set(acknowledged);
      await expectBeginning(await reopen(), begun, known);
    },
    async 'after a crash it goes on where it was, also with an append whose answer was lost'({
      journal,
      reopen,
    }) {
      await appendAll(journal, [entry(1), entry(2)]);
      const after = await reopen();
      await appendAll(after, [entry(2), entry(3)]);
      await expectKept(after, [entry(1), entry(2), entry(3)], { scope: 'scope' });
    },
  }),
  ...scenesOf(['reopen', 'forget'], {
    async 'what was forgotten stays forgotten after a crash'({ journal, reopen }) {
      await appendAll(journal, [entry(1), entry(1, { scope: 'gone' })]);
      await journal.forget?.('gone');
      await expectKept(await reopen(), [entry(1)]);
    },
  }),
];
