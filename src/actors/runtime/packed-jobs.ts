// Jobs whose bodies and ends an engine stores packed (packing.ts): `packedJobs` where jobs are asked for, `packedHandler` where
// they are done.

import { aFunction, anObject, check } from '../../values/checks.ts';
import { z } from 'zod';
import { isA, messageOf } from '../../values/errors.ts';
import {
  JobError,
  type JobEnd,
  type JobHandler,
  type JobRefusal,
  type Jobs,
} from '../ports/jobs.ts';
import { isPacked, Packer, type JobPacking } from './packing.ts';
import { raceAbort } from '../../values/race-abort.ts';

/** The places of a job's texts (PACKING-5). */
export const bodyOf = (key: string): string => `${key}/body`;
const endOf = (key: string): string => `${key}/end`;

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
      const body = await raceAbort(packer.pack(bodyOf(job.key), job.body), signal);
      // Words on the way are not packed, so they stay with the engines that carry none of them.
      const hear = packer.isSealing ? undefined : said;
      const end = await jobs.run({ ...job, body }, { signal, said: hear });
      return raceAbort(unpackedEnd(packer, job.key, end), signal);
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
    async do(job, signal, said): Promise<JobEnd | JobRefusal> {
      let body: string;
      try {
        body = await raceAbort(packer.unpack(job.body, bodyOf(job.key)), signal);
      } catch (error) {
        if (signal.aborted || !isA(error, JobError)) throw error;
        const { code, message, retryable } = error;
        // A worker of another version may have the key.
        return retryable
          ? { failed: { code, message, retryable } }
          : { refused: { code, message } };
      }
      const end = await handler.do({ ...job, body }, signal, packer.isSealing ? undefined : said);
      try {
        return await raceAbort(packedEnd(packer, job.key, end), signal);
      } catch (error) {
        // It was done, and its result cannot be told.
        if ('done' in end && job.once && !signal.aborted) return { lost: true };
        if (signal.aborted || !isA(error, JobError)) throw error;
        const { code, message, retryable } = error;
        return { failed: { code, message, retryable } };
      }
    },
  };
}

/** The message of a failure may hold words of a user or of a provider: it is hidden like a result. */
async function packedEnd<End extends JobEnd | JobRefusal>(
  packer: Packer,
  key: string,
  end: End,
): Promise<End | JobEnd> {
  if ('done' in end) return { done: await packer.pack(endOf(key), end.done) };
  if (!('failed' in end) || !packer.isHiding) return end;
  const message = await packer.packJson(endOf(key), end.failed.message);
  return { failed: { ...end.failed, message } };
}

export async function unpackedEnd(packer: Packer, key: string, end: JobEnd): Promise<JobEnd> {
  if ('done' in end) return { done: await packer.unpack(end.done, endOf(key)) };
  // The engine's own failures are not packed.
  if (!('failed' in end) || !isPacked(end.failed.message)) return end;
  const message = await unpackedMessage(packer, key, end.failed.message);
  return { failed: { ...end.failed, message } };
}

/** The code of a failure counts, whatever became of its message. */
async function unpackedMessage(packer: Packer, key: string, packed: string): Promise<string> {
  try {
    return String(JSON.parse(await packer.unpack(packed, endOf(key))));
  } catch (error) {
    if (isA(error, JobError) && error.retryable) throw error;
    return `Its message cannot be read: ${messageOf(error)}`;
  }
}
