// Runs an AI SDK agent as a subagent: a `ToolLoopAgent`'s settings become a configuration, and its loop (`prepareStep`,
// `stopWhen`) becomes the executor of the steps.
//
// Owns:     the list of supported settings, and the replacements for the others; the arguments and results of the
//           agent's functions; the changes that these functions make for later steps, in memory.
// Does not: call a model or a tool, or ask the user (the subagent does).
//
// Invariants
//   AGENT-SETTINGS-1. Every setting is either supported or refused with an error that contains its name.
//   AGENT-LOOP-1. The agent's functions receive the steps of this run in the AI SDK's form, including steps from
//       another process. The sum of the steps' usage is exact, even after a restart: the first step then contains the
//       usage of all earlier steps.
//   AGENT-LOOP-2. Once a stop condition is met, a step offers only the tools that submit the result. The model's next
//       answer is therefore the result. The SDK's own loop would stop without that answer and leave the user without a
//       result.
//   AGENT-LOOP-3. The run fails if a function throws, or returns a value that the SDK does not document.

import {
  isStepCount,
  type JSONValue,
  type LanguageModel,
  type ModelMessage,
  type ToolSet,
} from 'ai';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError, isA, messageOf, OffstageError } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import { checkIsObject, readable, shown } from '../../values/plain-checks.ts';
import {
  NOT_KEPT,
  type AgentLoop,
  type AgentSettings,
  type CallSettings,
} from '../contracts/agent-loop.ts';
import type { SubagentConfig } from '../contracts/config.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import { addUsage, NO_USAGE, usageSince, type ModelNames, type Usage } from '../contracts/usage.ts';
import { aToolApproval } from '../model/approval.ts';
import { aModel } from '../model/model.ts';
import { roleOf } from '../model/tool-flags.ts';
import type { ModelResponse } from '../model/model-step.ts';
import { namesOf } from '../model/price.ts';
import type { ToolOutcome } from '../model/tool-results.ts';
import type { PreparedTools } from '../model/tools.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { completionToolIn } from './child-toolset.ts';
import { nameOf } from './config.ts';
import { checkParts } from './define-subagent.ts';
import type {
  Acting,
  Executor,
  ExecutorRun,
  Maker,
  PreparedStep,
  StepLoop,
  Thinking,
} from './executor.ts';
import type { Instance } from './instance.ts';
import type { SubagentLog } from './subagent-log.ts';

/** Subagent options that are derived from an agent's settings. */
const FROM_AGENT = ['instructions', 'tools', 'model', 'toolApproval', 'toolsContext'] as const;
type FromAgent = (typeof FROM_AGENT)[number];

/** A configuration whose model, tools and loop come from an AI SDK agent. */
export type AgentSubagentConfig<
  TOOLS extends ToolSet = ToolSet,
  RUNTIME_CONTEXT extends Record<string, unknown> = Record<string, unknown>,
> = Omit<SubagentConfig, FromAgent | 'name' | 'agent' | 'relay' | 'runs'> & {
  /** The subagent's name in events, in the inspector and in messages to the user. @defaultValue the agent's id */
  readonly name?: string;
  /** The settings, as passed to `new ToolLoopAgent(settings)`. */
  readonly agent: AgentSettings<TOOLS, RUNTIME_CONTEXT>;
};

/** The step limit, in case a stop condition is never met. Normally, the agent's own conditions end the loop. */
const MAX_STEPS = 1000;
/** The default of a `ToolLoopAgent`. */
const DEFAULT_STEPS = 20;

type Hook = (options: object) => unknown;
const aHook = z.custom<Hook>((value) => typeof value === 'function', {
  error: 'expected a function',
});
/** Call settings that a step may override. */
const callChecks = {
  maxOutputTokens: z.number().int().min(1).optional(),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  stopSequences: z.array(z.string()).optional(),
  seed: z.number().int().optional(),
  reasoning: z
    .enum(['provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
    .optional(),
  toolChoice: z
    .union(
      [
        z.enum(['auto', 'none', 'required']),
        z.strictObject({ type: z.literal('tool'), toolName: z.string() }),
      ],
      { error: "expected 'auto', 'none', 'required' or { type: 'tool', toolName }" },
    )
    .optional(),
  providerOptions: z.record(z.string(), z.record(z.string(), z.json())).optional(),
};
const systemMessage = z.strictObject(
  { role: z.literal('system'), content: z.string() },
  { error: 'expected text, or a system message without options of a provider' },
);
const aRecord = z.record(z.string(), z.unknown());
/** Settings that `prepareStep` may change for its step and for later ones. */
const loopChecks = {
  instructions: z
    .union([z.string(), systemMessage], {
      error: 'expected text, or one system message without options of a provider',
    })
    .transform((words) => (typeof words === 'string' ? words : words.content))
    .optional(),
  activeTools: z.array(z.string()).optional(),
  toolOrder: z.array(z.string()).optional(),
  runtimeContext: aRecord.optional(),
  toolsContext: z.record(z.string(), aRecord).optional(),
};
const repair = z.custom<AgentLoop['call']['repairToolCall']>(
  (value) => typeof value === 'function',
  { error: 'expected a function' },
);
const settingsSchema = z.strictObject({
  ...callChecks,
  ...loopChecks,
  id: z.string().min(1).optional(),
  model: aModel,
  tools: aRecord.optional(),
  headers: z.record(z.string(), z.string().optional()).optional(),
  maxRetries: z.number().int().min(0).optional(),
  timeout: z
    .number('expected milliseconds; limits of single calls are `toolTimeout` beside `agent`')
    .positive()
    .optional(),
  stopWhen: z
    .union([aHook, z.array(aHook)], { error: 'expected a function, or several' })
    .optional(),
  prepareStep: aHook.optional(),
  toolApproval: aToolApproval.optional(),
  repairToolCall: repair.optional(),
  experimental_repairToolCall: repair.optional(),
});

/** The error if a model calls tools when only a result is expected. */
const NOT_STOPPED = {
  code: 'TOOL_CHOICE_VIOLATION',
  message:
    'The stop condition of the agent was met, and its model called a tool instead of giving its result',
  retryable: true,
};

interface Known {
  readonly usage: Usage;
  readonly finishReason: string;
  readonly model: ModelNames;
  readonly providerMetadata: unknown;
}

type Context = Readonly<Record<string, unknown>>;

const preparedSchema = z.strictObject({
  ...callChecks,
  ...loopChecks,
  system: loopChecks.instructions,
  model: aModel.optional(),
  messages: z
    .array(z.custom<ModelMessage>((value) => typeof value === 'object' && value !== null))
    .min(1)
    .optional(),
});

const agentSteps: AgentLoop['steps'] & Maker<AgentLoop> = {
  stepsBy: 'agent',
  make: (run, loop, inner) => new AgentRun(run, loop, inner),
};

/**
 * Returns the configuration of a subagent that works like `new ToolLoopAgent(settings)`: `{ agent: settings }`,
 * together with any subagent options. Its steps, tool calls and approvals are those of a subagent: the journal records
 * them, limits apply to them, and they continue after a crash. `maxSteps` is 1000, because the agent's `stopWhen` ends
 * the loop (default: after 20 steps). The model is then called once more, without tools, for its result.
 * @throws {ConfigurationError} if a subagent refuses a setting; the message names the setting and its replacement.
 */
export function agentSubagent<
  TOOLS extends ToolSet,
  RUNTIME_CONTEXT extends Record<string, unknown> = Record<string, unknown>,
>(config: AgentSubagentConfig<TOOLS, RUNTIME_CONTEXT>): SubagentConfig {
  const path = nameOf(config, 'agentSubagent(config)');
  checkIsObject(path, config, '{ agent: { model, instructions, tools } }');
  const own = configOfAgent(config, path);
  checkParts(nameOf(own, path), own);
  return own;
}

/** The loop of one run, which wraps the executor of the steps. */
class AgentRun implements Executor, StepLoop {
  readonly #loop: AgentLoop;
  readonly #inner: Executor;
  readonly loop: StepLoop = this;
  readonly #id: string;
  #instructions: string | undefined;
  #runtimeContext: Context;
  #toolsContext: Readonly<Record<string, Context>> | undefined;
  /** The messages that a step has put in place of the first messages in the log. */
  #instead: { readonly messages: readonly ModelMessage[]; readonly of: number } | null = null;
  /** Data about the steps that exists only in this process, by step number. */
  readonly #known: Known[] = [];
  /** The number of steps that have been passed to the stop conditions. */
  #judged = 0;
  #isStopped = false;
  /** The current step's number and model. */
  #step = 0;
  #model: ModelNames = namesOfModel(null);

  constructor({ worker }: ExecutorRun, loop: AgentLoop, inner: Executor) {
    this.#loop = loop;
    this.#inner = inner;
    this.#id = worker.id;
    this.#runtimeContext = loop.runtimeContext;
  }

  async think(step: Thinking, signal: AbortSignal): Promise<ModelResponse> {
    const response = await this.#inner.think(step, signal);
    if (!step.final) this.#responded(response);
    return response;
  }

  act(acting: Acting, signal: AbortSignal): ToolOutcome | Promise<ToolOutcome> {
    return this.#inner.act(acting, signal);
  }

  release(why: 'ended' | 'suspended'): void | Promise<void> {
    return this.#inner.release?.(why);
  }

  /** The runtime context after the last step. */
  get runtimeContext(): Context {
    return this.#runtimeContext;
  }

  /**
   * Returns the contexts for the agent's tools. Those from `prepareStep` take precedence.
   */
  toolsContext(own: Instance['definition']['toolsContext']): typeof own {
    return this.#toolsContext ? { ...own, ...this.#toolsContext } : own;
  }

  /**
   * Prepares a step.
   * @throws {OffstageError} `PREPARATION_FAILED` (AGENT-LOOP-3), or the signal's reason.
   */
  async prepare(instance: Instance, log: SubagentLog, signal: AbortSignal): Promise<PreparedStep> {
    const { definition } = instance;
    const steps = this.#stepsOf(log, instance);
    this.#step = steps.length;
    await this.#judge(steps, signal);
    const initialInstructions = definition.instructions;
    const instructions = this.#instructions ?? initialInstructions;
    const { messages, of } = this.#instead ?? { messages: [], of: 0 };
    const told = [...messages, ...log.messages.slice(of)];
    const changed = await this.#changed(signal, {
      steps,
      stepNumber: steps.length,
      model: instance.model,
      instructions,
      initialInstructions,
      messages: told,
      initialMessages: log.messages.slice(0, log.opening),
      responseMessages: log.messages
        .slice(log.opening)
        .filter(({ role }) => role === 'assistant' || role === 'tool'),
      runtimeContext: this.#runtimeContext,
      toolsContext: this.toolsContext(definition.toolsContext) ?? {},
    });
    if (changed.messages) this.#instead = { messages: changed.messages, of: log.messages.length };
    this.#instructions = changed.instructions ?? changed.system ?? this.#instructions;
    this.#runtimeContext = changed.runtimeContext ?? this.#runtimeContext;
    if (changed.toolsContext)
      this.#toolsContext = { ...this.#toolsContext, ...changed.toolsContext };
    const own = changed.model === undefined ? instance.model : (changed.model as LanguageModel);
    this.#model = namesOfModel(own);
    const words = this.#instructions;
    const tools = this.#offered(instance.tools, changed);
    return {
      instance: {
        ...instance,
        model: own,
        tools,
        ...(words === undefined ? {} : { instructions: () => instance.instructions(words) }),
      },
      messages: changed.messages ?? told,
      call: this.#callOf(changed, definition.completion === 'tool' ? tools : null),
      violation: this.#isStopped ? NOT_STOPPED : null,
    };
  }

  /** Stores a step's data that the journal does not contain. */
  #responded({ usage, finish, providerMetadata }: ModelResponse): void {
    const model = this.#model;
    this.#known[this.#step] = { usage, finishReason: finish, model, providerMetadata };
  }

  /** AGENT-LOOP-2 */
  async #judge(steps: readonly object[], signal: AbortSignal): Promise<void> {
    for (; this.#judged < steps.length && !this.#isStopped; this.#judged += 1) {
      const seen = steps.slice(0, this.#judged + 1);
      const met = await this.#hook('stopWhen', signal, () =>
        Promise.all(this.#loop.stopWhen.map((condition) => condition({ steps: [...seen] }))),
      );
      this.#isStopped = met.some((one) => one === true);
    }
  }

  async #changed(signal: AbortSignal, options: object): Promise<z.output<typeof preparedSchema>> {
    const { prepareStep } = this.#loop;
    if (!prepareStep) return {};
    const returned = await this.#hook('prepareStep', signal, async () => prepareStep(options));
    const given = returned ?? {};
    const changed = typeof given === 'object' ? withoutUndefined(given) : given;
    const { toolNames } = this.#loop;
    const checked = checkedAs('prepareStep', preparedSchema, changed);
    for (const name of ['activeTools', 'toolOrder'] as const)
      try {
        checkNames(name, checked[name], toolNames);
      } catch (error) {
        throw failed('prepareStep', messageOf(error), error);
      }
    return checked;
  }

  async #hook<T>(name: string, signal: AbortSignal, call: () => T | Promise<T>): Promise<T> {
    try {
      return await raceAbort((async () => call())(), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw failed(name, `it threw: ${messageOf(error)}`, error);
    }
  }

  /** Returns the tools that the model receives. They always include the runtime's tools and the granted tools. */
  #offered(tools: PreparedTools, changed: z.output<typeof preparedSchema>): PreparedTools {
    const { toolNames } = this.#loop;
    const { activeTools = this.#loop.activeTools, toolOrder = this.#loop.toolOrder } = changed;
    if (!tools.modelTools || (activeTools === undefined && toolOrder === undefined)) return tools;
    const names = Object.keys(tools.modelTools).filter(
      (name) => !activeTools || activeTools.includes(name) || !toolNames.includes(name),
    );
    const ordered = toolOrder ? [...new Set([...toolOrder, ...names.toSorted()])] : names;
    const offered: ToolSet = {};
    for (const name of ordered) {
      const offer = names.includes(name) ? tools.modelTools[name] : undefined;
      if (offer !== undefined) offered[name] = offer;
    }
    const isEmpty = Object.keys(offered).length === 0;
    return { ...tools, modelTools: isEmpty ? undefined : offered };
  }

  #callOf(changed: z.output<typeof preparedSchema>, handIn: PreparedTools | null): CallSettings {
    const names = Object.keys(callChecks) as (keyof typeof callChecks)[];
    const own = withoutUndefined(Object.fromEntries(names.map((name) => [name, changed[name]])));
    const call: CallSettings = { ...this.#loop.call, ...own };
    const providerOptions = merged(this.#loop.call.providerOptions, changed.providerOptions);
    return {
      ...call,
      ...(providerOptions ? { providerOptions } : {}),
      ...(this.#isStopped
        ? {
            toolChoice: handIn ? { type: 'tool', toolName: completionToolIn(handIn) } : 'none',
          }
        : {}),
    };
  }

  /** AGENT-LOOP-1 */
  #stepsOf(log: SubagentLog, { definition, model: usual }: Instance): object[] {
    const said = log.messages.slice(log.opening);
    const ledger = [...log.ledger];
    const answers = said.filter(({ role }) => role === 'assistant');
    const firstKnown = answers.findIndex((_, at) => this.#known[at] !== undefined);
    const missing = firstKnown === -1 ? answers.length : firstKnown;
    const counted = this.#known.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE);
    return answers.map((message, at) => {
      const content = contentOf(message, ledger);
      const of = (type: string) => content.filter((part) => part.type === type);
      const calls = of('tool-call');
      const {
        usage = at === 0 && missing > 0 ? usageSince(log.usage, counted) : NO_USAGE,
        finishReason = calls.length > 0 ? 'tool-calls' : 'stop',
        model = namesOfModel(usual),
        providerMetadata,
      } = this.#known[at] ?? {};
      const reasoning = of('reasoning');
      return {
        callId: this.#id,
        stepNumber: at,
        model,
        toolsContext: this.toolsContext(definition.toolsContext) ?? {},
        runtimeContext: this.#runtimeContext,
        content,
        text: of('text').map(textOf).join(''),
        reasoning,
        reasoningText: reasoning.length > 0 ? reasoning.map(textOf).join('') : undefined,
        files: [],
        sources: [],
        toolCalls: calls,
        staticToolCalls: calls,
        dynamicToolCalls: [],
        toolResults: of('tool-result'),
        staticToolResults: of('tool-result'),
        dynamicToolResults: [],
        finishReason,
        rawFinishReason: undefined,
        usage: sdkUsage(usage),
        warnings: [],
        request: {},
        response: {
          id: `${this.#id}:${at}`,
          modelId: model.modelId,
          messages: answersOf(said, message),
        },
        providerMetadata,
      };
    });
  }
}

interface Part {
  readonly type: string;
  readonly text?: string;
}

/** Returns the model's answer with the results of its calls, which are taken from the ledger. */
function contentOf({ content }: ModelMessage, ledger: LedgerEntry[]): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  const results: Part[] = [];
  const parts = content.map((part): Part => {
    if (part.type !== 'tool-call' || part.providerExecuted === true) return part;
    const { type, toolCallId, toolName, input } = part;
    const at = ledger.findIndex(({ callId }) => callId === toolCallId);
    const [settled] = at === -1 ? [] : ledger.splice(at, 1);
    const call = { toolCallId, toolName, input };
    if (settled?.status === 'ok')
      results.push({ type: 'tool-result', ...call, output: settled.output } as Part);
    else if (settled?.status === 'denied')
      results.push({ type: 'tool-output-denied', toolCallId, toolName } as Part);
    else if (settled) results.push({ type: 'tool-error', ...call, error: settled.output } as Part);
    return { type, ...call };
  });
  return [...parts, ...results];
}

function textOf({ text = '' }: Part): string {
  return text;
}

function answersOf(said: readonly ModelMessage[], answer: ModelMessage): ModelMessage[] {
  const after = said[said.indexOf(answer) + 1];
  return after?.role === 'tool' ? [answer, after] : [answer];
}

function sdkUsage(usage: Usage): object {
  const { inputTokens, outputTokens, totalTokens, cachedInputTokens, cacheWriteTokens } = usage;
  const { reasoningTokens } = usage;
  return {
    inputTokens,
    inputTokenDetails: {
      noCacheTokens: undefined,
      cacheReadTokens: cachedInputTokens,
      cacheWriteTokens,
    },
    outputTokens,
    outputTokenDetails: { textTokens: undefined, reasoningTokens },
    totalTokens,
  };
}

function namesOfModel(model: LanguageModel | null): ModelNames {
  return model === null ? { provider: 'unknown', modelId: 'unknown' } : namesOf(model);
}

type ProviderOptions = CallSettings['providerOptions'];

/** Merges the provider options of a step with those that apply to every call, separately for each provider. */
function merged(all: ProviderOptions, step: ProviderOptions): ProviderOptions {
  if (!all || !step) return step ?? all;
  const providers: Record<string, Record<string, JSONValue | undefined>> = { ...all };
  for (const [provider, options] of Object.entries(step))
    providers[provider] = { ...providers[provider], ...options };
  return providers;
}

function checkedAs<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  try {
    return check(`the value that ${name} returned`, schema, value);
  } catch (error) {
    throw failed(name, messageOf(error), error);
  }
}

function failed(name: string, why: string, cause: unknown): OffstageError {
  if (isA(cause, OffstageError) && cause.code === 'PREPARATION_FAILED') return cause;
  return new OffstageError('PREPARATION_FAILED', `${name} of the agent: ${why}`, { cause });
}

/**
 * Returns the configuration of a subagent that runs an agent's loop with these settings.
 * @throws {ConfigurationError} with the setting, its value and its replacement.
 */
function configOfAgent(
  { agent, ...config }: { readonly agent: object } & Readonly<Record<string, unknown>>,
  path: string,
): SubagentConfig {
  const where = `${path}.agent`;
  checkIsObject(where, agent, '{ model, instructions, tools }');
  const given = withoutUndefined(readable(where, agent) as Readonly<Record<string, unknown>>);
  for (const [name, why] of Object.entries(NOT_KEPT))
    if (Object.hasOwn(given, name)) throw refused(`${where}.${name}`, why, given[name]);
  for (const name of [...FROM_AGENT, 'relay', 'runs'] as const)
    if (config[name] !== undefined && (name !== 'runs' || config[name] !== 'here'))
      throw refused(`${path}.${name}`, 'the agent has its own', config[name]);
  const settings = check(where, settingsSchema, given);
  const { id, model, instructions = '', tools = {}, toolsContext, maxRetries, timeout } = settings;
  const toolNames = Object.keys(tools);
  for (const [name, tool] of Object.entries(tools))
    if (!isRunnable(tool))
      throw refused(
        `${where}.tools.${name}`,
        "give it `execute`; a question to the user is `interactive: true` beside `agent`, and a tool that hands in the result `completion: 'tool'`",
        tool,
      );
  const { activeTools, toolOrder, toolApproval, prepareStep, runtimeContext = {} } = settings;
  const { stopWhen = isStepCount(DEFAULT_STEPS) } = settings;
  checkNames(`${where}.activeTools`, activeTools, toolNames);
  checkNames(`${where}.toolOrder`, toolOrder, toolNames);
  if (typeof toolApproval === 'object')
    checkNames(`${where}.toolApproval`, Object.keys(toolApproval), toolNames);
  const loop: AgentLoop = {
    steps: agentSteps,
    call: withoutUndefined(callOf(settings)),
    runtimeContext,
    toolNames,
    activeTools,
    toolOrder,
    stopWhen: Array.isArray(stopWhen) ? stopWhen : [stopWhen as Hook],
    prepareStep,
  };
  return {
    ...withoutUndefined({
      name: id,
      model: model as SubagentConfig['model'],
      toolApproval: toolApproval as SubagentConfig['toolApproval'],
      toolsContext,
      retry: maxRetries === undefined ? undefined : { maxAttempts: maxRetries + 1 },
      timeout,
    }),
    maxSteps: MAX_STEPS,
    ...withoutUndefined(config),
    instructions,
    tools,
    agent: loop,
  };
}

function callOf(settings: z.output<typeof settingsSchema>): AgentLoop['call'] {
  const { headers, repairToolCall = settings.experimental_repairToolCall } = settings;
  const own = Object.keys(callChecks) as (keyof typeof callChecks)[];
  const call = Object.fromEntries(own.map((name) => [name, settings[name]]));
  return { ...call, headers, repairToolCall };
}

/**
 * Returns whether the runtime can run the tool: it has an `execute` function or a role, or its provider runs it.
 */
function isRunnable(tool: unknown): boolean {
  if (typeof tool !== 'object' || tool === null) return true;
  const { execute, type } = propertiesOf(tool);
  return typeof execute === 'function' || type === 'provider' || roleOf(tool) !== null;
}

function checkNames(
  where: string,
  names: readonly string[] | undefined,
  known: readonly string[],
): void {
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `${where}: expected names of the agent's tools (${known.join(', ') || 'it has none'}), got ${shown(unknown)}`,
    );
}

function refused(where: string, why: string, value: unknown): ConfigurationError {
  return new ConfigurationError(
    'INVALID_OPTION',
    `${where}: expected none beside a subagent's own: ${why}; got ${shown(value)}`,
  );
}
