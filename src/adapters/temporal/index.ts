// The entry `offstage/temporal`: steps of subagents as jobs on Temporal, and whole runs as its workflows.

export {
  temporalJobActivities,
  temporalJobs,
  type TemporalClient,
  type TemporalHandle,
  type TemporalJobActivities,
} from './temporal-jobs.ts';
export {
  temporalRunActivities,
  temporalRuns,
  type TemporalRunActivities,
  type TemporalRunHandle,
  type TemporalRunsClient,
} from './temporal-runs.ts';
export type { TemporalActivity } from './temporal-sdk.ts';
