// The activity of a subagent while its machine is in a lasting state: it prepares, calls its model, or runs
// tools. One activity at a time; each reports its events, unless it was stopped.
//
// Owns:     the activity under way, its AbortController, the instance of the configuration; the retries of a
//           model call, and its cost for the budget.
// Does not: decide what is done next (the machine does), or keep the results (the log does).
//
// Invariants
//   SUBAGENT-WORK-1. A stopped activity reports nothing any more.
//   SUBAGENT-WORK-2. `dispose` of the instance runs once, after the activity under way was stopped; also for
//       an instance that was still being made.
//   SUBAGENT-WORK-3. After a crash a call whose fate is unknown is made again, with the same key, only if its
//       tool permits that; any other call is settled as one that the app must reconcile.

import type { JSONValue, ModelMessage } from 'ai';
import { clip } from '../../values/clip.ts';
import { codeOf, isA, messageOf, TimeoutError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { backoffMs, type StepCall } from '../../machines/index.ts';
import type { ModelStepInput, ToolCallsInput } from '../../machines/subagent-setup.ts';
import type { Budget } from '../admission/budget.ts';
import type { Usage } from '../contracts/usage.ts';
import type { PreparedBefore, SubagentHandle, SubagentPorts } from './subagent-ports.ts';
import type { StreamedChunk } from '../contracts/task.ts';
import { AUTHORS_DENIAL, INHERITED_DENIAL } from '../model/approval.ts';
import { withCaller } from '../model/caller.ts';
import {
  failure,
  unusable,
  modelError,
  runModelStep,
  toStepError,
  type ModelCall,
  type ModelResponse,
} from '../model/model-step.ts';
import { costOf, namesOf } from '../model/price.ts';
import type { CallSettings } from '../contracts/agent-loop.ts';
import { AgentRun, NOT_STOPPED, settingsWithin, type PreparedStep } from './agent-loop.ts';
import { checkOutput, structuredOutput } from '../model/output.ts';
import { keptElsewhere, runToolCall, type KeepLarge } from '../model/tool-run.ts';
import { callSafely, inSpanOf, type Host } from '../runtime/host.ts';
import { raceTime } from '../../values/race-abort.ts';
import { runsAsJob, type ToolEntry } from '../model/tools.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import {
  changeSince,
  judgedCall,
  mayHaveBegun,
  questionChange,
  withdrawnCall,
  type Judging,
} from './call-judgement.ts';
import { completionToolIn, leftAtWork, notHandedInNote } from './child-toolset.ts';
import { modelAsked, modelOf, releaseInstance, toolsOf, type Instance } from './instance.ts';
import { permitFor, type Granted } from './permit.ts';
import { RelayLoop } from './relay-loop.ts';
import type { Note } from '../notes/note.ts';
import { StepFailure, StepJobs } from './step-jobs.ts';
import type { TracedWork } from '../ports/journal.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';
import type { SubagentLog } from './subagent-log.ts';
import type { Delta, Structured } from '../model/model.ts';
import {
  endOf,
  inDoubtMessage,
  progressIn,
  toolDenied,
  toolError,
  type ToolOutcome,
} from '../model/tool-results.ts';

/** The subagent whose work it is. */
export interface Worker extends SubagentHandle {
  readonly log: SubagentLog;
  /** The question under way, and the call that asks it; null: it does not wait for one. */
  readonly openQuestion: { readonly requestId: string; readonly callId: string } | null;
  receive(event: SubagentUnitEvent): void;
}

interface Activity {
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  /** The step of the model; 0 for the preparation. */
  readonly step: number;
  /** Number of events that the activity has still to report. */
  expected: number;
  /** Its jobs go on when it is stopped, for the process that takes the session up. */
  isLeft: boolean;
  /** Report the calls that are under way, by their ids: one that is cut off may have been done. */
  readonly underWay: Map<string, () => void>;
}

/** A model call, which may be attempted several times. */
interface Thinking {
  readonly activity: Activity;
  readonly instance: Instance;
  readonly messages: readonly ModelMessage[];
  /** The model may not call tools: its words are the end of the run. */
  readonly final: boolean;
  /** The settings of the step, of an agent of the AI SDK. @defaultValue none */
  readonly call?: CallSettings;
  /** A stop condition of the agent was met: only a result is expected. @defaultValue false */
  readonly isStopped?: boolean;
  /** The budget that pays for the calls; null: no limit. */
  readonly budget: Budget | null;
}

const CUT_OFF = 'The budget is used up: its last tokens were not enough for the answer';
const COST_UNKNOWN = 'The budget is used up: the cost of a call is not known';
const MAX_PROGRESS_CHARS = 200;
/** A relay that takes longer to let its agent go is reported, and no longer waited for. */
const RELEASE_TIMEOUT_MS = 30_000;

/** Returns the idempotency key of a call: the same for every attempt, in this process and after it. */
const keyOf = ({ id }: Worker, step: number, callId: string): string => `${id}:${step}:${callId}`;

export class SubagentWork {
  /** The progress that its tools report while they work; null when none does. */
  progress: string | null = null;
  readonly #host: Host;
  readonly #ports: SubagentPorts;
  readonly #worker: Worker;
  #instance: Instance | null = null;
  /** In place of the model, for an agent of somebody else. */
  #relayLoop: RelayLoop | null = null;
  /** The loop of an agent of the AI SDK. */
  #loop: AgentRun | null = null;
  #preparing: Promise<void> | null = null;
  #activity: Activity | null = null;
  #reportsProgress = false;
  /** True for a restored subagent: its instance is made again when it is needed. */
  #isRestored = false;
  /** The next activity had been begun before the process ended. */
  #isInDoubt = false;
  /** Another process, perhaps with other code, judged the calls of the step. */
  #isJudgedElsewhere = false;

  constructor(host: Host, ports: SubagentPorts, worker: Worker) {
    this.#host = host;
    this.#ports = ports;
    this.#worker = worker;
  }

  /** The tools of its instance, as their author defined them; empty before there is an instance. */
  get tools(): Readonly<Record<string, unknown>> {
    if (this.#instance) return this.#instance.definition.tools;
    return this.#isRestored ? this.#worker.definition.tools : {};
  }

  /** True while no activity is under way. */
  get isIdle(): boolean {
    return this.#activity === null;
  }

  /** The number of events that the activity has still to report. */
  get owes(): number {
    return this.#activity?.expected ?? 0;
  }

  /** Marks the subagent as restored. `inDoubt`: calls were under way. */
  restored(inDoubt: boolean): void {
    this.#isRestored = true;
    this.#isInDoubt = inDoubt;
    this.#isJudgedElsewhere = true;
  }

  /** Withdraws the open question of another process if the present code would not put it so (CALL-JUDGEMENT-2). */
  async recheckQuestion(): Promise<void> {
    const worker = this.#worker;
    const open = worker.openQuestion;
    const call = open && worker.log.call(open.callId);
    if (!call) return;
    const { signal } = new AbortController();
    const change = await questionChange(this.#judgingOf(signal, worker.definition), call);
    if (change === null) return;
    // Another worker may have the code that put the question.
    this.#ports.lacks?.(worker, `${call.toolName} for ${worker.definition.name}: ${change}`);
    this.#questionWithdrawn(call.callId, `withdrawn: ${change}`, change);
  }

  /** Begins an activity of the machine. */
  begin(name: string, input: unknown): void {
    const controller = new AbortController();
    const { step = 0, callIds } = input as Partial<ToolCallsInput>;
    const { signal } = controller;
    const expected = callIds?.length ?? 1;
    const underWay: Activity['underWay'] = new Map();
    const activity: Activity = { controller, signal, step, expected, isLeft: false, underWay };
    this.#activity = activity;
    if (name === 'prepare') {
      this.#preparing = this.#prepare(activity);
      return;
    }
    const begin = (instance: Instance): void => {
      if (name === 'modelStep') this.#think(activity, instance, input as ModelStepInput);
      else this.#act(activity, instance, input as ToolCallsInput);
    };
    const fail = (message: string): void => {
      const error = { code: 'PREPARATION_FAILED', message, retryable: false };
      if (name === 'modelStep') this.#report(activity, { type: 'model.failed', step, error });
      for (const callId of callIds ?? [])
        this.#settle(activity, callId, toolError(message, 'FAILED'));
    };
    if (this.#instance) begin(this.#instance);
    else if (this.#isRestored) this.#preparing = this.#prepareAgain(signal, begin, fail);
    else fail('not prepared');
  }

  /**
   * Stops the activity. An activity that has reported every event has ended by itself and is not aborted.
   * `reason` makes the abort reason of the signals of tools and models; most activities need none, and an error
   * costs a stack trace. `suspended`: another process continues the work, and jobs go on for it.
   */
  stop(reason: () => Error, why: 'ended' | 'suspended' = 'ended'): void {
    const activity = this.#activity;
    this.#activity = null;
    if (!this.#reportsProgress) this.progress = null;
    if (!activity || activity.expected === 0) return;
    activity.isLeft = why === 'suspended' && this.#host.jobs?.keepsResults === true;
    activity.controller.abort(reason());
    if (why === 'ended') for (const report of activity.underWay.values()) report();
  }

  /** Lets the other agent's step end, so that it reads a message that has come. */
  nudge(): void {
    this.#relayLoop?.nudge();
  }

  /**
   * Releases the instance, after the stop. Resolves when it is disposed; never rejects. `suspended`: another
   * process continues the work.
   */
  async release(why: 'ended' | 'suspended'): Promise<void> {
    if (why === 'ended') this.#endJobs();
    await this.#releaseRelay(why);
    if (!this.#instance) return this.#preparing ?? Promise.resolve();
    return releaseInstance(this.#host, this.#instance);
  }

  async #releaseRelay(why: 'ended' | 'suspended'): Promise<void> {
    const relayLoop = this.#relayLoop;
    if (!relayLoop) return;
    const { name } = this.#worker.definition;
    try {
      await raceTime(() => relayLoop.release(why), {
        timeoutMs: RELEASE_TIMEOUT_MS,
        scheduler: this.#host.environment.scheduler,
        late: () =>
          new TimeoutError(
            `Expected the relay of ${name} to let go within ${RELEASE_TIMEOUT_MS} ms: it is not waited for`,
            { code: 'DISPOSE_TIMEOUT' },
          ),
      });
    } catch (error) {
      this.#host.report(error, `relay of ${name}`);
    }
  }

  /** Returns the span of the work, for whoever does it elsewhere. */
  #traceOf(part?: TracedWork['part']): TraceContext | null {
    return this.#host.journal.traceContextOf?.(this.#traced(part)) ?? null;
  }

  #traced(part?: TracedWork['part']): TracedWork {
    return { scope: this.#ports.path, unit: this.#worker.id, ...(part && { part }) };
  }

  /** Calls a function of the app, or what calls some, in the span of the work that it is part of. */
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

  async #prepare(activity: Activity): Promise<void> {
    try {
      const prepared = await this.#makeInstance(activity.signal);
      if (!prepared) return;
      const { messages, notes } = prepared;
      this.#report(activity, { type: 'subagent.prepared', messages, marks: notes?.secret });
    } catch (error) {
      const message = messageOf(error);
      const code = codeOf(error, 'PREPARATION_FAILED');
      this.#report(activity, {
        type: 'subagent.unprepared',
        error: { code, message, retryable: false },
      });
    } finally {
      this.#preparing = null;
    }
  }

  /** Prepares the instance of a restored subagent: the first messages are in the log already. */
  async #prepareAgain(
    signal: AbortSignal,
    begin: (instance: Instance) => void,
    fail: (message: string) => void,
  ): Promise<void> {
    try {
      const prepared = await this.#makeInstance(signal, { marks: this.#worker.log.marks });
      if (prepared) begin(prepared.instance);
    } catch (error) {
      fail(messageOf(error));
    } finally {
      this.#preparing = null;
    }
  }

  /** Makes the instance; null: the signal aborted meanwhile, and the instance is released. */
  async #makeInstance(signal: AbortSignal, again?: PreparedBefore) {
    const prepared = await this.#inSpan(() => this.#ports.prepare(this.#worker, signal, again));
    const { messages, notes, ...instance } = prepared;
    if (signal.aborted) {
      await releaseInstance(this.#host, instance);
      return null;
    }
    const own = this.#withRelay(instance);
    const { agent } = instance.definition;
    if (agent) this.#loop ??= new AgentRun(agent, this.#worker.id);
    this.#instance = own;
    return { instance: own, messages, notes };
  }

  #withRelay(instance: Instance): Instance {
    const { relay, interactive, name } = instance.definition;
    if (!relay) return instance;
    const { environment } = this.#host;
    const relayLoop = new RelayLoop({
      relay,
      subagentId: this.#worker.id,
      task: { ...this.#worker.task, scope: this.#host.scope },
      interactive,
      environment,
      report: (error) => this.#host.report(error, `relay of ${name}`),
      progressed: (text) => this.#progressed(text.trim()),
      withdrawn: (callId, reason) => this.#questionWithdrawn(callId, reason),
      alive: () => this.#ports.activity(this.#worker),
      traceparent: () => this.#traceOf()?.traceparent,
    });
    this.#relayLoop = relayLoop;
    return { ...instance, tools: relayLoop.tools(name) };
  }

  /** Takes a question back while the user is asked. `reason` is for the model, `told` for the user. */
  #questionWithdrawn(callId: string, reason: string, told?: string): void {
    const open = this.#worker.openQuestion;
    if (open?.callId !== callId) return;
    const { requestId } = open;
    this.#ports.withdraw(requestId, this.#worker, told);
    this.#worker.receive({ type: 'question.withdrawn', requestId, reason });
  }

  /** Begins the model call after a turn of the event loop: audio goes first. */
  #think(activity: Activity, instance: Instance, { final, last }: ModelStepInput): void {
    const budget = this.#ports.budgetOf(this.#worker);
    const isLast = last && !final && instance.tools.modelTools !== undefined;
    const messages = this.#worker.log.prompt(isLast);
    const thinking = { activity, instance, messages, final, budget };
    const loop = this.#loop;
    this.#host.environment.scheduler.yieldThen(
      () => void (loop ? this.#attemptIn(loop, thinking) : this.#attempt(thinking, 1)),
    );
  }

  /** As `#attempt`, for a step that an agent of the AI SDK prepares. */
  async #attemptIn(loop: AgentRun, thinking: Thinking): Promise<void> {
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

  async #attempt(thinking: Thinking, number: number): Promise<void> {
    const { activity, instance, messages, final, budget } = thinking;
    const { signal, step } = activity;
    if (signal.aborted) return;
    const instructions = instance.instructions();
    const { environment } = this.#host;
    const relayLoop = this.#relayLoop;
    // Another agent keeps its conversation itself: only what it says is counted here.
    const permit = permitFor(
      relayLoop
        ? { budget, instructions: '', messages: [], final }
        : { budget, instructions, messages, final },
    );
    if (!permit.ok) {
      // The log gets this message when the journal has it; this call cannot wait for that.
      const told = [...messages, this.#worker.log.handIn];
      this.#exhausted(activity, permit.message);
      await this.#attempt({ ...thinking, messages: told, final: true }, 1);
      return;
    }
    const { maxOutputTokens } = permit;
    const settings = settingsWithin(thinking.call, maxOutputTokens);
    const toolChoice = final ? 'none' : thinking.call?.toolChoice;
    const stream = this.#streamOf(activity, instance);
    const beganAt = environment.clock.now();
    const tookMs = (): number => environment.clock.now() - beganAt;
    try {
      if (relayLoop) {
        const { ledger } = this.#worker.log;
        const said = stream && ((delta: string) => stream({ type: 'text_delta', step, delta }));
        const own = { step, instructions, messages, ledger, final, signal, said };
        const response = await this.#inSpan(() => relayLoop.step(own));
        const paid = this.#paid(thinking, permit, response);
        await this.#inSpan(() => this.#digest(thinking, paid));
        return;
      }
      const { tools } = instance;
      const said =
        stream &&
        (({ type, delta }: Delta) =>
          stream({ type: type === 'text' ? 'text_delta' : 'thinking', step, delta }));
      const jobs = instance.definition.runs === 'jobs' ? this.#jobs() : null;
      const response = await this.#inSpan(
        () =>
          jobs
            ? jobs.think(
                {
                  kind: 'model',
                  config: instance.definition.name,
                  tools: Object.keys(tools.modelTools ?? {}),
                  instructions,
                  messages,
                  final,
                  maxOutputTokens,
                  stream: said !== undefined,
                },
                {
                  key: `${this.#jobPrefix}${step}:${messages.length}${final ? ':final' : ''}#${number}`,
                  signal,
                  trace: this.#traceOf('model'),
                  isLeft: () => activity.isLeft,
                  said:
                    said &&
                    ((told) => {
                      if (told.type !== 'preliminary') said(told);
                    }),
                },
              )
            : runModelStep({
                caller: { name: instance.definition.name, journal: this.#host.journal },
                model: modelOf(instance),
                instructions,
                messages,
                tools,
                ...(settings ? { settings } : {}),
                structured: final ? null : this.#formatOf(instance),
                ...(toolChoice && instance.tools.modelTools ? { toolChoice } : {}),
                signal,
                said,
                ids: environment.ids,
                clock: environment.clock,
              }),
        'model',
      );
      const timed = { ...response, tookMs: tookMs() };
      const paid = this.#paid(thinking, permit, timed);
      if (!final) this.#loop?.responded(paid);
      // Cut off by the budget, not by the model: the partial answer is handed in.
      const isCut = response.finish === 'length' && maxOutputTokens !== undefined && !final;
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
      // Not by `#report`: the answer is still expected.
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

  /** Settles what an answer used, and returns it with its cost. */
  #paid(
    { activity, instance, budget, final }: Thinking,
    permit: Granted,
    response: ModelResponse,
  ): ModelResponse {
    if (!budget && !this.#host.price) return response;
    const usage = permit.counted(response);
    // A relay reports its own costs, and not with every step.
    if (this.#relayLoop) {
      permit.settle(usage.totalTokens, usage.cost ?? 0);
      return response;
    }
    const cost = this.#priceOf(instance, usage);
    permit.settle(usage.totalTokens, cost ?? 0);
    if (cost !== null) return { ...response, usage: { ...response.usage, cost } };
    // The answer counts; no further call begins.
    if (budget?.countsCost && !final && !activity.signal.aborted)
      this.#worker.receive({ type: 'budget.exhausted', graceful: true, message: COST_UNKNOWN });
    return response;
  }

  /** Returns null where nobody knows it. */
  #priceOf({ model, definition: { name } }: Instance, usage: Usage): number | null {
    const of = model === null ? { provider: 'unknown', modelId: name } : namesOf(model);
    return costOf(this.#host, { ...of, usage, name }) ?? null;
  }

  /** Reports that the budget refused a call: this step is the last one. */
  #exhausted({ signal, step }: Activity, message: string): void {
    if (signal.aborted) return;
    this.#worker.receive({ type: 'budget.exhausted', graceful: true, message, step });
  }

  /** Returns the format of an answer that ends the run; null: plain words. */
  #formatOf({ definition, model, tools }: Instance): Structured | null {
    const { outputSchema, completion, structured, name } = definition;
    if (outputSchema === undefined || completion === 'tool' || structured === 'off') return null;
    if (model === null) return null;
    // The packages of some providers ask for JSON with a tool of this name.
    if (tools.execution.has('json')) return null;
    return structuredOutput(model, outputSchema, (error) =>
      this.#host.report(
        error,
        `structured output of ${name}: it is asked for in words from now on`,
      ),
    );
  }

  /** Reports the answer: calls, a result, or words that ask the model again. */
  async #digest(thinking: Thinking, response: ModelResponse) {
    const { activity, instance, messages, final, isStopped = false } = thinking;
    const { signal, step } = activity;
    const type = 'model.responded';
    const report = (event: SubagentUnitEvent): void => this.#report(activity, event);
    if (final) {
      report({ type, step, calls: [], response: { ...response, calls: [] } });
      return;
    }
    const isHandIn = ({ toolName }: ModelCall): boolean =>
      instance.tools.execution.get(toolName)?.role === 'complete_task';
    if (isStopped && !response.calls.every(isHandIn)) {
      report({ type: 'model.failed', step, error: NOT_STOPPED, response });
      return;
    }
    const isLast = step >= instance.definition.maxSteps;
    const left = isLast ? null : leftAtWork(this.#ports.atWork?.(this.#worker), messages.at(-1));
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
    // A relay whose turn goes on: a message is read first.
    if (this.#relayLoop && response.finish === 'tool-calls') {
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

  /** Runs the calls of one step side by side: each is settled, whatever its tool does. */
  #act(activity: Activity, instance: Instance, { step, callIds }: ToolCallsInput): void {
    const { log } = this.#worker;
    // An engine that keeps results knows the fate of its jobs.
    const keeper = this.#host.jobs?.keepsResults === true ? this.#host.jobs.name : null;
    const wasBegun = this.#isInDoubt;
    this.#isInDoubt = false;
    const isElsewhere = this.#isJudgedElsewhere;
    for (const callId of callIds) {
      const call = log.call(callId);
      if (!call) continue;
      const isKept = keeper !== null && call.job === keeper;
      const isKnown = call.invalid !== undefined || instance.tools.execution.has(call.toolName);
      if (!isKnown) this.#lacksTool(instance, call);
      if (wasBegun && !isKept && mayHaveBegun(instance, call)) {
        this.#settle(activity, callId, this.#doubtful(step, call));
        continue;
      }
      const check = isElsewhere && isKnown && !(wasBegun && isKept);
      this.#host.environment.scheduler.yieldThen(
        () => void this.#run(activity, instance, call, { check, wasBegun }),
      );
    }
  }

  /** The process that took the call from the model knew its tool. */
  #lacksTool({ definition }: Instance, { toolName }: ModelCall): void {
    this.#ports.lacks?.(this.#worker, `no tool "${toolName}" for ${definition.name}`);
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
      this.#ports.lacks?.(this.#worker, `${toolName} for ${instance.definition.name}: ${change}`);
      const fate = wasBegun ? this.#doubtful(step, call) : withdrawnCall(call, change);
      this.#settle(activity, callId, fate);
      return;
    }
    const stream = this.#streamOf(activity, instance);
    stream?.({ type: 'tool_start', step, callId, toolName, input });
    const { clock } = this.#host.environment;
    const beganAt = clock.now();
    const isOnce = mayHaveBegun(instance, call);
    if (isOnce) activity.underWay.set(callId, () => this.#reportInDoubt(step, call));
    const outcome = await this.#inSpan(() => this.#outcomeOf(activity, instance, call), { callId });
    activity.underWay.delete(callId);
    if (signal.aborted) return;
    const isLate = outcome.status === 'error' && outcome.error.code === 'TIMEOUT';
    const known = isLate && isOnce ? this.#doubtful(step, call, outcome.error.message) : outcome;
    stream?.({ type: 'tool_end', step, callId, toolName, ...endOf(known) });
    // A child's time is its own.
    const delegates = instance.tools.execution.get(toolName)?.delegates;
    this.#settle(activity, callId, known, delegates ? undefined : clock.now() - beganAt);
  }

  #outcomeOf(
    activity: Activity,
    instance: Instance,
    call: ModelCall,
  ): ToolOutcome | Promise<ToolOutcome> {
    const { signal, step } = activity;
    const { callId, toolName, input, raw } = call;
    const entry = instance.tools.execution.get(toolName);
    if (call.invalid || !entry) {
      const message = call.invalid?.message ?? `There is no tool "${toolName}"`;
      return toolError(message, 'INVALID_INPUT');
    }
    if (call.consent === 'inherited_denial') return toolDenied(INHERITED_DENIAL);
    if (call.consent === 'author_denied') return toolDenied(call.reason ?? AUTHORS_DENIAL);
    if (this.#relayLoop)
      return this.#relayLoop.run(call, this.#worker.log.ledger, signal, () => {
        this.#reportInDoubt(step, call);
      });
    const jobs = call.job === undefined ? null : this.#jobs();
    if (jobs) return this.#outcomeOfJob(jobs, activity, instance, call, entry);
    return runToolCall({
      tool: entry,
      callId,
      input,
      raw,
      messages: this.#worker.log.messagesBeforeCalls,
      signal,
      // A child limits its own time.
      timeoutMs: entry.delegates ? undefined : instance.definition.toolTimeout,
      idempotencyKey: keyOf(this.#worker, step, callId),
      context: this.#contextOf(step, instance.definition, toolName, callId),
      environment: this.#host.environment,
      keepLarge: this.#keeperOf(call),
      onPreliminary: (output) => this.#preliminary(output, signal),
    });
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

  /** Reports a call whose fate is unknown. Returns what the model reads of it. */
  #doubtful(step: number, call: ModelCall, why?: string): ToolOutcome {
    this.#reportInDoubt(step, call);
    return toolError(inDoubtMessage(call.toolName, why), 'NEEDS_RECONCILE');
  }

  #reportInDoubt(step: number, { callId, toolName, input }: ModelCall): void {
    const idempotencyKey = keyOf(this.#worker, step, callId);
    this.#ports.inDoubt?.(this.#worker, { callId, toolName, input, idempotencyKey });
  }

  #jobs(): StepJobs | null {
    const { jobs, environment, report } = this.#host;
    return jobs && new StepJobs(jobs, environment, report);
  }

  /** The beginning of the keys of its jobs, in every process. */
  get #jobPrefix(): string {
    return `${this.#ports.path}/${this.#worker.id}:`;
  }

  /** Its end is in the journal: no process asks for its jobs again. */
  #endJobs(): void {
    const { jobs } = this.#host;
    if (!jobs?.ended) return;
    const { runs, tools } = this.#worker.definition;
    const asks = runs === 'jobs' || Object.values(tools).some(runsAsJob);
    if (asks)
      callSafely(this.#host, `jobs of ${this.#worker.id}`, () => jobs.ended?.(this.#jobPrefix));
  }

  async #outcomeOfJob(
    jobs: StepJobs,
    activity: Activity,
    instance: Instance,
    call: ModelCall,
    entry: ToolEntry,
  ): Promise<ToolOutcome> {
    const { signal, step } = activity;
    const { callId, toolName, input, raw = false } = call;
    const { name, toolTimeout: timeoutMs } = instance.definition;
    const { log, id: subagentId } = this.#worker;
    const idempotencyKey = keyOf(this.#worker, step, callId);
    const { service: _, ...caller } = this.#ports.callerOf(this.#worker);
    try {
      const outcome = await jobs.act(
        {
          kind: 'tool',
          config: name,
          tools: [toolName],
          toolName,
          callId,
          input,
          raw,
          ...(call.given !== undefined && { given: call.given }),
          timeoutMs,
          caller: { ...caller, subagentId, approver: log.approverOf(callId), idempotencyKey },
          messages: log.messagesBeforeCalls,
        },
        !entry.idempotent,
        {
          key: `${this.#jobPrefix}${step}:${callId}`,
          signal,
          trace: this.#traceOf({ callId }),
          isLeft: () => activity.isLeft,
          said: (told) => {
            if (told.type === 'preliminary') this.#preliminary(told.output, signal);
          },
        },
      );
      if (outcome === 'lost') return this.#doubtful(step, call);
      return await keptElsewhere(outcome, entry, this.#keeperOf(call), signal);
    } catch (error) {
      if (signal.aborted) return toolError(messageOf(signal.reason), 'CANCELLED');
      return toolError(messageOf(error), 'FAILED');
    }
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
      loop: this.#loop,
      definition,
      tools: definition.relay || definition.createInstance ? null : toolsOf(definition),
      messages: worker.log.messagesBeforeCalls,
      signal,
      contextOf: (toolName, callId) => this.#contextOf(step, definition, toolName, callId),
    };
  }

  /** Returns the context that a tool, and its `needsApproval`, receive. */
  #contextOf(
    step: number,
    definition: SubagentDefinition,
    toolName: string,
    callId: string,
  ): unknown {
    const { id: subagentId, log } = this.#worker;
    const contexts = this.#loop?.toolsContext(definition.toolsContext) ?? definition.toolsContext;
    return withCaller(contexts?.[toolName], {
      ...this.#ports.callerOf(this.#worker),
      subagentId,
      approver: log.approverOf(callId),
      idempotencyKey: keyOf(this.#worker, step, callId),
    });
  }

  /** Returns the receiver of what the model says and of the beginning and end of calls, where it streams. */
  #streamOf(
    { signal }: Activity,
    { definition }: Instance,
  ): ((chunk: StreamedChunk) => void) | undefined {
    if (!definition.stream) return undefined;
    return (chunk) => {
      if (signal.aborted) return;
      this.#ports.activity(this.#worker);
      this.#ports.streamed(this.#worker, chunk);
    };
  }

  /** Reports progress once in a turn of the event loop: an agent may report some and ask in one breath, which ends the step. */
  #progressed(words: string): void {
    this.progress = clip(words, MAX_PROGRESS_CHARS);
    this.#ports.activity(this.#worker);
    if (this.#reportsProgress) return;
    this.#reportsProgress = true;
    this.#host.environment.scheduler.yieldThen(() => {
      this.#reportsProgress = false;
      if (!this.#worker.outcome) this.#ports.changed(this.#worker);
      if (!this.#activity) this.progress = null;
    });
  }
}
