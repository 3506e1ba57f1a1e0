// Jobs whose bodies and ends an engine stores packed (packing.ts): `packedJobs` where jobs are asked for, `packedHandler` where
// they are done.

import { aFunction, anObject, check } from '../../values/checks.ts';
import { z } from 'zod';
import { isA } from '../../values/errors.ts';
import { JobError, type JobEnd, type JobHandler, type Jobs } from '../ports/jobs.ts';
import { Packer, type JobPacking } from './packing.ts';
import { raceAbort } from './race-abort.ts';

const method = aFunction;
const jobsSchema = z.looseObject({
  name: z.string(),
  keepsResults: z.boolean(),
  // May be Infinity, which is no number for zod.
  maxBytes: z.union([z.number(), z.literal(Infinity)]),
  run: method,
  cancel: method,
  ended: method.optional(),
  forget: method.optional(),
});

/**
 * Packs the bodies of jobs before they reach the engine, and unpacks their results.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function packedJobs(jobs: Jobs, packing: JobPacking): Jobs {
  check('packedJobs(jobs, …)', jobsSchema, jobs);
  const packer = new Packer('packedJobs(…, packing)', packing);
  const { ended, forget } = jobs;
  return {
    name: jobs.name,
    keepsResults: jobs.keepsResults,
    maxBytes: jobs.maxBytes,
    async run(job, { signal, said }) {
      signal.throwIfAborted();
      const body = await raceAbort(packer.pack(`${job.key}/body`, job.body), signal);
      // What is said on the way is not packed, so it stays with the engines that carry none of it.
      const hear = packer.isSealing ? undefined : said;
      const end = await jobs.run({ ...job, body }, { signal, said: hear });
      if (!('done' in end)) return end;
      return { done: await raceAbort(packer.unpack(end.done), signal) };
    },
    cancel: (key) => jobs.cancel(key),
    async ended(prefix) {
      await ended?.call(jobs, prefix);
      await packing.claims?.forget?.(prefix);
    },
    ...(forget
      ? {
          async forget(prefix: string) {
            await forget.call(jobs, prefix);
            await packing.claims?.forget?.(prefix);
          },
        }
      : {}),
  };
}

/**
 * Unpacks the bodies of jobs at a worker, and packs their results.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function packedHandler(handler: JobHandler, packing: JobPacking): JobHandler {
  check(
    'packedHandler(handler, …)',
    anObject('a handler such as that of jobWorker({ … })', 'do'),
    handler,
  );
  const packer = new Packer('packedHandler(…, packing)', packing);
  return {
    async do(job, signal, said): Promise<JobEnd> {
      let isDone = false;
      try {
        const body = await raceAbort(packer.unpack(job.body), signal);
        const end = await handler.do({ ...job, body }, signal, packer.isSealing ? undefined : said);
        if (!('done' in end)) return end;
        isDone = true;
        return { done: await raceAbort(packer.pack(`${job.key}/end`, end.done), signal) };
      } catch (error) {
        if (signal.aborted) throw error;
        // It was done, and its result cannot be told.
        if (isDone && job.once) return { lost: true };
        if (!isA(error, JobError)) throw error;
        const { code, message, retryable } = error;
        return { failed: { code, message, retryable } };
      }
    },
  };
}
