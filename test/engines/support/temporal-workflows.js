// The workflows file of an app, which Temporal bundles.

import * as workflow from '@temporalio/workflow';
import { jobWorkflow, runWorkflow } from '../../../src/adapters/temporal/workflow.ts';

export const offstageJob = jobWorkflow(workflow);
export const offstageRun = runWorkflow(workflow);
