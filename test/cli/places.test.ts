// SOURCE-3: every command reports an unusable place, or a place that is not a journal, with the same text and the same
// exit status.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { inspectFor } from '../../src/cli/inspect/inspect.ts';
import { replay } from '../../src/cli/replay/replay.ts';
import { sessions } from '../../src/cli/sessions/sessions.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { entry } from '../../src/testing/journal-conformance/case.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-places-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

const whole = at('whole.db');
const environment = simulatedEnvironment();
const journal = sqliteJournal({ path: whole, environment });
for (let seq = 1; seq < 200; seq += 1) await journal.append(entry(seq));
journal.close();
const bytes = readFileSync(whole);

writeFileSync(at('half.db'), bytes.subarray(0, bytes.length / 2));
writeFileSync(at('newer.db'), bytes);
const newer = new DatabaseSync(at('newer.db'));
newer.exec('PRAGMA user_version = 1000');
newer.close();
symlinkSync(at('loop.db'), at('loop.db'));
symlinkSync('/dev/null', at('device.db'));
mkdirSync(at('folder'));
writeFileSync(at('empty.db'), '');
writeFileSync(at('notes.txt'), 'Milk, eggs');
const other = new DatabaseSync(at('other.db'));
other.exec('create table recipes (name text)');
other.close();

const unused = (): never => {
  throw new Error('It serves nothing');
};
const acts = ['--session', 'scope', '--by', 'ann', '--journal'];
const calls = [
  [sessions, 'ls', '--journal'],
  [sessions, 'show', '--session', 'scope', '--journal'],
  [replay],
  [inspectFor(unused), '--port', '0', '--journal'],
] as const;
const writes = [
  [sessions, 'cancel', 'sub_1', ...acts],
  [sessions, 'answer', 'sub_1.q1', '--text', 'yes', ...acts],
  [sessions, 'message', 'sub_1', 'go on', ...acts],
  [sessions, 'raise', 'sub_1', '--tokens', '5', ...acts],
] as const;

type Call = readonly [command: typeof sessions, ...args: string[]];

/** Returns the exit status and the errors that were printed. */
async function run([command, ...args]: Call, place: string) {
  let complained = '';
  const status = await command.run(
    [...args, place],
    () => {},
    (text) => {
      complained += text;
    },
  );
  return { of: `${command.name} ${args[0] ?? ''}`, status, complained };
}

test.each([
  ['half.db', 1, 'is damaged'],
  ['newer.db', 1, 'a newer version of Offstage'],
  ['loop.db', 2, 'it cannot be read (ELOOP)'],
  ['device.db', 2, 'it is no file, but a pipe or a device'],
  ['whole.db/below', 2, 'there is no such file'],
  ['missing.db', 2, 'there is no such file'],
  ['folder', 2, 'it is a folder'],
  ['empty.db', 2, 'it is empty'],
  ['notes.txt', 2, 'it is something else'],
  ['other.db', 2, 'another SQLite database'],
  ['in-use.db', 1, 'is in use'],
  ['postgres', 1, 'ECONNREFUSED'],
  ['postgres without a port', 1, 'postgres://127.0.0.1:port/app'],
])('%s', async (name, wanted, says) => {
  const password = 's3cret';
  const ports = { postgres: '1', 'postgres without a port': 'port' };
  const port = Object.hasOwn(ports, name) ? ports[name as keyof typeof ports] : null;
  const place = port === null ? at(name) : `postgres://ann:${password}@127.0.0.1:${port}/app`;
  const own = name === 'in-use.db' ? sqliteJournal({ path: place, environment }) : null;
  if (own) await own.append(entry(1));
  try {
    for (const call of [...calls, ...writes]) {
      const { of, status, complained } = await run(call, place);
      expect([of, status, complained]).toEqual([of, wanted, expect.stringContaining(says)]);
      expect(complained).toContain(port === null ? name : `127.0.0.1:${port}`);
      expect(complained).not.toContain(password);
    }
  } finally {
    own?.close();
  }
});

test.each([
  ['28P01', 'password authentication failed for user "ann"'],
  ['3D000', 'database "app" does not exist'],
])('reports a PostgreSQL server that refuses the connection (%s)', async (code, says) => {
  const fields = `SFATAL\0VFATAL\0C${code}\0M${says}\0\0`;
  const answer = Buffer.from(`E0000${fields}`);
  answer.writeInt32BE(fields.length + 4, 1);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    for (const call of [...calls, ...writes]) {
      const { of, status, complained } = await run(
        call,
        `postgres://ann:s3cret@127.0.0.1:${port}/app`,
      );
      expect([of, status, complained]).toEqual([of, 1, expect.stringContaining(says)]);
      expect(complained).toContain(`127.0.0.1:${port}`);
      expect(complained).not.toContain('s3cret');
    }
  } finally {
    server.close();
  }
});

test('treats an unset variable as a missing journal path', async () => {
  for (const call of [...calls, ...writes]) {
    const { of, status, complained } = await run(call, '');
    expect([of, status]).toEqual([of, 2]);
    expect(complained).toContain('the path is empty');
  }
});

/** Returns whether all users may read the path and its parents, which lets another user run the modules. */
function isForAll(path: string): boolean {
  const parent = dirname(path);
  return (statSync(path).mode & 0o005) === 0o005 && (parent === path || isForAll(parent));
}
const isRoot = process.getuid?.() === 0;

// Root may do anything, so another user runs the commands.
test.skipIf(process.platform === 'win32' || (isRoot && !isForAll(import.meta.dirname)))(
  'reads a journal without write permission, and a command that writes names the missing permission',
  () => {
    const unprivileged = 65_534;
    const of = (name: string, mode: number): string => {
      const own = mkdtempSync(at('rights-'));
      const path = join(own, name);
      copyFileSync(whole, path);
      chmodSync(path, mode);
      if (isRoot) for (const each of [own, path]) chownSync(each, unprivileged, unprivileged);
      return path;
    };
    chmodSync(folder, 0o755);
    const [file, inFolder, hidden] = [
      of('file.db', 0o444),
      of('folder.db', 0o600),
      of('hidden.db', 0o000),
    ];
    chmodSync(dirname(inFolder), 0o555);
    const program = join(import.meta.dirname, 'support/run-commands.ts');
    const { stdout, stderr } = spawnSync(process.execPath, [program, file, inFolder, hidden], {
      encoding: 'utf8',
      ...(isRoot && { uid: unprivileged, gid: unprivileged }),
    });
    chmodSync(dirname(inFolder), 0o755);
    const lines = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    const read = (place: string) => ['ls', 'replay'].map((verb) => [verb, place, 0, '']);
    const acted = (place: string, says: RegExp) =>
      ['cancel', 'answer', 'message', 'raise'].map((verb) => [
        verb,
        place,
        2,
        expect.stringMatching(says),
      ]);
    const unread = expect.stringMatching(/hidden\.db`: it cannot be read \(EACCES\)/);
    expect([lines, stderr.includes('Error')]).toEqual([
      [
        ...read(file),
        ...acted(
          file,
          /file\.db cannot be written \(EACCES\): expected the right to write the file$/m,
        ),
        ...read(inFolder),
        ...acted(
          inFolder,
          /folder\.db cannot be written \(EACCES\): expected the right to write its folder /,
        ),
        ...['ls', 'replay', 'cancel', 'answer', 'message', 'raise'].map((verb) => [
          verb,
          hidden,
          2,
          unread,
        ]),
      ],
      false,
    ]);
    // The file is still read-only.
    expect(statSync(file).mode & 0o777).toBe(0o444);
  },
);
