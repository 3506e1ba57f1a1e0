// The worker on Temporal: both manners, in one process.

import * as activity from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { temporalRunActivities } from '../../../src/adapters/temporal/index.ts';
import { jobWorker, runWorker } from '../../../src/entries/jobs.ts';
import { bareThink, charge, lookUp, rides, ridesModel } from './work.js';

const { ADDRESS } = process.env;
const environment = nodeEnvironment();
const configs = { rides };
const steps = jobWorker({ environment, configs, model: ridesModel });
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: ADDRESS }),
  taskQueue: 'offstage-jobs',
  workflowsPath: fileURLToPath(new URL('temporal-workflows.js', import.meta.url)),
  activities: {
    think: bareThink,
    lookUp,
    charge,
    ...temporalRunActivities({ activity, handler: runWorker({ environment, configs, steps }) }),
  },
});
process.stdout.write('up\n');
await worker.run();
