// Forty subagents run at once on agents behind A2A and MCP. When they have ended, the handles and the memory of this
// process are the same as before, and the servers have nothing open.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { a2aRelay } from '../../../src/adapters/a2a/index.ts';
import { mcpRelay } from '../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { type Relay, runSubagent } from '../../../src/entries/subagents.ts';
import { createRuntime } from '../../../src/index.ts';
import { actsPrompt } from '../../../src/testing/index.ts';
import { agentServer } from '../a2a/support/agent-server.ts';
import { actingServer } from '../mcp/support/acting-server.ts';

const AGENTS = 40;
const MAX_GROWTH = 16 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const allTimers = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

interface Served {
  readonly relay: Relay;
  readonly running: () => number;
  /** The timers of the server, which also runs in this process. */
  readonly timers: () => number;
}

async function a2a(): Promise<Served> {
  const server = await agentServer();
  onTestFinished(() => server.close());
  return {
    relay: a2aRelay({ url: server.url, pollMs: 50 }),
    running: () => server.streams(),
    timers: () => 0,
  };
}

const mcp = (protocol: '2025-11-25' | '2026-07-28') => async (): Promise<Served> => {
  const server = await actingServer({ protocol });
  onTestFinished(() => server.close());
  const relay = mcpRelay({ url: server.url, tool: 'work', protocol, pollMs: 50 });
  // The SDK's store keeps each task for its time to live.
  const timers = (): number => (protocol === '2025-11-25' ? server.told.length : 0);
  return { relay, running: () => server.running(), timers };
};

test.each([
  ['A2A', a2a],
  ['MCP 2025-11-25', mcp('2025-11-25')],
  ['MCP 2026-07-28', mcp('2026-07-28')],
] as const)('runs forty agents behind %s, and releases all of them', async (_name, serve) => {
  const { relay, running, timers: timersOfServer } = await serve();
  const timers = (): number => allTimers() - timersOfServer();
  const runtime = createRuntime({ environment: nodeEnvironment() });
  const task = actsPrompt({ question: 'When?' }, { say: 'Done.' });
  /** Runs this many subagents. All of them have asked before the first one is answered. */
  const round = async (count: number) => {
    const all = Promise.withResolvers<void>();
    let asked = 0;
    const outcomes = await Promise.all(
      Array.from(
        { length: count },
        () =>
          runSubagent({ name: 'agent', instructions: 'Do it.', relay }, task, {
            runtime,
            onQuestion: async () => {
              asked += 1;
              if (asked === count) all.resolve();
              await all.promise;
              return { text: 'At noon' };
            },
          }).result,
      ),
    );
    return outcomes;
  };
  /** Connections and timers end in the following turns of the event loop, so this waits for them. */
  const settled = async (isSo: () => boolean): Promise<void> => {
    for (let turn = 0; turn < 100_000 && !isSo(); turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
  };
  await round(1);
  await settled(() => running() === 0);
  collect();
  const before = { timers: timers(), memory: process.memoryUsage().heapUsed };
  const outcomes = await round(AGENTS);
  expect(outcomes.map(({ status }) => status)).toEqual(Array(AGENTS).fill('completed'));
  expect(outcomes.every(({ text }) => text.includes('answer: At noon'))).toBe(true);
  await settled(() => running() === 0 && timers() <= before.timers);
  expect(running()).toBe(0);
  expect(timers()).toBeLessThanOrEqual(before.timers);
  collect();
  expect(process.memoryUsage().heapUsed - before.memory).toBeLessThan(MAX_GROWTH);
});
