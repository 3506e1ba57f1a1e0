// Jobs on Restate: a service that does one job per invocation, with the job's key as the idempotency key.
//
// The asking end speaks HTTP with the ingress and needs no package. The worker's end is a service for the SDK, which the
// app brings along.
//
// Owns:     the jobs that this process waits for; at a worker, the jobs that it may begin.
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
  enginePrefixOf,
  JobError,
  jobEndSchema,
  type Job,
  type JobEnd,
  type JobHandler,
  type Jobs,
} from '../../actors/ports/jobs.ts';
import { RestateAdmin, sqlText } from './restate-admin.ts';
import {
  headersSchema,
  HOUR_MS,
  ingressAddress,
  isSlow,
  MAX_KEY_CHARS,
  readBody,
  refused,
  RestateIngress,
  sdkSchema,
  serviceName,
  WEEK_MS,
  type DurablePromise,
} from './restate-ingress.ts';

export interface RestateJobsOptions {
  /** The address of Restate's ingress, such as `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /**
   * The address of Restate's admin API, such as `http://127.0.0.1:9070`: then `forget` deletes what Restate keeps of jobs.
   * Let nobody else reach it. @defaultValue none: Restate deletes by itself, after `keepMs`
   */
  readonly admin?: string;
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
  readonly handler: JobHandler;
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

interface Context {
  run<T>(name: string, action: () => T | Promise<T>): DurablePromise<T>;
  cancel(invocationId: string): void;
  cancellation(): DurablePromise<void>;
}

const SERVICE = 'offstage_jobs';
const MAX_BYTES = 4_000_000;
/** Names of steps in Restate's pages. */
const MAX_NAME_CHARS = 200;

const jobsOptions = z.strictObject({
  ingress: ingressAddress,
  admin: ingressAddress.optional(),
  service: serviceName.optional(),
  headers: headersSchema.optional(),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateJobsOptions>);
const serviceOptions = z.strictObject({
  restate: sdkSchema('service'),
  handler: anObject('a handler such as that of jobWorker({ … })', 'do'),
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
  const { service = SERVICE, maxBytes = MAX_BYTES } = options;
  const ingress = new RestateIngress(options.ingress, options.headers);
  const admin =
    options.admin === undefined ? null : new RestateAdmin(options.admin, options.headers);
  /** The jobs that this process waits for, or has left. */
  const asked = new Map<string, Job>();

  const headersOf = async ({ key }: Job): Promise<Readonly<Record<string, string>>> => ({
    'idempotency-key': await engineKeyOf(key, MAX_KEY_CHARS),
  });
  // One request begins the job, or finds it, and waits for its end.
  const call = async (job: Job, signal: AbortSignal): Promise<JobEnd> => {
    const request = { body: job, headers: await headersOf(job), signal };
    for (;;) {
      try {
        const answered = await ingress.request(`/${service}/run`, request);
        // Cancelled or killed by an operator.
        if (answered.status === 409) return cancelledEnd();
        if (answered.status >= 300) throw refused(answered);
        return readBody(jobEndSchema, answered);
      } catch (error) {
        // A long job.
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
      asked.set(job.key, job);
      try {
        return await call(job, signal);
      } finally {
        // A cancel that follows an abort finds it.
        if (!signal.aborted) asked.delete(job.key);
      }
    },
    cancel(key) {
      const job = asked.get(key);
      if (!job) return;
      asked.delete(key);
      const stop = async (): Promise<void> => {
        const path = `/${service}/run/send`;
        const { invocationId } = await ingress.ask(path, sent, {
          body: job,
          headers: await headersOf(job),
        });
        await ingress.request(`/${service}/cancel/send`, { body: invocationId });
      };
      // A job that was not told to stop ends by itself, and nobody asks for its end.
      stop().catch(() => {});
    },
    ...(admin
      ? {
          // JOBS-6
          async forget(prefix: string) {
            const beginning = sqlText(enginePrefixOf(prefix, MAX_KEY_CHARS));
            const condition = `starts_with(idempotency_key, ${beginning})`;
            await admin.remove(await admin.invocations(service, condition));
          },
        }
      : {}),
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
    handler,
    service = SERVICE,
    keepMs = WEEK_MS,
    longestMs = HOUR_MS,
    maxBytes = MAX_BYTES,
  } = options;
  const desk = new Desk(handler, maxBytes);
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
  readonly #handler: JobHandler;
  readonly #maxBytes: number;
  readonly #permitted = new Set<string>();
  /** Cancelled before they were begun. */
  readonly #cancelled = new Set<string>();
  readonly #underWay = new Map<
    string,
    { readonly end: Promise<JobEnd>; readonly controller: AbortController }
  >();

  constructor(handler: JobHandler, maxBytes: number) {
    this.#handler = handler;
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
      return endWithin(job, await this.#handler.do(job, signal), this.#maxBytes);
    } catch (error) {
      if (signal.aborted) return cancelledEnd();
      if (job.once) return { lost: true };
      throw error;
    }
  }
}
