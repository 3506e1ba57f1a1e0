// The language model behind the voice: any AI SDK language model. One call generates one response, which consists of
// text and of tool calls that the client executes.
//
// Invariants
//   LOCAL-PROMPT-1. The prompt suits any model. Notes have the user role, unless the app states that its model accepts
//       system messages within the conversation. The assistant's words and calls form one message. Neither the first
//       nor the last message is the assistant's.
//   LOCAL-PROMPT-2. A call is stored together with the model's reasoning and signatures for it.

import {
  jsonSchema,
  streamText,
  type AssistantContent,
  type LanguageModel,
  type ProviderMetadata,
  type ToolSet,
  type ModelMessage,
  type ToolResultPart,
  type UserContent,
} from 'ai';
import type { Environment } from '../../actors/ports/environment.ts';
import { isA, messageOf, ProviderError } from '../../values/errors.ts';
import type { FunctionTool, ToolChoice } from './client-events.ts';
import { resolveModel } from '../../actors/model/model.ts';
import { suitedModel } from '../../actors/model/provider-prompt.ts';
import { objectSchema } from '../../actors/model/schema.ts';
import type { CallEcho, Remembered, RememberedPart } from './conversation.ts';
import type { WireUsage } from './wire-events.ts';

interface TextModelRequest {
  readonly items: readonly Remembered[];
  readonly instructions: string;
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  /** The output format of the text. */
  readonly modality: 'text' | 'audio';
  /** The limit on the length of the response; `null` if only the model's own limit applies. */
  readonly maxOutputTokens: number | null;
  readonly signal: AbortSignal;
}

export type TextModelPart =
  /** `isWhole`: whether the text can be spoken without waiting for more text. */
  | { readonly type: 'text'; readonly text: string; readonly isWhole?: boolean }
  /** `arguments` is the model's JSON text, which has not been validated. `callId` is generated if it is absent. */
  | {
      readonly type: 'call';
      readonly name: string;
      readonly arguments: string;
      readonly callId?: string;
      readonly echo?: CallEcho | undefined;
    }
  | {
      readonly type: 'end';
      readonly reason: 'completed' | 'max_output_tokens' | 'content_filter';
      readonly usage: WireUsage;
    };

export interface TextModel {
  /**
   * Generates a response. Ends with exactly one `end`, unless `signal` was aborted.
   * @throws {ProviderError} `MODEL_FAILED`
   */
  respond(request: TextModelRequest): AsyncIterable<TextModelPart>;
}

export type SystemAs = 'system' | 'user';

export function createTextModel(
  model: LanguageModel,
  environment: Environment,
  systemAs: SystemAs = 'user',
): TextModel {
  return {
    async *respond(request) {
      try {
        yield* generate(model, environment, systemAs, request);
      } catch (error) {
        if (request.signal.aborted) return;
        if (isA(error, ProviderError)) throw error;
        throw new ProviderError('MODEL_FAILED', messageOf(error), { cause: error });
      }
    },
  };
}

async function* generate(
  model: LanguageModel,
  environment: Environment,
  systemAs: SystemAs,
  request: TextModelRequest,
): AsyncGenerator<TextModelPart> {
  const { instructions, signal } = request;
  // Some models accept calls in the prompt only if the request declares tools.
  const called = request.items.flatMap((item) => (item.kind === 'call' ? [item.name] : []));
  const mayCall = request.tools.length > 0;
  const toolChoice = mayCall ? request.toolChoice : 'none';
  const messages = await toModelMessages(request.items, systemAs);
  if (signal.aborted) return;
  const { stream } = streamText({
    model: suitedModel(resolveModel(model)),
    messages,
    allowSystemInMessages: systemAs === 'system',
    ...(instructions !== '' && { instructions }),
    tools: toToolSet(mayCall ? request.tools : called.map((name) => ({ name }))),
    toolChoice:
      typeof toolChoice === 'string' ? toolChoice : { type: 'tool', toolName: toolChoice.name },
    ...(request.maxOutputTokens !== null && { maxOutputTokens: request.maxOutputTokens }),
    // The client decides whether to retry, so that the user does not have to wait for a retry delay.
    maxRetries: 0,
    abortSignal: signal,
    telemetry: { functionId: 'local_voice' },
    // Without this handler, the SDK would print the error, which is also part of the stream.
    onError: () => undefined,
    _internal: {
      now: () => environment.clock.now(),
      generateId: () => environment.ids.next('aitxt'),
      generateCallId: () => environment.ids.next('call'),
    },
  });
  const argumentTexts = new Map<string, string>();
  let reasoning: Writable<CallEcho['reasoning'][number]>[] = [];
  for await (const part of stream) {
    if (part.type === 'text-delta' && part.text !== '') {
      yield { type: 'text', text: part.text };
    } else if (part.type === 'tool-input-delta') {
      argumentTexts.set(part.id, (argumentTexts.get(part.id) ?? '') + part.delta);
    } else if (part.type === 'tool-call' && !part.providerExecuted) {
      const text = argumentTexts.get(part.toolCallId) ?? textOfInput(part.input);
      const signed = part.providerMetadata && { providerOptions: part.providerMetadata };
      const echo = reasoning.length > 0 || signed ? { reasoning, ...signed } : undefined;
      reasoning = [];
      yield { type: 'call', name: part.toolName, arguments: text, echo };
    } else if (part.type === 'reasoning-start') {
      reasoning.push({ type: 'reasoning', text: '' });
      signReasoning(reasoning.at(-1), part);
    } else if (part.type === 'reasoning-delta') {
      const last = reasoning.at(-1);
      if (last) last.text += part.text;
      signReasoning(last, part);
    } else if (part.type === 'reasoning-end') {
      signReasoning(reasoning.at(-1), part);
    } else if (part.type === 'finish') {
      yield { type: 'end', reason: endReason(part.finishReason), usage: toUsage(part.totalUsage) };
    } else if (part.type === 'error') {
      throw new ProviderError('MODEL_FAILED', messageOf(part.error), { cause: part.error });
    }
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Sets the signature of the reasoning, which may arrive without text. The last signature is the complete one. */
function signReasoning(
  reasoning: Writable<CallEcho['reasoning'][number]> | undefined,
  { providerMetadata }: { readonly providerMetadata?: ProviderMetadata | undefined },
): void {
  if (reasoning && providerMetadata) reasoning.providerOptions = providerMetadata;
}

function toToolSet(
  tools: readonly Pick<FunctionTool, 'name' | 'description' | 'parameters'>[],
): ToolSet {
  const set: ToolSet = {};
  for (const { name, description, parameters } of tools) {
    set[name] = {
      ...(description && { description }),
      // There is no `execute`, because the client runs the tool and validates its arguments.
      inputSchema: objectSchema(jsonSchema(parameters ?? { type: 'object' }), `tool "${name}"`),
    };
  }
  return set;
}

function textOfInput(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input) ?? '{}');
}

function endReason(finishReason: string): Extract<TextModelPart, { type: 'end' }>['reason'] {
  if (finishReason === 'length') return 'max_output_tokens';
  return finishReason === 'content-filter' ? 'content_filter' : 'completed';
}

/** Returns the usage in the protocol's form. The language model reads and writes text, so no tokens count as audio. */
export function toUsage(usage: {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly inputTokenDetails?: { readonly cacheReadTokens?: number | undefined };
}): WireUsage {
  const input = usage.inputTokens ?? 0;
  const output = usage.outputTokens ?? 0;
  const cached = usage.inputTokenDetails?.cacheReadTokens ?? 0;
  return {
    total_tokens: input + output,
    input_tokens: input,
    output_tokens: output,
    input_token_details: {
      text_tokens: input,
      audio_tokens: 0,
      image_tokens: 0,
      cached_tokens: cached,
      cached_tokens_details: { text_tokens: cached, audio_tokens: 0, image_tokens: 0 },
    },
    output_token_details: { text_tokens: output, audio_tokens: 0 },
  };
}

/** Replaces unintelligible speech. */
export const INAUDIBLE = '[inaudible]';
const PENDING = 'Accepted. The result is not known yet; it will follow.';
/** The user's message in a conversation without any words from the user. A language model needs one. */
const NOTHING_SAID = '[The user has not said anything yet.]';

const NOTHING_SINCE = '[The user has said nothing since.]';

type Call = Extract<Remembered, { kind: 'call' }>;
type Answer = Extract<Remembered, { kind: 'answer' }>;
type AssistantPart = Exclude<AssistantContent, string>[number];

/**
 * Converts conversation items to language model messages.
 *
 * A tool call may remain without a result while the conversation continues, but a language model must see a result
 * immediately after each call. A call whose result is missing or comes later is therefore first answered with PENDING.
 * The actual result appears at the point where it arrived, together with a copy of its call.
 *
 * Resolves with the messages once all of their words have been recognised.
 */
export async function toModelMessages(
  items: readonly Remembered[],
  systemAs: SystemAs = 'user',
): Promise<ModelMessage[]> {
  const messages: ModelMessage[] = [];
  const calls = new Map<string, Call>();
  let made: { readonly parts: readonly AssistantPart[]; readonly result: ToolResultPart }[] = [];
  const endCalls = (): void => {
    if (made.length > 0) {
      addAssistant(
        messages,
        made.flatMap(({ parts }) => parts),
      );
      messages.push({ role: 'tool', content: made.map(({ result }) => result) });
    }
    made = [];
  };
  for (const [index, item] of items.entries()) {
    if (item.kind === 'call') {
      calls.set(item.callId, item);
      const output = promptAnswer(items, index)?.output ?? PENDING;
      // Consecutive calls form one message.
      if (items[index - 1]?.kind !== 'call') endCalls();
      made.push(callWithAnswer(item, item.callId, item.echo, output));
    } else if (item.kind === 'answer') {
      const call = calls.get(item.callId);
      // The call was deleted, or its result already follows it.
      if (call === undefined || promptAnswer(items, items.indexOf(call)) === item) continue;
      endCalls();
      made.push(callWithAnswer(call, `${item.callId}_late`, echoAgain(call.echo), item.output));
      endCalls();
    } else {
      const message = await toMessage(item, systemAs);
      if (message === null) continue;
      endCalls();
      if (message.role === 'assistant' && typeof message.content === 'string')
        addAssistant(messages, [{ type: 'text', text: message.content }]);
      else messages.push(message);
    }
  }
  endCalls();
  // Some models refuse to start or to call a tool before any user message.
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: NOTHING_SAID });
  // Some models refuse to continue their own words.
  if (messages.at(-1)?.role === 'assistant')
    messages.push({ role: 'user', content: NOTHING_SINCE });
  return messages;
}

/** Adds parts to the assistant's last message, because some models reject a call in a separate message after text. */
function addAssistant(messages: ModelMessage[], parts: readonly AssistantPart[]): void {
  const last = messages.at(-1);
  const before =
    last?.role === 'assistant' && typeof last.content !== 'string' ? last.content : null;
  if (before) messages.pop();
  // A thinking model expects its reasoning first.
  const begins = parts.findIndex(({ type }) => type !== 'reasoning');
  const content = [...parts.slice(0, begins), ...(before ?? []), ...parts.slice(begins)];
  messages.push({ role: 'assistant', content });
}

/** Returns a call's result if only calls and results come between the call and the result. */
function promptAnswer(items: readonly Remembered[], callIndex: number): Answer | undefined {
  const call = items[callIndex] as Call;
  for (const item of items.slice(callIndex + 1)) {
    if (item.kind === 'message') return undefined;
    if (item.kind === 'answer' && item.callId === call.callId) return item;
  }
  return undefined;
}

function callWithAnswer(
  call: Call,
  toolCallId: string,
  echo: CallEcho | undefined,
  output: string,
): { readonly parts: readonly AssistantPart[]; readonly result: ToolResultPart } {
  const { name: toolName } = call;
  const signed = echo?.providerOptions && { providerOptions: echo.providerOptions };
  return {
    parts: [
      ...(echo?.reasoning ?? []),
      { type: 'tool-call', toolCallId, toolName, input: parsedArguments(call), ...signed },
    ],
    result: { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: output } },
  };
}

/** Returns the copy of a repeated call: OpenAI rejects a repeated item ("Duplicate item found with id"). */
function echoAgain(echo: CallEcho | undefined): CallEcho | undefined {
  const isOfOpenAi = [echo, ...(echo?.reasoning ?? [])].some(
    (one) =>
      one?.providerOptions && ('openai' in one.providerOptions || 'azure' in one.providerOptions),
  );
  return isOfOpenAi ? undefined : echo;
}

function parsedArguments(call: Call): unknown {
  try {
    return JSON.parse(call.arguments);
  } catch {
    return { text: call.arguments };
  }
}

async function toMessage(
  item: Extract<Remembered, { kind: 'message' }>,
  systemAs: SystemAs,
): Promise<ModelMessage | null> {
  if (item.role === 'user' && item.parts.some((part) => part.type === 'image')) {
    return { role: 'user', content: await toUserContent(item.parts) };
  }
  const texts = await Promise.all(item.parts.map(textOf));
  const text = texts.filter((part) => part !== '').join('\n');
  return text.trim() === ''
    ? null
    : { role: item.role === 'system' ? systemAs : item.role, content: text };
}

function toUserContent(parts: readonly RememberedPart[]): Promise<UserContent> {
  return Promise.all(
    parts.map(async (part) => {
      if (part.type !== 'image') return { type: 'text' as const, text: await textOf(part) };
      const mediaType = /^data:([^;,]+)/.exec(part.url)?.[1] ?? 'image/png';
      return { type: 'file' as const, mediaType, data: new URL(part.url) };
    }),
  );
}

async function textOf(part: RememberedPart): Promise<string> {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'sound':
      return (await part.words) || INAUDIBLE;
    case 'speech':
      return part.words.text().trim();
    case 'image':
      return '';
  }
}
