// Temporal's test server (Java, in memory) and a worker, as processes of their own.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporalJobs, temporalRuns } from '../../../src/adapters/temporal/index.ts';
import { openBridge } from './bridge.ts';
import type { LiveEngine, WorkersDo } from './live-engine.ts';
import { freePort, listens, living } from './processes.ts';
import { bundle, connect } from './temporal-client.js';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const library = here('../node_modules/.temporal-server/dependency');

/** Returns why there is no server; null: there is one. Fetches it the first time, if Maven is there. */
export function missingServer(): string | null {
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' });
  } catch {
    return 'no Java';
  }
  if (existsSync(library)) return null;
  const pom = here('../temporal-server.xml');
  const goal = ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DincludeScope=runtime'];
  try {
    execFileSync('mvn', [...goal, `-DoutputDirectory=${library}`], { stdio: 'ignore' });
    return null;
  } catch {
    return 'no Maven, or no Maven Central';
  }
}

export async function openTemporal(
  hands: WorkersDo,
  world?: string,
): Promise<LiveEngine & { readonly client: Awaited<ReturnType<typeof connect>>['client'] }> {
  const directory = await mkdtemp(join(tmpdir(), 'temporal-'));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const code = join(directory, 'workflows.js');
  await bundle(code);
  const bridge = await openBridge();
  const server = living({
    command: 'java',
    args: [
      '-XX:TieredStopAtLevel=1',
      '-cp',
      join(library, '*'),
      'io.temporal.testserver.TestServer',
      String(port),
    ],
    isUp: () => listens(port),
  });
  await server.start();
  const worker = living({
    command: process.execPath,
    args: [here('temporal-worker.js')],
    env: { ADDRESS: address, BUNDLE: code, BRIDGE: world ?? bridge.url, HANDS: hands ?? '' },
    isUp: async (output) => output.includes('up'),
  });
  if (hands) await worker.start();
  const { client, close } = await connect(address);
  return {
    name: `temporal ${address}`,
    env: { TEMPORAL_ADDRESS: address },
    bridge,
    client,
    jobs: () => temporalJobs({ client, heartbeatTimeoutMs: 1_000 }),
    runs: () => temporalRuns({ client, heartbeatTimeoutMs: 1_000, lookMs: 50 }),
    async killWorkers() {
      await worker.kill();
      await worker.start();
    },
    // It keeps nothing.
    killEngine: () => Promise.reject(new Error('the test server is in memory')),
    async close() {
      await close();
      await Promise.all([worker.kill(), server.kill()]);
      await bridge.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
