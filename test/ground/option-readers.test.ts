// Checks that the code uses each option of the public API instead of only validating it.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { scanOptions } from './option-readers.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** The types or functions into which the values of an options type are spread (OPT-2). */
const spreadInto: Readonly<Record<string, readonly string[]>> = {
  AgentSubagentConfig: ['SubagentConfig'],
  DialOptions: ['dialOptionsShape'],
  'GeminiLiveOptions.transcription': ['SessionSettings.transcription'],
  HearingOptions: ['InputAudioOptions'],
  ListenOptions: ['listen'],
  OpenaiLiveOptions: ['SessionSettings', 'OpenaiLiveSettings'],
  'OpenaiLiveOptions.turns': ['TurnTimes'],
  OpenaiRealtimeOptions: ['SessionSettings'],
  McpServerOptions: ['Reachable'],
  SessionHostOptions: ['Reachable'],
  SubAgentConfig: ['SubagentConfig'],
  SubagentConfig: ['SubagentDefinition'],
  TextSessionOptions: ['CoreOptions'],
  TwilioCallOptions: ['OutgoingSoundOptions'],
  VoiceOptions: [
    'ConnectionManagerOptions', 'ListeningOptions', 'OutboxInput', 'ResponsesOptions', 'SilenceInput', 'TurnsOptions', 'VoiceLeadOptions',
  ], // prettier-ignore
  WebhookSourceOptions: ['CheckedOptions'],
  'WebhookSourceOptions.listen': ['ListenerOptions'],
};

/** Options that the code passes on unchanged, listed by the type or function that reads them. */
const readElsewhere: Readonly<Record<string, readonly string[]>> = {
  'the session, in the record of a schedule': ['ScheduleOptions.key'],
  'the AI SDK, in `transcribe`': [
    'AiSdkTranscriberOptions.headers',
    'AiSdkTranscriberOptions.maxRetries',
    'AiSdkTranscriberOptions.providerOptions',
  ],
  'the AI SDK, in `generateSpeech`': [
    'AiSdkVoiceOptions.headers',
    'AiSdkVoiceOptions.instructions',
    'AiSdkVoiceOptions.language',
    'AiSdkVoiceOptions.maxRetries',
    'AiSdkVoiceOptions.providerOptions',
    'AiSdkVoiceOptions.voice',
  ],
  'Node, in `createServer` of `node:https`': [
    'ListenOptions.tls.cert',
    'ListenOptions.tls.key',
    'LocalVoiceOptions.tls.cert',
    'LocalVoiceOptions.tls.key',
  ],
  'OpenAI, in the configuration of a session': [
    'OpenaiLiveOptions.voice.id',
    'OpenaiRealtimeOptions.transcription.language',
    'OpenaiRealtimeOptions.transcription.prompt',
  ],
  'the app, which has the agent': ['AcpAgent.close', 'AcpAgent.closed'],
  'the app, in `open`': ['AcpSessionRequest.cwd', 'AcpSessionRequest.traceparent'],
  'the app, in `authorize`': [
    'AuthorizeRequest.headers',
    'AuthorizeRequest.sessionId',
    'AuthorizeRequest.transport',
    'AuthorizeRequest.url',
    'McpAuthorizeRequest.headers',
    'McpAuthorizeRequest.token',
  ],
  'the handlers of a program, which are given it': [
    'ProgramRequest.subagentId',
    'ProgramRequest.subagentName',
  ],
  'the packages of Slack, Twilio and web push, whose client or keys a channel is given': [
    'SlackOptions.client.chat.postMessage',
    'SmsOptions.client.messages.create',
    'WebPushOptions.vapid.privateKey',
    'WebPushOptions.vapid.publicKey',
    'WebPushOptions.vapid.subject',
  ],
  'the package `ws`, in `new WebSocket`': [
    'WebSocketOptions.maxPayload',
    'WebSocketOptions.perMessageDeflate',
  ],
};

test('reads every option of the public API', () => {
  const { looked, unread, needless } = scanOptions(project, spreadInto);
  expect(unread).toEqual(Object.values(readElsewhere).flat().toSorted());
  expect(needless).toEqual([]);
  expect([...looked.keys()]).toEqual(
    expect.arrayContaining([
      'SessionOptions', 'TextSessionOptions', 'VoiceSessionOptions', 'VoiceOptions', 'LeadAgent', 'ToolDefinition',
      'SubagentConfig', 'SessionLimits', 'SessionHooks', 'RuntimeOptions', 'LeadToolsOptions', 'ThinkingSoundOptions',
      'RockbotToolsetOptions', 'ServiceSubagentConfig', 'SessionPoolOptions', 'OpenaiRealtimeOptions', 'GeminiLiveOptions',
      'SqliteJournalOptions', 'ScriptedModelOptions', 'SimulateOptions', 'NoticeOptions', 'WebhookSourceOptions.listen',
    ]), // prettier-ignore
  );
});

test('names an option that is checked, but never read', () => {
  const directory = mkdtempSync(join(tmpdir(), 'offstage-options-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'));
  for (const [path, content] of Object.entries(planted)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  const { looked, unread, needless } = scanOptions(directory, {
    KettleOptions: ['Boiler', 'Whistle'],
  });
  expect(looked.get('KettleOptions')).toEqual([
    'read', 'destructured', 'parsed', 'spread', 'nested', 'checkedOnly', 'writtenOnly',
  ]); // prettier-ignore
  expect(unread).toEqual([
    'KettleOptions.checkedOnly',
    'KettleOptions.nested.deep',
    'KettleOptions.writtenOnly',
  ]);
  expect(needless).toEqual(['KettleOptions → Whistle']);
});

const planted = {
  'package.json': JSON.stringify({
    type: 'module',
    exports: { '.': { default: './dist/index.js' }, './package.json': './package.json' },
  }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: { module: 'nodenext', strict: true, noEmit: true, types: [] },
    include: ['src'],
  }),
  'src/index.ts': `
    import { z } from 'zod';
    export interface KettleOptions {
      read: number; destructured?: number; parsed?: number; spread?: number;
      nested?: { deep?: number }; checkedOnly?: number; writtenOnly?: number;
    }
    interface Boiler { spread?: number }
    interface Whistle { checkedOnly?: number }
    type Checks = { [Option in keyof Required<KettleOptions>]: z.ZodType };
    const number = z.number().optional();
    const checks = {
      read: number, destructured: number, spread: number, parsed: number, nested: z.object({ deep: number }),
      checkedOnly: number, writtenOnly: number,
    } satisfies Checks;
    const schema = z.strictObject({ parsed: number, deep: number });
    export function kettle(options: KettleOptions): unknown {
      const { destructured } = options;
      options.writtenOnly = 1;
      const boiler: Boiler = { ...options };
      const whistle: Whistle = options;
      const parsed = schema.parse(options);
      return [checks, options.read, destructured, boiler.spread, parsed.parsed, options.nested, whistle];
    }
  `,
};
