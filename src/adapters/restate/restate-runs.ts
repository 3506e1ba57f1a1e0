// Runs on Restate: one workflow per run, keyed by the run's id. The workflow stores the journal and runs the turns one
// by one. Answers are workflow promises. Messages and cancels are the workflow's letters, which are promises with
// ascending numbers. A turn is a `ctx.run` of one step. In Restate's journal, the entry of a turn contains the entries
// that the turn adds to the run's journal. Parallel steps have one `ctx.run` each.
//
// Owns:     in a worker, the turns and steps of this process, and the permits to start steps.
// Does not: store anything: Restate does.
//
// Invariants
//   RESTATE-RUNS-1. The handler makes the same requests to Restate in the same order, no matter what its process has
//                   done before.
//   RESTATE-RUNS-2. If another attempt of a turn or step runs in the same process, it waits for the one that is already
//       running.
//   RESTATE-RUNS-3. A non-repeatable step is started once, and only by the process that ran the previous turn according
//       to Restate's record (its mark).
//   RESTATE-RUNS-4. Each letter gets the first free number, and the run reads letters in this order.

import { z } from 'zod';
import { CancelledError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import {
  cancelledEnd,
  doStep,
  endWithin,
  engineKeyOf,
  JobError,
  type JobEnd,
} from '../../actors/ports/jobs.ts';
import {
  MAX_UNREAD_MESSAGES,
  messageTakenSchema,
  runUnderWay,
  runViewSchema,
  stepsWithin,
  type MessageTaken,
  type RunAnswer,
  type RunDriver,
  type RunEngine,
  type RunHandler,
  type RunMessage,
  type RunNews,
  type RunOrder,
  type RunStep,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
  type TakenMessage,
} from '../../actors/ports/run-engine.ts';
import { playRun } from '../../actors/ports/run-flow.ts';
import { RestateAdmin, sqlText, type Invocation } from './restate-admin.ts';
import {
  headersSchema,
  HOUR_MS,
  ingressAddress,
  isSlow,
  MAX_KEY_CHARS,
  RestateIngress,
  sdkSchema,
  serviceName,
  WEEK_MS,
  type DurablePromise,
} from './restate-ingress.ts';

/** The options of `restateRuns`. */
export interface RestateRunsOptions {
  /** The URL of Restate's ingress, such as `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /**
   * The URL of Restate's admin API, such as `http://127.0.0.1:9070`. `forget` needs it to delete the data of a run in
   * Restate. Restrict access to this API. @defaultValue none: Restate deletes the data after `keepMs`
   */
  readonly admin?: string;
  /** The name of the workflow. @defaultValue 'offstage_runs' */
  readonly service?: string;
  /** Headers for every request, such as `{ authorization: 'Bearer …' }`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The options of `restateRunWorkflow`. */
export interface RestateRunWorkflowOptions<Workflow = unknown> {
  /** The SDK: `import * as restate from '@restatedev/restate-sdk'`. */
  readonly restate: RestateWorkflowSdk<Workflow>;
  /** Runs the turns: `runWorker({ … })`. */
  readonly handler: RunHandler;
  /** The name of the workflow. @defaultValue 'offstage_runs' */
  readonly service?: string;
  /** The time for which Restate stores a run that has ended, in milliseconds. @defaultValue 604800000, a week */
  readonly keepMs?: number;
  /** The time limit for a turn in milliseconds, after which the turn is repeated. @defaultValue 3600000, an hour */
  readonly longestMs?: number;
}

/** The part of `@restatedev/restate-sdk` that this file uses. */
export interface RestateWorkflowSdk<Workflow = unknown> {
  /** Like `restate.workflow`: creates the workflow that plays a run. */
  workflow(definition: object): Workflow;
  /**
   * Like `restate.handlers`. Shared handlers receive answers, messages and cancels, and return views, while the run
   * continues.
   */
  readonly handlers: {
    readonly workflow: { shared<Handler>(options: object, handler: Handler): Handler };
  };
  /**
   * Like `RestatePromise` of the SDK. A run uses `race` to wait for its steps, a message and a cancel at the same time.
   */
  readonly RestatePromise: { race(promises: readonly unknown[]): PromiseLike<unknown> };
}

interface KeptPromise<T> {
  get(): DurablePromise<T>;
  peek(): Promise<T | undefined>;
  resolve(value: T): Promise<void>;
}

/** The workflow's state. */
interface Shown {
  /** The number of the newest view. The promise with this name contains the view. */
  readonly turn: number;
  /** The open requests. */
  readonly open: readonly string[];
  /** The number of letters that the run has received. @defaultValue none */
  readonly letters?: number;
  /** The ids of unread messages, with their letter numbers. @defaultValue none */
  readonly unread?: Readonly<Record<string, number>>;
}

type Letter =
  | { readonly type: 'cancel'; readonly reason: string }
  | { readonly type: 'message'; readonly message: RunMessage };

/** Replaces the last view, which is the result of the workflow. */
interface Over {
  readonly isOver: true;
}

interface SharedContext {
  get(name: string): Promise<Shown | null>;
  promise<T>(name: string): KeptPromise<T>;
}

interface WorkflowContext extends SharedContext {
  set(name: string, value: Shown): void;
  run<T>(name: string, action: () => T | Promise<T>): DurablePromise<T>;
  sleep(ms: number): DurablePromise<void>;
  cancellation(): DurablePromise<void>;
  workflowClient(
    workflow: { readonly name: string },
    key: string,
  ): {
    run(order: RunOrder): DurablePromise<RunView>;
  };
  workflowSendClient(
    workflow: { readonly name: string },
    key: string,
  ): {
    cancel(reason: string): unknown;
  };
}

const SERVICE = 'offstage_runs';
const NO_MESSAGES: NonNullable<RunView['messages']> = { last: 0, unread: [] };
const BY_OPERATOR: Letter = { type: 'cancel', reason: 'cancelled at the engine' };
/** The maximum size of a step's body and of its outcome. */
const MAX_BYTES = 4_000_000;
/** The maximum length of entry names in Restate's web interface. */
const MAX_NAME_CHARS = 200;
const SHOWN = 'shown';

const runsOptions = z.strictObject({
  ingress: ingressAddress,
  admin: ingressAddress.optional(),
  service: serviceName.optional(),
  headers: headersSchema.optional(),
} satisfies ChecksOf<RestateRunsOptions>);
const workflowOptions = z.strictObject({
  restate: sdkSchema('workflow'),
  handler: anObject('a handler such as that of runWorker({ … })', 'turn', 'step'),
  service: serviceName.optional(),
  keepMs: z.number().int().min(1).optional(),
  longestMs: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateRunWorkflowOptions>);

const overSchema: z.ZodType<Over> = z.object({ isOver: z.literal(true) });
const nextSchema = z.union([overSchema, runViewSchema]);
const begunSchema = z.looseObject({ invocationId: z.string() });
const takenSchema = z.boolean();

/**
 * Returns the engine that stores runs on Restate, for `runSubagent(…, { id, engine })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function restateRuns(options: RestateRunsOptions): RunEngine {
  check('restateRuns(options)', runsOptions, options);
  const { service = SERVICE } = options;
  const ingress = new RestateIngress(options.ingress, options.headers);
  const admin =
    options.admin === undefined ? null : new RestateAdmin(options.admin, options.headers);
  const ask = async <Schema extends z.ZodType>(
    id: string,
    handler: string,
    schema: Schema,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<z.output<Schema>> => {
    const key = encodeURIComponent(await engineKeyOf(id, MAX_KEY_CHARS));
    const asked = { body, ...(signal ? { signal } : {}) };
    return ingress.ask(`/${service}/${key}/${handler}`, schema, asked);
  };
  const outcomes = new Map<string, Promise<RunView>>();
  /** Resolves with the last view once the run has ended. All callers that wait for a run share one request. */
  const outcomeOf = (id: string, signal: AbortSignal): Promise<RunView> => {
    const known = outcomes.get(id);
    if (known) return known;
    const attach = async (): Promise<RunView> => {
      const key = encodeURIComponent(await engineKeyOf(id, MAX_KEY_CHARS));
      const path = `/restate/workflow/${service}/${key}/attach`;
      return patient(() => ingress.ask(path, runViewSchema, { method: 'GET', signal }));
    };
    const outcome = attach();
    outcomes.set(id, outcome);
    const settled = (): boolean => outcomes.delete(id);
    outcome.then(settled, settled);
    return outcome;
  };
  return {
    name: 'restate',
    async start(order) {
      // Restate answers a repeated request with the result of the first one.
      await ask(order.id, 'run/send', begunSchema, order);
    },
    async view(id, after, signal) {
      const over = outcomeOf(id, signal);
      // A child may not have started yet. If so, its next view reports the end.
      const isOver = over.catch(() => new Promise<never>(() => {}));
      const rest = new AbortController();
      const abort = (): void => rest.abort(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      let isLeft = false;
      try {
        const next = patient(
          () => ask(id, 'view', nextSchema, after, rest.signal),
          () => isLeft,
        );
        // oxlint-disable-next-line eslint/no-restricted-properties -- a reaction for each view of one run
        const view = await Promise.race([isOver, next]);
        if (!('isOver' in view)) return view;
        return await over.catch(() => outcomeOf(id, signal));
      } finally {
        // The request stays open until the workflow ends. Aborting the request would close the connection, which costs
        // Restate as much as the request itself.
        isLeft = true;
        signal.removeEventListener('abort', abort);
      }
    },
    answer: (id, answer) => ask(id, 'answer', takenSchema, answer),
    message: (id, message) => ask(id, 'message', messageTakenSchema, message),
    async cancel(id, reason) {
      await ask(id, 'cancel', takenSchema, reason);
    },
    ...(admin ? { forget: (id: string) => forgetRun(admin, service, id) } : {}),
  };
}

/** Repeats a request that has exceeded the platform's time limit, unless the request was abandoned. */
async function patient<T>(ask: () => Promise<T>, isLeft = (): boolean => false): Promise<T> {
  for (;;)
    try {
      return await ask();
    } catch (error) {
      if (isLeft() || !isSlow(error)) throw error;
    }
}

/** RUN-ENGINE-6. The run itself is deleted last, because its child runs are found through it. */
async function forgetRun(
  admin: RestateAdmin,
  service: string,
  id: string,
): Promise<readonly string[]> {
  const where = (column: string, values: readonly string[]): Promise<readonly Invocation[]> =>
    values.length === 0
      ? Promise.resolve([])
      : admin.invocations(service, `${column} in (${values.map(sqlText).join(', ')})`);
  const found: (readonly Invocation[])[] = [];
  const known = new Set<string>();
  let keys: readonly string[] = [await engineKeyOf(id, MAX_KEY_CHARS)];
  while (keys.length > 0) {
    for (const key of keys) known.add(key);
    const own = await where('target_service_key', keys);
    const underWay = own.find(({ handler, isOver }) => handler === 'run' && !isOver);
    if (underWay) throw runUnderWay(underWay.key ?? id);
    found.push(own);
    const ids = own.map((one) => one.id);
    const children = await where('invoked_by_id', ids);
    keys = [...new Set(children.flatMap(({ key }) => key ?? []))].filter((key) => !known.has(key));
  }
  for (const invocations of found.toReversed()) await admin.remove(invocations);
  const [, ...children] = known;
  // Child ids are short, so the keys need no digest.
  return [id, ...children.map((key) => decodeURIComponent(key))];
}

/**
 * Returns the workflow that runs in a worker, for `restate.serve({ services: [...] })`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function restateRunWorkflow<Workflow>(
  options: RestateRunWorkflowOptions<Workflow>,
): Workflow {
  check('restateRunWorkflow(options)', workflowOptions, options);
  const { restate, handler, service = SERVICE, keepMs = WEEK_MS, longestMs = HOUR_MS } = options;
  const underWay = new WorkUnderWay(handler);
  const passing = <Shared>(shared: Shared): Shared =>
    restate.handlers.workflow.shared({ journalRetention: 0 }, shared);
  const definition = {
    name: service,
    options: {
      explicitCancellation: true,
      workflowRetention: keepMs,
      inactivityTimeout: longestMs,
    },
    handlers: {
      run: (ctx: WorkflowContext, order: RunOrder): Promise<RunView> =>
        playRun(order, driverOf(ctx, restate, underWay, service)),
      view: passing(async (ctx: SharedContext, after: number): Promise<RunView | Over> => {
        const turn = (await ctx.get(SHOWN))?.turn ?? 0;
        return ctx.promise<RunView | Over>(`turn/${Math.max(turn, after + 1)}`).get();
      }),
      answer: passing(async (ctx: SharedContext, answer: RunAnswer): Promise<boolean> => {
        const isOpen = (await ctx.get(SHOWN))?.open.includes(answer.requestId);
        return isOpen === true && settle(ctx.promise(`answer/${answer.requestId}`), answer);
      }),
      message: passing(async (ctx: SharedContext, message: RunMessage): Promise<MessageTaken> =>
        post(ctx, { type: 'message', message }),
      ),
      cancel: passing(async (ctx: SharedContext, reason: string): Promise<boolean> => {
        const posted = await post(ctx, { type: 'cancel', reason });
        return 'nth' in posted;
      }),
    },
  };
  return restate.workflow(definition);
}

/** RESTATE-RUNS-4 */
async function post(ctx: SharedContext, letter: Letter): Promise<MessageTaken> {
  const { turn = 0, letters = 0, unread = {} } = (await ctx.get(SHOWN)) ?? {};
  // If the first view of a run is also its last, the run never had any state.
  const newest = await ctx.promise<RunView | Over>(`turn/${Math.max(turn, 1)}`).peek();
  if (newest && 'isOver' in newest) return { refused: 'over' };
  const isMessage = letter.type === 'message';
  const known = isMessage ? new Map(Object.entries(unread)).get(letter.message.id) : undefined;
  if (known !== undefined) return { nth: known };
  const room = MAX_UNREAD_MESSAGES - Object.keys(unread).length;
  for (let at = letters; !isMessage || at < letters + room; at += 1) {
    const promise = letterOf(ctx, at);
    if (await settle(promise, letter)) return { nth: at + 1 };
    const other = await promise.get();
    const isSame = other.type === 'message' && isMessage && other.message.id === letter.message.id;
    if (isSame || (other.type === 'cancel' && !isMessage)) return { nth: at + 1 };
  }
  return { refused: 'full' };
}

function letterOf(ctx: SharedContext, at: number): KeptPromise<Letter> {
  return ctx.promise<Letter>(`letter/${at}`);
}

/** Resolves a workflow promise. Returns false if the promise had already been resolved. */
async function settle<T>(promise: KeptPromise<T>, value: T): Promise<boolean> {
  try {
    await promise.resolve(value);
    return true;
  } catch (error) {
    // Another value has been set first.
    if ((error as { readonly name?: string }).name === 'TerminalError') return false;
    throw error;
  }
}

function driverOf(
  ctx: WorkflowContext,
  { RestatePromise }: Pick<RestateWorkflowSdk, 'RestatePromise'>,
  underWay: WorkUnderWay,
  service: string,
): RunDriver {
  const workflow = { name: service };
  const ends = new Map<string, DurablePromise<RunNews>>();
  const stepEnds = new Map<string, DurablePromise<RunNews>>();
  let letters = 0;
  let letter = letterOf(ctx, letters).get();
  const cancellation = ctx.cancellation().map(() => BY_OPERATOR);
  const mail: TakenMessage[] = [];
  /** The ids of the unread messages, by number. */
  const unread = new Map<number, string>();
  let cancelled: string | null = null;
  /** Returns the unread messages of a view, and those that arrived after it. */
  const unreadIn = ({ messages: { last, unread: left } = NO_MESSAGES }: RunView) => {
    for (const nth of unread.keys()) if (nth <= last && !left.includes(nth)) unread.delete(nth);
    return Object.fromEntries([...unread].map(([nth, id]) => [id, nth]));
  };
  /** Reads a letter, then waits for the next one. */
  const open = (opened: Letter): void => {
    if (opened.type === 'cancel') {
      cancelled ??= opened.reason;
      return;
    }
    letters += 1;
    unread.set(letters, opened.message.id);
    mail.push({ ...opened.message, nth: letters });
    letter = letterOf(ctx, letters).get();
  };
  let orderId = '';
  let mark: string | undefined;
  return {
    messages: () => mail.splice(0),
    async turn(turn) {
      orderId = turn.order.id;
      const key = turnKey(turn);
      const end = ctx.run(nameOf(turn), () => underWay.turn(turn));
      const ended = end.map((turnEnd) => ({ type: 'end' as const, turnEnd }));
      while (cancelled === null) {
        const first = (await RestatePromise.race([ended, letter, cancellation])) as
          | Letter
          | { readonly type: 'end'; readonly turnEnd: RunTurnEnd };
        if (first.type === 'end') {
          ({ mark } = first.turnEnd);
          return first.turnEnd;
        }
        open(first);
        if (first.type === 'message' && first.message.mode === 'interrupt') {
          underWay.breakOff(key);
          return null;
        }
      }
      underWay.cancel(key, cancelled);
      const last = await end;
      ({ mark } = last);
      return last;
    },
    show(view) {
      const requests = view.waiting.map(({ requestId }) => requestId);
      // The last view contains no open requests. A run without any further view has no state to correct.
      if (view.outcome === null || view.turn > 1)
        ctx.set(SHOWN, {
          turn: view.turn,
          open: requests,
          ...(letters > 0 ? { letters, unread: unreadIn(view) } : {}),
        });
      // Only this call resolves the promise: Restate records it before anything that follows.
      const shown = view.outcome === null ? view : { isOver: true as const };
      void ctx.promise<RunView | Over>(`turn/${view.turn}`).resolve(shown);
    },
    // Child ids are short, so their keys need no digest.
    begin({ order }) {
      const { id } = order;
      const end = ctx.workflowClient(workflow, encodeURIComponent(id)).run(order);
      ends.set(
        id,
        end.map((view) => ({ type: 'child', id, outcome: view?.outcome ?? null })),
      );
    },
    stop(childId, reason) {
      ctx.workflowSendClient(workflow, encodeURIComponent(childId)).cancel(reason);
    },
    beginStep(step) {
      const { key, name } = step;
      const permit = mark;
      const end = ctx.run(name.slice(0, MAX_NAME_CHARS), () =>
        underWay.step(orderId, step, permit),
      );
      stepEnds.set(
        key,
        end.map((ended = { lost: true }) => ({ type: 'ended', ends: [{ key, end: ended }] })),
      );
    },
    stopStep(key) {
      stepEnds.delete(key);
      underWay.cancel(stepKey(orderId, key), 'the run no longer waits for it');
    },
    async news(requestIds, dueInMs, childIds) {
      if (cancelled !== null) return { type: 'cancelled', reason: cancelled };
      const first: DurablePromise<RunNews | undefined>[] = requestIds.map((requestId) =>
        ctx
          .promise<RunAnswer>(`answer/${requestId}`)
          .get()
          .map((answer) => answer && { type: 'answered', answer }),
      );
      first.push(...childIds.flatMap((id) => ends.get(id) ?? []), ...stepEnds.values());
      if (dueInMs !== null) first.push(ctx.sleep(dueInMs).map(() => ({ type: 'due' })));
      const next = (await RestatePromise.race([...first, letter, cancellation])) as
        | RunNews
        | Letter;
      if (next.type === 'cancel' || next.type === 'message') {
        open(next);
        return cancelled === null ? { type: 'messages' } : { type: 'cancelled', reason: cancelled };
      }
      if (next.type === 'ended') for (const { key } of next.ends) stepEnds.delete(key);
      return next;
    },
  };
}

/** Returns the name of a turn for Restate's web interface, taken from the first step of the turn. */
function nameOf({ number, news }: RunTurn): string {
  const what = news.type === 'next' ? news.step.name : news.type;
  return `turn ${number}: ${what}`.slice(0, MAX_NAME_CHARS);
}

interface UnderWay<T> {
  readonly end: Promise<T>;
  readonly controller: AbortController;
}

/**
 * The maximum number of remembered permits, and of remembered cancels of unknown work. A permit that is not remembered
 * is refused.
 */
const MAX_REMEMBERED = 10_000;

const BREAK_OFF = new CancelledError('a message has broken it off');
/**
 * The outcome of a turn that a message interrupted. This outcome is discarded, because a `ctx.run` that fails would be
 * repeated.
 */
const BROKEN_OFF: RunTurnEnd = { at: 0, journal: [], waiting: [], wakeAt: null, outcome: null };

/** The turns and steps that run in this process. */
class WorkUnderWay {
  readonly #handler: RunHandler;
  readonly #turns = new Map<string, UnderWay<RunTurnEnd>>();
  readonly #steps = new Map<string, UnderWay<JobEnd>>();
  /**
   * Turns and steps that were stopped before they started in this process, with the reason (null if a message
   * interrupted the turn).
   */
  readonly #stopped = new Map<string, string | null>();
  /** RESTATE-RUNS-3. The permits, by the mark at the end of the turn and the key of the step. */
  readonly #permits = new Set<string>();

  constructor(handler: RunHandler) {
    this.#handler = handler;
  }

  turn(turn: RunTurn): Promise<RunTurnEnd> {
    return this.#join(this.#turns, turnKey(turn), async (signal, reason) => {
      if (reason === null) return BROKEN_OFF;
      const permitted = this.#permitted(turn);
      const news: RunNews = reason === undefined ? permitted : { type: 'cancelled', reason };
      let end: RunTurnEnd;
      try {
        end = stepsWithin(await this.#handler.turn({ ...turn, news }, signal), MAX_BYTES);
      } catch (error) {
        if (signal.aborted && signal.reason === BREAK_OFF) return BROKEN_OFF;
        throw error;
      }
      const { mark, missing, steps = [] } = end;
      if (missing)
        throw new JobError('JOBS_UNREACHABLE', `The turn needs ${missing}`, { retryable: true });
      for (const { key, once } of steps)
        if (once && !turn.underWay?.includes(key)) this.#permits.add(`${mark} ${key}`);
      forgetOldest(this.#permits, MAX_REMEMBERED);
      return end;
    });
  }

  step(
    orderId: string,
    { refused, ...wanted }: RunStep,
    mark: string | undefined,
  ): Promise<JobEnd> {
    const { key, once } = wanted;
    return this.#join(this.#steps, stepKey(orderId, key), async (signal, reason) => {
      if (refused) return { failed: refused };
      if (reason !== undefined) return cancelledEnd();
      if (once && !this.#permits.delete(`${mark} ${key}`)) return { lost: true };
      const job = { body: '', ...wanted };
      try {
        const does = (own: typeof job, stop: AbortSignal) => this.#handler.step(own, stop);
        // Another attempt may reach another worker, but a non-repeatable step must stay in this process.
        return endWithin(job, await doStep({ do: does }, job, signal), MAX_BYTES);
      } catch (error) {
        if (signal.aborted) return cancelledEnd();
        if (once) return { lost: true };
        throw error;
      }
    });
  }

  /** Cancels a turn or a step. */
  cancel(key: string, reason: string): void {
    this.#stop(key, reason);
  }

  /** Stops a turn that is replaced by another one, and ignores its outcome. */
  breakOff(key: string): void {
    this.#stop(key, null);
  }

  #stop(key: string, reason: string | null): void {
    const known = this.#turns.get(key) ?? this.#steps.get(key);
    const why =
      reason === null ? BREAK_OFF : new JobError('CANCELLED', reason, { retryable: false });
    if (known) known.controller.abort(why);
    else this.#stopped.set(key, reason);
    forgetOldest(this.#stopped, MAX_REMEMBERED);
  }

  /** RESTATE-RUNS-3 */
  #permitted({ news, mark }: RunTurn): RunNews {
    if (news.type !== 'next' || !news.step.once) return news;
    const { key } = news.step;
    if (this.#permits.delete(`${mark} ${key}`)) return news;
    return { type: 'ended', ends: [{ key, end: { lost: true } }] };
  }

  /** RESTATE-RUNS-2 */
  #join<T>(
    all: Map<string, UnderWay<T>>,
    key: string,
    work: (signal: AbortSignal, stopped: string | null | undefined) => Promise<T>,
  ): Promise<T> {
    const known = all.get(key);
    if (known) return known.end;
    const reason = this.#stopped.get(key);
    this.#stopped.delete(key);
    const controller = new AbortController();
    const end = work(controller.signal, reason);
    all.set(key, { end, controller });
    const over = (): boolean => all.delete(key);
    end.then(over, over);
    return end;
  }
}

function turnKey({ order, number }: RunTurn): string {
  return `${number}/${order.id}`;
}

function stepKey(orderId: string, key: string): string {
  return `step/${orderId}/${key}`;
}
