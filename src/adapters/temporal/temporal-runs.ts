// Runs on Temporal: one workflow per run (`runWorkflow` of `workflow.ts`), whose steps are activities. Answers and
// cancels are updates. A program waits for the next view through an update, and for the outcome through the workflow's
// result. The workflow's memo also contains the view and can be read without a worker.
//
// Owns:     this process's promises for views and outcomes, by run id.
// Does not: store anything: Temporal does so for the namespace's retention period.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { messageOf } from '../../values/errors.ts';
import { raceAbort } from '../../values/race-abort.ts';
import {
  endWithin,
  engineKeyOf,
  JobError,
  readFrom,
  unreachable,
  type Job,
  type JobEnd,
  type JobRefusal,
} from '../../actors/ports/jobs.ts';
import {
  messageTakenSchema,
  runUnderWay,
  runViewSchema,
  stepsWithin,
  type RunEngine,
  type RunHandler,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
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
import { unzippedEntries, zippedEntries } from './zipped-text.ts';

/** The options of `temporalRuns`. */
export interface TemporalRunsOptions {
  /** The client: `new Client({ connection })` of `@temporalio/client`. */
  readonly client: TemporalRunsClient;
  /** The workers' task queue. @defaultValue 'offstage-jobs' */
  readonly taskQueue?: string;
  /** The name under which the app's workflows file exports `runWorkflow(…)`. @defaultValue 'offstageRun' */
  readonly workflowType?: string;
  /** The time without a heartbeat after which a worker counts as dead, in milliseconds. @defaultValue 10000 */
  readonly heartbeatTimeoutMs?: number;
  /** The time limit for a turn in milliseconds, after which the turn is repeated. @defaultValue 3600000, an hour */
  readonly longestMs?: number;
  /** The maximum pause between two reads of a run's view, in milliseconds. @defaultValue 1000 */
  readonly lookMs?: number;
}

/** The part of the client that `temporalRuns` uses. `forget` is available if the client can list and delete. */
export type TemporalRunsClient = TemporalClientOf<TemporalRunHandle>;

/** The part of a run's workflow handle that `temporalRuns` uses. */
export interface TemporalRunHandle {
  /**
   * Like `describe` of `WorkflowHandle`. `temporalRuns` reads the run's view from the memo, and its status before
   * `forget`.
   */
  describe(): Promise<
    Partial<TemporalExecution> & { readonly memo?: Readonly<Record<string, unknown>> | undefined }
  >;
  /**
   * Like `executeUpdate` of `WorkflowHandle`. `temporalRuns` sends answers, messages and cancels, and waits for the
   * next view.
   */
  executeUpdate(name: string, options: { readonly args: unknown[] }): Promise<unknown>;
  /** Like `result` of `WorkflowHandle`: resolves with the run's last view, which has the outcome. */
  result(): Promise<unknown>;
}

/** The options of `temporalRunActivities`. */
export interface TemporalRunActivitiesOptions {
  /** The package: `import * as activity from '@temporalio/activity'`. */
  readonly activity: TemporalActivity;
  /** Runs the turns: `runWorker({ … })`. */
  readonly handler: RunHandler;
}

/** A worker's activities, by name. */
export interface TemporalRunActivities {
  /** Runs one turn, with at most one step, and returns the journal entries that the turn adds. */
  offstageTurn(turn: RunTurn): Promise<RunTurnEnd>;
  /** Runs a step in parallel with others. A refusal means that this worker lacks something that the step needs. */
  offstageStep(step: Job): Promise<JobEnd | JobRefusal>;
}

const MAX_BYTES = 1_800_000;
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
  handler: anObject('a handler such as that of runWorker({ … })', 'turn', 'step'),
} satisfies ChecksOf<TemporalRunActivitiesOptions>);

/**
 * Returns the engine that stores runs on Temporal, for `runSubagent(…, { id, engine })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
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
  /** `over`: returned for a run that has ended. */
  const update = async <T>(
    id: string,
    name: string,
    arg: unknown,
    schema: z.ZodType<T>,
    over: T,
  ): Promise<T> => {
    const handle = await handleOf(id);
    try {
      return readFrom('Temporal', schema, await handle.executeUpdate(name, { args: [arg] }));
    } catch (error) {
      if (error instanceof JobError) throw error;
      if (isOver(error)) return over;
      throw unreachable('Temporal', error);
    }
  };
  const watches = new Watches();
  const shownBy = async (handle: TemporalRunHandle, signal: AbortSignal): Promise<RunView> => {
    try {
      const { memo } = await raceAbort(handle.describe(), signal);
      return readFrom('Temporal', runViewSchema, memo?.[RUN_VIEW] ?? NOTHING);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof JobError ? error : unreachable('Temporal', error);
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
        // The run has ended, and Temporal stores its outcome.
        if (nameOf(error) !== 'WorkflowExecutionAlreadyStartedError')
          throw unreachable('Temporal', error);
      }
    },
    async view(id, after, signal) {
      signal.throwIfAborted();
      const handle = await handleOf(id);
      // The memo is read first. The memo may be outdated, but it can be read without a running worker.
      if (after === 0) {
        const shown = await shownBy(handle, signal);
        if (shown.turn > 0) return shown;
      }
      const next = await raceAbort(watches.next(handle, id, after), signal);
      return next ?? (await shownBy(handle, signal));
    },
    answer: (id, answer) => update(id, RUN_UPDATES.answer, answer, z.boolean(), false),
    message: (id, message) =>
      update(id, RUN_UPDATES.message, message, messageTakenSchema, { refused: 'over' }),
    async cancel(id, reason) {
      await update(id, RUN_UPDATES.cancel, reason, z.boolean(), false);
    },
    ...(deletions ? { forget: (id: string) => forgetRun(deletions, id) } : {}),
  };
}

const NOTHING: RunView = { turn: 0, waiting: [], outcome: null };

/** The promises of this process: one for each run's outcome, and one for each run's next view. */
class Watches {
  readonly #outcomes = new Map<string, Promise<RunView>>();
  readonly #views = new Map<string, Promise<RunView | null>>();

  /** Resolves with the next or the last view; null if the memo has the current view. */
  next(handle: TemporalRunHandle, id: string, after: number): Promise<RunView | null> {
    const outcome = kept(this.#outcomes, id, async () => {
      const last = await answered(() => handle.result());
      return readFrom('Temporal', runViewSchema, last);
    });
    const view = kept(this.#views, `${after}/${id}`, async () => {
      let next: unknown;
      try {
        next = await handle.executeUpdate(RUN_UPDATES.view, { args: [after] });
      } catch (error) {
        // The run has ended, the worker has an earlier version, or too many programs are waiting.
        if (isOver(error)) return outcome;
        return null;
      }
      return next === null ? outcome : readFrom('Temporal', runViewSchema, next);
    });
    // oxlint-disable-next-line eslint/no-restricted-properties -- a reaction for each view of one run
    return Promise.race([outcome, view]);
  }
}

/** Shares one promise among all callers. */
function kept<T>(waits: Map<string, Promise<T>>, key: string, wait: () => Promise<T>): Promise<T> {
  const known = waits.get(key);
  if (known) return known;
  const made = wait();
  waits.set(key, made);
  const over = (): boolean => waits.delete(key);
  made.then(over, over);
  return made;
}

/** @throws {JobError} */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw unreachable('Temporal', error);
  }
}

/** RUN-ENGINE-6. The run itself is deleted last, because its child runs are found through it. */
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
      // A workflow whose history was restarted has several executions.
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
  // Child ids are short, so no id needs a digest.
  return [id, ...children.map((one) => decodeURIComponent(one.slice(RUN_PREFIX.length)))];
}

/**
 * Returns the activities that run turns, for `Worker.create({ activities })`, together with those from
 * `temporalJobActivities`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function temporalRunActivities(
  options: TemporalRunActivitiesOptions,
): TemporalRunActivities {
  check('temporalRunActivities(options)', activitiesOptions, options);
  const { activity, handler } = options;
  const doing = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const signal = activity.Context.current().cancellationSignal;
    const controller = new AbortController();
    const abort = (): void => {
      const cancelled = new JobError('CANCELLED', 'cancelled', { retryable: false });
      controller.abort(isCancel(signal) ? cancelled : signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      return await withHeartbeats(activity, () => work(controller.signal));
    } finally {
      signal.removeEventListener('abort', abort);
    }
  };
  return {
    async offstageTurn(turn) {
      const given = handler.holds?.(turn)
        ? { ...turn, journal: [], since: [] }
        : {
            ...turn,
            journal: unzippedEntries(turn.journal),
            since: turn.since?.map(unzippedEntries) ?? [],
          };
      const end = stepsWithin(await doing((signal) => handler.turn(given, signal)), MAX_BYTES);
      return { ...end, journal: zippedEntries(end.journal) };
    },
    offstageStep: (step) =>
      doing(async (signal) => endWithin(step, await handler.step(step, signal), MAX_BYTES)),
  };
}

async function workflowIdOf(id: string): Promise<string> {
  return `${RUN_PREFIX}${await engineKeyOf(id, MAX_ID_CHARS)}`;
}

function isOver(error: unknown): boolean {
  return nameOf(error) === 'WorkflowNotFoundError' || /already completed/iu.test(messageOf(error));
}
