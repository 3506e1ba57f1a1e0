// A worker's process: the service of restateJobService, and the workflow of restateRunWorkflow. HANDS names its work.

import * as restate from '@restatedev/restate-sdk';
import {
  restateJobs,
  restateJobService,
  restateRunWorkflow,
} from '../../../src/adapters/restate/index.ts';
import { handsOf, runHandsOf } from './worker-hands.ts';

const { PORT, INGRESS } = process.env;
const services = [restateJobService({ restate, hands: handsOf(process.env) })];
const runs = runHandsOf(process.env, restateJobs({ ingress: INGRESS }));
if (runs) services.push(restateRunWorkflow({ restate, hands: runs }));
await restate.serve({ services, port: Number(PORT) });
