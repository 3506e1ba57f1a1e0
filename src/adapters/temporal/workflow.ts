// The workflow of one job. Temporal bundles this file for its sandbox: it imports nothing, and is given the functions of
// `@temporalio/workflow` by the app's workflows file.
//
// Invariants
//   TEMPORAL-WORKFLOW-1. A job that must not be repeated has one attempt; if that fails, its end is `lost` (JOBS-2).
//   TEMPORAL-WORKFLOW-2. The commands depend on the input and on what has happened, and on nothing else: it replays.

/** The settings that a job carries into its workflow. */
interface WorkflowJob {
  readonly key: string;
  readonly name: string;
  readonly once: boolean;
  readonly body: string;
}

interface Limits {
  readonly heartbeatTimeoutMs: number;
  readonly longestMs: number;
}

/** The part of `@temporalio/workflow` that is used. */
export interface TemporalWorkflow {
  proxyActivities(options: object): unknown;
  isCancellation(error: unknown): boolean;
}

/** The end of a job, as `Jobs` returns it. */
type End = object;

interface Activities {
  offstageDoJob(job: WorkflowJob): Promise<End>;
}

const MAX_PAUSE_MS = 30_000;

/**
 * Returns the workflow that does a job: export it from the app's workflows file as `offstageJob`.
 *
 * ```ts
 * import { isCancellation, proxyActivities } from '@temporalio/workflow';
 * export const offstageJob = jobWorkflow({ isCancellation, proxyActivities });
 * ```
 */
export function jobWorkflow({
  proxyActivities,
  isCancellation,
}: TemporalWorkflow): (job: WorkflowJob, limits: Limits) => Promise<End> {
  return async (job, { heartbeatTimeoutMs, longestMs }) => {
    const options = {
      startToCloseTimeout: longestMs,
      heartbeatTimeout: heartbeatTimeoutMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // TEMPORAL-WORKFLOW-1
      retry: job.once
        ? { maximumAttempts: 1 }
        : { initialInterval: 100, maximumInterval: MAX_PAUSE_MS },
    };
    const { offstageDoJob } = proxyActivities(options) as Activities;
    try {
      return await offstageDoJob(job);
    } catch (error) {
      if (isCancellation(error))
        return {
          failed: { code: 'CANCELLED', message: 'The job was cancelled', retryable: false },
        };
      if (job.once) return { lost: true };
      throw error;
    }
  };
}
