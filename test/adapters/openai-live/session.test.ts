// A whole voice session on the wire with the fake server: the model delegates, the session interprets the delegation,
// subagents do the work, and the user hears their results.

import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { openaiLive, type OpenaiLiveOptions } from '../../../src/adapters/openai-live/index.ts';
import { type SessionEvent, defineTool } from '../../../src/index.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import {
  createVoiceServer,
  type FakeVoiceModel,
  type VoiceResponder,
} from '../../../src/testing/voice-server/index.ts';
import type { TransportEvent } from '../../../src/voice/connection/transport.ts';
import { calls, say, steps } from '../../support/subagent-runs.ts';
import { LEAD, castOf, configsOf, type ScriptedSubagent } from '../../support/text-talk.ts';
/** A model that delegates everything and says the requested messages. */
const delegating: VoiceResponder = ({ cause }) => {
  switch (cause.type) {
    case 'utterance':
      return [{ delegate: true }];
    case 'result':
      return [{ say: wanted(String(cause.output)), durationMs: 2000 }];
    case 'message':
      return [{ say: wanted(cause.text), durationMs: 2000 }];
    case 'nothing':
      return [];
  }
};

/** Returns the requested message without its instructions. */
function wanted(text: string): string {
  return /It was: (.*)/.exec(text)?.[1] ?? text;
}

async function talk({
  subagent,
  options = {},
  respond = delegating,
}: {
  readonly subagent: ScriptedSubagent;
  readonly options?: OpenaiLiveOptions;
  readonly respond?: VoiceResponder;
}) {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, respond });
  const transport = openaiLive({
    apiKey: 'sk-test-0123456789',
    webSocket: server.webSocket,
    keepAliveMs: null,
    ...options,
  });
  const subagents = { report: subagent };
  const errors: unknown[] = [];
  const session = new VoiceSession({
    environment,
    transport,
    model: castOf({ subagents }),
    delegationModel: scriptedModel({
      scripts: [{ when: '', script: () => calls(['report', { task: 'sales' }]) }],
    }),
    agents: [
      {
        name: 'lead',
        instructions: LEAD,
        tools: [
          defineTool({
            name: 'report',
            description: 'Makes a report',
            parameters: z.object({ task: z.string() }),
            execution: 'background',
          }),
        ],
      },
    ],
    subagentConfigs: configsOf({ subagents }),
    hooks: { onError: (error) => void errors.push(error) },
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  // A loudspeaker that plays audio as soon as it arrives.
  const played = new Map<string, number>();
  session.audioOut.subscribe(({ itemId = '', samples, sampleRateHz }) => {
    played.set(itemId, (played.get(itemId) ?? 0) + (samples.length * 1000) / sampleRateHz);
    session.playout.next({ itemId, playedMs: played.get(itemId) ?? 0 });
  });
  session.attach();
  const started = session.start();
  await environment.settle();
  await started;
  onTestFinished(async () => {
    const closed = session.close();
    await environment.advance(60_000);
    await closed;
    await server.close();
  });
  const model = (): FakeVoiceModel => {
    const connection = server.connections.at(-1);
    if (!connection) throw new Error('Nobody was called');
    return connection;
  };
  return {
    environment,
    server,
    session,
    events,
    errors,
    model,
    state: () => session.store.getSnapshot().context,
    /** Speaks as the user, and waits for what follows. */
    async say(text: string, thenMs = 10_000) {
      void model().user.says(text);
      await environment.advance(thenMs);
    },
    spoken: () => model().replies.map(({ text }) => text),
  };
}

describe('a session over OpenAI Live', () => {
  test('executes a delegation, and delivers its result', async () => {
    const call = await talk({ subagent: { script: () => say('Sales are up.') } });
    await call.say('How are sales this week?', 30_000);
    expect(call.state().subagents).toMatchObject([{ toolName: 'report', state: 'completed' }]);
    expect(call.state().deliveries).toMatchObject([{ kind: 'result', state: 'delivered' }]);
    expect(call.spoken().filter((text) => text.includes('Sales are up.'))).toHaveLength(1);
    expect(call.model().items.map(({ kind }) => kind)).not.toContain('call');
    expect(call.errors).toEqual([]);
  });

  test("asks a subagent's question, and passes the answer only to the subagent", async () => {
    const options = [
      { id: 'short', label: 'Short' },
      { id: 'long', label: 'Long' },
    ];
    const call = await talk({
      subagent: {
        script: steps(calls(['ask_user', { question: 'Short or long?', options }]), ({ results }) =>
          say(`It is ${JSON.stringify(results[0])}`),
        ),
        config: { interactive: true },
      },
    });
    await call.say('A report, please.', 15_000);
    expect(call.spoken().at(-1)).toContain('Short or long?');
    expect(call.state().questions).toMatchObject([{ state: 'open' }]);
    await call.say('Long.', 30_000);
    expect(call.state().questions).toMatchObject([{ state: 'answered' }]);
    expect(call.state().subagents).toMatchObject([{ state: 'completed' }]);
    expect(call.state().deliveries.at(-1)).toMatchObject({ kind: 'result', state: 'delivered' });
  });

  test("reconnects after a lost connection without losing the model's conversation", async () => {
    const call = await talk({ subagent: { script: () => say('Sales are up.') } });
    await call.say('How are sales this week?', 30_000);
    call.model().faults.drop();
    await call.environment.advance(10_000);
    expect(call.server.connections).toHaveLength(2);
    const texts = call.model().items.map((item) => (item.kind === 'message' ? item.text : ''));
    expect(texts.join('\n')).toContain('How are sales this week?');
    expect(call.spoken()).toEqual([]);
  });

  test('continues a stored session without repeating its history', async () => {
    const call = await talk({
      subagent: { script: () => say('Sales are up.') },
      options: { store: true },
    });
    await call.say('How are sales this week?', 30_000);
    call.model().faults.drop();
    await call.environment.advance(10_000);
    expect(call.model().url.pathname).toMatch(/\/fork$/);
    const words = call.model().items.map((item) => (item.kind === 'message' ? item.text : ''));
    expect(words.filter((text) => text === 'How are sales this week?')).toHaveLength(1);
    expect(call.model().received.map(({ type }) => type)).toEqual(['session.start']);
  });

  test('cuts the transcript at an interruption, and notifies the model', async () => {
    const call = await talk({
      subagent: { script: () => say('Sales are up.') },
      respond: () => [],
    });
    call.model().answers({ say: 'Once upon a time there was a very long story.' });
    await call.environment.advance(1000);
    void call.model().user.says('Stop, please.');
    await call.environment.advance(10_000);
    expect(call.events.map(({ type }) => type)).toContain('playout.clear');
    const { transcript } = call.state();
    const story = transcript.find(({ role }) => role === 'assistant');
    expect(story).toMatchObject({ interrupted: true });
    expect(story?.text.length).toBeLessThan(30);
    const told = call.model().items.filter((item) => item.kind === 'message');
    expect(told.map(({ via }) => via)).toContain('session.thinking.append');
  });
});

test('resumes a stored session as a fork, and starts a new one if it no longer exists', async () => {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, respond: () => [] });
  const { webSocket } = server;
  const transport = openaiLive({ apiKey: 'sk-test', webSocket, keepAliveMs: null, store: true });
  const connect = async (resume?: unknown) => {
    const events: TransportEvent[] = [];
    const configuration = { instructions: 'Be brief.', tools: [] };
    const connection = transport.connect(configuration, { environment, resume });
    connection.events.subscribe((event) => events.push(event));
    await environment.advance(5000);
    const close = async () => {
      const closed = connection.close();
      await environment.advance(5000);
      await closed;
    };
    return { connection, events, close };
  };
  const first = await connect();
  first.connection.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'It rains.' });
  await first.close();
  expect(server.connections[0]?.received.at(-1)?.type).toBe('session.close');
  const resume = first.events.find((event) => event.type === 'transport.resumable')?.resume;
  const second = await connect(resume);
  expect(second.events[0]).toEqual({ type: 'transport.ready', resumed: true });
  expect(server.connections[1]?.url.pathname).toMatch(/\/fork$/);
  expect(JSON.stringify(server.connections[1]?.items)).toContain('It rains.');
  server.connections[1]?.faults.forgetSessions();
  await second.close();
  const third = await connect(resume);
  expect(third.events.map(({ type }) => type)).toEqual([
    'transport.error',
    'transport.ready',
    'transport.resumable',
  ]);
  await third.close();
  await server.close();
});
