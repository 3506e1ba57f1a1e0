// The workflows of a job and of a run. Temporal bundles this file for its sandbox. The file imports only the run flow,
// which has no imports itself. The app's workflows file passes in the functions of `@temporalio/workflow`.
//
// A turn is an activity that runs one step. The activity's result contains the entries that the turn adds to the run's
// journal. Parallel steps have one activity each. The turns between them are local activities, which need no round trip
// to the server.
//
// Invariants
//   TEMPORAL-WORKFLOW-1. A non-repeatable job or step has one attempt. If the attempt fails, the outcome is `lost`
//       (JOBS-2). A job that a worker refuses has not started. It is offered again in another activity (JOBS-8).
//   TEMPORAL-WORKFLOW-2. Commands depend only on the input and on recorded events, so that the workflow can be replayed.
//   TEMPORAL-WORKFLOW-3. A cancel does not wait for the running turn. Another turn handles the cancel, as after the
//       death of a worker.
//   TEMPORAL-WORKFLOW-4. A child run is a child workflow. While a child or a step is running, the history is not
//       restarted. At half of Temporal's limit, no more parallel steps are started until the history has been
//       restarted.
//   TEMPORAL-WORKFLOW-6. A run that is ending does not cancel its activities. Instead, the end of the workflow stops
//       them at their next heartbeat. (Temporal's test server hangs if such a cancel coincides with the activity's
//       end.)
//   TEMPORAL-WORKFLOW-7. An `interrupt` asks a turn with one step to stop, and does not wait for the turn.

import {
  playRun,
  type RunAnswer,
  type RunDriver,
  type RunMessage,
  type RunNews,
  type RunOrder,
  type RunStep,
  type RunStepEnd,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
  type TakenMessage,
} from '../../actors/ports/run-flow.ts';
import type { Job, JobEnd, JobRefusal } from '../../actors/ports/jobs.ts';

interface Limits {
  /** The time without a heartbeat after which a worker counts as dead, in milliseconds. */
  readonly heartbeatTimeoutMs: number;
  /** The time limit for a job, a turn or a step, in milliseconds. */
  readonly longestMs: number;
  /** Absent in requests of an earlier version. @defaultValue 600000 */
  readonly offerMs?: number;
}

/** The part of `@temporalio/workflow` that this file uses: `import * as workflow from '@temporalio/workflow'`. */
interface TemporalWorkflow {
  /** Like `proxyActivities` of the package: calls the activity that runs the job. */
  proxyActivities(options: object): unknown;
  /** Like `isCancellation` of the package: a cancelled job ends with `CANCELLED` instead of being repeated or lost. */
  isCancellation(error: unknown): boolean;
  /** Like `sleep` of the package: pauses before a refused job is offered again. */
  sleep(ms: number): Promise<unknown>;
}

interface Activities {
  offstageDoJob(job: Job, limits: Pick<Limits, 'longestMs'>): Promise<JobEnd | JobRefusal>;
}

const MAX_PAUSE_MS = 30_000;
/** The maximum delay before a turn is retried, possibly by another worker that can run it. */
const MAX_AGAIN_MS = 5_000;
/** The delay before a step is offered to another worker. */
const ANOTHER_MS = 1_000;
const MIN_OFFER_PAUSE_MS = 500;
const OFFER_MS = 600_000;
/** If a worker has not ended a job this long after the job's time limit, the worker counts as dead. */
const GRACE_MS = 10_000;

/**
 * Returns the workflow of a job. Export it from the app's workflows file as `offstageJob`.
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
}: TemporalWorkflow): (job: Job, limits: Limits) => Promise<JobEnd> {
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
  /** Like `proxyActivities` of the package: calls the turns and steps that the workers run. */
  proxyActivities(options: object): unknown;
  /** Like `proxyLocalActivities` of the package: calls turns that run no step, without a round trip to the server. */
  proxyLocalActivities(options: object): unknown;
  /** Like `patched` of the package: marks the history with its version, so that a run refuses an unknown one. */
  patched(patchId: string): boolean;
  /** Like `isCancellation` of the package: distinguishes a cancelled step from a failed one. */
  isCancellation(error: unknown): boolean;
  /** Like `condition` of the package: waits until `isSo` returns true. */
  condition(isSo: () => boolean): Promise<unknown>;
  condition(isSo: () => boolean, timeoutMs: number): Promise<unknown>;
  /** Like `upsertMemo` of the package: stores the view of the run, which programs read without a running worker. */
  upsertMemo(memo: Readonly<Record<string, unknown>>): void;
  /** Like `defineUpdate` of the package: names the updates that deliver answers, messages and cancels. */
  defineUpdate(name: string): unknown;
  /** Like `setHandler` of the package: registers the functions that handle these updates. */
  setHandler(definition: unknown, handler: unknown, options?: object): void;
  /** Like `workflowInfo` of the package. The length and size of the history determine when a run restarts it. */
  workflowInfo(): {
    readonly continueAsNewSuggested: boolean;
    readonly workflowType: string;
    readonly historyLength?: number;
    readonly historySize?: number;
  };
  /** Like `startChild` of the package: starts a subagent that is a run of its own. */
  startChild(workflowType: string, options: object): Promise<{ result(): Promise<unknown> }>;
  /** Like `continueAsNew` of the package: restarts the history with the current state of the run. */
  continueAsNew(...args: unknown[]): Promise<unknown>;
  /**
   * Like `CancellationScope` of the package: cancels single turns, steps and children, but never the workflow itself.
   */
  readonly CancellationScope: {
    new (): Scope;
    current(): { readonly cancelRequested: Promise<unknown> };
    nonCancellable<T>(work: () => Promise<T>): Promise<T>;
  };
}

interface Scope {
  /** Runs the work, so that `cancel` also cancels the activities and children that the work starts. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Cancels the running work, whose promise then rejects. */
  cancel(): void;
}

interface RunActivities {
  offstageTurn(turn: RunTurn): Promise<RunTurnEnd>;
  offstageStep(step: Job): Promise<JobEnd | JobRefusal>;
}

/** The state of a run when its history is restarted. */
interface CarriedRun {
  /** The turn that is due. */
  readonly turn: RunTurn;
  /** The view that programs read until that turn has ended. */
  readonly view: RunView;
  /** The accepted answers that no turn has received. */
  readonly answers: readonly RunAnswer[];
  /** Messages that no turn has received. @defaultValue none */
  readonly mail?: readonly TakenMessage[];
  /** The reason for which the run is being cancelled; null if it is not. */
  readonly cancelled: string | null;
}

/** The updates that a program sends to a run's workflow. */
export const RUN_UPDATES = {
  answer: 'offstageAnswer',
  message: 'offstageMessage',
  cancel: 'offstageCancel',
  view: 'offstageView',
} as const;
/** The prefix of run workflow ids. The ids of jobs contain a colon instead. */
export const RUN_PREFIX = 'run/';
/** The memo entry with the view, which programs can read without a running worker. */
export const RUN_VIEW = 'offstageView';

const BY_OPERATOR = 'cancelled at the engine';
/** Half of each limit at which Temporal ends a workflow. */
const FULL_EVENTS = 25_000;
const FULL_BYTES = 25_000_000;
/** Equal to the `MAX_UNREAD_MESSAGES` of the port, which the sandbox cannot import. */
const MAX_UNREAD = 25;
/** The version marker in the histories of runs. */
const FORM = 'offstage-steps';

/**
 * Returns the workflow of a run. Export it from the app's workflows file as `offstageRun`.
 *
 * ```ts
 * import * as workflow from '@temporalio/workflow';
 * export const offstageRun = runWorkflow(workflow);
 * ```
 */
export function runWorkflow(
  workflow: TemporalRunWorkflow,
): (order: RunOrder, limits: Limits, carried?: CarriedRun) => Promise<RunView> {
  const { CancellationScope } = workflow;
  return (order, limits, carried) => {
    const play = runOnTemporal(workflow, order, limits, carried);
    return CancellationScope.nonCancellable(play);
  };
}

/** Begins a run. @returns a function that runs the workflow until it ends */
function runOnTemporal(
  workflow: TemporalRunWorkflow,
  order: RunOrder,
  limits: Limits,
  carried: CarriedRun | undefined,
): () => Promise<RunView> {
  const children = new Map<string, Scope>();
  const childEnds: (RunNews & { readonly type: 'child' })[] = [];
  const stepScopes = new Map<string, Scope>();
  const stepEnds: RunStepEnd[] = [];
  /** The number of programs that are waiting for the next view. */
  let watching = 0;
  let isLeaving = false;
  const isInterrupted = (): boolean => mail.some(({ mode }) => mode === 'interrupt');
  let shown: RunView = carried?.view ?? { turn: 0, waiting: [], outcome: null };
  let cancelled = carried?.cancelled ?? null;
  const answers: RunAnswer[] = [...(carried?.answers ?? [])];
  const answered: Set<string> = new Set(answers.map(({ requestId }) => requestId));
  /** Messages that no turn has received yet. */
  const mail: TakenMessage[] = [...(carried?.mail ?? [])];
  const carriedMail = [...(carried?.turn.messages ?? []), ...mail];
  /** The numbers of the unread messages, by message id. */
  const numbers: Map<string, number> = new Map(carriedMail.map(({ id, nth }) => [id, nth]));
  let lastMessage = carriedMail.at(-1)?.nth ?? shown.messages?.last ?? 0;
  const far = activities(false);
  listen();

  /** Answers the waiting updates, because an update fails if this execution does not answer it. */
  async function unwatched(): Promise<void> {
    isLeaving = true;
    await workflow.condition(() => watching === 0);
  }

  function activities(once: boolean): RunActivities {
    return workflow.proxyActivities({
      startToCloseTimeout: limits.longestMs,
      heartbeatTimeout: limits.heartbeatTimeoutMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // TEMPORAL-WORKFLOW-1
      retry: once
        ? { maximumAttempts: 1 }
        : { initialInterval: 100, maximumInterval: MAX_AGAIN_MS },
    }) as RunActivities;
  }

  function listen(): void {
    const { defineUpdate, setHandler, condition, CancellationScope } = workflow;
    setHandler(defineUpdate(RUN_UPDATES.answer), (answer: RunAnswer) => {
      const { requestId } = answer;
      const isOpen = shown.waiting.some((wait) => wait.requestId === requestId);
      if (!isOpen || answered.has(requestId)) return false;
      answered.add(requestId);
      answers.push(answer);
      return true;
    });
    setHandler(defineUpdate(RUN_UPDATES.message), take);
    setHandler(defineUpdate(RUN_UPDATES.cancel), (reason: string) => {
      cancel(reason);
      return true;
    });
    setHandler(defineUpdate(RUN_UPDATES.view), async (after: number) => {
      watching += 1;
      try {
        await condition(() => isLeaving || shown.turn > after);
      } finally {
        watching -= 1;
      }
      // The outcome is the result of the workflow.
      return shown.outcome === null ? shown : null;
    });
    CancellationScope.current().cancelRequested.catch(() => cancel(BY_OPERATOR));
  }

  function take(
    message: RunMessage,
  ): { readonly nth: number } | { readonly refused: 'over' | 'full' } {
    if (shown.outcome !== null) return { refused: 'over' };
    const known = numbers.get(message.id);
    if (known !== undefined) return { nth: known };
    if (numbers.size >= MAX_UNREAD) return { refused: 'full' };
    const nth = (lastMessage += 1);
    numbers.set(message.id, nth);
    mail.push({ ...message, nth });
    return { nth };
  }

  function cancel(reason: string): void {
    cancelled ??= reason;
  }

  /** TEMPORAL-WORKFLOW-4 */
  async function renew(turn: RunTurn): Promise<void> {
    // Only this execution receives the outcomes of the children and steps that it started.
    if (children.size + stepScopes.size > 0) return;
    if (!workflow.workflowInfo().continueAsNewSuggested) return;
    await unwatched();
    await workflow.continueAsNew(order, limits, {
      turn,
      view: shown,
      answers,
      ...(mail.length > 0 ? { mail } : {}),
      cancelled,
    });
  }

  /** Runs a turn of at most one step. Returns null if a message interrupts the turn. */
  async function turnOfOne(turn: RunTurn): Promise<RunTurnEnd | null> {
    const { news, underWay, steps } = turn;
    if (news.type === 'cancelled' || news.type === 'ended' || underWay || steps === 'none')
      return between(turn);
    const { condition, CancellationScope } = workflow;
    const { step } = news.type === 'next' ? news : { step: null };
    const { offstageTurn } = activities(step?.once === true);
    let settled: { readonly end: RunTurnEnd } | { readonly error: unknown } | null = null;
    const scope = new CancellationScope();
    scope
      .run(() => offstageTurn(turn))
      .then(
        (end) => {
          settled = { end };
        },
        (error: unknown) => {
          settled = { error };
        },
      );
    const isToStop = (): boolean => cancelled !== null || isInterrupted();
    await condition(() => settled !== null || isToStop());
    const over = settled as { readonly end?: RunTurnEnd; readonly error?: unknown } | null;
    if (over?.end && over.end.missing !== 'another worker') return over.end;
    if (over?.end) await condition(isToStop, ANOTHER_MS);
    // TEMPORAL-WORKFLOW-3
    if (cancelled !== null)
      return between({ ...turn, news: { type: 'cancelled', reason: cancelled } });
    // TEMPORAL-WORKFLOW-7
    if (over === null || (over.end && isInterrupted())) {
      scope.cancel();
      return null;
    }
    if (over.end) return turnOfOne(turn);
    if (step?.once !== true) throw over.error;
    // TEMPORAL-WORKFLOW-1
    const ends = [{ key: step.key, end: { lost: true } as const }];
    return between({ ...turn, news: { type: 'ended', ends } });
  }

  /** Runs a turn without a step. */
  async function between(what: RunTurn): Promise<RunTurnEnd> {
    const turn: RunTurn = { ...what, steps: 'none' };
    const near = workflow.proxyLocalActivities({
      startToCloseTimeout: limits.longestMs,
      retry: { maximumAttempts: 1 },
    }) as RunActivities;
    try {
      return await near.offstageTurn(turn);
    } catch {
      // This worker cannot run the turn, but another worker may be able to run it.
      return far.offstageTurn(turn);
    }
  }

  function driver(): RunDriver {
    return {
      turn: async (turn) => {
        await renew(turn);
        return turnOfOne(turn);
      },
      messages: () => mail.splice(0),
      show: (view) => {
        shown = view;
        // The workflow's result contains the outcome.
        if (view.outcome !== null) return;
        forgetRead(view);
        workflow.upsertMemo({ [RUN_VIEW]: view });
      },
      begin: (child) => begin(child.order, child.onParentClose),
      stop: (childId) => stop(childId),
      news: async (_, dueInMs) => {
        const hasNews = (): boolean => isDue();
        if (dueInMs === null) await workflow.condition(hasNews);
        else await workflow.condition(hasNews, Math.max(1, Math.ceil(dueInMs)));
        return takeNews() ?? { type: 'due' };
      },
      isFull: () => {
        const { historyLength = 0, historySize = 0 } = workflow.workflowInfo();
        return historyLength > FULL_EVENTS || historySize > FULL_BYTES;
      },
      beginStep: (step) => beginStep(step),
      stopStep: (key) => {
        const scope = stepScopes.get(key);
        stepScopes.delete(key);
        // TEMPORAL-WORKFLOW-6
        if (shown.outcome === null) scope?.cancel();
      },
    };
  }

  function forgetRead({ messages }: RunView): void {
    const unread = new Set([...(messages?.unread ?? []), ...mail.map(({ nth }) => nth)]);
    for (const [id, nth] of numbers) if (!unread.has(nth)) numbers.delete(id);
  }

  function isDue(): boolean {
    const waiting = [answers, mail, stepEnds, childEnds];
    return cancelled !== null || waiting.some(({ length }) => length > 0);
  }

  function takeNews(): RunNews | null {
    if (cancelled !== null) return { type: 'cancelled', reason: cancelled };
    const answer = answers.shift();
    if (answer) return { type: 'answered', answer };
    if (mail.length > 0) return { type: 'messages' };
    if (stepEnds.length > 0) return { type: 'ended', ends: stepEnds.splice(0) };
    return childEnds.shift() ?? null;
  }

  function beginStep({ refused, ...step }: RunStep): void {
    const { key, once } = step;
    const { CancellationScope, isCancellation } = workflow;
    const scope = new CancellationScope();
    stepScopes.set(key, scope);
    const over = (end: JobEnd): void => {
      if (stepScopes.delete(key)) stepEnds.push({ key, end });
    };
    if (refused) return over({ failed: refused });
    const { offstageStep } = activities(once);
    const offered = async (): Promise<JobEnd> => {
      for (let pauseMs = MIN_OFFER_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        const given = await offstageStep({ body: '', ...step });
        if (!('refused' in given)) return given;
        // The workers report this if none of them can run the step.
        await workflow.condition(() => stepScopes.get(key) !== scope, pauseMs);
        if (stepScopes.get(key) !== scope) return { lost: true };
      }
    };
    scope.run(offered).then(over, (error: unknown) => {
      const isCancelled = isCancellation(error);
      if (once && !isCancelled) return over({ lost: true });
      const code = isCancelled ? 'CANCELLED' : 'JOBS_REFUSED';
      over({ failed: { code, message: `The step was not done: ${code}`, retryable: false } });
    });
  }

  async function begin(child: RunOrder, onParentClose: 'cancel' | 'abandon'): Promise<void> {
    const { id } = child;
    const scope = new workflow.CancellationScope();
    children.set(id, scope);
    const { workflowType } = workflow.workflowInfo();
    const handle = await scope.run(() =>
      workflow.startChild(workflowType, {
        // Child ids are short, so they need no digest, which the sandbox cannot compute.
        workflowId: `${RUN_PREFIX}${encodeURIComponent(id)}`,
        args: [child, limits],
        parentClosePolicy: onParentClose === 'cancel' ? 'REQUEST_CANCEL' : 'ABANDON',
      }),
    );
    const end = (outcome: object | null): void => {
      if (children.delete(id)) childEnds.push({ type: 'child', id, outcome });
    };
    handle.result().then(
      (last) => end((last as RunView).outcome),
      () => end(null),
    );
  }

  function stop(childId: string): void {
    const scope = children.get(childId);
    children.delete(childId);
    scope?.cancel();
  }

  return async () => {
    if (!carried && !workflow.patched(FORM))
      throw new Error('This history of a run is of a version that was never released');
    const start = carried && { turn: carried.turn, view: carried.view };
    const last = await playRun(order, driver(), start);
    // Programs that are waiting receive the last view before the run ends.
    await unwatched();
    return last;
  };
}
