// `offstage/jobs`: steps of subagents as jobs: the port, a worker, and what an engine stores of them.

export {
  JobError,
  type Job,
  type JobEnd,
  type JobFailure,
  type JobHands,
  type JobRunOptions,
  type Jobs,
} from '../actors/ports/jobs.ts';
export { localJobs, type LocalJobsOptions } from '../actors/runtime/local-jobs.ts';
export {
  packedHands,
  packedJobs,
  type JobClaims,
  type JobCodec,
  type JobPacking,
} from '../actors/runtime/packed-jobs.ts';
export { jobWorker, type JobWorkerOptions } from '../actors/subagent/job-worker.ts';
