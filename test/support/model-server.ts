// A third-party server of language models (`@copilotkit/aimock`) on 127.0.0.1. A scripted model gives the answers, and
// the wire is that of a real provider.
//
// Owns:     the server, its exchanges, and which exchange waits for which.
// Does not: know a protocol (aimock and the provider's package do) or let time pass.
//
// Invariants
//   MODEL-SERVER-1. `settle` resolves when the wire is idle, that is, when every exchange either has ended, for both
//       the client and the server, or is waiting for a scripted model that is thinking.
//   MODEL-SERVER-2. A strict server applies the rules of the API to the request that the package wrote.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LLMock, type ChatCompletionRequest, type FixtureResponse } from '@copilotkit/aimock';
import type { LanguageModel } from 'ai';
import type { ScriptedLanguageModel } from '../../src/testing/doubles/scripted-model.ts';
import type { SimulatedEnvironment } from '../../src/testing/doubles/simulated-environment.ts';
import { providerRefusals, refusalBody, type ProviderRefusal } from '../../src/testing/index.ts';
import { answerOf } from './model-answers.ts';
import { readRequest } from './wire-requests.ts';
import type { Provider } from './providers.ts';

/** One request and its outcome. */
export interface Exchange {
  /** The request as the server understood it, in any protocol. */
  asked: ChatCompletionRequest | null;
  path: string;
  /** The request as the provider's package wrote it. */
  readonly body: string;
  /** How the exchange ended for the server. `hung_up`: the client closed the connection. */
  end: 'unseen' | 'open' | 'answered' | 'hung_up';
}

interface Tracked extends Exchange {
  isThinking: boolean;
  isReadToEnd: boolean;
}

/** This header, which aimock forwards, identifies the exchange. */
const NUMBER_HEADER = 'x-aimock-context';
const SLICE_MS = 500;

const REFUSED = 'this cannot be asked for';

interface Reasoning {
  readonly type: 'reasoning';
  readonly text: string;
}

type When = (asked: ChatCompletionRequest) => boolean;
const never: When = () => false;
/**
 * The number of lines or frames after which a cut answer ends. On every wire, this is past the start of an answer and
 * before the end of a long one.
 */
const LINES_BEFORE_END = 24;
const FRAMES_BEFORE_END = 4;

/** Creates the server. `isStrict`: the server refuses what the provider's API refuses (MODEL-SERVER-2). */
export async function modelServer(provider: Provider, isStrict = false) {
  const { mend = (line) => line } = provider;
  const aimock = new LLMock({ port: 0, host: '127.0.0.1', strict: true, logLevel: 'silent' });
  const exchanges: Tracked[] = [];
  const refusals: ProviderRefusal[] = [];
  const earlier = new Map<string, Reasoning[]>();
  let mind: ScriptedLanguageModel | null = null;
  let breaksOff: When = never;
  let endsEarly: When = never;
  let refuses = (_body: string): boolean => false;

  const of = (number: unknown): Tracked => exchanges[Number(number)] as Tracked;
  /** Remembers an answer that contains a call, because later requests must contain it. */
  const remember = (answer: FixtureResponse): void => {
    if (!('toolCalls' in answer) || !('reasoning' in answer) || provider.reasons === false) return;
    // This package returns only the id of the reasoning, and the API stores the text.
    const text = provider.api === 'openai-responses' ? '' : (answer.reasoning ?? '');
    for (const { id } of answer.toolCalls ?? [])
      if (id) earlier.set(id, [{ type: 'reasoning', text }]);
  };
  const refusalOf = (body: string): ProviderRefusal | undefined => {
    const { api } = provider;
    if (!isStrict || !api || body === '') return undefined;
    return providerRefusals(readRequest(api, body), [api], earlier)[0];
  };
  const respond = async (asked: ChatCompletionRequest): Promise<FixtureResponse> => {
    const exchange = of(asked._context);
    exchange.asked = asked;
    if (refuses(exchange.body)) return { status: 400, error: { message: REFUSED } };
    exchange.isThinking = true;
    try {
      const answer = await answerOf(mind as ScriptedLanguageModel, asked, provider);
      remember(answer);
      return answer;
    } finally {
      exchange.isThinking = false;
    }
  };
  aimock.on({ predicate: (asked) => breaksOff(asked) }, respond, {
    truncateAfterChunks: 8,
    chunkSize: 4,
    // Chunks are lost if they are written without a pause before the connection breaks.
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
      body: typeof init?.body === 'string' ? init.body : '',
      end: 'unseen',
      isThinking: false,
      isReadToEnd: false,
    };
    const headers = new Headers(init?.headers);
    headers.set(NUMBER_HEADER, String(exchanges.push(exchange) - 1));
    const done = (): void => {
      exchange.isReadToEnd = true;
    };
    const refusal = refusalOf(exchange.body);
    if (refusal) {
      refusals.push(refusal);
      Object.assign(exchange, { end: 'answered', isReadToEnd: true });
      return Response.json(refusalBody(refusal), { status: 400 });
    }
    try {
      const response = await fetch(input, { ...init, headers });
      const isCut = exchange.asked !== null && endsEarly(exchange.asked);
      const isBinary = response.headers.get('content-type')?.includes('eventstream') ?? false;
      const bytes = isBinary
        ? toEnd(isCut ? FRAMES_BEFORE_END : Infinity, done)
        : byLine(mend, isCut ? LINES_BEFORE_END : Infinity, done);
      return new Response(response.body?.pipeThrough(bytes) ?? null, response);
    } catch (error) {
      done();
      throw error;
    }
  };

  const isBusy = ({ isReadToEnd, isThinking, end }: Tracked): boolean =>
    isReadToEnd ? end === 'open' : !isThinking;

  return {
    exchanges: exchanges as readonly Exchange[],
    /** The requests that broke the API's rules and were refused. */
    refusals: refusals as readonly ProviderRefusal[],
    /** Returns the provider's model, for which this scripted model answers. */
    serve(thinking: ScriptedLanguageModel): LanguageModel {
      mind = thinking;
      return provider.model({ url: aimock.url, fetch: tracked });
    },
    /** Breaks the connection in the middle of the answers to these requests. */
    breakOff(when: When): void {
      breaksOff = when;
    },
    /** Refuses these requests with 400. */
    refuse(when: (body: string) => boolean): void {
      refuses = when;
    },
    /** Ends the answers to these requests in the middle as if they were complete, as a proxy may do. */
    endEarly(when: When): void {
      endsEarly = when;
    },
    /** Returns this environment with a `settle` that also waits for the wire (MODEL-SERVER-1). */
    within(time: SimulatedEnvironment): SimulatedEnvironment {
      const settle = async (): Promise<void> => {
        await time.settle();
        while (exchanges.some(isBusy)) await time.settle();
        await time.settle();
      };
      return Object.assign(Object.create(time) as SimulatedEnvironment, {
        settle,
        // Advances the time in slices, because an answer may start a timer that is due before all the time has passed.
        async advance(ms: number) {
          await settle();
          for (let left = ms; left > 0; left -= SLICE_MS) {
            await time.advance(Math.min(left, SLICE_MS));
            await settle();
          }
        },
      });
    },
    async close(): Promise<void> {
      unsubscribe('http.server.request.start', served);
      await aimock.stop();
    },
  };
}

/** Forwards bytes as they arrive. Calls `done` when the reader has received all of them or stops reading. */
function toEnd(maxChunks: number, done: () => void) {
  let count = 0;
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      count += 1;
      if (count < maxChunks) return;
      controller.terminate();
      done();
    },
    flush: done,
    cancel: done,
  });
}

/** Forwards bytes with corrected lines. Calls `done` when the reader has received all of them or stops reading. */
function byLine(mend: (line: string) => string, maxLines: number, done: () => void) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = '';
  let count = 0;
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        controller.enqueue(encoder.encode(`${mend(line)}\n`));
        count += 1;
        if (count < maxLines) continue;
        controller.terminate();
        done();
        return;
      }
    },
    flush(controller) {
      controller.enqueue(encoder.encode(mend(rest)));
      done();
    },
    cancel: done,
  });
}
