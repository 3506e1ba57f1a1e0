// Usage: npm run example examples/21-on-any-engine.ts [place]
//
// One subagent that runs in any place: `memory`, `sqlite`, `restate-jobs`, `restate-runs`, `temporal-jobs` or
// `temporal-runs`. Without the argument it runs in each of them. The subagent, its tool and its question stay the same.
// A place supplies the runtime for `runSubagent` and, if it executes whole runs, the engine.
//
// An engine needs a server and its packages; otherwise it is skipped:
//   npm install @restatedev/restate-sdk && npx @restatedev/restate-server
//   npm install @temporalio/{activity,client,worker,workflow} && temporal server start-dev

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tool } from 'ai';
import { createRuntime, defineSubagent } from 'offstage';
import { runSubagent, type RunSubagentOptions } from 'offstage/subagents';
import type { Runtime } from 'offstage';
import { jobWorker, runWorker, type Jobs } from 'offstage/jobs';
import { nodeEnvironment } from 'offstage/node';
import { restateJobs, restateJobService, restateRuns, restateRunWorkflow } from 'offstage/restate';
import { sqliteJournal } from 'offstage/sqlite-journal';
import {
  temporalJobActivities,
  temporalJobs,
  temporalRunActivities,
  temporalRuns,
  type TemporalClient,
  type TemporalRunsClient,
} from 'offstage/temporal';
import { scriptedModel } from 'offstage/testing';
import { z } from 'zod';

const {
  RESTATE_INGRESS = 'http://127.0.0.1:8080',
  RESTATE_ADMIN = 'http://127.0.0.1:9070',
  TEMPORAL_ADDRESS = '127.0.0.1:7233',
} = process.env;

let charges = 0;

const rides = defineSubagent({
  name: 'rides',
  instructions: 'You book rides.',
  // Model calls and tool calls may run elsewhere. In `memory` and on `sqlite`, they run in this process.
  runs: 'jobs',
  interactive: true,
  tools: {
    charge: tool({
      description: 'Charges the card',
      inputSchema: z.object({ dollars: z.number() }),
      execute({ dollars }) {
        charges += 1;
        return { charged: dollars };
      },
    }),
  },
});

// Use any AI SDK model instead. Like every model, it has no memory.
const model = scriptedModel({
  otherwise({ prompt, results }) {
    const done = prompt.filter(({ role }) => role === 'tool').length;
    if (done === 0)
      return { calls: [{ name: 'ask_user', input: { question: 'Economy or Premium?' } }] };
    if (done === 1) return { calls: [{ name: 'charge', input: { dollars: 7 } }] };
    return { text: `Booked: ${JSON.stringify(results[0])}` };
  },
});

const environment = nodeEnvironment();
const configs = { rides };
const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));

const serveRestate = once(restateWorker);
const serveTemporal = once(temporalWorker);

/** The options of `runSubagent` that differ from place to place. */
type Place = Pick<RunSubagentOptions, 'runtime' | 'engine' | 'model'>;

const places: Readonly<Record<string, () => Promise<Place>>> = {
  memory: async () => ({ runtime: createRuntime({ environment }), model }),
  sqlite: async () => ({ runtime: onSqlite(), model }),
  'restate-jobs': async () => {
    await serveRestate();
    return { runtime: onSqlite(restateJobs({ ingress: RESTATE_INGRESS })) };
  },
  'restate-runs': async () => {
    await serveRestate();
    const engine = restateRuns({ ingress: RESTATE_INGRESS });
    return { runtime: createRuntime({ environment }), engine };
  },
  'temporal-jobs': async () => {
    const client = await serveTemporal();
    return { runtime: onSqlite(temporalJobs({ client })) };
  },
  'temporal-runs': async () => {
    const engine = temporalRuns({ client: await serveTemporal() });
    return { runtime: createRuntime({ environment }), engine };
  },
};

/** The program, which is the same in every place. */
async function play(name: string): Promise<void> {
  let place: Place | undefined;
  try {
    place = await places[name]?.();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.log(`${name}: left out, ${error.message}`);
    if (wanted !== undefined) process.exitCode = 1;
  }
  if (!place) return;
  charges = 0;
  const { result } = runSubagent(rides, 'To the airport', {
    ...place,
    id: environment.ids.next('ride'),
    onQuestion({ question }) {
      console.log(`${name}: rides asks: ${question}`);
      return { text: 'Premium' };
    },
  });
  const { status, text } = await result;
  console.log(`${name}: ${status}, ${text}, charges: ${charges}`);
}

function onSqlite(jobs?: Jobs): Runtime {
  const journal = sqliteJournal({ path: join(folder, 'journal'), environment });
  return createRuntime({ environment, journal, ...(jobs ? { jobs } : {}) });
}

/** Makes this process a Restate worker; in an app, the worker is usually another process. */
async function restateWorker(): Promise<void> {
  const restate = await imported('@restatedev/restate-sdk');
  await reached(`Restate at ${RESTATE_ADMIN}`, fetch(`${RESTATE_ADMIN}/health`));
  const steps = jobWorker({ environment, configs, model });
  const port = await restate.serve({
    services: [
      restateJobService({ restate, environment, handler: steps }),
      restateRunWorkflow({ restate, handler: runWorker({ environment, configs, steps }) }),
    ],
    port: 0,
  });
  await fetch(`${RESTATE_ADMIN}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
  });
}

/** Also makes this process a Temporal worker. */
async function temporalWorker(): Promise<TemporalClient & TemporalRunsClient> {
  const activity = await imported('@temporalio/activity');
  const { Client, Connection } = await imported('@temporalio/client');
  const { NativeConnection, Worker } = await imported('@temporalio/worker');
  const address = TEMPORAL_ADDRESS;
  const connection = await reached(`Temporal at ${address}`, Connection.connect({ address }));
  const client = new Client({ connection });
  const steps = jobWorker({ environment, configs, model });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    taskQueue: 'offstage-jobs',
    workflowsPath: fileURLToPath(new URL('temporal-workflows.js', import.meta.url)),
    activities: {
      ...temporalJobActivities({ activity, handler: steps }),
      ...temporalRunActivities({ activity, handler: runWorker({ environment, configs, steps }) }),
    },
  });
  void worker.run();
  return client;
}

/** The error for a missing server or package. */
class Missing extends Error {}

/** Imports a package that only an engine needs. */
async function imported(name: string) {
  try {
    return await import(name);
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Missing(`it needs the package ${name}`);
  }
}

async function reached<T>(server: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch {
    throw new Missing(`it needs ${server}, which does not answer`);
  }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

const [wanted] = process.argv.slice(2);
if (wanted !== undefined && !Object.hasOwn(places, wanted))
  throw new Error(`expected one of ${Object.keys(places).join(', ')}, got "${wanted}"`);
for (const name of wanted === undefined ? Object.keys(places) : [wanted]) await play(name);
rmSync(folder, { recursive: true });
// Workers serve until their process exits.
process.exit();
