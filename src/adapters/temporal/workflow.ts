// The workflows of a job and of a run. Temporal bundles this file for its sandbox: the file imports only the run flow,
// which has no imports, and the app's workflows file passes in the functions of `@temporalio/workflow`.
//
// A turn is an activity that runs one step: the activity's result contains the turn's additions to the run's journal.
// Parallel steps have one activity each, and the turns between them are local activities, without a server round trip.
//
// Invariants
//   TEMPORAL-WORKFLOW-1. A non-repeatable job or step has one attempt; if the attempt fails, the end is `lost` (JOBS-2). A
//       job that a worker refuses has not started, and is offered again in another activity (JOBS-8).
//   TEMPORAL-WORKFLOW-2. Commands depend only on the input and on recorded events, so that the workflow can be replayed.
//   TEMPORAL-WORKFLOW-3. A cancel does not wait for the running turn: another turn handles it, as after a worker's death.
//   TEMPORAL-WORKFLOW-4. A child run is a child workflow. While a child or a step is running, the history is not restarted.
//       At half of Temporal's limit, no further parallel step starts until the history has been restarted.
//   TEMPORAL-WORKFLOW-6. An ending run does not cancel its activities: the workflow's end stops them at their next
//       heartbeat. (Temporal's test server hangs if such a cancel coincides with the activity's end.)
//   TEMPORAL-WORKFLOW-7. An `interrupt` asks a one-step turn to stop, and does not wait for it.

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
  readonly heartbeatTimeoutMs: number;
  readonly longestMs: number;
  /** Absent in requests of an earlier version. @defaultValue 600000 */
  readonly offerMs?: number;
}

/** The part of `@temporalio/workflow` that is used: `import * as workflow from '@temporalio/workflow'`. */
interface TemporalWorkflow {
  proxyActivities(options: object): unknown;
  isCancellation(error: unknown): boolean;
  sleep(ms: number): Promise<unknown>;
}

interface Activities {
  offstageDoJob(job: Job, limits: Pick<Limits, 'longestMs'>): Promise<JobEnd | JobRefusal>;
}

const MAX_PAUSE_MS = 30_000;
/** The longest delay before a turn is retried by a worker that may be able to run it. */
const MAX_AGAIN_MS = 5_000;
/** The delay before a step is offered to another worker. */
const ANOTHER_MS = 1_000;
const MIN_OFFER_PAUSE_MS = 500;
const OFFER_MS = 600_000;
/** A worker that has not ended a job this long after its time limit counts as dead. */
const GRACE_MS = 10_000;

/**
 * Returns a job's workflow: export it from the app's workflows file as `offstageJob`.
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
  proxyActivities(options: object): unknown;
  proxyLocalActivities(options: object): unknown;
  patched(patchId: string): boolean;
  isCancellation(error: unknown): boolean;
  condition(isSo: () => boolean): Promise<unknown>;
  condition(isSo: () => boolean, timeoutMs: number): Promise<unknown>;
  upsertMemo(memo: Readonly<Record<string, unknown>>): void;
  defineUpdate(name: string): unknown;
  setHandler(definition: unknown, handler: unknown, options?: object): void;
  workflowInfo(): {
    readonly continueAsNewSuggested: boolean;
    readonly workflowType: string;
    readonly historyLength?: number;
    readonly historySize?: number;
  };
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
  offstageStep(step: Job): Promise<JobEnd | JobRefusal>;
}

/** The state of a run whose history is restarted. */
interface CarriedRun {
  readonly turn: RunTurn;
  readonly view: RunView;
  readonly answers: readonly RunAnswer[];
  /** Messages that no turn has received. @defaultValue none */
  readonly mail?: readonly TakenMessage[];
  readonly cancelled: string | null;
}

/** The updates that a program sends to a run's workflow. */
export const RUN_UPDATES = {
  answer: 'offstageAnswer',
  message: 'offstageMessage',
  cancel: 'offstageCancel',
  view: 'offstageView',
} as const;
/** The prefix of run workflow ids. Job ids contain a colon instead. */
export const RUN_PREFIX = 'run/';
/** The memo entry with the view, which programs can read without a live worker. */
export const RUN_VIEW = 'offstageView';

const BY_OPERATOR = 'cancelled at the engine';
/** Half of the limits at which Temporal ends a workflow. */
const FULL_EVENTS = 25_000;
const FULL_BYTES = 25_000_000;
/** Equal to the port's `MAX_UNREAD_MESSAGES`, which the sandbox cannot import. */
const MAX_UNREAD = 25;
/** The version mark of run histories. */
const FORM = 'offstage-steps';

/**
 * Returns a run's workflow: export it from the app's workflows file as `offstageRun`.
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
    const run = new RunOnTemporal(workflow, order, limits, carried);
    return CancellationScope.nonCancellable(() => run.play());
  };
}

class RunOnTemporal {
  readonly #workflow: TemporalRunWorkflow;
  readonly #order: RunOrder;
  readonly #limits: Limits;
  readonly #carried: CarriedRun | undefined;
  readonly #far: RunActivities;
  #view: RunView;
  #cancelled: string | null;
  readonly #answers: RunAnswer[];
  readonly #answered: Set<string>;
  /** Messages that no turn has received yet. */
  readonly #mail: TakenMessage[];
  /** The unread messages' numbers, by message id. */
  readonly #unread: Map<string, number>;
  #lastMessage: number;
  readonly #children = new Map<string, Scope>();
  readonly #ends: (RunNews & { readonly type: 'child' })[] = [];
  readonly #steps = new Map<string, Scope>();
  readonly #stepEnds: RunStepEnd[] = [];
  /** The number of programs that wait for the next view. */
  #watching = 0;
  #isLeaving = false;

  constructor(
    workflow: TemporalRunWorkflow,
    order: RunOrder,
    limits: Limits,
    carried: CarriedRun | undefined,
  ) {
    this.#workflow = workflow;
    this.#order = order;
    this.#limits = limits;
    this.#carried = carried;
    this.#view = carried?.view ?? { turn: 0, waiting: [], outcome: null };
    this.#cancelled = carried?.cancelled ?? null;
    this.#answers = [...(carried?.answers ?? [])];
    this.#answered = new Set(this.#answers.map(({ requestId }) => requestId));
    this.#mail = [...(carried?.mail ?? [])];
    const unread = [...(carried?.turn.messages ?? []), ...this.#mail];
    this.#unread = new Map(unread.map(({ id, nth }) => [id, nth]));
    this.#lastMessage = unread.at(-1)?.nth ?? this.#view.messages?.last ?? 0;
    this.#far = this.#activities(false);
    this.#listen();
  }

  async play(): Promise<RunView> {
    const from = this.#carried;
    if (!from && !this.#workflow.patched(FORM))
      throw new Error('This history of a run is of a version that was never released');
    const start = from && { turn: from.turn, view: from.view };
    const view = await playRun(this.#order, this.#driver(), start);
    // Waiting programs receive the last view before the run ends.
    await this.#unwatched();
    return view;
  }

  /** Answers the waiting updates, because an update that this execution leaves unanswered fails. */
  async #unwatched(): Promise<void> {
    this.#isLeaving = true;
    await this.#workflow.condition(() => this.#watching === 0);
  }

  #activities(once: boolean): RunActivities {
    return this.#workflow.proxyActivities({
      startToCloseTimeout: this.#limits.longestMs,
      heartbeatTimeout: this.#limits.heartbeatTimeoutMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // TEMPORAL-WORKFLOW-1
      retry: once
        ? { maximumAttempts: 1 }
        : { initialInterval: 100, maximumInterval: MAX_AGAIN_MS },
    }) as RunActivities;
  }

  #listen(): void {
    const { defineUpdate, setHandler, condition, CancellationScope } = this.#workflow;
    setHandler(defineUpdate(RUN_UPDATES.answer), (answer: RunAnswer) => {
      const { requestId } = answer;
      const isOpen = this.#view.waiting.some((wait) => wait.requestId === requestId);
      if (!isOpen || this.#answered.has(requestId)) return false;
      this.#answered.add(requestId);
      this.#answers.push(answer);
      return true;
    });
    setHandler(defineUpdate(RUN_UPDATES.message), (message: RunMessage) => this.#take(message));
    setHandler(defineUpdate(RUN_UPDATES.cancel), (reason: string) => {
      this.#cancel(reason);
      return true;
    });
    setHandler(defineUpdate(RUN_UPDATES.view), async (after: number) => {
      this.#watching += 1;
      try {
        await condition(() => this.#isLeaving || this.#view.turn > after);
      } finally {
        this.#watching -= 1;
      }
      // The outcome is the workflow's result.
      return this.#view.outcome === null ? this.#view : null;
    });
    CancellationScope.current().cancelRequested.catch(() => this.#cancel(BY_OPERATOR));
  }

  #take(message: RunMessage): { readonly nth: number } | { readonly refused: 'over' | 'full' } {
    if (this.#view.outcome !== null) return { refused: 'over' };
    const known = this.#unread.get(message.id);
    if (known !== undefined) return { nth: known };
    if (this.#unread.size >= MAX_UNREAD) return { refused: 'full' };
    const nth = (this.#lastMessage += 1);
    this.#unread.set(message.id, nth);
    this.#mail.push({ ...message, nth });
    return { nth };
  }

  get #isInterrupted(): boolean {
    return this.#mail.some(({ mode }) => mode === 'interrupt');
  }

  #cancel(reason: string): void {
    this.#cancelled ??= reason;
  }

  /** TEMPORAL-WORKFLOW-4 */
  async #renew(turn: RunTurn): Promise<void> {
    // Only this execution receives the outcomes of its children and steps.
    if (this.#children.size + this.#steps.size > 0) return;
    if (!this.#workflow.workflowInfo().continueAsNewSuggested) return;
    await this.#unwatched();
    await this.#workflow.continueAsNew(this.#order, this.#limits, {
      turn,
      view: this.#view,
      answers: this.#answers,
      ...(this.#mail.length > 0 ? { mail: this.#mail } : {}),
      cancelled: this.#cancelled,
    });
  }

  /** Runs a turn of at most one step. Returns null if a message interrupts the turn. */
  async #turnOfOne(turn: RunTurn): Promise<RunTurnEnd | null> {
    const { news, underWay, steps } = turn;
    if (news.type === 'cancelled' || news.type === 'ended' || underWay || steps === 'none')
      return this.#between(turn);
    const { condition, CancellationScope } = this.#workflow;
    const { step } = news.type === 'next' ? news : { step: null };
    const { offstageTurn } = this.#activities(step?.once === true);
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
    const isToStop = (): boolean => this.#cancelled !== null || this.#isInterrupted;
    await condition(() => settled !== null || isToStop());
    const over = settled as { readonly end?: RunTurnEnd; readonly error?: unknown } | null;
    if (over?.end && over.end.missing !== 'another worker') return over.end;
    if (over?.end) await condition(isToStop, ANOTHER_MS);
    // TEMPORAL-WORKFLOW-3
    if (this.#cancelled !== null)
      return this.#between({ ...turn, news: { type: 'cancelled', reason: this.#cancelled } });
    // TEMPORAL-WORKFLOW-7
    if (over === null || (over.end && this.#isInterrupted)) {
      scope.cancel();
      return null;
    }
    if (over.end) return this.#turnOfOne(turn);
    if (step?.once !== true) throw over.error;
    // TEMPORAL-WORKFLOW-1
    const ends = [{ key: step.key, end: { lost: true } as const }];
    return this.#between({ ...turn, news: { type: 'ended', ends } });
  }

  /** Runs a turn without a step. */
  async #between(what: RunTurn): Promise<RunTurnEnd> {
    const turn: RunTurn = { ...what, steps: 'none' };
    const near = this.#workflow.proxyLocalActivities({
      startToCloseTimeout: this.#limits.longestMs,
      retry: { maximumAttempts: 1 },
    }) as RunActivities;
    try {
      return await near.offstageTurn(turn);
    } catch {
      // This worker cannot run the turn, but another may.
      return this.#far.offstageTurn(turn);
    }
  }

  #driver(): RunDriver {
    return {
      turn: async (turn) => {
        await this.#renew(turn);
        return this.#turnOfOne(turn);
      },
      messages: () => this.#mail.splice(0),
      show: (view) => {
        this.#view = view;
        // The workflow's result contains the outcome.
        if (view.outcome !== null) return;
        this.#forgetRead(view);
        this.#workflow.upsertMemo({ [RUN_VIEW]: view });
      },
      begin: ({ order, onParentClose }) => this.#begin(order, onParentClose),
      stop: (childId) => this.#stop(childId),
      news: async (_, dueInMs) => {
        const hasNews = (): boolean => this.#hasNews;
        if (dueInMs === null) await this.#workflow.condition(hasNews);
        else await this.#workflow.condition(hasNews, Math.max(1, Math.ceil(dueInMs)));
        return this.#news() ?? { type: 'due' };
      },
      isFull: () => {
        const { historyLength = 0, historySize = 0 } = this.#workflow.workflowInfo();
        return historyLength > FULL_EVENTS || historySize > FULL_BYTES;
      },
      beginStep: (step) => this.#beginStep(step),
      stopStep: (key) => {
        const scope = this.#steps.get(key);
        this.#steps.delete(key);
        // TEMPORAL-WORKFLOW-6
        if (this.#view.outcome === null) scope?.cancel();
      },
    };
  }

  #forgetRead({ messages }: RunView): void {
    const unread = new Set([...(messages?.unread ?? []), ...this.#mail.map(({ nth }) => nth)]);
    for (const [id, nth] of this.#unread) if (!unread.has(nth)) this.#unread.delete(id);
  }

  get #hasNews(): boolean {
    const waiting = [this.#answers, this.#mail, this.#stepEnds, this.#ends];
    return this.#cancelled !== null || waiting.some(({ length }) => length > 0);
  }

  #news(): RunNews | null {
    if (this.#cancelled !== null) return { type: 'cancelled', reason: this.#cancelled };
    const answer = this.#answers.shift();
    if (answer) return { type: 'answered', answer };
    if (this.#mail.length > 0) return { type: 'messages' };
    if (this.#stepEnds.length > 0) return { type: 'ended', ends: this.#stepEnds.splice(0) };
    return this.#ends.shift() ?? null;
  }

  #beginStep({ refused, ...step }: RunStep): void {
    const { key, once } = step;
    const { CancellationScope, isCancellation } = this.#workflow;
    const scope = new CancellationScope();
    this.#steps.set(key, scope);
    const over = (end: JobEnd): void => {
      if (this.#steps.delete(key)) this.#stepEnds.push({ key, end });
    };
    if (refused) return over({ failed: refused });
    const { offstageStep } = this.#activities(once);
    const offered = async (): Promise<JobEnd> => {
      for (let pauseMs = MIN_OFFER_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        const given = await offstageStep({ body: '', ...step });
        if (!('refused' in given)) return given;
        // The workers report this if none of them has what the step needs.
        await this.#workflow.condition(() => this.#steps.get(key) !== scope, pauseMs);
        if (this.#steps.get(key) !== scope) return { lost: true };
      }
    };
    scope.run(offered).then(over, (error: unknown) => {
      const isCancelled = isCancellation(error);
      if (once && !isCancelled) return over({ lost: true });
      const code = isCancelled ? 'CANCELLED' : 'JOBS_REFUSED';
      over({ failed: { code, message: `The step was not done: ${code}`, retryable: false } });
    });
  }

  async #begin(child: RunOrder, onParentClose: 'cancel' | 'abandon'): Promise<void> {
    const { id } = child;
    const scope = new this.#workflow.CancellationScope();
    this.#children.set(id, scope);
    const { workflowType } = this.#workflow.workflowInfo();
    const handle = await scope.run(() =>
      this.#workflow.startChild(workflowType, {
        // Child ids are short, so they need no digest, which the sandbox lacks.
        workflowId: `${RUN_PREFIX}${encodeURIComponent(id)}`,
        args: [child, this.#limits],
        parentClosePolicy: onParentClose === 'cancel' ? 'REQUEST_CANCEL' : 'ABANDON',
      }),
    );
    const end = (outcome: object | null): void => {
      if (this.#children.delete(id)) this.#ends.push({ type: 'child', id, outcome });
    };
    handle.result().then(
      (last) => end((last as RunView).outcome),
      () => end(null),
    );
  }

  #stop(childId: string): void {
    const scope = this.#children.get(childId);
    this.#children.delete(childId);
    scope?.cancel();
  }
}
