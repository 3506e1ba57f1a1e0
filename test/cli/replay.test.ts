// `offstage replay` on journals and recordings in files.

import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { mermaidOf } from '../../src/cli/replay/story.ts';
import { replayFor } from '../../src/cli/replay/replay.ts';
import {
  checkRecording,
  exportRecording,
  forkSession,
  parseRecording,
} from '../../src/entries/replay.ts';
import { wholeRide } from '../actors/replay/support.ts';

const folder = mkdtempSync(join(tmpdir(), 'replay-'));
const database = join(folder, 'calls.db');
const recorded = join(folder, 'ride.jsonl');
/** The number of the entry at which the question was open. */
let asked = 0;
let length = 0;

beforeAll(async () => {
  const { of, talk, after } = await wholeRide();
  await talk.close();
  asked = after;
  const { journal } = of.begin().runtime;
  ({ length } = of.entries);
  writeFileSync(recorded, await exportRecording(journal, 'ses'));
  const into = sqliteJournal({ path: database, environment: nodeEnvironment() });
  await forkSession(journal, { from: 'ses', after: length, to: 'ses_1', into });
  await forkSession(journal, { from: 'ses', after, to: 'ses_2', into });
  into.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  let printed = '';
  const say = (text: string) => (printed += text);
  const status = await replayFor(null).run(args, say, say);
  return { status, printed };
}

test('prints speech, calls, questions and reports as a diagram with --mermaid', async () => {
  const { status, printed } = await run(recorded, '--mermaid');
  expect(status).toBe(0);
  const lines = printed.trimEnd().split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'sequenceDiagram',
    '  actor user',
    '  participant lead as lead agent',
  ]);
  expect(printed).toMatch(/^ {2}participant s1 as .*sub_1$/m);
  expect(printed).toMatch(/^ {2}s1->>user: asks sub_1.q1$/m);
  expect(printed).toMatch(/^ {2}user->>s1: comfort$/m);
  expect(printed).toMatch(/^ {2}s1-->>lead: completed/m);
  for (const line of lines.slice(1))
    expect(line).toMatch(/^ {2}(?:actor|participant|Note over|[a-z0-9]+-{1,2}>>[a-z0-9]+:)/);
});

test('MERMAID-1: escapes session text that Mermaid would interpret as syntax', () => {
  const entry = { scope: 's', unit: 's', seq: 1, at: 0, actor: 'user', definitionVersion: 2 };
  const changes = { 'user u1': 'so;end\nuser->>lead: <b>#35;%%{init}%%' };
  const step = { number: 1, entry: { ...entry, event: { type: 'user.said' } }, isAccepted: true };
  const drawn = mermaidOf([{ ...step, setAside: null, changes, machines: null } as never]);
  expect(drawn.trimEnd().split('\n')).toHaveLength(4);
  expect(drawn.split('\n')[3]).toBe(
    '  user->>lead: so#59;e#110;d user-#62;#62;lead#58; #60;b#62;#35;35#59;#37;#37;#123;init#125;#37;#37;',
  );
});

describe('a journal', () => {
  test('lists its sessions', async () => {
    const { status, printed } = await run(database);
    expect(status).toBe(0);
    expect(printed).toContain('2 sessions');
    expect(printed).toMatch(/^ {2}ses_1 +\d+ {3}2023-11-14 22:13:20 UTC {3}0:06\.000$/m);
    const { printed: json } = await run(database, '--json');
    expect(JSON.parse(json)).toMatchObject([
      { scope: 'ses_1', entries: length },
      { scope: 'ses_2' },
    ]);
  });

  test('remains unchanged when it is read', async () => {
    const own = join(folder, 'looked-at');
    mkdirSync(own);
    const file = join(own, 'calls.db');
    copyFileSync(database, file);
    const into = join(folder, 'looked-at-into.db');
    for (const more of [
      [],
      ['--session', 'ses_1'],
      ['--session', 'ses_1', '--at', '3'],
      ['--session', 'ses_1', '--export', join(folder, 'looked-at.jsonl')],
      ['--session', 'ses_1', '--fork', 'ses_3', '--after', '3', '--into', into],
    ])
      expect((await run(file, ...more)).status).toBe(0);
    expect(readdirSync(own)).toEqual(['calls.db']);
    expect(readFileSync(file).equals(readFileSync(database))).toBe(true);
    // No other process writes to the journal.
    expect((await run(file, '--session', 'ses_1', '--fork', 'ses_3', '--after', '3')).status).toBe(
      0,
    );
    expect((await run(file)).printed).toContain('3 sessions');
  });

  test('keeps its older layout when it is read, and explains how to update it', async () => {
    const old = join(folder, 'old.db');
    copyFileSync(new URL('../corpus/sqlite-layout-2.journal', import.meta.url), old);
    const before = readFileSync(old);
    const { status, printed } = await run(old);
    expect(status).toBe(1);
    expect(printed).toMatch(/older version of Offstage \(layout 2; .*once without `readOnly`/);
    expect(readFileSync(old).equals(before)).toBe(true);
  });

  test('prints the named session', async () => {
    const { status, printed } = await run(database, '--session', 'ses_1');
    expect(status).toBe(0);
    expect(printed).toMatch(/^ses_1, 2023-11-14 22:13:20 UTC, \d+ entries$/m);
    expect(printed).toMatch(/5 +0:00\.000 user +user\.said “use ride and weather”$/m);
    expect(printed).toMatch(/ride sub_1 +model\.responded ask_user \{"question":"Which class\?"\}/);
    expect(printed).toContain('→ owner: lead agent · question sub_1.q1: answered: comfort');
    expect(printed).toContain('would accept each of them');
    expect(printed.split('\n').filter((line) => Array.from(line).length > 100)).toEqual([]);
  });

  test('exports a recording that continues under another id', async () => {
    const path = join(folder, 'exported.jsonl');
    expect(await run(database, '--session', 'ses_1', '--export', path)).toEqual({
      status: 0,
      printed: `${path}: ${length} entries of ses_1\n`,
    });
    expect(checkRecording(parseRecording(readFileSync(path, 'utf8')))).toBeNull();
    const { status, printed } = await run(
      database,
      '--session',
      'ses_1',
      '--fork',
      'x',
      '--after',
      '9',
    );
    expect([status, printed]).toEqual([0, expect.stringContaining('x is ses_1 up to entry 9')]);
    expect((await run(database)).printed).toMatch(/^ {2}x +9 /m);
    expect(await run(database, '--session', 'ses_1', '--fork', 'x', '--after', '9')).toEqual({
      status: 2,
      printed: 'Expected an id that is not in the journal, got "x"\n',
    });
  });
});

describe('a recording', () => {
  test('prints its session without the session option', async () => {
    const { status, printed } = await run(recorded);
    expect(status).toBe(0);
    expect(printed).toMatch(/^ses, /);
  });

  test('shows the whole state after an entry with --at', async () => {
    const { status, printed } = await run(recorded, '--at', String(asked));
    expect(status).toBe(0);
    expect(printed).toMatch(/^ {2}sub_1\.q1 +open +ride: Which class\?$/m);
    expect(printed).toMatch(/^ {2}ride sub_1 +waiting_for_input +step 2, 5 messages, 1 call$/m);
    expect(printed).toMatch(/^ {2}user +use ride and weather$/m);
    expect(printed).toContain('what the user says is the answer to sub_1.q1');
    expect(printed).toMatch(
      /^ {2}subagent sub_1 +asked sub_1\.q1: the user has not answered: it expires in /m,
    );
    const { printed: json } = await run(recorded, '--at', String(asked), '--json');
    expect(JSON.parse(json)).toMatchObject({ owner: 'sub_1.q1', connection: 'active' });
    const { waits } = JSON.parse(json) as { waits: readonly object[] };
    expect(waits).toContainEqual(
      expect.objectContaining({ of: 'question', id: 'sub_1.q1', cause: 'answer' }),
    );
  });

  test('prints one line per entry with --json', async () => {
    const { printed } = await run(recorded, '--json');
    const lines = printed
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toHaveLength(length);
    expect(lines[1]).toMatchObject({
      number: 2,
      unit: 'ses',
      event: { type: 'session.start' },
      isAccepted: true,
      changes: { connection: 'connecting' },
    });
  });

  test('reports no difference with --check, or names the first one', async () => {
    expect(await run(recorded, '--check')).toEqual({
      status: 0,
      printed: `${recorded}: ${length} entries, and each leads to what it led to\n`,
    });
    const path = join(folder, 'other.jsonl');
    const text = readFileSync(recorded, 'utf8');
    writeFileSync(path, text.replace('"connection":"connecting"', '"connection":"active"'));
    expect(await run(path, '--check')).toEqual({
      status: 1,
      printed: `${path}, entry 2 (\`session.start\` for session of ses):\n  connection: was \`active\`, is \`connecting\`\n`,
    });
  });

  test('creates a fork in another journal with --fork', async () => {
    const into = join(folder, 'forks.db');
    const { status } = await run(recorded, '--fork', 'f', '--after', '12', '--into', into);
    expect(status).toBe(0);
    expect((await run(into)).printed).toMatch(/^ {2}f +12 /m);
  });

  test('marks an entry that this version would reject', async () => {
    const path = join(folder, 'refused.jsonl');
    const text = readFileSync(recorded, 'utf8');
    writeFileSync(path, text.replaceAll('"type":"client.attached"', '"type":"client.flew_in"'));
    const { status, printed } = await run(path);
    expect(status).toBe(1);
    expect(printed).toContain('✗ this version of Offstage would not accept it here');
    expect(printed).toMatch(/would not accept \d+ of them/);
  });

  test('waits for the user after each entry with --step', async () => {
    let waited = 0;
    let printed = '';
    const say = (text: string) => (printed += text);
    const reader = () => Promise.resolve((waited += 1) < 3);
    const status = await replayFor(reader).run([recorded, '--step'], say, say);
    expect([status, waited]).toEqual([0, 3]);
    expect(printed).toContain('transport.ready');
    expect(printed).not.toContain('client.attached');
    // Without a reader, `--step` does not wait.
    expect((await run(recorded, '--step')).printed).toContain('subagents.ended');
  });
});

describe('an invalid call', () => {
  test.each([
    [[], 'Expected one file, got 0'],
    [['a', 'b'], 'Expected one file, got 2'],
    [['a', '--nonsense'], '--nonsense'],
    [['a', '--at', '3', '--fork', 'x'], 'Expected one of --at and --fork, got both'],
    [['a', '--after', '3'], 'Expected --fork with --after and --into'],
  ])('exits with 2 for %j', async (args, message) => {
    const { status, printed } = await run(...args);
    expect(status).toBe(2);
    expect(printed).toContain(message);
    expect(printed).toContain('offstage replay <file or address>');
  });

  test.each([
    [() => [recorded, '--at', '0'], () => `from 1 to ${length}, got \`0\``],
    [() => [recorded, '--at', 'x'], () => `from 1 to ${length}, got \`x\``],
    [() => [recorded, '--at', '99999'], () => `from 1 to ${length}, got \`99999\``],
    [() => [recorded, '--session', 'y'], () => `to be a session of ${recorded} (ses), got \`y\``],
    [() => [recorded, '--fork', 'f', '--after', '3'], () => 'Expected --into with a journal'],
    [() => [database, '--at', '3'], () => 'Expected --session with the id of a session'],
    [() => [database, '--check'], () => 'Expected a recording for --check'],
    [() => [database, '--session', 'ses_1', '--fork', 'f'], () => 'Expected --after with'],
    [() => [recorded, '--export', join(folder, 'no/x')], () => `${join(folder, 'no/x')} cannot be`],
  ])('%#', async (args, message) => {
    const { status, printed } = await run(...args());
    expect(status).toBe(2);
    expect(printed).toContain(message());
  });

  test('names a file that is neither a journal nor a recording, and does not create a missing file', async () => {
    const nothing = join(folder, 'nothing.db');
    expect(await run(nothing)).toEqual({
      status: 2,
      printed: `Expected a SQLite journal or a recording (JSON Lines), got \`${nothing}\`: there is no such file\n`,
    });
    expect(existsSync(nothing)).toBe(false);
    expect((await run(folder)).printed).toContain('it is a folder');
    for (const [text, why] of [
      ['', 'it is empty'],
      ['hello', 'it is something else'],
    ] as const) {
      writeFileSync(nothing, text);
      expect((await run(nothing)).printed).toContain(why);
    }
  });

  test('reports where a recording is damaged', async () => {
    const path = join(folder, 'cut.jsonl');
    writeFileSync(path, readFileSync(recorded, 'utf8').slice(0, -30));
    expect(await run(path)).toEqual({
      status: 1,
      printed: expect.stringContaining(`${path}, line ${length + 1}: expected`),
    });
    const lines = readFileSync(recorded, 'utf8').split('\n');
    const [header = ''] = lines.splice(0, 1);
    lines.splice(0, 1);
    writeFileSync(path, [header.replace(String(length), String(length - 1)), ...lines].join('\n'));
    expect(await run(path)).toEqual({
      status: 1,
      printed: expect.stringContaining('first entry of ses in ses is entry 2'),
    });
  });
});

test('prints a session when run as a program', async () => {
  const file = new URL('../../src/cli/offstage.ts', import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [file, 'replay', database, '--session', 'ses_2'],
    { env: { PATH: process.env['PATH'] } },
  );
  expect(stdout).toContain('question sub_1.q1: open');
});
