// A language model that follows a script, for tests: it is handed each prompt and says
// what the model answers. Scripts are chosen by who is speaking, so that a lead agent
// and its subagents never race for the lines of one script.

import type { LanguageModel } from 'ai';
import { ConfigurationError } from '../errors.ts';

/** The newest specification of a model, as the AI SDK takes it. */
export type ScriptedLanguageModel = Extract<LanguageModel, { specificationVersion: 'v4' }>;
type CallOptions = Parameters<ScriptedLanguageModel['doGenerate']>[0];
type Content = Awaited<ReturnType<ScriptedLanguageModel['doGenerate']>>['content'][number];
type StreamPart =
  Awaited<ReturnType<ScriptedLanguageModel['doStream']>>['stream'] extends ReadableStream<
    infer Part
  >
    ? Part
    : never;

/** What a scripted model answers. */
export type ScriptedStep =
  | { readonly text: string }
  | { readonly calls: readonly ScriptedCall[]; readonly text?: string }
  | { readonly error: unknown };

export interface ScriptedCall {
  readonly name: string;
  readonly input: unknown;
  /** @defaultValue `call_<n>`, counted within the model */
  readonly id?: string;
}

/** What a script sees of a call. */
export interface ScriptedPrompt {
  /** The system prompt. */
  readonly system: string;
  /** The last message of the user. */
  readonly user: string;
  /** The outputs of the last tool message, in order; empty if the last message is none. */
  readonly results: readonly unknown[];
  readonly prompt: CallOptions['prompt'];
  readonly toolNames: readonly string[];
  /** Counts from 1 within the script. */
  readonly turn: number;
  readonly signal: AbortSignal | undefined;
}

export type Script = (prompt: ScriptedPrompt) => ScriptedStep | Promise<ScriptedStep>;

export interface ScriptedModelOptions {
  /** The first whose `when` is in the system prompt answers. */
  readonly scripts: readonly { readonly when: string; readonly script: Script }[];
  /** Answers where no other does. */
  readonly otherwise?: Script;
}

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
} as const;

/** An AI SDK model that answers from scripts; takes no time. */
export function scriptedModel({ scripts, otherwise }: ScriptedModelOptions): ScriptedLanguageModel {
  let calls = 0;
  const turns = new Map<Script, number>();
  const answer = async (options: CallOptions) => {
    const seen = read(options);
    const script = scripts.find(({ when }) => seen.system.includes(when))?.script ?? otherwise;
    if (!script)
      throw new ConfigurationError(
        'NO_SCRIPT',
        `scriptedModel: no script for the system prompt ${JSON.stringify(seen.system.slice(0, 200))}`,
      );
    const turn = (turns.get(script) ?? 0) + 1;
    turns.set(script, turn);
    const step = await script({ ...seen, turn });
    if ('error' in step) throw step.error;
    const content: Content[] = [];
    if (step.text !== undefined) content.push({ type: 'text', text: step.text });
    for (const { name, input, id } of 'calls' in step ? step.calls : []) {
      calls += 1;
      content.push({
        type: 'tool-call',
        toolCallId: id ?? `call_${calls}`,
        toolName: name,
        input: typeof input === 'string' ? input : JSON.stringify(input),
      });
    }
    const unified = 'calls' in step ? ('tool-calls' as const) : ('stop' as const);
    return { content, finishReason: { unified, raw: unified } };
  };
  return {
    specificationVersion: 'v4',
    provider: 'offstage',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate(options) {
      return { ...(await answer(options)), usage, warnings: [] };
    },
    async doStream(options) {
      const { content, finishReason } = await answer(options);
      const parts: StreamPart[] = [{ type: 'stream-start', warnings: [] }];
      for (const [index, part] of content.entries()) {
        if (part.type === 'text') {
          const id = `text_${index}`;
          parts.push({ type: 'text-start', id });
          for (const delta of part.text.split(/(?<=\s)/))
            parts.push({ type: 'text-delta', id, delta });
          parts.push({ type: 'text-end', id });
        } else parts.push(part as StreamPart);
      }
      parts.push({ type: 'finish', usage, finishReason });
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
    signal: options.abortSignal,
  };
}

function outputOf(output: { type: string; value?: unknown; reason?: unknown }): unknown {
  return 'value' in output ? output.value : { denied: output.reason };
}
