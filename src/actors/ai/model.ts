// The model of one step: whatever a user may give as a model, as a model of the current
// specification, whose answers are checked and whose tool calls have usable ids.
//
// Invariants
//   M1. Every tool call that we run has an id, which no other call of the messages has. The
//       SDK takes a repeated id for the same call, and loses the arguments of the second.
//   M2. An answer that is not one is a ProviderError that says what is wrong with it.

import { gateway, wrapLanguageModel, type LanguageModel, type ModelMessage } from 'ai';
import { ConfigurationError, ProviderError } from '../../errors.ts';
import type { Clock, Ids } from '../ports/environment.ts';
import { streamedAnswer, type Delta } from './streamed-answer.ts';

export type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
export type Answer = Awaited<ReturnType<Model['doGenerate']>>;
export type ContentPart = Answer['content'][number];

const adapted = new WeakMap<object, Model>();

/**
 * A model of the current specification. A string is resolved as the SDK does, by the default
 * provider or else the gateway, but here: the SDK mistakes a provider registry for one of an
 * older specification.
 * @throws {ConfigurationError} INVALID_MODEL; and what the provider throws for an unknown id.
 */
export function resolveModel(model: LanguageModel): Model {
  if (typeof model === 'string') {
    const provider = globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway;
    return resolveModel(provider.languageModel(model));
  }
  // Comes from outside: the type is a promise of the caller.
  const version: unknown = (model as Partial<Model> | null | undefined)?.specificationVersion;
  if (version === 'v4') return model as Model;
  if (version !== 'v3' && version !== 'v2')
    throw new ConfigurationError(
      'INVALID_MODEL',
      `Expected an AI SDK language model of specification v2, v3 or v4, got ${describe(version)}`,
    );
  const known = adapted.get(model);
  if (known) return known;
  const fresh = wrapLanguageModel({ model, middleware: [] });
  adapted.set(model, fresh);
  return fresh;
}

interface CarefulOptions {
  readonly messages: readonly ModelMessage[];
  readonly ids: Ids;
  readonly clock: Clock | undefined;
  /** Learns the content of the answer as the SDK will read it. */
  answered(content: readonly ContentPart[]): void;
  /** Wants the words while they come: the model streams. */
  readonly said?: ((delta: Delta) => void) | undefined;
}

/** The same model for one step: keeps M1 and M2, and stamps the answer with our clock. */
export function carefulModel(model: Model, options: CarefulOptions): Model {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    async doGenerate(call) {
      const { said } = options;
      const answer: unknown = said
        ? await streamedAnswer(await model.doStream(call), call.abortSignal, said)
        : await model.doGenerate(call);
      checkAnswer(answer, model);
      const content = repairCalls(answer.content, options);
      options.answered(content);
      const { clock } = options;
      const timestamp = answer.response?.timestamp ?? (clock && new Date(clock.now()));
      return { ...answer, content, response: { ...answer.response, timestamp } };
    },
    doStream: (call) => model.doStream(call),
  };
}

function checkAnswer(answer: unknown, model: Model): asserts answer is Answer {
  const { content, finishReason, usage } = (answer ?? {}) as Partial<Answer>;
  const missing = Array.isArray(content)
    ? typeof finishReason?.unified !== 'string'
      ? 'finishReason {unified, raw}'
      : !usage?.inputTokens || !usage.outputTokens
        ? 'usage {inputTokens, outputTokens}'
        : null
    : 'content [parts]';
  if (missing === null) return;
  const got =
    answer === undefined ? 'undefined' : `the keys ${Object.keys(answer ?? {}).join(', ')}`;
  throw new ProviderError(
    'MALFORMED_RESPONSE',
    `Expected the model ${model.provider}/${model.modelId} to answer with ${missing}, got ${got}`,
  );
}

type CallPart = Extract<ContentPart, { type: 'tool-call' }>;

function isOurs(part: ContentPart): part is CallPart {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}

function repairCalls(content: ContentPart[], { messages, ids }: CarefulOptions): ContentPart[] {
  if (!content.some(isOurs)) return content;
  const taken = new Set(callIdsOf(messages));
  // A call that the provider executes keeps its id: the provider's result refers to it.
  for (const part of content)
    if (part.type === 'tool-call' && part.providerExecuted === true) taken.add(part.toolCallId);
  return content.map((part) => {
    if (!isOurs(part)) return part;
    const written: unknown = part.toolCallId;
    const isUsable = typeof written === 'string' && written !== '' && !taken.has(written);
    const toolCallId = isUsable ? written : ids.next('call');
    taken.add(toolCallId);
    const input: unknown = part.input;
    if (isUsable && typeof input === 'string') return part;
    return {
      ...part,
      toolCallId,
      // By the specification it is JSON text; some models give the value.
      input: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
    };
  });
}

function callIdsOf(messages: readonly ModelMessage[]): string[] {
  return messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content !== 'string'
      ? content.flatMap((part) => (part.type === 'tool-call' ? part.toolCallId : []))
      : [],
  );
}

function describe(version: unknown): string {
  return version === undefined
    ? 'something without `specificationVersion`'
    : JSON.stringify(version);
}
