// A worker's process: the activities of temporalJobActivities, and the workflow that was bundled before.

import * as activity from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import {
  temporalJobActivities,
  temporalRunActivities,
} from '../../../src/adapters/temporal/index.ts';
import { jobHandlerOf, runHandlerOf } from './worker-handler.ts';

const { ADDRESS, BUNDLE } = process.env;
const runs = runHandlerOf(process.env);
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: ADDRESS }),
  taskQueue: 'offstage-jobs',
  workflowBundle: { codePath: BUNDLE },
  activities: {
    ...temporalJobActivities({ activity, handler: jobHandlerOf(process.env) }),
    ...(runs ? temporalRunActivities({ activity, handler: runs }) : {}),
  },
  // A dead worker's cache must not be waited for.
  maxCachedWorkflows: 0,
});
process.stdout.write('up\n');
await worker.run();
