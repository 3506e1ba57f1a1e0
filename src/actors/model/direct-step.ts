// A model call without the loop of `generateText`, where call and answer are plain: texts, reasoning, calls of the
// runtime's tools and their results. The loop prepares far more than one step needs, which is a quarter of a run.
//
// Owns:     which calls and answers are plain, how they are told to the model, and how they are read.
// Does not: read anything else: `generateText` does (model-step.ts), from the answer that is there already.
//
// Invariants
//   DIRECT-1. The model gets the options that `generateText` would give it, and its answer is read as
//       `generateText` would read it.
//   DIRECT-2. Anything else is left to `generateText`, and so is every error: files, tools of providers, results
//       with files, system messages, calls without results, other settings; in answers warnings, sources,
//       files, calls that the provider ran, and calls that are not valid or not permitted. The model is called
//       once in any case.
//   DIRECT-3. The first call of a process is made by `generateText`. If this file had made other options of it,
//       or read another step, the installed SDK is not the one that it knows, and makes all calls.

import type { generateText, ModelMessage, Schema, ToolChoice, ToolSet } from 'ai';
import type { Answer, Model } from './model.ts';
import { knownJsonSchema, validateWith } from './schema.ts';

type Call = Parameters<Model['doGenerate']>[0];
type Message = Call['prompt'][number];
type CallTool = NonNullable<Call['tools']>[number];
type Options = ModelMessage['providerOptions'];

type SdkStep = Awaited<ReturnType<typeof generateText>>['finalStep'];

/** The parts of a step of `generateText` that the runtime reads. */
export type StepRead = Pick<
  SdkStep,
  'content' | 'text' | 'reasoningText' | 'finishReason' | 'usage' | 'providerMetadata'
> & { readonly response: Pick<SdkStep['response'], 'messages'> };

/** A step that is to be made. */
export interface Asked {
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: ToolSet | undefined;
  readonly toolChoice: ToolChoice<ToolSet> | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly signal: AbortSignal;
}

/** Makes the step with `generateText`. */
type BySdk = (model: Model) => Promise<StepRead>;

/** The finding of the first call: the headers of the SDK; null: no call was made; `other`: another SDK. */
let shown: Readonly<Record<string, string | undefined>> | null | 'other' = null;

/** Calls the model once: directly, where that is certain to be the same, or else `bySdk`. */
export async function directStep(model: Model, asked: Asked, bySdk: BySdk): Promise<StepRead> {
  const call = shown === 'other' ? null : orNull(() => plainCall(asked));
  if (call === null) return bySdk(model);
  if (shown === null || shown === 'other') return firstStep(model, asked, call, bySdk);
  let answer: Answer;
  try {
    answer = await model.doGenerate({ ...call, headers: { ...shown } });
  } catch (error) {
    return bySdk({
      ...model,
      doGenerate: () => {
        throw error;
      },
    });
  }
  return (
    (await plainStep(answer, asked)) ??
    bySdk({ ...model, doGenerate: () => Promise.resolve(answer) })
  );
}

/** A message or an answer that cannot even be looked at is not plain. */
function orNull<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}

/** DIRECT-3 */
async function firstStep(model: Model, asked: Asked, call: Call, bySdk: BySdk): Promise<StepRead> {
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
  if (!made || !answer) return step;
  const own = await plainStep(answer, asked);
  if (own === null) return step;
  const isSame = textOf(call) === textOf(made) && textOf(readIn(own)) === textOf(readIn(step));
  shown = isSame ? (made.headers ?? {}) : 'other';
  return step;
}

function textOf(value: object): string {
  return JSON.stringify({ ...value, headers: undefined, abortSignal: undefined });
}

function readIn({
  text,
  reasoningText,
  finishReason,
  usage,
  providerMetadata,
  response,
}: StepRead) {
  return { text, reasoningText, finishReason, usage, providerMetadata, said: response.messages };
}

/** Returns the options of a plain call, without headers; null: it is not plain. */
function plainCall(asked: Asked): Call | null {
  const { toolChoice, maxOutputTokens, signal } = asked;
  if (toolChoice !== undefined && toolChoice !== 'none' && toolChoice !== 'auto') return null;
  if (maxOutputTokens !== undefined && !(Number.isInteger(maxOutputTokens) && maxOutputTokens > 0))
    return null;
  const tools = plainTools(asked.tools);
  const prompt = plainPrompt(asked);
  if (tools === null || prompt === null) return null;
  return {
    maxOutputTokens,
    temperature: undefined,
    topP: undefined,
    topK: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    stopSequences: undefined,
    seed: undefined,
    reasoning: undefined,
    tools,
    toolChoice: { type: toolChoice ?? 'auto' },
    responseFormat: undefined,
    prompt,
    providerOptions: undefined,
    abortSignal: signal,
  };
}

type Tools = readonly CallTool[] | null | undefined;

/** A run has the same tools in all its steps, and so have all runs of one configuration. */
const knownTools = new WeakMap<ToolSet, Tools>();

function plainTools(tools: ToolSet | undefined): CallTool[] | null | undefined {
  if (!tools) return undefined;
  if (!knownTools.has(tools)) knownTools.set(tools, madeTools(tools));
  // A copy: a provider may change what it is given.
  return knownTools.get(tools)?.map((tool) => ({ ...tool })) ?? null;
}

function madeTools(tools: ToolSet): Tools {
  const made: CallTool[] = [];
  for (const [name, tool] of Object.entries(tools)) {
    const { type, description, inputExamples, providerOptions, strict } = tool;
    const isOurs = type === undefined || type === 'dynamic' || type === 'function';
    if (!isOurs || typeof description === 'function') return null;
    const inputSchema = knownJsonSchema(tool.inputSchema as Schema);
    if (inputSchema === null) return null;
    made.push({
      type: 'function',
      name,
      inputSchema,
      ...(description === undefined ? {} : { description }),
      ...(inputExamples === undefined
        ? {}
        : { inputExamples: [...inputExamples] as { input: never }[] }),
      ...(providerOptions === undefined ? {} : { providerOptions }),
      ...(strict === undefined ? {} : { strict }),
    });
  }
  return made.length > 0 ? made : undefined;
}

function plainPrompt({ instructions, messages }: Asked): Message[] | null {
  if (messages.length === 0) return null;
  const prompt: Message[] = instructions === '' ? [] : [{ role: 'system', content: instructions }];
  const open = new Set<string>();
  for (const message of messages) {
    const plain = plainMessage(message);
    if (plain === null) return null;
    const last = prompt.at(-1);
    if (plain.role === 'user' && open.size > 0) return null;
    if (plain.role === 'assistant')
      for (const part of plain.content) if (part.type === 'tool-call') open.add(part.toolCallId);
    if (plain.role === 'tool')
      for (const part of plain.content)
        if (part.type === 'tool-result') open.delete(part.toolCallId);
    if (plain.role === 'tool' && last?.role === 'tool') last.content.push(...plain.content);
    else if (plain.role !== 'tool' || plain.content.length > 0) prompt.push(plain);
  }
  return open.size > 0 ? null : prompt;
}

function plainMessage(message: ModelMessage): Message | null {
  switch (message.role) {
    case 'user':
      return plainUser(message.content, message.providerOptions);
    case 'assistant':
      return plainAssistant(message.content, message.providerOptions);
    case 'tool': {
      if (message.providerOptions !== undefined) return null;
      const content = message.content.map(plainResult);
      return content.every((part) => part !== null)
        ? { role: 'tool', content, providerOptions: undefined }
        : null;
    }
    case 'system':
      return null;
  }
}

type ContentOf<Role> = Extract<ModelMessage, { role: Role }>['content'];
type PartOf<Role> = Extract<Message, { role: Role }>['content'][number];

function plainUser(content: ContentOf<'user'>, providerOptions: Options): Message | null {
  if (typeof content === 'string')
    return { role: 'user', content: [{ type: 'text', text: content }], providerOptions };
  const parts: PartOf<'user'>[] = [];
  for (const part of content) {
    if (part.type !== 'text') return null;
    const { text } = part;
    if (text !== '') parts.push({ type: 'text', text, providerOptions: part.providerOptions });
  }
  return { role: 'user', content: parts, providerOptions };
}

function plainAssistant(content: ContentOf<'assistant'>, providerOptions: Options): Message | null {
  if (typeof content === 'string')
    return { role: 'assistant', content: [{ type: 'text', text: content }], providerOptions };
  const parts: PartOf<'assistant'>[] = [];
  for (const part of content) {
    const { providerOptions: own } = part as { readonly providerOptions?: Options };
    if (part.type === 'text') {
      if (part.text !== '' || own !== undefined)
        parts.push({ type: 'text', text: part.text, providerOptions: own });
    } else if (part.type === 'reasoning')
      parts.push({ type: 'reasoning', text: part.text, providerOptions: own });
    else if (part.type === 'tool-call' && part.providerExecuted !== true) {
      const { type, toolCallId, toolName, input, providerExecuted } = part;
      parts.push({ type, toolCallId, toolName, input, providerExecuted, providerOptions: own });
    } else return null;
  }
  return { role: 'assistant', content: parts, providerOptions };
}

function plainResult(part: ContentOf<'tool'>[number]): PartOf<'tool'> | null {
  if (part.type !== 'tool-result' || part.output.type === 'content') return null;
  const { type, toolCallId, toolName, output, providerOptions } = part;
  return { type, toolCallId, toolName, output, providerOptions };
}

type Part = Answer['content'][number];

/** Returns the step of a plain answer; null: it is not plain. */
function plainStep(answer: Answer, asked: Asked): Promise<StepRead | null> {
  return read(answer, asked).catch(() => null);
}

async function read(answer: Answer, { tools, toolChoice }: Asked): Promise<StepRead | null> {
  // External data, also of models of an older specification.
  if (((answer.warnings ?? []) as readonly unknown[]).length > 0) return null;
  const content: object[] = [];
  const said: object[] = [];
  let text = '';
  let reasoning = '';
  for (const part of answer.content) {
    const { type } = part;
    const providerOptions = metadataOf(part);
    if (type === 'text' || type === 'reasoning') {
      if (typeof part.text !== 'string') return null;
      content.push(part);
      if (type === 'text') text += part.text;
      else reasoning += part.text;
      if (type === 'reasoning' || part.text !== '' || providerOptions !== undefined)
        said.push({ type, text: part.text, providerOptions });
      continue;
    }
    const call = toolChoice === 'none' ? null : await plainToolCall(part, tools);
    if (call === null) return null;
    content.push(call);
    said.push({ ...call, providerOptions });
  }
  return {
    content,
    text,
    reasoningText: reasoning === '' ? undefined : reasoning,
    finishReason: answer.finishReason.unified,
    usage: usageOf(answer.usage),
    providerMetadata: answer.providerMetadata,
    response: { messages: said.length > 0 ? [{ role: 'assistant', content: said }] : [] },
  } as StepRead;
}

/** A copy: the provider may go on with its own. */
function metadataOf(part: Part): Options {
  const { providerMetadata } = part as { readonly providerMetadata?: Options };
  return providerMetadata && structuredClone(providerMetadata);
}

/** The SDK refuses some keys in arguments, and looks for them in this way, escaped or not. */
const suspect = /__proto__|constructor|\\u/;

/** Returns a call of one of these tools with valid arguments; null for any other part. */
async function plainToolCall(part: Part, tools: ToolSet | undefined): Promise<object | null> {
  if (part.type !== 'tool-call' || part.providerExecuted === true) return null;
  const { type, toolCallId, toolName, input: written, providerExecuted } = part;
  const tool = tools && Object.hasOwn(tools, toolName) ? tools[toolName] : undefined;
  if (!tool || typeof written !== 'string' || suspect.test(written)) return null;
  let parsed: unknown;
  try {
    parsed = written.trim() === '' ? {} : JSON.parse(written);
  } catch {
    return null;
  }
  const checked = await validateWith(tool.inputSchema as Schema, parsed);
  if (!checked.ok) return null;
  return { type, toolCallId, toolName, input: checked.value, providerExecuted };
}

function usageOf({ inputTokens, outputTokens, raw }: Answer['usage']): StepRead['usage'] {
  const isUncounted = inputTokens.total === undefined && outputTokens.total === undefined;
  return {
    inputTokens: inputTokens.total,
    inputTokenDetails: {
      noCacheTokens: inputTokens.noCache,
      cacheReadTokens: inputTokens.cacheRead,
      cacheWriteTokens: inputTokens.cacheWrite,
    },
    outputTokens: outputTokens.total,
    outputTokenDetails: { textTokens: outputTokens.text, reasoningTokens: outputTokens.reasoning },
    totalTokens: isUncounted ? undefined : (inputTokens.total ?? 0) + (outputTokens.total ?? 0),
    raw,
  };
}
