// The steps of a subagent as jobs: what a job's body and the text of its end hold, and the end that asks for them.
//
// Owns:     the form of bodies and of ends; asking again while the engine cannot be reached.
// Does not: do a step (job-worker.ts), decide which steps are jobs (subagent-work.ts), retry a model call.
//
// Invariants
//   STEP-JOBS-1. An engine that cannot be reached is asked again under the same key, until the signal aborts.
//   STEP-JOBS-2. A worker's answer is read as a stranger's: what has another shape is a failure.
//   STEP-JOBS-3. A body with a field that this version does not know is unreadable, since a step that is done without that field
//       would be another step; a worker of the version that wrote it takes the job. A field that is new is optional, and is
//       written only where it says something: bodies of earlier versions stay readable.

import type { JSONValue, ModelMessage } from 'ai';
import { z } from 'zod';
import { backoffMs } from '../../machines/index.ts';
import { isA, messageOf, OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import type { Environment } from '../ports/environment.ts';
import { JobError, jobUnreadable, type Job, type JobEnd, type Jobs } from '../ports/jobs.ts';
import type { Caller } from '../model/caller.ts';
import type { ModelResponse } from '../model/model-step.ts';
import type { ToolOutcome } from '../model/tool-results.ts';
import { pause } from '../runtime/pause.ts';

/** The description of a caller that travels: its service stays with the session. */
export type JobCaller = Omit<Caller, 'service'>;

interface StepBase {
  /** The name of the configuration. */
  readonly config: string;
  /** The names of the tools that the subagent has: grants and denials are decided by the session. */
  readonly tools: readonly string[];
}

/** One model call. */
export interface ModelJob extends StepBase {
  readonly kind: 'model';
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** The model may not call tools. */
  readonly final: boolean;
  readonly maxOutputTokens?: number | undefined;
  /** It may send the parts of its answer before its end. */
  readonly stream: boolean;
}

/** One tool call. */
export interface ToolJob extends StepBase {
  readonly kind: 'tool';
  readonly toolName: string;
  readonly callId: string;
  readonly input: unknown;
  readonly raw: boolean;
  /** The model's arguments, where the schema of the session made others of them. */
  readonly given?: unknown;
  readonly timeoutMs?: number | undefined;
  readonly caller: JobCaller;
  readonly messages: readonly ModelMessage[];
}

export type StepJob = ModelJob | ToolJob;

/** The words and outputs of a job while it is under way. */
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

/** @throws {JobError} `JOB_UNREADABLE`, for a body that no session wrote. */
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

/** A step that failed at the worker: classified there, like a model's error. */
export class StepFailure extends OffstageError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(failed: Extract<JobEnd, { readonly failed: unknown }>['failed']) {
    super(failed.code, failed.message);
    this.retryable = failed.retryable;
    this.retryAfterMs = failed.retryAfterMs;
  }
}

interface Asking {
  readonly key: string;
  readonly signal: AbortSignal;
  /** The span that the job is below. */
  readonly trace: TraceContext | null;
  /** True: the job goes on when the signal aborts, for the process that takes the session up. */
  readonly isLeft: () => boolean;
  readonly said?: ((said: StepSaid) => void) | undefined;
}

const AGAIN_BASE_MS = 250;
const AGAIN_MAX_MS = 30_000;

/** Asks an engine for steps. */
export class StepJobs {
  readonly jobs: Jobs;
  readonly #environment: Environment;
  readonly #report: (error: unknown, where: string) => void;

  constructor(
    jobs: Jobs,
    environment: Environment,
    report: (error: unknown, where: string) => void,
  ) {
    this.jobs = jobs;
    this.#environment = environment;
    this.#report = report;
  }

  /** @throws {StepFailure}, or the reason of the signal. */
  async think(step: ModelJob, asking: Asking): Promise<ModelResponse> {
    const { config } = step;
    const end = await this.#run(step, { name: `${MODEL_OF}${config}`, once: false }, asking);
    if ('lost' in end)
      throw new StepFailure({
        code: 'JOB_LOST',
        message: `${this.jobs.name} lost the model call`,
        retryable: true,
      });
    if ('failed' in end) throw new StepFailure(end.failed);
    return read(modelEnd, end.done, `the answer of ${config}'s model`) as ModelResponse;
  }

  /**
   * Returns the outcome; `lost`: nobody knows whether it was run.
   * @throws the reason of the signal, or an error that says why it was not run.
   */
  async act(step: ToolJob, once: boolean, asking: Asking): Promise<ToolOutcome | 'lost'> {
    const jobName = `tool ${step.toolName} of ${step.config}`;
    const end = await this.#run(step, { name: jobName, once }, asking);
    if ('lost' in end) return 'lost';
    if ('failed' in end) throw new StepFailure(end.failed);
    return read(toolEnd, end.done, `the result of ${jobName}`) as ToolOutcome;
  }

  async #run(
    step: StepJob,
    about: Pick<Job, 'name' | 'once'>,
    { key, signal, trace, isLeft, said: hear }: Asking,
  ): Promise<JobEnd> {
    const { jobs } = this;
    const job: Job = { key, ...about, body: JSON.stringify(step), ...(trace && { trace }) };
    const stop = (): void => {
      if (!isLeft()) jobs.cancel(key);
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await jobs.run(job, { signal, said: hear && heard(hear) });
        } catch (error) {
          if (signal.aborted) throw error;
          if (!isA(error, JobError) || !error.retryable) throw asFailure(error);
          // STEP-JOBS-1
          this.#report(error, `${jobs.name}: ${about.name}`);
          await this.#pause(attempt, signal);
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #pause(attempt: number, signal: AbortSignal): Promise<void> {
    const { scheduler, random } = this.#environment;
    const limits = { baseDelayMs: AGAIN_BASE_MS, maxDelayMs: AGAIN_MAX_MS };
    return pause(scheduler, backoffMs(limits, attempt, random.next()), signal);
  }
}

/** Messages of an engine are read as those of a stranger; one that cannot be read is left out. */
function heard(hear: (told: StepSaid) => void): (text: string) => void {
  return (text) => {
    try {
      hear(read(said, text, 'what a job said') as StepSaid);
    } catch {
      // It may be lost.
    }
  };
}

function asFailure(error: unknown): StepFailure {
  const code = isA(error, OffstageError) ? error.code : 'JOBS_REFUSED';
  return new StepFailure({ code, message: messageOf(error), retryable: false });
}
