// The desk: the rows that each session has, found over all sessions in the order in which they have been waiting.

import type { Desk, DeskQuery, DeskRow, FoundDeskRow } from '../../actors/ports/desk.ts';
import type { Journal } from '../../actors/ports/journal.ts';
import {
  appendAll,
  check,
  entry,
  expectKept,
  expectRefused,
  type JournalScene,
  scenesOf,
} from './case.ts';
import { sameJson } from './same-json.ts';

const THEN = 1_700_000_000_000;

function deskOf({ desk }: Journal): Desk {
  check(desk !== undefined, () => 'the journal of another process has no `desk`');
  return desk;
}

function row(id: string, given: Partial<DeskRow> = {}): DeskRow {
  const { kind = 'question', since = THEN, answerableBy = null } = given;
  return { id, kind, since, answerableBy, body: JSON.stringify({ text: `${id} \0 é` }) };
}

async function setRows(journal: Journal, scope: string, ...rows: DeskRow[]): Promise<void> {
  await journal.claim?.(scope);
  await deskOf(journal).set(scope, rows);
}

const all: DeskQuery = { kinds: ['question', 'running'], limit: 100 };

/** Checks that a query finds these rows, each named by its scope and id. */
async function expectRows(
  journal: Journal,
  expected: readonly string[],
  query: Partial<DeskQuery> = {},
): Promise<readonly FoundDeskRow[]> {
  const found = await deskOf(journal).find({ ...all, ...query });
  const names = found.map(({ scope, id }) => `${scope} ${id}`);
  check(
    sameJson(names, expected),
    () =>
      `expected find(${JSON.stringify(query)}) to be ${JSON.stringify(expected)}, it is ${JSON.stringify(names)}`,
  );
  return found;
}

const placeOf = ({ scope, id, since }: FoundDeskRow): DeskQuery['after'] => ({ scope, id, since });

export const deskScenes: readonly JournalScene[] = [
  ...scenesOf(['desk'], {
    async 'the rows of all scopes are found in the order of their times, scopes and ids'({
      journal,
    }) {
      await expectRows(journal, []);
      await setRows(journal, 'ses_9', row('b'), row('a', { since: THEN + 0.5 }));
      await setRows(journal, 'ses_10', row('z', { kind: 'running' }), row('B'));
      const order = ['ses_10 B', 'ses_10 z', 'ses_9 b', 'ses_9 a'];
      const [first] = await expectRows(journal, order);
      check(
        sameJson(first, { scope: 'ses_10', id: 'B', since: THEN, body: row('B').body }),
        () => `expected the row as it was set, found ${JSON.stringify(first)}`,
      );
      await expectRows(journal, ['ses_10 z'], { kinds: ['running'] });
      await expectRows(journal, [], { kinds: ['unheard'] });
      // A row is not an entry.
      await expectKept(journal, []);
    },
    async 'the latest rows of a scope replace its earlier ones'({ journal }) {
      await setRows(journal, 'other', row('a'));
      await setRows(journal, 'scope', row('a'), row('b', { answerableBy: ['ann'] }));
      await setRows(journal, 'scope', row('b', { kind: 'running' }), row('c'));
      await expectRows(journal, ['other a', 'scope b', 'scope c']);
      await expectRows(journal, ['scope b'], { kinds: ['running'] });
      const desk = deskOf(journal);
      // The calls do not wait for each other.
      const sets = [[row('d')], [], [row('e')]].map(async (rows) => desk.set('scope', rows));
      await Promise.all(sets);
      await expectRows(journal, ['other a', 'scope e']);
      await desk.set('scope', []);
      await expectRows(journal, ['other a']);
    },
    async 'a row is found by each identity that may answer it, and by no similar one'({ journal }) {
      const names = ['ann', 'Ann', 'ann ', 'an', '=ann', 'all', 'listed', 'ånn', '%', "a'n"];
      const rows = names.map((name) => row(`of ${name}`, { answerableBy: [name] }));
      const both = row('zz of both', { answerableBy: ['ann', 'ben', 'ann'] });
      await setRows(journal, 'scope', ...rows, both, row('zz open'));
      for (const name of names) {
        const own = [`scope of ${name}`, ...(name === 'ann' ? ['scope zz of both'] : [])];
        await expectRows(journal, [...own, 'scope zz open'], { answerableBy: [name] });
      }
      await expectRows(journal, ['scope zz open'], { answerableBy: ['nn'] });
      const either = await expectRows(
        journal,
        ['scope of an', 'scope of ann', 'scope zz of both', 'scope zz open'],
        { answerableBy: ['ann', 'an', 'ben'] },
      );
      check(either[2]?.body === both.body, () => 'expected the body of a row found by an identity');
      // Without an identity, each row is found once.
      const found = await deskOf(journal).find(all);
      check(found.length === names.length + 2, () => `expected each row once: ${found.length}`);
    },
    async 'rows that are added and removed between two pages hide no other row and repeat none'({
      journal,
    }) {
      for (const at of [1, 2, 3, 4, 5, 6])
        await setRows(journal, `s${at}`, row('a', { since: THEN + at }));
      const [, last] = await expectRows(journal, ['s1 a', 's2 a'], { limit: 2 });
      check(last !== undefined, () => 'expected two rows');
      // The row at the cursor is removed, and so is one that follows. One is added before the cursor, and one after it.
      await setRows(journal, 's2');
      await setRows(journal, 's4');
      await setRows(journal, 's0', row('a', { since: THEN + 1.5 }));
      await setRows(journal, 's3', row('a', { since: THEN + 3 }), row('b', { since: THEN + 3 }));
      const rest = await expectRows(journal, ['s3 a', 's3 b', 's5 a'], {
        limit: 3,
        after: placeOf(last),
      });
      const end = rest.at(-1);
      check(end !== undefined, () => 'expected three rows');
      await expectRows(journal, ['s6 a'], { after: placeOf(end) });
    },
    async 'more rows than fit into one page of anything'({ journal }) {
      const scopes = Array.from({ length: 60 }, (_, at) => `s${at}`);
      await Promise.all(
        scopes.map(async (scope, at) => {
          const rows = Array.from({ length: 40 }, (_each, number) =>
            row(`r${number}`, { since: THEN + ((at * 7 + number) % 13) }),
          );
          await setRows(journal, scope, ...rows);
        }),
      );
      const found: FoundDeskRow[] = [];
      let page: readonly FoundDeskRow[];
      do {
        const last = found.at(-1);
        page = await deskOf(journal).find({
          ...all,
          limit: 700,
          ...(last && { after: placeOf(last) }),
        });
        found.push(...page);
      } while (page.length === 700 && found.length <= 2400);
      const names = new Set(found.map(({ scope, id }) => `${scope} ${id}`));
      check(
        found.length === 2400 && names.size === 2400,
        () =>
          `expected 2400 different rows, found ${found.length} and ${names.size} different ones`,
      );
    },
  }),
  ...scenesOf(['desk', 'forget'], {
    async 'a scope that is forgotten takes its rows along'({ journal }) {
      await appendAll(journal, [entry(1, { scope: 'gone' })]);
      await setRows(journal, 'gone', row('a', { answerableBy: ['ann'] }));
      await setRows(journal, 'kept', row('a'));
      await journal.forget?.('gone');
      await expectRows(journal, ['kept a']);
      await expectRows(journal, ['kept a'], { answerableBy: ['ann'] });
    },
  }),
  ...scenesOf(['desk', 'reopen'], {
    async 'rows that were set are there after a crash'({ journal, reopen }) {
      await setRows(journal, 'scope', row('a', { answerableBy: ['ann'] }));
      const after = await reopen();
      const [found] = await expectRows(after, ['scope a'], { answerableBy: ['ann'] });
      check(found?.body === row('a').body, () => 'expected the body as it was set');
      await setRows(after, 'scope');
      await expectRows(after, []);
    },
  }),
  ...scenesOf(['desk', 'claim'], {
    async 'the rows of a scope are seen by every process, and set by its writer alone'({
      journal,
      another,
      stage,
    }) {
      const other = await another();
      await setRows(journal, 'scope', row('a'));
      await expectRows(other, ['scope a']);
      const refused = async (by: Journal, rows: readonly DeskRow[]) =>
        expectRefused(
          '`desk.set` of a scope of another process',
          () => deskOf(by).set('scope', rows),
          {
            code: 'FENCED',
            isForGood: true,
          },
        );
      await refused(other, [row('b')]);
      await refused(other, []);
      await expectRows(journal, ['scope a']);
      await stage.expire?.();
      await setRows(other, 'scope', row('c'));
      await refused(journal, [row('d')]);
      await refused(journal, []);
      await expectRows(journal, ['scope c']);
      // The rows of an ended session are removed after its lease.
      await other.release?.('scope');
      await refused(journal, [row('d')]);
      await deskOf(journal).set('scope', []);
      await expectRows(other, []);
    },
  }),
];
