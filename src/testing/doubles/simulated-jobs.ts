// An in-memory engine that stores the outcomes of jobs and whose workers a test can kill. It is for programs that run
// steps as jobs. It outlives the sessions of a test, just as an engine outlives processes.
//
// Owns:     the jobs and their outcomes.
// Does not: measure time. A job starts in the turn after the request, and a job that workers refuse is offered again up
//           to `offers` times.

import { z } from 'zod';
import { anObject, check, checkEnvironment, type ChecksOf } from '../../values/checks.ts';
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
} from '../../actors/ports/jobs.ts';
import { stepJobs } from '../../actors/subagent/step-jobs.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import { raceAbort } from '../../values/race-abort.ts';

/** The options of `simulatedJobs`. */
export interface SimulatedJobsOptions {
  /** Executes the jobs. Pass the handler of `jobWorker({ … })`. */
  readonly handler: JobHandler;
  /** The maximum size of a body and of an outcome's text, in bytes. @defaultValue 1000000 */
  readonly maxBytes?: number;
  /** How many times a job that workers refuse is offered. @defaultValue 1: all workers have the same version */
  readonly offers?: number;
  /** The maximum duration of a job, in milliseconds of the `environment`. @defaultValue Infinity */
  readonly longestMs?: number;
  /** The clock for `longestMs` and for the pause between offers. @defaultValue none: offered again immediately */
  readonly environment?: Environment;
}

/** One start of a job by a worker. */
export interface SimulatedExecution {
  /** The job's key, which identifies the job even after a restart. */
  readonly key: string;
  /** The name of the step, such as `model of reporter`. */
  readonly name: string;
  /** Whether the job must not start twice. */
  readonly once: boolean;
  /** The content that the session sent: JSON, or the text that `packedEngine` made from it. */
  readonly body: string;
}

/** A test engine for jobs that runs in this process. The test can kill its workers. */
export interface SimulatedJobs extends Jobs {
  /** The jobs in the order in which they started. A restarted job is listed again. */
  readonly begun: readonly SimulatedExecution[];
  /** Kills all workers at the same time. Running jobs are restarted. A job that may not be restarted is lost. */
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
  /** The number of the job's current start. A dead worker belongs to an earlier start. */
  nth: number;
  offers: number;
  /** No worker has the job, because the last one refused it. */
  isOffered: boolean;
}

const OFFER_PAUSE_MS = 1;

const optionsSchema = z.strictObject({
  handler: anObject('a handler such as that of jobWorker({ … })', 'do'),
  maxBytes: z.number().int().min(1).optional(),
  offers: z.number().int().min(1).optional(),
  longestMs: z.number().int().min(1).optional(),
  environment: z.unknown().optional(),
} satisfies ChecksOf<SimulatedJobsOptions>);

/**
 * Creates an in-memory engine that stores the outcomes of jobs and whose workers a test can kill.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function simulatedJobs(options: SimulatedJobsOptions): SimulatedJobs {
  check('simulatedJobs(options)', optionsSchema, options);
  const { handler, maxBytes = 1_000_000, offers = 1, longestMs = Infinity, environment } = options;
  if (longestMs !== Infinity || environment !== undefined)
    checkEnvironment('simulatedJobs(options): environment', environment);
  const later = (task: () => void, delayMs: number): (() => void) => {
    if (environment) return environment.scheduler.schedule(task, delayMs);
    task();
    return () => {};
  };
  const known = new Map<string, Held>();
  const begun: SimulatedExecution[] = [];

  const end = (held: Held, how: JobEnd): void => {
    held.isEnded = true;
    held.settle(endWithin(held.job, how, maxBytes));
  };
  const begin = (held: Held): void => {
    const { job } = held;
    held.nth += 1;
    held.isOffered = false;
    held.controller = new AbortController();
    const { nth } = held;
    const isCurrent = (): boolean => !held.isEnded && held.nth === nth;
    const say = (text: string): void => {
      if (isCurrent()) for (const listener of held.listeners) listener(text);
    };
    const execution = { ...job };
    begun.push(execution);
    const work = (signal: AbortSignal) => handler.do(job, signal, say);
    const { signal } = held.controller;
    void Promise.resolve()
      .then(() => doInTime(job, work, { signal, longestMs, later }))
      .then(
        (how) => {
          if (!isCurrent()) return;
          if (!('refused' in how)) {
            end(held, how);
            return;
          }
          // JOBS-8: a job that was refused was not started.
          begun.splice(begun.indexOf(execution), 1);
          held.offers += 1;
          held.isOffered = true;
          if (held.isCancelled) end(held, cancelledEnd());
          else if (held.offers >= offers) end(held, refusedEnd(how));
          else
            later(() => {
              if (isCurrent()) begin(held);
            }, OFFER_PAUSE_MS);
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
      offers: 0,
      isOffered: false,
    };
    known.set(job.key, held);
    begin(held);
    return held;
  };

  return {
    steps: stepJobs,
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
      if (held.isOffered) end(held, cancelledEnd());
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
      // A job that no worker has is not lost.
      for (const held of known.values()) if (!held.isEnded && !held.isOffered) settleDeath(held);
    },
  };
}
