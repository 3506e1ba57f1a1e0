// What an engine stores of a job: without its secrets, sealed with the app's key, and kept elsewhere if it is large.
// Both ends need the same packing: `packedJobs` where jobs are asked for, `packedHands` where they are done.
//
// Owns:     the order: secrets are taken out, then the text is sealed, then a large one is claimed.
// Does not: encrypt (the app's codec does), or keep large texts (the claims do).
//
// Invariants
//   PACKED-JOBS-1. With a codec, no text of a body or of an end reaches the engine or the claims unsealed.
//   PACKED-JOBS-2. A text of more than `claimAboveBytes` is kept by the claims before the engine gets its reference.
//   PACKED-JOBS-3. A text that cannot be unpacked is a failure of this job (`JOB_UNREADABLE`), never another text.

import { z } from 'zod';
import { aFunction, anObject, check, type ChecksOf } from '../../values/checks.ts';
import { isLongerThan, parsedOrText } from '../../values/json.ts';
import { isA, messageOf } from '../../values/errors.ts';
import { JobError, type JobEnd, type JobHands, type Jobs } from '../ports/jobs.ts';
import { raceAbort } from './race-abort.ts';
import { secretsTaken, type RedactionOptions } from './redacting-journal.ts';

/** Seals texts with a key of the app: encryption, for example. Both ends have the same. */
export interface JobCodec {
  seal(text: string): string | Promise<string>;
  /** Rejects a text that it did not seal. */
  open(sealed: string): string | Promise<string>;
}

/** Keeps large texts for both ends: a bucket, a table, a shared folder (`fileClaims` of `offstage/node`). */
export interface JobClaims {
  /** Keeps a text. A second one under the same reference replaces it. */
  keep(reference: string, text: string): void | Promise<void>;
  /** Returns the text; null: there is none. */
  read(reference: string): string | null | Promise<string | null>;
  /** Forgets all texts whose references begin so. */
  forget?(prefix: string): void | Promise<void>;
}

/** The treatment of the texts of jobs before an engine stores them; the same at both ends. */
export interface JobPacking {
  /**
   * Takes secrets out of bodies and results, as `redactingJournal` does: the worker's model and tools do not see them
   * either. @defaultValue none
   */
  readonly redact?: RedactionOptions;
  /** @defaultValue none */
  readonly codec?: JobCodec;
  /** @defaultValue none: a body above `maxBytes` of the engine is refused */
  readonly claims?: JobClaims;
  /** The size above which a text is kept by the claims. @defaultValue 100000 */
  readonly claimAboveBytes?: number;
}

const packingSchema = z.strictObject({
  redact: z.unknown().optional(),
  codec: anObject('a codec with seal() and open()', 'seal', 'open').optional(),
  claims: anObject('claims with keep() and read()', 'keep', 'read').optional(),
  claimAboveBytes: z.number().int().min(0).optional(),
} satisfies ChecksOf<JobPacking>);

const method = aFunction;
const jobsSchema = z.looseObject({
  name: z.string(),
  keepsResults: z.boolean(),
  // May be Infinity, which is no number for zod.
  maxBytes: z.union([z.number(), z.literal(Infinity)]),
  run: method,
  cancel: method,
  forget: method.optional(),
});

const CLAIM_ABOVE_BYTES = 100_000;

const packed = z.strictObject({
  sealed: z.boolean(),
  text: z.string().optional(),
  claim: z.string().optional(),
});

/**
 * Packs the bodies of jobs before they reach the engine, and unpacks their results.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function packedJobs(jobs: Jobs, packing: JobPacking): Jobs {
  check('packedJobs(jobs, …)', jobsSchema, jobs);
  const packer = new Packer('packedJobs(…, packing)', packing);
  const { forget } = jobs;
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
    ...(forget || packing.claims?.forget
      ? {
          async forget(prefix: string) {
            await forget?.call(jobs, prefix);
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
export function packedHands(hands: JobHands, packing: JobPacking): JobHands {
  check('packedHands(hands, …)', anObject('hands such as those of jobWorker({ … })', 'do'), hands);
  const packer = new Packer('packedHands(…, packing)', packing);
  return {
    async do(job, signal, said): Promise<JobEnd> {
      let isDone = false;
      try {
        const body = await raceAbort(packer.unpack(job.body), signal);
        const end = await hands.do({ ...job, body }, signal, packer.isSealing ? undefined : said);
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

class Packer {
  readonly #packing: JobPacking;
  readonly #redact: ((json: unknown) => unknown) | null;

  constructor(where: string, packing: JobPacking) {
    check(where, packingSchema, packing);
    this.#packing = packing;
    const { redact } = packing;
    this.#redact = redact === undefined ? null : secretsTaken(`${where}.redact`, redact);
  }

  get isSealing(): boolean {
    return this.#packing.codec !== undefined;
  }

  async pack(reference: string, text: string): Promise<string> {
    const { codec, claims, claimAboveBytes = CLAIM_ABOVE_BYTES } = this.#packing;
    const bare = this.#redact ? JSON.stringify(this.#redact(parsedOrText(text))) : text;
    const sealed = codec !== undefined;
    const ready = codec ? await sealedBy(codec, bare) : bare;
    if (!claims || !isLongerThan(ready, claimAboveBytes))
      return JSON.stringify({ sealed, text: ready });
    try {
      await claims.keep(reference, ready);
    } catch (error) {
      throw new JobError('CLAIMS_UNREACHABLE', `The claims keep nothing: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    }
    return JSON.stringify({ sealed, claim: reference });
  }

  /** PACKED-JOBS-3 */
  async unpack(written: string): Promise<string> {
    const { success, data } = packed.safeParse(parsedOrText(written));
    if (!success) throw unreadable('expected a text that packedJobs(…) or packedHands(…) wrote');
    const { codec } = this.#packing;
    if (data.sealed !== (codec !== undefined))
      throw unreadable(data.sealed ? 'it is sealed: expected a codec' : 'it is not sealed');
    const ready = data.claim === undefined ? data.text : await this.#claimed(data.claim);
    if (ready === undefined) throw unreadable('it is empty');
    if (!codec) return ready;
    try {
      return await codec.open(ready);
    } catch (error) {
      throw unreadable(`the codec cannot open it: ${messageOf(error)}`);
    }
  }

  async #claimed(reference: string): Promise<string> {
    const { claims } = this.#packing;
    if (!claims) throw unreadable('it was kept elsewhere: expected `claims`');
    let text: string | null;
    try {
      text = await claims.read(reference);
    } catch (error) {
      throw new JobError('CLAIMS_UNREACHABLE', `The claims cannot be read: ${messageOf(error)}`, {
        retryable: true,
        cause: error,
      });
    }
    if (text === null) throw unreadable(`the claims do not have ${reference}`);
    return text;
  }
}

async function sealedBy(codec: JobCodec, text: string): Promise<string> {
  try {
    return await codec.seal(text);
  } catch (error) {
    const message = `The codec cannot seal a job: ${messageOf(error)}`;
    throw new JobError('JOB_UNREADABLE', message, { retryable: false, cause: error });
  }
}

function unreadable(why: string): JobError {
  return new JobError(
    'JOB_UNREADABLE',
    `A job cannot be unpacked: ${why}. Both ends need the same packing`,
    { retryable: false },
  );
}
