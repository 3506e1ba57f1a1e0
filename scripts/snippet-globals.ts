// The values that the snippets in README.md and docs/ use in addition to the public names: `npm run check` compiles
// each snippet as a module with these globals.

import type { openai as openaiProvider } from '@ai-sdk/openai';
import type * as ai from 'ai';
import type * as offstage from 'offstage';
import type { SessionPool } from 'offstage/journal';
import type { ServeOptions } from 'offstage/serve';
import type { RunSubagentOptions, SubagentService } from 'offstage/subagents';
import type { Voice, Transcriber } from 'offstage/voice';
import type { ConformanceSetup, JournalConformanceSetup } from 'offstage/testing';
import { fromPromise, setup, type createActor as createXStateActor } from 'xstate';
import type { z as zod } from 'zod';

// The machines in docs/model-checking.md
const orders = setup({
  types: {
    context: {} as { readonly tries: number },
    events: {} as { type: 'order.place' } | { type: 'order.cancel' } | { type: 'deadline.passed' },
    input: {} as { readonly id: string },
    tags: {} as 'waiting',
  },
  actors: {
    shop: fromPromise<{ accepted: boolean }>(() => Promise.reject(new Error('not provided'))),
  },
  actions: { sendReceipt: () => {} },
}).createMachine({ context: { tries: 0 }, states: { sold: {} } });
const desk = setup({
  types: {
    context: {} as { readonly owner: string | null },
    events: {} as { type: 'request'; id: string } | { type: 'release'; id: string },
  },
}).createMachine({ context: { owner: null } });
const ticket = setup({
  types: { context: {} as { readonly queue: readonly string[] } },
}).createMachine({
  context: { queue: [] },
});
const speaking = setup({
  types: { events: {} as { type: 'want' } | { type: 'leave' }, tags: {} as 'speaking' },
  actions: { request: () => {} },
}).createMachine({});
const steward = setup({
  types: { events: {} as { type: 'bell' } | { type: 'request'; id: string } },
  actions: { grant: (_machine, _to: { to: string }) => {} },
}).createMachine({});

declare global {
  const orderMachine: typeof orders;
  const deskMachine: typeof desk;
  const ticketMachine: typeof ticket;
  const speakerMachine: typeof speaking;
  const stewardMachine: typeof steward;
  const events: () => { type: 'request'; id: string }[];
  const shop: Parameters<(typeof orders)['provide']>[0]['actors'] extends infer A
    ? NonNullable<NonNullable<A>['shop' & keyof A]>
    : never;
  const answerShop: (output: unknown) => void;
  const flushMicrotasks: () => Promise<void>;

  // Other packages
  const z: typeof zod;
  const openai: typeof openaiProvider;
  const tool: typeof ai.tool;
  const generateText: typeof ai.generateText;
  const isStepCount: typeof ai.isStepCount;
  const createActor: typeof createXStateActor;

  // An app
  const model: ai.LanguageModel;
  const session: offstage.TextSession;
  const pool: SessionPool<offstage.TextSession>;
  const chat: offstage.TextSession;
  const agents: offstage.TextSessionOptions['agents'];
  const subagentConfigs: Record<string, offstage.SubagentConfig>;
  const limits: NonNullable<offstage.TextSessionOptions['limits']>;
  const journal: offstage.Journal & { close(): Promise<void> };
  const runtime: offstage.Runtime;
  const environment: offstage.Environment;
  const transport: offstage.Transport;
  const bookRide: offstage.ToolDefinition;
  const payOut: offstage.ToolDefinition;
  const rideBooker: offstage.SubagentConfig;
  const requestId: string;
  const deliveryId: string;
  const pay: ai.Tool;
  const microphone: { onFrame(listener: (samples: Int16Array) => void): void };
  const speaker: {
    play(frame: offstage.AudioFrame): void;
    onPlayed(listener: (itemId: string, playedMs: number) => void): void;
  };
  const screen: { show(event: offstage.SessionEvent): void };
  const lead: offstage.LeadAgent;
  const openSessions: readonly offstage.TextSession[];
  const sessions: SessionPool<offstage.TextSession>;
  const authorize: ServeOptions['authorize'];
  const reconcile: (toolName: string, input: unknown, idempotencyKey: string) => void;
  const log: (value: unknown) => void;
  const secret: string;
  const app: { post(path: string, handler: (...args: never[]) => unknown): void };
  const chatServer: {
    post(chatId: string, part: offstage.TextPart): void;
    on(event: 'message', listener: (message: { chatId: string; text: string }) => unknown): void;
    on(
      event: 'button',
      listener: (click: { chatId: string; requestId: string; optionId: string }) => unknown,
    ): void;
  };

  // Agents, tools and their resources
  const mcpClient: { tools(): Promise<Record<string, ai.Tool>> };
  const script: ai.LanguageModel;
  const fetchPage: ai.Tool;
  const searchFlights: ai.Tool;
  const researchTool: offstage.ToolDefinition;
  const instructions: string;
  const reporter: offstage.SubagentConfig;
  const summarizer: offstage.SubagentConfig & { readonly outputSchema: zod.ZodType };
  const analyzer: offstage.SubagentConfig & { readonly outputSchema: zod.ZodType };
  const order: offstage.SubagentConfig;
  const task: offstage.SubagentTask;
  const outcome: offstage.Outcome;
  const service: SubagentService;
  const onQuestion: NonNullable<RunSubagentOptions['onQuestion']>;
  const askUser: NonNullable<RunSubagentOptions['onQuestion']>;
  const execute: (
    tool: string,
    input: object,
  ) => Promise<{ readonly subagentId: string; readonly pendingRequest: unknown }>;
  const bank: { charge(sum: number, idempotencyKey: string | undefined): Promise<string> };
  const database: {
    watch(listener: (row: object) => unknown): {
      on(event: 'error', listener: (error: unknown) => void): void;
      close(): void;
    };
  };
  const api: {
    changes(query: {
      readonly since: string | undefined;
      readonly signal: AbortSignal;
    }): Promise<{ readonly items: readonly object[]; readonly next: string }>;
  };
  const toEvent: (item: object) => {
    readonly source: string;
    readonly type: string;
    readonly data: object;
  };

  // Speech, and tests for an adapter
  const voice: Voice;
  const transcriber: Transcriber;
  const myEngine: {
    speak(text: string, signal: AbortSignal): Promise<Int16Array<ArrayBuffer>>;
    words(samples: Int16Array, sampleRateHz: number): Promise<string>;
  };
  const myTransport: (options: object) => offstage.Transport;
  const myStage: ConformanceSetup;
  const MyFakeServer: new (options: object) => {
    readonly connect: () => unknown;
    readonly connections: Awaited<ReturnType<ConformanceSetup['open']>>['models'];
  };
  type Opened = Awaited<ReturnType<JournalConformanceSetup['open']>>;
  const another: Opened['another'];
  const expire: Opened['expire'];
  const reopen: Opened['reopen'];
  const close: Opened['close'];
}
