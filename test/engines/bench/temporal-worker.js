// The worker on Temporal: both manners, in one process.

import * as activity from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { fileURLToPath } from 'node:url';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  temporalJobActivities,
  temporalJobs,
  temporalRunActivities,
} from '../../../src/adapters/temporal/index.ts';
import { jobWorker, runWorker } from '../../../src/entries/jobs.ts';
import { bareThink, charge, lookUp, rides, ridesModel } from './work.js';

const { ADDRESS } = process.env;
const environment = nodeEnvironment();
const configs = { rides };
const client = new Client({ connection: await Connection.connect({ address: ADDRESS }) });
const handler = jobWorker({ environment, configs, model: ridesModel });
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: ADDRESS }),
  taskQueue: 'offstage-jobs',
  workflowsPath: fileURLToPath(new URL('temporal-workflows.js', import.meta.url)),
  activities: {
    think: bareThink,
    lookUp,
    charge,
    ...temporalJobActivities({ activity, handler }),
    ...temporalRunActivities({
      activity,
      handler: runWorker({ environment, configs, jobs: temporalJobs({ client }) }),
    }),
  },
});
process.stdout.write('up\n');
await worker.run();
