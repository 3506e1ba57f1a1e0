// One tool call: runs `execute`, and says what came of it, whatever the tool does.
//
// Owns:     the race of the tool against cancellation and its time, and its result as JSON.
// Does not: ask for approval (it says whether one is needed), try again, or record anything.
//
// Invariants
//   TOOL-RUN-1. It always resolves: a tool that throws, hangs or returns nonsense is an error result.
//   TOOL-RUN-2. It settles as soon as the signal aborts or the time is up; the tool's own signal
//       aborts at the same moment, and a generator is told to return. The signal's reason says
//       what happened: a `TimeoutError`, or the reason of the signal that it was given.
//   TOOL-RUN-3. Whatever a tool does after that is neither heard nor an unhandled rejection.
//   TOOL-RUN-4. An approval is needed whenever it is not certain that none is.

import type { JSONValue, ModelMessage } from 'ai';
import { CancelledError, isA, isError, messageOf, TimeoutError } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import { raceAbort } from '../runtime/race-abort.ts';
import { clip } from '../../values/clip.ts';
import { settledOutput } from './settled-output.ts';
import {
  DEFAULT_MAX_OUTPUT_BYTES,
  defaultModelOutput,
  keepModelOutput,
  keepOutput,
  type Kept,
  type ToolResultOutput,
} from './tool-output.ts';
import type { ToolEntry } from './tools.ts';

export interface ToolCallOptions {
  readonly tool: ToolEntry;
  readonly callId: string;
  /** Valid arguments: `input` of a call of `runModelStep`, or what `tool.validate` made of them. */
  readonly input: unknown;
  /** `input` is as the model wrote it and goes through the schema first. @defaultValue false */
  readonly raw?: boolean | undefined;
  /** What the model had read when it called. */
  readonly messages: readonly ModelMessage[];
  readonly signal: AbortSignal;
  /** Milliseconds the call may take, where the tool has no `timeoutMs` of its own; none by default. */
  readonly timeoutMs?: number | undefined;
  readonly idempotencyKey: string;
  readonly context?: unknown;
  readonly environment: Pick<Environment, 'scheduler'>;
  /** Of the output, and again of what the model reads of it. @defaultValue 262144 */
  readonly maxOutputBytes?: number;
  /**
   * Puts what is too large to be read elsewhere, and gives what stands for it; never rejects.
   * `read`: what `toModelOutput` made for the model. Without it everything is only cut.
   */
  readonly keepLarge?:
    | ((value: JSONValue, part: 'output' | 'read', signal: AbortSignal) => Promise<JSONValue>)
    | undefined;
  /** What an `async function*` yields before it ends, as JSON; called in order, never after the result. */
  readonly onPreliminary?: (output: JSONValue) => void;
  /** Learns of what is wrong with the tool beside its result. */
  readonly report?: Report;
}

type Report = (error: unknown, where: string) => void;

/** Plain JSON. `modelOutput` is what the model reads. */
export type ToolOutcome =
  | {
      readonly status: 'ok';
      /** What `execute` returned; undefined is null. `Truncated` if it was too large. */
      readonly output: JSONValue;
      readonly modelOutput: ToolResultOutput;
    }
  | {
      readonly status: 'error';
      readonly error: { readonly message: string; readonly code?: ToolErrorCode };
      readonly modelOutput: ToolResultOutput;
    };

/** `FAILED`: it threw. `INVALID_OUTPUT`: it was run, and its result cannot be kept. */
export type ToolErrorCode =
  | 'FAILED'
  | 'TIMEOUT'
  | 'CANCELLED'
  | 'INVALID_INPUT'
  | 'INVALID_OUTPUT'
  | 'NOT_EXECUTABLE'
  /** There was no consent to it. */
  | 'DENIED'
  /** The process ended while it was being run: whether it was done is not known. */
  | 'NEEDS_RECONCILE';

/** Runs one call. Resolves, always, and at once when the signal aborts. */
export async function runToolCall(options: ToolCallOptions): Promise<ToolOutcome> {
  const { signal } = options;
  if (signal.aborted) return toolError(cancelledMessage(signal.reason), 'CANCELLED');
  const span = beginSpan(options);
  try {
    return await run(options, span.signal);
  } catch (error) {
    if (signal.aborted) return toolError(cancelledMessage(signal.reason), 'CANCELLED');
    if (span.signal.aborted) return toolError(messageOf(span.signal.reason), 'TIMEOUT');
    return toolError(thrownMessage(error), 'FAILED');
  } finally {
    span.end();
  }
}

async function run(options: ToolCallOptions, abortSignal: AbortSignal): Promise<ToolOutcome> {
  const { tool, callId, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  if (!tool.execute) return toolError(`Tool "${tool.name}" has no execute`, 'NOT_EXECUTABLE');
  let { input } = options;
  if (options.raw === true) {
    const validated = await raceAbort(tool.validate(input), abortSignal);
    if (!validated.ok) return toolError(validated.message, 'INVALID_INPUT');
    input = validated.value;
  }
  const { messages, context, idempotencyKey } = options;
  const returned = await settledOutput(
    tool.execute(input, { toolCallId: callId, messages, abortSignal, context, idempotencyKey }),
    abortSignal,
    (output) => tellPreliminary(options, output),
  );
  // As a throw would be: nobody means `{}`, the JSON of an error.
  if (returned instanceof Error) return toolError(thrownMessage(returned), 'FAILED');
  const kept = await keptOutput(options, returned, abortSignal);
  if (!kept.ok) return invalidOutput(tool, kept.message);
  if (!tool.toModelOutput)
    return { status: 'ok', output: kept.value, modelOutput: defaultModelOutput(kept.value) };
  const converted = tool.toModelOutput({ toolCallId: callId, input, output: returned });
  const modelOutput = keepModelOutput(await raceAbort(converted, abortSignal), maxOutputBytes);
  if (!modelOutput.ok) return invalidOutput(tool, modelOutput.message);
  const read = await readable(options, modelOutput.value, abortSignal);
  return { status: 'ok', output: kept.value, modelOutput: read };
}

/** As JSON: what is too large is put elsewhere first, if there is somewhere, and cut then. */
async function keptOutput(
  { keepLarge, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES }: ToolCallOptions,
  returned: unknown,
  signal: AbortSignal,
): Promise<Kept<JSONValue>> {
  if (!keepLarge) return keepOutput(returned, maxOutputBytes);
  const whole = keepOutput(returned, Number.POSITIVE_INFINITY);
  if (!whole.ok) return whole;
  const standsForIt = await raceAbort(keepLarge(whole.value, 'output', signal), signal);
  return keepOutput(standsForIt, maxOutputBytes);
}

async function readable(
  { keepLarge }: ToolCallOptions,
  output: ToolResultOutput,
  signal: AbortSignal,
): Promise<ToolResultOutput> {
  if (!keepLarge || (output.type !== 'text' && output.type !== 'json')) return output;
  const value = await raceAbort(keepLarge(output.value, 'read', signal), signal);
  return value === output.value ? output : { type: 'json', value };
}

function tellPreliminary(options: ToolCallOptions, output: unknown): void {
  const { callId, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, onPreliminary, report } = options;
  if (!onPreliminary) return;
  const kept = keepOutput(output, maxOutputBytes);
  if (!kept.ok) {
    report?.(new Error(`A preliminary output ${kept.message}`), `tool call ${callId}`);
    return;
  }
  try {
    onPreliminary(kept.value);
  } catch (error) {
    report?.(error, `onPreliminary of tool call ${callId}`);
  }
}

function invalidOutput(tool: ToolEntry, message: string): ToolOutcome {
  return toolError(`Tool "${tool.name}" ${message}`, 'INVALID_OUTPUT');
}

/** The signal that the tool gets, which also aborts when its time is up. */
function beginSpan(options: ToolCallOptions): { readonly signal: AbortSignal; end(): void } {
  const { tool, signal, environment } = options;
  const timeoutMs = tool.timeoutMs ?? options.timeoutMs;
  if (timeoutMs === undefined) return { signal, end() {} };
  const controller = new AbortController();
  const cancel = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', cancel, { once: true });
  const untimer = environment.scheduler.schedule(() => {
    const message = `Tool "${tool.name}" timed out after ${timeoutMs} ms`;
    controller.abort(new TimeoutError(message));
  }, timeoutMs);
  return {
    signal: controller.signal,
    end() {
      untimer();
      signal.removeEventListener('abort', cancel);
    },
  };
}

/**
 * Does this call need the user's consent? Resolves, always: a predicate that throws means
 * yes and is reported, an abort means yes too.
 */
export async function approvalNeeded(
  tool: ToolEntry,
  input: unknown,
  options: {
    readonly callId: string;
    readonly messages: readonly ModelMessage[];
    /** `input` is as the model wrote it. @defaultValue false */
    readonly raw?: boolean | undefined;
    readonly context?: unknown;
    readonly signal?: AbortSignal;
    readonly report?: Report;
  },
): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval === 'boolean') return needsApproval;
  const { callId: toolCallId, messages, raw, context, signal, report } = options;
  const ask = async (): Promise<boolean> => {
    const validated =
      raw === true ? await tool.validate(input) : { ok: true as const, value: input };
    if (!validated.ok) return true;
    return Boolean(await needsApproval(validated.value, { toolCallId, messages, context }));
  };
  try {
    return await (signal ? raceAbort(ask(), signal) : ask());
  } catch (error) {
    if (signal?.aborted !== true) report?.(error, `needsApproval of tool ${tool.name}`);
    return true;
  }
}

const MAX_ERROR_CHARACTERS = 8000;

/** An error result: a call that was not run, or failed. */
export function toolError(message: string, code: ToolErrorCode): ToolOutcome {
  const value = clip(message, MAX_ERROR_CHARACTERS);
  return {
    status: 'error',
    error: { message: value, code },
    modelOutput: { type: 'error-text', value },
  };
}

/** The result of a call that nobody consents to. */
export function toolDenied(reason: string): ToolOutcome {
  return {
    status: 'error',
    error: { message: reason, code: 'DENIED' },
    modelOutput: { type: 'execution-denied', reason },
  };
}

/** As the SDK tells a model: name and message of an error, a string as it is, anything else as JSON. */
function thrownMessage(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return 'unknown error';
  if (!isError(thrown)) return messageOf(thrown);
  try {
    return String(thrown);
  } catch {
    return 'an error that cannot be written as text';
  }
}

function cancelledMessage(reason: unknown): string {
  return isA(reason, CancelledError) ? reason.message : `Cancelled: ${messageOf(reason)}`;
}
