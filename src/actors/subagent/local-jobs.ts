// Jobs in this process: runs the jobs of `jobWorker` without an engine. It is the reference for engines and is meant
// for development: the same configuration then runs on an engine.
//
// Owns:     the running jobs, by key.
// Does not: store the results of jobs. After a process crash, the rules for calls in doubt apply.

import { z } from 'zod';
import { anObject, check, checkEnvironment, type ChecksOf } from '../../values/checks.ts';
import { ConfigurationError, messageOf } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import {
  cancelledEnd,
  checkJobSize,
  doInTime,
  endWithin,
  JobError,
  refusedEnd,
  type Job,
  type JobEnd,
  type JobHandler,
  type Jobs,
} from '../ports/jobs.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { stepJobs } from './step-jobs.ts';

/** The options of `localJobs`. */
export interface LocalJobsOptions {
  /** Runs the jobs: `jobWorker({ … })`. */
  readonly handler: JobHandler;
  /** The maximum size of a body, in bytes. @defaultValue Infinity */
  readonly maxBytes?: number;
  /**
   * The time limit of a job, in milliseconds (JOBS-7). Needs the `environment`.
   * @defaultValue Infinity: only the limits of the subagent stop it
   */
  readonly longestMs?: number;
  /** The source of time, for `longestMs`: `nodeEnvironment()` of `offstage/node`. */
  readonly environment?: Environment;
}

interface UnderWay {
  readonly controller: AbortController;
  readonly end: Promise<JobEnd>;
  readonly listeners: Set<(text: string) => void>;
}

const optionsSchema = z.strictObject({
  handler: anObject('a handler such as that of jobWorker({ … })', 'do'),
  maxBytes: z.union([z.number().positive(), z.literal(Infinity)]).optional(),
  longestMs: z.union([z.number().int().min(1), z.literal(Infinity)]).optional(),
  environment: z.unknown().optional(),
} satisfies ChecksOf<LocalJobsOptions>);

/**
 * Creates jobs that run in this process.
 * @throws {ConfigurationError} if an option is unknown or invalid.
 */
export function localJobs(options: LocalJobsOptions): Jobs {
  check('localJobs(options)', optionsSchema, options);
  const { handler, maxBytes = Infinity, longestMs = Infinity, environment } = options;
  if (environment !== undefined) checkEnvironment('localJobs(options): environment', environment);
  else if (longestMs !== Infinity)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'localJobs(options): expected an environment beside longestMs, got none',
    );
  const later = (task: () => void, delayMs: number): (() => void) =>
    environment?.scheduler.schedule(task, delayMs, { isBackground: true }) ?? (() => {});
  const jobs = new Map<string, UnderWay>();

  const toEnd = async (
    job: Job,
    signal: AbortSignal,
    say: (text: string) => void,
  ): Promise<JobEnd> => {
    try {
      const work = (own: AbortSignal) => handler.do(job, own, say);
      const end = await doInTime(job, work, { signal, longestMs, later });
      // There is no other worker that could run the job.
      return 'refused' in end ? refusedEnd(end) : endWithin(job, end, maxBytes);
    } catch (error) {
      if (signal.aborted) return cancelledEnd();
      // The job may already have done its work.
      if (job.once) return { lost: true };
      throw new JobError('JOBS_UNREACHABLE', `The worker threw: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    } finally {
      jobs.delete(job.key);
    }
  };
  const begin = (job: Job): UnderWay => {
    const controller = new AbortController();
    const listeners = new Set<(text: string) => void>();
    const say = (text: string): void => {
      for (const listener of listeners) listener(text);
    };
    // Starts in a later turn, so that the job is in `jobs` before it can end.
    const end = Promise.resolve().then(() => toEnd(job, controller.signal, say));
    const begun = { controller, end, listeners };
    jobs.set(job.key, begun);
    return begun;
  };

  return {
    steps: stepJobs,
    name: 'local',
    keepsResults: false,
    maxBytes,
    async run(job, { signal, said }) {
      signal.throwIfAborted();
      checkJobSize(job, maxBytes);
      const { end, listeners } = jobs.get(job.key) ?? begin(job);
      if (said) listeners.add(said);
      try {
        return await raceAbort(end, signal);
      } finally {
        if (said) listeners.delete(said);
      }
    },
    cancel(key) {
      jobs
        .get(key)
        ?.controller.abort(
          new JobError('CANCELLED', 'The job was cancelled', { retryable: false }),
        );
    },
  };
}
