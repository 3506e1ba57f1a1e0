// The entry `offstage/jobs`: runs a subagent's steps, or a whole run, as jobs on engines. It exports the ports, the
// workers and the stored forms.

export {
  JobError,
  type Job,
  type JobEnd,
  type JobFailure,
  type JobHandler,
  type Jobs,
} from '../actors/ports/jobs.ts';
export { localJobs } from '../actors/subagent/local-jobs.ts';
export { stepJobs } from '../actors/subagent/step-jobs.ts';
export type { JobClaims, JobCodec, JobPacking } from '../actors/runtime/packing.ts';
export { forgetRun, type ForgetRunStores } from '../actors/runtime/forgetting.ts';
export { packedEngine, packedHandler } from '../actors/subagents/packed-engine.ts';
export { jobWorker } from '../actors/subagent/job-worker.ts';
export type {
  RunAnswer,
  RunChild,
  RunEngine,
  RunHandler,
  RunMessage,
  RunOrder,
  RunTurn,
  RunTurnEnd,
  RunView,
  RunWait,
} from '../actors/ports/run-engine.ts';
export { runWorker, type RunWorkerOptions } from '../actors/subagents/run-worker.ts';
