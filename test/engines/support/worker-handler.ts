// The handlers in a worker's process: the bridge, the steps of the rides, or those of the run suite.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  jobWorker,
  packedHandler,
  runWorker,
  type JobHandler,
  type RunHandler,
} from '../../../src/entries/jobs.ts';
import { PACKING } from './packing.ts';
import { runsConformanceAgents } from '../../suites/runs/index.ts';
import { helixModel, parent } from './helix.ts';
import { rides, ridesModel } from './rides.ts';

/** `long` exceeds the duration of a deploy, for workers of two versions. */
const OFFER_MS = { short: 2_000, long: 120_000 };

type Env = Readonly<Record<string, string | undefined>>;

const agentsOf = ({ BRIDGE: url = '', WORK, VERSION }: Env) => {
  const tell = async (key: string): Promise<void> => {
    const job = { key, name: key, once: false, body: '' };
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(job) });
    if (!response.ok) throw new Error(await response.text());
  };
  return WORK === 'helix'
    ? { configs: { parent }, model: helixModel(tell) }
    : runsConformanceAgents(tell, VERSION === 'earlier' ? 'earlier' : 'later');
};
/** Workers that run whole runs. */
const doesRuns = ({ WORK }: Env): boolean => WORK === 'runs' || WORK === 'helix';

export function jobHandlerOf(env: Env): JobHandler {
  const handler = bareHandsOf(env);
  return env['PACKED'] ? packedHandler(handler, PACKING) : handler;
}

function bareHandsOf(env: Env): JobHandler {
  const { BRIDGE: url = '', WORK } = env;
  const environment = nodeEnvironment();
  if (WORK === 'rides')
    return jobWorker({ environment, configs: { rides: rides(url) }, model: ridesModel(url) });
  if (doesRuns(env)) return jobWorker({ environment, ...agentsOf(env) });
  return {
    async do(job, signal) {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(job), signal });
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()) as never;
    },
  };
}

/** Returns null for a worker that runs no turns. */
export function runHandlerOf(env: Env): RunHandler | null {
  if (!doesRuns(env)) return null;
  const { configs } = agentsOf(env);
  const isPacked = env['PACKED'] !== undefined;
  const handler = runWorker({
    environment: nodeEnvironment(),
    configs,
    steps: bareHandsOf(env),
    offerMs: OFFER_MS[env['OFFERS'] === 'long' ? 'long' : 'short'],
    onError: () => {},
  });
  return isPacked ? packedHandler(handler, PACKING) : handler;
}
