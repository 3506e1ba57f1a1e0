// Executes a subagent's steps: a model (here), an AI SDK agent (agent-loop.ts), a third-party agent (relay-loop.ts), or
// an engine (step-jobs.ts). Each run has one executor. The definition or the engine supplies it; otherwise, it is the
// executor that calls the model.
//
// Owns:     the executor's interface, and the executor that calls a model and runs tools in this process.
// Does not: retry, charge budgets, judge calls, or report a step's events (subagent-work.ts).

import type { JSONValue, ModelMessage } from 'ai';
import { OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import type { CallSettings } from '../contracts/agent-loop.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import type { Caller } from '../model/caller.ts';
import type { Delta, Structured } from '../model/model.ts';
import {
  runModelStep,
  type failure,
  type ModelCall,
  type ModelResponse,
  type ModelSettings,
} from '../model/model-step.ts';
import { structuredOutput } from '../model/output.ts';
import type { ToolOutcome } from '../model/tool-results.ts';
import { runToolCall, type KeepLarge } from '../model/tool-run.ts';
import type { PreparedTools, ToolEntry } from '../model/tools.ts';
import type { TracedWork } from '../ports/journal.ts';
import type { Host } from '../runtime/host.ts';
import { modelOf, type Instance } from './instance.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';
import type { SubagentLog } from './subagent-log.ts';
import type { SubagentHandle } from './subagent-ports.ts';

/** The subagent that the executor works for. */
export interface Worker extends SubagentHandle {
  readonly log: SubagentLog;
  /** The open question and the call that asked it; null if the subagent is not waiting for an answer. */
  readonly openQuestion: { readonly requestId: string; readonly callId: string } | null;
  receive(event: SubagentUnitEvent): void;
}

/** The run that the executor works for. */
export interface ExecutorRun {
  /** The process's environment, journal and engines. */
  readonly host: Host;
  /** The subagent whose steps the executor runs. */
  readonly worker: Worker;
  /** The definition of the run's instance. */
  readonly definition: SubagentDefinition;
  /** The subagent's name, which is unique in the whole journal. */
  readonly path: string;
  /** Shows this text as the subagent's current progress. The text is shortened if it is too long. */
  readonly progressed: (text: string) => void;
  /** Withdraws the question that this call asked, because its answer is no longer needed. */
  readonly withdrawn: (callId: string, reason: string) => void;
  /** Reports activity. */
  readonly alive: () => void;
  /** Whether running work continues after its signal aborts, for the process that resumes the session. */
  readonly isLeft: () => boolean;
  /**
   * Returns the span of the current work for another process that does part of it; null if the work is not traced.
   */
  readonly traceOf: (part?: TracedWork['part']) => TraceContext | null;
}

/** The settings of one step. */
export interface PreparedStep {
  readonly instance: Instance;
  readonly messages: readonly ModelMessage[];
  /** The settings of this step's model call. @defaultValue none */
  readonly call?: CallSettings;
  /**
   * The error if a model calls tools in an answer that must be the result. @defaultValue none: calls are allowed
   */
  readonly violation?: ReturnType<typeof failure> | null;
}

/** One attempt at a step. */
export interface Thinking extends PreparedStep {
  readonly step: number;
  /** The number of the attempt, starting at 1. */
  readonly attempt: number;
  readonly instructions: string;
  /** Whether tool calls are forbidden, so that the answer ends the run. */
  readonly final: boolean;
  readonly maxOutputTokens: number | undefined;
  /** Receives the text while it is streaming; absent if it is not streamed. */
  readonly said: ((delta: Delta) => void) | undefined;
}

/** One call of a step, before it runs. */
export interface Acting {
  readonly step: number;
  readonly call: ModelCall;
  readonly entry: ToolEntry;
  readonly idempotencyKey: string;
  readonly keepLarge: KeepLarge | undefined;
  /** Returns the caller as the tool receives it. */
  readonly caller: () => Caller;
  /** Returns the tool's `context`. */
  readonly context: () => unknown;
  readonly preliminary: (output: JSONValue) => void;
  /** Reports that it is unknown whether the call was executed. Returns the result of the call for the model. */
  readonly inDoubt: () => ToolOutcome;
}

/** Prepares the steps of an AI SDK agent, and holds its tools' contexts. */
export interface StepLoop {
  readonly runtimeContext: Readonly<Record<string, unknown>>;
  toolsContext(own: SubagentDefinition['toolsContext']): typeof own;
  prepare(instance: Instance, log: SubagentLog, signal: AbortSignal): Promise<PreparedStep>;
}

/** Executes the steps of one run. */
export interface Executor {
  /**
   * Whether the executor's agent stores its own conversation and reports its costs. If an answer has no call, the
   * agent's turn may continue in the next step. @defaultValue false
   */
  readonly isRemote?: boolean;
  /** The tools against which calls are checked. @defaultValue the instance's tools */
  readonly tools?: PreparedTools;
  /** The loop that prepares the steps. @defaultValue none: every step has the instance's settings */
  readonly loop?: StepLoop;
  /**
   * Produces a step's answer. Rejects soon after the signal aborts. @throws {StepFailure} or an error that
   * `toStepError` can convert.
   */
  think(step: Thinking, signal: AbortSignal): Promise<ModelResponse>;
  /** Runs a call. Never rejects, and settles soon after the signal aborts. */
  act(acting: Acting, signal: AbortSignal): ToolOutcome | Promise<ToolOutcome>;
  /**
   * Ends the current step early, to let the model read a message. @defaultValue the message is read by the next step
   */
  nudge?(): void;
  /**
   * Releases the executor's resources after the last step. Never rejects. `suspended`: whether another process will
   * continue the run.
   */
  release?(why: 'ended' | 'suspended'): void | Promise<void>;
}

/**
 * Creates a run's executor. `of`: the relay or engine that does the work. `inner`: the executor that calls the model.
 */
export interface Maker<Of> {
  /** Called once for each run, before its first step in this process. */
  make(run: ExecutorRun, of: Of, inner: Executor): Executor;
}

/**
 * Returns whether a value from an app is an Offstage executor. The ports do not reveal how their executor was created.
 */
export function isMaker<Of>(given: object | undefined): given is Maker<Of> {
  return given !== undefined && 'make' in given && typeof given.make === 'function';
}

/** The failure of a step that another process has run and classified. */
export class StepFailure extends OffstageError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(failed: ReturnType<typeof failure> & { readonly retryAfterMs?: number }) {
    super(failed.code, failed.message);
    this.retryable = failed.retryable;
    this.retryAfterMs = failed.retryAfterMs;
  }
}

/** Creates the executor that calls a model and runs the tools in this process. */
export function modelExecutor({ host, worker, definition }: ExecutorRun): Executor {
  const { environment, journal } = host;
  return {
    think: ({ instance, instructions, messages, final, call, maxOutputTokens, said }, signal) => {
      const { tools } = instance;
      const settings = settingsWithin(call, maxOutputTokens);
      const toolChoice = final ? 'none' : call?.toolChoice;
      return runModelStep({
        caller: { name: definition.name, journal },
        model: modelOf(instance),
        instructions,
        messages,
        tools,
        ...(settings ? { settings } : {}),
        structured: final ? null : formatOf(host, instance),
        ...(toolChoice && tools.modelTools ? { toolChoice } : {}),
        signal,
        said,
        ids: environment.ids,
        clock: environment.clock,
      });
    },
    act: ({ call, entry, idempotencyKey, keepLarge, context, preliminary }, signal) =>
      runToolCall({
        tool: entry,
        callId: call.callId,
        input: call.input,
        raw: call.raw,
        messages: worker.log.messagesBeforeCalls,
        signal,
        // A delegating tool has no time limit here, because its subagent has one.
        timeoutMs: entry.delegates ? undefined : definition.toolTimeout,
        idempotencyKey,
        context: context(),
        environment,
        keepLarge,
        onPreliminary: preliminary,
      }),
  };
}

/** Returns the format of an answer that ends the run, or null for plain text. */
function formatOf(host: Host, { definition, model, tools }: Instance): Structured | null {
  const { outputSchema, completion, structured, name } = definition;
  if (outputSchema === undefined || completion === 'tool' || structured === 'off') return null;
  // Some provider packages use a tool of this name to request JSON.
  if (model === null || tools.execution.has('json')) return null;
  return structuredOutput(model, outputSchema, (error) =>
    host.report(error, `structured output of ${name}: it is asked for in words from now on`),
  );
}

/**
 * Returns the settings for a call, with the output limited to the tokens left in the budget; undefined if none are
 * left.
 */
function settingsWithin(
  given: CallSettings | undefined,
  left: number | undefined,
): ModelSettings | undefined {
  const { toolChoice: _, ...own } = given ?? {};
  const least = Math.min(left ?? Infinity, own.maxOutputTokens ?? Infinity);
  const settings = { ...own, ...(least === Infinity ? {} : { maxOutputTokens: least }) };
  return Object.keys(settings).length > 0 ? settings : undefined;
}
