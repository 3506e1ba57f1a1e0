// The ACP relay with the real Claude Code behind the Agent Client Protocol (`claude-agent-acp`): the relay suite, its
// mode, and random kills of the program or of Claude.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AcpRelayOptions } from '../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import type { AskedQuestion } from '../../src/actors/contracts/records.ts';
import { createRuntime } from '../../src/index.ts';
import { runSubagent } from '../../src/entries/subagents.ts';
import { actsPrompt } from '../../src/testing/index.ts';
import { relayConformance } from '../suites/relays/index.ts';
import {
  KILL_TIMEOUT_MS,
  killProcessesIn,
  linesOf,
  playKills,
  requestsTo,
  SEEDS,
} from '../support/relay-kills.ts';
import { claudeAcpRelay } from './support/claude-acp-relay.ts';
import { titledAsActs } from './support/claude-stage.ts';
import { expectHeld } from './support/kill-checks.ts';
import { messagesEndpoint } from './support/messages-endpoint.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-acp-program.ts', import.meta.url));

async function stage(options: Partial<AcpRelayOptions> = {}) {
  const endpoint = await messagesEndpoint();
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-claude-acp-'));
  const log = join(folder, 'log');
  mkdirSync(join(folder, 'processes'));
  const close = (): void => {
    endpoint.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const running = (): number => readdirSync(join(folder, 'processes')).length;
  return { relay: claudeAcpRelay(folder, endpoint.url, log, options), log, running, close };
}

describe('the suite of relays', () => {
  const cases = relayConformance({
    name: 'Claude behind ACP',
    // The test can neither make the real program ignore a cancellation nor corrupt its messages.
    shows: ['die'],
    graceMs: 5_000,
    patience: 5_000_000,
    async open() {
      const { relay, ...rest } = await stage();
      return { ...rest, relay: titledAsActs(relay) };
    },
  });
  for (const { name, skipped } of cases)
    if (skipped !== null) console.warn(`Left out: ${name}: ${skipped}`);
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run());
});

describe('ACP-SESSION-5: its mode', () => {
  async function play(configOptions: Readonly<Record<string, string | boolean>>) {
    const { relay, log, running, close } = await stage({ configOptions });
    onTestFinished(close);
    const asked: AskedQuestion[] = [];
    const permission = { title: 'ask', kind: 'other', input: { path: 'a' } };
    const outcome = await runSubagent(
      { name: 'coder', instructions: 'You write code.', relay },
      actsPrompt({ permission }, { say: 'Done.' }),
      {
        runtime: createRuntime({ environment: nodeEnvironment() }),
        onQuestion(question) {
          asked.push(question);
          return { approved: true };
        },
      },
    ).result;
    expect(running()).toBe(0);
    return { outcome, asked, done: linesOf(log).map(({ what }) => what) };
  }

  test('asks the user with `default`', async () => {
    const { outcome, asked, done } = await play({ mode: 'default' });
    expect(outcome).toMatchObject({ status: 'completed', text: 'permitted. Done.' });
    expect(asked).toHaveLength(1);
    expect(done).toEqual(['ask']);
  });

  test('does not ask for permission with `bypassPermissions`', async () => {
    const { outcome, asked, done } = await play({ mode: 'bypassPermissions' });
    expect(outcome).toMatchObject({ status: 'completed', text: 'permitted. Done.' });
    expect(asked).toEqual([]);
    expect(done).toEqual(['ask']);
  });

  test('fails before anything starts if the mode is unknown, and lists the valid modes', async () => {
    const { outcome, done } = await play({ mode: 'cautious' });
    expect(outcome).toMatchObject({
      status: 'failed',
      error: {
        code: 'RELAY_FAILED',
        message: expect.stringMatching(
          /option "mode" to "cautious".*default, acceptEdits/,
        ) as string,
      },
    });
    expect(done).toEqual([]);
  });
});

test.each(SEEDS)('seed %i', { timeout: KILL_TIMEOUT_MS }, async (seed) => {
  const endpoint = await messagesEndpoint();
  onTestFinished(() => endpoint.close());
  const marksIn = (folder: string): string => join(folder, 'claude', 'processes');
  const kills = {
    seed,
    program: PROGRAM,
    args: [endpoint.url],
    watch: requestsTo(endpoint),
    killAgent(folder: string) {
      killProcessesIn(marksIn(folder));
    },
  };
  await playKills(kills, (played) => expectHeld(played, endpoint, marksIn(played.folder)));
});
