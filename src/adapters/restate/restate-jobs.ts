// Jobs on Restate: a service that does one job per invocation, with the job's key as the idempotency key.
//
// The asking end speaks HTTP with the ingress and needs no package. The worker's end is a service for the SDK, which the
// app brings along.
//
// Owns:     the ids of the invocations that this process waits for; at a worker, the jobs that it may begin.
// Does not: keep anything: Restate does.
//
// Invariants
//   RESTATE-JOBS-1. A job that must not be repeated is begun only by the process whose permission to begin it is in
//       Restate's journal: the permission is used up by beginning, and dies with the process (JOBS-2).
//   RESTATE-JOBS-2. Another attempt at an invocation in the same process joins the job that is under way.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import {
  cancelledEnd,
  checkJobSize,
  endWithin,
  engineKeyOf,
  JobError,
  jobEndSchema,
  readFrom,
  unlessAborted,
  unreachable,
  type Job,
  type JobEnd,
  type JobHands,
  type Jobs,
} from '../../actors/ports/jobs.ts';

export interface RestateJobsOptions {
  /** The address of Restate's ingress, such as `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /** The name of the service. @defaultValue 'offstage_jobs' */
  readonly service?: string;
  /** Sent with every request, such as `{ authorization: 'Bearer …' }`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The limit of a body and of a result, in bytes. @defaultValue 4000000 */
  readonly maxBytes?: number;
}

export interface RestateJobServiceOptions<Service = unknown> {
  /** The SDK: `import * as restate from '@restatedev/restate-sdk'`. */
  readonly restate: RestateSdk<Service>;
  /** Does the jobs: `jobWorker({ … })`. */
  readonly hands: JobHands;
  /** The name of the service. @defaultValue 'offstage_jobs' */
  readonly service?: string;
  /** How long Restate keeps the end of a job, in milliseconds. @defaultValue 604800000, a week */
  readonly keepMs?: number;
  /** The longest time that a job may take, in milliseconds; then it is begun again. @defaultValue 3600000, an hour */
  readonly longestMs?: number;
  /** The limit of a result, in bytes. @defaultValue 4000000 */
  readonly maxBytes?: number;
}

/** The part of `@restatedev/restate-sdk` that is used. */
export interface RestateSdk<Service = unknown> {
  service(definition: object): Service;
  readonly RestatePromise: { race(promises: readonly unknown[]): PromiseLike<unknown> };
}

interface DurablePromise<T> extends PromiseLike<T> {
  map<U>(mapper: (value?: T) => U): DurablePromise<U>;
}

interface Context {
  run<T>(name: string, action: () => T | Promise<T>): DurablePromise<T>;
  cancel(invocationId: string): void;
  cancellation(): DurablePromise<void>;
}

const SERVICE = 'offstage_jobs';
const MAX_BYTES = 4_000_000;
const WEEK_MS = 604_800_000;
const HOUR_MS = 3_600_000;
/** Names of steps in Restate's pages. */
const MAX_NAME_CHARS = 200;

const serviceName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]*$/, 'expected a name of letters, digits, _, . and -');
const jobsOptions = z.strictObject({
  ingress: z.url({ protocol: /^https?$/, error: 'expected an http(s) address' }),
  service: serviceName.optional(),
  headers: z.record(z.string(), z.string()).optional(),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateJobsOptions>);
const serviceOptions = z.strictObject({
  restate: anObject("the SDK: import * as restate from '@restatedev/restate-sdk'", 'service'),
  hands: anObject('hands such as those of jobWorker({ … })', 'do'),
  service: serviceName.optional(),
  keepMs: z.number().int().min(1).optional(),
  longestMs: z.number().int().min(1).optional(),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateJobServiceOptions>);

const sent = z.object({ invocationId: z.string().min(1) });

/**
 * Asks Restate for jobs: for `createRuntime({ jobs })`.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function restateJobs(options: RestateJobsOptions): Jobs {
  check('restateJobs(options)', jobsOptions, options);
  const { ingress, service = SERVICE, headers = {}, maxBytes = MAX_BYTES } = options;
  const base = ingress.replace(/\/+$/, '');
  /** The invocations that this process waits for. */
  const asked = new Map<string, Promise<string>>();

  const request = async (
    path: string,
    init: Omit<RequestInit, 'headers'>,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly text: string }> => {
    try {
      const response = await fetch(`${base}${path}`, {
        ...init,
        headers: { ...headers, accept: 'application/json', ...more },
      });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      if (init.signal?.aborted === true) throw init.signal.reason;
      throw unreachable(`Restate at ${ingress}`, error);
    }
  };
  const send = async (job: Job): Promise<string> => {
    const { status, text } = await request(
      `/${service}/run/send`,
      { method: 'POST', body: JSON.stringify(job) },
      {
        'content-type': 'application/json',
        'idempotency-key': await idempotencyKeyOf(job.key),
      },
    );
    if (status >= 300) throw refused(status, text);
    return read(sent, text).invocationId;
  };
  const attach = async (id: string, signal: AbortSignal): Promise<JobEnd> => {
    for (;;) {
      try {
        const path = `/restate/invocation/${encodeURIComponent(id)}/attach`;
        const { status, text } = await request(path, { method: 'GET', signal });
        // Cancelled or killed by an operator.
        if (status === 409) return cancelledEnd();
        if (status >= 300) throw refused(status, text);
        return read(jobEndSchema, text);
      } catch (error) {
        // A long job: the platform's own limit of a request, and nothing else.
        if (!isSlow(error)) throw error;
      }
    }
  };

  return {
    name: 'restate',
    keepsResults: true,
    maxBytes,
    async run(job, { signal }) {
      signal.throwIfAborted();
      checkJobSize(job, maxBytes);
      const { key } = job;
      const known = asked.get(key) ?? send(job);
      asked.set(key, known);
      try {
        return await attach(await unlessAborted(known, signal), signal);
      } finally {
        // A cancel that follows an abort finds it.
        if (!signal.aborted) asked.delete(key);
      }
    },
    cancel(key) {
      const known = asked.get(key);
      if (!known) return;
      asked.delete(key);
      const stop = async (): Promise<void> => {
        const id = await known;
        const init = { method: 'POST', body: JSON.stringify(id) };
        await request(`/${service}/cancel/send`, init, { 'content-type': 'application/json' });
      };
      // A job that was not told to stop ends by itself, and nobody asks for its end.
      stop().catch(() => {});
    },
  };
}

/**
 * Returns the service that does jobs: for `restate.serve({ services: [...] })` at a worker.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function restateJobService<Service>(options: RestateJobServiceOptions<Service>): Service {
  check('restateJobService(options)', serviceOptions, options);
  const {
    restate,
    hands,
    service = SERVICE,
    keepMs = WEEK_MS,
    longestMs = HOUR_MS,
    maxBytes = MAX_BYTES,
  } = options;
  const desk = new Desk(hands, maxBytes);
  const definition = {
    name: service,
    options: {
      explicitCancellation: true,
      idempotencyRetention: keepMs,
      inactivityTimeout: longestMs,
    },
    handlers: {
      run: async (ctx: Context, job: Job): Promise<JobEnd> => {
        if (job.once) await ctx.run('may begin', () => desk.permit(job.key));
        const end = ctx.run(job.name.slice(0, MAX_NAME_CHARS), () => desk.do(job));
        const cancelled = ctx.cancellation().map(() => desk.cancel(job.key));
        await restate.RestatePromise.race([end, cancelled]);
        return end;
      },
      cancel: (ctx: Context, invocationId: string): Promise<void> => {
        ctx.cancel(invocationId);
        return Promise.resolve();
      },
    },
  };
  return restate.service(definition);
}

/** The jobs that a worker's process knows of. */
class Desk {
  readonly #hands: JobHands;
  readonly #maxBytes: number;
  readonly #permitted = new Set<string>();
  /** Cancelled before they were begun. */
  readonly #cancelled = new Set<string>();
  readonly #underWay = new Map<
    string,
    { readonly end: Promise<JobEnd>; readonly controller: AbortController }
  >();

  constructor(hands: JobHands, maxBytes: number) {
    this.#hands = hands;
    this.#maxBytes = maxBytes;
  }

  /** RESTATE-JOBS-1 */
  permit(key: string): null {
    this.#permitted.add(key);
    return null;
  }

  do(job: Job): Promise<JobEnd> {
    // RESTATE-JOBS-2
    const known = this.#underWay.get(job.key);
    if (known) return known.end;
    if (this.#cancelled.delete(job.key)) return Promise.resolve(cancelledEnd());
    if (job.once && !this.#permitted.delete(job.key)) return Promise.resolve({ lost: true });
    const controller = new AbortController();
    const end = this.#do(job, controller.signal);
    this.#underWay.set(job.key, { end, controller });
    const over = (): boolean => this.#underWay.delete(job.key);
    end.then(over, over);
    return end;
  }

  cancel(key: string): null {
    const reason = new JobError('CANCELLED', 'The job was cancelled', { retryable: false });
    const known = this.#underWay.get(key);
    if (known) known.controller.abort(reason);
    else this.#cancelled.add(key);
    return null;
  }

  async #do(job: Job, signal: AbortSignal): Promise<JobEnd> {
    try {
      return endWithin(job, await this.#hands.do(job, signal), this.#maxBytes);
    } catch (error) {
      if (signal.aborted) return cancelledEnd();
      if (job.once) return { lost: true };
      throw error;
    }
  }
}

const MAX_KEY_CHARS = 400;

/** A header holds no line breaks and no letters beyond Latin-1. */
function idempotencyKeyOf(key: string): Promise<string> {
  return engineKeyOf(key, MAX_KEY_CHARS);
}

/** The service may not be registered yet, and the server may be starting. */
function refused(status: number, text: string): JobError {
  const retryable = status === 404 || status === 408 || status === 429 || status >= 500;
  return new JobError(
    retryable ? 'JOBS_UNREACHABLE' : 'JOBS_REFUSED',
    `Restate answered ${status}: ${text.slice(0, 500)}`,
    { retryable },
  );
}

function read<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  return readFrom('Restate', schema, parsed);
}

function isSlow(error: unknown): boolean {
  const inner = error instanceof JobError ? error.cause : undefined;
  const { cause } = (inner ?? {}) as { readonly cause?: { readonly code?: unknown } };
  return cause?.code === 'UND_ERR_HEADERS_TIMEOUT' || cause?.code === 'UND_ERR_BODY_TIMEOUT';
}
