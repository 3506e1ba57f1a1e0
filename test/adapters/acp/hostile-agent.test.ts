// Malicious or broken agents: a subagent on such an agent ends with a reason, the user never approves anything unseen,
// and this process continues (ACP-SESSION-3, 4, RELAY-LOOP-4, 5, RELAY-INBOX-2).

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

describe('a run with a hostile agent', () => {
  test.each(['closes its output and lives on', 'writes a line without an end'])(
    'kills an agent that %s',
    async (what) => {
      const { outcome, left } = await run(what);
      expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RELAY_CLOSED' } });
      expect(left).toEqual([]);
    },
  );

  test('reads the complete answer of an agent that exits immediately after it', async () => {
    const { outcome } = await run('ends as soon as it has answered');
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.text).toBe('word '.repeat(10_000));
  });

  test.each(['answers its prompt with null', 'answers its prompt with a word'])(
    'fails when the agent %s',
    async (what) => {
      const { outcome } = await run(what);
      expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RELAY_FAILED' } });
    },
  );

  test('fails with an error that names an unknown stop reason', async () => {
    const { outcome } = await run('ends for a reason that is none');
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'RELAY_FAILED', message: expect.stringContaining('constructor') },
    });
  });

  test('reads only one answer when an agent answers its prompt twice', async () => {
    const { outcome } = await run('answers its prompt twice');
    expect(outcome).toMatchObject({ status: 'completed', text: 'Once.' });
  });

  test.each(['is null from the start', 'numbers its session'])(
    'refuses and kills an agent that %s',
    async (what) => {
      const { outcome, left } = await run(what);
      expect(outcome).toMatchObject({
        status: 'failed',
        error: { code: 'RELAY_FAILED', message: expect.stringContaining('Expected') },
      });
      expect(left).toEqual([]);
    },
  );

  test('asks in plain text when an agent offers more choices than there are buttons', async () => {
    const { outcome, asked } = await run('asks with more choices than buttons', {
      text: 'city 33',
    });
    expect(asked[0]?.question).toMatch(/^Which one\?\n.*City 0, .*City 39/s);
    expect(asked[0]?.options).toEqual([]);
    expect(outcome.text).toBe('{"action":"accept","content":{"answer":"c33"}}');
  });

  test('answers a field that has the name of an Object.prototype member', async () => {
    const { outcome } = await run('asks for a field that every object has', { optionId: 'a' });
    expect(outcome.text).toBe('{"action":"accept","content":{"constructor":["a"]}}');
  });

  test.each(['constructor', '__proto__'])(
    'does not accept the word "%s" as approval',
    async (text) => {
      const { outcome } = await run('asks for consent', { text });
      expect(outcome.text).toBe('{"action":"cancel"}');
    },
  );

  test.each(['hides its arguments', 'asks for permission with a book'])(
    'denies an agent that %s, without asking the user',
    async (what) => {
      const { outcome, asked, errors } = await run(what);
      expect(asked).toEqual([]);
      expect(outcome.text).toContain('"optionId":"no"');
      expect(errors.join()).toContain('Tidy up');
    },
  );

  test('cancels a permission request for a tool without a name', async () => {
    const { outcome, asked } = await run('asks for a tool without a name');
    expect(asked).toEqual([]);
    expect(outcome.text).toContain('"cancelled"');
  });

  test('keeps the journal small when an agent sends book-length arguments', async () => {
    const { outcome, journal } = await run('has books for arguments');
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
    let size = 0;
    for (const entry of journal.read({})) size += JSON.stringify(entry).length;
    expect(size).toBeLessThan(16 * 1024 * 1024);
  });

  test('caps usage when an agent reports infinite tokens', async () => {
    const { outcome } = await run('counts tokens without end');
    expect(outcome.status).toBe('completed');
    const { usage } = outcome;
    expect(JSON.parse(JSON.stringify(usage))).toEqual(usage);
    expect(Object.values(usage).every((value) => Number.isFinite(value))).toBe(true);
  });

  test.runIf(existsSync('/proc/self/stat'))(
    'ends a child process that the agent leaves behind',
    async () => {
      const { outcome, left } = await run('leaves a child behind');
      expect(outcome.status).toBe('completed');
      expect(left).toEqual([]);
    },
  );
});
