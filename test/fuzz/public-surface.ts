// Lists every export of every subpath of the package, found by reflection, with a row that says how to call it. An
// export without a row fails the test, so that every new export gets a row.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { from } from 'rxjs';
import { createMachine } from 'xstate';
import { z } from 'zod';
import { createRuntime, defineTool, memoryJournal, TextSession } from '../../src/index.ts';
import { localJobs } from '../../src/entries/jobs.ts';
import { emptySessionState } from '../../src/client/index.ts';
import { encodeWav } from '../../src/voice/index.ts';
import { spokenLead } from '../../src/voice/spoken-lead.ts';
import {
  checkMachine,
  scriptedModel,
  scriptedRelay,
  scriptedVoice,
  simulatedEnvironment,
  Violation,
  type SimulatedEnvironment,
} from '../../src/testing/index.ts';
import { Trace } from '../../src/testing/check/trace.ts';
import { FakeTransport } from '../support/fake-transport.ts';

/** The `ctx` of a Durable Object that stores nothing. */
const durableObject = () => ({
  id: { name: 'chat', toString: () => 'chat' },
  storage: {
    sql: { exec: () => ({ toArray: () => [] }) },
    transactionSync: <T>(work: () => T): T => work(),
    setAlarm: () => Promise.resolve(),
    deleteAlarm: () => Promise.resolve(),
  },
  acceptWebSocket() {},
  getWebSockets: () => [],
  setWebSocketAutoResponse() {},
});

/** The parts from which arguments are built, newly created for each call. */
export interface World {
  readonly environment: SimulatedEnvironment;
  /** An empty folder for this run. */
  readonly directory: string;
  /** A number that no earlier call received. */
  readonly number: number;
}

export interface Row {
  /** Valid arguments. They may include options that have a default, because the fuzzer replaces each option. */
  readonly args: (world: World) => readonly unknown[];
  /**
   * The function accepts objects that this library made (machine states, records). It may respond to invalid objects
   * with an error of any class, but must neither hang nor crash. The text states the reason.
   */
  readonly trusts?: string;
  /** The function refuses these valid arguments. The text states the reason. */
  readonly refuses?: string;
  /** The function waits for a server, in real time. */
  readonly isOutside?: true;
  /** The function may run for minutes on valid arguments, so the fuzzer calls it with arguments that start no work. */
  readonly isCostly?: true;
  /**
   * The fuzzer also calls the methods of the result. `trusts`: the methods belong to a port, which only this library
   * calls.
   */
  readonly walks?: true | 'trusts';
}

const nothing = () => ({ unsubscribe: () => {} });
const model = (): unknown => scriptedModel([{ text: 'done' }, { text: 'done' }]);
const tool = defineTool({
  name: 'look_up',
  description: 'Looks up',
  parameters: z.looseObject({}),
  execution: 'inline',
  execute: () => 'found',
});
const background = defineTool({
  name: 'research',
  description: 'Researches',
  parameters: z.looseObject({}),
  execution: 'background',
});
const config = (): Record<string, unknown> => ({
  name: 'researcher',
  instructions: 'Research.',
  tools: {},
  maxSteps: 3,
  timeout: 1_000,
  model: model(),
  interactive: true,
  inputTimeout: 1_000,
  maxInputRetries: 1,
  lifetime: 'ephemeral',
  onBargeIn: 'continue',
  context: 'none',
  retry: { maxAttempts: 1 },
  budget: { steps: 3 },
  dispose: () => undefined,
});
const lead = (): Record<string, unknown> => ({
  name: 'lead',
  instructions: 'You lead.',
  tools: [tool, background],
  greeting: 'Hello.',
  language: 'en',
});
const sessionOptions = (world: World): Record<string, unknown> => ({
  sessionId: `session-${world.number}`,
  environment: world.environment,
  model: model(),
  agents: [lead()],
  subagentConfigs: { research: config() },
  journal: memoryJournal(),
  limits: {},
  hooks: {},
  conversation: {},
  consolidation: 'off',
  runtime: undefined,
});
const door = createMachine({
  id: 'door',
  initial: 'open',
  states: { open: { on: { close: 'closed' } }, closed: { type: 'final' } },
});
const doorCheck = (): { events: () => readonly { type: string }[] } => ({
  events: () => [{ type: 'close' }],
});
const frame = (): unknown => ({ samples: new Int16Array(480), sampleRateHz: 24_000 });
const machineMade = 'it is a pure function of states that the machines made';
const packing = (): Record<string, unknown> => ({
  redact: { values: ['a secret word'] },
  codec: { seal: (text: string) => text, open: (text: string) => text },
  claims: { keep: () => undefined, read: () => null },
  claimAboveBytes: 10,
});
const runEngine = () => ({
  name: 'none',
  start: () => Promise.resolve(),
  view: () => Promise.resolve({ turn: 0, waiting: [], outcome: null }),
  answer: () => Promise.resolve(false),
  cancel: () => Promise.resolve(),
  forget: (id: string) => Promise.resolve([id]),
});
const ofErrors = 'adapters make them of texts of their own';
const recordMade = 'it takes records that this library made';
const testTool = 'a test calls it, and a test that is wrong may fail in any way';

export const rows: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  '.': {
    VoiceSession: {
      args: (world) => [
        {
          ...sessionOptions(world),
          transport: new FakeTransport(),
          voice: { quietMs: 100 },
          thinkingSound: undefined,
        },
      ],
      walks: true,
    },
    withVoice: {
      args: ({ environment }) => [
        {
          name: 'fake',
          lead: spokenLead,
          connect: () => undefined,
          capabilities: { ...new FakeTransport().capabilities, output: 'text' },
        },
        { voice: scriptedVoice({ environment }), speed: 1 },
      ],
    },
    createChildSubagentToolset: { args: () => [{ structured: true }] },
    createParentSubagentToolset: { args: () => [{}] },
    createSubAgentTool: {
      args: () => [
        { ...config(), interactive: false, outputSchema: z.object({ a: z.string() }) },
        z.object({}),
      ],
    },
    CancelledError: { args: () => ['over'], trusts: ofErrors },
    CapacityError: { args: () => ['FULL', 'full'], trusts: ofErrors },
    ConfigurationError: { args: () => ['WRONG', 'wrong'], trusts: ofErrors },
    OffstageError: { args: () => ['ANY', 'any'], trusts: ofErrors },
    ProtocolError: { args: () => ['PROTOCOL', 'wrong'], trusts: ofErrors },
    ProviderError: { args: () => ['PROVIDER', 'failed', { retryable: true }], trusts: ofErrors },
    TextSession: { args: (world) => [sessionOptions(world)], walks: true },
    TimeoutError: { args: () => ['late'], trusts: ofErrors },
    callerOf: { args: () => [{}], trusts: recordMade },
    createRuntime: { args: ({ environment }) => [{ environment, journal: memoryJournal() }] },
    defineService: {
      args: () => [{ agent: config(), eventSources: [{ name: 's', start: () => undefined }] }],
    },
    defineSubagent: { args: () => [config()] },
    defineTool: { args: () => [{ ...tool }] },
    memoryJournal: { args: () => [{ keep: 10 }], walks: 'trusts' },
    sessionLogic: { args: () => [() => undefined, {}], walks: true },
  },
  './jobs': {
    JobError: { args: () => ['BROKEN', 'broken'], trusts: ofErrors },
    jobWorker: {
      args: ({ environment }) => [
        { environment, configs: { own: config() }, tools: {}, model: model(), onError: () => {} },
      ],
      walks: 'trusts',
    },
    runWorker: {
      args: ({ environment }) => [
        {
          environment,
          configs: { own: { name: 'own', instructions: 'Work.', runs: 'jobs' } },
          steps: { do: () => Promise.resolve({ done: '' }) },
          maxChars: 1_000,
          onError: () => {},
        },
      ],
      walks: 'trusts',
    },
    localJobs: {
      args: () => [{ handler: { do: () => ({ done: '' }) }, maxBytes: 1_000 }],
      walks: 'trusts',
    },
    packedHandler: { args: () => [{ do: () => ({ done: '' }) }, packing()] },
    forgetRun: { args: () => ['run-1', { engine: runEngine() }] },
    packedEngine: {
      args: () => [localJobs({ handler: { do: () => Promise.resolve({ done: '' }) } }), packing()],
    },
  },
  './temporal': {
    temporalJobs: {
      args: () => [
        {
          client: { workflow: { start: () => null, getHandle: () => ({}) } },
          taskQueue: 'jobs',
          workflowType: 'job',
          heartbeatTimeoutMs: 1_000,
          longestMs: 1_000,
          maxBytes: 1_000,
        },
      ],
    },
    temporalRuns: {
      args: () => [
        {
          client: { workflow: { start: () => null, getHandle: () => ({}) } },
          taskQueue: 'runs',
          workflowType: 'run',
          heartbeatTimeoutMs: 1_000,
          longestMs: 1_000,
          lookMs: 1_000,
        },
      ],
    },
    temporalRunActivities: {
      args: () => [
        {
          activity: { Context: { current: () => ({}) } },
          handler: { turn: () => ({}), step: () => ({}) },
        },
      ],
    },
    temporalJobActivities: {
      args: () => [
        {
          activity: { Context: { current: () => ({}) } },
          handler: { do: () => ({ done: '' }) },
          maxBytes: 1_000,
        },
      ],
    },
  },
  './temporal/workflow': {
    runWorkflow: {
      args: () => [{ proxyActivities: () => ({}), CancellationScope: Object }],
      trusts: 'a workflows file calls it, in a sandbox that has no checks to import',
    },
    jobWorkflow: {
      args: () => [{ proxyActivities: () => ({}), isCancellation: () => false }],
      trusts: 'a workflows file calls it, in a sandbox that has no checks to import',
    },
  },
  './restate': {
    restateRuns: {
      args: () => [
        {
          ingress: 'http://127.0.0.1:9',
          admin: 'http://127.0.0.1:9',
          service: 'runs',
          headers: {},
        },
      ],
    },
    restateRunWorkflow: {
      args: () => [
        {
          restate: {
            workflow: (definition: unknown) => definition,
            handlers: { workflow: { shared: (_: object, handler: unknown) => handler } },
            RestatePromise: { race: () => null },
          },
          handler: { turn: () => ({}), step: () => ({}) },
          service: 'runs',
          keepMs: 1_000,
          longestMs: 1_000,
        },
      ],
    },
    restateJobs: {
      args: () => [
        { ingress: 'http://127.0.0.1:9', service: 'jobs', headers: {}, maxBytes: 1_000 },
      ],
    },
    restateJobService: {
      args: ({ environment }) => [
        {
          restate: {
            service: (definition: unknown) => definition,
            RestatePromise: { race: () => null },
          },
          handler: { do: () => ({ done: '' }) },
          environment,
          service: 'jobs',
          keepMs: 1_000,
          longestMs: 1_000,
          offerMs: 1_000,
          maxBytes: 1_000,
        },
      ],
    },
  },
  './journal': {
    createSessionPool: {
      args: ({ environment }) => {
        const runtime = createRuntime({ environment, journal: memoryJournal() });
        const open = (id: string): unknown =>
          new TextSession({
            sessionId: id,
            runtime,
            model: model() as never,
            agents: [lead()] as never,
            subagentConfigs: { research: config() } as never,
          });
        return [{ runtime, open, idleMs: 1_000, maxAwake: 2, lookMs: 1_000 }];
      },
      walks: true,
    },
    JournalError: { args: () => ['BROKEN', 'broken'], trusts: ofErrors },
    journalEntryOf: {
      args: () => [
        {
          scope: 's',
          unit: 's',
          seq: 1,
          at: 1,
          actor: 'session',
          definitionVersion: 1,
          event: { type: 'a' },
        },
        'the test',
      ],
    },
    memoryWakeTimes: { args: () => [], walks: 'trusts' },
    redactingJournal: { args: () => [memoryJournal(), {}], walks: 'trusts' },
    forgetSession: { args: () => ['ses_1', { journal: memoryJournal() }], walks: 'trusts' },
    applyRetention: {
      args: ({ environment }) => [
        { journal: memoryJournal(), clock: environment.clock },
        { maxAgeMs: 1000, maxSessions: 10 },
      ],
      walks: 'trusts',
    },
  },
  './replay': {
    checkRecording: { args: () => [{ steps: [] }], trusts: recordMade },
    exportRecording: { args: () => [memoryJournal(), 'session'], trusts: recordMade },
    forkSession: {
      args: () => [memoryJournal(), { from: 'a', after: 1, to: 'b' }],
      trusts: recordMade,
    },
    importRecording: { args: () => [memoryJournal(), { steps: [] }], trusts: recordMade },
    parseRecording: { args: () => ['{"recording":1,"scope":"s","entries":0}', 'the test'] },
    replaySession: { args: () => [[]] },
  },
  './memory': {
    memoryStore: { args: () => [{}], walks: 'trusts' },
    workingMemory: { args: ({ environment }) => [{ environment }], walks: 'trusts' },
    createWorkingMemoryToolset: { args: () => [{ memory: {} }], trusts: recordMade },
    modelDistiller: { args: () => [{ model: model() }] },
    modelSummary: { args: () => [{ model: model() }] },
  },
  './results': {
    isLargeOutput: { args: () => [{}] },
    modelClaimJudge: { args: ({ environment }) => [{ model: model(), environment }] },
    speakable: { args: () => [{ a: 1 }, 100], trusts: recordMade },
    verifyClaims: { args: () => [{ text: 'I did it.', toolLedger: [] }, {}], trusts: recordMade },
  },
  './language': {
    addAnswerLanguage: { args: () => [{ code: 'xx', holds: ['wait'], consent: { yes: ['yes'] } }] },
    answerLanguageFor: { args: () => ['en-GB'] },
  },
  './compat': {
    companions: { args: () => [[{ agent: config() }], { model: model() }] },
    rockbotToolset: { args: () => [{}] },
    clientMessages: { args: (world) => [new TextSession(sessionOptions(world) as never)] },
    isSubAgentTool: { args: () => ['subagent__a'] },
    planStepProcessing: { args: () => [[], {}], trusts: recordMade },
    receiveClientMessage: {
      args: (world) => [
        new TextSession(sessionOptions(world) as never),
        { type: 'text_input', text: 'hello' },
        { by: 'ada' },
      ],
    },
    rockbotChildToolset: { args: () => [] },
    subAgentRefs: { args: () => [{ list: () => [] }, null], trusts: recordMade },
    subAgentStream: { args: () => [{ id: 'a', events: from([]) }], trusts: recordMade },
    looksLikeQuestion: { args: () => ['Which one?'] },
    openClawPlan: {
      args: () => [{ toolName: 'a', args: {}, description: 'a task', scope: {} }],
      trusts: 'the manager calls it',
    },
    openClawTaskKind: { args: () => ['book a meeting'] },
    openClawTaskManager: { args: () => [scriptedRelay(), {}] },
    OpenClawTaskQueueTimeoutError: { args: () => ['lock', 1, 0], trusts: recordMade },
    askClaude: { args: () => [scriptedRelay()] },
    relaySubagent: { args: ({ environment }) => [{ relay: scriptedRelay(), environment }] },
    topic: {
      args: (world) => [new TextSession(sessionOptions(world) as never), 'subagent.progress'],
    },
  },
  './tasks': {
    taskManager: { args: () => [{ relay: scriptedRelay(), maxRunning: 1 }] },
    TaskQueueTimeoutError: { args: () => ['lock', 1, 0], trusts: recordMade },
  },
  './subagents': {
    createSubagentService: {
      args: ({ environment, number }) => [
        {
          id: `service-${number}`,
          runtime: createRuntime({ environment, journal: memoryJournal() }),
          model: model(),
          configs: { research: config() },
          constraints: {},
          budget: { steps: 10 },
          graceMs: 100,
        },
      ],
      walks: true,
    },
    leadSubagents: { args: () => [{}] },
    leadTools: { args: () => [{}, {}] },
    runSubagent: {
      args: ({ environment }) => [config(), 'Find out.', { environment, model: model() }],
      walks: true,
    },
    subagentLogic: {
      args: ({ environment }) => [config(), { environment, model: model() }],
      walks: 'trusts',
    },
    subAgentTools: { args: () => [], trusts: recordMade },
    subtreeUsage: {
      args: () => [
        [{ id: 'a', parentId: null, usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 } }],
        'a',
      ],
    },
    agentSubagent: {
      args: () => [{ name: 'agent', agent: { model: model(), tools: {} } }],
    },
    agentRelay: { args: () => [{ id: 'agent', stream: () => undefined }, {}] },
    isToolFailure: { args: () => [{}] },
  },
  './services': {
    pollingSource: {
      args: () => [
        {
          name: 's',
          poll: () => Promise.resolve({ items: [], cursor: 1 }),
          intervalMs: 1_000,
        },
      ],
    },
  },
  './machines': Object.fromEntries(
    [
      'activities', 'activity', 'askingFor', 'deadline', 'effect', 'gateMessage', 'gateOf', 'ownerOf', 'priorityOf',
      'requestIdOf', 'resultItem', 'shared', 'sourceMessages', 'stopActivity', 'whyWaiting', 'wire', 'withDeadlines',
    ].map((name) => [name, { args: () => ['a', 'b', 'c'], trusts: machineMade }]),
  ), // prettier-ignore
  './voice': {
    createResampler: { args: () => [{ fromHz: 8_000, toHz: 24_000 }] },
    decodeMuLaw: { args: () => [new Uint8Array(4)] },
    decodePcm16: { args: () => [new Uint8Array(4)] },
    decodePcm16Base64: { args: () => ['AAAAAA=='] },
    decodeWav: { args: () => [encodeWav({ samples: new Int16Array(4), sampleRateHz: 8_000 })] },
    encodeMuLaw: { args: () => [new Int16Array(4)] },
    encodePcm16: { args: () => [new Int16Array(4)] },
    encodePcm16Base64: { args: () => [new Int16Array(4)] },
    encodeWav: { args: () => [frame()] },
    frameDurationMs: { args: () => [frame()] },
    reframe: { args: () => [20, {}] },
    workingSound: { args: () => [{ sampleRateHz: 8_000, volume: 0.1 }] },
  },
  './testing': {
    ConformanceError: { args: () => ['A', 'a'], trusts: testTool },
    RecordingError: { args: () => ['A', 'a'], trusts: testTool },
    SimulationError: { args: () => ['A', 'a'], trusts: testTool },
    Violation: { args: () => ['A', 'a'], trusts: testTool },
    ViolationError: {
      args: () => ['the test', new Violation('invariant', 'a', 'b', new Trace([]))],
    },
    checkMachine: { args: () => [door, doorCheck()] },
    checkSystem: {
      args: () => [
        {
          actors: { door: { machine: door } },
          external: () => [{ type: 'close' }],
          mode: 'sync',
        },
      ],
    },
    crashEverywhere: { args: () => ['no options'], trusts: testTool, isCostly: true },
    defaultApp: { args: () => [{}], trusts: testTool },
    eventsOf: { args: () => [[], 'floor.changed'], trusts: testTool },
    interpreter: { args: () => [checkMachine(door, doorCheck()), {}] },
    journalConformance: { args: () => [{ name: 'a', offers: ['trim'], open: () => ({}) }] },
    providerRefusals: { args: () => [{ prompt: [] }, ['anthropic']], trusts: testTool },
    refusalBody: { args: () => [{ rule: { api: 'anthropic' }, words: 'no' }], trusts: testTool },
    refusalError: { args: () => [{ rule: { api: 'anthropic' }, words: 'no' }], trusts: testTool },
    parseScript: { args: () => ['{"seed":1,"session":"text","steps":[],"strikes":[]}'] },
    readNotes: { args: () => [[]], trusts: testTool },
    readTask: { args: () => [[]], trusts: testTool },
    recording: { args: () => ['/nowhere'], trusts: testTool },
    replay: { args: () => [checkMachine(door, doorCheck()), { onViolation: 'collect' }] },
    replayScript: { args: () => ['no script'], trusts: testTool, isCostly: true },
    actsPrompt: { args: () => [{ say: 'Hello.' }], trusts: testTool },
    simulatedRuns: {
      args: ({ environment }) => [{ environment, handler: { turn: () => ({}), step: () => ({}) } }],
      walks: 'trusts',
    },
    simulatedJobs: { args: () => [{ handler: { do: () => ({ done: '' }) } }], walks: 'trusts' },
    scriptedModel: { args: () => [[]], trusts: testTool },
    scriptedRelay: { args: () => [{ graceMs: 1 }], trusts: testTool },
    scriptedVoice: { args: ({ environment }) => [{ environment }], trusts: testTool },
    simulate: { args: () => ['no options'], trusts: testTool, isCostly: true },
    simulateOnce: { args: () => ['no seed'], trusts: testTool, isCostly: true },
    simulatedEnvironment: { args: () => [{ seed: 1, startAt: 1 }], trusts: testTool },
    simulatedVoice: { args: () => [{}, 'a'], trusts: testTool },
    reachConformance: { args: () => [{ open: () => ({}) }] },
    transportConformance: { args: () => [{ name: 'a', shows: [], open: () => ({}) }] },
  },
  './testing/voice-server': {
    createVoiceServer: {
      args: ({ environment }) => [{ environment, apiKey: 'a' }],
      trusts: testTool,
    },
    echoResponder: { args: () => [{ cause: { type: 'utterance', text: 'Hello.' } }] },
    voiceServerStage: { args: () => [{ wire: 'gemini-live' }], trusts: testTool },
  },
  './inspect': {
    createInspector: {
      args: ({ environment }) => [
        {
          environment,
          to: { mode: 'sink', send: () => undefined },
          redact: true,
          maxBytes: 65_536,
        },
      ],
      walks: true,
    },
    redactWords: { args: () => ['leaf', ['event', 'type']], trusts: recordMade },
  },
  './inspector': {
    inspector: {
      args: ({ environment }) => [
        {
          journal: memoryJournal(),
          token: 'a token of sixteen',
          act: () => null,
          forks: true,
          user: 'ann',
          path: '/inspect',
          redact: true,
          hosts: ['app.example'],
          environment,
          onError: () => undefined,
        },
      ],
    },
  },
  './openai-realtime': {
    createClientSecret: {
      args: () => [{}],
      refuses: 'there is no key, and nothing leaves this machine',
    },
    openaiRealtime: { args: () => [{ apiKey: 'sk-test', model: 'm', voice: 'marin' }] },
  },
  './openai-live': { openaiLive: { args: () => [{ apiKey: 'sk-test' }] } },
  './gemini-live': {
    createEphemeralToken: {
      args: () => [{ apiKey: 'test' }],
      refuses: 'nothing leaves this machine',
    },
    geminiLive: { args: () => [{ apiKey: 'test' }] },
  },
  './local-voice': {
    localVoice: {
      args: ({ environment }) => [
        {
          model: model(),
          environment,
          port: 0,
          speech: { voices: ['a'] },
          apiKey: 'key',
          allowedOrigins: [],
          maxConnections: 2,
        },
      ],
    },
  },
  './ai-sdk-speech': {
    aiSdkTranscriber: {
      args: () => [
        { specificationVersion: 'v4', provider: 'p', modelId: 'm', doGenerate: () => undefined },
        {},
      ],
    },
    aiSdkVoice: {
      args: () => [
        { specificationVersion: 'v4', provider: 'p', modelId: 'm', doGenerate: () => undefined },
        {},
      ],
    },
  },
  './a2a': {
    a2aRelay: { args: () => [{ url: 'http://127.0.0.1:1' }] },
  },
  './claude': {
    claudeRelay: { args: () => [{ query: () => undefined }] },
  },
  './acp': {
    acpAgent: {
      args: () => [
        { open: () => undefined, input: new PassThrough().end(), output: new PassThrough() },
      ],
    },
    acpRelay: { args: () => [{ command: 'no-such-agent' }] },
  },
  './mcp': {
    mcpRelay: { args: () => [{ url: 'http://127.0.0.1:1', tool: 'work' }] },
    mcpServer: {
      args: ({ environment }) => [
        {
          runtime: createRuntime({ environment, journal: memoryJournal() }),
          subagents: [{ config: { name: 'a', instructions: 'A' }, description: 'Does it' }],
        },
      ],
    },
  },
  './memory-file': {
    fileMemory: {
      args: ({ directory, number }) => [{ path: join(directory, `memory-${number}.jsonl`) }],
      walks: 'trusts',
    },
  },
  './cloudflare': {
    durableObjectJournal: {
      args: ({ environment }) => [{ storage: durableObject().storage, environment }],
      walks: 'trusts',
    },
    hostSession: {
      args: () => [durableObject(), { open: () => null, authorize: () => null }],
      refuses: 'Node.js has no sockets of Durable Objects',
    },
    workersEnvironment: { args: () => [] },
  },
  './encrypted-journal': {
    encryptedJournal: {
      args: () => [memoryJournal(), { key: new Uint8Array(32) }],
      walks: 'trusts',
    },
    encryptionCodec: { args: () => [{ key: new Uint8Array(32) }] },
  },
  './otel': {
    meteredJournal: { args: () => [memoryJournal(), {}], walks: 'trusts' },
    tracedHandler: { args: () => [{ do: () => ({ done: '' }) }, {}] },
    tracedJournal: { args: () => [memoryJournal(), {}], walks: 'trusts' },
  },
  './sqlite-journal': {
    sqliteJournal: {
      args: ({ directory, number, environment }) => [
        { path: join(directory, `journal-${number}.db`), environment },
      ],
      walks: 'trusts',
    },
  },
  './postgres-journal': {
    postgresJournal: {
      args: ({ environment }) => [
        {
          connection: { host: '127.0.0.1', port: 1 },
          environment,
          schema: 'offstage',
          leaseMs: 15_000,
          address: 'http://127.0.0.1:3000',
          release: 1,
          timeoutMs: 100,
        },
      ],
      isOutside: true,
      refuses: 'no server is there',
    },
  },
  './client': {
    connect: {
      // A port that never opens, so the client's timers do not run.
      args: ({ environment }) => [
        {
          url: 'ws://127.0.0.1:1/offstage',
          token: 'ann',
          session: 's1',
          transport: 'websocket',
          environment,
          onError: () => undefined,
        },
      ],
    },
    applySessionEvent: {
      args: () => [emptySessionState, { type: 'floor.changed', floor: 'user' }],
      trusts: 'both come from a session',
    },
  },
  './client/worklet.js': {
    PlaybackQueue: { args: () => [24_000], trusts: 'the audio thread makes it' },
    CaptureFramer: { args: () => [24_000], trusts: 'the audio thread makes it' },
  },
  './react': {
    useSession: { args: () => [null], trusts: 'React renders it' },
    useTranscript: { args: () => [null], trusts: 'React renders it' },
    useQuestions: { args: () => [null], trusts: 'React renders it' },
    useSubagents: { args: () => [null], trusts: 'React renders it' },
    useDeliveries: { args: () => [null], trusts: 'React renders it' },
    useMicrophone: { args: () => [null], trusts: 'React renders it' },
    useSpeaker: { args: () => [null], trusts: 'React renders it' },
    useServerTime: { args: () => [null], trusts: 'React renders it' },
    useTranscriptNotes: { args: () => [null], trusts: 'React renders it' },
    useTalkKeys: { args: () => [null], trusts: 'React renders it' },
    QuestionCard: { args: () => [null], trusts: 'React renders it' },
    QuestionList: { args: () => [null], trusts: 'React renders it' },
    DeliveryList: { args: () => [null], trusts: 'React renders it' },
    Alerts: { args: () => [null], trusts: 'React renders it' },
    ConnectionStatus: { args: () => [null], trusts: 'React renders it' },
    MessageField: { args: () => [null], trusts: 'React renders it' },
    TalkButton: { args: () => [null], trusts: 'React renders it' },
    TalkHint: { args: () => [null], trusts: 'React renders it' },
    TalkModes: { args: () => [null], trusts: 'React renders it' },
    SubagentList: { args: () => [null], trusts: 'React renders it' },
    Transcript: { args: () => [null], trusts: 'React renders it' },
  },
  './ai-sdk-ui': {
    chatHandler: {
      args: () => [
        { authorize: () => null, maxBodyBytes: 1000, maxChats: 2, onError: () => undefined },
      ],
    },
    chatTransport: {
      // The part of a client that the function uses.
      args: () => [
        {
          store: { getSnapshot: () => ({ context: emptySessionState }), subscribe: nothing },
          status: { get: () => ({ state: 'open' }), subscribe: nothing },
          send: async () => {},
          answer: async () => ({ accepted: true }),
          shown: async () => {},
          questionShown: async () => {},
        },
        { shownBy: 'chat' },
      ],
    },
  },
  './serve': {
    serve: {
      args: ({ environment }) => [
        {
          session: () => null,
          authorize: () => null,
          path: '/offstage',
          origins: ['https://app.example'],
          hosts: ['app.example'],
          locate: () => null,
          share: ['tool.called'],
          limits: { clients: 10 },
          environment,
          onError: () => undefined,
        },
      ],
    },
    serveLocally: {
      args: ({ environment, directory }) => [
        {
          session: new TextSession({
            model: scriptedModel([]),
            agents: [{ name: 'lead', instructions: 'You lead.' }],
          }),
          page: () => () => undefined,
          routes: { 'POST /order': () => null },
          port: 0,
          user: 'ann',
          tokenFile: join(directory, 'token'),
          path: '/offstage',
          share: ['tool.called'],
          limits: { clients: 10 },
          environment,
          onError: () => undefined,
        },
      ],
      walks: true,
    },
    answerLinks: {
      args: () => [
        {
          secret: 'a secret of thirty-two bytes, all',
          url: 'https://app.example/answer',
          person: () => 'ann',
          trust: 'identity',
          expiresAfterMs: 1000,
        },
      ],
    },
  },
  './sms': {
    smsChannel: {
      args: () => [
        {
          client: { messages: { create: () => Promise.resolve({}) } },
          from: '+15557122661',
          to: '+15558675310',
          write: () => 'a',
          maxChars: 100,
          receipts: {
            url: 'https://app.example/sms',
            authToken: 'a token',
            validateRequest: () => true,
          },
          timeoutMs: 1000,
        },
      ],
    },
  },
  './slack': {
    slackChannel: {
      args: () => [
        {
          client: { chat: { postMessage: () => Promise.resolve({}) } },
          channel: 'U1',
          write: () => 'a',
          timeoutMs: 1000,
        },
      ],
    },
  },
  './web-push': {
    webPushChannel: {
      args: () => [
        {
          webPush: { sendNotification: () => Promise.resolve({}) },
          vapid: { subject: 'mailto:a@example.com', publicKey: 'a', privateKey: 'b' },
          subscriptions: () => [],
          gone: () => undefined,
          ttlSeconds: 60,
          timeoutMs: 1000,
        },
      ],
    },
  },
  './email': {
    emailChannel: {
      args: () => [
        {
          transport: { sendMail: () => Promise.resolve() },
          from: 'a@example.com',
          to: 'b@example.com',
          write: () => ({ subject: 'a', text: 'b' }),
          timeoutMs: 1000,
        },
      ],
    },
  },
  './webhook': {
    webhookChannel: {
      args: ({ environment }) => [
        {
          url: 'https://example.com/w',
          secret: 'a secret of sixteen bytes',
          environment,
          timeoutMs: 1000,
        },
      ],
    },
    webhookSource: {
      args: () => [
        {
          name: 'w',
          path: '/w',
          secret: 'a secret of sixteen bytes',
          maxBytes: 100,
          rate: { burst: 1, perSecond: 1 },
          maxConcurrent: 1,
        },
      ],
    },
  },
  './twilio': {
    acceptTwilioCall: {
      args: ({ environment }) => [
        { on: () => undefined, send: () => undefined, close: () => undefined },
        { environment, startTimeoutMs: 10 },
      ],
      refuses: 'nobody calls',
    },
    isTwilioRequest: {
      args: () => ['token', { signature: 'a', url: 'https://example.com/', params: {} }],
    },
    streamTwiml: { args: () => ['wss://example.com/call', { a: 'b' }] },
    twilioCalls: {
      args: ({ environment }) => [
        {
          authToken: 'a',
          url: 'wss://example.com/call',
          environment,
          onCall: () => undefined,
          maxCalls: 1,
        },
      ],
      walks: 'trusts',
    },
  },
  './doctor': {
    examine: {
      args: () => [
        {
          nodeVersion: '24.0.0',
          variables: {},
          installed: () => '1.0.0',
          range: () => null,
          voiceFolder: () => null,
        },
        ['local-voice'],
      ],
    },
    thisMachine: { args: () => [] },
  },
  './node': {
    fileClaims: { args: ({ directory }) => [{ directory }], walks: 'trusts' },
    nodeEnvironment: { args: () => [] },
  },
};

export interface Callable extends Row {
  /** For example `offstage/voice#encodeWav`. */
  readonly name: string;
  readonly call: (...args: readonly unknown[]) => unknown;
}

/** Returns all callable exports with their rows, the exports without a row, and the rows without an export. */
export async function publicSurface(): Promise<{
  readonly callables: readonly Callable[];
  readonly unknown: readonly string[];
}> {
  const root = new URL('../../', import.meta.url);
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    exports: Record<string, string | { default: string }>;
  };
  const callables: Callable[] = [];
  const unknown: string[] = [];
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (typeof target === 'string') continue;
    const source = target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts');
    const module = (await import(new URL(source, root).href)) as Record<string, unknown>;
    const left = new Map(Object.entries(rows[subpath] ?? {}));
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function') continue;
      const row = left.get(name);
      left.delete(name);
      const whole = `offstage${subpath.slice(1)}#${name}`;
      if (!row) unknown.push(`${whole} has no row`);
      else callables.push({ ...row, name: whole, call: callerOf(value) });
    }
    for (const name of left.keys())
      unknown.push(`offstage${subpath.slice(1)}#${name} is not exported`);
  }
  return { callables, unknown };
}

function callerOf(value: object): Callable['call'] {
  const isClass = /^class\b/.test(Function.prototype.toString.call(value));
  return isClass
    ? (...args) => Reflect.construct(value as new (...given: unknown[]) => unknown, args)
    : (...args) => Reflect.apply(value as (...given: unknown[]) => unknown, undefined, args);
}

export function newEnvironment(seed: number): SimulatedEnvironment {
  return simulatedEnvironment({ seed });
}
