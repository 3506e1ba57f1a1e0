import { spawn, type ChildProcess } from 'node:child_process';
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JournalEntry } from '../../../src/actors/ports/journal.ts';
import { inOrder, type WakeTime } from '../../../src/actors/ports/wake-times.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal, type SqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { deskQuery } from '../../../src/adapters/journal-rows/desk-rows.ts';
import { EARLIEST } from '../../../src/adapters/sqlite-journal/sqlite-journal.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

let folder: string;
let path: string;
const opened: SqliteJournal[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offstage-journal-'));
  path = join(folder, 'deep', 'a.journal');
});

afterEach(() => {
  for (const journal of opened.splice(0)) journal.close();
  rmSync(folder, { recursive: true, force: true });
});

const corpus = (name: string): string =>
  fileURLToPath(new URL(`../../corpus/${name}`, import.meta.url));

function open(environment = nodeEnvironment()): SqliteJournal {
  const journal = sqliteJournal({ path, environment });
  opened.push(journal);
  return journal;
}

function entry(seq: number, unit = 'ses', text = `words ${seq} äöü 🚕`): JournalEntry {
  const event = { type: 'user.said', text } as { type: string };
  const at = 1_700_000_000_000 + seq;
  return { scope: 'ses', unit, seq, at, actor: 'user', definitionVersion: 3, event };
}

test('reads appended entries in order, even in the next process', async () => {
  const journal = open();
  const entries = [entry(1), entry(1, 'sub'), entry(2), entry(2, 'sub'), entry(3)];
  for (const one of entries) await journal.append(one);
  expect(journal.read()).toEqual(entries);
  journal.close();
  const again = open();
  expect(again.read()).toEqual(entries);
  expect(again.read({ unit: 'sub' })).toEqual([entries[1], entries[3]]);
  expect(again.read({ scope: 'nobody' })).toEqual([]);
});

test('SQLITE-JOURNAL-DATABASE-7: reads a file with a flipped bit up to that bit, or refuses the file', async () => {
  const journal = open();
  const units = { ses: 60, sub: 60 };
  for (let seq = 1; seq <= 60; seq++)
    for (const unit of Object.keys(units)) await journal.append(entry(seq, unit));
  journal.close();
  const whole = readFileSync(path);
  const hidden: number[] = [];
  const codes = new Set<unknown>();
  // These pages contain part of the index. A flipped bit in it hides entries from a search.
  for (let at = 101; at < whole.length; at += 101) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 4;
    path = join(folder, `${at}.journal`);
    writeFileSync(path, damaged);
    try {
      const read = open();
      const entries = read.read({ scope: 'ses' });
      for (const [name, last] of Object.entries(units)) {
        const seqs = entries.filter(({ unit }) => unit === name).map(({ seq }) => seq);
        // A journal whose beginning is missing looks like a trimmed one; the fold of the scope refuses it.
        const from = seqs[0] ?? 1;
        if (seqs.length !== last - from + 1 || seqs.at(-1) !== last) hidden.push(at);
      }
      read.close();
    } catch (error) {
      codes.add((error as { readonly code?: unknown }).code);
    }
  }
  expect(hidden).toEqual([]);
  expect(codes).toContain('JOURNAL_CORRUPT');
});

test('APPEND-BATCH-1: resolves all appends of an event loop turn with one commit', async () => {
  const environment = simulatedEnvironment();
  const journal = open(environment);
  const kept: number[] = [];
  const appends = [1, 2, 3].map((seq) =>
    journal.append(entry(seq, `unit ${seq}`)).then(() => kept.push(seq)),
  );
  await Promise.resolve();
  expect(kept).toEqual([]);
  await environment.advance(0);
  await Promise.all(appends);
  expect(kept).toEqual([1, 2, 3]);
});

test('keeps pending entries when the file is closed', async () => {
  const journal = open(simulatedEnvironment());
  const appended = journal.append(entry(1));
  journal.close();
  await appended;
  await expect(journal.append(entry(2))).rejects.toMatchObject({ code: 'JOURNAL_CLOSED' });
  expect(open().read()).toEqual([entry(1)]);
});

describe('two writers of one unit', () => {
  test('APPEND-BATCH-3: append the same entry twice without an error', async () => {
    const journal = open();
    await journal.append(entry(1));
    await journal.append(entry(1));
    expect(journal.read()).toEqual([entry(1)]);
  });

  test('APPEND-BATCH-2: report a conflict if a number is already used, without affecting other entries', async () => {
    const journal = open();
    await journal.append(entry(1));
    const [conflict, other] = await Promise.allSettled([
      journal.append(entry(1, 'ses', 'otherwise')),
      journal.append(entry(1, 'sub')),
    ]);
    expect(conflict).toMatchObject({ reason: { code: 'JOURNAL_CONFLICT', retryable: false } });
    expect(other.status).toBe('fulfilled');
    expect(journal.read()).toEqual([entry(1), entry(1, 'sub')]);
  });
});

test('refuses an event that is not JSON, and names its type', async () => {
  const journal = open();
  const event: Record<string, unknown> & { type: string } = { type: 'user.said' };
  event['self'] = event;
  await expect(journal.append({ ...entry(1), event })).rejects.toMatchObject({
    code: 'INVALID_ENTRY',
    retryable: false,
    message: expect.stringContaining('user.said'),
  });
});

describe('scopes', () => {
  const of = (scope: string, seq: number, unit = scope): JournalEntry => ({
    ...entry(seq, unit),
    scope,
  });

  test('shrinks the file when a scope is deleted, without changing other scopes', async () => {
    const journal = open();
    const text = 'x'.repeat(1000);
    await journal.append(of('one', 1));
    await Promise.all(
      Array.from({ length: 3000 }, (_, index) =>
        journal.append({ ...entry(index + 1, 'many', text), scope: 'two' }),
      ),
    );
    await journal.append(of('three', 1));
    journal.forget('two');
    journal.close();
    expect(statSync(path).size).toBeLessThan(200_000);
    expect(open().read()).toEqual([of('one', 1), of('three', 1)]);
  });

  test('reuses space that has not been released yet', async () => {
    const text = 'x'.repeat(3000);
    const sizes: number[] = [];
    for (const scope of ['first', 'second', 'third', 'fourth']) {
      const journal = open();
      await Promise.all(
        Array.from({ length: 5000 }, (_, index) =>
          journal.append({ ...entry(index + 1, 'many', text), scope }),
        ),
      );
      sizes.push(statSync(path).size);
      journal.forget(scope);
      journal.close();
    }
    const [first = 0] = sizes;
    expect(Math.max(...sizes)).toBeLessThan(first * 1.1);
  });

  test('converts each unit of a layout 1 file into a scope', () => {
    path = join(folder, 'old.journal');
    copyFileSync(corpus('sqlite-layout-1.journal'), path);
    const before = JSON.parse(readFileSync(corpus('sqlite-layout-1.json'), 'utf8')) as Omit<
      JournalEntry,
      'scope'
    >[];
    const expected = before.map((old) => ({ scope: old.unit, ...old }));
    for (const _ of ['the first time', 'ever after']) {
      const journal = open();
      expect(journal.read()).toEqual(expected);
      expect(journal.scopes().map(({ scope }) => scope)).toEqual(['ses_1', 'sub_1']);
      journal.close();
    }
    const file = new DatabaseSync(path);
    expect(file.prepare('pragma user_version').get()).toEqual({ user_version: 5 });
    expect(file.prepare('pragma auto_vacuum').get()).toEqual({ auto_vacuum: 2 });
    file.close();
  });

  test('reads and writes a file created before long events were packed', async () => {
    path = join(folder, 'old.journal');
    copyFileSync(corpus('sqlite-layout-2.journal'), path);
    const before = JSON.parse(
      readFileSync(corpus('sqlite-layout-2.json'), 'utf8'),
    ) as JournalEntry[];
    const journal = open();
    expect(journal.read()).toEqual(before);
    // An entry is the same whether or not it is packed.
    for (const one of before) await journal.append(one);
    const long = entry(1, 'ses', 'a long text '.repeat(1000));
    await journal.append(long);
    journal.close();
    expect(open().read()).toEqual([...before, long]);
  });

  test('LAYOUT-1: does not change a damaged file of an earlier version', () => {
    path = join(folder, 'old.journal');
    copyFileSync(corpus('sqlite-layout-1.journal'), path);
    const file = new DatabaseSync(path);
    file.exec(`update entries set event = replace(event, 'Q4', 'Q3') where seq = 4`);
    file.close();
    for (const _ of ['the first time', 'ever after'])
      expect(() => open()).toThrow(
        expect.objectContaining({
          code: 'JOURNAL_CORRUPT',
          message: expect.stringContaining('entry 4 of ses_1'),
        }),
      );
    const again = new DatabaseSync(path);
    expect(again.prepare('pragma user_version').get()).toEqual({ user_version: 1 });
    expect(again.prepare('select count(*) as count from entries').get()).toEqual({ count: 25 });
    again.close();
  });
});

describe('long events', () => {
  const long = entry(2, 'ses', JSON.stringify({ state: 'waiting', 'äöü 🚕': null }).repeat(1000));

  test('STORED-ENTRY-2: get packed, and can be appended a second time', async () => {
    const journal = open();
    for (const one of [entry(1), long, entry(3), long]) await journal.append(one);
    expect(journal.read()).toEqual([entry(1), long, entry(3)]);
    await expect(
      journal.append({ ...long, event: { ...long.event, more: 1 } as never }),
    ).rejects.toMatchObject({ code: 'JOURNAL_CONFLICT' });
    journal.close();
    const file = new DatabaseSync(path);
    const rows = file.prepare('select event, length(packed) as bytes from entries').all();
    file.close();
    expect(rows).toMatchObject([
      { event: JSON.stringify(entry(1).event), bytes: null },
      { event: '', bytes: expect.any(Number) },
      { bytes: null },
    ]);
    expect(rows[1]?.['bytes']).toBeLessThan(JSON.stringify(long.event).length / 50);
  });

  test.each([
    [`packed = null`, 'is not what was written'],
    [`packed = x'0102030405'`, 'cannot be unpacked'],
    [`packed = substr(packed, 1, length(packed) - 1)`, 'cannot be unpacked'],
    [`packed = (select packed from entries where seq = 1)`, 'is not what was written'],
    [`event = ' '`, 'is not what was written'],
  ])('STORED-ENTRY-1: refuses one that was changed: %s', async (change, what) => {
    const other = entry(1, 'ses', 'something else '.repeat(1000));
    const journal = open();
    for (const one of [other, long]) await journal.append(one);
    journal.close();
    const file = new DatabaseSync(path);
    file.exec(`update entries set ${change} where seq = 2`);
    file.close();
    expect(() => open().read()).toThrow(
      expect.objectContaining({
        code: 'JOURNAL_CORRUPT',
        message: expect.stringContaining(`entry 2 of ses in ses ${what}`),
      }),
    );
  });
});

describe('trimming', () => {
  test('makes the file smaller, and keeps the other entries', async () => {
    const journal = open();
    const text = 'x'.repeat(1000);
    const entries = Array.from({ length: 3000 }, (_, index) => entry(index + 1, 'ses', text));
    await journal.append({ ...entry(1), scope: 'other' });
    await Promise.all(entries.map((one) => journal.append(one)));
    await journal.trim(entry(2999));
    journal.close();
    expect(statSync(path).size).toBeLessThan(200_000);
    expect(open().read()).toEqual([{ ...entry(1), scope: 'other' }, ...entries.slice(-2)]);
  });

  test('waits for pending entries, and trims those too', async () => {
    const journal = open(simulatedEnvironment());
    const appended = [1, 2, 3].map((seq) => journal.append(entry(seq)));
    await journal.trim(entry(2));
    await Promise.all(appended);
    expect(journal.read()).toEqual([entry(2), entry(3)]);
  });

  test('lets other work run in between, and continues after the file has been closed and reopened', async () => {
    const environment = simulatedEnvironment();
    const journal = open(environment);
    const entries = Array.from({ length: 950 }, (_, index) => entry(index + 1));
    const appended = Promise.all(entries.map((one) => journal.append(one)));
    await environment.settle();
    await appended;
    const trimming = journal.trim(entry(940));
    const left = journal.read().length;
    expect(left).toBeLessThan(950);
    expect(left).toBeGreaterThan(800);
    journal.close();
    await environment.settle();
    await trimming;
    const again = open();
    expect(again.read()).toEqual(entries.slice(-left));
    await again.trim(entry(940));
    expect(again.read()).toEqual(entries.slice(939));
  });

  test('deletes either all entries of a slice or none', async () => {
    const journal = open();
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    journal.close();
    const file = new DatabaseSync(path);
    file.exec(
      `create trigger refuse before delete on entries when old.seq = 2 begin select raise(abort, 'refused'); end`,
    );
    file.close();
    const again = open();
    await expect(again.trim(entry(3))).rejects.toThrow('refused');
    expect(again.read()).toEqual([entry(1), entry(2), entry(3)]);
    await again.append(entry(4));
    again.close();
    expect(open().read()).toHaveLength(4);
  });

  test('rejects once the journal has been closed', async () => {
    const journal = open();
    journal.close();
    await expect(journal.trim(entry(1))).rejects.toMatchObject({ code: 'JOURNAL_CLOSED' });
  });
});

describe('wake times', () => {
  test('reach the next process in order and page by page, even if there are ten thousand', async () => {
    const journal = open();
    const times = Array.from({ length: 10_000 }, (_, index) => ({
      scope: `ses_${index}`,
      at: 1_700_000_000_000 + ((index * 7919) % 1000),
    }));
    await Promise.all(times.map(async ({ scope, at }) => journal.wakeTimes.set(scope, at)));
    await journal.wakeTimes.set('ses_0', null);
    journal.close();
    const { wakeTimes } = open();
    const found: WakeTime[] = [];
    for (let more = true; more;) {
      const after = found.at(-1);
      const page = await wakeTimes.earliest({ ...(after && { after }), limit: 256 });
      found.push(...page);
      more = page.length === 256;
    }
    const expected = times.slice(1).toSorted(inOrder);
    expect(found).toEqual(expected);
  });

  test('APPEND-BATCH-1: resolve after the current turn has ended', async () => {
    const environment = simulatedEnvironment();
    const journal = open(environment);
    const kept: string[] = [];
    const sets = ['a', 'b'].map(async (scope) => {
      await journal.wakeTimes.set(scope, 1);
      kept.push(scope);
    });
    await Promise.resolve();
    expect(kept).toEqual([]);
    await environment.advance(0);
    await Promise.all(sets);
    expect(kept).toEqual(['a', 'b']);
  });

  test('share one transaction with the appends of the same turn', async () => {
    open().close();
    const file = new DatabaseSync(path);
    file.exec(
      `create trigger refuse before insert on wake_times when new.scope = 'b' begin select raise(abort, 'refused'); end`,
    );
    file.close();
    const journal = open();
    const outcomes = await Promise.allSettled([
      journal.append(entry(1)),
      journal.wakeTimes.set('a', 1),
      journal.wakeTimes.set('b', 1),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(journal.read()).toEqual([]);
    expect(await journal.wakeTimes.earliest({ limit: 9 })).toEqual([]);
    await journal.append(entry(1));
    await journal.wakeTimes.set('a', 1);
  });

  test('SQLITE-JOURNAL-WAKE-TIMES-2: appear in a query of the same turn', async () => {
    const journal = open(simulatedEnvironment());
    const set = [2, 1].map(async (at) => journal.wakeTimes.set('a', at));
    expect(await journal.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'a', at: 1 }]);
    await Promise.all(set);
  });

  test('use their index in queries', () => {
    open().close();
    const file = new DatabaseSync(path);
    const plan = file.prepare(`explain query plan ${EARLIEST}`).all(1, '', 9);
    file.close();
    expect(plan).toMatchObject([
      { detail: expect.stringMatching(/^SEARCH .*wake_times_in_order/) },
    ]);
  });

  test('find 10,000 rows of the desk page by page, each once, with the index', async () => {
    const journal = open();
    await Promise.all(
      Array.from({ length: 1000 }, async (_, session) =>
        journal.desk?.set(
          `ses_${session}`,
          Array.from({ length: 10 }, (_each, number) => ({
            id: `q${number}`,
            kind: 'approval',
            since: (session * 7 + number * 31) % 101,
            answerableBy: number === 0 ? ['ann', `user_${session}`] : null,
            body: `${number}`,
          })),
        ),
      ),
    );
    const found: string[] = [];
    let after: { scope: string; id: string; since: number } | undefined;
    for (;;) {
      const kinds = ['approval', 'question'];
      const page = (await journal.desk?.find({ kinds, limit: 999, ...(after && { after }) })) ?? [];
      if (page.length === 0) break;
      for (const { scope, id, since } of page) {
        found.push(`${String(since).padStart(3, '0')} ${scope} ${id}`);
        after = { scope, id, since };
      }
    }
    expect([found.length, new Set(found).size]).toEqual([10_000, 10_000]);
    expect(found).toEqual(found.toSorted((one, other) => (one < other ? -1 : 1)));
    const kinds = ['approval'];
    const own = {
      kinds,
      answerableBy: ['user_7'],
      limit: 3,
      after: { since: 200, scope: '', id: '' },
    };
    expect(await journal.desk?.find(own)).toEqual([]);
    journal.close();
    const file = new DatabaseSync(path);
    const { text, values } = deskQuery(own, 'desk', (number) => `?${number}`);
    const plan = file.prepare(`explain query plan ${text}`).all(...values);
    file.close();
    const details = plan
      .map(({ detail }) => String(detail))
      .filter((detail) => detail.includes('desk'));
    // One range for the rows that any identity may answer, and one for the rows of this identity.
    const range =
      'SEARCH desk USING COVERING INDEX desk_in_order (kind=? AND who=? AND (since,scope,id)>(?,?,?))';
    expect(details.filter((detail) => detail === range)).toHaveLength(2);
    expect(details.filter((detail) => detail.startsWith('SCAN'))).toEqual([]);
  });

  test.each([
    ['half \ud83d of a character', 1],
    ['the character \0', null],
    ['ses', Number.NaN],
  ])(
    'refuse values that SQLite cannot store, without affecting other wake times: %j, %j',
    async (scope, at) => {
      const journal = open();
      const [refused, other] = await Promise.allSettled([
        journal.wakeTimes.set(scope, at),
        journal.wakeTimes.set('other', 1),
      ]);
      expect(refused).toMatchObject({ reason: { code: 'INVALID_ENTRY', retryable: false } });
      expect(other.status).toBe('fulfilled');
      expect(await journal.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'other', at: 1 }]);
    },
  );

  test.each(['sqlite-layout-1', 'sqlite-layout-2'])(
    'work in an existing file of %s',
    async (old) => {
      path = join(folder, 'old.journal');
      copyFileSync(corpus(`${old}.journal`), path);
      await open().wakeTimes.set('ses_1', 5);
      opened.pop()?.close();
      expect(await open().wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'ses_1', at: 5 }]);
    },
  );

  test('reject once the journal has been closed', async () => {
    const journal = open(simulatedEnvironment());
    const set = journal.wakeTimes.set('ses', 1);
    journal.close();
    await set;
    const closed = { code: 'JOURNAL_CLOSED', retryable: false };
    await expect(journal.wakeTimes.set('ses', 1)).rejects.toMatchObject(closed);
    expect(() => journal.wakeTimes.earliest({ limit: 1 })).toThrow(expect.objectContaining(closed));
    expect(await open().wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'ses', at: 1 }]);
  });
});

describe('options', () => {
  test.each([
    [{ path: '' }, 'path'],
    [{ synchronous: 'off' }, 'synchronous'],
    [{ environment: undefined }, 'environment'],
  ])('refuses %j, and names the invalid option', (wrong, name) => {
    const options = { path, environment: nodeEnvironment(), ...wrong };
    expect(() => sqliteJournal(options as never)).toThrow(name);
  });
});

describe('a file that cannot be used', () => {
  const write = async (count: number): Promise<void> => {
    const journal = open();
    await Promise.all(
      Array.from({ length: count }, (_, index) => journal.append(entry(index + 1))),
    );
    journal.close();
  };

  test('SQLITE-JOURNAL-DATABASE-2: a foreign database is refused and left unchanged', () => {
    path = join(folder, 'other.db');
    const other = new DatabaseSync(path);
    other.exec('create table mine (x)');
    other.close();
    const before = readFileSync(path);
    expect(() => open()).toThrow(expect.objectContaining({ code: 'NOT_A_JOURNAL' }));
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('SQLITE-JOURNAL-DATABASE-2: a file that is not a database is refused', () => {
    path = join(folder, 'letter.txt');
    writeFileSync(path, 'Dear Sir or Madam, '.repeat(100));
    expect(() => open()).toThrow(expect.objectContaining({ code: 'NOT_A_JOURNAL' }));
    expect(readFileSync(path, 'utf8')).toContain('Dear Sir');
  });

  test('SQLITE-JOURNAL-DATABASE-2: a newer layout is refused', async () => {
    await write(1);
    const file = new DatabaseSync(path);
    expect(file.prepare('pragma user_version').get()).toEqual({ user_version: 5 });
    file.exec('pragma user_version = 99');
    file.close();
    expect(() => open()).toThrow(
      expect.objectContaining({
        code: 'JOURNAL_TOO_NEW',
        message: expect.stringContaining('layout 99'),
      }),
    );
  });

  test('reports CANNOT_OPEN for a folder', () => {
    path = folder;
    expect(() => open()).toThrow(expect.objectContaining({ code: 'CANNOT_OPEN' }));
  });

  test('STORED-ENTRY-1: names a changed entry in the error', async () => {
    await write(3);
    const file = new DatabaseSync(path);
    file.exec(`update entries set event = replace(event, 'words 2', 'words 7') where seq = 2`);
    file.close();
    const journal = open();
    expect(() => journal.read()).toThrow(
      expect.objectContaining({
        code: 'JOURNAL_CORRUPT',
        message: expect.stringContaining('entry 2 of ses'),
      }),
    );
  });

  test('reports JOURNAL_CORRUPT when half of the file is missing', async () => {
    await write(200);
    truncateSync(path, Math.floor(statSync(path).size / 2));
    expect(() => open().read()).toThrow(expect.objectContaining({ code: 'JOURNAL_CORRUPT' }));
  });

  test('throws an error or returns all entries when a page is overwritten with noise', async () => {
    await write(60);
    const whole = readFileSync(path);
    const pageBytes = 4096;
    let found = 0;
    for (let page = 1; page * pageBytes < whole.length; page += 1) {
      const damaged = Buffer.from(whole);
      damaged.fill(0x5a, page * pageBytes, (page + 1) * pageBytes);
      writeFileSync(path, damaged);
      const journal = open();
      try {
        // If the page contains only the index, reading does not need it.
        expect(journal.read()).toEqual(Array.from({ length: 60 }, (_, index) => entry(index + 1)));
      } catch (error) {
        expect(error).toMatchObject({ code: 'JOURNAL_CORRUPT' });
        found += 1;
      }
      journal.close();
    }
    expect(found).toBeGreaterThan(1);
  });
});

test('SQLITE-JOURNAL-DATABASE-3: a truncated log yields all entries committed before the cut', async () => {
  const journal = open();
  // Each append is its own transaction.
  for (let seq = 1; seq <= 8; seq += 1) await journal.append(entry(seq));
  const log = readFileSync(`${path}-wal`);
  const torn = join(folder, 'torn.journal');
  const lengths: number[] = [];
  for (let bytes = log.length; bytes > 0; bytes -= 1777) {
    copyFileSync(path, torn);
    writeFileSync(`${torn}-wal`, log.subarray(0, bytes));
    const after = sqliteJournal({ path: torn, environment: nodeEnvironment() });
    const kept = after.read();
    expect(kept).toEqual(kept.map((_, index) => entry(index + 1)));
    lengths.push(kept.length);
    // The journal accepts further entries from there.
    await after.append(entry(kept.length + 1));
    after.close();
  }
  expect(lengths).toEqual(lengths.toSorted((a, b) => b - a));
  expect(new Set(lengths)).toEqual(new Set([8, 7, 6, 5, 4, 3, 2, 1, 0]));
});

describe('other processes', () => {
  const writer = fileURLToPath(new URL('writer.ts', import.meta.url));

  function start(unit: string, limitBlocks = 'unlimited') {
    const command = `ulimit -f ${limitBlocks}; exec "$0" "$@"`;
    const args = ['-c', command, process.execPath, writer, path, unit];
    const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return { child, lines: createInterface({ input: child.stdout }) };
  }

  const ended = (child: ChildProcess): Promise<void> =>
    new Promise((resolve) => child.once('close', () => resolve()));

  test('P9: leave every acknowledged entry and at most one more if they are killed', async () => {
    let kept = 0;
    for (const killAfter of [1, 7, 20]) {
      const { child, lines } = start('unit');
      const over = ended(child);
      let here = 0;
      for await (const line of lines) {
        kept = Number(line);
        here += 1;
        if (here === killAfter) child.kill('SIGKILL');
      }
      await over;
      const journal = open();
      const entries = journal.read({ unit: 'unit' });
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
      // The entry that was being written may exist although its answer never came.
      expect(entries.length - kept).toBeOneOf([0, 1]);
      journal.close();
    }
  });

  test('SQLITE-JOURNAL-DATABASE-1: get JOURNAL_IN_USE, and the first process continues to work', async () => {
    const journal = open();
    await journal.append(entry(1));
    const { child, lines } = start('unit');
    const said: string[] = [];
    for await (const line of lines) said.push(line);
    await (child.exitCode === null ? ended(child) : undefined);
    expect(said).toEqual([expect.stringContaining('JOURNAL_IN_USE')]);
    await journal.append(entry(2));
    expect(journal.read()).toHaveLength(2);
  });

  test('get an error when the disk is full, and keep earlier entries', async () => {
    const { lines } = start('unit', '200');
    let kept = 0;
    let last = '';
    for await (const line of lines) {
      if (Number(line) > 0) kept = Number(line);
      last = line;
    }
    expect(last).toMatch(/^(DISK_FULL|JOURNAL_IO): /);
    expect(kept).toBeGreaterThan(0);
    const entries = open().read({ unit: 'unit' });
    expect(entries).toHaveLength(kept);
  });
});
