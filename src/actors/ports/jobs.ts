// Jobs: steps of a subagent (model calls and tool calls) that run where their code and keys are, in another process or
// on an engine such as Restate or Temporal. `test/suites/jobs` tests an implementation.
//
// A job has a key, a name that the engine's pages show, and a body: text that only the two ends interpret. One end is
// the session, which requests the job; the other is a `JobHandler`, such as that of `jobWorker`. The session decides on
// approvals, budgets, retries and output checks; a job never does.
//
// Invariants
//   JOBS-1. A key identifies one job across all processes. `run` starts the job if it does not exist, waits until it
//       has ended, and returns how it ended (with `keepsResults`, even after either end has crashed).
//   JOBS-2. A job runs at least once. A job with `once` starts at most once: if it is unknown whether it has finished,
//       it ends with `{ lost: true }` and does not start again.
//   JOBS-3. When the signal aborts, `run` rejects immediately, but the job continues; `cancel` asks the job to stop.
//   JOBS-4. `run` rejects only with a `JobError` or the signal's reason.
//   JOBS-5. A body of more than `maxBytes` is refused before the job starts (`JOB_TOO_LARGE`).
//   JOBS-6. After `forget`, the engine neither returns data about the jobs with these keys nor runs them.
//   JOBS-7. A job that exceeds the engine's time limit is asked to stop, and `run` returns immediately: with
//       `JOB_TIMEOUT`, or with `lost` if the job has `once`. A result that arrives later is ignored, and the job does
//       not start again.
//   JOBS-8. A job that a worker refuses has not started, even with `once`, and is offered to the workers again. If no
//       worker accepts it in time, it fails with the last worker's refusal.

import { z } from 'zod';
import { messageOf, RetryableError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { propertiesOf, byteLength, isLongerThan } from '../../values/json.ts';
import { raceAbort } from '../../values/race-abort.ts';

/** A step of a subagent that runs elsewhere. */
export interface Job {
  /** `<scope>/<subagent>:…`; the same for every request for this job's result. */
  readonly key: string;
  /** The name of the step, for display: `model of reporter`, `tool charge of rides`. */
  readonly name: string;
  /** Whether the job must not start twice. */
  readonly once: boolean;
  /** The content: JSON, or the text that `packedEngine` made from it. */
  readonly body: string;
  /**
   * The span that requests the job, which `tracedHandler` of `offstage/otel` reads in the worker. Used only for
   * tracing: another request for this job's result may name another span, and a worker that does not know this field
   * runs the job anyway.
   * @defaultValue none: the job is not traced
   */
  readonly trace?: TraceContext;
}

/** Why a job has no result. */
export interface JobFailure {
  /** The code of the failure. */
  readonly code: string;
  /** The cause, as text. */
  readonly message: string;
  /** Whether the step may succeed if another job is started for it. */
  readonly retryable: boolean;
  /** How long the provider asks the caller to wait, in milliseconds. @defaultValue none */
  readonly retryAfterMs?: number;
}

/** How a job ended, as plain JSON. */
export type JobEnd =
  | { readonly done: string }
  | { readonly failed: JobFailure }
  /** The job was started, but its worker died or did not finish in time, so it is unknown whether the work was done. */
  | { readonly lost: true };

/**
 * The answer of a worker that lacks something that the job needs. A worker of another version may have it. The job has
 * not started (JOBS-8).
 */
export interface JobRefusal {
  /** Why the worker refused. */
  readonly refused: Pick<JobFailure, 'code' | 'message'>;
}

/** Parses an engine's report on how a job ended. Fields that a later version of the worker added are ignored. */
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

/** The options of `run`. */
export interface JobRunOptions {
  /** Aborting it ends the wait, but not the job. */
  readonly signal: AbortSignal;
  /**
   * Receives texts that the job sends while it runs, if the engine transports them. Texts may get lost, and none
   * arrives after the job has ended.
   */
  readonly said?: ((text: string) => void) | undefined;
}

/** Requests a subagent's steps from an engine. The only implementation is `stepJobs` of `offstage/jobs`. */
export interface JobsExecutor {
  /** Marks the executor, so that `createRuntime` can refuse an engine without one. */
  readonly stepsBy: 'jobs';
}

/** An engine that runs jobs, as a session uses it. */
export interface Jobs {
  /** The engine's name in journals and errors. */
  readonly name: string;
  /** `stepJobs` of `offstage/jobs`. */
  readonly steps: JobsExecutor;
  /** Whether the engine stores how a job ended, so that a process can ask again after a crash. */
  readonly keepsResults: boolean;
  /** The maximum size of a body, and of the text with which a job ends, in UTF-8 bytes. */
  readonly maxBytes: number;
  /** Runs a job and resolves with how it ended. */
  run(job: Job, options: JobRunOptions): Promise<JobEnd>;
  /** Asks a running job to stop. Never throws. */
  cancel(key: string): void;
  /**
   * Called when the subagent whose jobs' keys start with `prefix` has ended. No process requests these jobs again, so
   * data that is stored in addition to the engine's can be deleted. @defaultValue nothing is done
   */
  ended?(prefix: string): void | Promise<void>;
  /**
   * Deletes all data of the jobs whose keys start with `prefix`; running jobs are stopped first (JOBS-6). Used by
   * `forgetSession` and `forgetRun`. @defaultValue the engine deletes the data after its retention time
   * @throws {JobError}
   */
  forget?(prefix: string): void | Promise<void>;
}

/** The side that runs jobs, such as a worker. */
export interface JobHandler {
  /**
   * Runs the job, or refuses it before it starts. Rejects only with the signal's reason, soon after the signal aborts.
   * `said` never throws.
   */
  do(job: Job, signal: AbortSignal, said?: (text: string) => void): Promise<JobEnd | JobRefusal>;
}

/**
 * The error of a request to an engine for jobs. If it is `retryable`, the caller sends the request again with the same
 * key. Codes of the engines that come with Offstage: `JOBS_UNREACHABLE` and `CLAIMS_UNREACHABLE` may be temporary;
 * `JOB_TOO_LARGE`, `JOBS_REFUSED`, `JOB_UNREADABLE`, `RUN_UNDER_WAY` and `FORGET_UNSURE` are permanent.
 */
export class JobError extends RetryableError {}

/** @throws {JobError} `JOB_TOO_LARGE` (JOBS-5). */
export function checkJobSize({ name, body }: Job, maxBytes: number): void {
  if (isLongerThan(body, maxBytes)) throw jobTooLarge(name, body, maxBytes);
}

/** Returns how the job ended, or a failure if the text exceeds the engine's limit. */
export function endWithin<End extends JobEnd | JobRefusal>(
  job: Job,
  end: End,
  maxBytes: number,
): End | JobEnd {
  if (!('done' in end) || !isLongerThan(end.done, maxBytes)) return end;
  const { code, message, retryable } = jobTooLarge(`the result of ${job.name}`, end.done, maxBytes);
  return { failed: { code, message, retryable } };
}

/**
 * Returns the key in the form of an engine's id: at most `maxChars` characters, which are permitted in every protocol.
 */
export async function engineKeyOf(key: string, maxChars: number): Promise<string> {
  const encoded = encodeURIComponent(key.toWellFormed());
  if (encoded.length <= maxChars) return encoded;
  return `${encoded.slice(0, maxChars / 2)}~${await digestOf(key)}`;
}

/** Returns a 256-bit digest, in hexadecimal. */
export async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Returns the common beginning of all ids that `engineKeyOf` returns for keys with this prefix.
 * @throws {JobError} `FORGET_UNSURE`: the prefix is too long to tell its keys from others.
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
 * Parses an engine's answer.
 * @throws {JobError} `JOB_UNREADABLE` if the answer does not match the schema.
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

/** Creates the error for an unreadable text about a job or run. */
export function jobUnreadable(message: string, cause?: unknown): JobError {
  return new JobError('JOB_UNREADABLE', message, {
    retryable: false,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Creates the error for an engine that did not answer; its message states the innermost known cause. */
export function unreachable(engine: string, error: unknown): JobError {
  const { cause } = propertiesOf(error);
  const message = `${engine} does not answer: ${messageOf(cause ?? error)}`;
  return new JobError('JOBS_UNREACHABLE', message, { retryable: true, cause: error });
}

/** Returns the result of a job that exceeded its time limit (JOBS-7). */
export function overdueEnd({ name, once }: Pick<Job, 'name' | 'once'>, longestMs: number): JobEnd {
  if (once) return { lost: true };
  const message = `${name}: expected its end within ${longestMs} ms; it was told to stop`;
  return { failed: { code: 'JOB_TIMEOUT', message, retryable: true } };
}

/** The default time for which a refused job is offered to workers: longer than a deploy takes. */
export const OFFER_MS = 600_000;
const MIN_OFFER_PAUSE_MS = 500;
const MAX_OFFER_PAUSE_MS = 30_000;

/** Returns how long to wait after the nth refused offer, counted from 1. */
export function offerPauseMs(nth: number): number {
  return Math.min(MIN_OFFER_PAUSE_MS * 2 ** (nth - 1), MAX_OFFER_PAUSE_MS);
}

/** Returns the result of a job that no worker accepted (JOBS-8). */
export function refusedEnd({ refused: { code, message } }: JobRefusal): JobEnd {
  return { failed: { code, message, retryable: false } };
}

/**
 * Runs one step of a run that an engine executes. If the step is refused, it has not started (JOBS-8): the refusal is
 * thrown, so that another worker runs the step. For a step with `once`, which the engine considers started, the refusal
 * is returned as a failure with the worker's code and message.
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
  /** Runs a task after a delay in milliseconds. Returns a function that cancels the task. */
  readonly later: (task: () => void, delayMs: number) => () => void;
}

/** Runs a job with a signal that also aborts at the time limit; a job that exceeds it ends immediately (JOBS-7). */
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

/** Returns the result of a cancelled job. */
export function cancelledEnd(): JobEnd {
  return { failed: { code: 'CANCELLED', message: 'The job was cancelled', retryable: false } };
}

/** Creates the error for a body or a result that exceeds the engine's limit. */
export function jobTooLarge(what: string, text: string, maxBytes: number): JobError {
  return new JobError(
    'JOB_TOO_LARGE',
    `${what}: expected at most ${maxBytes} bytes, got ${byteLength(text)}: give packedEngine(…) and packedHandler(…) the same \`claims\`, which keep large texts`,
    { retryable: false },
  );
}
