// A stage for the suite of homes whose nodes are Node.js processes.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import type { HomeStage } from '../../suites/homes/index.ts';

/** A fault that is planted in a node to check that the suite finds it. */
export type PlantedFault =
  | 'keeps nothing'
  | 'claims nothing'
  | 'cuts what is long'
  | 'never looks'
  | 'stores no time'
  | 'sends nobody on'
  | 'closes sessions';

/** The store for the sessions: a file, or the options for `postgresJournal`. */
export type HomeStore =
  | { readonly path: string }
  | { readonly connection: object; readonly schema: string; readonly leaseMs: number };

export interface HomeNode {
  readonly store: HomeStore;
  /** The address to which the agents send their actions. */
  readonly tellUrl: string;
  readonly port: number;
  readonly fault: PlantedFault | null;
}

type Tell = (what: string) => Promise<unknown>;

const MOMENT_MS = 10;

/** The pause between two checks on a process. */
export const moment = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, MOMENT_MS);
  });

/** Forwards the reports of other processes. A process continues once its report has been answered. */
export async function tellServer(tell: Tell) {
  const server = createServer((request, response) => {
    void text(request)
      .then(tell)
      .then(() => response.end())
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

let bundled: Promise<string> | null = null;

/** Bundles the program into one file, because many processes run it. */
async function bundle(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-node-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  // Modules that an adapter loads dynamically are also resolved from this folder.
  symlinkSync(
    fileURLToPath(new URL('../../../node_modules', import.meta.url)),
    join(folder, 'node_modules'),
  );
  await build({
    configFile: false,
    logLevel: 'error',
    ssr: { noExternal: true },
    build: {
      ssr: fileURLToPath(new URL('node.ts', import.meta.url)),
      outDir: folder,
      rollupOptions: { output: { entryFileNames: 'node.mjs' } },
    },
  });
  return join(folder, 'node.mjs');
}

export async function nodeStage(
  tell: Tell,
  {
    nodes,
    store,
    fault = null,
  }: { readonly nodes: number; readonly store: HomeStore; readonly fault?: PlantedFault | null },
): Promise<HomeStage> {
  const program = await (bundled ??= bundle());
  const told = await tellServer(tell);
  const children: (ChildProcess | null)[] = [];
  const addresses: string[] = [];
  const end = async (node: number, signal: NodeJS.Signals): Promise<void> => {
    const child = children[node];
    if (!child) return;
    children[node] = null;
    const gone = once(child, 'close');
    child.kill(signal);
    await gone;
  };
  const start = async (node: number): Promise<void> => {
    const port = Number(new URL(addresses[node] ?? 'http://127.0.0.1:0').port);
    const options: HomeNode = { store, tellUrl: told.url, port, fault };
    const child = spawn(process.execPath, [program, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_ENV: 'production', NODE_COMPILE_CACHE: dirname(program) },
    });
    children[node] = child;
    const { value } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
    if (value === undefined) throw new Error(`Node ${node} did not start`);
    addresses[node] = value;
  };
  await Promise.all(Array.from({ length: nodes }, (_, node) => start(node)));
  return {
    url: (node) => `${addresses[node]}/offstage`,
    kill: (node) => end(node, 'SIGKILL'),
    start,
    async isAwake() {
      const answers = await Promise.all(
        addresses.map(async (address) => (await fetch(`${address}/`)).text()),
      );
      return answers.includes('true');
    },
    stop: (node) => void children[node]?.kill('SIGSTOP'),
    go: (node) => void children[node]?.kill('SIGCONT'),
    drain: (node) => end(node, 'SIGTERM'),
    async close() {
      await Promise.all(children.map((_, node) => end(node, 'SIGKILL')));
      told.close();
    },
  };
}
