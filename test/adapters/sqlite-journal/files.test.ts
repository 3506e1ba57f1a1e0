// SQLITE-JOURNAL-DATABASE-4, SQLITE-JOURNAL-DATABASE-5: the file's permissions, and a file that is shorter than its
// header says. Every problem with a path or a file is reported as an Offstage error that names it.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { DICTIONARIES } from '../../../src/adapters/journal-rows/dictionaries.ts';
import { sqliteJournal, type SqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import { OffstageError } from '../../../src/values/errors.ts';
const environment = nodeEnvironment();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offstage-files-'));
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});

const at = (name: string): string => join(folder, name);
const modeOf = (path: string): number => statSync(path).mode & 0o777;
const open = (name: string, readOnly = false) =>
  sqliteJournal({ path: at(name), environment, readOnly });

function entry(seq: number, text = `words ${seq}`): JournalEntry {
  const event = { type: 'user.said', text } as { type: string };
  return { scope: 'ses', unit: 'ses', seq, at: seq, actor: 'user', definitionVersion: 3, event };
}

async function written(name: string, entries: number): Promise<void> {
  const journal = open(name);
  for (let seq = 1; seq <= entries; seq += 1)
    void journal.append(entry(seq, `${seq} ${'x'.repeat(seq % 700)}`));
  journal.close();
}

describe('SQLITE-JOURNAL-DATABASE-4: modes', () => {
  test.each([0o000, 0o022, 0o277])(
    'default to 0600 for files and 0700 for a folder, even with the umask %o',
    async (umask) => {
      const before = process.umask(umask);
      try {
        const journal = open('a/journal');
        const appended = journal.append(entry(1));
        journal.read();
        await appended;
        const files = readdirSync(at('a'));
        expect(files).toContain('journal-wal');
        for (const file of files) expect(modeOf(at(`a/${file}`))).toBe(0o600);
        expect(modeOf(at('a'))).toBe(0o700);
        journal.close();
      } finally {
        process.umask(before);
      }
    },
  );

  test('become stricter for an existing journal and its log, but not for an existing folder', async () => {
    await written('journal', 3);
    chmodSync(at('journal'), 0o666);
    chmodSync(folder, 0o755);
    writeFileSync(at('journal-wal'), '', { mode: 0o644 });
    const journal = open('journal');
    expect(modeOf(at('journal'))).toBe(0o600);
    if (existsSync(at('journal-wal'))) expect(modeOf(at('journal-wal'))).toBe(0o600);
    journal.close();
    expect(modeOf(folder)).toBe(0o755);
  });

  test('stay unchanged for an empty file that the journal did not create', () => {
    writeFileSync(at('given'), '');
    chmodSync(at('given'), 0o644);
    open('given').close();
    expect(modeOf(at('given'))).toBe(0o644);
  });

  test.each(['folder', 'pipe', 'link to a pipe', 'socket'])(
    'stay unchanged for a %s, which causes an error that names it',
    async (kind) => {
      const path = at('odd');
      if (kind === 'folder') mkdirSync(path);
      if (kind === 'pipe') execFileSync('mkfifo', [path]);
      if (kind === 'link to a pipe') {
        execFileSync('mkfifo', [at('pipe')]);
        symlinkSync(at('pipe'), path);
      }
      const server = kind === 'socket' ? createServer().listen(path) : null;
      if (server) await once(server, 'listening');
      chmodSync(path, 0o666);
      for (const readOnly of [false, true])
        expect(() => open('odd', readOnly)).toThrow(
          expect.objectContaining({
            code: 'CANNOT_OPEN',
            message: expect.stringContaining(folder),
          }),
        );
      expect(modeOf(path)).toBe(0o666);
      server?.close();
    },
  );

  test.each(['-wal', '-shm', '-journal'])(
    "stay unchanged for a file to which the journal's %s is a link",
    async (end) => {
      await written('journal', 1);
      writeFileSync(at('victim'), '');
      chmodSync(at('victim'), 0o644);
      symlinkSync(at('victim'), at(`journal${end}`));
      expect(() => open('journal')).toThrow(expect.objectContaining({ code: 'CANNOT_OPEN' }));
      expect(modeOf(at('victim'))).toBe(0o644);
    },
  );

  test('stay unchanged for a database that is not a journal', () => {
    const database = new DatabaseSync(at('other'));
    database.exec('create table things (name text)');
    database.close();
    chmodSync(at('other'), 0o644);
    expect(() => open('other')).toThrow(expect.objectContaining({ code: 'NOT_A_JOURNAL' }));
    expect(modeOf(at('other'))).toBe(0o644);
  });
});

test('SQLITE-JOURNAL-DATABASE-5: a truncated file is read completely or reported as damaged', async () => {
  await written('whole', 60);
  const journal = open('whole');
  const all = journal.read();
  journal.close();
  const { size } = statSync(at('whole'));
  const cuts = [1, 7, 100, 1000, 2048, 4095, 4096, 4097, 6000, 8192, 12_000];
  for (const readOnly of [false, true])
    for (const cut of cuts.filter((bytes) => bytes < size)) {
      copyFileSync(at('whole'), at('cut'));
      truncateSync(at('cut'), size - cut);
      let found: unknown;
      try {
        const damaged = open('cut', readOnly);
        try {
          found = damaged.read({ scope: 'ses' }).length;
        } finally {
          damaged.close();
        }
      } catch (error) {
        found = error instanceof OffstageError ? error.code : error;
      }
      expect([cut, found]).toEqual([cut, 'JOURNAL_CORRUPT']);
      for (const suffix of ['', '-wal', '-shm']) rmSync(at(`cut${suffix}`), { force: true });
    }
  expect(all).toHaveLength(60);
});

/** The parts that only the log contains: entries at the end of the file, or a page at its start. */
const inTheLog: Readonly<Record<string, (journal: SqliteJournal) => readonly unknown[]>> = {
  entries: (journal) => [61, 62, 63].map((seq) => journal.append(entry(seq))),
  'a wake time': (journal) => [journal.wakeTimes.set('ses', 5)],
};

test.each(Object.entries(inTheLog))(
  'SQLITE-JOURNAL-DATABASE-5: a truncated file whose log has %s is read completely or reported as damaged',
  async (what, write) => {
    await written('whole', 60);
    const journal = open('whole');
    const done = write(journal);
    const all = journal.read().length;
    await Promise.all(done);
    for (const suffix of ['', '-wal']) copyFileSync(at(`whole${suffix}`), at(`kept${suffix}`));
    journal.close();
    const { size } = statSync(at('kept'));
    const founds = new Set<unknown>();
    const cuts = Array.from({ length: 90 }, (_, index) => 1 + index * 97);
    const pages = Array.from({ length: size / 4096 - 1 }, (_, index) => (index + 1) * 4096);
    for (const cut of [...cuts, ...pages].filter((bytes) => bytes < size)) {
      for (const suffix of ['', '-wal']) copyFileSync(at(`kept${suffix}`), at(`cut${suffix}`));
      truncateSync(at('cut'), size - cut);
      let found: unknown;
      try {
        const damaged = open('cut');
        try {
          found = damaged.read().length === all ? 'whole' : 'a part';
        } finally {
          damaged.close();
        }
      } catch (error) {
        found = error instanceof OffstageError ? error.code : error;
      }
      founds.add(found);
      expect([what, cut, found]).not.toEqual([what, cut, 'a part']);
      for (const suffix of ['', '-wal', '-shm']) rmSync(at(`cut${suffix}`), { force: true });
    }
    expect([...founds].filter((found) => found !== 'whole')).toEqual(['JOURNAL_CORRUPT']);
  },
);

test('SQLITE-JOURNAL-DATABASE-5: a file with its log is read completely', async () => {
  const journal = open('a');
  const appended = Array.from({ length: 40 }, (_, index) => journal.append(entry(index + 1)));
  journal.read();
  await Promise.all(appended);
  for (const suffix of ['', '-wal']) copyFileSync(at(`a${suffix}`), at(`b${suffix}`));
  journal.close();
  const other = open('b');
  expect(other.read()).toHaveLength(40);
  other.close();
});

describe('an invalid path or file', () => {
  const wrong: Readonly<Record<string, readonly [make: () => string, code: string]>> = {
    'a folder in its place': [() => (mkdirSync(at('x')), 'x'), 'CANNOT_OPEN'],
    'a file where its folder should be': [
      () => (writeFileSync(at('x'), ''), 'x/journal'),
      'CANNOT_OPEN',
    ],
    'a link to itself': [() => (symlinkSync(at('x'), at('x')), 'x'), 'CANNOT_OPEN'],
    'a name that is too long': [() => 'x'.repeat(300), 'CANNOT_OPEN'],
    'the character 0 in it': [() => 'a\0b', 'INVALID_OPTION'],
    'a text file': [() => (writeFileSync(at('x'), 'hello '.repeat(200)), 'x'), 'NOT_A_JOURNAL'],
  };
  test.each(Object.entries(wrong))('gives an OffstageError: %s', (_, [make, code]) => {
    const name = make();
    for (const readOnly of [false, true]) {
      let thrown: unknown;
      try {
        open(name, readOnly).close();
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(OffstageError);
      if (!readOnly) expect(thrown).toMatchObject({ code });
    }
  });

  test('reports CANNOT_OPEN for a missing file that is opened read-only', () => {
    expect(() => open('nowhere', true)).toThrow(expect.objectContaining({ code: 'CANNOT_OPEN' }));
  });

  test('throws an OffstageError for arguments of another type', async () => {
    const journal = open('journal');
    const calls: readonly (() => unknown)[] = [
      () => journal.read({ scope: 5 as never }),
      () => journal.forget(undefined as never),
      () => journal.trim({ scope: 'a', unit: {} as never, seq: 1 }),
      () => journal.wakeTimes.earliest({ limit: 'x' as never }),
      () => journal.append({} as never),
      () => journal.append(null as never),
      () => journal.wakeTimes.set(undefined as never, 5),
    ];
    for (const call of calls) {
      let thrown: unknown;
      try {
        await call();
      } catch (error) {
        thrown = error;
      }
      expect(thrown === undefined || thrown instanceof OffstageError).toBe(true);
    }
    await Promise.all([journal.append(entry(1)), Promise.resolve().then(() => journal.read())]);
    expect(journal.read()).toHaveLength(1);
    journal.close();
  });

  test("reports NOT_A_JOURNAL for a file with foreign tables and a journal's marker, and closes the file", () => {
    const database = new DatabaseSync(at('foreign'));
    database.exec('create table entries (name text)');
    database.exec('pragma application_id = 1330005587');
    database.exec('pragma user_version = 4');
    database.close();
    const descriptors = (): number =>
      existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0;
    const before = descriptors();
    for (let number = 0; number < 20; number += 1)
      expect(() => open('foreign')).toThrow(expect.objectContaining({ code: 'NOT_A_JOURNAL' }));
    expect(descriptors()).toBeLessThan(before + 5);
    // No connection has the file open any more.
    const again = new DatabaseSync(at('foreign'));
    again.exec('begin exclusive');
    again.close();
  });

  test('reports JOURNAL_CORRUPT for a packed event that does not fit into memory', async () => {
    await written('bomb', 1);
    const database = new DatabaseSync(at('bomb'));
    const zeros = Buffer.alloc(300 * 1024 * 1024);
    const bytes = deflateRawSync(zeros, { level: 1, dictionary: DICTIONARIES[0] });
    const packed = Buffer.concat([Buffer.of(1), bytes]);
    database.prepare('update entries set event = ?, packed = ?').run('', packed);
    database.close();
    const journal = open('bomb');
    expect(() => journal.read()).toThrow(
      expect.objectContaining({
        code: 'JOURNAL_CORRUPT',
        message: expect.stringContaining('cannot be unpacked') as string,
      }),
    );
    journal.close();
    expect(readFileSync(at('bomb')).length).toBeLessThan(5_000_000);
  });
});
