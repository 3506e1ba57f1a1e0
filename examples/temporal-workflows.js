// The workflows of 21-on-any-engine.ts, which Temporal bundles for its sandbox.

import * as workflow from '@temporalio/workflow';
import { jobWorkflow, runWorkflow } from 'offstage/temporal/workflow';

export const offstageJob = jobWorkflow(workflow);
export const offstageRun = runWorkflow(workflow);
