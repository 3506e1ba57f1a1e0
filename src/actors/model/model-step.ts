// One step of a subagent's loop: one model call. The tools have no `execute`: the answer
// says what shall be called, and the runtime calls it.
//
// Owns:     the call of the AI SDK, and what is kept of its answer.
// Does not: run tools, ask for approvals, try again, or decide what happens next.
//
// Invariants
//   MODEL-STEP-1. It settles as soon as the signal aborts, whatever the model does.
//   MODEL-STEP-2. After an abort it never resolves: an answer that came too late is not one.
//   MODEL-STEP-3. The response is plain JSON, and no wall clock and no chance is in it.
//   MODEL-STEP-4. A call that is not one (unknown tool, arguments that do not fit) comes back with the
//       message that the model shall read; it never fails the step.
//   MODEL-STEP-5. Any provider reads the messages of the response again: arguments are an object, and a
//       blank text is not there, unless the provider put something of its own on it.

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

/** What a caller may ask of the model beside the messages. */
export interface ModelSettings extends LanguageModelCallOptions {
  readonly headers?: Record<string, string | undefined>;
  readonly providerOptions?: GenerateOptions['providerOptions'];
}

export interface ModelStepOptions {
  readonly model: LanguageModel;
  /** The system prompt; empty means none. */
  readonly instructions: string;
  /** At least one; every call in it is answered. */
  readonly messages: readonly ModelMessage[];
  readonly tools: PreparedTools;
  readonly toolChoice?: ToolChoice<ToolSet>;
  readonly signal: AbortSignal;
  readonly settings?: ModelSettings;
  readonly ids: Ids;
  /** The model streams, and its words are told while they come. */
  readonly said?: ((delta: Delta) => void) | undefined;
  /** The answer shall have this format, if the provider takes it. */
  readonly structured?: Structured | null;
  /** For the times in the SDK's telemetry; nothing of it is in the response. */
  readonly clock?: Clock;
}

/** A tool call that the runtime has to answer. */
export interface ModelCall {
  readonly callId: string;
  readonly toolName: string;
  /** The arguments as `execute` gets them: parsed, with defaults and coercions applied. */
  readonly input: unknown;
  /**
   * What the schema makes of the arguments is not JSON (a Date, say). `input` is then what the
   * model wrote, and goes through the schema where it is used: hand this on to `runToolCall`
   * and `approvalNeeded`.
   */
  readonly raw?: true;
  /** Not to be run; the message is its answer. */
  readonly invalid?: { readonly message: string };
  /** Of a call that needs consent, once the runtime has looked: what consent it has. */
  readonly consent?: Exclude<Consent, 'not_needed'>;
  /** Of a question or an approval: only these identities may answer. */
  readonly answerableBy?: readonly string[];
}

/** Tokens as the provider counted them; 0 where it did not say. */
export interface StepUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Of the input, if the provider says so. */
  readonly cachedInputTokens?: number;
  /** Of the output, if the provider says so. */
  readonly reasoningTokens?: number;
}

export interface ModelResponse {
  readonly text: string;
  readonly reasoning?: string;
  /** What to append to the messages; the calls in it are those of `calls`, in the same order. */
  readonly assistantMessages: readonly ModelMessage[];
  /** Empty: the model has ended. What the provider itself executed is not in it. */
  readonly calls: readonly ModelCall[];
  /** With `length`, calls may be cut off: they shall not be run. */
  readonly finish: FinishReason;
  readonly usage: StepUsage;
  readonly providerMetadata?: ProviderMetadata;
}

/**
 * Calls the model once; there are no retries below this. `toStepError` tells what an error means.
 * @throws `signal.reason` once the signal aborts, or what the model or the SDK threw.
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
      // The SDK does not change it, but does not say so in its type.
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
  // It may have aborted since the race was won.
  signal.throwIfAborted();
  return toResponse(result.finalStep, written);
}

/** Only telemetry tells these ids and times to anybody, so without it they need not be made. */
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

/** The arguments as the model wrote them; they were parsed before, so they can be parsed. */
function writtenInput(callId: string, written: Answered): unknown {
  for (const part of written)
    if (part.type === 'tool-call' && part.toolCallId === callId && part.input.trim() !== '')
      return JSON.parse(part.input) as unknown;
  return {};
}

function assistantMessages(step: Step, calls: readonly ModelCall[]): ModelMessage[] {
  // One input for the call and for the message that makes it. What is invalid is no input.
  const inputs = new Map(
    calls.flatMap((call) => (call.invalid ? [] : [[call.callId, call.input]])),
  );
  const messages: ModelMessage[] = [];
  // Answers to invalid calls are there too: the runtime gives its own.
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

/** Some providers refuse to read the white space again that they write before a call. */
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
