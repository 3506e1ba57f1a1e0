// One step of a subagent's loop: one model call. The tools have no `execute`: the answer names the calls, and
// the runtime runs them.
//
// Owns:     the call of the AI SDK, and the kept parts of its answer.
// Does not: run tools, ask for approvals, retry, or decide the next step.
//
// Invariants
//   MODEL-STEP-1. The step settles as soon as the signal aborts, whatever the model does.
//   MODEL-STEP-2. After an abort it never resolves: a late answer is discarded.
//   MODEL-STEP-3. The response is plain JSON, without wall clock time or randomness.
//   MODEL-STEP-4. An invalid call (unknown tool, arguments that do not match) is returned with the message
//       that the model is to read; it never fails the step.
//   MODEL-STEP-5. Any provider accepts the messages of the response again: arguments are an object, and blank
//       texts are removed unless the provider attached metadata to them.

import {
  generateText,
  type AssistantContent,
  type FinishReason,
  type LanguageModel,
  type LanguageModelCallOptions,
  type ModelMessage,
  type ProviderMetadata,
  type ToolChoice,
  type ToolSet,
} from 'ai';
import type { Consent } from '../model/approval.ts';
import type { Clock, Ids } from '../ports/environment.ts';
import { raceAbort } from '../runtime/race-abort.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { asArguments, isJson } from '../../values/json.ts';
import { carefulModel, resolveModel } from './model.ts';
import { invalidCallMessage } from './schema.ts';
import type { Delta } from './streamed-answer.ts';
import type { Structured } from './structured.ts';
import { telemetryOption } from './telemetry.ts';
import type { PreparedTools } from './tools.ts';

export { toStepError } from './step-error.ts';

type GenerateOptions = Parameters<typeof generateText>[0];

/** Settings for the model beside the messages. */
export interface ModelSettings extends LanguageModelCallOptions {
  readonly headers?: Record<string, string | undefined>;
  readonly providerOptions?: GenerateOptions['providerOptions'];
}

export interface ModelStepOptions {
  readonly model: LanguageModel;
  /** The system prompt; empty: none. */
  readonly instructions: string;
  /** At least one; every call in them is answered. */
  readonly messages: readonly ModelMessage[];
  readonly tools: PreparedTools;
  readonly toolChoice?: ToolChoice<ToolSet>;
  readonly signal: AbortSignal;
  readonly settings?: ModelSettings;
  readonly ids: Ids;
  /** If set, the model streams, and each delta is passed on as it arrives. */
  readonly said?: ((delta: Delta) => void) | undefined;
  /** The format of the answer, if the provider accepts it. */
  readonly structured?: Structured | null;
  /** For the times in the SDK's telemetry; not part of the response. */
  readonly clock?: Clock;
}

/** A tool call that the runtime has to answer. */
export interface ModelCall {
  readonly callId: string;
  readonly toolName: string;
  /** The arguments for `execute`: parsed, with defaults and coercions applied. */
  readonly input: unknown;
  /**
   * The parsed arguments are not JSON (they hold a Date, say). `input` is then the model's original, and
   * passes through the schema when it is used: pass this flag to `runToolCall` and `approvalNeeded`.
   */
  readonly raw?: true;
  /** Not to be run; the message is the answer. */
  readonly invalid?: { readonly message: string };
  /** For a call that needs approval, once the runtime has checked: the approval that it has. */
  readonly consent?: Exclude<Consent, 'not_needed'>;
  /** For a question or an approval: the identities that may answer. */
  readonly answerableBy?: readonly string[];
}

/** Tokens as the provider counted them; 0 if it gave no count. */
export interface StepUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** The cached part of the input, if the provider reports it. */
  readonly cachedInputTokens?: number;
  /** The reasoning part of the output, if the provider reports it. */
  readonly reasoningTokens?: number;
}

export interface ModelResponse {
  readonly text: string;
  readonly reasoning?: string;
  /** The messages to append; their calls are those of `calls`, in the same order. */
  readonly assistantMessages: readonly ModelMessage[];
  /** Empty: the model has ended. Excludes calls that the provider itself executed. */
  readonly calls: readonly ModelCall[];
  /** With `length`, calls may be incomplete and must not be run. */
  readonly finish: FinishReason;
  readonly usage: StepUsage;
  readonly providerMetadata?: ProviderMetadata;
}

/**
 * Calls the model once, without retries. `toStepError` classifies an error.
 * @throws `signal.reason` once the signal aborts, or the error of the model or the SDK.
 */
export async function runModelStep(options: ModelStepOptions): Promise<ModelResponse> {
  const { signal, messages, instructions, ids, clock, settings } = options;
  signal.throwIfAborted();
  let written: Answered = [];
  const model = carefulModel(resolveModel(options.model), {
    messages,
    ids,
    clock,
    said: options.said,
    structured: options.structured,
    answered: (content) => {
      written = content;
    },
  });
  const telemetry = telemetryOption();
  const result = await raceAbort(
    generateText({
      ...settings,
      model,
      instructions: instructions === '' ? undefined : instructions,
      // The SDK does not change it, although its type permits that.
      messages: messages as ModelMessage[],
      tools: options.tools.modelTools,
      toolChoice: options.toolChoice,
      maxRetries: 0,
      abortSignal: signal,
      telemetry,
      _internal: sources(telemetry === undefined, ids, clock),
    }),
    signal,
  );
  // The signal may have aborted since the race was won.
  signal.throwIfAborted();
  return toResponse(result.finalStep, written);
}

/** Returns the sources of ids and times. Only telemetry exposes them, so they are not computed without it. */
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

type Step = Awaited<ReturnType<typeof generateText>>['finalStep'];
type AssistantPart = Exclude<AssistantContent, string>[number];
type Answered = Parameters<Parameters<typeof carefulModel>[1]['answered']>[0];

function toResponse(step: Step, written: Answered): ModelResponse {
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

function toCall(part: Step['toolCalls'][number], written: Answered): ModelCall {
  const { toolCallId: callId, toolName, input } = part;
  if (part.invalid === true)
    return { callId, toolName, input, invalid: { message: invalidCallMessage(part.error) } };
  if (isJson(input)) return { callId, toolName, input };
  return { callId, toolName, input: writtenInput(callId, written), raw: true };
}

/** Returns the arguments as the model wrote them; they were parsed before, so parsing succeeds. */
function writtenInput(callId: string, written: Answered): unknown {
  for (const part of written)
    if (part.type === 'tool-call' && part.toolCallId === callId && part.input.trim() !== '')
      return JSON.parse(part.input) as unknown;
  return {};
}

function assistantMessages(step: Step, calls: readonly ModelCall[]): ModelMessage[] {
  // One input for the call and for the message that makes it. An invalid call has no input.
  const inputs = new Map(
    calls.flatMap((call) => (call.invalid ? [] : [[call.callId, call.input]])),
  );
  const messages: ModelMessage[] = [];
  // The SDK also adds answers to invalid calls: the runtime gives its own.
  for (const message of step.response.messages) {
    if (message.role !== 'assistant' || typeof message.content === 'string') continue;
    const content = message.content.filter(isRepeatable).map((part) => {
      const kept = withoutUndefined(part);
      if (kept.type !== 'tool-call') return kept;
      const { toolCallId } = kept;
      const input = inputs.has(toolCallId) ? inputs.get(toolCallId) : kept.input;
      return { ...kept, input: asArguments(input) };
    });
    messages.push({ role: 'assistant', content });
  }
  return messages;
}

/** Some providers reject the white space that they themselves write before a call. */
function isRepeatable(part: AssistantPart): boolean {
  return part.type !== 'text' || part.providerOptions !== undefined || part.text.trim() !== '';
}

function toUsage({
  inputTokens = 0,
  outputTokens = 0,
  totalTokens = inputTokens + outputTokens,
  inputTokenDetails: { cacheReadTokens: cachedInputTokens },
  outputTokenDetails: { reasoningTokens },
}: Step['usage']): StepUsage {
  return withoutUndefined({
    inputTokens,
    outputTokens,
    totalTokens,
    cachedInputTokens,
    reasoningTokens,
  });
}
