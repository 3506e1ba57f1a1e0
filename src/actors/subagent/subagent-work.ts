// The current activity of a subagent: it prepares, calls its model, or runs tools. One activity runs at a time. It
// reports its events, unless it was stopped.
//
// Owns:     the current activity, its AbortController, the configuration's instance and its executor; the retries of a
//           model call, and its cost for the budget.
// Does not: decide on the next action (the machine does), store results (the log does), or know who runs a step (the
//           executor does).
//
// Invariants
//   SUBAGENT-WORK-1. A stopped activity does not report anything more.
//   SUBAGENT-WORK-2. The instance's `dispose` runs once, after the activity has stopped, even if the instance was still
//       being created at that time.
//   SUBAGENT-WORK-3. After a crash, a call whose outcome is unknown is repeated, with the same key, only if its tool
//       permits repetition. Any other such call is settled as a call that the app must reconcile.

import type { JSONValue } from 'ai';
import { clip } from '../../values/clip.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { codeOf, isA, messageOf, ProviderError } from '../../values/errors.ts';
import { backoffMs, type StepCall } from '../../machines/index.ts';
import type { ModelStepInput, ToolCallsInput } from '../../machines/subagent-setup.ts';
import type { Budget } from '../admission/budget.ts';
import type { Usage } from '../contracts/usage.ts';
import type { PreparedBefore, SubagentNews, SubagentPorts } from './subagent-ports.ts';
import type { StreamedChunk } from '../contracts/task.ts';
import { AUTHORS_DENIAL, INHERITED_DENIAL } from '../model/approval.ts';
import { isIdempotent as isIdempotentTool } from '../model/tools.ts';
import type { ClientTool } from '../contracts/records.ts';
import { withCaller, type Caller } from '../model/caller.ts';
import {
  failure,
  unusable,
  modelError,
  toStepError,
  type ModelCall,
  type ModelResponse,
} from '../model/model-step.ts';
import { costOf, countedUsage, estimateTokens, namesOf } from '../model/price.ts';
import type { AgentLoop } from '../contracts/agent-loop.ts';
import { checkOutput } from '../model/output.ts';
import type { KeepLarge } from '../model/tool-run.ts';
import { inSpanOf, type Host } from '../runtime/host.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import {
  changedCall,
  changeSince,
  judgedCall,
  mayHaveBegun,
  questionChange,
  withdrawnCall,
  type ChangedCall,
  type Judging,
} from './call-judgement.ts';
import { completionToolIn, leftAtWork, notHandedInNote } from './child-toolset.ts';
import {
  isMaker,
  modelExecutor,
  StepFailure,
  type Acting,
  type Executor,
  type ExecutorRun,
  type PreparedStep,
  type StepLoop,
  type Thinking,
  type Worker,
} from './executor.ts';
import {
  modelAsked,
  releaseInstance,
  toolsOf,
  type Instance,
  type PreparedInstance,
} from './instance.ts';
import type { Note } from '../notes/note.ts';
import type { Jobs } from '../ports/jobs.ts';
import type { TracedWork } from '../ports/journal.ts';
import type { Relay } from '../ports/relay.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';
import type { Delta } from '../model/model.ts';
import {
  endOf,
  inDoubtMessage,
  progressIn,
  toolDenied,
  toolError,
  type ToolOutcome,
} from '../model/tool-results.ts';

interface Activity {
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  /** The number of the model step, or 0 during preparation. */
  readonly step: number;
  /** The number of events that the activity has not reported yet. */
  expected: number;
  /**
   * For each running call, by its id, a function that reports the call as in doubt. A call that is aborted may already
   * have had an effect.
   */
  readonly underWay: Map<string, () => void>;
}

/** A model call, which may be attempted several times. */
interface Attempted extends PreparedStep {
  readonly activity: Activity;
  /** Whether the model is forbidden to call tools, so that its answer ends the run. */
  readonly final: boolean;
  /** The budget that pays for the calls, or null if there is no limit. */
  readonly budget: Budget | null;
}

const CUT_OFF = 'The budget is used up: its last tokens were not enough for the answer';
const COST_UNKNOWN = 'The budget is used up: the cost of a call is not known';
const MAX_PROGRESS_CHARS = 200;

/** Returns a call's idempotency key, which is the same for every attempt, including attempts by a later process. */
const keyOf = ({ id }: Worker, step: number, callId: string): string => `${id}:${step}:${callId}`;

export class SubagentWork {
  /** The progress that running tools have reported, or null if none has. */
  progress: string | null = null;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  readonly #worker: Worker;
  #instance: Instance | null = null;
  #executor: Executor | null = null;
  #preparing: Promise<void> | null = null;
  /**
   * Aborts the check of a call that the user changed; null if no check is running. The check may have to create an
   * instance.
   */
  #checking: AbortController | null = null;
  #activity: Activity | null = null;
  #reportsProgress = false;
  /** Whether the subagent was restored, so that its instance is created again when it is needed. */
  #isRestored = false;
  /**
   * The calls that were running when the earlier process ended; null once work has resumed or the calls have been
   * reported.
   */
  #inDoubt: { readonly step: number; readonly calls: readonly ModelCall[] } | null = null;
  /** Whether another process, possibly with different code, judged the step's calls. */
  #isJudgedElsewhere = false;
  /** Whether another process will continue the work. */
  #isLeft = false;

  constructor(host: Host, ports: SubagentPorts, worker: Worker) {
    this.#host = host;
    this.#ports = ports;
    this.#worker = worker;
  }

  /** The instance's tools as their author defined them; empty until there is an instance. */
  get tools(): Readonly<Record<string, unknown>> {
    if (this.#instance) return this.#instance.definition.tools;
    return this.#isRestored ? this.#worker.definition.tools : {};
  }

  /** Whether no activity is running. */
  get isIdle(): boolean {
    return this.#activity === null;
  }

  /** The number of events that the activity has not reported yet. */
  get owes(): number {
    return this.#activity?.expected ?? 0;
  }

  /** Marks the subagent as restored. `inDoubt`: the calls that were running when the earlier process ended. */
  restored(inDoubt: ToolCallsInput | null = null): void {
    this.#isRestored = true;
    if (inDoubt) {
      const { log } = this.#worker;
      const calls = inDoubt.callIds.flatMap((callId) => log.call(callId) ?? []);
      this.#inDoubt = calls.length > 0 ? { step: inDoubt.step, calls } : null;
    }
    this.#isJudgedElsewhere = true;
  }

  /**
   * Withdraws a question that another process asked, if the current code would ask it differently (CALL-JUDGEMENT-2).
   */
  async recheckQuestion(): Promise<void> {
    const worker = this.#worker;
    const open = worker.openQuestion;
    const call = open && worker.log.call(open.callId);
    if (!call) return;
    const { signal } = new AbortController();
    const change = await questionChange(this.#judgingOf(signal, worker.definition), call);
    if (change === null) return;
    // The earlier code may still be running at a worker.
    this.#lacks(`${call.toolName} for ${worker.definition.name}: ${change}`);
    this.#questionWithdrawn(call.callId, `withdrawn: ${change}`, change);
  }

  /**
   * Returns the open approval's call, with the changed arguments.
   * @throws {ConfigurationError} `INVALID_INPUT`, {OffstageError} if the instance cannot be created (rejects).
   */
  async changedCall(call: ModelCall, given: unknown): Promise<ChangedCall> {
    const { definition, log } = this.#worker;
    const { signal } = (this.#checking ??= new AbortController());
    await this.#preparing;
    if (definition.createInstance && !this.#instance) {
      const made = Promise.withResolvers<unknown>();
      this.#making(signal, { marks: log.marks }, made.resolve, made.reject);
      await raceAbort(made.promise, signal);
    }
    const judging = this.#judgingOf(signal, this.#instance?.definition ?? definition);
    const tools = definition.relay ? null : (this.#instance?.tools ?? judging.tools);
    return changedCall({ ...judging, tools }, call, given);
  }

  /** Starts an activity that the machine has requested. */
  begin(name: string, input: unknown): void {
    const controller = new AbortController();
    const { step = 0, callIds } = input as Partial<ToolCallsInput>;
    const { signal } = controller;
    const expected = callIds?.length ?? 1;
    const underWay: Activity['underWay'] = new Map();
    const activity: Activity = { controller, signal, step, expected, underWay };
    this.#activity = activity;
    if (name === 'prepare') {
      this.#prepare(activity);
      return;
    }
    const begin = (instance: Instance): void => {
      if (name === 'modelStep') this.#think(activity, instance, input as ModelStepInput);
      else this.#act(activity, instance, input as ToolCallsInput);
    };
    const fail = (error: unknown): void => {
      const message = messageOf(error);
      if (name === 'modelStep') {
        const failed = failure('PREPARATION_FAILED', message, false);
        this.#report(activity, { type: 'model.failed', step, error: failed });
      }
      for (const callId of callIds ?? [])
        this.#settle(activity, callId, toolError(message, 'FAILED'));
    };
    if (this.#instance) begin(this.#instance);
    // The log already contains the first messages.
    else if (this.#preparing)
      void this.#preparing.then(() => this.#beginRestored(signal, begin, fail));
    else if (this.#isRestored) this.#beginRestored(signal, begin, fail);
    else fail('not prepared');
  }

  #beginRestored(
    signal: AbortSignal,
    begin: (instance: Instance) => void,
    fail: (error: unknown) => void,
  ): void {
    const made = (): void => {
      if (this.#instance) begin(this.#instance);
    };
    if (this.#instance) made();
    else this.#making(signal, { marks: this.#worker.log.marks }, made, fail);
  }

  /**
   * Stops the activity. An activity that has reported all its events is over and need not be aborted. `reason` is
   * called only if needed, because creating an error costs a stack trace and most activities have nothing to abort.
   * `suspended`: another process will continue the work, so the jobs keep running.
   */
  stop(reason: () => Error, why: 'ended' | 'suspended' = 'ended'): void {
    const activity = this.#activity;
    this.#activity = null;
    if (!this.#reportsProgress) this.progress = null;
    this.#checking?.abort(reason());
    this.#checking = null;
    if (why === 'ended') this.#leaveInDoubt();
    if (!activity || activity.expected === 0) return;
    this.#isLeft = why === 'suspended';
    activity.controller.abort(reason());
    if (why === 'ended') for (const report of activity.underWay.values()) report();
  }

  /** Ends the relayed agent's current step early, so that the agent reads a message. */
  nudge(): void {
    this.#executor?.nudge?.();
  }

  /**
   * Releases the instance after the activity has stopped. Resolves when the instance is disposed, and never rejects.
   * `suspended`: another process will continue the work.
   */
  async release(why: 'ended' | 'suspended'): Promise<void> {
    // An earlier process may have acquired resources that only the executor can release.
    const isKnown = this.#executor !== null || (why === 'ended' && this.#isRestored);
    if (isKnown) await this.#does.release?.(why);
    if (!this.#instance) return this.#preparing ?? Promise.resolve();
    return releaseInstance(this.#host, this.#instance);
  }

  #traced(part?: TracedWork['part']): TracedWork {
    return { scope: this.#ports.path, unit: this.#worker.id, ...(part && { part }) };
  }

  /** Calls one of the app's functions inside the span of the current work. */
  #inSpan<T>(call: () => T, part?: TracedWork['part']): T {
    return inSpanOf(this.#host, this.#traced(part), call);
  }

  /** SUBAGENT-WORK-1 */
  #report(activity: Activity, event: SubagentUnitEvent): void {
    if (activity.signal.aborted) return;
    activity.expected -= 1;
    this.#worker.receive(event);
  }

  #settle(activity: Activity, callId: string, outcome: ToolOutcome, tookMs?: number): void {
    const { step } = activity;
    this.#report(activity, { type: 'tool.settled', step, callId, outcome, tookMs });
  }

  #prepare(activity: Activity): void {
    this.#making(
      activity.signal,
      undefined,
      ({ messages, notes }) =>
        this.#report(activity, { type: 'subagent.prepared', messages, marks: notes?.secret }),
      (error) => {
        const code = codeOf(error, 'PREPARATION_FAILED');
        const failed = failure(code, messageOf(error), false);
        this.#report(activity, { type: 'subagent.unprepared', error: failed });
      },
    );
  }

  /** Creates the instance and calls one of the callbacks, unless the signal aborts first. */
  #making(
    signal: AbortSignal,
    again: PreparedBefore | undefined,
    made: (prepared: PreparedInstance) => void,
    failed: (error: unknown) => void,
  ): void {
    const making = async (): Promise<void> => {
      try {
        const prepared = await this.#makeInstance(signal, again);
        if (prepared) made(prepared);
      } catch (error) {
        failed(error);
      } finally {
        this.#preparing = null;
      }
    };
    this.#preparing = making();
  }

  /**
   * Creates the instance. Returns null if the signal has aborted in the meantime and the instance has been released.
   */
  async #makeInstance(
    signal: AbortSignal,
    again: PreparedBefore | undefined,
  ): Promise<PreparedInstance | null> {
    const prepared = await this.#inSpan(() => this.#ports.prepare(this.#worker, signal, again));
    const { messages: _, notes: _none, ...instance } = prepared;
    if (signal.aborted) {
      await releaseInstance(this.#host, instance);
      return null;
    }
    const { tools = instance.tools } = (this.#executor = this.#executorOf(instance.definition));
    this.#instance = { ...instance, tools };
    return prepared;
  }

  get #does(): Executor {
    return (this.#executor ??= this.#executorOf(this.#worker.definition));
  }

  #executorOf(definition: SubagentDefinition): Executor {
    const worker = this.#worker;
    const run: ExecutorRun = {
      host: this.#host,
      worker,
      definition,
      path: `${this.#ports.path}/${worker.id}`,
      progressed: (text) => this.#progressed(text),
      withdrawn: (callId, reason) => this.#questionWithdrawn(callId, reason),
      alive: () => this.#tell({ type: 'alive' }),
      isLeft: () => this.#isLeft,
      traceOf: (part) => this.#host.journal.traceContextOf?.(this.#traced(part)) ?? null,
    };
    const { relay, agent } = definition;
    const model = modelExecutor(run);
    if (relay && isMaker<Relay>(relay.loop)) return relay.loop.make(run, relay, model);
    const { jobs } = this.#host;
    const executor = jobs && isMaker<Jobs>(jobs.steps) ? jobs.steps.make(run, jobs, model) : model;
    return agent && isMaker<AgentLoop>(agent.steps)
      ? agent.steps.make(run, agent, executor)
      : executor;
  }

  /** Withdraws an open question. The model reads `reason`, and the user hears `told`. */
  #questionWithdrawn(callId: string, reason: string, told?: string): void {
    const open = this.#worker.openQuestion;
    if (open?.callId !== callId) return;
    const { requestId } = open;
    this.#tell({ type: 'question.withdrawn', requestId, reason: told });
    this.#worker.receive({ type: 'question.withdrawn', requestId, reason });
  }

  /** Starts the model call in a later turn of the event loop, so that audio is served first. */
  #think(activity: Activity, instance: Instance, { final, last }: ModelStepInput): void {
    const { budget } = this.#ports.standingOf(this.#worker);
    const isLast = last && !final && instance.tools.modelTools !== undefined;
    const messages = this.#worker.log.prompt(isLast);
    const thinking = { activity, instance, messages, final, budget };
    const loop = this.#executor?.loop;
    this.#host.environment.scheduler.yieldThen(
      () => void (loop ? this.#attemptIn(loop, thinking) : this.#attempt(thinking, 1)),
    );
  }

  /** Lets the app's loop prepare the step, and then continues like `#attempt`. */
  async #attemptIn(loop: StepLoop, thinking: Attempted): Promise<void> {
    const { activity, instance } = thinking;
    const { signal, step } = activity;
    let prepared: PreparedStep;
    try {
      signal.throwIfAborted();
      prepared = await this.#inSpan(() => loop.prepare(instance, this.#worker.log, signal));
    } catch (error) {
      const { code, message } = toStepError(error);
      this.#report(activity, {
        type: 'model.failed',
        step,
        error: failure(code, message, false),
      });
      return;
    }
    await this.#attempt({ ...thinking, ...prepared }, 1);
  }

  async #attempt(thinking: Attempted, number: number): Promise<void> {
    const { activity, instance, messages, final, budget, call } = thinking;
    const { signal, step } = activity;
    const executor = this.#does;
    if (signal.aborted) return;
    const { isRemote = false } = executor;
    const instructions = instance.instructions();
    const { environment } = this.#host;
    // A relayed agent keeps its own conversation, so only its output is counted here.
    const read = isRemote ? { instructions: '', messages: [] } : { instructions, messages };
    const permit = permitFor({ budget, ...read, final });
    if (!permit.ok) {
      // The log contains this note only once its event is committed, and this call cannot wait until then.
      const told = [...messages, this.#worker.log.handIn];
      this.#exhausted(activity, permit.message);
      await this.#attempt({ ...thinking, messages: told, final: true }, 1);
      return;
    }
    const { maxOutputTokens } = permit;
    const stream = this.#streamOf(activity, instance);
    const said =
      stream &&
      (({ type, delta }: Delta) =>
        stream({ type: type === 'text' ? 'text_delta' : 'thinking', step, delta }));
    const beganAt = environment.clock.now();
    const tookMs = (): number => environment.clock.now() - beganAt;
    const about = { step, attempt: number, instructions, maxOutputTokens, said };
    const asked: Thinking = { ...about, instance, messages, final, call };
    try {
      const response = await this.#inSpan(
        () => executor.think(asked, signal),
        isRemote ? undefined : 'model',
      );
      const timed = isRemote ? response : { ...response, tookMs: tookMs() };
      const paid = this.#paid(thinking, permit, timed);
      // The answer was cut short by the budget and not by the model, so it is submitted as partial work.
      const isCut =
        !isRemote && response.finish === 'length' && maxOutputTokens !== undefined && !final;
      if (isCut) this.#exhausted(activity, CUT_OFF);
      await this.#inSpan(() => this.#digest(isCut ? { ...thinking, final: true } : thinking, paid));
    } catch (error) {
      permit.failed(signal.aborted, (usage) => this.#priceOf(instance, usage) ?? 0);
      if (signal.aborted) return;
      const classified = isA(error, StepFailure) ? error : toStepError(error);
      const { code, message, retryable, retryAfterMs = 0 } = classified;
      const { name, retry } = instance.definition;
      if (!retryable || number >= retry.maxAttempts) {
        const failed = failure(code, message, retryable);
        this.#report(activity, {
          type: 'model.failed',
          step,
          error: failed,
          model: modelAsked(instance),
          tookMs: tookMs(),
        });
        return;
      }
      this.#host.report(modelError(error), `model call ${number} of step ${step} of ${name}`);
      const limits = { baseDelayMs: retry.baseDelayMs, maxDelayMs: Infinity };
      const pauseMs = Math.max(backoffMs(limits, number, environment.random.next()), retryAfterMs);
      const cancel = environment.scheduler.schedule(
        () => void this.#attempt(thinking, number + 1),
        pauseMs,
      );
      signal.addEventListener('abort', cancel, { once: true });
      // Not sent with `#report`, because the activity still expects its answer.
      this.#worker.receive({
        type: 'model.retried',
        step,
        failed: number,
        attempts: retry.maxAttempts,
        retryAt: environment.clock.now() + pauseMs,
        error: failure(code, message, true),
        model: modelAsked(instance),
        tookMs: tookMs(),
      });
    }
  }

  /** Charges the usage of an answer, and returns the answer with its cost. */
  #paid(
    { activity, instance, budget, final }: Attempted,
    permit: Granted,
    response: ModelResponse,
  ): ModelResponse {
    if (!budget && !this.#host.price) return response;
    const usage = permit.counted(response);
    // A relayed agent may not report the cost of a step.
    if (this.#does.isRemote === true) {
      permit.settle(usage.totalTokens, usage.cost ?? 0);
      return response;
    }
    const cost = this.#priceOf(instance, usage);
    permit.settle(usage.totalTokens, cost ?? 0);
    if (cost !== null) return { ...response, usage: { ...response.usage, cost } };
    // The answer is used, but no other call is started.
    if (budget?.countsCost && !final && !activity.signal.aborted)
      this.#worker.receive({ type: 'budget.exhausted', graceful: true, message: COST_UNKNOWN });
    return response;
  }

  /** Returns the price of this usage, or null if the price is unknown. */
  #priceOf({ model, definition: { name } }: Instance, usage: Usage): number | null {
    const of = model === null ? { provider: 'unknown', modelId: name } : namesOf(model);
    return costOf(this.#host, { ...of, usage, name }) ?? null;
  }

  /** Reports that the budget refused a call, so the current step is the last one. */
  #exhausted({ signal, step }: Activity, message: string): void {
    if (signal.aborted) return;
    this.#worker.receive({ type: 'budget.exhausted', graceful: true, message, step });
  }

  /** Reports the answer as calls or as a result, or adds a message and lets the model answer again. */
  async #digest(thinking: Attempted, response: ModelResponse) {
    const { activity, instance, messages, final, violation } = thinking;
    const { signal, step } = activity;
    const type = 'model.responded';
    const report = (event: SubagentUnitEvent): void => this.#report(activity, event);
    if (final) {
      report({ type, step, calls: [], response: { ...response, calls: [] } });
      return;
    }
    const isHandIn = ({ toolName }: ModelCall): boolean =>
      instance.tools.execution.get(toolName)?.role === 'complete_task';
    if (violation && !response.calls.every(isHandIn)) {
      report({ type: 'model.failed', step, error: violation, response });
      return;
    }
    const isLast = step >= instance.definition.maxSteps;
    const left = isLast
      ? null
      : leftAtWork(this.#ports.standingOf(this.#worker).atWork, messages.at(-1));
    if (response.calls.length > 0 && response.finish !== 'length') {
      const calls: StepCall[] = [];
      const judged: ModelCall[] = [];
      this.#isJudgedElsewhere = false;
      for (const made of response.calls) {
        const call =
          left !== null && isHandIn(made)
            ? { ...made, invalid: { message: this.#worker.log.written(left, `again ${step}`) } }
            : made;
        const [kind, taken] = await judgedCall(this.#judging(activity, instance, messages), call);
        calls.push({ callId: call.callId, ...kind });
        judged.push(taken);
      }
      report({ type, step, calls, response: { ...response, calls: judged } });
      return;
    }
    // The agent's turn continues after it has read a message.
    if (this.#does.isRemote === true && response.finish === 'tool-calls') {
      report({ type, step, calls: [], again: true, response });
      return;
    }
    const unfit = unusable(response);
    if (unfit) {
      report({ type: 'model.failed', step, error: unfit, response });
      return;
    }
    const again = (why: Note): void => {
      const retryMessage = this.#worker.log.written(why, `again ${step}`);
      report({ type, step, calls: [], again: true, response, retryMessage });
    };
    const { outputSchema, completion } = instance.definition;
    if (completion === 'tool') again(notHandedInNote(completionToolIn(instance.tools)));
    else if (left !== null) again(left);
    else if (outputSchema === undefined) report({ type, step, calls: [], response });
    else {
      const checked = await checkOutput(outputSchema, response.text);
      if (signal.aborted) return;
      if (checked.ok) report({ type, step, calls: [], response, result: checked.value });
      else again(checked.retry);
    }
  }

  /** Runs the calls of a step concurrently. Every call is settled, even if its tool fails. */
  #act(activity: Activity, instance: Instance, { step, callIds }: ToolCallsInput): void {
    const { log } = this.#worker;
    // An engine that stores results knows how its jobs ended.
    const keeper = this.#host.jobs?.keepsResults === true ? this.#host.jobs.name : null;
    const wasBegun = this.#inDoubt !== null;
    this.#inDoubt = null;
    const isElsewhere = this.#isJudgedElsewhere;
    for (const callId of callIds) {
      const call = log.call(callId);
      if (!call) continue;
      const isKept = keeper !== null && call.job === keeper;
      const isKnown = call.invalid !== undefined || instance.tools.execution.has(call.toolName);
      if (!isKnown) this.#lacks(`no tool "${call.toolName}" for ${instance.definition.name}`);
      if (wasBegun && !isKept && mayHaveBegun(call, instance.tools.execution.get(call.toolName))) {
        this.#settle(activity, callId, this.#doubtful(step, call));
        continue;
      }
      const check = isElsewhere && isKnown && !(wasBegun && isKept);
      this.#host.environment.scheduler.yieldThen(
        () => void this.#run(activity, instance, call, { check, wasBegun }),
      );
    }
  }

  #tell(news: SubagentNews): void {
    this.#ports.tell(this.#worker, news);
  }

  /** Reports that this process lacks something that another process had. */
  #lacks(what: string): void {
    this.#tell({ type: 'lacks', what });
  }

  async #run(
    activity: Activity,
    instance: Instance,
    call: ModelCall,
    { check, wasBegun }: { readonly check: boolean; readonly wasBegun: boolean },
  ): Promise<void> {
    const { signal, step } = activity;
    if (signal.aborted) return;
    const { callId, toolName, input } = call;
    const change = check && (await changeSince(this.#judging(activity, instance), call));
    if (signal.aborted) return;
    if (typeof change === 'string') {
      this.#lacks(`${toolName} for ${instance.definition.name}: ${change}`);
      const fate = wasBegun ? this.#doubtful(step, call) : withdrawnCall(call, change);
      this.#settle(activity, callId, fate);
      return;
    }
    const stream = this.#streamOf(activity, instance);
    stream?.({ type: 'tool_start', step, callId, toolName, input });
    const { clock } = this.#host.environment;
    const beganAt = clock.now();
    const isOnce = mayHaveBegun(call, instance.tools.execution.get(call.toolName));
    if (isOnce) activity.underWay.set(callId, () => this.#reportInDoubt(step, call));
    if (instance.tools.execution.get(toolName)?.client)
      activity.underWay.set(callId, () => {
        const id = keyOf(this.#worker, step, callId);
        if (this.#host.clientCalls?.cancel(id)) this.#reportInDoubt(step, call);
      });
    const outcome = await this.#inSpan(() => this.#outcomeOf(activity, instance, call), { callId });
    activity.underWay.delete(callId);
    if (signal.aborted) return;
    const isLate = outcome.status === 'error' && outcome.error.code === 'TIMEOUT';
    const known = isLate && isOnce ? this.#doubtful(step, call, outcome.error.message) : outcome;
    stream?.({ type: 'tool_end', step, callId, toolName, ...endOf(known) });
    // The duration of a delegating call does not include the time during which its child runs.
    const delegates = instance.tools.execution.get(toolName)?.delegates;
    this.#settle(activity, callId, known, delegates ? undefined : clock.now() - beganAt);
  }

  #outcomeOf(
    activity: Activity,
    instance: Instance,
    call: ModelCall,
  ): ToolOutcome | Promise<ToolOutcome> {
    const { signal, step } = activity;
    const { callId, toolName } = call;
    const entry = instance.tools.execution.get(toolName);
    if (call.invalid || !entry) {
      const message = call.invalid?.message ?? `There is no tool "${toolName}"`;
      return toolError(message, 'INVALID_INPUT');
    }
    if (call.consent === 'inherited_denial') return toolDenied(INHERITED_DENIAL);
    if (call.consent === 'author_denied') return toolDenied(call.reason ?? AUTHORS_DENIAL);
    const acting: Acting = {
      step,
      call,
      entry,
      idempotencyKey: keyOf(this.#worker, step, callId),
      keepLarge: this.#keeperOf(call),
      caller: () => this.#callerOf(step, callId),
      context: () => this.#contextOf(step, instance.definition, toolName, callId),
      preliminary: (output) => this.#preliminary(output, signal),
      inDoubt: () => this.#doubtful(step, call),
    };
    return entry.client
      ? this.#actAtClient({ ...acting, entry: { ...entry, client: entry.client } }, signal)
      : this.#does.act(acting, signal);
  }

  /** Runs a call whose tool one of the user's clients executes. */
  async #actAtClient(
    acting: Acting & { readonly entry: { readonly client: ClientTool } },
    signal: AbortSignal,
  ): Promise<ToolOutcome> {
    const { call, entry, step, idempotencyKey: id } = acting;
    const { callId, toolName: name } = call;
    let isDoubtful = false;
    const execute = async (input: unknown): Promise<unknown> => {
      const { requester: user, subagentId } = this.#callerOf(step, callId);
      const { clientCalls } = this.#host;
      if (!clientCalls)
        throw new ProviderError('CLIENT_ABSENT', `No user is here whose page can do "${name}"`);
      try {
        const { client: tool } = entry;
        return await clientCalls.run({ id, callId, subagentId, name, input, user, tool });
      } catch (error) {
        isDoubtful = codeOf(error) === 'NEEDS_RECONCILE';
        throw error;
      }
    };
    const outcome = await this.#does.act({ ...acting, entry: { ...entry, execute } }, signal);
    return isDoubtful && !signal.aborted ? acting.inDoubt() : outcome;
  }

  #keeperOf({ callId, toolName }: ModelCall): KeepLarge | undefined {
    const ports = this.#ports;
    return (
      ports.keepLarge &&
      ((value, part, stop) => {
        const returned = { callId, toolName, part, value, signal: stop };
        return ports.keepLarge?.(this.#worker, this.tools, returned) ?? value;
      })
    );
  }

  #preliminary(output: JSONValue, signal: AbortSignal): void {
    const words = progressIn(output);
    if (words !== null && !signal.aborted) this.#progressed(words);
  }

  /** Reports a call whose outcome is unknown. Returns the call's result for the model. */
  #doubtful(step: number, call: ModelCall, why?: string): ToolOutcome {
    this.#reportInDoubt(step, call);
    return toolError(inDoubtMessage(call.toolName, why), 'NEEDS_RECONCILE');
  }

  /** If the work stops before it has resumed, reports the calls that were running in the earlier process. */
  #leaveInDoubt(): void {
    const { step, calls } = this.#inDoubt ?? { step: 0, calls: [] };
    for (const call of calls) {
      const tool = this.tools[call.toolName];
      // The tools of an instance are unknown until it exists. The runtime's own tools can always be called again.
      const idempotent = tool ? isIdempotentTool(tool) : !this.#worker.definition.createInstance;
      if (mayHaveBegun(call, { idempotent })) this.#reportInDoubt(step, call);
    }
    this.#inDoubt = null;
  }

  #reportInDoubt(step: number, { callId, toolName, input }: ModelCall): void {
    const idempotencyKey = keyOf(this.#worker, step, callId);
    const doubtful = { callId, toolName, input, idempotencyKey };
    this.#tell({ type: 'call.in_doubt', call: doubtful });
  }

  #judging(
    { signal, step }: Activity,
    { definition, tools }: Instance,
    messages = this.#worker.log.messagesBeforeCalls,
  ): Judging {
    return { ...this.#judgingOf(signal, definition, step), messages, tools };
  }

  #judgingOf(
    signal: AbortSignal,
    definition: SubagentDefinition,
    step = this.#worker.step,
  ): Judging {
    const worker = this.#worker;
    return {
      host: this.#host,
      ports: this.#ports,
      worker,
      loop: this.#executor?.loop ?? null,
      definition,
      tools: definition.relay || definition.createInstance ? null : toolsOf(definition),
      messages: worker.log.messagesBeforeCalls,
      signal,
      contextOf: (toolName, callId) => this.#contextOf(step, definition, toolName, callId),
    };
  }

  /** Returns the context that a tool and its `needsApproval` receive. */
  #contextOf(
    step: number,
    definition: SubagentDefinition,
    toolName: string,
    callId: string,
  ): unknown {
    const own = definition.toolsContext;
    const contexts = this.#executor?.loop?.toolsContext(own) ?? own;
    return withCaller(contexts?.[toolName], this.#callerOf(step, callId));
  }

  #callerOf(step: number, callId: string): Caller {
    const worker = this.#worker;
    return {
      ...this.#ports.standingOf(worker).caller,
      subagentId: worker.id,
      approver: worker.log.approverOf(callId),
      idempotencyKey: keyOf(worker, step, callId),
    };
  }

  /** Returns the function that receives streamed text and the start and end of calls, if the subagent streams. */
  #streamOf(
    { signal }: Activity,
    { definition }: Instance,
  ): ((chunk: StreamedChunk) => void) | undefined {
    if (!definition.stream) return undefined;
    return (chunk) => {
      if (signal.aborted) return;
      this.#tell({ type: 'alive' });
      this.#tell({ type: 'streamed', chunk });
    };
  }

  /**
   * Reports progress once per turn of the event loop, because an agent may report progress and then ask a question in
   * the same turn. The question ends the step.
   */
  #progressed(words: string): void {
    this.progress = clip(words, MAX_PROGRESS_CHARS);
    this.#tell({ type: 'alive' });
    if (this.#reportsProgress) return;
    this.#reportsProgress = true;
    this.#host.environment.scheduler.yieldThen(() => {
      this.#reportsProgress = false;
      if (!this.#worker.outcome) this.#tell({ type: 'changed' });
      if (!this.#activity) this.progress = null;
    });
  }
}

/** A model call that the budget allows. */
interface Granted {
  readonly ok: true;
  /** The limit on the call's output tokens, or undefined for no limit. */
  readonly maxOutputTokens: number | undefined;
  /** Returns the usage of an answer, estimated from its length if the provider reported none. */
  counted(response: Pick<ModelResponse, 'usage' | 'text'>): Usage;
  /** Charges the usage of an answered call. */
  settle(tokens: number, cost: number): void;
  /** Records a failed call. `underWay`: the provider may have processed the call and charged for it. */
  failed(underWay: boolean, priceOf: (usage: Usage) => number): void;
}

type Permit = Granted | { readonly ok: false; readonly message: string };

/** Asks the budget for permission to call the model. `final`: the call submits partial work. */
export function permitFor({
  budget,
  instructions,
  messages,
  final,
}: Pick<Attempted, 'budget' | 'messages' | 'final'> & Pick<Thinking, 'instructions'>): Permit {
  const counted: Granted['counted'] = ({ usage, text }) =>
    countedUsage(usage, { instructions, messages, written: text });
  if (!budget) return { ok: true, maxOutputTokens: undefined, counted, settle() {}, failed() {} };
  const inputTokens = estimateTokens(instructions, messages);
  const call = final ? budget.beginFinalCall() : budget.beginCall(inputTokens);
  if (!call.ok) return { ok: false, message: call.error.message };
  return {
    ok: true,
    maxOutputTokens: call.maxOutputTokens,
    counted,
    settle: (tokens, cost) => call.settle(tokens, cost),
    failed: (underWay, priceOf) => {
      const read = { inputTokens, outputTokens: 0, totalTokens: inputTokens };
      if (underWay) call.settle(inputTokens, priceOf(read));
      else call.settle(0);
    },
  };
}
