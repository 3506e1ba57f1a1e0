// The workflows file of an app, which Temporal bundles.

import { isCancellation, proxyActivities } from '@temporalio/workflow';
import { jobWorkflow } from '../../../src/adapters/temporal/workflow.ts';

export const offstageJob = jobWorkflow({ isCancellation, proxyActivities });
