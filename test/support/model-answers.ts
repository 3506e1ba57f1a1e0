// The answers of the server of language models. A scripted model reads the request as the server understood it and
// answers in the server's format.
//
// Invariants
//   MODEL-MIND-1. The server refuses input that one of the providers refuses: a result without its call, arguments that
//       are not an object, or a blank text.

import type { ChatCompletionRequest, ChatMessage, FixtureResponse } from '@copilotkit/aimock';
import type { ScriptedLanguageModel } from '../../src/testing/doubles/scripted-model.ts';
import type { Provider } from './providers.ts';

/** Thrown by a script to make the provider refuse. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS?: number) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** The number of tokens of every answer. */
export const USAGE = { input: 10, output: 5 };

const usage = {
  prompt_tokens: USAGE.input,
  completion_tokens: USAGE.output,
  input_tokens: USAGE.input,
  output_tokens: USAGE.output,
  promptTokenCount: USAGE.input,
  candidatesTokenCount: USAGE.output,
};

const same = <T>(value: T): T => value;

/** Returns the scripted model's answer to a request, or its refusal. */
export async function answerOf(
  mind: ScriptedLanguageModel,
  asked: ChatCompletionRequest,
  provider: Provider,
): Promise<FixtureResponse> {
  try {
    const prompt: Prompt = [];
    for (const message of asked.messages) add(prompt, message, provider);
    const { content, finishReason } = await mind.doGenerate({
      prompt,
      tools: (asked.tools ?? []).map(({ function: { name } }) => ({
        type: 'function',
        name,
        inputSchema: {},
      })),
    });
    const words = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
    const reasoning = content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []));
    const toolCalls = content.flatMap((part) =>
      part.type === 'tool-call'
        ? [{ id: part.toolCallId, name: part.toolName, arguments: part.input }]
        : [],
    );
    const more = {
      usage,
      ...(reasoning.length > 0 ? { reasoning: reasoning.join('') } : {}),
      ...(finishReason.unified === 'length' ? { finishReason: 'length' } : {}),
    };
    // If there are tools, some packages request JSON through a tool of their own and read no other answer.
    const answersByTool = (asked.tools ?? []).some(({ function: { name } }) => name === 'json');
    if (toolCalls.length === 0 && answersByTool)
      return { toolCalls: [{ id: 'json_1', name: 'json', arguments: words }], ...more };
    if (toolCalls.length === 0) return { content: words, ...more };
    return words === '' ? { toolCalls, ...more } : { content: words, toolCalls, ...more };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status, message, retryAfterS: retryAfter } = error;
    return { status, error: { message }, ...(retryAfter === undefined ? {} : { retryAfter }) };
  }
}

type Prompt = Parameters<ScriptedLanguageModel['doGenerate']>[0]['prompt'];

/**
 * Adds a message that the server understood to the prompt. The results of a step form one message.
 * @throws {Refusal} 400, if one of the providers refuses the input.
 */
function add(
  prompt: Prompt,
  message: ChatMessage,
  { resultIn = same, readsBlanks = false }: Provider,
): void {
  const { role, tool_calls = [], tool_call_id: toolCallId = '' } = message;
  const text = textOf(message);
  if (role === 'system') prompt.push({ role, content: text });
  if (role === 'user') prompt.push({ role, content: [{ type: 'text', text }] });
  if (role === 'assistant') {
    if (text !== '' && text.trim() === '' && !readsBlanks) refuse('a blank text');
    const calls = tool_calls.map(({ id, function: { name: toolName, arguments: json } }) => {
      const input = JSON.parse(json) as unknown;
      if (typeof input !== 'object' || input === null || Array.isArray(input))
        refuse(`arguments that are no object: ${json}`);
      return { type: 'tool-call' as const, toolCallId: id, toolName, input };
    });
    const words = text === '' ? [] : [{ type: 'text' as const, text }];
    prompt.push({ role, content: [...words, ...calls] });
  }
  if (role !== 'tool') return;
  const toolName = nameOf(prompt, toolCallId);
  const output = outputOf(text, resultIn);
  const part = { type: 'tool-result' as const, toolCallId, toolName, output };
  const last = prompt.at(-1);
  if (last?.role === 'tool') last.content.push(part);
  else prompt.push({ role, content: [part] });
}

function refuse(what: string): never {
  throw new Refusal(400, `The history holds ${what}`);
}

function nameOf(prompt: Prompt, callId: string): string {
  for (const { role, content } of prompt)
    if (role === 'assistant')
      for (const part of content)
        if (part.type === 'tool-call' && part.toolCallId === callId) return part.toolName;
  return refuse(`the result of a call that was not made: ${callId}`);
}

function outputOf(text: string, resultIn: (json: unknown) => unknown) {
  let json: unknown;
  try {
    json = resultIn(JSON.parse(text) as unknown);
  } catch {
    json = text;
  }
  return typeof json === 'string'
    ? { type: 'text' as const, value: json }
    : { type: 'json' as const, value: json as null };
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text = '' }) => text).join('');
}
