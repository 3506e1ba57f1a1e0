// A Temporal server and a worker in separate processes. The server is Temporal's test server (Java, in memory), or its
// development server (SQLite) if TEMPORAL_DEV_SERVER names that program.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { temporalJobs, temporalRuns } from '../../../src/adapters/temporal/index.ts';
import { openBridge } from './bridge.ts';
import type { EngineOptions, LiveAbilities, LiveEngine, WorkersDo } from './live-engine.ts';
import { jobsPackedIf, runsPackedIf } from './packing.ts';
import { freePort, listens, living, livingVersions } from './processes.ts';
import type { AgentsVersion } from '../../suites/runs/index.ts';
import { bundle, connect, serves } from './temporal-client.js';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const library = here('../node_modules/.temporal-server/dependency');

/** Returns why no server is available, or null. Downloads the server the first time, if Maven is installed. */
export function missingServer(): string | null {
  if (development !== undefined) return existsSync(development) ? null : `no ${development}`;
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

/** The `temporal` program. Its server keeps its data when it is killed, and lists and deletes workflows. */
const development = process.env['TEMPORAL_DEV_SERVER'];

export const temporalAbilities: LiveAbilities = {
  engineDies: development !== undefined,
  deletes: development !== undefined,
  sharesWork: development !== undefined,
};

export async function openTemporal(
  handler: WorkersDo,
  world?: string,
  { packed = false, worker: program = here('temporal-worker.js') }: EngineOptions = {},
): Promise<LiveEngine & { readonly client: Awaited<ReturnType<typeof connect>>['client'] }> {
  const directory = await mkdtemp(join(tmpdir(), 'temporal-'));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const code = join(directory, 'workflows.js');
  await bundle(code);
  const bridge = await openBridge();
  const database = join(directory, 'temporal.db');
  const server =
    development === undefined
      ? living({
          command: 'java',
          args: [
            '-XX:TieredStopAtLevel=1',
            '-cp',
            join(library, '*'),
            'io.temporal.testserver.TestServer',
            String(port),
          ],
          isUp: () => listens(port),
        })
      : living({
          command: development,
          args: [
            'server',
            'start-dev',
            '--headless',
            '--port',
            String(port),
            '--db-filename',
            database,
            '--log-level',
            'error',
          ],
          cwd: directory,
          isUp: () => serves(address),
        });
  await server.start();
  const worker = livingVersions<AgentsVersion>(
    (version, _, isDeploy) =>
      living({
        command: process.execPath,
        args: [program],
        env: {
          ADDRESS: address,
          BUNDLE: code,
          BRIDGE: world ?? bridge.url,
          WORK: handler ?? '',
          VERSION: version,
          ...(isDeploy ? { OFFERS: 'long' } : {}),
          ...(packed ? { PACKED: '1' } : {}),
        },
        isUp: async (output) => output.includes('up'),
      }),
    'later',
  );
  if (handler) await worker.start();
  const { client, close } = await connect(address);
  return {
    name: `temporal ${address}`,
    env: { TEMPORAL_ADDRESS: address },
    bridge,
    client,
    directory: development === undefined ? null : directory,
    jobs: () => jobsPackedIf(packed, temporalJobs({ client, heartbeatTimeoutMs: 1_000 })),
    hasty: () =>
      temporalJobs({ client, heartbeatTimeoutMs: 1_000, longestMs: 1_000, offerMs: 1_000 }),
    runs: () =>
      runsPackedIf(packed, temporalRuns({ client, heartbeatTimeoutMs: 1_000, lookMs: 50 })),
    kept: async () => rowsOf(database),
    async killWorkers() {
      await worker.kill();
      await worker.start();
    },
    deploy: (versions) => worker.deploy(versions),
    async killEngine() {
      if (development === undefined) throw new Error('the test server is in memory');
      await server.kill();
      await server.start();
    },
    async close() {
      await close();
      await Promise.all([worker.kill(), server.kill()]);
      await bridge.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Returns the rows of all tables as one text. */
function rowsOf(database: string): string {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    const tables = db.prepare("select name from sqlite_master where type = 'table'").all();
    return tables
      .flatMap(({ name }) => db.prepare(`select * from "${String(name)}"`).all())
      .flatMap((row) => Object.values(row))
      .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))
      .join('\n');
  } finally {
    db.close();
  }
}
