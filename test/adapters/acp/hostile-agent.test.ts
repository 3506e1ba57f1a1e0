// Agents that mean harm, or are broken: a subagent on one ends, and says why; the user consents to nothing unseen; and
// this process goes on (ACP-SESSION-3, 4, RELAY-LOOP-4, 5, RELAY-INBOX-2).

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { acpRelay } from '../../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import {
  createRuntime,
  memoryJournal,
  type GivenAnswer,
  type SubagentConfig,
} from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';

const AGENT = fileURLToPath(new URL('support/hostile-agent.ts', import.meta.url));

async function run(
  what: string,
  answer: GivenAnswer = { approved: true },
  more: Partial<SubagentConfig> = {},
) {
  const stateFolder = mkdtempSync(join(tmpdir(), 'offstage-test-hostile-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true }));
  const asked: AskedQuestion[] = [];
  const errors: string[] = [];
  const journal = memoryJournal();
  const { result } = runSubagent(
    {
      name: 'coder',
      instructions: 'Do it.',
      retry: { maxAttempts: 1 },
      relay: acpRelay({
        command: process.execPath,
        args: [AGENT, what],
        stateFolder,
        graceMs: 500,
        startTimeoutMs: 30_000,
      }),
      ...more,
    },
    'the task',
    {
      runtime: createRuntime({ environment: nodeEnvironment(), journal }),
      onQuestion: (question) => {
        asked.push(question);
        return Promise.resolve(answer);
      },
      onError: (error) => void errors.push(String(error)),
    },
  );
  const outcome = await result;
  return { outcome, asked, errors, journal, left: readdirSync(stateFolder) };
}

describe('an agent that', () => {
  test.each(['closes its output and lives on', 'writes a line without an end'])(
    '%s is ended',
    async (what) => {
      const { outcome, left } = await run(what);
      expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RELAY_CLOSED' } });
      expect(left).toEqual([]);
    },
  );

  test('ends as soon as it has answered is heard to the end', async () => {
    const { outcome } = await run('ends as soon as it has answered');
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.text).toBe('word '.repeat(10_000));
  });

  test.each(['answers its prompt with null', 'answers its prompt with a word'])(
    '%s fails',
    async (what) => {
      const { outcome } = await run(what);
      expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RELAY_FAILED' } });
    },
  );

  test('ends for a reason that is none fails, and it is named', async () => {
    const { outcome } = await run('ends for a reason that is none');
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'RELAY_FAILED', message: expect.stringContaining('constructor') },
    });
  });

  test('answers its prompt twice is heard once', async () => {
    const { outcome } = await run('answers its prompt twice');
    expect(outcome).toMatchObject({ status: 'completed', text: 'Once.' });
  });

  test.each(['is null from the start', 'numbers its session'])(
    '%s is no agent, and is ended',
    async (what) => {
      const { outcome, left } = await run(what);
      expect(outcome).toMatchObject({
        status: 'failed',
        error: { code: 'RELAY_FAILED', message: expect.stringContaining('Expected') },
      });
      expect(left).toEqual([]);
    },
  );

  test('asks with more choices than buttons is answered in words', async () => {
    const { outcome, asked } = await run('asks with more choices than buttons', {
      text: 'city 33',
    });
    expect(asked[0]?.question).toMatch(/^Which one\?\n.*City 0, .*City 39/s);
    expect(asked[0]?.options).toEqual([]);
    expect(outcome.text).toBe('{"action":"accept","content":{"answer":"c33"}}');
  });

  test('asks for a field that every object has gets its value', async () => {
    const { outcome } = await run('asks for a field that every object has', { optionId: 'a' });
    expect(outcome.text).toBe('{"action":"accept","content":{"constructor":["a"]}}');
  });

  test.each(['constructor', '__proto__'])(
    'asks for consent does not take the word "%s" for one',
    async (text) => {
      const { outcome } = await run('asks for consent', { text });
      expect(outcome.text).toBe('{"action":"cancel"}');
    },
  );

  test.each(['hides its arguments', 'asks for permission with a book'])(
    '%s is not permitted anything, and the user is not asked',
    async (what) => {
      const { outcome, asked, errors } = await run(what);
      expect(asked).toEqual([]);
      expect(outcome.text).toContain('"optionId":"no"');
      expect(errors.join()).toContain('Tidy up');
    },
  );

  test('asks for a tool without a name is answered', async () => {
    const { outcome, asked } = await run('asks for a tool without a name');
    expect(asked).toEqual([]);
    expect(outcome.text).toContain('"cancelled"');
  });

  test('has books for arguments fills no journal', async () => {
    const { outcome, journal } = await run('has books for arguments');
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
    let size = 0;
    for (const entry of journal.read({})) size += JSON.stringify(entry).length;
    expect(size).toBeLessThan(16 * 1024 * 1024);
  });

  test('counts tokens without end is counted in numbers', async () => {
    const { outcome } = await run('counts tokens without end');
    expect(outcome.status).toBe('completed');
    const { usage } = outcome;
    expect(JSON.parse(JSON.stringify(usage))).toEqual(usage);
    expect(Object.values(usage).every((value) => Number.isFinite(value))).toBe(true);
  });

  test.runIf(existsSync('/proc/self/stat'))('leaves a child behind does not', async () => {
    const { outcome, left } = await run('leaves a child behind');
    expect(outcome.status).toBe('completed');
    expect(left).toEqual([]);
  });
});
