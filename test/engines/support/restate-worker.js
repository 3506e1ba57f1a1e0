// A worker's process: the service of restateJobService, and the workflow of restateRunWorkflow. WORK names its work.

import * as restate from '@restatedev/restate-sdk';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { restateJobService, restateRunWorkflow } from '../../../src/adapters/restate/index.ts';
import { jobHandlerOf, runHandlerOf } from './worker-handler.ts';

const { PORT } = process.env;
const jobs = { restate, environment: nodeEnvironment(), handler: jobHandlerOf(process.env) };
const services = [
  restateJobService(jobs),
  restateJobService({ ...jobs, service: 'hasty', longestMs: 1_000, offerMs: 1_000 }),
];
const runs = runHandlerOf(process.env);
if (runs) services.push(restateRunWorkflow({ restate, handler: runs }));
await restate.serve({ services, port: Number(PORT) });
