// An AI SDK language model made of rules, which understand a few requests, fill in missing details, call real tools and
// put the results into words. It serves both the lead agent and its subagents, needs no key and no network, and always
// answers the same conversation in the same way.

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import type { Environment } from 'offstage';
import { pause } from '../agents/pause.ts';
import { readConversation } from './conversation.ts';
import { leadReply } from './lead.ts';
import type { Reply } from './reply.ts';
import { readTask, subagentReply } from './subagents.ts';

export interface RuleModelOptions {
  readonly environment: Environment;
  /** The delay before an answer, in milliseconds. @defaultValue 0 */
  readonly thinkingMs?: number;
}

const TEXT_ID = 'text';

export function ruleModel({ environment, thinkingMs = 0 }: RuleModelOptions): LanguageModelV4 {
  const think = async (options: LanguageModelV4CallOptions): Promise<LanguageModelV4Content[]> => {
    options.abortSignal?.throwIfAborted();
    if (thinkingMs > 0) await pause(environment, thinkingMs, options.abortSignal);
    return contentOf(replyTo(options), () => environment.ids.next('call'));
  };
  return {
    specificationVersion: 'v4',
    provider: 'voice-demo',
    modelId: 'rules',
    supportedUrls: {},
    async doGenerate(options) {
      const content = await think(options);
      return {
        content,
        finishReason: finishOf(content),
        usage: usageOf(options, content),
        warnings: [],
      };
    },
    async doStream(options) {
      const content = await think(options);
      const parts = streamParts(content, usageOf(options, content));
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          pull(controller) {
            if (options.abortSignal?.aborted) {
              controller.error(options.abortSignal.reason);
              return;
            }
            const { value, done } = parts.next();
            if (done) controller.close();
            else controller.enqueue(value);
          },
        }),
      };
    },
  };
}

function replyTo({ prompt, tools = [], toolChoice }: LanguageModelV4CallOptions): Reply {
  const conversation = readConversation(prompt);
  const task = readTask(conversation);
  if (task) return subagentReply(task);
  const names = toolChoice?.type === 'none' ? [] : tools.map(({ name }) => name);
  return leadReply(conversation, new Set(names));
}

function contentOf({ text, calls }: Reply, nextId: () => string): LanguageModelV4Content[] {
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ toolName, input }) => ({
      type: 'tool-call' as const,
      toolCallId: nextId(),
      toolName,
      input: JSON.stringify(input),
    })),
  ];
}

/** The text is streamed word by word, as by a real model. */
function* streamParts(
  content: readonly LanguageModelV4Content[],
  usage: LanguageModelV4Usage,
): Generator<LanguageModelV4StreamPart, void> {
  yield { type: 'stream-start', warnings: [] };
  for (const part of content) {
    if (part.type === 'text') {
      yield { type: 'text-start', id: TEXT_ID };
      for (const delta of part.text.match(/\S+\s*/g) ?? [])
        yield { type: 'text-delta', id: TEXT_ID, delta };
      yield { type: 'text-end', id: TEXT_ID };
    } else if (part.type === 'tool-call') {
      const id = part.toolCallId;
      yield { type: 'tool-input-start', id, toolName: part.toolName };
      yield { type: 'tool-input-delta', id, delta: part.input };
      yield { type: 'tool-input-end', id };
      yield part;
    }
  }
  yield { type: 'finish', finishReason: finishOf(content), usage };
}

function finishOf(content: readonly LanguageModelV4Content[]): LanguageModelV4FinishReason {
  return content.some(({ type }) => type === 'tool-call')
    ? { unified: 'tool-calls', raw: 'tool_calls' }
    : { unified: 'stop', raw: 'stop' };
}

/** Counts words, because rules have no tokens. */
function usageOf(
  { prompt }: LanguageModelV4CallOptions,
  content: readonly LanguageModelV4Content[],
): LanguageModelV4Usage {
  const words = (value: unknown): number => JSON.stringify(value).split(/\s+/).length;
  const total = words(prompt);
  const text = words(content);
  return {
    inputTokens: { total, noCache: total, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: text, text, reasoning: 0 },
  };
}
