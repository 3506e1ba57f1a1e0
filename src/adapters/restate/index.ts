// `offstage/restate`: steps of subagents as jobs of Restate.

export {
  restateJobs,
  restateJobService,
  type RestateJobServiceOptions,
  type RestateJobsOptions,
  type RestateSdk,
} from './restate-jobs.ts';
