// The hands of a worker's process: those behind a bridge, the steps of the rides, or those of the suite of runs.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  jobWorker,
  packedHands,
  packedRunHands,
  runWorker,
  type JobHands,
  type Jobs,
  type RunHands,
} from '../../../src/entries/jobs.ts';
import { jobsPackedIf, PACKING } from './packing.ts';
import { runsConformanceAgents } from '../../../src/testing/index.ts';
import { helixModel, parent } from './helix.ts';
import { rides, ridesModel } from './rides.ts';

type Env = Readonly<Record<string, string | undefined>>;

const agentsOf = ({ BRIDGE: url = '', HANDS }: Env) => {
  const tell = async (key: string): Promise<void> => {
    const job = { key, name: key, once: false, body: '' };
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(job) });
    if (!response.ok) throw new Error(await response.text());
  };
  return HANDS === 'helix'
    ? { configs: { parent }, model: helixModel(tell) }
    : runsConformanceAgents(tell);
};
/** Those that do whole runs. */
const doesRuns = ({ HANDS }: Env): boolean => HANDS === 'runs' || HANDS === 'helix';

export function handsOf(env: Env): JobHands {
  const hands = bareHandsOf(env);
  return env['PACKED'] ? packedHands(hands, PACKING) : hands;
}

function bareHandsOf(env: Env): JobHands {
  const { BRIDGE: url = '', HANDS } = env;
  const environment = nodeEnvironment();
  if (HANDS === 'rides')
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

/** Null: it does no turns of runs. */
export function runHandsOf(env: Env, jobs: Jobs): RunHands | null {
  if (!doesRuns(env)) return null;
  const { configs } = agentsOf(env);
  const isPacked = env['PACKED'] !== undefined;
  const hands = runWorker({
    environment: nodeEnvironment(),
    configs,
    jobs: jobsPackedIf(isPacked, jobs),
    onError: () => {},
  });
  return isPacked ? packedRunHands(hands, PACKING) : hands;
}
