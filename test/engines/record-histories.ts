// Records the histories in `test/engines/histories` on a live server; `npm run test:engines` replays them.

import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { JobEnd } from '../../src/entries/jobs.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { createRuntime } from '../../src/index.ts';
import { runSubagent } from '../../src/entries/subagents.ts';
import { runsConformanceAgents } from '../suites/runs/index.ts';
import { historyOf } from './support/temporal-client.js';
import { moment } from './support/processes.ts';
import { openTemporal } from './support/temporal.ts';

const folder = fileURLToPath(new URL('histories', import.meta.url));
const engine = await openTemporal('bridge');
const begun: string[] = [];
const never = new Promise<JobEnd>(() => {});
engine.bridge.handler = {
  do({ key }, signal) {
    begun.push(key);
    const times = begun.filter((one) => one === key).length;
    const waits = key !== 'done' && times === 1;
    if (!waits) return Promise.resolve({ done: `time ${times}` });
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
      void never.then(resolve);
    });
  },
};
const until = async (key: string): Promise<void> => {
  while (!begun.includes(key)) await moment();
};
const signal = new AbortController().signal;
const ask = (key: string, once = false): Promise<JobEnd> =>
  engine.jobs().run({ key, name: `step ${key}`, once, body: '{}' }, { signal });

await mkdir(folder, { recursive: true });
const ended: Record<string, JobEnd> = { done: await ask('done') };
const lost = ask('once-lost', true);
const again = ask('done-by-the-second-worker');
await until('once-lost');
await until('done-by-the-second-worker');
await engine.killWorkers();
ended['once-lost'] = await lost;
ended['done-by-the-second-worker'] = await again;
const jobs = engine.jobs();
const cancelled = jobs.run({ key: 'cancelled', name: 'step', once: true, body: '{}' }, { signal });
await until('cancelled');
jobs.cancel('cancelled');
ended['cancelled'] = await cancelled;
for (const key of Object.keys(ended)) {
  const history = await historyOf(engine.client, key);
  await writeFile(`${folder}/${key}.json`, `${JSON.stringify(history, null, 1)}\n`);
}
await engine.close();

const withRuns = await openTemporal('runs');
withRuns.bridge.handler = {
  async do({ key }) {
    begun.push(key);
    if (key === 'stopped/model-1' || key === 'guide-stopped-guide/model-1') await never;
    if (key === 'told/look_up') await heard.promise;
    if (key === 'told/charge') await never;
    return { done: '' };
  },
};
const heard = Promise.withResolvers<void>();
const { configs } = runsConformanceAgents(() => Promise.resolve());
const runtime = createRuntime({ environment: nodeEnvironment() });
const run = (id: string, steps: string) =>
  runSubagent(
    configs['traveller'] as NonNullable<(typeof configs)[string]>,
    `[trip ${id}: ${steps}]`,
    {
      runtime,
      engine: withRuns.runs(),
      id,
      onQuestion: () => ({ text: 'The cheap one' }),
    },
  );
// The first run has two concurrent calls.
const statuses: string[] = [(await run('beside', 'look_up & charge, look_up').result).status];
statuses.push((await run('answered', 'look_up, ask, charge').result).status);
const stopped = run('stopped', 'charge');
await until('stopped/model-1');
stopped.cancel();
statuses.push((await stopped.result).status);
statuses.push((await run('guided', 'guide ask then look_up, charge').result).status);
const left = run('guide-stopped', 'guide charge');
await until('guide-stopped-guide/model-1');
left.cancel();
statuses.push((await left.result).status);
const told = run('told', 'look_up, charge');
await until('told/look_up');
const message = { id: 'words', content: 'hear left', mode: 'steer' } as const;
await withRuns.runs().message?.('told', message);
heard.resolve();
await until('told/charge');
void told.send('hear now', { mode: 'interrupt' });
statuses.push((await told.result).text);
for (const id of ['beside', 'answered', 'stopped', 'guided', 'guide-stopped', 'told']) {
  const history = await historyOf(withRuns.client, `run/${id}`);
  await writeFile(`${folder}/steps-${id}.json`, `${JSON.stringify(history, null, 1)}\n`);
}
await withRuns.close();
process.stdout.write(`${JSON.stringify(statuses)}\n`);
process.stdout.write(`${JSON.stringify(ended)}\n`);
// Requests that were running at the end fail now.
process.exit(0);
