// The stage on which the suite of jobs plays: an engine, whose workers do what the suite tells them.

import type { JobHandler, Jobs } from '../../../src/actors/ports/jobs.ts';

/** A fault that a stage can show. */
export type JobsFault =
  /** All workers are killed at once, without a signal, and others take their place. */
  | 'worker_dies'
  /** The engine is killed, and starts again on what it had stored. */
  | 'engine_dies'
  /** A job takes longer than it may: `hasty`. */
  | 'job_hangs'
  /** A worker refuses a job, and the engine offers it to the workers again. */
  | 'worker_refuses';

export interface JobsStage {
  /** Returns the engine as another process sees it, each time anew. */
  jobs(): Jobs;
  /** `job_hangs`. Returns the engine for jobs that may take a second or so, and are offered no longer than that. */
  hasty?(): Jobs;
  /** `worker_dies`. Resolves when the workers are gone; those that follow may still be starting. */
  killWorkers?(): void | Promise<void>;
  /** `engine_dies`. Resolves when the engine is gone; it may still be starting again. */
  killEngine?(): void | Promise<void>;
  close?(): void | Promise<void>;
}

export interface JobsConformanceSetup {
  /** The name of the engine, for messages. */
  readonly name: string;
  /** The faults that the stage can show. */
  readonly shows: readonly JobsFault[];
  /** Looks at what happens, until it has. @defaultValue 20,000 */
  readonly patience?: number;
  /** Lets a moment pass between two looks. @defaultValue a turn of the event loop */
  readonly moment?: () => Promise<void>;
  /** Opens a stage for one case. Its workers do jobs with these handler, wherever they run. */
  open(handler: JobHandler): JobsStage | Promise<JobsStage>;
}
