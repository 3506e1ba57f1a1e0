// Runs one tool call: calls `execute` and returns the outcome, whatever the tool does.
//
// Owns:     the race of the tool against cancellation and its time limit; the conversion of the result (a value, a
//           promise, or an iterable whose last value counts) to JSON of limited size.
// Does not: ask for approval, retry, or record the call.
//
// Invariants
//   TOOL-RUN-1. The call always resolves: if a tool throws, hangs or returns an invalid value, the result is an error.
//   TOOL-RUN-2. The call settles as soon as the signal aborts or the time is up. At that moment, the tool's own signal
//       aborts and a generator is asked to return. The tool's signal aborts with a `TimeoutError`, or with the reason
//       of the caller's signal.
//   TOOL-RUN-3. Output and errors that the tool produces later are ignored and do not cause an unhandled rejection.
//   TOOL-OUTPUT-1. The output is plain JSON; if it is not, the outcome is an error that names the part that is not
//       JSON.
//   TOOL-OUTPUT-2. An output that is too large is cut, and marked with `truncated` and `originalBytes`.

import { convertDataContentToBase64String, type JSONValue, type ModelMessage } from 'ai';
import { z } from 'zod';
import { CancelledError, isA, isError, messageOf, TimeoutError } from '../../values/errors.ts';
import type { Environment } from '../ports/environment.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { head } from '../../values/clip.ts';
import type { ToolEntry } from './tools.ts';
import {
  defaultModelOutput,
  toolError,
  type ToolOutcome,
  type ToolResultOutput,
} from './tool-results.ts';
import { asJson, byteLength, isLongerThan } from '../../values/json.ts';

export interface ToolCallOptions {
  readonly tool: ToolEntry;
  readonly callId: string;
  /** Valid arguments: the `input` of a call from `runModelStep`, or the output from `tool.validate`. */
  readonly input: unknown;
  /** Whether `input` is the model's original input, which must be validated before the call. @defaultValue false */
  readonly raw?: boolean | undefined;
  /** The messages that the model had read when it made the call. */
  readonly messages: readonly ModelMessage[];
  readonly signal: AbortSignal;
  /** The time limit in milliseconds, if the tool has no `timeoutMs` of its own; none by default. */
  readonly timeoutMs?: number | undefined;
  readonly idempotencyKey: string;
  readonly context?: unknown;
  readonly environment: Pick<Environment, 'scheduler'>;
  /** The maximum size, in bytes, of the output and (separately) of its form for the model. @defaultValue 262144 */
  readonly maxOutputBytes?: number;
  /**
   * Stores an output that is too large, and returns the value that replaces it; never rejects. The part `read` is the
   * output of `toModelOutput`. If absent, an output that is too large is truncated.
   */
  readonly keepLarge?: KeepLarge | undefined;
  /** Receives the values that an `async function*` yields before it ends, as JSON and in order; never after the result. */
  readonly onPreliminary?: (output: JSONValue) => void;
  /** Receives the tool's errors that do not affect its result. */
  readonly report?: Report;
}

export type KeepLarge = (
  value: JSONValue,
  part: 'output' | 'read',
  signal: AbortSignal,
) => JSONValue | Promise<JSONValue>;

type Report = (error: unknown, where: string) => void;

/** Runs one call. Always resolves, and does so immediately when the signal aborts. */
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
  // An error that the tool returns is treated as thrown, because its JSON would be `{}`.
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

/**
 * Returns the output as JSON: `keepLarge` may replace a large output; if the output is still too large, it is
 * truncated.
 */
async function keptOutput(
  { keepLarge, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES }: ToolCallOptions,
  returned: unknown,
  signal: AbortSignal,
): Promise<Kept<JSONValue>> {
  const whole = written(returned);
  if (!whole.ok) return whole;
  const { value, text } = whole;
  const kept = keepLarge?.(value, 'output', signal) ?? value;
  const standsForIt = kept instanceof Promise ? await raceAbort(kept, signal) : kept;
  if (standsForIt !== value) return keepOutput(standsForIt, maxOutputBytes);
  return { ok: true, value: shortened(value, text, maxOutputBytes) };
}

/** Replaces the large values in the outcome of a call that another process ran. */
export async function keptElsewhere(
  outcome: ToolOutcome,
  { toModelOutput }: Pick<ToolEntry, 'toModelOutput'>,
  keepLarge: KeepLarge | undefined,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  if (!keepLarge || outcome.status !== 'ok') return outcome;
  const output = await raceAbort(keepLarge(outcome.output, 'output', signal), signal);
  const modelOutput = toModelOutput
    ? await readable({ keepLarge }, outcome.modelOutput, signal)
    : output === outcome.output
      ? outcome.modelOutput
      : defaultModelOutput(output);
  return { ...outcome, output, modelOutput };
}

async function readable(
  { keepLarge }: Pick<ToolCallOptions, 'keepLarge'>,
  output: ToolResultOutput,
  signal: AbortSignal,
): Promise<ToolResultOutput> {
  if (!keepLarge || (output.type !== 'text' && output.type !== 'json')) return output;
  const kept = keepLarge(output.value, 'read', signal);
  const value = kept instanceof Promise ? await raceAbort(kept, signal) : kept;
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

/** Returns the tool's signal, which aborts when the caller's signal aborts or the time is up. */
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
 * Returns the message for a model, worded as in the SDK: an error's name and message, a string unchanged, any other
 * value as JSON.
 */
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

/**
 * Returns the result of a tool; `started` is the return value of `execute`. If `started` is an async iterable or a
 * promise of one, `preliminary` receives each of its values, and the last value is the result. After an abort, the
 * iterable is asked to return, and later values are ignored.
 * @throws the tool's error, or `signal.reason` as soon as the signal aborts.
 */
async function settledOutput(
  started: unknown,
  signal: AbortSignal,
  preliminary: (output: unknown) => void,
): Promise<unknown> {
  // Racing an iterable as a whole would not stop it, so each of its steps is raced.
  const returned = isAsyncIterable(started) ? started : await raceAbort(started, signal);
  return isAsyncIterable(returned) ? lastOf(returned, signal, preliminary) : returned;
}

async function lastOf(
  outputs: AsyncIterable<unknown>,
  signal: AbortSignal,
  preliminary: (output: unknown) => void,
): Promise<unknown> {
  const iterator = outputs[Symbol.asyncIterator]();
  let last: unknown;
  let isDone = false;
  try {
    for (;;) {
      const result = await raceAbort(iterator.next(), signal);
      if (result.done === true) {
        isDone = true;
        return last;
      }
      last = result.value;
      preliminary(last);
    }
  } finally {
    if (!isDone) stopQuietly(iterator);
  }
}

/** Asks an iterable to return, but does not wait for it, because a generator that hangs would never return. */
function stopQuietly(iterator: AsyncIterator<unknown>): void {
  try {
    void Promise.resolve(iterator.return?.()).catch(() => {});
  } catch {
    // The call has already settled, so no caller can receive the error.
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function'
  );
}

/** The default maximum size of an output: about 64 K tokens, more than most models should read from one call. */
export const DEFAULT_MAX_OUTPUT_BYTES = 256 * 1024;

/** The maximum size of content for the model: images and audio are larger than text, and cannot be truncated. */
const MAX_CONTENT_BYTES = 8 * 1024 * 1024;

/** Stands in for an output that was too large. */
export interface Truncated {
  readonly truncated: true;
  /** The size in UTF-8 bytes: of the output itself if it is a string, otherwise of its JSON. */
  readonly originalBytes: number;
  /** The beginning of the output. */
  readonly text: string;
}

interface Refused {
  readonly ok: false;
  readonly message: string;
}

type Kept<T> = { readonly ok: true; readonly value: T } | Refused;

/**
 * Returns a tool's output as JSON of at most `maxBytes`. If the output is not JSON, the error message names the part
 * that is not.
 */
export function keepOutput(output: unknown, maxBytes: number): Kept<JSONValue> {
  const whole = written(output);
  return whole.ok ? { ok: true, value: shortened(whole.value, whole.text, maxBytes) } : whole;
}

/** Returns a tool's output as JSON, together with the text whose size is measured. */
function written(
  output: unknown,
): { readonly ok: true; readonly value: JSONValue; readonly text: string } | Refused {
  if (typeof output === 'string') return { ok: true, value: output, text: output };
  const json = asJson(output);
  return json.ok ? json : { ok: false, message: `returned what is not JSON: ${json.message}` };
}

function shortened(value: JSONValue, text: string, maxBytes: number): JSONValue {
  return isLongerThan(text, maxBytes) ? cut(text, maxBytes) : value;
}

const outputSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.enum(['text', 'error-text']), value: z.string() }),
  z.looseObject({ type: z.enum(['json', 'error-json']), value: z.unknown() }),
  z.looseObject({
    type: z.literal('content'),
    value: z.array(z.looseObject({ type: z.string() })),
  }),
  z.looseObject({ type: z.literal('execution-denied'), reason: z.string().optional() }),
]);

/** Checks the result of `toModelOutput`: converts bytes to base64, and limits the size. */
function keepModelOutput(converted: unknown, maxBytes: number): Kept<ToolResultOutput> {
  const checked = outputSchema.safeParse(converted);
  if (!checked.success)
    return {
      ok: false,
      message: `toModelOutput gave no tool result output: ${z.prettifyError(checked.error)}`,
    };
  const json = asJson(checked.data, bytesAsBase64);
  if (!json.ok)
    return { ok: false, message: `toModelOutput gave what is not JSON: ${json.message}` };
  const value = json.value as ToolResultOutput;
  if (!isLongerThan(json.text, value.type === 'content' ? MAX_CONTENT_BYTES : maxBytes))
    return { ok: true, value };
  switch (value.type) {
    case 'content':
      return {
        ok: false,
        message: `toModelOutput gave ${byteLength(json.text)} bytes of content, more than ${MAX_CONTENT_BYTES}`,
      };
    case 'execution-denied':
      return { ok: true, value: { type: 'execution-denied' } };
    case 'text':
    case 'json':
      return { ok: true, value: { type: 'json', value: cutValue(value.value, maxBytes) } };
    case 'error-text':
    case 'error-json':
      return { ok: true, value: { type: 'error-json', value: cutValue(value.value, maxBytes) } };
  }
}

function cutValue(value: JSONValue, maxBytes: number): JSONValue {
  return cut(typeof value === 'string' ? value : JSON.stringify(value), maxBytes);
}

function cut(text: string, maxBytes: number): JSONValue {
  const originalBytes = byteLength(text);
  let characters = maxBytes;
  // The number of characters that quoting adds depends on the text, so the length is reduced until the JSON fits.
  for (;;) {
    const truncated = { truncated: true, originalBytes, text: head(text, characters) } as const;
    if (characters === 0 || !isLongerThan(JSON.stringify(truncated), maxBytes))
      return truncated satisfies Truncated;
    characters = Math.floor(characters / 2);
  }
}

function bytesAsBase64(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // `JSON.stringify` has already called the `toJSON` of a Buffer, so the original value is read from the parent object.
  const original = this[key];
  return original instanceof Uint8Array || original instanceof ArrayBuffer
    ? convertDataContentToBase64String(original)
    : value;
}
