// An engine in memory that keeps ends, and whose workers can be killed: for tests of programs that run steps as jobs.
// It outlives the sessions of a test, as an engine outlives processes.
//
// Owns:     the jobs and their ends.
// Does not: run in time of its own: a job is begun in the turn after it was asked for.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import {
  cancelledEnd,
  checkJobSize,
  endWithin,
  JobError,
  type Job,
  type JobEnd,
  type JobHandler,
  type Jobs,
} from '../../actors/ports/jobs.ts';
import { raceAbort } from '../../actors/runtime/race-abort.ts';

export interface SimulatedJobsOptions {
  /** Does the jobs: those of `jobWorker({ … })`. */
  readonly handler: JobHandler;
  /** The limit of a body, and of the text of an end. @defaultValue 1000000 */
  readonly maxBytes?: number;
}

/** One time that a worker has begun a job. */
export interface SimulatedExecution {
  readonly key: string;
  readonly name: string;
  readonly once: boolean;
  readonly body: string;
}

export interface SimulatedJobs extends Jobs {
  /** What was begun, in order: a job that is begun again is there again. */
  readonly begun: readonly SimulatedExecution[];
  /** Kills all workers at once. Jobs under way are begun again, or are lost where that is not permitted. */
  killWorkers(): void;
}

interface Held {
  readonly job: Job;
  readonly end: Promise<JobEnd>;
  readonly settle: (end: JobEnd) => void;
  readonly listeners: Set<(text: string) => void>;
  isEnded: boolean;
  isCancelled: boolean;
  controller: AbortController;
  /** The number of the time that it was begun; a worker that died has an older one. */
  nth: number;
}

const optionsSchema = z.strictObject({
  handler: anObject('a handler such as that of jobWorker({ … })', 'do'),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<SimulatedJobsOptions>);

/**
 * Creates an engine in memory that keeps ends, and whose workers can be killed.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function simulatedJobs(options: SimulatedJobsOptions): SimulatedJobs {
  check('simulatedJobs(options)', optionsSchema, options);
  const { handler, maxBytes = 1_000_000 } = options;
  const known = new Map<string, Held>();
  const begun: SimulatedExecution[] = [];

  const end = (held: Held, how: JobEnd): void => {
    held.isEnded = true;
    held.settle(endWithin(held.job, how, maxBytes));
  };
  const begin = (held: Held): void => {
    const { job } = held;
    held.nth += 1;
    held.controller = new AbortController();
    const { nth } = held;
    const isCurrent = (): boolean => !held.isEnded && held.nth === nth;
    const say = (text: string): void => {
      if (isCurrent()) for (const listener of held.listeners) listener(text);
    };
    begun.push({ ...job });
    void Promise.resolve()
      .then(() => handler.do(job, held.controller.signal, say))
      .then(
        (how) => {
          if (isCurrent()) end(held, how);
        },
        () => {
          if (isCurrent()) settleDeath(held);
        },
      );
  };
  const settleDeath = (held: Held): void => {
    if (held.isCancelled) end(held, cancelledEnd());
    else if (held.job.once) end(held, { lost: true });
    else begin(held);
  };
  const hold = (job: Job): Held => {
    const { promise, resolve: settle } = Promise.withResolvers<JobEnd>();
    const held: Held = {
      job: { ...job },
      end: promise,
      settle,
      listeners: new Set(),
      isEnded: false,
      isCancelled: false,
      controller: new AbortController(),
      nth: 0,
    };
    known.set(job.key, held);
    begin(held);
    return held;
  };

  return {
    name: 'simulated',
    keepsResults: true,
    maxBytes,
    begun,
    async run(job, { signal, said }) {
      signal.throwIfAborted();
      checkJobSize(job, maxBytes);
      const held = known.get(job.key) ?? hold(job);
      if (said) held.listeners.add(said);
      try {
        return await raceAbort(held.end, signal);
      } finally {
        if (said) held.listeners.delete(said);
      }
    },
    cancel(key) {
      const held = known.get(key);
      if (!held || held.isEnded) return;
      held.isCancelled = true;
      held.controller.abort(
        new JobError('CANCELLED', 'The job was cancelled', { retryable: false }),
      );
    },
    forget(prefix) {
      for (const [key, held] of known) {
        if (!key.startsWith(prefix)) continue;
        known.delete(key);
        if (held.isEnded) continue;
        end(held, cancelledEnd());
        held.controller.abort(new JobError('CANCELLED', 'It was deleted', { retryable: false }));
      }
    },
    killWorkers() {
      for (const held of known.values()) if (!held.isEnded) settleDeath(held);
    },
  };
}
