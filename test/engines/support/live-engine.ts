// An engine and its workers, in processes that a test can kill.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobHandler, Jobs, RunEngine } from '../../../src/entries/jobs.ts';
import type { AgentsVersion } from '../../suites/runs/index.ts';
import type { JobsConformanceSetup } from '../../suites/jobs/index.ts';
import { CountedCalls } from '../../suites/counting-bench.ts';
import type { Bridge } from './bridge.ts';
import { moment } from './processes.ts';

/**
 * What the workers run: the jobs of the bridge, the steps of the rides, the agents of the run suite, or those of the
 * Helix document; null if the server has no workers.
 */
export type WorkersDo = 'bridge' | 'rides' | 'runs' | 'helix' | null;

/** What a test server can do. */
export interface LiveAbilities {
  /** The server keeps its state when it is killed. @defaultValue true */
  readonly engineDies?: boolean;
  /**
   * The server shares tasks among workers (Temporal's test server stays with a worker that refuses). @defaultValue true
   */
  readonly sharesWork?: boolean;
  /** The server lists and deletes workflows. @defaultValue true */
  readonly deletes?: boolean;
}

export interface EngineOptions {
  /** Jobs and runs are packed with PACKING. @defaultValue false */
  readonly packed?: boolean;
  /** The path of another program that runs as the worker. @defaultValue the tests' own worker */
  readonly worker?: string;
}

export interface LiveEngine {
  /** The name that `engineOf` parses. */
  readonly name: string;
  /** The URLs of the server, in the variables that example 21 reads. */
  readonly env: Readonly<Record<string, string>>;
  readonly bridge: Bridge;
  /** The folder with all of the server's data; null if the data is in memory. */
  readonly directory: string | null;
  jobs(): Jobs;
  /** Returns the engine with a limit of one second for a job and for its offer. */
  hasty(): Jobs;
  runs(): RunEngine;
  /** Returns everything that the server still reports about jobs and runs, as one text. */
  kept(): Promise<string>;
  /** Kills the workers, and resolves when their replacements are up. */
  killWorkers(): Promise<void>;
  /** Replaces all workers with workers of these versions, and resolves when those are up. */
  deploy(versions: readonly AgentsVersion[]): Promise<void>;
  killEngine(): Promise<void>;
  close(): Promise<void>;
}

/** Gives each case its own keys, because an engine keeps the results of all jobs. */
function withPrefix(jobs: Jobs, prefix: string): Jobs {
  return {
    ...jobs,
    run: (job, options) => jobs.run({ ...job, key: `${prefix}${job.key}` }, options),
    cancel: (key) => jobs.cancel(`${prefix}${key}`),
    ...(jobs.forget ? { forget: (begin: string) => jobs.forget?.(`${prefix}${begin}`) } : {}),
  };
}

function withoutPrefix(handler: JobHandler, prefix: string): JobHandler {
  return {
    do: (job, signal) =>
      job.key.startsWith(prefix)
        ? handler.do({ ...job, key: job.key.slice(prefix.length) }, signal)
        : Promise.reject(new Error(`${job.key} is of another case`)),
  };
}

/** The setup of the conformance suite on one engine, for all cases. */
export function onLiveEngine(name: string, engine: () => LiveEngine): JobsConformanceSetup {
  let number = 0;
  return {
    name,
    shows: ['worker_dies', 'engine_dies', 'job_hangs', 'worker_refuses'],
    patience: 18_000,
    moment,
    open(handler) {
      const prefix = `case-${(number += 1)}-${process.pid}:`;
      const live = engine();
      live.bridge.handler = withoutPrefix(handler, prefix);
      return {
        jobs: () => withPrefix(live.jobs(), prefix),
        hasty: () => withPrefix(live.hasty(), prefix),
        killWorkers: () => live.killWorkers(),
        killEngine: () => live.killEngine(),
        close: () => {
          live.bridge.handler = null;
        },
      };
    },
  };
}

/** Counts the calls that the rides make, and can make them wait. */
export async function openWorld() {
  const calls = new CountedCalls();
  const server = createServer((request, response) => {
    const what = request.url?.slice(1) ?? '';
    void calls.tell(what).then(() => response.end(JSON.stringify({ did: what })));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async begun(what: string): Promise<void> {
      while (calls.count(what) === 0) await moment();
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A program's process that runs the rides on an engine. */
export async function ridesProgram(engine: string, world: string) {
  const directory = await mkdtemp(join(tmpdir(), 'rides-'));
  const start = () => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('rides-program.ts', import.meta.url))],
      {
        env: { ...process.env, JOURNAL: join(directory, 'journal'), BRIDGE: world, ENGINE: engine },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let said = '';
    child.stdout.on('data', (data) => (said += String(data)));
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    return {
      async kill() {
        child.kill('SIGKILL');
        await gone;
      },
      async outcome() {
        await gone;
        return JSON.parse(said) as {
          status: string;
          text: string;
          error?: unknown;
          ledger: string[];
        };
      },
    };
  };
  return { start, close: () => rm(directory, { recursive: true, force: true }) };
}
