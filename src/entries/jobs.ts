// `offstage/jobs`: steps of subagents as jobs, and whole runs, on engines: the ports, the workers, and what an engine
// stores of jobs.

export {
  JobError,
  type Job,
  type JobEnd,
  type JobFailure,
  type JobHandler,
  type JobRefusal,
  type JobRunOptions,
  type Jobs,
} from '../actors/ports/jobs.ts';
export { localJobs, type LocalJobsOptions } from '../actors/runtime/local-jobs.ts';
export { packedHandler, packedJobs } from '../actors/runtime/packed-jobs.ts';
export type { JobClaims, JobCodec, JobPacking } from '../actors/runtime/packing.ts';
export { forgetRun, type ForgetRunStores } from '../actors/runtime/forgetting.ts';
export { packedRunHandler, packedRuns } from '../actors/subagents/packed-runs.ts';
export { jobWorker, type JobWorkerOptions } from '../actors/subagent/job-worker.ts';
export type {
  MessageTaken,
  RunAnswer,
  RunBounds,
  RunChild,
  RunEngine,
  RunEntries,
  RunHandler,
  RunMessage,
  RunNews,
  RunOrder,
  RunStep,
  RunStepEnd,
  RunTurn,
  RunTurnEnd,
  RunView,
  RunWait,
  TakenMessage,
} from '../actors/ports/run-engine.ts';
export { runWorker, type RunWorkerOptions } from '../actors/subagents/run-worker.ts';
