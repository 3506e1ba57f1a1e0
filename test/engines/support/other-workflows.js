// A workflow of the same name that does something else first.

import { isCancellation, proxyActivities, sleep } from '@temporalio/workflow';
import { jobWorkflow } from '../../../src/adapters/temporal/workflow.ts';

const job = jobWorkflow({ isCancellation, proxyActivities, sleep });

export async function offstageJob(...given) {
  await sleep(1000);
  return job(...given);
}
