// Makes one model call with the internal functions of the AI SDK (`ai/internal`), which build the prompt and the tools,
// and parse the calls and messages of the answer. `generateText` would wrap these functions in a loop of many steps,
// which doubles the cost.
//
// Owns:     the order in which these functions are called, and the check that the installed SDK has them.
// Does not: convert a prompt or parse an answer (the SDK's functions do).
//
// Invariants
//   DIRECT-1. The model receives the options that `generateText` would give it, and its answer is parsed in the same way.
//   DIRECT-2. The first call of a process is made with `generateText`. If the SDK's functions would have produced
//       different options or a different step, this file does not match the installed SDK, and `generateText` also
//       makes all later calls. In both cases, the model is called only once.

import {
  ToolChoiceViolationError,
  type generateText,
  type ModelMessage,
  type ToolChoice,
  type ToolSet,
} from 'ai';
// A namespace import, because other versions of the SDK may lack some of these functions.
import * as sdk from 'ai/internal';
import type { Answer, Model } from './model.ts';

type Call = Parameters<Model['doGenerate']>[0];
type SdkStep = Awaited<ReturnType<typeof generateText>>['finalStep'];

/** The properties of a `generateText` step that the runtime reads. */
export type StepRead = Pick<
  SdkStep,
  'content' | 'text' | 'reasoningText' | 'finishReason' | 'usage' | 'providerMetadata'
> & { readonly response: Pick<SdkStep['response'], 'messages'> };

/** The input of the step. */
export interface Asked {
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: ToolSet | undefined;
  readonly toolChoice: ToolChoice<ToolSet> | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly signal: AbortSignal;
}

type BySdk = (model: Model) => Promise<StepRead>;

/**
 * The headers that the SDK passed to the model in the first call; `other` if the installed SDK differs from what this
 * file expects; null before the first call.
 */
let shown: Readonly<Record<string, string | undefined>> | null | 'other' = null;

/** Calls the model once: with the SDK's functions, or with `generateText` if their results may differ. */
export async function directStep(model: Model, asked: Asked, bySdk: BySdk): Promise<StepRead> {
  if (shown === 'other') return bySdk(model);
  if (shown === null) return firstStep(model, asked, bySdk);
  const call = await callOf(model, asked);
  return stepOf(model, asked, await model.doGenerate({ ...call, headers: { ...shown } }));
}

/** DIRECT-2 */
async function firstStep(model: Model, asked: Asked, bySdk: BySdk): Promise<StepRead> {
  const seen: { call?: Call; answer?: Answer } = {};
  const step = await bySdk({
    ...model,
    async doGenerate(made) {
      const answer = await model.doGenerate(made);
      Object.assign(seen, { call: made, answer });
      return answer;
    },
  });
  const { call: made, answer } = seen;
  if (made && answer) {
    const isSame = await isMadeSame(model, asked, { made, answer, step }).catch(() => false);
    shown = isSame ? (made.headers ?? {}) : 'other';
  }
  return step;
}

interface Made {
  readonly made: Call;
  readonly answer: Answer;
  readonly step: StepRead;
}

async function isMadeSame(
  model: Model,
  asked: Asked,
  { made, answer, step }: Made,
): Promise<boolean> {
  const own = await stepOf(model, asked, { ...answer, warnings: [] });
  return (
    textOf(await callOf(model, asked)) === textOf(made) &&
    textOf(readIn(own)) === textOf(readIn(step))
  );
}

function textOf(value: object): string {
  return JSON.stringify({ ...value, headers: undefined, abortSignal: undefined });
}

function readIn(step: StepRead) {
  const { text, reasoningText, finishReason, usage, providerMetadata, response } = step;
  // The SDK adds results for invalid calls, but the runtime answers those itself.
  const said = response.messages.filter(({ role }) => role === 'assistant');
  return { text, reasoningText, finishReason, usage, providerMetadata, said };
}

/** Returns the call's options, without headers. */
async function callOf(model: Model, asked: Asked): Promise<Call> {
  const { toolChoice, maxOutputTokens, signal } = asked;
  // The settings are checked in the same order as in `generateText`.
  const settings = sdk.prepareCallSettings({ maxOutputTokens });
  const prompt = await sdk.standardizePrompt(promptOf(asked));
  const tools = await sdk.prepareTools({ tools: asked.tools });
  return {
    ...settings,
    tools,
    toolChoice: sdk.prepareToolChoice({ toolChoice }),
    responseFormat: undefined,
    prompt: await sdk.convertToLanguageModelPrompt({
      prompt,
      supportedUrls: await model.supportedUrls,
      download: undefined,
      abortSignal: signal,
      provider: model.provider.split('.')[0] ?? '',
    }),
    providerOptions: undefined,
    abortSignal: signal,
  };
}

function promptOf({ instructions, messages }: Asked) {
  return {
    ...(instructions === '' ? {} : { instructions }),
    // The SDK does not modify the array, although its type would allow it.
    messages: messages as ModelMessage[],
  };
}

async function stepOf(model: Model, asked: Asked, answer: Answer): Promise<StepRead> {
  const { tools, signal: abortSignal } = asked;
  const { instructions, messages } = promptOf(asked);
  const { provider, modelId } = model;
  const finishReason = answer.finishReason.unified;
  const usage = sdk.asLanguageModelUsage(answer.usage);
  const toolCalls = await Promise.all(
    answer.content
      .filter((part) => part.type === 'tool-call')
      .map((toolCall) =>
        sdk.parseToolCall({
          toolCall,
          tools,
          repairToolCall: undefined,
          instructions,
          messages,
          abortSignal,
        }),
      ),
  );
  const content = await sdk.convertLanguageModelContent({
    content: answer.content,
    toolCalls,
    toolOutputs: [],
    toolApprovalRequests: [],
    toolApprovalResponses: [],
    tools,
    abortSignal,
  });
  const toolChoice = sdk.prepareToolChoice(asked);
  const isFulfilled =
    toolChoice.type === 'auto' ||
    (toolChoice.type === 'none'
      ? toolCalls.length === 0
      : toolCalls.some(
          (call) => toolChoice.type === 'required' || call.toolName === toolChoice.toolName,
        ));
  if (!isFulfilled)
    throw new ToolChoiceViolationError({
      toolChoice,
      finishReason,
      provider,
      modelId,
      content: answer.content,
    });
  const { warnings } = answer;
  if (warnings.length > 0) sdk.logWarnings({ warnings, provider, model: modelId });
  const text = (type: 'text' | 'reasoning'): string =>
    content.map((part) => (part.type === type ? part.text : '')).join('');
  return {
    content,
    text: text('text'),
    reasoningText: text('reasoning') || undefined,
    finishReason,
    usage,
    providerMetadata: answer.providerMetadata,
    response: { messages: await sdk.toResponseMessages({ content, tools }) },
  };
}
