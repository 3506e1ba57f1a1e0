// The workflows of one job and of one run. Temporal bundles this file for its sandbox: it imports the flow of runs, which
// imports nothing, and is given the functions of `@temporalio/workflow` by the app's workflows file.
//
// Invariants
//   TEMPORAL-WORKFLOW-1. A job that must not be repeated has one attempt; if that fails, its end is `lost` (JOBS-2). One that
//       a worker refuses was not begun, and is offered in an activity of its own (JOBS-8).
//   TEMPORAL-WORKFLOW-2. The commands depend on the input and on what has happened, and on nothing else: it replays.
//   TEMPORAL-WORKFLOW-3. A cancel reaches the turn under way; a turn whose worker died after that begins with the cancel.
//   TEMPORAL-WORKFLOW-4. A child run is a child workflow; while one is under way, the history is not begun anew.

import {
  playRun,
  type RunAnswer,
  type RunNews,
  type RunOrder,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
} from '../../actors/ports/run-flow.ts';

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
  /** @defaultValue 600000: asked by an earlier version */
  readonly offerMs?: number;
}

/** The part of `@temporalio/workflow` that is used: `import * as workflow from '@temporalio/workflow'`. */
export interface TemporalWorkflow {
  proxyActivities(options: object): unknown;
  isCancellation(error: unknown): boolean;
  sleep(ms: number): Promise<unknown>;
}

/** The end of a job, as `Jobs` returns it. */
type End = object;

/** The answer of a worker that lacks what the job needs. */
interface Refusal {
  readonly refused: { readonly code: string; readonly message: string };
}

interface Activities {
  offstageDoJob(job: WorkflowJob, limits: Pick<Limits, 'longestMs'>): Promise<End | Refusal>;
}

const MAX_PAUSE_MS = 30_000;
const MIN_OFFER_PAUSE_MS = 500;
const OFFER_MS = 600_000;
/** A worker that does not end a job so long after its time is taken for dead. */
const GRACE_MS = 10_000;

/**
 * Returns the workflow that does a job: export it from the app's workflows file as `offstageJob`.
 *
 * ```ts
 * import * as workflow from '@temporalio/workflow';
 * export const offstageJob = jobWorkflow(workflow);
 * ```
 */
export function jobWorkflow({
  proxyActivities,
  isCancellation,
  sleep,
}: TemporalWorkflow): (job: WorkflowJob, limits: Limits) => Promise<End> {
  return async (job, { heartbeatTimeoutMs, longestMs, offerMs = OFFER_MS }) => {
    const options = {
      startToCloseTimeout: longestMs + GRACE_MS,
      heartbeatTimeout: heartbeatTimeoutMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // TEMPORAL-WORKFLOW-1
      retry: job.once
        ? { maximumAttempts: 1 }
        : { initialInterval: 100, maximumInterval: MAX_PAUSE_MS },
    };
    const { offstageDoJob } = proxyActivities(options) as Activities;
    try {
      let offeredMs = 0;
      for (let pauseMs = MIN_OFFER_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        const given = await offstageDoJob(job, { longestMs });
        if (!('refused' in given)) return given;
        if (offeredMs >= offerMs) return { failed: { ...given.refused, retryable: false } };
        const ms = Math.min(pauseMs, offerMs - offeredMs);
        offeredMs += ms;
        await sleep(ms);
      }
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

/** The part of `@temporalio/workflow` that a run uses: `import * as workflow from '@temporalio/workflow'`. */
export interface TemporalRunWorkflow {
  proxyActivities(options: object): unknown;
  isCancellation(error: unknown): boolean;
  condition(isSo: () => boolean): Promise<unknown>;
  condition(isSo: () => boolean, timeoutMs: number): Promise<unknown>;
  upsertMemo(memo: Readonly<Record<string, unknown>>): void;
  defineUpdate(name: string): unknown;
  setHandler(definition: unknown, handler: unknown): void;
  workflowInfo(): { readonly continueAsNewSuggested: boolean; readonly workflowType: string };
  startChild(workflowType: string, options: object): Promise<{ result(): Promise<unknown> }>;
  continueAsNew(...args: unknown[]): Promise<unknown>;
  readonly CancellationScope: {
    new (): Scope;
    current(): { readonly cancelRequested: Promise<unknown> };
    nonCancellable<T>(work: () => Promise<T>): Promise<T>;
  };
}

interface Scope {
  run<T>(work: () => Promise<T>): Promise<T>;
  cancel(): void;
}

interface RunActivities {
  offstageTurn(turn: RunTurn): Promise<RunTurnEnd>;
}

/** The state of a run whose history is begun anew. */
interface CarriedRun {
  readonly turn: RunTurn;
  readonly view: RunView;
  readonly answers: readonly RunAnswer[];
  readonly cancelled: string | null;
}

/** The updates by which a program reaches the workflow of a run. */
export const RUN_UPDATES = { answer: 'offstageAnswer', cancel: 'offstageCancel' } as const;
/** The beginning of the ids of the workflows of runs. Jobs have ids of another form: theirs hold a colon. */
export const RUN_PREFIX = 'run/';
/** The entry of the memo in which programs read the view: no worker need live for that. */
export const RUN_VIEW = 'offstageView';

const BY_OPERATOR = 'cancelled at the engine';

/**
 * Returns the workflow that keeps a run: export it from the app's workflows file as `offstageRun`.
 *
 * ```ts
 * import * as workflow from '@temporalio/workflow';
 * export const offstageRun = runWorkflow(workflow);
 * ```
 */
export function runWorkflow(
  workflow: TemporalRunWorkflow,
): (order: RunOrder, limits: Limits, carried?: CarriedRun) => Promise<RunView> {
  const { CancellationScope, condition, isCancellation } = workflow;
  return async (order, limits, carried) => {
    let view: RunView = carried?.view ?? { turn: 0, waiting: [], outcome: null };
    let cancelled = carried?.cancelled ?? null;
    let underWay: Scope | null = null;
    const answers: RunAnswer[] = [...(carried?.answers ?? [])];
    const answered = new Set(answers.map(({ requestId }) => requestId));
    const cancel = (reason: string): void => {
      cancelled ??= reason;
      underWay?.cancel();
    };
    const { offstageTurn } = workflow.proxyActivities({
      startToCloseTimeout: limits.longestMs,
      heartbeatTimeout: limits.heartbeatTimeoutMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      retry: { initialInterval: 100, maximumInterval: MAX_PAUSE_MS },
    }) as RunActivities;
    workflow.setHandler(workflow.defineUpdate(RUN_UPDATES.answer), (answer: RunAnswer) => {
      const { requestId } = answer;
      const isOpen = view.waiting.some((wait) => wait.requestId === requestId);
      if (!isOpen || answered.has(requestId)) return false;
      answered.add(requestId);
      answers.push(answer);
      return true;
    });
    workflow.setHandler(workflow.defineUpdate(RUN_UPDATES.cancel), (reason: string) => {
      cancel(reason);
      return true;
    });
    CancellationScope.current().cancelRequested.catch(() => cancel(BY_OPERATOR));

    const turn = async (what: RunTurn): Promise<RunTurnEnd> => {
      // The outcomes of children reach this execution only.
      if (children.size === 0 && workflow.workflowInfo().continueAsNewSuggested)
        await workflow.continueAsNew(order, limits, { turn: what, view, answers, cancelled });
      // TEMPORAL-WORKFLOW-3
      for (;;) {
        const scope = new CancellationScope();
        const given: RunTurn =
          cancelled === null ? what : { ...what, news: { type: 'cancelled', reason: cancelled } };
        underWay = cancelled === null ? scope : null;
        try {
          return await scope.run(() => offstageTurn(given));
        } catch (error) {
          if (!isCancellation(error)) throw error;
        } finally {
          underWay = null;
        }
      }
    };
    const children = new Map<string, Scope>();
    const ends: (RunNews & { readonly type: 'child' })[] = [];
    const hasNews = (): boolean => cancelled !== null || answers.length > 0 || ends.length > 0;
    return CancellationScope.nonCancellable(() =>
      playRun(
        order,
        {
          turn,
          show(next) {
            view = next;
            workflow.upsertMemo({ [RUN_VIEW]: next });
          },
          async begin({ order: child, onParentClose }) {
            const { id } = child;
            const scope = new CancellationScope();
            children.set(id, scope);
            const { workflowType } = workflow.workflowInfo();
            const handle = await scope.run(() =>
              workflow.startChild(workflowType, {
                // Ids of children are short: theirs need no digest, which the sandbox lacks.
                workflowId: `${RUN_PREFIX}${encodeURIComponent(id)}`,
                args: [child, limits],
                parentClosePolicy: onParentClose === 'cancel' ? 'REQUEST_CANCEL' : 'ABANDON',
              }),
            );
            const end = (outcome: object | null): void => {
              if (children.delete(id)) ends.push({ type: 'child', id, outcome });
            };
            handle.result().then(
              (last) => end((last as RunView).outcome),
              () => end(null),
            );
          },
          stop(childId) {
            const scope = children.get(childId);
            children.delete(childId);
            scope?.cancel();
          },
          async news(_, dueInMs) {
            if (dueInMs === null) await condition(hasNews);
            else await condition(hasNews, Math.max(1, Math.ceil(dueInMs)));
            if (cancelled !== null) return { type: 'cancelled', reason: cancelled };
            const answer = answers.shift();
            if (answer) return { type: 'answered', answer };
            return ends.shift() ?? { type: 'due' };
          },
        },
        carried?.turn,
      ),
    );
  };
}
