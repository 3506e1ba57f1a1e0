// The model of one step: converts any model that a user may pass to one of the current specification, checks
// its answers and gives its tool calls usable ids.
//
// Invariants
//   MODEL-1. Every tool call that the runtime runs has an id that can be stored, and that is unique in the
//       messages. The SDK takes a repeated id for the same call, and loses the arguments of the second.
//   MODEL-2. An invalid answer is a ProviderError that names the problem.
//   MODEL-3. Arguments that are nested too deeply fail only their own call.
//   MODEL-4. Token counts are whole numbers of at least 0, or absent.

import { gateway, wrapLanguageModel, type LanguageModel, type ModelMessage } from 'ai';
import { z } from 'zod';
import { notAnObject, shown } from '../../values/plain-checks.ts';
import { ConfigurationError, ProviderError } from '../../values/errors.ts';
import type { Clock, Ids } from '../ports/environment.ts';
import { asJson, isJson, isTooDeep, MAX_DEPTH, TOO_DEEP } from '../../values/json.ts';
import { storable, storableId } from '../../values/storable.ts';
import { tokenCount } from './token-count.ts';
import { streamedAnswer, type Delta } from './streamed-answer.ts';
import {
  bothUsages,
  ignoresFormat,
  isSilent,
  mayRefuseFormat,
  type Structured,
} from './structured.ts';
import type { Model, Answer, ContentPart } from './language-model.ts';

type Call = Parameters<Model['doGenerate']>[0];

const adapted = new WeakMap<object, Model>();

/**
 * Returns a model of the current specification. A string is resolved like in the SDK, by the default provider
 * or else the gateway, but here: the SDK mistakes a provider registry for one of an older specification.
 * @throws {ConfigurationError} INVALID_MODEL; and the provider's error for an unknown id.
 */
export function resolveModel(model: LanguageModel): Model {
  if (typeof model === 'string') {
    const provider = globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway;
    return resolveModel(provider.languageModel(model));
  }
  // External input: the caller's type may be wrong.
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

/** A schema that checks a model before it is used. */
export const aModel = z.unknown().superRefine((model, context) => {
  const problem = modelProblem(model);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

/**
 * @throws {ConfigurationError} INVALID_MODEL, or NO_MODEL if it is undefined: the message shows a valid
 *   value.
 */
export function checkModel(where: string, model: unknown): void {
  const problem = modelProblem(model);
  if (problem === null) return;
  const code = model === undefined ? 'NO_MODEL' : 'INVALID_MODEL';
  throw new ConfigurationError(code, `${where}: ${problem}, got ${shown(model)}`);
}

/**
 * Describes the problem of a model; null if none is visible. A string is an id of the default provider or the
 * gateway.
 */
function modelProblem(model: unknown): string | null {
  const expected = "expected a model of the AI SDK such as openai('gpt-5.1')";
  if (typeof model === 'string') {
    const isId = globalThis.AI_SDK_DEFAULT_PROVIDER !== undefined || model.includes('/');
    return isId
      ? null
      : `${expected}, or an id of the AI gateway such as 'openai/gpt-5.1' (other ids need globalThis.AI_SDK_DEFAULT_PROVIDER)`;
  }
  const instead = notAnObject(model);
  if (typeof model === 'function') return `${expected}: call the provider with the id of a model`;
  if (instead !== null)
    return instead.startsWith('a promise') ? `${expected}: await the promise` : expected;
  const { specificationVersion: version } = model as Partial<Model>;
  return ['v2', 'v3', 'v4'].includes(String(version))
    ? null
    : `${expected}, of specification v2, v3 or v4`;
}

interface CarefulOptions {
  readonly messages: readonly ModelMessage[];
  readonly ids: Ids;
  readonly clock: Clock | undefined;
  /** Called with the content of the answer as the SDK will read it. */
  answered(content: readonly ContentPart[]): void;
  /** If set, the model streams, and each delta is passed on as it arrives. */
  readonly said?: ((delta: Delta) => void) | undefined;
  /** The format of the answer, if the provider accepts it. */
  readonly structured?: Structured | null | undefined;
}

/**
 * Returns the same model for one step: enforces MODEL-1 and MODEL-2, and stamps the answer with the session's
 * clock.
 */
export function carefulModel(model: Model, options: CarefulOptions): Model {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    async doGenerate(call) {
      const { said, structured } = options;
      const ask = async (asked: Call): Promise<unknown> =>
        said
          ? streamedAnswer(await model.doStream(asked), asked.abortSignal, said)
          : model.doGenerate(asked);
      const answer = structured ? await askStructured(ask, call, structured) : await ask(call);
      checkAnswer(answer, model);
      if (structured && ignoresFormat(answer)) structured.ignored();
      const content = storable(repairCalls(answer.content.map(withJsonMetadata), options));
      options.answered(content);
      const { clock } = options;
      const timestamp = answer.response?.timestamp ?? (clock && new Date(clock.now()));
      const usage = countedUsage(answer.usage);
      const response = { ...answer.response, timestamp };
      return { ...withJsonMetadata(answer), content, usage, response };
    },
    doStream: (call) => model.doStream(call),
  };
}

/** STRUCT-1, STRUCT-2 */
async function askStructured(
  ask: (call: Call) => Promise<unknown>,
  call: Call,
  structured: Structured,
): Promise<unknown> {
  let refusal: unknown;
  let silent: Answer | null = null;
  try {
    const answer = await ask({ ...call, responseFormat: structured.format });
    if (!isSilent(answer)) return answer;
    silent = answer;
    refusal = new ProviderError('EMPTY_OUTPUT', 'The model ended without a word', {
      retryable: true,
    });
  } catch (error) {
    if (!mayRefuseFormat(error)) throw error;
    refusal = error;
  }
  call.abortSignal?.throwIfAborted();
  const answer = await ask(call);
  // The model gave no answer without the format either, so the format was not the cause.
  if (!isSilent(answer)) structured.refused(refusal);
  const { usage } = (answer ?? {}) as Partial<Answer>;
  return silent && usage
    ? { ...(answer as Answer), usage: bothUsages(silent.usage, usage) }
    : answer;
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

/** Removes provider metadata that is not JSON or is nested too deeply: no journal could store it. */
function withJsonMetadata<T extends { readonly providerMetadata?: unknown }>(part: T): T {
  if (part.providerMetadata === undefined || isJson(part.providerMetadata)) return part;
  const { providerMetadata: _, ...rest } = part;
  return rest as T;
}

type Usage = Answer['usage'];

/** Some providers return NaN, negative numbers, fractions or text as counts (MODEL-4). */
function countedUsage({ inputTokens, outputTokens, ...rest }: Usage): Usage {
  return { ...rest, inputTokens: counted(inputTokens), outputTokens: counted(outputTokens) };
}

function counted<Counts extends object>(counts: Counts): Counts {
  const checked = Object.entries(counts).map(([kind, count]) => [kind, tokenCount(count)]);
  return Object.fromEntries(checked) as Counts;
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
    const isUsable =
      typeof written === 'string' &&
      written !== '' &&
      storableId(written) === written &&
      !taken.has(written);
    const toolCallId = isUsable ? written : ids.next('call');
    taken.add(toolCallId);
    const input = argumentsOf(part.input);
    return isUsable && input === part.input ? part : { ...part, toolCallId, input };
  });
}

/**
 * According to the specification arguments are JSON text; some models return the value. Arguments that are
 * nested too deeply become a text that is not JSON, which fails this call and not the step (MODEL-3).
 */
function argumentsOf(input: unknown): string {
  if (typeof input !== 'string') {
    const json = asJson(input ?? {});
    return json.ok ? json.text : refusedArguments(json.message);
  }
  if (!mayBeDeep(input)) return input;
  try {
    return isTooDeep(JSON.parse(input)) ? refusedArguments(TOO_DEEP) : input;
  } catch {
    // The SDK reports the problem.
    return input;
  }
}

const refusedArguments = (why: string): string => `The arguments are no JSON: ${why}`;

/** A quick check, since most arguments are short: deep nesting needs this many brackets. */
function mayBeDeep(text: string): boolean {
  return text.length > 2 * MAX_DEPTH;
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
