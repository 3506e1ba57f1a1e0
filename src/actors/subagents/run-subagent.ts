// A subagent without a conversation. A program gives it a task and receives its outcome. The program also takes the
// place of the user. In all other respects, the subagent works as in a session.
//
// A run with an id outlives the process that started it. Starting a run with the same id resumes it from the last step,
// or resolves with the stored outcome. A run is a separate service with one subagent.
//
// Owns:     the promise of the outcome, the scope that the runs of a runtime share, and the ids of the runs in this
//           process.
// Does not: do the work of the subagent service (subagent-service.ts).
//
// Invariants
//   RUN-SUBAGENT-N-1. `result` resolves once, with the outcome, after the instance has been disposed. It never rejects.
//   RUN-SUBAGENT-KR-1. An id identifies one run across all processes. The journal keeps its outcome until the run is
//       deleted. If a different request has this id, the result is `lost` (`ID_REUSED`), and the existing run is not
//       affected.
//   RUN-SUBAGENT-2. If the journal is unreachable, a run with an id resolves as `lost` and does not store anything.

import { withoutUndefined } from '../../values/without-undefined.ts';
import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { aFunction, anObject, check, scopeName, type ChecksOf } from '../../values/checks.ts';
import { checkIsObject, readable, shown } from '../../values/plain-checks.ts';
import {
  CapacityError,
  ConfigurationError,
  isA,
  messageOf,
  OffstageError,
} from '../../values/errors.ts';
import { asJson } from '../../values/json.ts';
import { aModel } from '../model/model.ts';
import { SubagentTree } from './subagent-tree.ts';
import { handlerChecks, ProgramPorts, type ProgramHandlers } from './program-ports.ts';
import { THE_LEAD, type SendRequest } from '../contracts/service-types.ts';
import {
  outcomeChecks,
  splitOutcomeOptions,
  type OutcomeOptions,
} from '../../results/outcome-processor.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { journalOfPassing, type Runtime } from '../admission/runtime.ts';
import { defaultSessionLimits } from '../admission/limits.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentView } from '../contracts/session-views.ts';
import type { SubagentTask } from '../contracts/task.ts';
import { ownedService } from './subagent-service.ts';
import type { RunEngine } from '../ports/run-engine.ts';
import { engineRun, type RunMessageReceipt } from './engine-run.ts';
import { checkedBy } from '../contracts/identity.ts';
import { isForGood, JournalError } from '../ports/journal-error.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import { checkNeeds, checkToolNames } from '../subagent/define-subagent.ts';
import { idReused, lostBy, requestDigest, wholeTask } from './refusal.ts';
import { inTerminal, reporter } from '../../values/reporter.ts';
import { readTraceparent } from '../../values/traceparent.ts';

/** The task of a run. `toolName` names the task in the prompt. @defaultValue the subagent's name */
export type RunTask = Pick<SubagentTask, 'description'> & Partial<SubagentTask>;

export interface RunSubagentOptions extends ProgramHandlers, OutcomeOptions {
  /** The runtime that executes the run. */
  readonly runtime: Runtime;
  /**
   * The id of the run, which is unique in the journal. In another process or after a crash, the same id means the same
   * run: it resumes from its last step, or resolves with the stored outcome. With a different subagent or task, the
   * result is `lost` (`ID_REUSED`), and the existing run is not affected. `journal.forget(id)` deletes the run.
   * @defaultValue none: the run ends with the process
   */
  readonly id?: string;
  /**
   * The engine that stores the run under its `id` and resumes it: `restateRuns(…)`, `temporalRuns(…)`. A `runWorker`
   * executes the run's turns and finds the configuration by name. This process answers the run's questions, but the run
   * survives if the process dies. Cannot be combined with options that belong to the worker: `model`, `onProgress`,
   * `onStep`, `onCallInDoubt` and the options for outcomes. @defaultValue none: this process executes the run, and the
   * runtime's journal stores it
   */
  readonly engine?: RunEngine;
  /**
   * The user on whose behalf the run works. The program must have verified this identity, which tools receive as
   * `requester`.
   * @defaultValue none
   */
  readonly by?: string;
  /**
   * The W3C `traceparent` header of the caller's span. That span becomes the parent of this run's spans in
   * `tracedJournal`, or, with an `engine`, in `tracedHandler` at its workers. An invalid header is ignored.
   * @defaultValue none: a new trace
   */
  readonly traceparent?: string;
  /** The model for configurations that do not specify one. */
  readonly model?: LanguageModel;
  /** When this signal aborts, the run is cancelled with the signal's reason, as by `cancel`. @defaultValue none */
  readonly abortSignal?: AbortSignal;
  /** Receives errors that do not end the run, such as a model call that is retried or a hook that throws an error. */
  readonly onError?: (error: unknown, where: string) => void;
}

/** A run. `Output`: the type of the result (`outputSchema`). */
export interface SubagentRun<Output = unknown> {
  /** The id that was passed or, without one, the id of the subagent. */
  readonly id: string;
  /**
   * The outcome. Never rejects. With an `id`, the outcome is also `lost`, with the error's code, in two cases: the
   * journal is unreachable (the run can then be repeated), or another process has the run (`SCOPE_IN_USE`).
   */
  readonly result: Promise<Outcome<Output>>;
  /**
   * Sends the subagent a message from the program. Resolves when a model call reads the message, or when none will,
   * because the run has ended or already has 100 unread messages (25 on an engine). A message repeated with the same
   * `idempotencyKey`, even by another process, is read only once.
   * @throws {ConfigurationError} if the message is not a string of 1 to 100,000 characters, or an option is unknown or
   *   invalid. The promise does not reject for any other reason.
   */
  send(content: string, options?: RunMessageOptions): Promise<RunMessageReceipt>;
  /** Cancels the run, unless it has ended. */
  cancel(reason?: string): void;
}

export type { RunMessageReceipt } from './engine-run.ts';

/** The options for sending a message to a run. */
export interface RunMessageOptions extends Pick<SendRequest, 'mode' | 'idempotencyKey'> {
  /** The identity of the message's author. The program must have verified it. @defaultValue none */
  readonly by?: string;
}

/**
 * Starts a subagent for a program, outside any conversation. Its requests (`request_input`) go to `onInput`. Without
 * this handler, they are not answered. An instance with `lifetime: 'session'` exists as long as its run. Without an
 * `id`, the run is not stored in a durable journal.
 * @throws {ConfigurationError} if the configuration is unusable, or if the task does not have its declared inputs.
 * @throws {CapacityError} if the runtime has 100,000 runs that have not ended.
 */
export function runSubagent(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions,
): SubagentRun {
  checkRun('runSubagent', config, options);
  check('runSubagent(…, task)', taskSchema, task);
  const { abortSignal, ...others } = options;
  const { run } = startRun(config, task, others);
  if (abortSignal) cancelWith(abortSignal, run);
  return run;
}

/** A run in the process that executes it. */
export interface StartedRun {
  readonly run: SubagentRun;
  /**
   * Suspends the run, so that a run with the same id can resume it from the journal. Without an id, does nothing and
   * returns false.
   */
  leave(): boolean;
  /** The digest of the run's request. @defaultValue none if the run has no id, or an engine stores it */
  readonly digest?: string;
}

function cancelWith(signal: AbortSignal, run: SubagentRun): void {
  const cancel = (): void => run.cancel(messageOf(signal.reason));
  if (signal.aborted) return cancel();
  signal.addEventListener('abort', cancel, { once: true });
  void run.result.then(() => signal.removeEventListener('abort', cancel));
}

/**
 * Starts a run whose arguments have been validated. `changed` receives the view of a subagent whenever it changes.
 * @throws as `runSubagent`.
 */
export function startRun(
  config: SubagentConfig,
  task: RunTask | string,
  options: RunSubagentOptions,
  changed?: (view: SubagentView) => void,
): StartedRun {
  const { runtime, model, onError, id: keptAs, by, engine, traceparent, ...rest } = options;
  const own: SubagentConfig =
    config.lifetime === 'session' ? { ...config, lifetime: 'ephemeral' } : config;
  const wanted = wholeTask(config.name, task);
  const leave = (): boolean => false;
  if (engine) return { run: onEngine(engine, own, wanted, options), leave };
  if (keptAs !== undefined) return keptRun(keptAs, own, wanted, options, changed);
  const { jobs, price } = runtime;
  checkNeeds(own.name, own, { model, jobs, price });
  checkToolNames(own.name, own);
  const [outcomes, handlers] = splitOutcomeOptions(rest);
  // An actor's run gets its own scope, so that the scope contains only the actor's subagents.
  const { tree, host } = changed ? openScope(runtime) : scopeOf(runtime);
  const { promise: result, resolve } = Promise.withResolvers<Outcome>();
  const ports = new ProgramPorts({
    host: onError ? { ...host, report: reporter(onError) } : host,
    model,
    handlers,
    outcomes,
    answersBySend: false,
    tree: () => tree,
    onNews(news) {
      if (news.type === 'changed') changed?.(news.view);
      if (news.type !== 'ended' || news.view.parentId !== null) return;
      tree.delivered(news.view.id);
      if (changed) runtime.supervisor.close(tree.id);
      void news.disposed.then(() => resolve(news.outcome));
    },
  });
  const request = { config: own, task: wanted, caller: THE_LEAD, by, traceparent };
  const receipt = tree.spawnFor(ports, request);
  if (receipt.status === 'rejected') {
    const { code, message } = receipt.error;
    throw code === 'INVALID_INPUT'
      ? new ConfigurationError(code, message)
      : new CapacityError(code, message);
  }
  const id = receipt.subagentId;
  const run: SubagentRun = {
    id,
    result,
    async send(content, sent = {}) {
      checkMessage(content, sent);
      return sendTo(tree, id, content, sent);
    },
    cancel(reason = 'cancelled') {
      tree.cancel(id, THE_LEAD, reason);
    },
  };
  return { run, leave };
}

const EXAMPLE = "runSubagent({ name, instructions }, 'Do it', { model: openai('gpt-5.4') })";

const optionsSchema = z.strictObject({
  ...handlerChecks,
  ...outcomeChecks,
  runtime: anObject('a runtime: createRuntime(…)'),
  id: z.string().min(1).optional(),
  engine: anObject(
    'an engine such as restateRuns({ … })',
    'start',
    'view',
    'answer',
    'cancel',
  ).optional(),
  model: aModel.optional(),
  abortSignal: z.instanceof(AbortSignal).optional(),
  onError: aFunction.optional(),
  // `startRun` checks it.
  by: z.unknown().optional(),
  traceparent: z.string().optional(),
} satisfies ChecksOf<RunSubagentOptions>);

export const taskSchema = z.union(
  [
    z.string(),
    z.strictObject({
      description: z.string(),
      toolName: z.string().optional(),
      args: z
        .record(z.string(), z.unknown())
        .refine((args) => asJson(args).ok, {
          error: 'expected arguments that are JSON, nested no deeper than 200 levels',
        })
        .optional(),
    } satisfies ChecksOf<SubagentTask>),
  ],
  { error: 'expected words, or { description, args } of JSON' },
);

/** @throws {ConfigurationError} if an option is unknown or invalid. */
export function checkRun(where: string, config: SubagentConfig, options: RunSubagentOptions): void {
  checkIsObject(`${where}(config)`, config, EXAMPLE);
  readable(`${where}(config)`, config);
  checkIsObject(`${where}(…, options)`, options, EXAMPLE);
  check(`${where}(…, options)`, optionsSchema, options);
}

const MAX_MESSAGE_CHARS = 100_000;
const messageOptions = z.strictObject({
  mode: z.enum(['queue', 'steer', 'interrupt']).optional(),
  idempotencyKey: z.string().min(1).max(200).optional(),
  // `checkMessage` checks it.
  by: z.unknown().optional(),
} satisfies ChecksOf<RunMessageOptions>);

/** @throws {ConfigurationError} */
export function checkMessage(content: string, options: RunMessageOptions): void {
  check('run.send(content)', z.string().min(1).max(MAX_MESSAGE_CHARS), content);
  check('run.send(content, options)', messageOptions, options);
  checkedBy('run.send(content, options)', { by: options.by });
}

/** Sends a message to a run's subagent. */
async function sendTo(
  service: Pick<SubagentTree, 'send'>,
  subagentId: string,
  content: string,
  { by, ...options }: RunMessageOptions,
): Promise<RunMessageReceipt> {
  const who = by === undefined ? {} : { by };
  const sent = service.send(subagentId, { content, ...options }, THE_LEAD, who);
  if (!sent.ok) return { applied: false, reason: sent.error.message };
  const receipt = await sent.receipt;
  return receipt.applied ? { applied: true } : receipt;
}

interface Scope {
  readonly tree: SubagentTree;
  readonly host: Host;
}

const scopes = new WeakMap<Runtime, Scope>();

/** Returns the scope in which a runtime's runs share limits but cannot see each other. */
function scopeOf(runtime: Runtime): Scope {
  const scope = scopes.get(runtime) ?? openScope(runtime);
  scopes.set(runtime, scope);
  return scope;
}

function openScope(runtime: Runtime): Scope {
  const { environment, jobs, price, inspect, supervisor, onUnfoldable } = runtime;
  const id = environment.ids.next('runs');
  const journal = journalOfPassing(runtime);
  const host = createHost({ environment, journal, jobs, price, inspect, onUnfoldable });
  const limits = {
    ...defaultSessionLimits,
    maxConcurrentPerSession: Number.MAX_SAFE_INTEGER,
    maxLivePerSession: 100_000,
    maxTotalPerSession: Number.MAX_SAFE_INTEGER,
    // The result is not kept, because the caller of the run already has it.
    stateRetentionMs: 0,
  };
  const noProgram = new ProgramPorts({
    host,
    model: undefined,
    handlers: {},
    answersBySend: false,
    tree: () => null,
  });
  const tree = new SubagentTree({ id, supervisor, limits, ports: noProgram });
  supervisor.open(id, limits);
  return { tree, host };
}

/** The options of a run on an engine. */
const WITH_ENGINE = new Set([
  'runtime',
  'engine',
  'id',
  'by',
  'traceparent',
  'onQuestion',
  'onInput',
  'onError',
]);

/** @throws {ConfigurationError} for a run without an id, and for options that only the run's worker could apply. */
function onEngine(
  engine: RunEngine,
  config: SubagentConfig,
  { description, toolName, args }: SubagentTask,
  options: RunSubagentOptions,
): SubagentRun {
  const { id, by, runtime, onQuestion, onInput, onError } = options;
  const traceparent = readTraceparent(options.traceparent);
  const other = Object.entries(options).find(
    ([name, value]) => value !== undefined && !WITH_ENGINE.has(name),
  );
  if (other)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `runSubagent(…, options).${other[0]}: expected none beside \`engine\`, whose worker has it, got ${shown(other[1])}`,
    );
  const where = 'runSubagent(…, options)';
  const runId = check(`${where}.id`, scopeName, id);
  const who = checkedBy(where, { by });
  const { name } = checkSubagentConfig(config, config.name);
  const { environment } = runtime;
  const order = {
    id: runId,
    config: name,
    task: { description, toolName, args },
    digest: requestDigest(name, { description, toolName, args }),
    by: who,
    trace: traceparent === undefined ? undefined : { traceparent },
  };
  const run = engineRun(withoutUndefined(order), {
    engine,
    environment,
    onError,
    onQuestion,
    onInput,
  });
  return {
    ...run,
    async send(content, sent = {}) {
      checkMessage(content, sent);
      const { mode = 'steer', idempotencyKey = environment.ids.next('msg'), by: sender } = sent;
      const message = { id: idempotencyKey, content, mode };
      return run.send(sender === undefined ? message : { ...message, by: sender });
    },
  };
}

const UNBEGUN = { applied: false, reason: 'The run did not begin' } as const;

const running = new WeakMap<Runtime, Map<string, StartedRun>>();

/** Returns this process's run with this id. Null if there is none or its request has a different digest. */
export function runUnder(runtime: Runtime, id: string, digest: string): SubagentRun | null {
  const known = running.get(runtime)?.get(id);
  return known?.digest === digest ? known.run : null;
}

/**
 * @throws {ConfigurationError} if the configuration is unusable or another scope uses the id.
 */
function keptRun(
  id: string,
  config: SubagentConfig,
  task: SubagentTask,
  options: RunSubagentOptions,
  changed: ((view: SubagentView) => void) | undefined,
): StartedRun {
  const { runtime } = options;
  const runs = running.get(runtime) ?? new Map<string, StartedRun>();
  running.set(runtime, runs);
  const known = runs.get(id);
  const digest = requestDigest(config.name, task);
  if (known?.digest === digest) return known;
  if (known) {
    const result = Promise.resolve(lostBy(idReused(id)));
    const run = { id, result, send: () => Promise.resolve(UNBEGUN), cancel: () => {} };
    return { run, leave: () => true };
  }
  checkSubagentConfig(config, config.name);
  const { onInput = () => null, onError, by, traceparent, ...serviceOptions } = options;
  const { promise: settled, resolve: settle } = Promise.withResolvers<Outcome>();
  const service = ownedService(
    {
      ...serviceOptions,
      id,
      configs: { [config.name]: config },
      // Without this handler, the request is not answered.
      onInput,
      onError: (error, where) => {
        // The run continues in another process, or not at all. Settled before the handler is called, because the
        // handler may throw.
        if (isA(error, JournalError) && isForGood(error)) settle(lostBy(error));
        (onError ?? inTerminal)(error, where);
      },
    },
    { onNews: (news) => news.type === 'changed' && changed?.(news.view) },
    digest,
  );
  const ended = new Promise<Outcome>((resolve) => {
    service.events.subscribe((chunk) => {
      if (chunk.type === 'ended' && chunk.parentId === null) resolve(chunk.outcome);
    });
  });
  /** The id of the run's subagent, or null if no subagent was started. */
  const spawned = Promise.withResolvers<string | null>();
  let cancelled: string | null = null;
  const cancel = (): void => {
    if (cancelled === null) return;
    for (const { id: subagentId, parentId } of service.list(THE_LEAD))
      if (parentId === null) service.cancel(subagentId, THE_LEAD, cancelled);
  };
  const lived = async (): Promise<Outcome> => {
    await service.recover();
    const request = { config, task, caller: THE_LEAD, idempotencyKey: id, by, traceparent };
    const receipt = service.spawn(request);
    if (receipt.status === 'rejected') {
      const { code, message } = receipt.error;
      throw new OffstageError(code, message);
    }
    // A recovery does not report changes, so the views of restored subagents are reported here.
    if (changed) for (const view of service.views) changed(view);
    cancel();
    spawned.resolve(receipt.subagentId);
    const all = service.list(THE_LEAD, { includeEnded: true });
    const own = all.find((report) => report.id === receipt.subagentId);
    if (own?.outcome) return own.outcome;
    const outcome = await ended;
    await new Promise<void>((resolve) => service.whenEnded(resolve));
    return outcome;
  };
  void lived()
    .catch(lostBy)
    .then((outcome) => {
      settle(outcome);
      spawned.resolve(null);
    });
  const result = settled.then(async (outcome) => {
    // The journal keeps the outcome for later runs with this id.
    await service.suspend();
    runs.delete(id);
    return outcome;
  });
  const run: SubagentRun = {
    id,
    result,
    async send(content, sent = {}) {
      checkMessage(content, sent);
      const subagentId = await spawned.promise;
      if (subagentId !== null) return sendTo(service, subagentId, content, sent);
      return UNBEGUN;
    },
    cancel(reason = 'cancelled') {
      cancelled ??= reason;
      cancel();
    },
  };
  const leave = (): boolean => {
    settle(lostBy(new OffstageError('SUSPENDED', 'The process has left the run to its journal')));
    return true;
  };
  const started = { run, leave, digest };
  runs.set(id, started);
  return started;
}
