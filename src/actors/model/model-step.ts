// One step of a subagent's loop: one model call. The tools have no `execute`: the answer contains the calls, and the
// runtime runs them.
//
// Owns:     the call to the AI SDK, the selection of the parts of the answer to store, and the classification of
//           errors: a stable code, and whether a retry may help.
// Does not: run tools, ask for approvals, retry, or decide the next step.
//
// Invariants
//   MODEL-STEP-1. The step settles as soon as the signal aborts, even if the model does not.
//   MODEL-STEP-2. After an abort, the step never resolves, and an answer that still arrives is discarded.
//   MODEL-STEP-3. The response is plain JSON and contains no wall clock time or random values.
//   MODEL-STEP-4. An invalid call (unknown tool, arguments that do not match) is returned with a message for the model;
//       it never fails the step.
//   MODEL-STEP-5. Any provider accepts the response's messages in a later prompt: arguments are an object, and blank
//       texts are removed unless the provider attached metadata to them.

import {
  APICallError,
  EmptyResponseBodyError,
  generateText,
  InvalidArgumentError,
  InvalidMessageRoleError,
  InvalidPromptError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  LoadSettingError,
  MessageConversionError,
  MissingToolResultsError,
  NoContentGeneratedError,
  NoSuchModelError,
  RetryError,
  ToolChoiceViolationError,
  TypeValidationError,
  UnsupportedFunctionalityError,
  type AssistantContent,
  type FinishReason,
  type LanguageModel,
  type LanguageModelCallOptions,
  type ModelMessage,
  type ProviderMetadata,
  type ToolChoice,
  type ToolSet,
} from 'ai';
import type { CallInput } from '../contracts/records.ts';
import type { ModelCalls, ModelNames, Usage } from '../contracts/usage.ts';
import { type Consent } from './approval.ts';
import type { Clock, Environment, Ids } from '../ports/environment.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { propertiesOf, callKey, isJson } from '../../values/json.ts';
import { directStep, type StepRead } from './direct-step.ts';
import { carefulModel, resolveModel, type Delta, type Structured } from './model.ts';
import { suitedModel } from './provider-prompt.ts';
import { invalidCallMessage } from './schema.ts';
import { namesOf, useOf } from './price.ts';
import { telemetryOf, telemetryOff, type ModelCaller } from './telemetry.ts';
import { prepareTools, type PreparedTools } from './tools.ts';
import { isA, isError, messageOf, OffstageError, ProviderError } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';

type GenerateOptions = Parameters<typeof generateText>[0];

/** Model settings apart from the messages. */
export interface ModelSettings extends LanguageModelCallOptions {
  readonly headers?: Record<string, string | undefined>;
  readonly providerOptions?: GenerateOptions['providerOptions'];
  readonly repairToolCall?: GenerateOptions['repairToolCall'];
}

export interface ModelStepOptions {
  readonly caller: ModelCaller;
  readonly model: LanguageModel;
  /** The system prompt; empty if there is none. */
  readonly instructions: string;
  /** At least one message; every call in the messages has a result. */
  readonly messages: readonly ModelMessage[];
  readonly tools: PreparedTools;
  readonly toolChoice?: ToolChoice<ToolSet>;
  readonly signal: AbortSignal;
  readonly settings?: ModelSettings;
  readonly ids: Ids;
  /** If set, the model streams, and `said` receives each delta as it arrives. */
  readonly said?: ((delta: Delta) => void) | undefined;
  /** The format of the answer, if the provider accepts it. */
  readonly structured?: Structured | null;
  /** The clock for the times in the SDK's telemetry; the response contains no times. */
  readonly clock?: Clock;
}

/** A tool call that the runtime must answer. */
export interface ModelCall extends CallInput {
  readonly callId: string;
  readonly toolName: string;
  /** A digest of the input schema, for a call that is waiting for approval. */
  readonly form?: string;
  /** Set if the call must not run; the message is its result. */
  readonly invalid?: { readonly message: string };
  /** Set for a call that needs approval, once it has been decided. */
  readonly consent?: Exclude<Consent, 'not_needed'>;
  /** The user pressed the button that permits the tool for this call and later ones. */
  readonly lasting?: true;
  /** If the approval is `lasting`: the question whose answer was the approval. */
  readonly approvalId?: string;
  /** For an approval: the same as in `AskedQuestion`. */
  readonly mayDiffer?: false | readonly string[];
  /** The author's reason for asking or denying. */
  readonly reason?: string;
  /** The author's question for an approval. @defaultValue the runtime's question */
  readonly question?: string;
  /**
   * If the author has no question for the approval: a description of what the tool does, from its title or description.
   */
  readonly about?: string;
  /** The identities that may answer the question or the approval. */
  readonly answerableBy?: readonly string[];
  /** The engine (`Jobs.name`) that runs the call as a job; absent if this process runs it. */
  readonly job?: string;
}

export interface ModelResponse {
  readonly text: string;
  readonly reasoning?: string;
  /** The messages to append; they contain the same calls as `calls`, in the same order. */
  readonly assistantMessages: readonly ModelMessage[];
  /** Empty when the model has finished. Excludes calls that the provider executed. */
  readonly calls: readonly ModelCall[];
  /** With `length`, calls may be incomplete and must not run. */
  readonly finish: FinishReason;
  readonly usage: Usage;
  /**
   * The model that was called. Absent if an agent behind a relay answered, or if the answer comes from an earlier
   * version.
   */
  readonly model?: ModelNames;
  /** The call's duration in milliseconds, measured by the process that made it. Absent if it was not measured. */
  readonly tookMs?: number;
  readonly providerMetadata?: ProviderMetadata;
}

/** Returns why an answer without calls is unusable; null if it is usable. */
export function unusable({ finish, text }: ModelResponse): ReturnType<typeof failure> | null {
  if (finish === 'length')
    return failure('OUTPUT_TRUNCATED', 'The model stopped at its length limit', true);
  if (finish === 'content-filter')
    return failure('CONTENT_FILTER', 'The provider filtered the answer', false);
  if (finish === 'error') return failure('MODEL_ERROR', 'The model ended with an error', true);
  if (text.trim() === '') return failure('EMPTY_OUTPUT', 'The model ended without a word', true);
  return null;
}

export function failure(code: string, message: string, retryable: boolean) {
  return { code, message, retryable };
}

/**
 * Calls the model once, without retries. Pass an error to `toStepError` to classify it.
 * @throws `signal.reason` once the signal aborts, or the error of the model or of the SDK.
 */
export async function runModelStep(options: ModelStepOptions): Promise<ModelResponse> {
  const { signal, messages, instructions, ids, clock, settings } = options;
  signal.throwIfAborted();
  let written: Answered = [];
  const model = carefulModel(suitedModel(resolveModel(options.model)), {
    messages,
    ids,
    clock,
    said: options.said,
    structured: options.structured,
    answered: (content) => {
      written = content;
    },
  });
  const telemetry = telemetryOf(options.caller);
  const { toolChoice } = options;
  const { modelTools: tools } = options.tools;
  const bySdk = async (chosen: LanguageModel): Promise<StepRead> => {
    const { finalStep } = await generateText({
      ...settings,
      model: chosen,
      instructions: instructions === '' ? undefined : instructions,
      // The SDK does not modify the array, although its type would allow it.
      messages: messages as ModelMessage[],
      tools,
      toolChoice,
      maxRetries: 0,
      abortSignal: signal,
      telemetry: telemetry ?? telemetryOff,
      _internal: sources(telemetry !== null, ids, clock),
    });
    return finalStep;
  };
  const { maxOutputTokens, ...others } = settings ?? {};
  const isDirect = telemetry === null && Object.keys(others).length === 0;
  const asked = { instructions, messages, tools, toolChoice, maxOutputTokens, signal };
  const step = await raceAbort(isDirect ? directStep(model, asked, bySdk) : bySdk(model), signal);
  // The signal may have aborted after the model call won the race.
  signal.throwIfAborted();
  return { ...toResponse(step, written), model: namesOf(model) };
}

/** A question to a model, outside any conversation. */
interface ModelQuestion {
  /** The name of the asking agent. */
  readonly caller: string;
  readonly model: LanguageModel;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly environment: Pick<Environment, 'ids' | 'clock'>;
  readonly signal: AbortSignal;
  /** The format of the answer, if the provider accepts it. @defaultValue none */
  readonly structured?: Structured | null;
  /** The account to which the call is charged. @defaultValue none: the call is not charged */
  readonly calls?: ModelCalls | undefined;
}

/**
 * Asks a model one question, without tools or retries. Returns the text of the answer.
 * @throws {OffstageError} `modelError`; or `signal.reason`.
 */
export async function askModel(question: ModelQuestion): Promise<string> {
  const { environment, caller: name, calls, ...rest } = question;
  const beganAt = environment.clock.now();
  const { text, usage } = await runModelStep({
    ...rest,
    caller: { name, ...(calls && { journal: calls }) },
    tools: prepareTools({}, 'tools'),
    ids: environment.ids,
    clock: environment.clock,
  }).catch((error: unknown) => {
    throw rest.signal.aborted ? error : modelError(error);
  });
  const { model, structured: _, ...asked } = rest;
  calls?.used(useOf(model, name, usage, { ...asked, written: text }, beganAt));
  return text;
}

/**
 * Returns the sources of ids and times for the SDK. Only telemetry uses these ids and times; without telemetry, they
 * are constants.
 */
function sources(isTelemetryOn: boolean, ids: Ids, clock: Clock | undefined): Sources {
  if (!isTelemetryOn) return unobserved;
  return {
    generateId: () => ids.next('response'),
    generateCallId: () => ids.next('step'),
    ...(clock ? { now: () => clock.now() } : {}),
  };
}

type Sources = NonNullable<GenerateOptions['_internal']>;

const unobserved: Sources = {
  generateId: () => 'response',
  generateCallId: () => 'step',
  now: () => 0,
};

type AssistantPart = Exclude<AssistantContent, string>[number];
type Answered = Parameters<Parameters<typeof carefulModel>[1]['answered']>[0];

function toResponse(step: StepRead, written: Answered): ModelResponse {
  const calls: ModelCall[] = [];
  for (const part of step.content)
    if (part.type === 'tool-call' && part.providerExecuted !== true)
      calls.push(toCall(part, written));
  const { reasoningText, providerMetadata } = step;
  return {
    text: step.text,
    ...(reasoningText === undefined ? {} : { reasoning: reasoningText }),
    assistantMessages: assistantMessages(step, calls),
    calls,
    finish: step.finishReason,
    usage: toUsage(step.usage),
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
  };
}

function toCall(
  part: Extract<StepRead['content'][number], { type: 'tool-call' }>,
  written: Answered,
): ModelCall {
  const { toolCallId: callId, toolName, input } = part;
  if (part.invalid === true)
    return { callId, toolName, input, invalid: { message: invalidCallMessage(part.error) } };
  return { callId, toolName, ...callInput(toolName, writtenInput(callId, written), input) };
}

/** Compares a call's arguments before and after the schema was applied, and returns both if they differ. */
export function callInput(toolName: string, given: unknown, input: unknown): CallInput {
  if (!isJson(input)) return { input: given, raw: true };
  const isSame = callKey(toolName, given) === callKey(toolName, input);
  return { input, ...(isSame ? {} : { given }) };
}

/**
 * Returns the arguments in the form in which the model wrote them. `JSON.parse` does not fail here, because the SDK has
 * already parsed them.
 */
function writtenInput(callId: string, written: Answered): unknown {
  for (const part of written)
    if (part.type === 'tool-call' && part.toolCallId === callId && part.input.trim() !== '')
      return JSON.parse(part.input) as unknown;
  return {};
}

function assistantMessages(step: StepRead, calls: readonly ModelCall[]): ModelMessage[] {
  // The call and the message that contains it share one input object. An invalid call receives no input.
  const inputs = new Map(
    calls.flatMap((call) => (call.invalid ? [] : [[call.callId, call.input]])),
  );
  const messages: ModelMessage[] = [];
  // The SDK adds results for invalid calls, but the runtime answers those itself.
  for (const message of step.response.messages) {
    if (message.role !== 'assistant' || typeof message.content === 'string') continue;
    const content = message.content.filter(isRepeatable).map((part) => {
      const kept = withoutUndefined(part);
      if (kept.type !== 'tool-call') return kept;
      const { toolCallId } = kept;
      const input = inputs.has(toolCallId) ? inputs.get(toolCallId) : kept.input;
      return { ...kept, input: propertiesOf(input) };
    });
    messages.push({ role: 'assistant', content });
  }
  return messages;
}

/** Some providers refuse white space before a call, even if they wrote it themselves. */
function isRepeatable(part: AssistantPart): boolean {
  return part.type !== 'text' || part.providerOptions !== undefined || part.text.trim() !== '';
}

export function toUsage({
  inputTokens = 0,
  outputTokens = 0,
  totalTokens = inputTokens + outputTokens,
  inputTokenDetails: { cacheReadTokens: cachedInputTokens, cacheWriteTokens },
  outputTokenDetails: { reasoningTokens },
}: StepRead['usage']): Usage {
  return withoutUndefined({
    inputTokens,
    outputTokens,
    totalTokens,
    cachedInputTokens,
    cacheWriteTokens,
    reasoningTokens,
  });
}

export interface StepError {
  /**
   * `RATE_LIMITED`, `PROVIDER_UNAVAILABLE`, `PROVIDER_TIMEOUT`, `CONNECTION_LOST`,
   * `PROVIDER_UNAUTHORIZED`, `PROVIDER_REFUSED`, `MALFORMED_RESPONSE`, `NO_SUCH_MODEL`,
   * `INVALID_PROMPT`, `UNSUPPORTED`, `TOOL_CHOICE_VIOLATION`, `ABORTED`, `MODEL_ERROR`, or
   * the code of an Offstage error.
   */
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  /** The delay that the provider requests, in milliseconds. */
  readonly retryAfterMs?: number;
}

interface Kind {
  readonly code: string;
  readonly retryable: boolean;
  readonly classes: readonly { isInstance(error: unknown): boolean }[];
}

const kinds: readonly Kind[] = [
  { code: 'NO_SUCH_MODEL', retryable: false, classes: [NoSuchModelError] },
  {
    code: 'PROVIDER_UNAUTHORIZED',
    retryable: false,
    classes: [LoadAPIKeyError, LoadSettingError],
  },
  {
    code: 'INVALID_PROMPT',
    retryable: false,
    classes: [
      InvalidPromptError,
      InvalidArgumentError,
      InvalidMessageRoleError,
      MessageConversionError,
      MissingToolResultsError,
    ],
  },
  {
    code: 'UNSUPPORTED',
    retryable: false,
    classes: [UnsupportedFunctionalityError],
  },
  // If asked again, the model may comply.
  { code: 'TOOL_CHOICE_VIOLATION', retryable: true, classes: [ToolChoiceViolationError] },
  {
    code: 'MALFORMED_RESPONSE',
    retryable: true,
    classes: [
      EmptyResponseBodyError,
      InvalidResponseDataError,
      JSONParseError,
      NoContentGeneratedError,
      TypeValidationError,
    ],
  },
];

/** Node's codes for a connection that failed or was lost. */
const connectionCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const MAX_MESSAGE_CHARACTERS = 1000;

/**
 * Converts any thrown value to a `StepError`; never throws. If the error states whether it is retryable, this value is
 * used.
 */
export function toStepError(thrown: unknown): StepError {
  try {
    return read(thrown);
  } catch {
    // The thrown value is a Proxy, or one of its getters throws.
    const message = clip(messageOf(thrown), MAX_MESSAGE_CHARACTERS);
    return { code: 'MODEL_ERROR', message, retryable: false };
  }
}

/**
 * Returns the error of a model call as an error with a code: an `OffstageError` unchanged, any other error as the
 * `cause` of a `ProviderError`.
 */
export function modelError(thrown: unknown): OffstageError {
  if (isA(thrown, OffstageError)) return thrown;
  const { code, message, retryable } = toStepError(thrown);
  return new ProviderError(code, message, { cause: thrown, retryable });
}

function read(thrown: unknown): StepError {
  if (RetryError.isInstance(thrown)) return read(thrown.lastError);
  const message = clip(messageOf(thrown), MAX_MESSAGE_CHARACTERS);
  if (isA(thrown, OffstageError))
    return {
      code: thrown.code,
      message,
      retryable: isA(thrown, ProviderError) && thrown.retryable,
    };
  if (isCallError(thrown)) return fromCallError(thrown, message);
  const said = saidInStream(thrown);
  if (said) return said;
  if (isError(thrown)) {
    // The SDK's message contains terminal colours and a link.
    if (thrown.name === 'GatewayAuthenticationError' || thrown.name === 'GatewayError')
      return {
        code: 'PROVIDER_UNAUTHORIZED',
        message:
          'The AI gateway refused: set AI_GATEWAY_API_KEY, or pass the model of a provider instead of a string',
        retryable: false,
      };
    if (thrown.name === 'TimeoutError')
      return { code: 'PROVIDER_TIMEOUT', message, retryable: true };
    if (thrown.name === 'AbortError') return { code: 'ABORTED', message, retryable: true };
    if (isConnectionError(thrown)) return { code: 'CONNECTION_LOST', message, retryable: true };
  }
  const kind = kinds.find(({ classes }) => classes.some((of) => of.isInstance(thrown)));
  return { code: kind?.code ?? 'MODEL_ERROR', message, retryable: kind?.retryable ?? false };
}

/** An APICallError, or an error of the gateway whose class `ai` does not export. */
interface CallError {
  readonly isRetryable: boolean;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

function isCallError(thrown: unknown): thrown is CallError {
  if (APICallError.isInstance(thrown)) return true;
  return isError(thrown) && 'isRetryable' in thrown && typeof thrown.isRetryable === 'boolean';
}

/**
 * Reads an error that the provider sent in the middle of a stream. Such an error is a plain object, not an Error. The
 * provider's package adds the HTTP status and whether to retry, if known.
 */
function saidInStream(thrown: unknown): StepError | null {
  if (typeof thrown !== 'object' || thrown === null || isError(thrown)) return null;
  const { message, statusCode, code, isRetryable } = propertiesOf(thrown);
  if (typeof message !== 'string') return null;
  const status = [statusCode, code].find((given) => typeof given === 'number');
  const isPassing = status !== undefined && (status === 408 || status === 429 || status >= 500);
  const retryable = typeof isRetryable === 'boolean' ? isRetryable : isPassing;
  return {
    code: status === undefined ? 'MODEL_ERROR' : codeOf(status, retryable),
    message: clip(message, MAX_MESSAGE_CHARACTERS),
    retryable,
  };
}

function fromCallError(error: CallError, message: string): StepError {
  const { cause } = error;
  // The SDK's error states only that the answer could not be read, even though its HTTP status was known.
  if (error.statusCode !== undefined && isError(cause) && isConnectionError(cause)) {
    const why = messageOf(cause.cause ?? cause);
    return {
      code: 'CONNECTION_LOST',
      message: `The connection broke off in mid-answer: ${clip(why, MAX_MESSAGE_CHARACTERS)}`,
      retryable: error.isRetryable,
    };
  }
  const retryAfterMs = waitOf(error);
  return {
    code: codeOf(error.statusCode, error.isRetryable),
    message,
    retryable: error.isRetryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

function codeOf(status: number | undefined, isRetryable: boolean): string {
  if (status === undefined) return isRetryable ? 'CONNECTION_LOST' : 'PROVIDER_REFUSED';
  if (status < 300) return 'MALFORMED_RESPONSE';
  if (status === 401 || status === 403) return 'PROVIDER_UNAUTHORIZED';
  if (status === 408) return 'PROVIDER_TIMEOUT';
  if (status === 429) return 'RATE_LIMITED';
  return status >= 500 ? 'PROVIDER_UNAVAILABLE' : 'PROVIDER_REFUSED';
}

/**
 * Returns the delay from the header `retry-after-ms`, or from `retry-after` if its value is in seconds. A date is
 * ignored, because a clock would be needed to evaluate it.
 */
function waitOf(error: CallError): number | undefined {
  const headers =
    error.responseHeaders ??
    (APICallError.isInstance(error.cause) ? error.cause.responseHeaders : undefined);
  const milliseconds = Number.parseFloat(headers?.['retry-after-ms'] ?? '');
  if (milliseconds >= 0) return milliseconds;
  const seconds = Number(headers?.['retry-after'] ?? Number.NaN);
  return seconds >= 0 ? seconds * 1000 : undefined;
}

function isConnectionError(error: Error): boolean {
  const codes = [error, error.cause].map((held) =>
    held instanceof Error && 'code' in held ? held.code : undefined,
  );
  return codes.some((code) => typeof code === 'string' && connectionCodes.has(code));
}
