// A language model that follows a script, for tests: the script sees each prompt and returns the model's
// answer. Scripts are chosen by agent, so that a lead agent and its subagents never compete for the lines of
// one script.

import type { Scheduler } from '../../actors/ports/environment.ts';
import { ConfigurationError } from '../../values/errors.ts';
import {
  routeScript,
  stepOf,
  type Script,
  type ScriptedModelOptions as Routing,
  type ScriptedPrompt,
  type ScriptLike,
} from './script-routing.ts';
import {
  answerOf,
  type CallOptions,
  type Content,
  type ScriptedLanguageModel,
  type ScriptedStep,
} from './scripted-steps.ts';

export type { Script, ScriptedPrompt, ScriptLike } from './script-routing.ts';
export type { ScriptedCall, ScriptedLanguageModel, ScriptedStep } from './scripted-steps.ts';

export interface ScriptedModelOptions extends Routing {
  /** The time in which `delayMs` of a step passes; needed for such steps only. */
  readonly environment?: { readonly scheduler: Pick<Scheduler, 'schedule'> };
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
 * Creates an AI SDK model that answers from scripts; takes no time unless a step says so. A list of steps
 * alone is one script for every call. An error that a script throws, or the ConfigurationError of a script
 * that is missing (NO_SCRIPT) or exhausted (SCRIPT_EXHAUSTED), fails the call.
 */
export function scriptedModel(
  given: ScriptedModelOptions | readonly (ScriptedStep | Script)[],
): ScriptedLanguageModel {
  const options: ScriptedModelOptions = isSteps(given) ? { otherwise: given } : given;
  let calls = 0;
  const nextId = (): string => `call_${(calls += 1)}`;
  const turns = new Map<ScriptLike, number>();
  const answer = async (call: CallOptions) => {
    const seen = read(call);
    const routed = routeScript(options, seen);
    const turn = (turns.get(routed.script) ?? 0) + 1;
    turns.set(routed.script, turn);
    const step = await stepOf(routed, { ...seen, turn });
    await delay(step.delayMs ?? 0, options, call.abortSignal);
    const { content, finish } = answerOf(step, nextId);
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

/** Streams thoughts and text word by word. */
function streamParts(part: Content, index: number): StreamPart[] {
  if (part.type !== 'text' && part.type !== 'reasoning') return [part];
  const kind = part.type;
  const id = `${kind}_${index}`;
  return [
    { type: `${kind}-start`, id },
    ...part.text
      .split(/(?<=\s)/)
      .map((delta): StreamPart => ({ type: `${kind}-delta`, id, delta })),
    { type: `${kind}-end`, id },
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
      // As a provider does: it rejects with the reason of the caller's abort.
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
