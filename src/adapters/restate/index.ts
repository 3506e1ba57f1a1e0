// The entry `offstage/restate`: steps of subagents as jobs on Restate, and whole runs as its workflows.

export {
  restateJobs,
  restateJobService,
  type RestateJobServiceOptions,
  type RestateSdk,
} from './restate-jobs.ts';
export { restateRuns, restateRunWorkflow, type RestateWorkflowSdk } from './restate-runs.ts';
