// A Restate server and a worker in separate processes.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { restateJobs, restateRuns } from '../../../src/adapters/restate/index.ts';
import type { EngineOptions, LiveEngine, WorkersDo } from './live-engine.ts';
import { jobsPackedIf, runsPackedIf } from './packing.ts';
import { openBridge } from './bridge.ts';
import {
  answers,
  freePort,
  listens,
  living,
  livingVersions,
  moment,
  openBalancer,
} from './processes.ts';
import type { AgentsVersion } from '../../suites/runs/index.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const platform = `${process.platform}-${process.arch}`;
const server = here(`../node_modules/@restatedev/restate-server-${platform}/bin/restate-server`);

/** Starts the server and registers a worker. */
export async function openRestate(
  handler: WorkersDo,
  world?: string,
  { packed = false, worker: program = here('restate-worker.js') }: EngineOptions = {},
): Promise<LiveEngine> {
  const directory = await mkdtemp(join(tmpdir(), 'restate-'));
  const [ingress, admin, node, port, ...workerPorts] = await Promise.all([
    freePort(),
    freePort(),
    freePort(),
    freePort(),
    freePort(),
    freePort(),
  ]);
  await writeFile(
    join(directory, 'restate.toml'),
    `cluster-name = "test"
node-name = "n1"
base-dir = "${join(directory, 'data')}"
bind-ip = "127.0.0.1"
bind-port = ${node}
listen-mode = "tcp"
disable-telemetry = true
default-num-partitions = 1
rocksdb-total-memory-size = "256.0 MiB"
log-filter = "warn"
[ingress]
bind-port = ${ingress}
[admin]
bind-port = ${admin}
`,
  );
  const bridge = await openBridge();
  const ingressUrl = `http://127.0.0.1:${ingress}`;
  const adminUrl = `http://127.0.0.1:${admin}`;
  const engine = living({
    command: server,
    args: ['-c', join(directory, 'restate.toml'), '--no-logo'],
    cwd: directory,
    isUp: async () =>
      (await answers(`http://127.0.0.1:${admin}/health`)) &&
      (await answers(`${ingressUrl}/restate/health`)),
  });
  let versions: readonly AgentsVersion[] = ['later'];
  // One URL for all workers, as behind a Kubernetes service.
  const balancer = await openBalancer(port, () => workerPorts.slice(0, versions.length));
  const worker = livingVersions<AgentsVersion>((version, at, isDeploy) => {
    const own = workerPorts[at] ?? 0;
    return living({
      command: process.execPath,
      args: [program],
      env: {
        PORT: String(own),
        BRIDGE: world ?? bridge.url,
        WORK: handler ?? '',
        VERSION: version,
        ...(isDeploy ? { OFFERS: 'long' } : {}),
        ...(packed ? { PACKED: '1' } : {}),
      },
      // `fetch` does not support HTTP/2 without TLS, so an open port shows that the worker is up.
      isUp: () => listens(own),
    });
  }, 'later');
  await Promise.all([engine.start(), ...(handler ? [worker.start()] : [])]);
  while (handler) {
    const registered = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
    }).catch(() => null);
    if (registered?.ok) break;
    await moment();
  }
  return {
    name: `restate ${ingressUrl}`,
    env: { RESTATE_INGRESS: ingressUrl, RESTATE_ADMIN: adminUrl },
    bridge,
    directory: join(directory, 'data'),
    jobs: () => jobsPackedIf(packed, restateJobs({ ingress: ingressUrl, admin: adminUrl })),
    hasty: () => restateJobs({ ingress: ingressUrl, service: 'hasty' }),
    runs: () => runsPackedIf(packed, restateRuns({ ingress: ingressUrl, admin: adminUrl })),
    kept: () => keptBy(adminUrl),
    async killWorkers() {
      await worker.kill();
      await worker.start();
    },
    async deploy(deployed) {
      versions = deployed;
      await worker.deploy(deployed);
    },
    async killEngine() {
      await engine.kill();
      await engine.start();
    },
    async close() {
      await Promise.all([worker.kill(), engine.kill()]);
      await balancer.close();
      await bridge.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Returns the content of Restate's tables as one text, with binary columns also decoded. */
async function keptBy(admin: string): Promise<string> {
  const ask = async (query: string): Promise<readonly Record<string, unknown>[]> => {
    const response = await fetch(`${admin}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query }),
    });
    if (!response.ok) throw new Error(`${query}: ${await response.text()}`);
    return ((await response.json()) as { rows: Record<string, unknown>[] }).rows;
  };
  const texts: string[] = [];
  for (const table of ['sys_invocation', 'sys_journal', 'sys_promise', 'state', 'sys_inbox'])
    for (const row of await ask(`select * from ${table}`))
      for (const value of Object.values(row)) {
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        texts.push(text);
        if (/^[0-9a-f]+$/iu.test(text)) texts.push(Buffer.from(text, 'hex').toString('latin1'));
      }
  return texts.join('\n');
}
