// Jobs on Temporal: a workflow with one activity for each job. The id of the workflow is derived from the job's key, so
// that a repeated start finds the running workflow or its result.
//
// The app passes in Temporal's packages; this file does not import them. Temporal bundles the workflow's code,
// `workflow.ts`, for its sandbox.
//
// Owns:     nothing, because a job is found by its id.
// Does not: store anything: Temporal does so for the namespace's retention period.

import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { messageOf } from '../../values/errors.ts';
import { raceAbort } from '../../values/race-abort.ts';
import {
  cancelledEnd,
  checkJobSize,
  doInTime,
  endWithin,
  engineKeyOf,
  enginePrefixOf,
  jobEndSchema,
  OFFER_MS,
  readFrom,
  unreachable,
  type Job,
  type JobEnd,
  type JobHandler,
  type JobRefusal,
  type Jobs,
} from '../../actors/ports/jobs.ts';
import { stepJobs } from '../../actors/subagent/step-jobs.ts';
import { filterText, TemporalDeletions, type TemporalClientOf } from './temporal-deletions.ts';
import {
  activitySchema,
  clientSchema,
  HEARTBEAT_TIMEOUT_MS,
  HOUR_MS,
  isCancel,
  MAX_ID_CHARS,
  nameOf,
  TASK_QUEUE,
  withHeartbeats,
  type TemporalActivity,
} from './temporal-sdk.ts';

/** The options of `temporalJobs`. */
export interface TemporalJobsOptions {
  /** The client: `new Client({ connection })` of `@temporalio/client`. */
  readonly client: TemporalClient;
  /** The workers' task queue. @defaultValue 'offstage-jobs' */
  readonly taskQueue?: string;
  /** The name under which the app's workflows file exports `jobWorkflow(…)`. @defaultValue 'offstageJob' */
  readonly workflowType?: string;
  /** The time without a heartbeat after which a worker counts as dead, in milliseconds. @defaultValue 10000 */
  readonly heartbeatTimeoutMs?: number;
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
  /** The maximum size of a body or a result, in bytes. Temporal itself refuses more than 2 MB. @defaultValue 1800000 */
  readonly maxBytes?: number;
}

/** The part of the client that `temporalJobs` uses. `forget` is available if the client can list and delete. */
export type TemporalClient = TemporalClientOf<TemporalHandle>;

/** The part of a job's workflow handle that `temporalJobs` uses. */
export interface TemporalHandle {
  /** Returns the state of the workflow. */
  describe?(): Promise<object>;
  /** Resolves with the result of the workflow. */
  result(): Promise<unknown>;
  /** Requests that the workflow be cancelled. */
  cancel(): Promise<unknown>;
}

/** The options of `temporalJobActivities`. */
export interface TemporalJobActivitiesOptions {
  /** The package: `import * as activity from '@temporalio/activity'`. */
  readonly activity: TemporalActivity;
  /** Runs the jobs: `jobWorker({ … })`. */
  readonly handler: JobHandler;
  /** The maximum size of a result, in bytes. @defaultValue 1800000 */
  readonly maxBytes?: number;
}

/** A worker's activities, by name. */
export interface TemporalJobActivities {
  /** `limits` is absent in workflows of an earlier version. */
  offstageDoJob(job: Job, limits?: { readonly longestMs: number }): Promise<JobEnd | JobRefusal>;
}

const WORKFLOW_TYPE = 'offstageJob';
const MAX_BYTES = 1_800_000;
const jobsOptions = z.strictObject({
  client: clientSchema,
  taskQueue: z.string().min(1).optional(),
  workflowType: z.string().min(1).optional(),
  heartbeatTimeoutMs: z.number().int().min(100).optional(),
  longestMs: z.number().int().min(1).optional(),
  offerMs: z.number().int().min(0).optional(),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<TemporalJobsOptions>);
const activitiesOptions = z.strictObject({
  activity: activitySchema,
  handler: anObject('a handler such as that of jobWorker({ … })', 'do'),
  maxBytes: z.number().int().min(1).optional(),
} satisfies ChecksOf<TemporalJobActivitiesOptions>);

/**
 * Returns the client for jobs on Temporal, for `createRuntime({ jobs })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function temporalJobs(options: TemporalJobsOptions): Jobs {
  check('temporalJobs(options)', jobsOptions, options);
  const {
    client,
    taskQueue = TASK_QUEUE,
    workflowType = WORKFLOW_TYPE,
    heartbeatTimeoutMs = HEARTBEAT_TIMEOUT_MS,
    longestMs = HOUR_MS,
    offerMs = OFFER_MS,
    maxBytes = MAX_BYTES,
  } = options;
  const deletions = TemporalDeletions.of(client);
  /** The starts that are in progress. A cancel waits until the start of its job has completed. */
  const starting = new Map<string, Promise<unknown>>();

  const start = async (job: Job, workflowId: string): Promise<void> => {
    try {
      await client.workflow.start(workflowType, {
        workflowId,
        taskQueue,
        args: [job, { heartbeatTimeoutMs, longestMs, offerMs }],
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
    } catch (error) {
      // The job has ended, and Temporal stores its result.
      if (nameOf(error) !== 'WorkflowExecutionAlreadyStartedError')
        throw unreachable('Temporal', error);
    }
  };
  const endOf = async (workflowId: string): Promise<JobEnd> => {
    let result: unknown;
    try {
      result = await client.workflow.getHandle(workflowId).result();
    } catch (error) {
      // An operator has cancelled, terminated or failed the workflow, or the workflow has a bug.
      if (nameOf(error) === 'WorkflowFailedError') return failedEnd(error);
      throw unreachable('Temporal', error);
    }
    return readFrom('Temporal', jobEndSchema, result);
  };

  return {
    steps: stepJobs,
    name: 'temporal',
    keepsResults: true,
    maxBytes,
    async run(job, { signal }) {
      signal.throwIfAborted();
      checkJobSize(job, maxBytes);
      const workflowId = await engineKeyOf(job.key, MAX_ID_CHARS);
      signal.throwIfAborted();
      const started = start(job, workflowId);
      starting.set(job.key, started);
      const over = (): void => {
        if (starting.get(job.key) === started) starting.delete(job.key);
      };
      started.then(over, over);
      return raceAbort(
        started.then(() => endOf(workflowId)),
        signal,
      );
    },
    cancel(key) {
      const stop = async (): Promise<void> => {
        await starting.get(key);
        await client.workflow.getHandle(await engineKeyOf(key, MAX_ID_CHARS)).cancel();
      };
      // If the cancel fails, the job runs to its end, although nothing waits for it any more.
      stop().catch(() => {});
    },
    ...(deletions
      ? {
          // JOBS-6
          async forget(prefix: string) {
            const beginning = enginePrefixOf(prefix, MAX_ID_CHARS);
            const found = await deletions.find(`WorkflowId STARTS_WITH ${filterText(beginning)}`);
            const own = found.filter(({ workflowId }) => workflowId.startsWith(beginning));
            await deletions.remove(own);
          },
        }
      : {}),
  };
}

/**
 * Returns the activities that run jobs, for `Worker.create({ activities })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function temporalJobActivities(
  options: TemporalJobActivitiesOptions,
): TemporalJobActivities {
  check('temporalJobActivities(options)', activitiesOptions, options);
  const { activity, handler, maxBytes = MAX_BYTES } = options;
  return {
    async offstageDoJob(job, { longestMs = Infinity } = { longestMs: Infinity }) {
      const signal = activity.Context.current().cancellationSignal;
      let late = (): void => {};
      const later = (task: () => void): (() => void) => {
        late = task;
        return () => {};
      };
      const work = (own: AbortSignal) => handler.do(job, own);
      try {
        const end = await withHeartbeats(
          activity,
          () => doInTime(job, work, { signal, longestMs, later }),
          { afterMs: longestMs, call: () => late() },
        );
        return endWithin(job, end, maxBytes);
      } catch (error) {
        if (isCancel(signal)) return cancelledEnd();
        // The job has started but not ended, so the workflow decides whether the job may start again.
        throw error;
      }
    },
  };
}

function failedEnd(error: unknown): JobEnd {
  const { cause } = propertiesOf(error);
  const kind = nameOf(cause);
  if (kind === 'CancelledFailure' || kind === 'TerminatedFailure') return cancelledEnd();
  const message = `Temporal failed the job: ${messageOf(cause ?? error)}`;
  return { failed: { code: 'JOBS_REFUSED', message, retryable: false } };
}
