// An A2A 1.0 agent on the official SDK, without a model: it performs the acts in its prompts. It serves JSON-RPC on
// 127.0.0.1, without a framework.

import { Role, TaskState, type AgentCard, type Message, type Part } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  type AgentExecutor,
  type ExecutionEventBus,
} from '@a2a-js/sdk/server';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { RelayAnswer } from '../../../../src/entries/subagents.ts';
import { actsIn, perform } from '../../../../src/testing/doubles/relay-acts.ts';

export interface AgentServer {
  readonly url: string;
  /** The text of each received message, in order. */
  readonly told: readonly string[];
  /** The headers of each request. */
  readonly headers: readonly IncomingMessage['headers'][];
  /** Returns the number of streams that have a reader. */
  streams(): number;
  /** Closes the streams that have a reader, as a lost connection would. */
  cut(): void;
  close(): void;
}

export interface AgentServerOptions {
  /** @defaultValue true */
  readonly streams?: boolean;
}

interface Work {
  bus: ExecutionEventBus;
  answer: ((message: Message) => void) | null;
  /** Settles when the task asks a question or has ended. */
  pause: PromiseWithResolvers<void>;
  readonly cancelled: AbortController;
  isDeaf: boolean;
}

const part = (value: string): Part => ({
  content: { $case: 'text', value },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});
const data = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: '',
});

const ENDS = {
  completed: TaskState.TASK_STATE_COMPLETED,
  cancelled: TaskState.TASK_STATE_CANCELED,
  refused: TaskState.TASK_STATE_REJECTED,
  limit: TaskState.TASK_STATE_FAILED,
  failed: TaskState.TASK_STATE_FAILED,
} as const;

export async function agentServer(options: AgentServerOptions = {}): Promise<AgentServer> {
  const works = new Map<string, Work>();
  const told: string[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const reading = new Set<ServerResponse>();
  let die = (): void => {};

  const executor: AgentExecutor = {
    async execute({ taskId, contextId, task, userMessage }, bus) {
      const text = userMessage.parts
        .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
        .join('');
      told.push(text);
      const known = works.get(taskId);
      bus.publish(
        AgentEvent.task(
          task ?? {
            id: taskId,
            contextId,
            status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() },
            artifacts: [],
            history: [userMessage],
            metadata: undefined,
          },
        ),
      );
      if (known) {
        known.bus = bus;
        known.pause = Promise.withResolvers();
        known.answer?.(userMessage);
        await known.pause.promise;
        return;
      }
      const work: Work = {
        bus,
        answer: null,
        pause: Promise.withResolvers(),
        cancelled: new AbortController(),
        isDeaf: false,
      };
      works.set(taskId, work);
      const status = (state: TaskState, parts: readonly Part[]): void => {
        const message: Message | undefined =
          parts.length === 0
            ? undefined
            : {
                messageId: crypto.randomUUID(),
                contextId,
                taskId,
                role: Role.ROLE_AGENT,
                parts: [...parts],
                metadata: undefined,
                extensions: [],
                referenceTaskIds: [],
              };
        const update = { state, message, timestamp: now() };
        work.bus.publish(
          AgentEvent.statusUpdate({ taskId, contextId, status: update, metadata: undefined }),
        );
      };
      let hasSaid = false;
      const asks = async (state: TaskState, parts: readonly Part[]): Promise<Answer> => {
        const { promise, resolve } = Promise.withResolvers<Message | null>();
        work.answer = resolve;
        const stop = (): void => resolve(null);
        work.cancelled.signal.addEventListener('abort', stop, { once: true });
        status(state, parts);
        work.pause.resolve();
        const message = await promise;
        work.answer = null;
        if (!message) return { type: 'cancelled', text: '' };
        status(TaskState.TASK_STATE_WORKING, []);
        return answerIn(message);
      };
      status(TaskState.TASK_STATE_WORKING, []);
      void perform(actsIn(text), {
        cancelled: work.cancelled.signal,
        say(value) {
          const artifact = {
            artifactId: 'answer',
            name: '',
            description: '',
            parts: [part(value)],
            metadata: undefined,
            extensions: [],
          };
          work.bus.publish(
            AgentEvent.artifactUpdate({
              taskId,
              contextId,
              artifact,
              append: hasSaid,
              lastChunk: false,
              metadata: undefined,
            }),
          );
          hasSaid = true;
        },
        progress: (value) => status(TaskState.TASK_STATE_WORKING, [part(value)]),
        toolStarted: () => {},
        toolEnded: () => {},
        async permission(_toolId, { title, input }) {
          const { type } = await asks(TaskState.TASK_STATE_AUTH_REQUIRED, [
            part(title),
            data(input),
          ]);
          return type;
        },
        async question(question, choices) {
          const parts = choices.length === 0 ? [] : [data({ options: choices })];
          const answer = await asks(TaskState.TASK_STATE_INPUT_REQUIRED, [
            part(question),
            ...parts,
          ]);
          return answer.type === 'answered' ? answer : null;
        },
        deaf() {
          work.isDeaf = true;
        },
        async die() {
          await written();
          die();
          return new Promise<never>(() => {});
        },
        async garbage() {
          await written();
          for (const response of reading) response.write('data: {"jsonrpc":"2.0","garb\n\n');
        },
      }).then((reason) => {
        if (work.isDeaf) return;
        status(ENDS[reason], reason === 'completed' ? [] : [part(reason)]);
        work.pause.resolve();
        work.bus.finished();
        works.delete(taskId);
      });
      await work.pause.promise;
    },
    async cancelTask(taskId) {
      const work = works.get(taskId);
      if (!work) return;
      if (work.isDeaf) await new Promise<never>(() => {});
      work.cancelled.abort();
    },
  };

  const server = createServer((request, response) => {
    headers.push(request.headers);
    void serve(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card = cardOf(url, options.streams ?? true);
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), executor),
  );
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  die = close;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(card));
      return;
    }
    const result = await handler.handle(body, new ServerCallContext({ requestedVersion: '1.0' }));
    if (!(Symbol.asyncIterator in result)) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(result));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    reading.add(response);
    response.once('close', () => reading.delete(response));
    // The loop continues without a reader, because it writes to the store.
    try {
      for await (const event of result) response.write(`data: ${JSON.stringify(event)}\n\n`);
    } catch {
      // The stream that requested an authorization fails when the answer arrives as a message.
    }
    response.end();
  }

  return {
    url,
    told,
    headers,
    streams: () => reading.size,
    cut: () => {
      for (const response of reading) response.destroy();
    },
    close,
  };
}

/** Waits until the published events have been written. */
async function written(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
}

interface Answer {
  readonly type: RelayAnswer['type'];
  readonly text: string;
  readonly optionId?: string;
}

function answerIn({ parts, metadata }: Message): Answer {
  const [first] = parts;
  const text = first?.content?.$case === 'text' ? first.content.value : '';
  const given = metadata?.['offstage.answer'] as Partial<Answer> | undefined;
  return {
    type: given?.type ?? 'answered',
    text,
    ...(given?.optionId === undefined ? {} : { optionId: given.optionId }),
  };
}

function now(): string {
  return new Date().toISOString();
}

function cardOf(url: string, streaming: boolean): AgentCard {
  return {
    name: 'test agent',
    description: 'performs acts',
    version: '1',
    provider: undefined,
    supportedInterfaces: [
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' },
    ],
    capabilities: { streaming, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
  };
}
