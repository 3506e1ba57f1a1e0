// Who does the steps of a subagent: a model (here), an agent of the AI SDK (agent-loop.ts), an agent of somebody else
// (relay-loop.ts), an engine (step-jobs.ts). A run has one executor; the definition, or the engine, brings those that are
// no model.
//
// Owns:     the port, and the executor that asks a model and runs tools in this process.
// Does not: retry, pay, judge calls, or report what a step led to (subagent-work.ts).

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

/** The subagent whose work it is. */
export interface Worker extends SubagentHandle {
  readonly log: SubagentLog;
  /** The question under way, and the call that asks it; null: it does not wait for one. */
  readonly openQuestion: { readonly requestId: string; readonly callId: string } | null;
  receive(event: SubagentUnitEvent): void;
}

/** The run that an executor works for. */
export interface ExecutorRun {
  readonly host: Host;
  readonly worker: Worker;
  /** Its own definition: that of the instance. */
  readonly definition: SubagentDefinition;
  /** The name of the subagent in the whole journal. */
  readonly path: string;
  readonly progressed: (text: string) => void;
  /** Takes back the question that this call asks: nobody waits for the answer. */
  readonly withdrawn: (callId: string, reason: string) => void;
  /** Reports a sign of life. */
  readonly alive: () => void;
  /** True: what was begun goes on when its signal aborts, for the process that takes the session up. */
  readonly isLeft: () => boolean;
  /** Returns the span of the work under way, for whoever does it elsewhere; null: nobody traces. */
  readonly traceOf: (part?: TracedWork['part']) => TraceContext | null;
}

/** The settings of one step. */
export interface PreparedStep {
  readonly instance: Instance;
  readonly messages: readonly ModelMessage[];
  /** @defaultValue none */
  readonly call?: CallSettings;
  /** Only a result is expected: the error of an answer that calls tools. @defaultValue calls are expected */
  readonly violation?: ReturnType<typeof failure> | null;
}

/** One attempt at a step. */
export interface Thinking extends PreparedStep {
  readonly step: number;
  /** Counts the attempts, from 1. */
  readonly attempt: number;
  readonly instructions: string;
  /** No tool may be called: the words are the end of the run. */
  readonly final: boolean;
  readonly maxOutputTokens: number | undefined;
  /** Gets the words as they come; absent: nobody reads them. */
  readonly said: ((delta: Delta) => void) | undefined;
}

/** One call of a step, to be run. */
export interface Acting {
  readonly step: number;
  readonly call: ModelCall;
  readonly entry: ToolEntry;
  readonly idempotencyKey: string;
  readonly keepLarge: KeepLarge | undefined;
  /** Returns who calls, as its tool is told. */
  readonly caller: () => Caller;
  /** Returns the `context` of its tool. */
  readonly context: () => unknown;
  readonly preliminary: (output: JSONValue) => void;
  /** Reports that nobody knows whether it was done. Returns what the model reads of it. */
  readonly inDoubt: () => ToolOutcome;
}

/** Prepares the steps of an agent of the AI SDK, and has the contexts of its tools. */
export interface StepLoop {
  readonly runtimeContext: Readonly<Record<string, unknown>>;
  toolsContext(own: SubagentDefinition['toolsContext']): typeof own;
  prepare(instance: Instance, log: SubagentLog, signal: AbortSignal): Promise<PreparedStep>;
}

/** Does the steps of one run. */
export interface Executor {
  /**
   * True for an agent that keeps its conversation and reports its own costs; its answer without a call may go on in the
   * next step. @defaultValue false
   */
  readonly isRemote?: boolean;
  /** The tools by which its calls are judged. @defaultValue those of the instance */
  readonly tools?: PreparedTools;
  /** @defaultValue none: every step is as the instance has it */
  readonly loop?: StepLoop;
  /** Makes the answer of a step. Rejects soon after the signal aborts. @throws {StepFailure} or what `toStepError` reads. */
  think(step: Thinking, signal: AbortSignal): Promise<ModelResponse>;
  /** Runs a call. Never rejects, and settles soon after the signal aborts. */
  act(acting: Acting, signal: AbortSignal): ToolOutcome | Promise<ToolOutcome>;
  /** Lets the step under way end, so that a message is read. @defaultValue the next step reads it */
  nudge?(): void;
  /** Lets go of what it holds, after the last step. Never rejects. `suspended`: another process goes on. */
  release?(why: 'ended' | 'suspended'): void | Promise<void>;
}

/** Makes the executor of a run, for whoever brings one: `of` is the relay, or the engine. `inner` asks the model. */
export interface Maker<Of> {
  make(run: ExecutorRun, of: Of, inner: Executor): Executor;
}

/** Tells whether a value that an app gives is one of ours: its port does not know what an executor is. */
export function isMaker<Of>(given: object | undefined): given is Maker<Of> {
  return given !== undefined && 'make' in given && typeof given.make === 'function';
}

/** A step that failed elsewhere, and was classified there. */
export class StepFailure extends OffstageError {
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(failed: ReturnType<typeof failure> & { readonly retryAfterMs?: number }) {
    super(failed.code, failed.message);
    this.retryable = failed.retryable;
    this.retryAfterMs = failed.retryAfterMs;
  }
}

/** Asks a model, and runs the tools in this process. */
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
        // A child limits its own time.
        timeoutMs: entry.delegates ? undefined : definition.toolTimeout,
        idempotencyKey,
        context: context(),
        environment,
        keepLarge,
        onPreliminary: preliminary,
      }),
  };
}

/** Returns the format of an answer that ends the run; null: plain words. */
function formatOf(host: Host, { definition, model, tools }: Instance): Structured | null {
  const { outputSchema, completion, structured, name } = definition;
  if (outputSchema === undefined || completion === 'tool' || structured === 'off') return null;
  // The packages of some providers ask for JSON with a tool of this name.
  if (model === null || tools.execution.has('json')) return null;
  return structuredOutput(model, outputSchema, (error) =>
    host.report(error, `structured output of ${name}: it is asked for in words from now on`),
  );
}

/** Returns the settings of a call, within the tokens that a budget has left; undefined: none. */
function settingsWithin(
  given: CallSettings | undefined,
  left: number | undefined,
): ModelSettings | undefined {
  const { toolChoice: _, ...own } = given ?? {};
  const least = Math.min(left ?? Infinity, own.maxOutputTokens ?? Infinity);
  const settings = { ...own, ...(least === Infinity ? {} : { maxOutputTokens: least }) };
  return Object.keys(settings).length > 0 ? settings : undefined;
}
