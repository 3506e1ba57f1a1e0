// A language model that follows a script, for tests. The script receives each prompt and returns the model's answer.
// Each agent has its own script, so a lead agent and its subagents never use up each other's steps.

import type { Scheduler } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { providerCheck, type RulesOption } from './provider-rules.ts';
import {
  answerOf,
  type CallOptions,
  type Content,
  type ScriptedLanguageModel,
  type ScriptedStep,
} from './scripted-steps.ts';
export type { ScriptedCall, ScriptedLanguageModel, ScriptedStep } from './scripted-steps.ts';

/** A model call as a script sees it. */
export interface ScriptedPrompt {
  /** The system prompt. */
  readonly system: string;
  /** The last message from the user. */
  readonly user: string;
  /** The outputs in the last message, in order, if it is a tool message. Otherwise empty. */
  readonly results: readonly unknown[];
  /** The messages that the model was called with. */
  readonly prompt: CallOptions['prompt'];
  /** The names of the tools that the model could call. */
  readonly toolNames: readonly string[];
  /** The tools that the model may call now, with the JSON Schemas of their arguments. */
  readonly tools: readonly { readonly name: string; readonly inputSchema: unknown }[];
  /** The JSON Schema that the answer must match; null if none is requested. */
  readonly outputSchema: unknown;
  /** The number of the call within the script, starting at 1. */
  readonly turn: number;
  /** The number of the model step within a subagent's run, starting at 1: the prompt's answers plus one. */
  readonly step: number;
  /** The abort signal of the call. */
  readonly signal: AbortSignal | undefined;
}

/** A function that answers each call of a scripted model. */
export type Script = (prompt: ScriptedPrompt) => ScriptedStep | Promise<ScriptedStep>;

/**
 * A function, or the answers in order (each may be a function). A call after the last answer fails with an error that
 * explains this. All runs of an agent use the same list, in the order in which they call the model. Use a function if
 * that order matters, because a function sees which call it answers.
 */
export type ScriptLike = Script | readonly (ScriptedStep | Script)[];

type Seen = Omit<ScriptedPrompt, 'turn'>;

/** The options of `scriptedModel` for several agents. */
export interface ScriptedModelOptions {
  /** Answers with the first script whose `when` matches the system prompt or accepts the call. */
  readonly scripts?: readonly {
    readonly when: string | RegExp | ((prompt: Seen) => boolean);
    readonly script: ScriptLike;
  }[];
  /**
   * Scripts by agent name. They are used if none of `scripts` answers. A subagent is identified by the task in the
   * prompt (`You do the work of the tool <name>`). Any other agent is identified by the first name that occurs in the
   * system prompt as a whole word.
   */
  readonly agents?: Readonly<Record<string, ScriptLike>>;
  /** Returns which of the `agents` is speaking, or undefined if none is. It replaces the rule above. */
  readonly agentOf?: (prompt: Seen) => string | undefined;
  /** Answers if no other script does. */
  readonly otherwise?: ScriptLike;
  /** Its clock measures a step's `delayMs`. Required only for steps with a delay. */
  readonly environment?: { readonly scheduler: Pick<Scheduler, 'schedule'> };
  /**
   * Refuses calls that a provider's API would refuse (`providerRules`), with that provider's error: `true` for all
   * APIs, a list for some of them, `false` for none. With `true`, a rule about ids or message order is omitted if only
   * one API has it.
   * @defaultValue false
   */
  readonly rules?: RulesOption;
}

export interface RoutedScript {
  /** The script's name in error messages. */
  readonly name: string;
  readonly script: ScriptLike;
}

type StreamPart =
  Awaited<ReturnType<ScriptedLanguageModel['doStream']>>['stream'] extends ReadableStream<
    infer Part
  >
    ? Part
    : never;

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
} as const;

/**
 * Creates an AI SDK model that answers from scripts. An answer takes no time unless its step specifies a delay. A plain
 * list of steps is one script for all calls. A call fails with the error that its script throws. It fails with a
 * ConfigurationError if there is no script (NO_SCRIPT) or the script is exhausted (SCRIPT_EXHAUSTED).
 */
export function scriptedModel(
  given: ScriptedModelOptions | readonly (ScriptedStep | Script)[],
): ScriptedLanguageModel {
  const options: ScriptedModelOptions = isSteps(given) ? { otherwise: given } : given;
  let calls = 0;
  const nextId = (): string => `call_${(calls += 1)}`;
  const turns = new Map<ScriptLike, number>();
  const { check, answered } = providerCheck(options.rules ?? false);
  const answer = async (call: CallOptions) => {
    check(call);
    const seen = read(call);
    const routed = routeScript(options, seen);
    const turn = (turns.get(routed.script) ?? 0) + 1;
    turns.set(routed.script, turn);
    const step = await stepOf(routed, { ...seen, turn });
    await delay(step.delayMs ?? 0, options, call.abortSignal);
    const { content, finish } = answerOf(step, nextId);
    answered(content);
    return { content, finishReason: { unified: finish, raw: finish } };
  };
  return {
    specificationVersion: 'v4',
    provider: 'offstage',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate(call) {
      return { ...(await answer(call)), usage, warnings: [] };
    },
    async doStream(call) {
      const { content, finishReason } = await answer(call);
      const parts: StreamPart[] = [
        { type: 'stream-start', warnings: [] },
        ...content.flatMap(streamParts),
        { type: 'finish', usage, finishReason },
      ];
      return {
        stream: new ReadableStream<StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
}

function isSteps(
  given: ScriptedModelOptions | readonly (ScriptedStep | Script)[],
): given is readonly (ScriptedStep | Script)[] {
  return Array.isArray(given);
}

/** Streams the thoughts and the text word by word. */
function streamParts(part: Content, index: number): StreamPart[] {
  if (part.type !== 'text' && part.type !== 'reasoning') return [part];
  const { type: kind, providerMetadata } = part;
  const id = `${kind}_${index}`;
  return [
    { type: `${kind}-start`, id },
    ...part.text
      .split(/(?<=\s)/)
      .map((delta): StreamPart => ({ type: `${kind}-delta`, id, delta })),
    // Providers send the signature last.
    { type: `${kind}-end`, id, ...(providerMetadata && { providerMetadata }) },
  ];
}

function delay(
  delayMs: number,
  { environment }: ScriptedModelOptions,
  signal: AbortSignal | undefined,
): Promise<void> | undefined {
  if (delayMs <= 0) return undefined;
  if (!environment)
    throw new ConfigurationError(
      'NO_ENVIRONMENT',
      `scriptedModel: a step with delayMs ${delayMs} needs the option environment, got none`,
    );
  return new Promise((resolve, reject) => {
    const untimer = environment.scheduler.schedule(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, delayMs);
    const abort = (): void => {
      untimer();
      // Like a call to a provider, the call rejects with the caller's abort reason.
      reject(signal?.reason as Error);
    };
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

function read(options: CallOptions): Omit<ScriptedPrompt, 'turn'> {
  const { prompt } = options;
  let system = '';
  let user = '';
  for (const message of prompt) {
    if (message.role === 'system') system += `${message.content}\n`;
    if (message.role === 'user')
      user = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  }
  const last = prompt.at(-1);
  const results =
    last?.role === 'tool'
      ? last.content.flatMap((part) => (part.type === 'tool-result' ? [outputOf(part.output)] : []))
      : [];
  return {
    system,
    user,
    results,
    step: prompt.filter(({ role }) => role === 'assistant').length + 1,
    prompt,
    toolNames: (options.tools ?? []).map(({ name }) => name),
    tools: (options.toolChoice?.type === 'none' ? [] : (options.tools ?? [])).map((tool) => ({
      name: tool.name,
      inputSchema: tool.type === 'function' ? tool.inputSchema : {},
    })),
    outputSchema:
      (options.responseFormat?.type === 'json' && options.responseFormat.schema) || null,
    signal: options.abortSignal,
  };
}

function outputOf(output: { type: string; value?: unknown; reason?: unknown }): unknown {
  return 'value' in output ? output.value : { denied: output.reason };
}

/** @throws {ConfigurationError} NO_SCRIPT if no script answers this call */
export function routeScript(options: ScriptedModelOptions, seen: Seen): RoutedScript {
  const { scripts = [], agents = {}, agentOf = nameIn(agents), otherwise } = options;
  const found = scripts.find(({ when }) => {
    if (typeof when === 'string') return seen.system.includes(when);
    // With a global expression, `test` would continue after the last match.
    return typeof when === 'function' ? when(seen) : seen.system.search(when) >= 0;
  });
  if (found) return { name: String(found.when), script: found.script };
  const agent = agentOf(seen);
  if (agent !== undefined && Object.hasOwn(agents, agent))
    return { name: agent, script: agents[agent] as ScriptLike };
  if (otherwise) return { name: 'otherwise', script: otherwise };
  const known = Object.keys(agents);
  throw new ConfigurationError(
    'NO_SCRIPT',
    `scriptedModel: no script for the system prompt ${JSON.stringify(seen.system.slice(0, 200))}` +
      (known.length > 0 ? `; expected it to name one of ${known.join(', ')}` : ''),
  );
}

/** @throws {ConfigurationError} SCRIPT_EXHAUSTED if the script has no step for this turn */
export function stepOf(
  { name, script }: RoutedScript,
  prompt: ScriptedPrompt,
): ScriptedStep | Promise<ScriptedStep> {
  if (typeof script === 'function') return script(prompt);
  const step = script[prompt.turn - 1];
  if (step) return typeof step === 'function' ? step(prompt) : step;
  const last = JSON.stringify(prompt.prompt.at(-1)?.content ?? null).slice(0, 300);
  throw new ConfigurationError(
    'SCRIPT_EXHAUSTED',
    `scriptedModel: the script "${name}" has ${script.length} steps, but was asked for step ${prompt.turn}, to answer ${last}. All runs share it: for several write a function, which gets the \`step\` of its run`,
  );
}

function nameIn(
  agents: Readonly<Record<string, ScriptLike>>,
): (prompt: Seen) => string | undefined {
  return ({ system }) => {
    const task = /^(?:Execute tool:|You do the work of the tool) (?:subagent__)?(\S+)/m.exec(
      system,
    )?.[1];
    if (task !== undefined && Object.hasOwn(agents, task)) return task;
    let first: string | undefined;
    let earliest = Infinity;
    for (const name of Object.keys(agents)) {
      const at = wordIn(system, name);
      // If two names start at the same position, the longer one wins.
      if (at > earliest || (at === earliest && name.length <= (first?.length ?? 0))) continue;
      if (at === Infinity) continue;
      first = name;
      earliest = at;
    }
    return first;
  };
}

/** Returns the index at which the text occurs as a whole word, or Infinity if it does not occur. */
function wordIn(text: string, word: string): number {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`).exec(text)?.index ?? Infinity;
}
