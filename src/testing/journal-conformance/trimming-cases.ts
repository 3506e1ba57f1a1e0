// Trimming deletes an entry only if a later entry records its outcome.

import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import {
  appendAll,
  claimAll,
  entry,
  expectKept,
  expectRefused,
  expectSameInEachScope,
  expectScopes,
  scenesOf,
  type JournalScene,
} from './case.ts';

const session = (seq: number) => entry(seq, { unit: 'ses' });
const ended = (seq: number) => entry(seq, { unit: 'sub_ended' });
const waiting = (seq: number) => entry(seq, { unit: 'sub_waiting' });

/** The entries of a session and two subagents before the session recorded its state. */
const before: readonly JournalEntry[] = [
  session(1),
  ended(1),
  session(2),
  waiting(1),
  ended(2),
  waiting(2),
  session(3),
];
const summary = session(4);
const after: readonly JournalEntry[] = [waiting(3), session(5), entry(1, { unit: 'sub_new' })];

const refused = (journal: Journal): Promise<void> =>
  expectRefused('a trim by whoever does not write the scope', () => journal.trim?.(entry(2)), {
    code: 'FENCED',
    isForGood: true,
  });

export const trimmingScenes: readonly JournalScene[] = [
  ...scenesOf(['trim'], {
    async 'what is before an entry is deleted, of all units; it and what is after it stay, in their order'({
      journal,
    }) {
      await appendAll(journal, [...before, summary, ...after]);
      await journal.trim?.(summary);
      const kept = [summary, ...after];
      await expectKept(journal, kept, { scope: 'scope' });
      await expectKept(journal, kept);
      await expectKept(journal, [session(4), session(5)], { scope: 'scope', unit: 'ses' });
      await expectKept(journal, [], { scope: 'scope', unit: 'sub_ended' });
    },
    async 'what is before an entry is what was appended before, whatever its number is and when it came'({
      journal,
    }) {
      const late = { ...session(1), at: entry(9).at };
      await appendAll(journal, [waiting(1), waiting(2), late, waiting(3), ended(1)]);
      await journal.trim?.(late);
      await expectKept(journal, [late, waiting(3), ended(1)], { scope: 'scope' });
    },
    async 'what other scopes have is not deleted'({ journal }) {
      const beside = (one: JournalEntry): JournalEntry => ({ ...one, scope: 'beside' });
      const entries = [...before, summary];
      await appendAll(
        journal,
        entries.flatMap((one) => [beside(one), one]),
      );
      await journal.trim?.(summary);
      await expectKept(journal, entries.map(beside), { scope: 'beside' });
      await expectKept(journal, [summary], { scope: 'scope' });
      const kept = [summary, ...entries.map(beside)];
      expectSameInEachScope(await journal.read(), kept, 'read()');
    },
    async 'an entry that is not there is before nothing'({ journal }) {
      await appendAll(journal, before);
      await claimAll(journal, [entry(1, { scope: 'nowhere' })]);
      for (const unknown of [
        summary,
        entry(1, { unit: 'nobody' }),
        { ...session(1), scope: 'nowhere' },
      ])
        await journal.trim?.(unknown);
      await expectKept(journal, before, { scope: 'scope' });
      await expectKept(journal, before);
    },
    async 'a trim further on deletes more, the same again and one further back nothing'({
      journal,
    }) {
      await appendAll(journal, [...before, summary, ...after]);
      await journal.trim?.(waiting(2));
      await expectKept(journal, [waiting(2), session(3), summary, ...after], { scope: 'scope' });
      await journal.trim?.(summary);
      for (const again of [summary, waiting(2), session(1)]) await journal.trim?.(again);
      await expectKept(journal, [summary, ...after], { scope: 'scope' });
      await appendAll(journal, [session(6)]);
      await journal.trim?.(session(6));
      await expectKept(journal, [session(6)], { scope: 'scope' });
    },
    async 'units go on with their numbers, also where nothing of them is left'({ journal }) {
      await appendAll(journal, [...before, summary]);
      await journal.trim?.(summary);
      await appendAll(journal, after);
      await expectKept(journal, [summary, ...after], { scope: 'scope' });
      await expectKept(journal, [waiting(3)], { scope: 'scope', unit: 'sub_waiting' });
      await appendAll(journal, [waiting(4)]);
      await expectKept(journal, [summary, ...after, waiting(4)], { scope: 'scope' });
    },
    async 'after a trim the same entry again is kept once, and another with its number is refused'({
      journal,
    }) {
      await appendAll(journal, [...before, summary]);
      await journal.trim?.(summary);
      await appendAll(journal, [summary, ...after, ...after, summary]);
      for (const { unit, seq } of [summary, waiting(3)])
        await expectRefused(
          `another entry ${seq} of ${unit}`,
          () => journal.append(entry(seq, { unit, text: 'something else' })),
          { code: 'JOURNAL_CONFLICT', isForGood: true },
        );
      await expectKept(journal, [summary, ...after], { scope: 'scope' });
    },
    async 'what is being appended during a trim is kept'({ journal }) {
      await appendAll(journal, [...before, summary]);
      const appends = after.map(async (one) => journal.append(one));
      await journal.trim?.(summary);
      await Promise.all(appends);
      await expectKept(journal, [summary, ...after], { scope: 'scope' });
    },
  }),
  ...scenesOf(['trim', 'scopes'], {
    async 'a scope that was trimmed is listed with what is left of it'({ journal }) {
      const beside = entry(1, { scope: 'beside' });
      await appendAll(journal, [...before, beside, summary, ...after]);
      await journal.trim?.(summary);
      await expectScopes(journal, [
        { scope: 'beside', entries: 1, firstAt: beside.at, lastAt: beside.at },
        { scope: 'scope', entries: 4, firstAt: summary.at, lastAt: entry(1).at },
      ]);
    },
  }),
  ...scenesOf(['trim', 'forget'], {
    async 'a scope that was trimmed can be forgotten, and begin anew'({ journal }) {
      await appendAll(journal, [...before, summary, ...after]);
      await journal.trim?.(summary);
      await journal.forget?.('scope');
      await expectKept(journal, [], { scope: 'scope' });
      const anew = entry(1, { unit: 'ses', text: 'a new beginning' });
      await appendAll(journal, [anew]);
      await expectKept(journal, [anew], { scope: 'scope' });
    },
  }),
  ...scenesOf(['trim', 'reopen'], {
    async 'what was trimmed stays so after a crash, and units go on from there'({
      journal,
      reopen,
    }) {
      await appendAll(journal, [...before, summary]);
      await journal.trim?.(summary);
      await appendAll(journal, after);
      const next = await reopen();
      await expectKept(next, [summary, ...after], { scope: 'scope' });
      await appendAll(next, [waiting(4), ended(3)]);
      await expectKept(next, [summary, ...after, waiting(4), ended(3)], { scope: 'scope' });
      await next.trim?.(session(5));
      const left = [session(5), entry(1, { unit: 'sub_new' }), waiting(4), ended(3)];
      await expectKept(next, left, { scope: 'scope' });
    },
  }),
  ...scenesOf(['trim', 'claim'], {
    async 'whoever does not write a scope trims nothing of it'({ journal, another, stage }) {
      await appendAll(journal, [entry(1), entry(2), entry(3)]);
      const other = await another();
      await refused(other);
      await stage.expire?.();
      await other.claim?.('scope');
      // This process does not know yet that the other process has claimed the scope.
      await refused(journal);
      await expectKept(other, [entry(1), entry(2), entry(3)], { scope: 'scope' });
      await other.trim?.(entry(2));
      await expectKept(other, [entry(2), entry(3)], { scope: 'scope' });
      await other.release?.('scope');
      await refused(other);
    },
  }),
];
