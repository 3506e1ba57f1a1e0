// The loop of an agent of the AI SDK, in a subagent: `prepareStep` and `stopWhen` of its settings.
//
// Owns:     what the agent's functions get and return; what they change for later steps, in memory.
// Does not: call a model or a tool, or ask the user (the subagent does).
//
// Invariants
//   AGENT-LOOP-1. The agent's functions get the steps of this run as the AI SDK describes them: also those that another
//       process has made. The sum of their usage is exact; after a restart the first step has that of all before it.
//   AGENT-LOOP-2. Once a stop condition was met, no step has tools, except those that hand in the result: the next
//       answer is the result. The loop of the SDK ends without this answer, and nobody would have words to say.
//   AGENT-LOOP-3. A function that throws, or returns something else than the SDK documents, fails the run.

import type { JSONValue, LanguageModel, ModelMessage, ToolSet } from 'ai';
import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { isA, messageOf, OffstageError } from '../../values/errors.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';
import type { AgentLoop, CallSettings } from '../contracts/agent-loop.ts';
import type { LedgerEntry } from '../contracts/outcome.ts';
import { addUsage, NO_USAGE, usageSince, type ModelNames, type Usage } from '../contracts/usage.ts';
import { aModel } from '../model/model.ts';
import type { ModelResponse } from '../model/model-step.ts';
import { namesOf } from '../model/price.ts';
import type { ToolOutcome } from '../model/tool-results.ts';
import type { PreparedTools } from '../model/tools.ts';
import { raceAbort } from '../../values/race-abort.ts';
import { callChecks, checkNames, loopChecks } from './agent-settings.ts';
import { completionToolIn } from './child-toolset.ts';
import type {
  Acting,
  Executor,
  ExecutorRun,
  PreparedStep,
  StepLoop,
  Thinking,
} from './executor.ts';
import type { Instance } from './instance.ts';
import type { SubagentLog } from './subagent-log.ts';

/** The error of a model that calls tools where only a result is expected. */
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

/** The loop of one run, around the executor of its steps. */
export class AgentRun implements Executor, StepLoop {
  readonly #loop: AgentLoop;
  readonly #inner: Executor;
  readonly #id: string;
  #instructions: string | undefined;
  #runtimeContext: Context;
  #toolsContext: Readonly<Record<string, Context>> | undefined;
  /** The messages that a step has put in the place of the first ones of the log. */
  #instead: { readonly messages: readonly ModelMessage[]; readonly of: number } | null = null;
  /** The steps, as far as this process knows them, by their number. */
  readonly #known: Known[] = [];
  /** Steps that the stop conditions have seen. */
  #judged = 0;
  #isStopped = false;
  /** The number of the step under way, and its model. */
  #step = 0;
  #model: ModelNames = nameOf(null);

  constructor({ worker }: ExecutorRun, loop: AgentLoop, inner: Executor) {
    this.#loop = loop;
    this.#inner = inner;
    this.#id = worker.id;
    this.#runtimeContext = loop.runtimeContext;
  }

  get loop(): StepLoop {
    return this;
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

  /** As the last step has it. */
  get runtimeContext(): Context {
    return this.#runtimeContext;
  }

  /** Returns the contexts of the agent's tools; those of `prepareStep` take the place of the others. */
  toolsContext(own: Instance['definition']['toolsContext']): typeof own {
    return this.#toolsContext ? { ...own, ...this.#toolsContext } : own;
  }

  /**
   * Prepares a step.
   * @throws {OffstageError} `PREPARATION_FAILED` (AGENT-LOOP-3), or the reason of the signal.
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
    this.#model = nameOf(own);
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

  /** Remembers what the journal does not tell of a step. */
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

  /** Returns the tools that the model sees: those of the runtime, and those that were granted, stay. */
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
        model = nameOf(usual),
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

/** Returns an answer of the model with the results of its calls, and takes these from the ledger. */
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

/** The answer, and the results of its calls. */
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

function nameOf(model: LanguageModel | null): ModelNames {
  return model === null ? { provider: 'unknown', modelId: 'unknown' } : namesOf(model);
}

type ProviderOptions = CallSettings['providerOptions'];

/** Options of a step beside those of every call, provider by provider. */
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
