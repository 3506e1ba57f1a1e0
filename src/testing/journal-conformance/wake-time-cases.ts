// The wake times of hibernated sessions. A journal stores them like entries and lists them in order.

import type { Journal } from '../../actors/ports/journal.ts';
import { inOrder, type WakeTime, type WakeTimes } from '../../actors/ports/wake-times.ts';
import { appendAll, check, entry, expectKept, type JournalScene, scenesOf } from './case.ts';
import { sameJson } from './same-json.ts';

const LATER = 1_700_000_000_000;

/** Names that a locale would sort differently. Some of them are due at the same time. */
const times: readonly WakeTime[] = [
  { scope: 'ses_9', at: LATER },
  { scope: 'ses_10', at: LATER },
  { scope: 'Z', at: LATER },
  { scope: 'a b', at: LATER },
  { scope: 'a-b', at: LATER },
  { scope: 'ab', at: LATER },
  { scope: 'ä', at: LATER },
  { scope: 'last', at: LATER + 100_000 },
  { scope: 'first', at: 0 },
  { scope: 'half', at: LATER + 0.5 },
  { scope: 'short', at: 999 },
];

function timesOf({ wakeTimes }: Journal): WakeTimes {
  check(wakeTimes !== undefined, () => 'the journal of another process has no `wakeTimes`');
  return wakeTimes;
}

async function setAll(journal: Journal, all: readonly WakeTime[]): Promise<void> {
  const wakeTimes = timesOf(journal);
  await Promise.all(all.map(async ({ scope, at }) => wakeTimes.set(scope, at)));
}

async function expectTimes(
  journal: Journal,
  expected: readonly WakeTime[],
  query: Parameters<WakeTimes['earliest']>[0] = { limit: 100 },
): Promise<void> {
  const found = await timesOf(journal).earliest(query);
  check(
    sameJson(found, expected),
    () =>
      `expected earliest(${JSON.stringify(query)}) to be ${JSON.stringify(expected)}, it is ${JSON.stringify(found)}`,
  );
}

export const wakeTimeScenes: readonly JournalScene[] = [
  ...scenesOf(['wakeTimes'], {
    async 'wake times are found in their order, and those of one time in that of their scopes'({
      journal,
    }) {
      await expectTimes(journal, []);
      await setAll(journal, times);
      await expectTimes(journal, times.toSorted(inOrder));
      // A wake time does not start or claim a session, and a reader of the journal does not see it.
      await expectKept(journal, []);
    },
    async 'the latest word about a wake time counts, and null is never'({ journal }) {
      const wakeTimes = timesOf(journal);
      const set = async (scope: string, at: number | null) => wakeTimes.set(scope, at);
      await set('unknown', null);
      await setAll(journal, times.slice(0, 2));
      await set('ses_9', LATER + 1);
      await set('ses_10', null);
      await expectTimes(journal, [{ scope: 'ses_9', at: LATER + 1 }]);
      await set('ses_9', 5);
      // The calls do not wait for each other.
      await Promise.all([set('a', 1), set('a', null), set('b', null), set('b', 3), set('b', 2)]);
      await expectTimes(journal, [
        { scope: 'b', at: 2 },
        { scope: 'ses_9', at: 5 },
      ]);
    },
    async 'wake times are found from behind one, as many as are asked for'({ journal }) {
      await setAll(journal, times);
      const sorted = times.toSorted(inOrder);
      for (const [at, after] of sorted.entries())
        await expectTimes(journal, sorted.slice(at + 1, at + 4), { after, limit: 3 });
      // A page can be read even if the session at the cursor no longer exists.
      const [, gone] = sorted as [WakeTime, WakeTime];
      await timesOf(journal).set(gone.scope, null);
      await expectTimes(journal, sorted.slice(2, 3), { after: gone, limit: 1 });
      const between = { scope: '', at: Number.MIN_VALUE };
      await expectTimes(journal, sorted.slice(2, 4), { after: between, limit: 2 });
    },
    async 'more wake times than fit into one page of anything'({ journal }) {
      // The times are not sorted, and some of them are the same.
      const many = Array.from({ length: 3000 }, (_, index) => ({
        scope: `ses_${(index * 7) % 3000}`,
        at: LATER + ((index * 7919) % 100),
      }));
      await setAll(journal, many);
      const found: WakeTime[] = [];
      let page: readonly WakeTime[];
      do {
        const after = found.at(-1);
        page = await timesOf(journal).earliest({ ...(after && { after }), limit: 700 });
        found.push(...page);
        // A page with fewer times than the limit is the last one.
      } while (page.length === 700 && found.length <= many.length);
      check(
        sameJson(found, many.toSorted(inOrder)),
        () => `expected ${many.length} wake times in their order, found ${found.length}`,
      );
    },
  }),
  ...scenesOf(['wakeTimes', 'forget'], {
    async 'a scope that is forgotten takes its wake time along'({ journal }) {
      const kept = entry(1, { scope: 'kept' });
      await appendAll(journal, [entry(1, { scope: 'gone' }), kept]);
      const of = (scope: string): WakeTime => ({ scope, at: LATER });
      await setAll(journal, [of('gone'), of('kept'), of('never begun')]);
      await journal.forget?.('gone');
      await journal.forget?.('never begun');
      await expectTimes(journal, [of('kept')]);
      await expectKept(journal, [kept]);
    },
  }),
  ...scenesOf(['wakeTimes', 'trim'], {
    async 'a scope that is trimmed keeps its wake time'({ journal }) {
      const due = { scope: 'scope', at: LATER };
      await appendAll(journal, [entry(1), entry(2)]);
      await setAll(journal, [due]);
      await journal.trim?.(entry(2));
      await expectTimes(journal, [due]);
    },
  }),
  ...scenesOf(['wakeTimes', 'reopen'], {
    async 'wake times that were set are there after a crash'({ journal, reopen }) {
      await setAll(journal, times);
      await timesOf(journal).set('ses_9', LATER - 1);
      await timesOf(journal).set('first', null);
      const after = await reopen();
      const expected = times
        .filter(({ scope }) => scope !== 'first')
        .map((time) => (time.scope === 'ses_9' ? { ...time, at: LATER - 1 } : time));
      await expectTimes(after, expected.toSorted(inOrder));
      await timesOf(after).set('first', 1);
      await expectTimes(after, [{ scope: 'first', at: 1 }], { limit: 1 });
    },
  }),
  ...scenesOf(['wakeTimes', 'claim'], {
    async 'processes see each other’s wake times, whoever writes the scope'({ journal, another }) {
      const other = await another();
      await appendAll(journal, [entry(1)]);
      await timesOf(journal).set('scope', LATER);
      await expectTimes(other, [{ scope: 'scope', at: LATER }]);
      await timesOf(other).set('scope', 7);
      await expectTimes(journal, [{ scope: 'scope', at: 7 }]);
      await timesOf(other).set('scope', null);
      await expectTimes(journal, []);
      await appendAll(journal, [entry(2)]);
    },
    async 'whoever looks for those that nobody sees to finds all but those that a process writes'({
      journal,
      another,
      stage,
    }) {
      const other = await another();
      const all = ['a', 'claimed', 'z'].map((scope) => ({ scope, at: 0 }));
      await setAll(other, all);
      await journal.claim?.('claimed');
      const looked = await timesOf(other).earliest({ limit: 100, exceptClaimed: true });
      check(
        sameJson(looked, all) || sameJson(looked, [all[0], all[2]]),
        () => `expected at most "claimed" to be left out, found ${JSON.stringify(looked)}`,
      );
      // A query without `exceptClaimed` finds the claimed session.
      await expectTimes(other, all);
      await journal.release?.('claimed');
      await expectTimes(other, all, { limit: 100, exceptClaimed: true });
      await journal.claim?.('claimed');
      await stage.expire?.();
      await expectTimes(other, all, { limit: 100, exceptClaimed: true });
    },
  }),
];
