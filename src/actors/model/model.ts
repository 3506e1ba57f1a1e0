// Prepares a model for one step. Converts any model that a user may pass to the current specification, checks answers,
// gives tool calls usable ids, and requests structured output from the provider for a subagent with an `outputSchema`.
// Also collects a stream into one answer, while it forwards the deltas. A streamed step therefore gets the same checks
// and repairs as every other step, at a fraction of the cost of streaming through the whole SDK.
//
// Owns:     the record of models, and of schemas for each model, for which the structured output format was refused.
// Does not: retry after an error that does not concern the format, or check an answer against its schema (`output.ts`
//           does).
//
// Invariants
//   MODEL-1. Every tool call that the runtime runs has an id that is storable and unique in the messages. The SDK would
//       treat two calls with the same id as one and lose the arguments of the second.
//   MODEL-2. An invalid answer is a ProviderError that names the problem: the SDK does not check answers, and the
//       journal refuses a call without a name.
//   MODEL-3. If a call's arguments are nested too deeply, the call fails, but the step does not.
//   MODEL-4. Token counts are whole numbers of at least 0, or absent.
//   STRUCT-1. A call that is refused because of its format (400, 422, or an SDK error about the format) is repeated
//       immediately without the format. If the repeated call succeeds, the format was the cause; if it fails too, its
//       error is reported.
//   STRUCT-2. After an empty answer, the call is also repeated without the format, because some provider packages
//       request JSON through an additional tool and ignore text. The tokens of both calls are counted.
//   STRUCT-3. If a model has refused the format for a schema, the format is not requested again for this schema and
//       model. After a model has refused two schemas, or has warned that it ignores the format, the format is no longer
//       requested from that model.
//   STREAMED-ANSWER-1. A streamed answer equals the same answer without streaming: its parts are in the order in which
//       they started, and empty parts are omitted.
//   STREAMED-ANSWER-2. The call fails if the stream contains an error or does not end properly.

import {
  APICallError,
  gateway,
  UnsupportedFunctionalityError,
  wrapLanguageModel,
  type FinishReason,
  type LanguageModel,
  type ModelMessage,
  type Schema,
} from 'ai';
import { z } from 'zod';
import { notAnObject, shown } from '../../values/plain-checks.ts';
import { ConfigurationError, ProviderError } from '../../values/errors.ts';
import { forgetOldest } from '../../values/forget-oldest.ts';
import type { Clock, Ids } from '../ports/environment.ts';
import {
  propertiesOf,
  asJson,
  isJson,
  isProviderOptions,
  isRecord,
  isTooDeep,
  MAX_DEPTH,
  TOO_DEEP,
} from '../../values/json.ts';
import { storable, storableId } from '../../values/storable.ts';
import { tokenCount } from '../contracts/usage.ts';
import { knownJsonSchema } from './schema.ts';

export type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
export type Answer = Awaited<ReturnType<Model['doGenerate']>>;
type ContentPart = Answer['content'][number];
type Call = Parameters<Model['doGenerate']>[0];

const adapted = new WeakMap<object, Model>();

/**
 * Returns a model of the current specification. A string is resolved by the default provider, or else by the gateway,
 * as in the SDK. Otherwise, the SDK would mistake a provider registry for an older provider.
 * @throws {ConfigurationError} INVALID_MODEL; and the provider's error for an unknown id.
 */
export function resolveModel(model: LanguageModel): Model {
  if (typeof model === 'string') {
    const provider = globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway;
    return resolveModel(provider.languageModel(model));
  }
  // The model is external input: its actual type may differ from the declared one.
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
 * @throws {ConfigurationError} INVALID_MODEL, or NO_MODEL if it is undefined; the message shows an example of a valid value.
 */
export function checkModel(where: string, model: unknown): void {
  const problem = modelProblem(model);
  if (problem === null) return;
  const code = model === undefined ? 'NO_MODEL' : 'INVALID_MODEL';
  throw new ConfigurationError(code, `${where}: ${problem}, got ${shown(model)}`);
}

/** Describes what is wrong with a model; null if it looks valid. A string is an id for the default provider or the gateway. */
function modelProblem(model: unknown): string | null {
  const expected = "expected a model of the AI SDK such as openai('gpt-5.4')";
  if (typeof model === 'string') {
    const isId = globalThis.AI_SDK_DEFAULT_PROVIDER !== undefined || model.includes('/');
    return isId
      ? null
      : `${expected}, or an id of the AI gateway such as 'openai/gpt-5.4' (other ids need globalThis.AI_SDK_DEFAULT_PROVIDER)`;
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
  /** Receives the answer's content as the SDK will read it. */
  answered(content: readonly ContentPart[]): void;
  /** If set, the model streams, and `said` receives each delta as it arrives. */
  readonly said?: ((delta: Delta) => void) | undefined;
  /** The format of the answer, if the provider accepts it. */
  readonly structured?: Structured | null | undefined;
}

/** Wraps the model for one step: enforces MODEL-1 and MODEL-2, and adds the session's time to the answer. */
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
      const warnings = warningsOf(answer);
      if (structured && warnings.some(isOfFormat)) structured.ignored();
      const content = storable(repairCalls(answer.content.map(withJsonMetadata), options));
      options.answered(content);
      const { clock } = options;
      // The response is external data: spreading a string would yield its characters.
      const given: Answer['response'] = isRecord(answer.response) ? answer.response : {};
      const timestamp = given.timestamp ?? (clock && new Date(clock.now()));
      const usage = countedUsage(answer.usage);
      const response = { ...given, timestamp };
      return { ...withJsonMetadata(answer), content, usage, response, warnings };
    },
    doStream: (call) => model.doStream(call),
  };
}

function checkAnswer(answer: unknown, { provider, modelId }: Model): asserts answer is Answer {
  const { content, finishReason, usage } = (answer ?? {}) as Partial<Answer>;
  const missing = Array.isArray(content)
    ? typeof finishReason?.unified !== 'string'
      ? 'finishReason {unified, raw}'
      : !isRecord(usage?.inputTokens) || !isRecord(usage.outputTokens)
        ? 'usage {inputTokens, outputTokens}'
        : null
    : 'content [parts]';
  const name = `${provider}/${modelId}`;
  if (missing !== null) throw malformed(missing, answer, name);
  for (const part of content as readonly unknown[]) {
    const lacks = lackOf(part);
    if (lacks !== null) throw malformed(lacks, part, name);
  }
}

/** The string properties that each kind of part must have. A call without a usable id receives one (MODEL-1). */
const TEXTS_OF: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  reasoning: ['text'],
  'tool-call': ['toolName'],
  'tool-result': ['toolName', 'toolCallId'],
  'tool-approval-request': ['approvalId', 'toolCallId'],
  file: ['mediaType'],
  'reasoning-file': ['mediaType'],
  custom: ['kind'],
};

/**
 * Returns the name of the property that is missing from a part of an answer; null if the part has everything that the
 * runtime reads.
 */
function lackOf(part: unknown): string | null {
  if (!isRecord(part) || typeof part['type'] !== 'string') return 'parts {type, …}';
  const { type, toolName, toolCallId, providerExecuted, result } = part;
  const texts = Object.hasOwn(TEXTS_OF, type) ? TEXTS_OF[type] : [];
  for (const name of texts ?? [])
    if (typeof part[name] !== 'string') return `a ${type} with a text as its ${name}`;
  if (type === 'tool-call' && toolName === '') return 'a tool-call with the name of a tool';
  if (type === 'tool-call' && providerExecuted === true && typeof toolCallId !== 'string')
    return 'a tool-call with a text as its toolCallId';
  return type === 'tool-result' && !isJson(result) ? 'a tool-result with JSON as its result' : null;
}

function malformed(expected: string, got: unknown, name = ''): ProviderError {
  const instead = isRecord(got) ? `the keys ${Object.keys(got).join(', ')}` : shown(got);
  return new ProviderError(
    'MALFORMED_RESPONSE',
    `Expected the model${name === '' ? '' : ` ${name}`} to answer with ${expected}, got ${instead}`,
  );
}

/**
 * Removes provider metadata that is not a record of JSON objects by provider, or that is nested too deeply. Otherwise,
 * a journal could not store it, or the SDK would refuse the next prompt that contains it.
 */
function withJsonMetadata<T extends { readonly providerMetadata?: unknown }>(part: T): T {
  const { providerMetadata: given } = part;
  if (given === undefined || isProviderOptions(given)) return part;
  const { providerMetadata: _, ...rest } = part;
  return rest as T;
}

type Usage = Answer['usage'];

/** Some providers return NaN, negative numbers, fractions or strings as counts (MODEL-4). */
function countedUsage({ inputTokens, outputTokens, ...rest }: Usage): Usage {
  return { ...rest, inputTokens: counted(inputTokens), outputTokens: counted(outputTokens) };
}

function counted<Counts extends object>(counts: Counts): Counts {
  if (Object.values(counts).every((count) => Object.is(tokenCount(count), count))) return counts;
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
  // A call that the provider executes keeps its id, because the provider's result refers to that id.
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
    let toolCallId = isUsable ? written : ids.next('call');
    // The model itself may have generated an id of this form.
    while (!isUsable && taken.has(toolCallId)) toolCallId = ids.next('call');
    taken.add(toolCallId);
    const input = argumentsOf(part.input);
    return isUsable && input === part.input ? part : { ...part, toolCallId, input };
  });
}

/**
 * Returns the arguments as a string. The specification requires JSON text, but some models return the value. Arguments
 * that are nested too deeply are returned as a string that is not JSON, so that the call fails instead of the step
 * (MODEL-3).
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
    // The SDK will report invalid JSON.
    return input;
  }
}

const refusedArguments = (why: string): string => `The arguments are no JSON: ${why}`;

/** A quick check for arguments of the usual size: nesting beyond the limit requires at least this many brackets. */
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

type ResponseFormat = NonNullable<Call['responseFormat']>;

/** The number of refused schemas after which a model is considered to refuse the format for every schema. */
const REFUSALS_OF_A_MODEL = 2;

/** The maximum number of models (by id) whose refusals are remembered; the oldest are removed. */
const MOST_NAMED = 100;

interface Refused {
  isWhole: boolean;
  readonly schemas: WeakSet<Schema>;
  count: number;
}

const byModel = new WeakMap<object, Refused>();
const byName = new Map<string, Refused>();

/** The format for one call's answer, and callbacks that report how the provider handled it. */
export interface Structured {
  readonly format: ResponseFormat;
  /** Records that the provider refused the format and then answered without it. `error`: the refusal. */
  refused(error: unknown): void;
  /** Records that the provider answered, but reported that it ignored the format. */
  ignored(): void;
}

/**
 * Returns the format to request for answers that match a schema. Returns null if the format can only be described in
 * the instructions, because the schema does not describe an object (most providers accept only objects), is not known
 * yet, or was refused before. `report` is called with the first refusal.
 */
export function structuredFor(
  model: LanguageModel,
  schema: Schema,
  report: (error: unknown) => void,
): Structured | null {
  const known = knownJsonSchema(schema);
  if (known?.['type'] !== 'object') return null;
  const refused = refusedOf(model);
  if (refused.isWhole || refused.schemas.has(schema)) return null;
  return {
    format: { type: 'json', schema: known, name: 'result' },
    refused(error) {
      if (refused.isWhole || refused.schemas.has(schema)) return;
      refused.schemas.add(schema);
      refused.count += 1;
      refused.isWhole = refused.count >= REFUSALS_OF_A_MODEL;
      report(error);
    },
    ignored() {
      refused.isWhole = true;
    },
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
  // If the call also fails without the format, the format was not the cause.
  if (!isSilent(answer)) structured.refused(refusal);
  const { usage } = (answer ?? {}) as Partial<Answer>;
  return silent && usage
    ? { ...(answer as Answer), usage: bothUsages(silent.usage, usage) }
    : answer;
}

/** Returns whether the format of the answer may have caused this error. */
function mayRefuseFormat(error: unknown): boolean {
  if (UnsupportedFunctionalityError.isInstance(error)) return true;
  return APICallError.isInstance(error) && (error.statusCode === 400 || error.statusCode === 422);
}

/** Returns whether the answer contains neither text nor a call. */
function isSilent(answer: unknown): answer is Answer {
  const { content, finishReason, usage } = (answer ?? {}) as Partial<Answer>;
  const isCut = finishReason?.unified !== 'stop' && finishReason?.unified !== 'tool-calls';
  if (!Array.isArray(content) || !usage || isCut) return false;
  return content.every(
    (part) => part.type === 'reasoning' || (part.type === 'text' && part.text.trim() === ''),
  );
}

function bothUsages(one: Answer['usage'], other: Answer['usage']): Answer['usage'] {
  return {
    ...other,
    inputTokens: sumOf(one.inputTokens, other.inputTokens),
    outputTokens: sumOf(one.outputTokens, other.outputTokens),
  };
}

function sumOf<T extends object>(one: T, other: T): T {
  const entries = Object.entries(other).map(([name, count]) => {
    const more: unknown = propertiesOf(one)[name];
    const isCounted = typeof count === 'number' && typeof more === 'number';
    return [name, isCounted ? count + more : (count ?? more)] as const;
  });
  return Object.fromEntries(entries) as T;
}

type Warnings = Answer['warnings'];

const MOST_WARNINGS = 20;

/**
 * Returns the first 20 warnings that are JSON records. If a warning were a string, the SDK would print it to the
 * console letter by letter.
 */
function warningsOf({ warnings }: { readonly warnings?: unknown }): Warnings {
  const given: unknown[] = Array.isArray(warnings) ? warnings : [];
  return given.filter((each) => isRecord(each) && isJson(each)).slice(0, MOST_WARNINGS) as Warnings;
}

/** Returns whether a warning says that the format was ignored; older specifications call the property `setting`. */
function isOfFormat(warning: Readonly<Record<string, unknown>>): boolean {
  return warning['feature'] === 'responseFormat' || warning['setting'] === 'responseFormat';
}

function refusedOf(model: LanguageModel): Refused {
  const known = typeof model === 'string' ? byName.get(model) : byModel.get(model);
  if (known) return known;
  const fresh: Refused = { isWhole: false, schemas: new WeakSet(), count: 0 };
  if (typeof model !== 'string') byModel.set(model, fresh);
  else {
    byName.set(model, fresh);
    forgetOldest(byName, MOST_NAMED);
  }
  return fresh;
}

/** A piece of text or reasoning from the stream. */
export interface Delta {
  readonly type: 'text' | 'reasoning';
  readonly delta: string;
}

type Stream = Awaited<ReturnType<Model['doStream']>>;

type StreamPart = Stream['stream'] extends ReadableStream<infer Part> ? Part : never;

type Words = Extract<ContentPart, { type: 'text' | 'reasoning' }>;

type Finish = Extract<StreamPart, { type: 'finish' }>;

/**
 * Reads the stream to its end.
 * @throws the stream's error, {ProviderError} STREAM_CUT_OFF, or `signal.reason`.
 */
export async function streamedAnswer(
  { stream, request, response }: Stream,
  signal: AbortSignal | undefined,
  told: (delta: Delta) => void,
): Promise<Answer> {
  const content: ContentPart[] = [];
  const open = new Map<string, Words>();
  let warnings: Answer['warnings'] = [];
  const metadata: NonNullable<Answer['response']> = { ...response };
  let finish: Finish | null = null;
  for await (const part of stream) {
    // The answer is no longer needed; leaving the loop cancels the stream.
    signal?.throwIfAborted();
    if (part === null || typeof part !== 'object') throw malformed('parts {type, …}', part);
    switch (part.type) {
      case 'stream-start':
        warnings = part.warnings;
        break;
      case 'response-metadata': {
        const { type: _, ...rest } = part;
        Object.assign(metadata, rest);
        break;
      }
      case 'text-start':
      case 'reasoning-start': {
        const type = part.type === 'text-start' ? 'text' : 'reasoning';
        const words: Words = { type, text: '' };
        open.set(`${type}/${part.id}`, words);
        content.push(words);
        note(words, part);
        break;
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const type = part.type === 'text-delta' ? 'text' : 'reasoning';
        const words = open.get(`${type}/${part.id}`);
        if (typeof part.delta !== 'string')
          throw malformed(`a ${part.type} with a text as its delta`, part);
        // The signature of the reasoning may arrive in a delta without text.
        note(words, part);
        if (!words || part.delta === '') break;
        words.text += part.delta;
        told({ type, delta: part.delta });
        break;
      }
      case 'text-end':
      case 'reasoning-end':
        note(open.get(`${part.type === 'text-end' ? 'text' : 'reasoning'}/${part.id}`), part);
        break;
      case 'finish':
        finish = part;
        break;
      case 'error':
        throw part.error;
      // The complete call follows in a part of its own.
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
      case 'ping':
      case 'raw':
        break;
      case 'tool-call':
      case 'tool-result':
      case 'tool-approval-request':
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'custom':
        content.push(part);
        break;
      default:
        break;
    }
  }
  if (finish === null) throw cutOff();
  const { usage, finishReason, providerMetadata } = finish;
  // `checkAnswer` reports properties that are missing (MODEL-2).
  const { inputTokens, outputTokens }: Partial<Usage> = usage ?? {};
  const tokens = inputTokens?.total ?? outputTokens?.total;
  if (hasJustEnded(finishReason?.unified, finishReason?.raw, tokens)) throw cutOff();
  return {
    content: content.filter((part) => !isWords(part) || holdsSomething(part)),
    finishReason,
    usage,
    warnings,
    ...(providerMetadata === undefined ? {} : { providerMetadata }),
    ...(request === undefined ? {} : { request }),
    ...(Object.keys(metadata).length === 0 ? {} : { response: metadata }),
  };
}

/**
 * Returns whether the stream was cut off, although the provider's package reported a normal end. Some packages then
 * report `interrupted`; others report neither a finish reason nor token counts.
 */
export function hasJustEnded(
  reason: FinishReason,
  raw: string | undefined,
  tokens: number | undefined,
): boolean {
  if (reason === 'interrupted') return true;
  return reason === 'other' && raw === undefined && tokens === undefined;
}

/** Creates the error for a stream that ended before the provider had finished. */
export function cutOff(): ProviderError {
  return new ProviderError(
    'STREAM_CUT_OFF',
    'The stream of the model ended in mid-answer, before the provider had finished',
    { retryable: true },
  );
}

/** A provider may withhold the text of its reasoning and send only the signature. */
function holdsSomething({ text, providerMetadata }: Words): boolean {
  return text !== '' || providerMetadata !== undefined;
}

function isWords(part: ContentPart): part is Words {
  return part.type === 'text' || part.type === 'reasoning';
}

/** Copies signatures and citations to the part to which they belong. The most recent ones are complete. */
function note(words: Words | undefined, part: StreamPart): void {
  if (!words) return;
  if ('providerMetadata' in part && part.providerMetadata !== undefined)
    words.providerMetadata = part.providerMetadata;
  if (words.type === 'text' && 'citations' in part && part.citations !== undefined)
    words.citations = part.citations;
}
