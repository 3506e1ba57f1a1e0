// A server of language models that we did not write (`@copilotkit/aimock`), on 127.0.0.1: the
// mind behind it is a scripted model, the wire before it that of a real provider.
//
// Owns:     the server, the exchanges that it had, and who waits for whom.
// Does not: know a protocol (aimock and the provider's package do), or let time pass.
//
// Invariants
//   V1. `settle` resolves when nothing is on the wire: every exchange has ended, for the client
//       and for the server, or waits for a mind that thinks.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  LLMock,
  type ChatCompletionRequest,
  type ChatMessage,
  type FixtureResponse,
} from '@copilotkit/aimock';
import type { LanguageModel } from 'ai';
import type { ScriptedLanguageModel } from '../../src/testing/scripted-model.ts';
import type { SimulatedEnvironment } from '../../src/testing/simulated-environment.ts';
import type { Provider } from './providers.ts';

/** One request, and what became of it. */
export interface Exchange {
  /** As the server understood it, whatever the protocol. */
  asked: ChatCompletionRequest | null;
  path: string;
  /** How the server saw it end; `hung_up`: the client closed the connection. */
  end: 'open' | 'answered' | 'hung_up';
}

/** What a script throws when the provider shall refuse. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS?: number) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

interface Tracked extends Exchange {
  isThinking: boolean;
  isReadToEnd: boolean;
}

/** Tells the exchanges apart; aimock hands it on. */
const NUMBER_HEADER = 'x-aimock-context';
/** The tokens that every answer costs. */
export const USAGE = { input: 10, output: 5 };

const usage = {
  prompt_tokens: USAGE.input,
  completion_tokens: USAGE.output,
  input_tokens: USAGE.input,
  output_tokens: USAGE.output,
  promptTokenCount: USAGE.input,
  candidatesTokenCount: USAGE.output,
};

export async function modelServer({ model, resultIn = same, mend = same }: Provider) {
  const aimock = new LLMock({ port: 0, host: '127.0.0.1', strict: true, logLevel: 'silent' });
  const exchanges: Tracked[] = [];
  let mind: ScriptedLanguageModel | null = null;
  let breaksOff: (asked: ChatCompletionRequest) => boolean = () => false;

  const of = (number: unknown): Tracked => exchanges[Number(number)] as Tracked;
  const respond = async (asked: ChatCompletionRequest): Promise<FixtureResponse> => {
    const exchange = of(asked._context);
    exchange.asked = asked;
    exchange.isThinking = true;
    try {
      return await answerOf(mind as ScriptedLanguageModel, asked, resultIn);
    } finally {
      exchange.isThinking = false;
    }
  };
  aimock.on({ predicate: (asked) => breaksOff(asked) }, respond, {
    truncateAfterChunks: 8,
    chunkSize: 4,
    // What is written in one go is lost with the connection.
    latency: 1,
  });
  aimock.on({ predicate: () => true }, respond, { chunkSize: 8 });
  await aimock.start();

  const served = (message: unknown): void => {
    const { request, response } = message as {
      request: IncomingMessage;
      response: ServerResponse;
    };
    if (request.socket.localPort !== aimock.port) return;
    const exchange = of(request.headers[NUMBER_HEADER]);
    exchange.path = request.url ?? '';
    exchange.end = 'open';
    response.once('close', () => {
      exchange.end = response.writableFinished ? 'answered' : 'hung_up';
    });
  };
  subscribe('http.server.request.start', served);

  const tracked: typeof globalThis.fetch = async (input, init) => {
    const exchange: Tracked = {
      asked: null,
      path: '',
      end: 'hung_up',
      isThinking: false,
      isReadToEnd: false,
    };
    const headers = new Headers(init?.headers);
    headers.set(NUMBER_HEADER, String(exchanges.push(exchange) - 1));
    const done = (): void => {
      exchange.isReadToEnd = true;
    };
    try {
      const response = await fetch(input, { ...init, headers });
      return new Response(response.body?.pipeThrough(byLine(mend, done)) ?? null, response);
    } catch (error) {
      done();
      throw error;
    }
  };

  const isBusy = ({ isReadToEnd, isThinking, end }: Tracked): boolean =>
    isReadToEnd ? end === 'open' : !isThinking;

  return {
    exchanges: exchanges as readonly Exchange[],
    /** The provider's model, with this mind behind the wire. */
    serve(thinking: ScriptedLanguageModel): LanguageModel {
      mind = thinking;
      return model({ url: aimock.url, fetch: tracked });
    },
    /** Answers to such requests break off in the middle. */
    breakOff(when: (asked: ChatCompletionRequest) => boolean): void {
      breaksOff = when;
    },
    /** This environment, where settling lets the wire come to rest too (V1). */
    within(time: SimulatedEnvironment): SimulatedEnvironment {
      const settle = async (): Promise<void> => {
        await time.settle();
        while (exchanges.some(isBusy)) await time.settle();
        await time.settle();
      };
      return Object.assign(Object.create(time) as SimulatedEnvironment, {
        settle,
        async advance(ms: number) {
          await settle();
          await time.advance(ms);
          await settle();
        },
      });
    },
    async close(): Promise<void> {
      unsubscribe('http.server.request.start', served);
      await aimock.stop();
    },
  };
}

const same = <T>(value: T): T => value;

/** Bytes with their lines mended; `done` when the reader has them all, or wants no more. */
function byLine(mend: (line: string) => string, done: () => void) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = '';
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) controller.enqueue(encoder.encode(`${mend(line)}\n`));
    },
    flush(controller) {
      controller.enqueue(encoder.encode(mend(rest)));
      done();
    },
    cancel: done,
  });
}

async function answerOf(
  mind: ScriptedLanguageModel,
  asked: ChatCompletionRequest,
  resultIn: (json: unknown) => unknown,
): Promise<FixtureResponse> {
  try {
    const prompt: Prompt = [];
    for (const message of asked.messages) add(prompt, message, resultIn);
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
 * Adds what the server understood to the prompt for the mind: the results of a step are one message.
 * @throws {Refusal} 400, for what one provider or another refuses to read.
 */
function add(prompt: Prompt, message: ChatMessage, resultIn: (json: unknown) => unknown): void {
  const { role, tool_calls = [], tool_call_id: toolCallId = '' } = message;
  const text = textOf(message);
  if (role === 'system') prompt.push({ role, content: text });
  if (role === 'user') prompt.push({ role, content: [{ type: 'text', text }] });
  if (role === 'assistant') {
    if (text.trim() === '' && (text !== '' || tool_calls.length === 0)) refuse('a blank text');
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
