// Runs a subagent's steps as jobs. Contains the format of a job's body and result, and the executor that requests jobs.
//
// Owns:     the format of bodies and results, and the repetition of requests while the engine is unreachable.
// Does not: run a step (job-worker.ts, or the executor in this process), decide which calls are jobs (call-judgement.ts), or
//           retry a model call.
//
// Invariants
//   STEP-JOBS-1. A request to an unreachable engine is repeated with the same key until the signal aborts.
//   STEP-JOBS-2. A worker's answer is validated like any external data. An answer with a different shape counts as a
//       failure.
//   STEP-JOBS-3. A body with an unknown field is refused, because ignoring the field could change the step. A worker
//       with the version that wrote the body can run the job. New fields are optional and are written only if needed,
//       so that bodies from earlier versions stay readable.

import type { JSONValue, ModelMessage } from 'ai';
import { z } from 'zod';
import { isA, messageOf, OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { jobUnreadable, type Job, type Jobs, type JobsExecutor } from '../ports/jobs.ts';
import type { Caller } from '../model/caller.ts';
import type { ModelResponse } from '../model/model-step.ts';
import { toolError, type ToolOutcome } from '../model/tool-results.ts';
import { keptElsewhere } from '../model/tool-run.ts';
import { runsAsJob } from '../model/tools.ts';
import { callSafely } from '../runtime/host.ts';
import { untilReached } from '../runtime/pause.ts';
import {
  StepFailure,
  type Acting,
  type Executor,
  type ExecutorRun,
  type Maker,
  type Thinking,
} from './executor.ts';

/** The caller as a job contains it, without its service, which stays in the session. */
export type JobCaller = Omit<Caller, 'service'>;

interface StepBase {
  /** The name of the configuration. */
  readonly config: string;
  /** The names of the tools that the subagent has after the session has applied grants and denials. */
  readonly tools: readonly string[];
}

/** One model call. */
export interface ModelJob extends StepBase {
  readonly kind: 'model';
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** Whether the model is forbidden to call tools. */
  readonly final: boolean;
  readonly maxOutputTokens?: number | undefined;
  /** Whether the job may send parts of the answer while it is running. */
  readonly stream: boolean;
}

/** One tool call. */
export interface ToolJob extends StepBase {
  readonly kind: 'tool';
  readonly toolName: string;
  readonly callId: string;
  readonly input: unknown;
  readonly raw: boolean;
  /** The arguments as the model wrote them, if the session's schema has changed them. */
  readonly given?: unknown;
  readonly timeoutMs?: number | undefined;
  readonly caller: JobCaller;
  readonly messages: readonly ModelMessage[];
}

export type StepJob = ModelJob | ToolJob;

/** Text and outputs that a job sends while it is running. */
export type StepSaid =
  | { readonly type: 'text' | 'reasoning'; readonly delta: string }
  | { readonly type: 'preliminary'; readonly output: JSONValue };

const name = z.string().min(1);
const base = { config: name, tools: z.array(name) };
const messages = z.array(z.custom<ModelMessage>((value) => typeof value === 'object'));
const identity = z.string().nullable();
/** STEP-JOBS-3 */
const stepJob = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('model'),
    ...base,
    instructions: z.string(),
    messages: messages.min(1),
    final: z.boolean(),
    maxOutputTokens: z.number().optional(),
    stream: z.boolean(),
  }),
  z.strictObject({
    kind: z.literal('tool'),
    ...base,
    toolName: name,
    callId: z.string(),
    input: z.unknown(),
    raw: z.boolean(),
    given: z.unknown().optional(),
    timeoutMs: z.number().positive().optional(),
    messages,
    caller: z.strictObject({
      sessionId: z.string(),
      subagentId: identity,
      parentId: identity,
      depth: z.number(),
      requester: identity,
      approver: identity,
      idempotencyKey: z.string(),
    }),
  }),
]);

const modelEnd = z.looseObject({
  text: z.string(),
  assistantMessages: z.array(z.looseObject({ role: z.literal('assistant') })),
  calls: z.array(z.looseObject({ callId: z.string(), toolName: z.string() })),
  finish: z.string(),
  usage: z.looseObject({
    inputTokens: z.number(),
    outputTokens: z.number(),
    totalTokens: z.number(),
  }),
});
const modelOutput = z.looseObject({ type: z.string() });
const toolEnd = z.discriminatedUnion('status', [
  z.looseObject({ status: z.literal('ok'), output: z.unknown(), modelOutput }),
  z.looseObject({
    status: z.literal('error'),
    error: z.looseObject({ message: z.string() }),
    modelOutput,
  }),
]);
const said = z.union([
  z.object({ type: z.enum(['text', 'reasoning']), delta: z.string() }),
  z.object({ type: z.literal('preliminary'), output: z.unknown() }),
]);

/** @throws {JobError} `JOB_UNREADABLE` if the body was not written by a session. */
export function readStepJob({ name: jobName, body }: Pick<Job, 'name' | 'body'>): StepJob {
  return read(stepJob, body, `the body of ${jobName}`) as StepJob;
}

function read(schema: z.ZodType, text: string, what: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  const checked = schema.safeParse(parsed);
  if (checked.success) return checked.data;
  throw jobUnreadable(
    `${what}: ${z.prettifyError(checked.error)}. The session and its worker may have packed it differently`,
  );
}

const MODEL_OF = 'model of ';

export function isModelCall({ name: jobName }: Pick<Job, 'name'>): boolean {
  return jobName.startsWith(MODEL_OF);
}

type Asked = Pick<Job, 'key' | 'name' | 'once'> & { readonly trace: TraceContext | null };

const AGAIN = { baseMs: 250, maxMs: 30_000 };

/** Creates the executor that requests steps as jobs: `Jobs.steps`. */
export const stepJobs: JobsExecutor & Maker<Jobs> = {
  stepsBy: 'jobs',
  make: (run, jobs, inner) => new StepJobs(run, jobs, inner),
};

class StepJobs implements Executor {
  readonly #owner: ExecutorRun;
  readonly #jobs: Jobs;
  readonly #inner: Executor;

  constructor(owner: ExecutorRun, jobs: Jobs, inner: Executor) {
    this.#owner = owner;
    this.#jobs = jobs;
    this.#inner = inner;
  }

  async think(step: Thinking, signal: AbortSignal): Promise<ModelResponse> {
    const { definition, traceOf } = this.#owner;
    const { name: config } = definition;
    if (definition.runs !== 'jobs') return this.#inner.think(step, signal);
    const { instance, instructions, messages: told, final, maxOutputTokens, said: hear } = step;
    const job = {
      key: `${step.step}:${told.length}${final ? ':final' : ''}#${step.attempt}`,
      name: `${MODEL_OF}${config}`,
      once: false,
      trace: traceOf('model'),
    };
    const body: ModelJob = {
      kind: 'model',
      config,
      tools: Object.keys(instance.tools.modelTools ?? {}),
      instructions,
      messages: told,
      final,
      maxOutputTokens,
      stream: hear !== undefined,
    };
    const end = await this.#ask(
      job,
      body,
      signal,
      hear && ((one) => one.type !== 'preliminary' && hear(one)),
    );
    if (end !== null)
      return read(modelEnd, end, `the answer of ${config}'s model`) as ModelResponse;
    const message = `${this.#jobs.name} lost the model call`;
    throw new StepFailure({ code: 'JOB_LOST', message, retryable: true });
  }

  async act(acting: Acting, signal: AbortSignal): Promise<ToolOutcome> {
    const { definition, traceOf, worker } = this.#owner;
    const { name: config, toolTimeout: timeoutMs } = definition;
    const { step, call, entry } = acting;
    if (call.job === undefined) return this.#inner.act(acting, signal);
    const { callId, toolName, input, raw = false, given } = call;
    const { service: _, ...caller } = acting.caller();
    const jobName = `tool ${toolName} of ${config}`;
    const job = {
      key: `${step}:${callId}`,
      name: jobName,
      once: !entry.idempotent,
      trace: traceOf({ callId }),
    };
    const body: ToolJob = {
      kind: 'tool',
      config,
      tools: [toolName],
      toolName,
      callId,
      input,
      raw,
      ...(given !== undefined && { given }),
      timeoutMs,
      caller,
      messages: worker.log.messagesBeforeCalls,
    };
    try {
      const end = await this.#ask(
        job,
        body,
        signal,
        (one) => one.type === 'preliminary' && acting.preliminary(one.output),
      );
      if (end === null) return acting.inDoubt();
      const outcome = read(toolEnd, end, `the result of ${jobName}`) as ToolOutcome;
      return await keptElsewhere(outcome, entry, acting.keepLarge, signal);
    } catch (error) {
      if (signal.aborted) return toolError(messageOf(signal.reason), 'CANCELLED');
      return toolError(messageOf(error), 'FAILED');
    }
  }

  async release(why: 'ended' | 'suspended'): Promise<void> {
    await this.#inner.release?.(why);
    if (why === 'suspended') return;
    // The journal contains the subagent's end, so no process will request its jobs again.
    const { definition, host, path, worker } = this.#owner;
    const asks = definition.runs === 'jobs' || Object.values(definition.tools).some(runsAsJob);
    if (asks) callSafely(host, `jobs of ${worker.id}`, () => this.#jobs.ended?.(`${path}:`));
  }

  /** Returns the job's result, or null if it is unknown whether the job ran. Rejects with a `StepFailure`. */
  async #ask(
    { key: own, trace, ...about }: Asked,
    step: StepJob,
    signal: AbortSignal,
    hear: ((told: StepSaid) => void) | undefined,
  ): Promise<string | null> {
    const jobs = this.#jobs;
    const { host, path, isLeft } = this.#owner;
    const key = `${path}:${own}`;
    const job: Job = { key, ...about, body: JSON.stringify(step), ...(trace && { trace }) };
    const stop = (): void => {
      if (!isLeft() || !jobs.keepsResults) jobs.cancel(key);
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      // STEP-JOBS-1
      const end = await untilReached(
        () => jobs.run(job, { signal, said: hear && heard(hear) }),
        host.environment,
        signal,
        AGAIN,
        (error) => host.report(error, `${jobs.name}: ${about.name}`),
      );
      if ('failed' in end) throw new StepFailure(end.failed);
      return 'lost' in end ? null : end.done;
    } catch (error) {
      throw signal.aborted ? error : asFailure(error);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** Validates texts from an engine like any external data, and drops unreadable ones. */
function heard(hear: (told: StepSaid) => void): (text: string) => void {
  return (text) => {
    try {
      hear(read(said, text, 'what a job said') as StepSaid);
    } catch {
      // These texts may be lost.
    }
  };
}

function asFailure(error: unknown): StepFailure {
  if (isA(error, StepFailure)) return error;
  const code = isA(error, OffstageError) ? error.code : 'JOBS_REFUSED';
  return new StepFailure({ code, message: messageOf(error), retryable: false });
}
