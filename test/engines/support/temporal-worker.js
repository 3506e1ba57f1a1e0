// A worker's process: the activities of temporalJobActivities, and the workflow that was bundled before.

import * as activity from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import { temporalJobActivities } from '../../../src/adapters/temporal/index.ts';
import { handsOf } from './worker-hands.ts';

const { ADDRESS, BUNDLE } = process.env;
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: ADDRESS }),
  taskQueue: 'offstage-jobs',
  workflowBundle: { codePath: BUNDLE },
  activities: temporalJobActivities({ activity, hands: handsOf(process.env) }),
  // A dead worker's cache must not be waited for.
  maxCachedWorkflows: 0,
});
process.stdout.write('up\n');
await worker.run();
