// Subagents on the real Codex behind the Agent Client Protocol (ACP-SESSION-1, 3; RELAY-LOOP-1..3): permissions,
// denials, cancellations, and kills of Codex and of the program.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sweep } from '../../src/adapters/agent-process/agent-process.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import type { AskedQuestion } from '../../src/actors/contracts/records.ts';
import { createRuntime, type GivenAnswer } from '../../src/index.ts';
import { runSubagent } from '../../src/entries/subagents.ts';
import { taskManager } from '../../src/tasks/index.ts';
import { actsPrompt, type RelayAct } from '../../src/testing/index.ts';
import {
  count,
  KILL_TIMEOUT_MS,
  killProcessesIn,
  linesOf,
  playKills,
  processesIn,
  requestsTo,
  SEEDS,
} from '../support/relay-kills.ts';
import { codexRelay } from './support/codex-relay.ts';
import { responsesEndpoint } from './support/responses-endpoint.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

const NOTE: RelayAct = { permission: { title: 'Note it', kind: 'execute', input: { path: 'a' } } };

async function stage(acts: readonly RelayAct[], asks = false) {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-codex-'));
  const log = join(folder, 'log');
  const endpoint = await responsesEndpoint(log);
  onTestFinished(() => {
    endpoint.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const codex = codexRelay(folder, endpoint.url);
  const relay = asks
    ? taskManager({
        relay: codex,
        questionIn: (text) => (text.trim().endsWith('?') ? text.trim() : null),
      }).relay
    : codex;
  const asked: AskedQuestion[] = [];
  const doubts: string[] = [];
  const marks = (): readonly string[] => readdirSync(join(folder, 'processes'));
  const begin = (answer: (question: AskedQuestion) => GivenAnswer | Promise<GivenAnswer>) =>
    runSubagent(
      {
        name: 'coder',
        instructions: 'You write code.',
        relay,
        retry: { maxAttempts: 3, baseDelayMs: 0 },
      },
      actsPrompt(...acts),
      {
        runtime: createRuntime({ environment: nodeEnvironment() }),
        onQuestion: async (question) => {
          asked.push(question);
          return answer(question);
        },
        onCallInDoubt: ({ input }) => void doubts.push(JSON.stringify(input)),
      },
    );
  const noted = (): string => (existsSync(log) ? readFileSync(log, 'utf8') : '');
  const ended = () => {
    expect(marks()).toEqual([]);
    // Codex called nothing but its model.
    expect([...endpoint.requests]).toEqual(['POST /v1/responses']);
  };
  return { endpoint, asked, doubts, begin, marks, noted, ended };
}

describe('a permission', () => {
  test('names the exact command, which runs once if the user permits it', async () => {
    const { begin, asked, noted, ended } = await stage([NOTE, { say: 'Done.' }]);
    const outcome = await begin(() => ({ approved: true })).result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
    expect(asked).toHaveLength(1);
    expect(JSON.stringify(asked[0]?.action)).toContain('echo a >> ');
    expect(noted()).toBe('a\n');
    // Codex reports a command as running before it asks for permission.
    const calls = outcome.toolLedger.filter(({ toolName }) => toolName === 'agent_tool');
    expect(calls.map(({ approval, status }) => [approval, status]).at(-1)).toEqual(['given', 'ok']);
    ended();
  });

  test('ends the turn when denied and reports the subagent as denied, not as cancelled', async () => {
    const { begin, noted, ended } = await stage([NOTE, { say: 'Done.' }]);
    const outcome = await begin(() => ({ approved: false })).result;
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RELAY_DENIED' } });
    expect(noted()).toBe('');
    ended();
  });
});

test("passes a question in Codex's text on to the user, as the task manager's rule requires", async () => {
  const { begin, asked, ended } = await stage([{ question: 'Which one?' }], true);
  const outcome = await begin(() => ({ text: 'The blue one' })).result;
  expect(asked.map(({ kind, question }) => [kind, question])).toEqual([
    ['question', expect.stringMatching(/Which one\?$/)],
  ]);
  expect(outcome).toMatchObject({
    status: 'completed',
    text: expect.stringContaining('told: The blue one') as string,
  });
  ended();
});

test('ends its turn and its processes when it is cancelled', async () => {
  const { begin, endpoint, marks, ended } = await stage([{ untilCancelled: true }]);
  const { promise: atWork, resolve } = Promise.withResolvers<void>();
  endpoint.onRequest = resolve;
  const run = begin(() => ({ approved: true }));
  await atWork;
  expect(marks()).toHaveLength(1);
  run.cancel('not needed');
  expect(await run.result).toMatchObject({ status: 'cancelled' });
  ended();
});

test('reconnects when Codex is killed during a question, and asks the question again', async () => {
  const { begin, asked, doubts, endpoint, marks, noted, ended } = await stage([
    NOTE,
    { say: 'Done.' },
  ]);
  const outcome = await begin(() => {
    if (asked.length > 1) return { approved: true };
    process.kill(-Number.parseInt(marks()[0] ?? '', 10), 'SIGKILL');
    // This answer is no longer expected.
    return new Promise<never>(() => {});
  }).result;
  expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
  expect(asked).toHaveLength(2);
  expect(noted()).toBe('a\n');
  expect([...endpoint.prompts].at(-1)).toContain('Your connection ended');
  // The command had not run.
  expect(doubts).toEqual([]);
  ended();
});

test.each(SEEDS)('seed %i', { timeout: KILL_TIMEOUT_MS }, async (seed) => {
  const log = join(mkdtempSync(join(tmpdir(), 'offstage-test-codex-log-')), 'log');
  const endpoint = await responsesEndpoint(log);
  onTestFinished(() => endpoint.close());
  const marksIn = (folder: string): string => join(folder, 'processes');
  const kills = {
    seed,
    program: PROGRAM,
    args: [endpoint.url],
    watch: requestsTo(endpoint),
    killAgent(folder: string) {
      killProcessesIn(marksIn(folder));
    },
  };
  await playKills(kills, ({ folder, told, outcome }) => {
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' });
    // Each command needed a permission, and each permission allowed one command.
    const noted = linesOf(log).length;
    expect(noted).toBeGreaterThanOrEqual(2);
    expect(noted).toBeLessThanOrEqual(count(told, 'approved'));
    sweep(marksIn(folder));
    expect(processesIn(marksIn(folder))).toEqual([]);
  });
});
