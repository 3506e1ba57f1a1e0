// The hands of a worker's process: those behind a bridge, or the steps of the rides.

import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { jobWorker, type JobHands } from '../../../src/entries/jobs.ts';
import { rides, ridesModel } from './rides.ts';

export function handsOf(env: Readonly<Record<string, string | undefined>>): JobHands {
  const url = env['BRIDGE'] ?? '';
  if (env['HANDS'] === 'rides')
    return jobWorker({
      environment: nodeEnvironment(),
      configs: { rides: rides(url) },
      model: ridesModel(url),
    });
  return {
    async do(job, signal) {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(job), signal });
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()) as never;
    },
  };
}
