// The mapping between the Claude Agent SDK and the relay port: messages, tools, questions and answers.

import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import type { RelayAnswer, RelayEvent, RelayTool } from '../../actors/ports/relay.ts';
import { clip } from '../../values/clip.ts';

/** The part of `query` from `@anthropic-ai/claude-agent-sdk` that the relay uses. */
export type ClaudeQuery = (given: never) => AsyncIterable<unknown> & {
  interrupt(): Promise<unknown>;
};

type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];

export const ASK_USER_QUESTION = 'AskUserQuestion';

const MAX_TITLE = 300;

const blockSchema = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({
    type: z.literal('tool_result'),
    tool_use_id: z.string(),
    is_error: z.boolean().optional(),
    content: z.unknown(),
  }),
  z.object({ type: z.string() }),
]);
const turnMessageSchema = z.object({
  type: z.enum(['assistant', 'user']),
  parent_tool_use_id: z.string().nullish(),
  message: z.object({ content: z.union([z.string(), z.array(blockSchema)]) }),
});
const resultSchema = z.object({
  type: z.literal('result'),
  subtype: z.string(),
  is_error: z.boolean().optional(),
  result: z.string().optional(),
  errors: z.array(z.string()).optional(),
  stop_reason: z.string().nullish(),
  terminal_reason: z.string().nullish(),
  total_cost_usd: z.number().optional(),
  usage: z
    .object({
      input_tokens: z.number().optional(),
      cache_creation_input_tokens: z.number().nullish(),
      cache_read_input_tokens: z.number().nullish(),
      output_tokens: z.number().optional(),
    })
    .optional(),
  deferred_tool_use: z.object({ id: z.string(), name: z.string(), input: z.unknown() }).nullish(),
});

export type Result = z.infer<typeof resultSchema>;

/** A relevant part of a Claude message. */
export type Said =
  | { readonly type: 'words'; readonly text: string }
  | {
      readonly type: 'tool_ended';
      readonly toolId: string;
      readonly ok: boolean;
      readonly output: string;
    }
  | { readonly type: 'result'; readonly result: Result };

/** Parses a Claude message. Other kinds of messages do not contain any relevant parts. */
export function read(message: unknown): readonly Said[] {
  const result = resultSchema.safeParse(message);
  if (result.success) return [{ type: 'result', result: result.data }];
  const turn = turnMessageSchema.safeParse(message);
  if (!turn.success) return [];
  const { type, parent_tool_use_id: parent } = turn.data;
  const { content } = turn.data.message;
  if (typeof content === 'string') return [];
  return content.flatMap((block): Said[] => {
    // Messages of Claude's own subagents are addressed to Claude and not to the user.
    if (
      type === 'assistant' &&
      block.type === 'text' &&
      'text' in block &&
      (parent ?? null) === null
    )
      return [{ type: 'words', text: block.text }];
    if (type === 'user' && block.type === 'tool_result' && 'tool_use_id' in block)
      return [
        {
          type: 'tool_ended',
          toolId: block.tool_use_id,
          ok: block.is_error !== true,
          output: wordsOf(block.content),
        },
      ];
    return [];
  });
}

function wordsOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return JSON.stringify(content ?? null);
  return content
    .map((part: unknown) => {
      const { text } = propertiesOf(part);
      return typeof text === 'string' ? text : JSON.stringify(part);
    })
    .join('\n');
}

/** Returns how a turn with this result ended. */
export function endOf({ subtype, is_error: isError, stop_reason: stop, result, errors }: Result): {
  readonly reason: EndReason;
  readonly message: string;
} {
  const message = errors?.join('; ') || result || subtype;
  if (subtype === 'error_max_turns' || subtype === 'error_max_budget_usd')
    return { reason: 'limit', message };
  if (stop === 'refusal') return { reason: 'refused', message };
  if (subtype !== 'success' || isError === true) return { reason: 'failed', message };
  return { reason: 'completed', message: '' };
}

export function tokensOf({ usage = {} }: Result): {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
} {
  const cachedInputTokens = usage.cache_read_input_tokens ?? 0;
  const cacheWriteTokens = usage.cache_creation_input_tokens ?? 0;
  return {
    inputTokens: (usage.input_tokens ?? 0) + cachedInputTokens + cacheWriteTokens,
    outputTokens: usage.output_tokens ?? 0,
    cachedInputTokens,
    cacheWriteTokens,
  };
}

const KINDS: Readonly<Record<string, string>> = {
  Bash: 'execute',
  Edit: 'edit',
  Glob: 'read',
  Grep: 'read',
  MultiEdit: 'edit',
  NotebookEdit: 'edit',
  Read: 'read',
  WebFetch: 'fetch',
  WebSearch: 'fetch',
  Write: 'edit',
};
const SUBJECTS = ['file_path', 'notebook_path', 'command', 'url', 'query', 'pattern', 'path'];

function subjectOf(input: unknown): string | undefined {
  const given = (input ?? {}) as Readonly<Record<string, unknown>>;
  return SUBJECTS.map((key) => given[key]).find((value) => typeof value === 'string');
}

/**
 * Returns a key that is the same for all calls that a lasting permission covers. For Claude's built-in tools, these are
 * calls with the same file, command or URL; for other tools, calls with the same arguments.
 */
export function againKey(name: string, input: unknown): string {
  const subject = KINDS[name] === undefined ? undefined : subjectOf(input);
  return `${name} ${subject ?? JSON.stringify(input ?? null)}`;
}

export function toolOf(name: string, input: unknown): RelayTool {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/s.exec(name) ?? [];
  const title = server === undefined ? name : `${server}: ${tool}`;
  const subject = subjectOf(input);
  return {
    title: clip(typeof subject === 'string' ? `${title} ${subject}` : title, MAX_TITLE),
    kind: KINDS[name] ?? 'other',
    input,
  };
}

const questionsSchema = z.object({
  questions: z
    .array(
      z.object({
        question: z.string(),
        options: z
          .array(z.object({ label: z.string(), description: z.string().optional() }))
          .optional(),
      }),
    )
    .min(1),
});

export type Question = Omit<
  Extract<RelayEvent, { readonly type: 'question' }>,
  'type' | 'requestId'
>;

/** Returns the questions of an AskUserQuestion call, or no questions if its input is unreadable. */
export function questionsIn(input: unknown): readonly Question[] {
  const given = questionsSchema.safeParse(input);
  if (!given.success) return [];
  return given.data.questions.map(({ question, options = [] }) => ({
    text: question,
    options: options.map(({ label, description }) => ({
      id: label,
      label,
      ...(description === undefined ? {} : { description }),
    })),
  }));
}

/** Adds the answers to the call's input in the form that Claude expects. */
export function answeredInput(input: unknown, answers: readonly RelayAnswer[]): object {
  const questions = questionsIn(input);
  const given = questions.flatMap(({ text }, at): [string, string][] => {
    const answer = answers[at];
    return answer?.type === 'answered' ? [[text, answer.optionId ?? answer.text]] : [];
  });
  return { ...(input as object), answers: Object.fromEntries(given) };
}
