// `offstage/restate`: steps of subagents as jobs of Restate, and whole runs as its workflows.

export {
  restateJobs,
  restateJobService,
  type RestateJobServiceOptions,
  type RestateJobsOptions,
  type RestateSdk,
} from './restate-jobs.ts';
export {
  restateRuns,
  restateRunWorkflow,
  type RestateRunsOptions,
  type RestateRunWorkflowOptions,
  type RestateWorkflowSdk,
} from './restate-runs.ts';
