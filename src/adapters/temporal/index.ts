// `offstage/temporal`: steps of subagents as jobs of Temporal.

export {
  temporalJobActivities,
  temporalJobs,
  type TemporalActivity,
  type TemporalClient,
  type TemporalHandle,
  type TemporalJobActivities,
  type TemporalJobActivitiesOptions,
  type TemporalJobsOptions,
} from './temporal-jobs.ts';
