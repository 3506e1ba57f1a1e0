// READ-ONLY-1, READ-ONLY-2: a journal that is only read.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { sqliteJournal, type SqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { forkSession } from '../../../src/entries/replay.ts';
import { type JournalEntry } from '../../../src/entries/journal.ts';
import { createRuntime } from '../../../src/index.ts';
import { textTalk } from '../../support/text-talk.ts';

let folder: string;
let path: string;
const opened: SqliteJournal[] = [];
const environment = nodeEnvironment();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offstage-read-only-'));
  path = join(folder, 'a #1 100%.journal');
});

afterEach(() => {
  for (const journal of opened.splice(0)) journal.close();
  chmodSync(folder, 0o755);
  rmSync(folder, { recursive: true, force: true });
});

function open(readOnly = true, at = path): SqliteJournal {
  const journal = sqliteJournal({ path: at, environment, readOnly });
  opened.push(journal);
  return journal;
}

function entry(seq: number, scope = 'ses'): JournalEntry {
  const event = { type: 'user.said', text: `words ${seq}` } as { type: string };
  return { scope, unit: scope, seq, at: 1000 + seq, actor: 'user', definitionVersion: 2, event };
}

async function write(...entries: readonly JournalEntry[]): Promise<void> {
  const journal = open(false);
  for (const one of entries) await journal.append(one);
  await journal.wakeTimes.set('ses', 5);
  journal.close();
}

/** Returns the content of all files in the folder. */
const files = () =>
  Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'hex')]),
  );

const code = (expected: string): unknown => expect.objectContaining({ code: expected });

describe('READ-ONLY-1: a journal that was closed', () => {
  test('returns its entries without writing to it or creating files next to it', async () => {
    await write(entry(1), entry(2), entry(1, 'other'));
    const before = files();
    const journal = open();
    expect(journal.read()).toEqual([entry(1), entry(2), entry(1, 'other')]);
    expect(journal.read({ scope: 'other' })).toEqual([entry(1, 'other')]);
    expect(journal.scopes()).toMatchObject([{ scope: 'ses', entries: 2 }, { scope: 'other' }]);
    expect(await journal.wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'ses', at: 5 }]);
    expect(files()).toEqual(before);
    journal.close();
    journal.close();
    expect(files()).toEqual(before);
    expect(() => journal.read()).toThrow(code('JOURNAL_CLOSED'));
  });

  test('refuses every write with READ_ONLY', async () => {
    await write(entry(1));
    const before = files();
    const journal = open();
    const refused = (what: string): unknown =>
      expect.objectContaining({
        code: 'READ_ONLY',
        retryable: false,
        message: expect.stringContaining(`\`${what}\` needs a journal`) as string,
      });
    await expect(journal.append(entry(2))).rejects.toEqual(refused('append'));
    await expect(journal.trim(entry(1))).rejects.toEqual(refused('trim'));
    await expect(journal.wakeTimes.set('ses', 1)).rejects.toEqual(refused('wakeTimes.set'));
    expect(() => journal.forget('ses')).toThrow(refused('forget'));
    expect(() => journal.claim?.('ses')).toThrow(refused('claim'));
    await expect(forkSession(journal, { from: 'ses', after: 1, to: 'b' })).rejects.toEqual(
      refused('claim'),
    );
    const { session } = textTalk({
      sessionId: 'ses',
      runtime: createRuntime({ environment, journal }),
    });
    await expect(session.start()).rejects.toEqual(refused('claim'));
    expect(files()).toEqual(before);
  });

  test('supports several readers at the same time', async () => {
    await write(entry(1));
    const [one, other] = [open(), open()];
    expect(one.read()).toEqual(other.read());
  });

  test('serves as the source of a fork into another journal', async () => {
    await write(entry(1), entry(2));
    const into = open(false, join(folder, 'into.journal'));
    await forkSession(open(), { from: 'ses', after: 1, to: 'b', into });
    expect(into.read()).toEqual([entry(1, 'b')]);
  });
});

describe('a journal that was not closed', () => {
  /** Leaves the files as a killed process would. */
  async function leave(): Promise<void> {
    const from = join(folder, 'living');
    mkdirSync(from);
    const journal = open(false, join(from, 'x'));
    for (const seq of [1, 2, 3]) await journal.append(entry(seq));
    copyFileSync(join(from, 'x'), path);
    copyFileSync(join(from, 'x-wal'), `${path}-wal`);
    journal.close();
    rmSync(from, { recursive: true });
  }

  test('READ-ONLY-1: returns the entries of its log, and leaves both files unchanged', async () => {
    await leave();
    const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
    const journal = open();
    expect(journal.read()).toEqual([entry(1), entry(2), entry(3)]);
    journal.close();
    expect(readFileSync(path).equals(file)).toBe(true);
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
    // A process that continues with the journal finds the same entries.
    expect(open(false).read()).toEqual([entry(1), entry(2), entry(3)]);
  });

  test('refuses a reader while a process is writing to it, without affecting that process', async () => {
    const writer = open(false);
    await writer.append(entry(1));
    expect(() => open()).toThrow(code('JOURNAL_IN_USE'));
    await writer.append(entry(2));
    expect(writer.read()).toHaveLength(2);
  });

  test('READ-ONLY-2: refuses to read after a process has started to write to it', async () => {
    await write(entry(1));
    const journal = open();
    expect(journal.read()).toHaveLength(1);
    const writer = open(false);
    await writer.append(entry(2));
    const inUse = expect.objectContaining({
      code: 'JOURNAL_IN_USE',
      message: expect.stringContaining('open it again') as string,
    }) as Error;
    expect(() => journal.read()).toThrow(inUse);
    writer.close();
    expect(() => journal.scopes()).toThrow(inUse);
    expect(open().read()).toHaveLength(2);
  });
});

describe('a file that cannot be opened read-only', () => {
  const corpus = (name: string): string =>
    fileURLToPath(new URL(`../../corpus/${name}`, import.meta.url));

  test.each([1, 2])(
    'does not upgrade its layout %d, and names the remedy in the error',
    (layout) => {
      copyFileSync(corpus(`sqlite-layout-${layout}.journal`), path);
      const before = files();
      expect(() => open()).toThrow(
        expect.objectContaining({
          code: 'JOURNAL_TOO_OLD',
          message: expect.stringMatching(
            new RegExp(`layout ${layout}; this one reads 3 to 5.*once without \`readOnly\``),
          ) as string,
        }) as Error,
      );
      expect(files()).toEqual(before);
      open(false).close();
      expect(open().read().length).toBeGreaterThan(0);
    },
  );

  test('throws an error for a newer layout, another database, a text file and an empty file', async () => {
    await write(entry(1));
    const file = new DatabaseSync(path);
    file.exec('pragma user_version = 99');
    file.close();
    expect(() => open()).toThrow(code('JOURNAL_TOO_NEW'));

    const at = (name: string) => join(folder, name);
    const other = new DatabaseSync(at('other'));
    other.exec('create table mine (x)');
    other.close();
    writeFileSync(at('letter'), 'Dear Sir or Madam, '.repeat(100));
    writeFileSync(at('empty'), '');
    for (const name of ['other', 'letter', 'empty'])
      expect(() => open(true, at(name))).toThrow(code('NOT_A_JOURNAL'));
    expect(() => open(true, at('deep/none'))).toThrow(code('CANNOT_OPEN'));
    expect(existsSync(at('deep'))).toBe(false);
    expect(() => open(true, ':memory:')).toThrow(code('INVALID_OPTION'));
    expect(() => sqliteJournal({ path, environment, readOnly: 'yes' as never })).toThrow(
      code('INVALID_OPTION'),
    );
  });

  test('reports JOURNAL_CORRUPT if the end of the file is missing', async () => {
    await write(...Array.from({ length: 200 }, (_, index) => entry(index + 1)));
    truncateSync(path, 8192);
    expect(() => open().read()).toThrow(code('JOURNAL_CORRUPT'));
  });
});

describe('a folder that cannot be written', () => {
  const reader = fileURLToPath(new URL('reader.ts', import.meta.url));

  /**
   * Returns the output of a process that may only read. The superuser may write everywhere, so the process runs as
   * another user.
   */
  function readElsewhere(): string {
    chmodSync(path, 0o444);
    chmodSync(folder, 0o555);
    const { stdout, stderr } = spawnSync(process.execPath, [reader, path], {
      encoding: 'utf8',
      ...(process.getuid?.() === 0 && { uid: 65_534, gid: 65_534 }),
    });
    return stdout + stderr;
  }

  test('READ-ONLY-1: allows reading a file that was closed properly', async () => {
    await write(entry(1), entry(2));
    expect(readElsewhere()).toBe('2 entries\n');
    expect(readdirSync(folder)).toHaveLength(1);
  });

  test('throws an error that names the remedy for a file that was not closed properly', async () => {
    const writer = open(false);
    await writer.append(entry(1));
    const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
    writer.close();
    writeFileSync(path, file);
    writeFileSync(`${path}-wal`, log);
    chmodSync(`${path}-wal`, 0o444);
    expect(readElsewhere()).toMatch(/^CANNOT_OPEN: .*copy both into a folder that can be written/);
    expect(readdirSync(folder)).toHaveLength(2);
  });
});
