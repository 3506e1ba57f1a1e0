// Jobs on Restate: a service that runs one job per invocation, with the job's key as the idempotency key.
//
// The client talks to the ingress over HTTP and needs no package. The worker is a service of the SDK, which the app
// provides.
//
// Owns:     in the client, the jobs that are awaited; in a worker, the permits to start jobs.
// Does not: store anything: Restate does.
//
// Invariants
//   RESTATE-JOBS-1. A non-repeatable job is started only by the process whose permit is in Restate's journal. Starting
//       the job uses up the permit, and the permit becomes invalid when the process ends (JOBS-2). If Restate has not
//       recorded an attempt, later attempts cannot use the permit of that attempt.
//   RESTATE-JOBS-2. If another attempt of an invocation runs in the same process, it waits for the job that is already
//       running. If Restate could not record the end of a non-repeatable job, that attempt also receives the end, so
//       that the end is not lost when a connection breaks or a server dies.
//   RESTATE-JOBS-3. A job that this worker refuses is offered again in another attempt, which may reach another worker
//                   (JOBS-8).

import { z } from 'zod';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { anObject, check, checkEnvironment, type ChecksOf } from '../../values/checks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import {
  cancelledEnd,
  checkJobSize,
  doInTime,
  endWithin,
  engineKeyOf,
  enginePrefixOf,
  JobError,
  jobEndSchema,
  OFFER_MS,
  offerPauseMs,
  refusedEnd,
  type Job,
  type JobEnd,
  type JobHandler,
  type JobRefusal,
  type Jobs,
} from '../../actors/ports/jobs.ts';
import { stepJobs } from '../../actors/subagent/step-jobs.ts';
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

/** The options of `restateJobs`. */
export interface RestateJobsOptions {
  /** The URL of Restate's ingress, such as `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /**
   * The URL of Restate's admin API, such as `http://127.0.0.1:9070`. `forget` needs it to delete the data of jobs in
   * Restate. Restrict access to this API. @defaultValue none: Restate deletes the data after `keepMs`
   */
  readonly admin?: string;
  /** The name of the service. @defaultValue 'offstage_jobs' */
  readonly service?: string;
  /** Headers for every request, such as `{ authorization: 'Bearer …' }`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
  /** The maximum size of a body or a result, in bytes. @defaultValue 4000000 */
  readonly maxBytes?: number;
}

/** The options of `restateJobService`. */
export interface RestateJobServiceOptions<Service = unknown> {
  /** The SDK: `import * as restate from '@restatedev/restate-sdk'`. */
  readonly restate: RestateSdk<Service>;
  /** Runs the jobs: `jobWorker({ … })`. */
  readonly handler: JobHandler;
  /** Time and randomness: `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /** The name of the service. @defaultValue 'offstage_jobs' */
  readonly service?: string;
  /** The time for which Restate stores the outcome of a job, in milliseconds. @defaultValue 604800000, a week */
  readonly keepMs?: number;
  /**
   * The time limit for a job in milliseconds. When it is exceeded, the job ends with `JOB_TIMEOUT`, or is lost if it is
   * not repeatable.
   * @defaultValue 3600000, an hour
   */
  readonly longestMs?: number;
  /**
   * The time during which a refused job is offered to workers before it fails with the reason for the refusal, in
   * milliseconds. Choose a time that is longer than a deployment takes. @defaultValue 600000, ten minutes
   */
  readonly offerMs?: number;
  /** The maximum size of a result, in bytes. @defaultValue 4000000 */
  readonly maxBytes?: number;
}

/** The part of `@restatedev/restate-sdk` that this file uses. */
export interface RestateSdk<Service = unknown> {
  /** Like `restate.service`: creates the service whose handlers run and cancel jobs. */
  service(definition: object): Service;
  /** Like `RestatePromise` of the SDK. Each wait of a job also ends when Restate cancels the invocation. */
  readonly RestatePromise: { race(promises: readonly unknown[]): PromiseLike<unknown> };
}

interface Context {
  /** `id`: the id of the invocation, which is the same in all of its attempts. */
  request(): { readonly id: string };
  run<T>(name: string, action: () => T | Promise<T>): DurablePromise<T>;
  sleep(ms: number): DurablePromise<void>;
  cancel(invocationId: string): void;
  cancellation(): DurablePromise<void>;
}

const SERVICE = 'offstage_jobs';
const MAX_BYTES = 4_000_000;
/** The maximum length of step names in Restate's web interface. */
const MAX_NAME_CHARS = 200;
/** If a worker has not ended a job this long after the job's time limit, the worker counts as dead. */
const GRACE_MS = 60_000;
/** The maximum total size of the ends that Restate may not have recorded yet. */
const MAX_UNRECORDED_CHARS = 32_000_000;

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
  environment: z.unknown(),
  service: serviceName.optional(),
  keepMs: z.number().int().min(1).optional(),
  longestMs: z.number().int().min(1).optional(),
  offerMs: z.number().int().min(0).optional(),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateJobServiceOptions>);

const sent = z.object({ invocationId: z.string().min(1) });

/**
 * Returns the client for jobs on Restate, for `createRuntime({ jobs })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function restateJobs(options: RestateJobsOptions): Jobs {
  check('restateJobs(options)', jobsOptions, options);
  const { service = SERVICE, maxBytes = MAX_BYTES } = options;
  const ingress = new RestateIngress(options.ingress, options.headers);
  const admin =
    options.admin === undefined ? null : new RestateAdmin(options.admin, options.headers);
  /** The jobs that this process is waiting for or has abandoned. */
  const asked = new Map<string, Job>();

  const headersOf = async ({ key }: Job): Promise<Readonly<Record<string, string>>> => ({
    'idempotency-key': await engineKeyOf(key, MAX_KEY_CHARS),
  });
  // A single request starts or finds the job and waits until it ends.
  const call = async (job: Job, signal: AbortSignal): Promise<JobEnd> => {
    const request = { body: job, headers: await headersOf(job), signal };
    for (;;) {
      try {
        const answered = await ingress.request(`/${service}/run`, request);
        // An operator cancelled or killed the job.
        if (answered.status === 409) return cancelledEnd();
        if (answered.status >= 300) throw refused(answered);
        return readBody(jobEndSchema, answered);
      } catch (error) {
        // The job takes longer than the maximum duration of a request.
        if (!isSlow(error)) throw error;
      }
    }
  };

  return {
    steps: stepJobs,
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
        // If an abort is followed by a cancel, the cancel must be able to find the job.
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
      // If the cancel fails, the job runs to its end, although nothing waits for it any more.
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
 * Returns the service that runs jobs in a worker, for `restate.serve({ services: [...] })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function restateJobService<Service>(options: RestateJobServiceOptions<Service>): Service {
  check('restateJobService(options)', serviceOptions, options);
  checkEnvironment('restateJobService(options): environment', options.environment);
  const {
    restate,
    service = SERVICE,
    keepMs = WEEK_MS,
    longestMs = HOUR_MS,
    offerMs = OFFER_MS,
  } = options;
  const jobs = new JobsUnderWay(options);
  /** Offers a job once to this worker. `isHere`: whether this attempt ran the job. */
  const offer = async (ctx: Context, job: Job) => {
    let isHere = false;
    // If a deleted job is requested again, it has the same invocation id but a new permit.
    const id = job.once
      ? await ctx.run('may begin', () => jobs.permit(ctx.request().id))
      : ctx.request().id;
    const end = ctx.run(job.name.slice(0, MAX_NAME_CHARS), () => {
      isHere = true;
      return jobs.do(id, job);
    });
    const cancelled = ctx.cancellation().map(() => jobs.cancel(id));
    await restate.RestatePromise.race([end, cancelled]);
    const given = await end;
    jobs.recorded(id);
    return { given, isHere };
  };
  const definition = {
    name: service,
    options: {
      explicitCancellation: true,
      idempotencyRetention: keepMs,
      // The worker ends the job itself. Otherwise, Restate would start another attempt.
      inactivityTimeout: longestMs + GRACE_MS,
    },
    handlers: {
      run: async (ctx: Context, job: Job): Promise<JobEnd> => {
        let offeredMs = 0;
        for (let times = 1; ; times += 1) {
          const { given, isHere } = await offer(ctx, job);
          if (!('refused' in given)) return given;
          if (offeredMs >= offerMs) return refusedEnd(given);
          const pauseMs = Math.min(offerPauseMs(times), offerMs - offeredMs);
          offeredMs += pauseMs;
          const stopped = ctx.cancellation().map(() => true);
          if (await restate.RestatePromise.race([ctx.sleep(pauseMs).map(() => false), stopped]))
            return cancelledEnd();
          // RESTATE-JOBS-3
          if (isHere) throw new Error(given.refused.message);
        }
      },
      cancel: (ctx: Context, invocationId: string): Promise<void> => {
        ctx.cancel(invocationId);
        return Promise.resolve();
      },
    },
  };
  return restate.service(definition);
}

interface Held {
  readonly end: Promise<JobEnd | JobRefusal>;
  readonly controller: AbortController;
}

/**
 * The maximum number of remembered permits, and of remembered cancels of unknown jobs. A permit that is not remembered
 * is refused.
 */
const MAX_REMEMBERED = 10_000;

/** The jobs of a worker process, by invocation id or, if they are not repeatable, by permit. */
class JobsUnderWay {
  readonly #options: RestateJobServiceOptions;
  /** The newest permit of each invocation, if it is unused. */
  readonly #permits = new Map<string, string>();
  /** Jobs that were cancelled before they started. */
  readonly #cancelled = new Set<string>();
  /** The jobs that are running, and the finished jobs whose outcome Restate may not have recorded yet. */
  readonly #held = new Map<string, Held>();
  /** The sizes of the outcomes that Restate may not have recorded, oldest first. */
  readonly #unrecorded = new Map<string, number>();
  #unrecordedChars = 0;

  constructor(options: RestateJobServiceOptions) {
    this.#options = options;
  }

  /** RESTATE-JOBS-1: permits differ between processes. */
  permit(invocationId: string): string {
    const permit = `${invocationId}/${this.#options.environment.ids.next('permit')}`;
    this.#permits.set(invocationId, permit);
    forgetOldest(this.#permits, MAX_REMEMBERED);
    return permit;
  }

  do(id: string, job: Job): Promise<JobEnd | JobRefusal> {
    // RESTATE-JOBS-2
    const known = this.#held.get(id);
    if (known) return known.end;
    const isPermitted = !job.once || this.#useUp(id);
    if (this.#cancelled.delete(id)) return Promise.resolve(cancelledEnd());
    if (!isPermitted) return Promise.resolve({ lost: true });
    const controller = new AbortController();
    const end = this.#do(job, controller.signal);
    this.#held.set(id, { end, controller });
    end.then(
      (how) => {
        if (job.once) this.#keep(id, JSON.stringify(how).length);
        else this.#held.delete(id);
      },
      () => this.#held.delete(id),
    );
    return end;
  }

  #useUp(permit: string): boolean {
    const [invocationId = ''] = permit.split('/');
    return this.#permits.get(invocationId) === permit && this.#permits.delete(invocationId);
  }

  /** Restate has recorded the outcome and uses it for later attempts. */
  recorded(id: string): void {
    this.#held.delete(id);
    this.#cancelled.delete(id);
    this.#unrecordedChars -= this.#unrecorded.get(id) ?? 0;
    this.#unrecorded.delete(id);
  }

  cancel(id: string): null {
    const reason = new JobError('CANCELLED', 'The job was cancelled', { retryable: false });
    const known = this.#held.get(id);
    if (known) known.controller.abort(reason);
    else this.#cancelled.add(id);
    forgetOldest(this.#cancelled, MAX_REMEMBERED);
    return null;
  }

  /** Keeps an end. If another process has recorded the outcome, no later attempt asks this process for it. */
  #keep(id: string, chars: number): void {
    // Restate recorded a different outcome first.
    if (!this.#held.has(id)) return;
    this.#unrecorded.set(id, chars);
    this.#unrecordedChars += chars;
    for (const oldest of this.#unrecorded.keys()) {
      if (this.#unrecordedChars <= MAX_UNRECORDED_CHARS) return;
      this.recorded(oldest);
    }
  }

  async #do(job: Job, signal: AbortSignal): Promise<JobEnd | JobRefusal> {
    const { handler, environment, maxBytes = MAX_BYTES, longestMs = HOUR_MS } = this.#options;
    try {
      const end = await doInTime(job, (own) => handler.do(job, own), {
        signal,
        longestMs,
        later: (task, delayMs) =>
          environment.scheduler.schedule(task, delayMs, { isBackground: true }),
      });
      return endWithin(job, end, maxBytes);
    } catch (error) {
      if (signal.aborted) return cancelledEnd();
      if (job.once) return { lost: true };
      throw error;
    }
  }
}
