// `offstage sessions` on a journal that no process has open, and on a running process.

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { sessions } from '../../src/cli/sessions/sessions.ts';
import { exportRecording, forkSession } from '../../src/entries/replay.ts';
import { createRuntime } from '../../src/index.ts';
import { inMidQuestion } from '../actors/replay/support.ts';
import { rideSession, served } from '../serve/support/served.ts';
import { turns } from '../support/crashes.ts';
import { calls, say } from '../support/subagent-runs.ts';

const folder = mkdtempSync(join(tmpdir(), 'offstage-sessions-'));
const database = join(folder, 'calls.db');
const recorded = join(folder, 'calls.jsonl');
let questionId = '';

beforeAll(async () => {
  const { of, talk, question } = await inMidQuestion();
  questionId = question.requestId;
  talk.kill();
  const { journal } = of.begin().runtime;
  writeFileSync(recorded, await exportRecording(journal, 'ses'));
  const into = sqliteJournal({ path: database, environment: nodeEnvironment() });
  await forkSession(journal, { from: 'ses', after: of.entries.length, to: 'ses', into });
  into.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  let printed = '';
  let complained = '';
  const status = await sessions.run(
    args,
    (text) => void (printed += text),
    (text) => void (complained += text),
  );
  return { status, printed, complained };
}

/** Copies the journal while a question of the session is open. */
function copied(): string {
  const path = join(mkdtempSync(join(folder, 'own-')), 'calls.db');
  copyFileSync(database, path);
  return path;
}

function entriesOf(path: string) {
  const journal = sqliteJournal({ path, environment: nodeEnvironment(), readOnly: true });
  try {
    return journal.read();
  } finally {
    journal.close();
  }
}

describe('a journal', () => {
  test('remains unchanged when ls and show print it as text or as JSON', async () => {
    const before = readFileSync(database);
    expect((await run('ls', '--journal', database)).printed).toMatch(
      /1 session\n\n.*\n {2}ses +\d+ /,
    );
    const listed = await run('ls', '--journal', database, '--json');
    expect(JSON.parse(listed.printed)).toMatchObject([{ scope: 'ses' }]);
    const shown = await run('show', '--journal', database, '--session', 'ses');
    expect(shown).toMatchObject({ status: 0, complained: '' });
    expect(shown.printed).toContain('Which class?');
    expect(shown.printed).toMatch(
      /usage +lead agent +30 tokens\n +subagents +60 tokens\n +together +90 tokens\n/,
    );
    expect(shown.printed).toContain(`question ${questionId}`);
    const json = await run('show', '--journal', database, '--session', 'ses', '--json');
    expect(JSON.parse(json.printed)).toMatchObject({
      sessionId: 'ses',
      questions: [{ requestId: questionId, state: 'open' }],
      waits: expect.arrayContaining([expect.objectContaining({ id: questionId })]) as unknown,
    });
    expect((await run('show', '--journal', recorded, '--session', 'ses')).status).toBe(0);
    expect(readFileSync(database)).toEqual(before);
  });

  test("SESSIONS-1: gains one entry with the user's name for each answer, message and cancellation", async () => {
    const path = copied();
    const at = ['--journal', path, '--session', 'ses', '--by', 'ann'];
    const { length } = entriesOf(path);
    const message = await run('message', 'sub_1', 'A window seat', ...at, '--mode', 'queue');
    expect(message).toEqual({ status: 0, printed: 'sub_1: written to as ann\n', complained: '' });
    const answer = await run('answer', questionId, '--text', 'comfort', ...at, '--json');
    expect(JSON.parse(answer.printed)).toEqual({ accepted: true, by: 'ann' });
    const cancelled = await run('cancel', 'sub_1', '--reason', 'no more', ...at);
    expect(cancelled.printed).toBe('sub_1: cancelled as ann\n');
    expect(
      entriesOf(path)
        .slice(length)
        .map(({ unit, event }) => ({ unit, ...event })),
    ).toMatchObject([
      { unit: 'sub_1', type: 'subagent.message', text: 'A window seat', mode: 'queue', by: 'ann' },
      { unit: 'ses', type: 'answer.given', requestId: questionId, text: 'comfort', by: 'ann' },
      { unit: 'sub_1', type: 'subagent.cancel', reason: 'no more', by: 'ann' },
    ]);
    const raised = await run('raise', 'sub_1', '--tokens', '5000', ...at);
    expect(raised).toMatchObject({ status: 1, complained: 'sub_1: refused: over\n' });
    const own = await run('raise', 'session', '--tokens', '5000', ...at);
    expect(own).toMatchObject({ status: 1, complained: 'session: refused: no_such_limit\n' });
    const twice = await run('answer', questionId, '--text', 'coach', ...at);
    expect(twice).toEqual({ status: 1, printed: '', complained: `${questionId}: refused: over\n` });
    expect(await run('cancel', 'sub_1', ...at)).toMatchObject({ status: 1 });
    expect(entriesOf(path)).toHaveLength(length + 3);
  });

  test('SESSIONS-2: does not change while another process is running the session', async () => {
    const path = copied();
    const journal = sqliteJournal({ path, environment: nodeEnvironment() });
    onTestFinished(() => journal.close());
    const { length } = journal.read();
    const { status, complained } = await run(
      'answer',
      questionId,
      '--text',
      'x',
      '--journal',
      path,
      '--session',
      'ses',
    );
    expect(status).toBe(1);
    expect(complained).toContain('Act through that process: --url');
    expect(journal.read()).toHaveLength(length);
  });

  test.each([
    [['ls', '--journal', 'nowhere.db'], 'there is no such file'],
    [['ls', '--journal', '/'], 'it is a folder'],
    [['show', '--journal', 'DATABASE'], 'Expected --session'],
    [['show', '--journal', 'DATABASE', '--session', '__proto__'], 'got `__proto__`'],
    [['cancel', 'sub_1', '--journal', 'DATABASE', '--session', 'ses_9'], 'no session "ses_9"'],
    [['cancel', 'sub_1', '--journal', 'RECORDED', '--session', 'ses'], 'a recording is read-only'],
    [
      ['answer', 'q', '--journal', 'DATABASE', '--session', 'ses'],
      'Expected one of --option, --text',
    ],
    [['answer', 'q', '--approve', '--deny', '--journal', 'DATABASE'], 'Expected one of --option'],
    [['answer', '--text', 'x', '--journal', 'DATABASE'], 'Expected the id of a question'],
    [
      ['message', 'sub_1', ' ', '--journal', 'DATABASE'],
      'Expected the id of a subagent and the words',
    ],
    [['message', 'sub_1', 'x', '--mode', 'shout', '--journal', 'DATABASE'], 'got `shout`'],
    [['ls'], 'Expected one of --journal and --url, got neither'],
    [['ls', '--journal', 'DATABASE', '--url', 'http://x'], '--journal and --url, got both'],
    [['ls', '--url', 'nonsense'], 'expected `url` to be an address'],
    [['ls', '--url', 'http://x', '--by', 'ann'], 'Expected no --by with --url'],
    [['eat', '--journal', 'DATABASE'], 'Expected one of ls, show, answer, cancel, message, raise'],
    [['raise', 'sub_1', '--journal', 'DATABASE'], 'Expected one of --tokens, --steps'],
    [['raise', 'sub_1', '--tokens', 'many', '--journal', 'DATABASE'], 'got `many`'],
    [
      ['raise', 'sub_1', '--time-ms=-1', '--journal', 'DATABASE'],
      'Expected --time-ms to be a number',
    ],
    [['ls', '--jornal', 'x'], "Unknown option '--jornal'"],
  ])('reports the invalid call %j on standard error', async (args, message) => {
    const known = new Map([
      ['DATABASE', database],
      ['RECORDED', recorded],
    ]);
    const { status, printed, complained } = await run(
      ...args.map((word) => known.get(word) ?? word),
    );
    expect(status).toBe(2);
    expect(printed).toBe('');
    expect(complained).toContain(message);
  });

  test('does not change if the subagent or the question is unknown or the id is hostile', async () => {
    const path = copied();
    const at = ['--journal', path, '--session', 'ses'];
    const { length } = entriesOf(path);
    for (const id of [
      'sub_9',
      '__proto__',
      '\u0000',
      `x'; drop table entries; --`,
      'ü'.repeat(5000),
    ]) {
      expect(await run('cancel', id, ...at)).toMatchObject({ status: 1, printed: '' });
      expect(await run('answer', id, '--text', 'x', ...at)).toMatchObject({
        status: 1,
        printed: '',
      });
    }
    const identity = await run('cancel', 'sub_1', ...at, '--by', '\u0000');
    expect(identity).toMatchObject({ status: 2, printed: '' });
    expect(entriesOf(path)).toHaveLength(length);
  });
});

describe('a running process', () => {
  async function running() {
    const session = rideSession({ runtime: createRuntime(), sessionId: 's1' });
    const { url } = await served({ session: () => session });
    onTestFinished(() => session.close());
    vi.stubEnv('OFFSTAGE_TOKEN', 'ann');
    onTestFinished(() => void vi.unstubAllEnvs());
    await session.start();
    await session.sendText('use book_ride');
    const open = () =>
      session.store.getSnapshot().context.questions.find(({ state }) => state !== 'queued');
    await expect.poll(open).toBeDefined();
    return { session, url, requestId: open()?.requestId ?? '' };
  }

  test("SESSIONS-1: appears in the list and accepts commands from the token's user", async () => {
    const { session, url, requestId } = await running();
    expect((await run('ls', '--url', url)).printed).toContain('1 questions open');
    const shown = await run('show', '--url', url);
    expect(shown.printed).toContain('Economy or Premium?');
    const { id = '' } = session.subagents.list()[0] ?? {};
    const message = await run('message', id, 'A window seat', '--mode', 'queue', '--url', url);
    expect(message).toMatchObject({ status: 0, printed: `${id}: written to as ann\n` });
    const answered = await run('answer', requestId, '--option', 'premium', '--url', url, '--json');
    expect(JSON.parse(answered.printed)).toEqual({ accepted: true, by: 'ann' });
    const late = await run('answer', requestId, '--option', 'economy', '--url', url);
    expect(late).toMatchObject({ status: 1, complained: `${requestId}: refused: over\n` });
  });

  test('SESSIONS-1: lets only an operator increase a budget', async () => {
    const session = rideSession({
      runtime: createRuntime(),
      sessionId: 's1',
      subagents: {
        wait: {
          script: turns(calls(['ask_user', { question: 'When?' }, 'c1']), say('done')),
          config: { interactive: true, budget: { steps: 2 } },
        },
      },
    });
    const { url } = await served({ session: () => session });
    onTestFinished(() => session.close());
    await session.start();
    await session.sendText('use wait');
    await expect.poll(() => session.subagents.list()[0]?.state).toBe('waiting_for_input');
    const { id = '' } = session.subagents.list()[0] ?? {};
    const at = ['--steps', '5', '--url', url, '--token'];
    const user = await run('raise', id, ...at, 'ann');
    expect(user).toMatchObject({ status: 1, printed: '' });
    expect(user.complained).toContain('Expected an operator');
    expect((await run('raise', id, ...at, 'root')).printed).toBe(`${id}: raised as root\n`);
    const json = await run('raise', id, '--json', ...at, 'root');
    expect(JSON.parse(json.printed)).toEqual({ accepted: true, limits: { steps: 5 }, by: 'root' });
    const none = await run('raise', id, '--tokens', '5', '--url', url, '--token', 'root');
    expect(none).toMatchObject({ status: 1 });
    expect(none.complained).toContain('it has no limit of tokens of its own');
  });

  test('cancels a subagent for a user, but not for an observer', async () => {
    const { session, url } = await running();
    const { id = '' } = session.subagents.list()[0] ?? {};
    const watcher = await run('cancel', id, '--url', url, '--token', 'eve');
    expect(watcher).toMatchObject({ status: 1, printed: '' });
    expect(watcher.complained).toContain('a watcher does nothing');
    expect((await run('cancel', id, '--url', url)).printed).toBe(`${id}: cancelled as ann\n`);
    await expect.poll(() => session.subagents.get(id)?.state).toBe('cancelled');
    expect(await run('cancel', id, '--url', url)).toMatchObject({ status: 1 });
  });

  test('fails if the token is invalid or no server listens at the URL', async () => {
    const { url } = await running();
    const refused = await run('show', '--url', url, '--token', 'nobody');
    expect(refused.status).toBe(1);
    expect(refused.complained).toContain('Cannot connect to 127.0.0.1');
    expect(refused.complained).not.toContain('nobody:');
    const nowhere = await run('show', '--url', 'http://ann:secret@127.0.0.1:1/offstage?key=secret');
    expect(nowhere.status).toBe(1);
    expect(nowhere.complained).toContain('Cannot connect to 127.0.0.1:1');
    expect(nowhere.complained).not.toContain('secret');
  });
});
