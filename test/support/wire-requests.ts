// Converts the requests of the providers' packages back to model calls, because the rules of an API apply to the API's
// input and not to the package's input.

import type { ProviderApi, RuledCall } from '../../src/testing/index.ts';

type Prompt = RuledCall['prompt'];
type Assistant = Extract<Prompt[number], { role: 'assistant' }>;
type Tool = NonNullable<RuledCall['tools']>[number];
interface Json {
  readonly [key: string]: unknown;
}

/** Returns the call as the API reads it. */
export function readRequest(api: ProviderApi, body: string): RuledCall {
  const request = JSON.parse(body) as Json;
  if (api === 'anthropic') return anthropic(request);
  if (api === 'bedrock') return bedrock(request);
  if (api === 'google') return google(request);
  return api === 'openai-responses' ? responses(request) : chat(request);
}

/** Collects messages in order. If the API has one item per part, adjacent parts of the same role become one message. */
class Reading {
  readonly prompt: Prompt = [];
  /** The next result starts a new message. */
  isNew = false;

  text(role: 'system' | 'user', text: string): void {
    if (role === 'system') this.prompt.push({ role, content: text });
    else this.prompt.push({ role, content: [{ type: 'text', text }] });
  }

  /** Adds a part of the assistant's message. `isNew`: the part starts a new message. */
  assistant(part: Assistant['content'][number] | null, isNew: boolean): void {
    const last = this.prompt.at(-1);
    if (!isNew && last?.role === 'assistant') {
      if (part) last.content.push(part);
    } else this.prompt.push({ role: 'assistant', content: part ? [part] : [] });
  }

  call(toolCallId: string, toolName: string, input: unknown, isNew: boolean): void {
    this.assistant({ type: 'tool-call', toolCallId, toolName, input }, isNew);
  }

  result(toolCallId: string, text: string): void {
    const part = {
      type: 'tool-result' as const,
      toolCallId,
      toolName: '',
      output: { type: 'text' as const, value: text },
    };
    const last = this.prompt.at(-1);
    const isNew = this.isNew || last?.role !== 'tool';
    this.isNew = false;
    if (last?.role === 'tool' && !isNew) last.content.push(part);
    else this.prompt.push({ role: 'tool', content: [part] });
  }
}

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

function record(value: unknown): Json {
  return (value ?? {}) as Json;
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function parsed(json: unknown): unknown {
  try {
    return JSON.parse(string(json));
  } catch {
    return json;
  }
}

function textsIn(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content];
  return list(content).flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
}

function toolOf(name: unknown, inputSchema: unknown, description?: unknown): Tool {
  return {
    type: 'function',
    name: string(name),
    inputSchema: record(inputSchema),
    ...(typeof description === 'string' && { description }),
  };
}

/** Reads the chat format of OpenAI, DeepSeek, Mistral and Qwen. */
function chat({ messages, tools }: Json): RuledCall {
  const read = new Reading();
  for (const { role, content, tool_calls, tool_call_id, reasoning_content } of list(messages)) {
    if (role === 'system' || role === 'developer') read.text('system', textsIn(content).join(''));
    else if (role === 'user') read.text('user', textsIn(content).join(''));
    else if (role === 'tool') read.result(string(tool_call_id), textsIn(content).join(''));
    else {
      read.assistant(null, true);
      if (typeof reasoning_content === 'string' && reasoning_content !== '')
        read.assistant({ type: 'reasoning', text: reasoning_content }, false);
      for (const text of textsIn(content))
        if (text !== '') read.assistant({ type: 'text', text }, false);
      for (const { id, function: called } of list(tool_calls)) {
        const { name, arguments: json } = record(called);
        read.call(string(id), string(name), parsed(json), false);
      }
    }
  }
  return {
    prompt: read.prompt,
    tools: list(tools).map(({ function: tool }) => {
      const { name, parameters, description } = record(tool);
      return toolOf(name, parameters, description);
    }),
  };
}

function responses({ input, tools }: Json): RuledCall {
  const read = new Reading();
  let isAnswer = false;
  for (const item of list(input)) {
    const { type, role, content, call_id, name, arguments: json } = item;
    const isReasoning = type === 'reasoning' || type === 'item_reference';
    const isOfModel = type === 'function_call' || isReasoning || role === 'assistant';
    const isNew = !isAnswer;
    isAnswer = isOfModel;
    if (role === 'system' || role === 'developer') read.text('system', textsIn(content).join(''));
    else if (role === 'user') read.text('user', textsIn(content).join(''));
    else if (type === 'function_call')
      read.call(string(call_id), string(name), parsed(json), isNew);
    else if (type === 'function_call_output') read.result(string(call_id), string(item['output']));
    // The API stores the text and knows the item by its id.
    else if (isReasoning) read.assistant({ type: 'reasoning', text: '' }, isNew);
    else if (role === 'assistant')
      read.assistant({ type: 'text', text: textsIn(content).join('') }, isNew);
  }
  return {
    prompt: read.prompt,
    tools: list(tools).map(({ name, parameters }) => toolOf(name, parameters)),
  };
}

function anthropic({ system, messages, tools }: Json): RuledCall {
  const read = new Reading();
  for (const text of textsIn(system)) read.text('system', text);
  for (const { role, content } of list(messages)) {
    if (role === 'assistant') read.assistant(null, true);
    if (role === 'system') read.text('system', textsIn(content).join(''));
    for (const block of typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : list(content)) {
      const { type, text, id, name, input, tool_use_id } = record(block);
      if (type === 'text' && role === 'user') read.text('user', string(text));
      // A text that is empty on the wire was blank before, because the package trims it.
      if (type === 'text' && role === 'assistant')
        read.assistant({ type, text: string(text) || ' ' }, false);
      if (type === 'thinking')
        read.assistant({ type: 'reasoning', text: string(record(block)['thinking']) }, false);
      if (type === 'tool_use') read.call(string(id), string(name), input, false);
      if (type === 'tool_result')
        read.result(string(tool_use_id), textsIn(record(block)['content']).join(''));
    }
  }
  return {
    prompt: read.prompt,
    tools: list(tools).map(({ name, input_schema }) => toolOf(name, input_schema)),
  };
}

function google({ systemInstruction, contents, tools }: Json): RuledCall {
  const read = new Reading();
  for (const text of textsIn(record(systemInstruction)['parts'])) read.text('system', text);
  for (const { role, parts } of list(contents)) {
    if (role === 'model') read.assistant(null, true);
    read.isNew = true;
    for (const [index, { text, thought, functionCall, functionResponse }] of list(
      parts,
    ).entries()) {
      const { id, name, args } = record(functionCall);
      if (functionCall)
        read.call(string(id) || `${string(name)}_${index}`, string(name), args, false);
      else if (functionResponse) {
        const { id: answered, name: of, response } = record(functionResponse);
        read.result(string(answered) || `${string(of)}_${index}`, JSON.stringify(response));
      } else if (role === 'model')
        read.assistant(
          { type: thought === true ? 'reasoning' : 'text', text: string(text) },
          false,
        );
      else read.text('user', string(text));
    }
  }
  return {
    prompt: read.prompt,
    tools: list(tools).flatMap(({ functionDeclarations }) =>
      list(functionDeclarations).map(({ name, parameters, parametersJsonSchema }) =>
        toolOf(name, parametersJsonSchema ?? parameters ?? { type: 'object', properties: {} }),
      ),
    ),
  };
}

function bedrock({ system, messages, toolConfig }: Json): RuledCall {
  const read = new Reading();
  for (const text of textsIn(system)) read.text('system', text);
  for (const { role, content } of list(messages)) {
    if (role === 'assistant') read.assistant(null, true);
    for (const { text, toolUse, toolResult } of list(content)) {
      const { toolUseId, name, input } = record(toolUse);
      if (toolUse) read.call(string(toolUseId), string(name), input, false);
      else if (toolResult) {
        const { toolUseId: id, content: result } = record(toolResult);
        read.result(string(id), textsIn(result).join(''));
      } else if (role === 'assistant') read.assistant({ type: 'text', text: string(text) }, false);
      else if (text !== undefined) read.text('user', string(text));
    }
  }
  return {
    prompt: read.prompt,
    tools: list(record(toolConfig)['tools']).map(({ toolSpec }) => {
      const { name, inputSchema } = record(toolSpec);
      return toolOf(name, record(inputSchema)['json']);
    }),
  };
}
