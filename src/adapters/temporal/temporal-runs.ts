// Runs on Temporal: a workflow for each run (`runWorkflow` of `workflow.ts`), whose turns are activities. Answers and cancels
// are updates, the view is in the memo of the workflow.
//
// Owns:     nothing: a run is found by its id.
// Does not: keep anything: Temporal does, for the retention of the namespace.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { messageOf } from '../../values/errors.ts';
import {
  engineKeyOf,
  JobError,
  readFrom,
  unlessAborted,
  unreachable,
} from '../../actors/ports/jobs.ts';
import {
  runUnderWay,
  runViewSchema,
  type RunEngine,
  type RunHandler,
  type RunTurn,
  type RunTurnEnd,
} from '../../actors/ports/run-engine.ts';
import {
  filterText,
  TemporalDeletions,
  type TemporalClientOf,
  type TemporalExecution,
} from './temporal-deletions.ts';
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
import { RUN_PREFIX, RUN_UPDATES, RUN_VIEW } from './workflow.ts';

export interface TemporalRunsOptions {
  /** The client: `new Client({ connection })` of `@temporalio/client`. */
  readonly client: TemporalRunsClient;
  /** The task queue of the workers. @defaultValue 'offstage-jobs' */
  readonly taskQueue?: string;
  /** The name under which the workflows file exports `runWorkflow(…)`. @defaultValue 'offstageRun' */
  readonly workflowType?: string;
  /** The time without a heartbeat after which a worker counts as dead, in milliseconds. @defaultValue 10000 */
  readonly heartbeatTimeoutMs?: number;
  /** The longest time that a turn may take, in milliseconds; then it is done again. @defaultValue 3600000, an hour */
  readonly longestMs?: number;
  /** The longest pause between two looks of a program at its run, in milliseconds. @defaultValue 1000 */
  readonly lookMs?: number;
}

/** The part of the client that is used. With the parts that find and delete, `forget` is there. */
export type TemporalRunsClient = TemporalClientOf<TemporalRunHandle>;

export interface TemporalRunHandle {
  describe(): Promise<
    Partial<TemporalExecution> & { readonly memo?: Readonly<Record<string, unknown>> | undefined }
  >;
  executeUpdate(name: string, options: { readonly args: unknown[] }): Promise<unknown>;
}

export interface TemporalRunActivitiesOptions {
  /** The package: `import * as activity from '@temporalio/activity'`. */
  readonly activity: TemporalActivity;
  /** Does the turns: `runWorker({ … })`. */
  readonly handler: RunHandler;
}

/** The activities of a worker, by name. */
export interface TemporalRunActivities {
  offstageTurn(turn: RunTurn): Promise<RunTurnEnd>;
}

const WORKFLOW_TYPE = 'offstageRun';
const LOOK_MS = 1_000;

const runsOptions = z.strictObject({
  client: clientSchema,
  taskQueue: z.string().min(1).optional(),
  workflowType: z.string().min(1).optional(),
  heartbeatTimeoutMs: z.number().int().min(100).optional(),
  longestMs: z.number().int().min(1).optional(),
  lookMs: z.number().int().min(1).optional(),
} satisfies ChecksOf<TemporalRunsOptions>);
const activitiesOptions = z.strictObject({
  activity: activitySchema,
  handler: anObject('a handler such as that of runWorker({ … })', 'turn'),
} satisfies ChecksOf<TemporalRunActivitiesOptions>);

/**
 * Keeps runs on Temporal: for `runSubagent(…, { id, engine })`.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function temporalRuns(options: TemporalRunsOptions): RunEngine {
  check('temporalRuns(options)', runsOptions, options);
  const {
    client,
    taskQueue = TASK_QUEUE,
    workflowType = WORKFLOW_TYPE,
    heartbeatTimeoutMs = HEARTBEAT_TIMEOUT_MS,
    longestMs = HOUR_MS,
    lookMs = LOOK_MS,
  } = options;
  const deletions = TemporalDeletions.of(client);
  const handleOf = async (id: string): Promise<TemporalRunHandle> =>
    client.workflow.getHandle(await workflowIdOf(id));
  /** Returns false for a run that has ended. */
  const update = async (id: string, name: string, arg: unknown): Promise<boolean> => {
    const handle = await handleOf(id);
    try {
      return readFrom('Temporal', z.boolean(), await handle.executeUpdate(name, { args: [arg] }));
    } catch (error) {
      if (error instanceof JobError) throw error;
      if (isOver(error)) return false;
      throw unreachable('Temporal', error);
    }
  };
  return {
    name: 'temporal',
    lookMs,
    async start(order) {
      const workflowId = await workflowIdOf(order.id);
      try {
        await client.workflow.start(workflowType, {
          workflowId,
          taskQueue,
          args: [order, { heartbeatTimeoutMs, longestMs }],
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowIdConflictPolicy: 'USE_EXISTING',
        });
      } catch (error) {
        // It has ended, and its outcome is kept.
        if (nameOf(error) !== 'WorkflowExecutionAlreadyStartedError')
          throw unreachable('Temporal', error);
      }
    },
    async view(id, _, signal) {
      signal.throwIfAborted();
      const handle = await handleOf(id);
      let memo: Readonly<Record<string, unknown>> | undefined;
      try {
        ({ memo } = await unlessAborted(handle.describe(), signal));
      } catch (error) {
        signal.throwIfAborted();
        throw unreachable('Temporal', error);
      }
      const nothing = { turn: 0, waiting: [], outcome: null };
      return readFrom('Temporal', runViewSchema, memo?.[RUN_VIEW] ?? nothing);
    },
    answer: (id, answer) => update(id, RUN_UPDATES.answer, answer),
    async cancel(id, reason) {
      await update(id, RUN_UPDATES.cancel, reason);
    },
    ...(deletions ? { forget: (id: string) => forgetRun(deletions, id) } : {}),
  };
}

/** RUN-ENGINE-6. The run itself goes last: as long as it is there, its child runs are found. */
async function forgetRun(deletions: TemporalDeletions, id: string): Promise<readonly string[]> {
  const root = await workflowIdOf(id);
  const levels: (readonly TemporalExecution[])[] = [];
  const known = new Set([root]);
  for (let ids: readonly string[] = [root]; ids.length > 0;) {
    const level: TemporalExecution[] = [];
    const children = new Set<string>();
    for (const workflowId of ids) {
      const latest = await deletions.latest(workflowId);
      if (latest?.status.name === 'RUNNING') throw runUnderWay(workflowId);
      const own = filterText(workflowId);
      // One whose history was begun anew has several executions.
      const found = await deletions.find(`WorkflowId = ${own} OR ParentWorkflowId = ${own}`);
      const all = latest && !found.some(({ runId }) => runId === latest.runId) ? [latest] : [];
      level.push(...all, ...found.filter((one) => one.workflowId === workflowId));
      for (const child of found) if (!known.has(child.workflowId)) children.add(child.workflowId);
    }
    levels.push(level);
    ids = [...children];
    for (const child of ids) known.add(child);
  }
  for (const level of levels.toReversed()) await deletions.remove(level);
  const [, ...children] = known;
  // Ids of children are short: none has a digest.
  return [id, ...children.map((one) => decodeURIComponent(one.slice(RUN_PREFIX.length)))];
}

/**
 * Returns the activities that do turns of runs: for `Worker.create({ activities })`, beside those of `temporalJobActivities`.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function temporalRunActivities(
  options: TemporalRunActivitiesOptions,
): TemporalRunActivities {
  check('temporalRunActivities(options)', activitiesOptions, options);
  const { activity, handler } = options;
  return {
    async offstageTurn(turn) {
      const signal = activity.Context.current().cancellationSignal;
      const controller = new AbortController();
      const abort = (): void => {
        const cancelled = new JobError('CANCELLED', 'cancelled', { retryable: false });
        controller.abort(isCancel(signal) ? cancelled : signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      try {
        return await withHeartbeats(activity, () => handler.turn(turn, controller.signal));
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
  };
}

async function workflowIdOf(id: string): Promise<string> {
  return `${RUN_PREFIX}${await engineKeyOf(id, MAX_ID_CHARS)}`;
}

function isOver(error: unknown): boolean {
  return nameOf(error) === 'WorkflowNotFoundError' || /already completed/iu.test(messageOf(error));
}
