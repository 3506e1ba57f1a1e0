// Jobs: steps of subagents (a model call, a tool call) that are done wherever their code and keys are, in another
// process or on an engine such as Restate or Temporal. `test/suites/jobs` tests an implementation.
//
// A job has a key, a name for the engine's pages, and a body: a text that only the two ends read. The asking end is the
// session; the other one is `JobHandler`, such as those of `jobWorker`. Consent, budgets, retries and checks of outputs are
// decided in the session, never in a job.
//
// Invariants
//   JOBS-1. One key is one job, for all processes: begun if there is none, waited for while it is under way, its end once
//       it has one (where `keepsResults`, also after a crash of either end).
//   JOBS-2. A job is done at least once. One with `once` is begun at most once: where nobody knows whether it was done,
//       its end is `{ lost: true }`, and it is never begun again.
//   JOBS-3. Aborting the signal makes `run` reject at once, and stops nothing: `cancel` asks the job to stop.
//   JOBS-4. `run` rejects with a `JobError` or the reason of the signal, and with nothing else.
//   JOBS-5. A body of more than `maxBytes` is refused before it is begun (`JOB_TOO_LARGE`).
//   JOBS-6. After `forget`, the engine gives nothing of the jobs with these keys to anybody, and has none of them under way.
//   JOBS-7. A job that takes longer than the engine permits is asked to stop, and ends at once: with `JOB_TIMEOUT`, or as
//       `lost` if it has `once`. Its result counts nothing afterwards, and it is not begun again.
//   JOBS-8. A job that a worker refuses was not begun, and loses nothing: it is offered to the workers again, with `once`,
//       too. Where none takes it in time, its end is the failure that the last one gave.

import { z } from 'zod';
import { messageOf, OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { propertiesOf, byteLength, isLongerThan } from '../../values/json.ts';
import { raceAbort } from '../../values/race-abort.ts';

/** A step that is done elsewhere. */
export interface Job {
  /** `<scope>/<subagent>:…`; the same for every attempt to get the end of this very job. */
  readonly key: string;
  /** Names the step to people: `model of reporter`, `tool charge of rides`. */
  readonly name: string;
  /** It must not be begun twice. */
  readonly once: boolean;
  /** Its content: JSON, or whatever `packedEngine` made of it. */
  readonly body: string;
  /**
   * The span that asks for it, for `tracedHandler` of `offstage/otel` at the worker. It decides nothing: another attempt to
   * get the end of this job may name another span, and a worker that does not know the field does the job.
   * @defaultValue none: nobody traces it
   */
  readonly trace?: TraceContext;
}

/** The reason why a job has no result. */
export interface JobFailure {
  readonly code: string;
  readonly message: string;
  /** Another job for the same step may succeed. */
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

/** The end of a job, as plain JSON. */
export type JobEnd =
  | { readonly done: string }
  | { readonly failed: JobFailure }
  /** It was begun, and its worker died or did not end it in time: nobody knows whether it was done. */
  | { readonly lost: true };

/** A worker lacks what a job needs, and a worker of another version may have it. The job was not begun (JOBS-8). */
export interface JobRefusal {
  readonly refused: Pick<JobFailure, 'code' | 'message'>;
}

/** Reads an end as an engine gives it back. A worker of a later version may add fields, which say nothing here. */
export const jobEndSchema: z.ZodType<JobEnd> = z.union([
  z.object({ done: z.string() }),
  z.object({
    failed: z.object({
      code: z.string(),
      message: z.string(),
      retryable: z.boolean(),
      retryAfterMs: z.number().optional(),
    }),
  }),
  z.object({ lost: z.literal(true) }),
]);

/** What a job gets beside its data: the signal that ends it, and the way to send texts. */
export interface JobRunOptions {
  readonly signal: AbortSignal;
  /**
   * Gets texts that the job sends while it is under way, where the engine carries them. They may be missing, and none
   * comes after the end.
   */
  readonly said?: ((text: string) => void) | undefined;
}

/** Asks an engine for the steps of a subagent. The one that there is: `stepJobs` of `offstage/jobs`. */
export interface JobsExecutor {
  readonly stepsBy: 'jobs';
}

/** The engine that does jobs, as a session sees it. */
export interface Jobs {
  /** Names the engine in journals and errors. */
  readonly name: string;
  /** `stepJobs` of `offstage/jobs`. */
  readonly steps: JobsExecutor;
  /** Ends are kept, for a process that asks again after a crash. */
  readonly keepsResults: boolean;
  /** The limit of a body, and of the text of an end, in UTF-8. */
  readonly maxBytes: number;
  run(job: Job, options: JobRunOptions): Promise<JobEnd>;
  /** Asks a job to stop, if it is under way. Never throws. */
  cancel(key: string): void;
  /**
   * Tells that nobody asks any more for the jobs whose keys begin so: their subagent has ended. What is kept beside the
   * engine can go. @defaultValue nothing is done
   */
  ended?(prefix: string): void | Promise<void>;
  /**
   * Deletes what is kept of the jobs whose keys begin so; those under way are stopped first (JOBS-6). For
   * `forgetSession` and `forgetRun`. @defaultValue the engine deletes them after a time of its own
   * @throws {JobError}
   */
  forget?(prefix: string): void | Promise<void>;
}

/** The end where jobs are done. */
export interface JobHandler {
  /**
   * Does the job, or refuses it before it has begun it. Rejects with the reason of the signal, soon after that has aborted,
   * and with nothing else. `said` never throws.
   */
  do(job: Job, signal: AbortSignal, said?: (text: string) => void): Promise<JobEnd | JobRefusal>;
}

/**
 * An engine could not be asked. With `retryable` the caller asks again, under the same key. Codes of the engines that
 * come with Offstage: `JOBS_UNREACHABLE` and `CLAIMS_UNREACHABLE`, which may be temporary; `JOB_TOO_LARGE`,
 * `JOBS_REFUSED`, `JOB_UNREADABLE`, `RUN_UNDER_WAY` and `FORGET_UNSURE`, which are permanent.
 */
export class JobError extends OffstageError {
  readonly retryable: boolean;
  constructor(
    code: string,
    message: string,
    options: { readonly retryable: boolean; readonly cause?: unknown },
  ) {
    super(code, message, options);
    this.retryable = options?.retryable ?? false;
  }
}

/** @throws {JobError} `JOB_TOO_LARGE` (JOBS-5). */
export function checkJobSize({ name, body }: Job, maxBytes: number): void {
  if (isLongerThan(body, maxBytes)) throw jobTooLarge(name, body, maxBytes);
}

/** Returns the end, or a failure in place of an end whose text is larger than the engine keeps. */
export function endWithin<End extends JobEnd | JobRefusal>(
  job: Job,
  end: End,
  maxBytes: number,
): End | JobEnd {
  if (!('done' in end) || !isLongerThan(end.done, maxBytes)) return end;
  const { code, message, retryable } = jobTooLarge(`the result of ${job.name}`, end.done, maxBytes);
  return { failed: { code, message, retryable } };
}

/** Returns the key as an id of an engine: at most so many letters, digits and signs that every protocol carries. */
export async function engineKeyOf(key: string, maxChars: number): Promise<string> {
  const encoded = encodeURIComponent(key.toWellFormed());
  if (encoded.length <= maxChars) return encoded;
  return `${encoded.slice(0, maxChars / 2)}~${await digestOf(key)}`;
}

/** Returns a digest of 256 bits, in hexadecimal. */
export async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Returns the beginning of the ids that `engineKeyOf` makes of the keys with this prefix.
 * @throws {JobError} `FORGET_UNSURE`: it is too long to tell the keys with it from others.
 */
export function enginePrefixOf(prefix: string, maxChars: number): string {
  const encoded = encodeURIComponent(prefix.toWellFormed());
  if (encoded.length <= maxChars / 2) return encoded;
  throw new JobError(
    'FORGET_UNSURE',
    `The jobs of ${JSON.stringify(prefix)} cannot be told from others: expected at most ${maxChars / 2} characters as the engine writes it, got ${encoded.length}`,
    { retryable: false },
  );
}

/**
 * Reads what an engine gave back.
 * @throws {JobError} `JOB_UNREADABLE` for a value of another shape.
 */
export function readFrom<Schema extends z.ZodType>(
  engine: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  throw jobUnreadable(
    `${engine} gave an answer of another shape: ${z.prettifyError(checked.error)}`,
  );
}

/** The error for a text of a job or run, or an answer about one, that is not what the other end writes. */
export function jobUnreadable(message: string, cause?: unknown): JobError {
  return new JobError('JOB_UNREADABLE', message, {
    retryable: false,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The error for an engine that did not answer, with the innermost cause that is known. */
export function unreachable(engine: string, error: unknown): JobError {
  const { cause } = propertiesOf(error);
  const message = `${engine} does not answer: ${messageOf(cause ?? error)}`;
  return new JobError('JOBS_UNREACHABLE', message, { retryable: true, cause: error });
}

/** The end of a job that took longer than it may (JOBS-7). */
export function overdueEnd({ name, once }: Pick<Job, 'name' | 'once'>, longestMs: number): JobEnd {
  if (once) return { lost: true };
  const message = `${name}: expected its end within ${longestMs} ms; it was told to stop`;
  return { failed: { code: 'JOB_TIMEOUT', message, retryable: true } };
}

/** How long a job that workers refuse is offered, unless the app says otherwise: a deploy takes less. */
export const OFFER_MS = 600_000;
const MIN_OFFER_PAUSE_MS = 500;
const MAX_OFFER_PAUSE_MS = 30_000;

/** The pause after the nth offer that was refused, from 1. */
export function offerPauseMs(nth: number): number {
  return Math.min(MIN_OFFER_PAUSE_MS * 2 ** (nth - 1), MAX_OFFER_PAUSE_MS);
}

/** The end of a job that no worker took (JOBS-8). */
export function refusedEnd({ refused: { code, message } }: JobRefusal): JobEnd {
  return { failed: { code, message, retryable: false } };
}

/**
 * Does a step of a whole run. One that the worker refuses was not begun (JOBS-8): it is thrown, for another worker to do; one that
 * must not be repeated, which the engine takes for begun, fails as the worker says.
 */
export async function doStep(handler: JobHandler, step: Job, signal: AbortSignal): Promise<JobEnd> {
  const end = await handler.do(step, signal);
  if (!('refused' in end)) return end;
  if (step.once) return refusedEnd(end);
  const { code, message } = end.refused;
  throw new JobError(code, message, { retryable: true });
}

export interface JobTimeLimit {
  readonly signal: AbortSignal;
  readonly longestMs: number;
  /** Runs a task after so many milliseconds. Returns a function that cancels it. */
  readonly later: (task: () => void, delayMs: number) => () => void;
}

/** Does a job with a signal that also aborts when its time is over; then its end is there at once (JOBS-7). */
export async function doInTime<End>(
  job: Job,
  work: (signal: AbortSignal) => Promise<End>,
  { signal, longestMs, later }: JobTimeLimit,
): Promise<End | JobEnd> {
  if (longestMs === Infinity) return work(signal);
  const late = new AbortController();
  const untimer = later(() => {
    const message = `${job.name} took longer than ${longestMs} ms`;
    late.abort(new JobError('JOB_TIMEOUT', message, { retryable: true }));
  }, longestMs);
  try {
    return await raceAbort(work(AbortSignal.any([signal, late.signal])), late.signal);
  } catch (error) {
    if (late.signal.aborted && !signal.aborted) return overdueEnd(job, longestMs);
    throw error;
  } finally {
    untimer();
  }
}

/** The end of a job that was cancelled. */
export function cancelledEnd(): JobEnd {
  return { failed: { code: 'CANCELLED', message: 'The job was cancelled', retryable: false } };
}

/** The error for a text that the engine does not keep. */
export function jobTooLarge(what: string, text: string, maxBytes: number): JobError {
  return new JobError(
    'JOB_TOO_LARGE',
    `${what}: expected at most ${maxBytes} bytes, got ${byteLength(text)}: give packedEngine(…) and packedHandler(…) the same \`claims\`, which keep large texts`,
    { retryable: false },
  );
}
