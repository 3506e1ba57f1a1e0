// The stage for the suite of jobs: an engine whose workers do what the suite sets.

import type { JobHandler, Jobs } from '../../../src/actors/ports/jobs.ts';

/** A fault that a stage can produce. */
export type JobsFault =
  /** All workers are killed at once, without a signal, and new ones replace them. */
  | 'worker_dies'
  /** The engine is killed and restarts with its stored data. */
  | 'engine_dies'
  /** A job exceeds its time limit: `hasty`. */
  | 'job_hangs'
  /** A worker refuses a job, and the engine offers the job to the workers again. */
  | 'worker_refuses';

export interface JobsStage {
  /** Returns a new instance of the engine, as another process sees it. */
  jobs(): Jobs;
  /** `job_hangs`. Returns the engine with a time limit of about a second for a job and for the offer of a job. */
  hasty?(): Jobs;
  /** `worker_dies`. Resolves when the workers are gone. Their replacements may still be starting. */
  killWorkers?(): void | Promise<void>;
  /** `engine_dies`. Resolves when the engine is gone. The engine may still be restarting. */
  killEngine?(): void | Promise<void>;
  close?(): void | Promise<void>;
}

export interface JobsConformanceSetup {
  /** The name of the engine for error messages. */
  readonly name: string;
  /** The faults that the stage can produce. */
  readonly shows: readonly JobsFault[];
  /** The maximum number of polls. @defaultValue 20,000 */
  readonly patience?: number;
  /** Waits between two polls. @defaultValue a turn of the event loop */
  readonly moment?: () => Promise<void>;
  /** Opens a stage for one case. The stage's workers run jobs with this handler in any process. */
  open(handler: JobHandler): JobsStage | Promise<JobsStage>;
}
