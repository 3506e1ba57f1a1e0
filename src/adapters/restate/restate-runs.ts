// Runs on Restate: a workflow for each run, whose key is the id of the run. It keeps the journal, and asks a worker for one
// turn after the other; answers and cancels are promises of the workflow.
//
// Owns:     at a worker, the turns that this process does.
// Does not: keep anything: Restate does.
//
// Invariants
//   RESTATE-RUNS-1. The handler asks Restate for the same things in the same order, whatever its process has done before.
//   RESTATE-RUNS-2. Another attempt at a turn in the same process joins the one that is under way.

import { z } from 'zod';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { engineKeyOf, JobError } from '../../actors/ports/jobs.ts';
import {
  runUnderWay,
  runViewSchema,
  type RunAnswer,
  type RunDriver,
  type RunEngine,
  type RunHandler,
  type RunNews,
  type RunOrder,
  type RunTurn,
  type RunTurnEnd,
  type RunView,
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

export interface RestateRunsOptions {
  /** The address of Restate's ingress, such as `http://127.0.0.1:8080`. */
  readonly ingress: string;
  /**
   * The address of Restate's admin API, such as `http://127.0.0.1:9070`: then `forget` deletes what Restate keeps of a run.
   * Let nobody else reach it. @defaultValue none: Restate deletes by itself, after `keepMs`
   */
  readonly admin?: string;
  /** The name of the workflow. @defaultValue 'offstage_runs' */
  readonly service?: string;
  /** Sent with every request, such as `{ authorization: 'Bearer …' }`. @defaultValue none */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RestateRunWorkflowOptions<Workflow = unknown> {
  /** The SDK: `import * as restate from '@restatedev/restate-sdk'`. */
  readonly restate: RestateWorkflowSdk<Workflow>;
  /** Does the turns: `runWorker({ … })`. */
  readonly handler: RunHandler;
  /** The name of the workflow. @defaultValue 'offstage_runs' */
  readonly service?: string;
  /** How long Restate keeps a run that has ended, in milliseconds. @defaultValue 604800000, a week */
  readonly keepMs?: number;
  /** The longest time that a turn may take, in milliseconds; then it is done again. @defaultValue 3600000, an hour */
  readonly longestMs?: number;
}

/** The part of `@restatedev/restate-sdk` that is used. */
export interface RestateWorkflowSdk<Workflow = unknown> {
  workflow(definition: object): Workflow;
  readonly handlers: {
    readonly workflow: { shared<Handler>(options: object, handler: Handler): Handler };
  };
  readonly RestatePromise: { race(promises: readonly unknown[]): PromiseLike<unknown> };
}

interface KeptPromise<T> {
  get(): DurablePromise<T>;
  peek(): Promise<T | undefined>;
  resolve(value: T): Promise<void>;
}

interface SharedContext {
  get(name: string): Promise<RunView | null>;
  promise<T>(name: string): KeptPromise<T>;
}

interface WorkflowContext extends SharedContext {
  set(name: string, value: RunView): void;
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
const BY_OPERATOR = 'cancelled at the engine';

const runsOptions = z.strictObject({
  ingress: ingressAddress,
  admin: ingressAddress.optional(),
  service: serviceName.optional(),
  headers: headersSchema.optional(),
} satisfies ChecksOf<RestateRunsOptions>);
const workflowOptions = z.strictObject({
  restate: sdkSchema('workflow'),
  handler: anObject('a handler such as that of runWorker({ … })', 'turn'),
  service: serviceName.optional(),
  keepMs: z.number().int().min(1).optional(),
  longestMs: z.number().int().min(1).optional(),
} satisfies ChecksOf<RestateRunWorkflowOptions>);

/**
 * Keeps runs on Restate: for `runSubagent(…, { id, engine })`.
 * @throws {ConfigurationError} for options that are unknown or wrong.
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
  return {
    name: 'restate',
    async start(order) {
      // Restate answers a second one with the first.
      await ask(order.id, 'run/send', z.looseObject({ invocationId: z.string() }), order);
    },
    async view(id, after, signal) {
      for (;;)
        try {
          return await ask(id, 'view', runViewSchema, after, signal);
        } catch (error) {
          if (!isSlow(error)) throw error;
        }
    },
    answer: (id, answer) => ask(id, 'answer', z.boolean(), answer),
    async cancel(id, reason) {
      await ask(id, 'cancel', z.boolean(), reason);
    },
    ...(admin ? { forget: (id: string) => forgetRun(admin, service, id) } : {}),
  };
}

/** RUN-ENGINE-6. The run itself goes last: as long as it is there, its child runs are found. */
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
  // Keys of children are short: none has a digest.
  return [id, ...children.map((key) => decodeURIComponent(key))];
}

/**
 * Returns the workflow of runs: for `restate.serve({ services: [...] })` at a worker.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function restateRunWorkflow<Workflow>(
  options: RestateRunWorkflowOptions<Workflow>,
): Workflow {
  check('restateRunWorkflow(options)', workflowOptions, options);
  const { restate, handler, service = SERVICE, keepMs = WEEK_MS, longestMs = HOUR_MS } = options;
  const turns = new Turns(handler);
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
      run: async (ctx: WorkflowContext, order: RunOrder): Promise<RunView> =>
        playRun(order, driverOf(ctx, restate, turns, service)),
      view: passing(async (ctx: SharedContext, after: number): Promise<RunView> => {
        const view = await ctx.get('view');
        if (view && view.turn > after) return view;
        return ctx.promise<RunView>(`turn/${after + 1}`).get();
      }),
      answer: passing(async (ctx: SharedContext, answer: RunAnswer): Promise<boolean> => {
        const view = await ctx.get('view');
        const isOpen = view?.waiting.some(({ requestId }) => requestId === answer.requestId);
        return isOpen === true && settle(ctx.promise(`answer/${answer.requestId}`), answer);
      }),
      cancel: passing(async (ctx: SharedContext, reason: string): Promise<boolean> =>
        settle(ctx.promise('cancel'), reason),
      ),
    },
  };
  return restate.workflow(definition);
}

/** Resolves a promise of the workflow. Returns false if it was resolved before. */
async function settle<T>(promise: KeptPromise<T>, value: T): Promise<boolean> {
  if ((await promise.peek()) !== undefined) return false;
  try {
    await promise.resolve(value);
    return true;
  } catch (error) {
    // Another one came first.
    if ((error as { readonly name?: string }).name === 'TerminalError') return false;
    throw error;
  }
}

function driverOf(
  ctx: WorkflowContext,
  { RestatePromise }: Pick<RestateWorkflowSdk, 'RestatePromise'>,
  turns: Turns,
  service: string,
): RunDriver {
  const workflow = { name: service };
  const ends = new Map<string, DurablePromise<RunNews>>();
  const cancels = (): DurablePromise<string>[] => [
    ctx
      .promise<string>('cancel')
      .get()
      .map((reason = '') => reason),
    ctx.cancellation().map(() => BY_OPERATOR),
  ];
  return {
    async turn(turn) {
      const end = ctx.run(`turn ${turn.number}`, () => turns.do(turn));
      const stops = cancels().map((stop) => stop.map((reason = '') => turns.cancel(turn, reason)));
      await RestatePromise.race([end, ...stops]);
      return end;
    },
    async show(view) {
      ctx.set('view', view);
      await ctx.promise<RunView>(`turn/${view.turn}`).resolve(view);
    },
    // Ids of children are short: their keys need no digest.
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
    async news(requestIds, dueInMs, childIds) {
      const first: DurablePromise<RunNews | undefined>[] = requestIds.map((requestId) =>
        ctx
          .promise<RunAnswer>(`answer/${requestId}`)
          .get()
          .map((answer) => answer && { type: 'answered', answer }),
      );
      first.push(...childIds.flatMap((id) => ends.get(id) ?? []));
      for (const stop of cancels())
        first.push(stop.map((reason = '') => ({ type: 'cancelled', reason })));
      if (dueInMs !== null) first.push(ctx.sleep(dueInMs).map(() => ({ type: 'due' })));
      return (await RestatePromise.race(first)) as RunNews;
    },
  };
}

/** The turns that this process does. */
class Turns {
  readonly #handler: RunHandler;
  readonly #underWay = new Map<
    string,
    { readonly end: Promise<RunTurnEnd>; readonly controller: AbortController }
  >();
  /** Cancelled before they were begun in this process, by the reason. */
  readonly #cancelled = new Map<string, string>();

  constructor(handler: RunHandler) {
    this.#handler = handler;
  }

  do(turn: RunTurn): Promise<RunTurnEnd> {
    const key = keyOf(turn);
    // RESTATE-RUNS-2
    const known = this.#underWay.get(key);
    if (known) return known.end;
    const reason = this.#cancelled.get(key);
    this.#cancelled.delete(key);
    const controller = new AbortController();
    const news: RunNews = reason === undefined ? turn.news : { type: 'cancelled', reason };
    const end = this.#handler.turn({ ...turn, news }, controller.signal);
    this.#underWay.set(key, { end, controller });
    const over = (): boolean => this.#underWay.delete(key);
    end.then(over, over);
    return end;
  }

  cancel(turn: RunTurn, reason: string): null {
    const known = this.#underWay.get(keyOf(turn));
    if (known) known.controller.abort(new JobError('CANCELLED', reason, { retryable: false }));
    else this.#cancelled.set(keyOf(turn), reason);
    return null;
  }
}

function keyOf({ order, number }: RunTurn): string {
  return `${number}/${order.id}`;
}
