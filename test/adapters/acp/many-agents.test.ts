// Runs forty agents at once in one process. When they have ended, the processes, handles and memory are the same as
// before (ACP-PROCESS-1).

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { acpRelay } from '../../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { runSubagent } from '../../../src/actors/subagents/run-subagent.ts';
import { createRuntime, defineSubagent } from '../../../src/index.ts';

const AGENTS = 40;
const AGENT = fileURLToPath(new URL('support/small-agent.ts', import.meta.url));
const MAX_GROWTH = 16 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Returns the number of processes whose environment has this mark. */
function processesOf(mark: string): number {
  return readdirSync('/proc').filter((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`MARK=${mark}`)
      );
    } catch {
      return false;
    }
  }).length;
}

const handles = (): number =>
  process.getActiveResourcesInfo().filter((name) => /Process|Pipe|Timeout/.test(name)).length;

test.runIf(existsSync('/proc/self/environ'))(
  'runs forty agents at once, and leaves no process or folder behind',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'offstage-test-many-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const config = defineSubagent({
      name: 'coder',
      instructions: 'You write code.',
      relay: acpRelay({
        command: process.execPath,
        args: [AGENT],
        cwd: folder,
        env: { MARK: folder },
        stateFolder: folder,
        graceMs: 60_000,
      }),
    });
    const runtime = createRuntime({ environment: nodeEnvironment() });
    /** Runs this many agents. All of them have asked before the first one is answered. */
    const round = async (count: number) => {
      const all = Promise.withResolvers<void>();
      let asked = 0;
      let most = 0;
      const outcomes = await Promise.all(
        Array.from(
          { length: count },
          () =>
            runSubagent(config, 'the task', {
              runtime,
              onQuestion: async () => {
                asked += 1;
                if (asked === count) {
                  most = processesOf(folder);
                  all.resolve();
                }
                await all.promise;
                return { approved: true };
              },
            }).result,
        ),
      );
      return { outcomes, most };
    };
    await round(1);
    collect();
    const before = { handles: handles(), memory: process.memoryUsage().heapUsed };
    const { outcomes, most } = await round(AGENTS);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(AGENTS).fill('completed'));
    // One call was permitted, and no lasting permission was given.
    expect(outcomes.every(({ text }) => text.includes('"once"'))).toBe(true);
    expect(outcomes[0]?.usage).toMatchObject({ inputTokens: 30, outputTokens: 4 });
    // Each agent with its child.
    expect(most).toBe(2 * AGENTS);
    expect(readdirSync(folder)).toEqual([]);
    // Pipes close in the following turns of the event loop.
    for (let turn = 0; turn < 100_000 && handles() > before.handles; turn += 1)
      await new Promise((resolve) => setImmediate(resolve));
    expect(handles()).toBeLessThanOrEqual(before.handles);
    expect(processesOf(folder)).toBe(0);
    collect();
    expect(process.memoryUsage().heapUsed - before.memory).toBeLessThan(MAX_GROWTH);
  },
);
