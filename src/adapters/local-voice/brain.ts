// The language model behind the voice: any AI SDK language model. One call makes one response: text and tool
// calls, which the client runs.

import { jsonSchema, streamText, type LanguageModel, type ToolSet } from 'ai';
import type { Environment } from '../../actors/ports/environment.ts';
import { isA, messageOf, ProviderError } from '../../values/errors.ts';
import type { FunctionTool, ToolChoice } from './client-schemas.ts';
import type { Remembered } from './conversation.ts';
import { toModelMessages } from './prompt.ts';
import type { WireUsage } from './wire-events.ts';

export interface BrainRequest {
  readonly items: readonly Remembered[];
  readonly instructions: string;
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  /** The output form of the text. */
  readonly modality: 'text' | 'audio';
  /** `null`: only the model's own limit. */
  readonly maxOutputTokens: number | null;
  readonly signal: AbortSignal;
}

export type BrainPart =
  /** `isWhole`: it can be spoken at once, without waiting for further text. */
  | { readonly type: 'text'; readonly text: string; readonly isWhole?: boolean }
  /** `arguments` is the model's JSON text, not validated. `callId`: generated if absent. */
  | {
      readonly type: 'call';
      readonly name: string;
      readonly arguments: string;
      readonly callId?: string;
    }
  | {
      readonly type: 'end';
      readonly reason: 'completed' | 'max_output_tokens' | 'content_filter';
      readonly usage: WireUsage;
    };

export interface Brain {
  /**
   * Generates a response. Ends with one `end`, or without it if `signal` aborted.
   * @throws {ProviderError} `MODEL_FAILED`
   */
  respond(request: BrainRequest): AsyncIterable<BrainPart>;
}

export function createBrain(model: LanguageModel, environment: Environment): Brain {
  return {
    async *respond(request) {
      try {
        yield* think(model, environment, request);
      } catch (error) {
        if (request.signal.aborted) return;
        if (isA(error, ProviderError)) throw error;
        throw new ProviderError('MODEL_FAILED', messageOf(error), { cause: error });
      }
    },
  };
}

async function* think(
  model: LanguageModel,
  environment: Environment,
  request: BrainRequest,
): AsyncGenerator<BrainPart> {
  const { instructions, toolChoice, signal } = request;
  const messages = await toModelMessages(request.items);
  if (signal.aborted) return;
  const { stream } = streamText({
    model,
    messages,
    // System messages keep their place in the conversation.
    allowSystemInMessages: true,
    ...(instructions !== '' && { instructions }),
    tools: toToolSet(request.tools),
    toolChoice:
      typeof toolChoice === 'string' ? toolChoice : { type: 'tool', toolName: toolChoice.name },
    ...(request.maxOutputTokens !== null && { maxOutputTokens: request.maxOutputTokens }),
    // The client decides whether to retry; a silence of seconds helps no user.
    maxRetries: 0,
    abortSignal: signal,
    // Otherwise the SDK prints it. The same error arrives as a part of the stream.
    onError: () => undefined,
    _internal: {
      now: () => environment.clock.now(),
      generateId: () => environment.ids.next('aitxt'),
      generateCallId: () => environment.ids.next('call'),
    },
  });
  const argumentTexts = new Map<string, string>();
  for await (const part of stream) {
    if (part.type === 'text-delta' && part.text !== '') {
      yield { type: 'text', text: part.text };
    } else if (part.type === 'tool-input-delta') {
      argumentTexts.set(part.id, (argumentTexts.get(part.id) ?? '') + part.delta);
    } else if (part.type === 'tool-call' && !part.providerExecuted) {
      const text = argumentTexts.get(part.toolCallId) ?? textOfInput(part.input);
      yield { type: 'call', name: part.toolName, arguments: text };
    } else if (part.type === 'finish') {
      yield { type: 'end', reason: endReason(part.finishReason), usage: toUsage(part.totalUsage) };
    } else if (part.type === 'error') {
      throw new ProviderError('MODEL_FAILED', messageOf(part.error), { cause: part.error });
    }
  }
}

function toToolSet(tools: readonly FunctionTool[]): ToolSet {
  const set: ToolSet = {};
  for (const { name, description, parameters } of tools) {
    set[name] = {
      ...(description && { description }),
      // Without `execute`: the client runs the tool, and validates its arguments.
      inputSchema: jsonSchema(parameters ?? { type: 'object', properties: {} }),
    };
  }
  return set;
}

function textOfInput(input: unknown): string {
  return typeof input === 'string' ? input : (JSON.stringify(input) ?? '{}');
}

function endReason(finishReason: string): Extract<BrainPart, { type: 'end' }>['reason'] {
  if (finishReason === 'length') return 'max_output_tokens';
  return finishReason === 'content-filter' ? 'content_filter' : 'completed';
}

/** A language model reads and writes text only, so no token is counted as audio. */
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
