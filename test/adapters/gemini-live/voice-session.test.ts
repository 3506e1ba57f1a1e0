// Whole conversations on the fake Gemini server: session, transport and wire together.

import { describe, expect, onTestFinished, test } from 'vitest';
import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import type { SessionEvent } from '../../../src/index.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import {
  createVoiceServer,
  type UserSpeech,
  type VoiceResponder,
} from '../../../src/testing/voice-server/index.ts';
import { frameDurationMs } from '../../../src/voice/audio/audio-frame.ts';
import { agentsOf, castOf, configsOf, type TalkOptions } from '../../support/text-talk.ts';
import { API_KEY } from './support/call.ts';

interface Scene extends Pick<TalkOptions, 'subagents' | 'greeting'> {
  readonly model: string;
  readonly respond?: VoiceResponder;
  /** The server also reports where speech starts and ends. */
  readonly voiceActivity?: boolean;
}

/** A model that calls the tools that the user names, and otherwise says the requested message. */
const obedient: VoiceResponder = ({ cause, model }) => {
  if (cause.type === 'utterance') {
    const wanted = /^use (\w+)$/.exec(cause.text)?.[1];
    return wanted === undefined ? [{ say: `You said: ${cause.text}` }] : [{ call: wanted }];
  }
  if (cause.type === 'message') {
    const spoke = model.items.findLastIndex(({ kind }) => kind !== 'message');
    const texts = model.items
      .slice(spoke + 1)
      .flatMap((item) => (item.kind === 'message' && item.role === 'user' ? [item.text] : []));
    // The model has already read the notes that the request names.
    const marks = cause.text.match(/(?<=\bnote )[\w-]+/g) ?? [];
    const told = texts.filter((text) => marks.some((mark) => text.includes(` ${mark}]`)));
    return [{ say: `Told: ${[...new Set([...told, cause.text])].join('\n')}` }];
  }
  if (cause.type === 'result') return [{ say: `Result: ${JSON.stringify(cause.output)}` }];
  return [];
};

async function start({ model, respond = obedient, voiceActivity = false, ...talk }: Scene) {
  const environment = simulatedEnvironment();
  const server = createVoiceServer({ environment, respond, voiceActivity });
  const errors: unknown[] = [];
  const session = new VoiceSession({
    environment,
    transport: geminiLive({
      apiKey: API_KEY,
      model,
      webSocket: server.webSocket,
      keepAliveMs: null,
    }),
    model: castOf(talk),
    agents: agentsOf(talk),
    subagentConfigs: configsOf(talk),
    // A model may take a minute to say everything that it reads, so no reminder for the user may arrive within that
    // minute.
    voice: { nudgeAfterMs: null },
    hooks: { onError: (error) => errors.push(error) },
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  // A loudspeaker that plays audio as soon as it arrives.
  const playedMs = new Map<string, number>();
  session.audioOut.subscribe((frame) => {
    const { itemId = '' } = frame;
    const played = (playedMs.get(itemId) ?? 0) + frameDurationMs(frame);
    playedMs.set(itemId, played);
    session.playout.next({ itemId, playedMs: played });
  });
  session.attach();
  const started = session.start();
  await environment.advance(1_000);
  await started;
  onTestFinished(async () => {
    const closed = session.close();
    await environment.advance(60_000);
    await closed;
    await server.close();
  });
  /** Lets time pass with an open microphone. */
  const pass = async (ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 100) {
      session.audioIn.next({ samples: new Int16Array(1_600), sampleRateHz: 16_000 });
      await environment.advance(Math.min(100, leftMs));
    }
  };
  const latest = () => {
    const connection = server.connections.at(-1);
    if (connection === undefined) throw new Error('No connection');
    return connection;
  };
  return {
    pass,
    server,
    events,
    errors,
    latest,
    state: () => session.store.getSnapshot().context,
    /** Returns the messages that were spoken to the end, in order. */
    said: () =>
      server.connections.flatMap(({ replies }) =>
        replies
          .filter(({ text, status }) => text !== '' && status === 'completed')
          .map(({ text }) => text),
      ),
    async say(text: string, speech: UserSpeech = {}) {
      const said = latest().user.says(text, { durationMs: 1_000, ...speech });
      await pass(1_000);
      await said;
      await environment.settle();
    },
  };
}

const report = (pending: string | null, delayMs = 0) => ({
  report: { script: () => ({ text: 'Sales are up.', delayMs }), pending },
});

/** Asks the user for the class. */
const ride: TalkOptions['subagents'] = {
  ride: {
    pending: null,
    config: { interactive: true },
    script: ({ results }) =>
      results.length === 0
        ? { calls: [{ name: 'ask_user', input: { question: 'Economy or Premium?' } }] }
        : { text: `Booked: ${JSON.stringify(results[0])}` },
  },
};

const MODELS = [
  'gemini-2.5-flash-native-audio-latest',
  'gemini-3.1-flash-live-preview',
  'gemini-3.8-live',
  'gemini-3.8-live-extended-thinking',
];

describe.each(MODELS)('%s', (model) => {
  test("produces one reply to the user's utterance", async () => {
    const scene = await start({ model });
    await scene.say('Hello there.');
    await scene.pass(20_000);
    expect(scene.said()).toEqual(['You said: Hello there.']);
    expect(scene.errors).toEqual([]);
    const turns = scene.events.flatMap((event) =>
      event.type === 'transcript.changed' && event.item.final ? [event.item.text] : [],
    );
    expect(turns).toEqual(expect.arrayContaining(['Hello there.', 'You said: Hello there.']));
  });

  test.each<UserSpeech['transcript']>(['early', 'duplicated', { lateMs: 300 }, { lateMs: 900 }])(
    'answers once, whenever the words come: %j',
    async (transcript) => {
      for (const voiceActivity of [true, false]) {
        const scene = await start({ model, voiceActivity });
        await scene.say('Hello there.', { transcript });
        await scene.pass(20_000);
        expect(scene.said()).toEqual(['You said: Hello there.']);
        const words = scene.events.flatMap((event) =>
          event.type === 'transcript.changed' && event.item.role === 'user' && event.item.final
            ? [event.item.text]
            : [],
        );
        expect(words).toHaveLength(1);
        expect(words[0]).toMatch(/^Hello there\./);
      }
    },
  );

  test('P2, P3: asks the user a question, and passes the answer only to the subagent', async () => {
    const scene = await start({ model, subagents: ride });
    await scene.say('use ride');
    // This model says everything that it reads, which takes time.
    await scene.pass(60_000);
    expect(scene.said().filter((text) => text.includes('Economy or Premium?'))).toHaveLength(1);
    await scene.say('Economy');
    await scene.pass(60_000);
    expect(scene.state().questions.at(-1)).toMatchObject({ state: 'answered' });
    expect(scene.said().filter((text) => text.includes('Booked'))).toHaveLength(1);
    const result = scene.state().deliveries.find(({ kind }) => kind === 'result');
    expect(result).toMatchObject({ state: 'delivered', grade: 'played' });
    expect(scene.errors).toEqual([]);
  });

  test('sends a request only once, even if a late reply to an earlier utterance arrives first', async () => {
    const respond: VoiceResponder = (turn) => {
      const { cause } = turn;
      const isAnswer = cause.type === 'utterance' && cause.text === 'Economy';
      return isAnswer ? [{ waitMs: 2_500 }, { say: 'Economy.' }] : obedient(turn);
    };
    const scene = await start({ model, respond, subagents: ride });
    await scene.say('use ride');
    await scene.pass(60_000);
    await scene.say('Economy');
    await scene.pass(60_000);
    expect(scene.said().filter((text) => text.includes('Booked'))).toHaveLength(1);
    const result = scene.state().deliveries.find(({ kind }) => kind === 'result');
    expect(result).toMatchObject({ state: 'delivered', grade: 'played' });
    expect(scene.errors).toEqual([]);
  });

  test('greets the user when the session starts', async () => {
    const scene = await start({ model, greeting: 'Welcome the user.' });
    // The model says the whole request word for word.
    await scene.pass(20_000);
    expect(scene.said()).toHaveLength(1);
    expect(scene.errors).toEqual([]);
  });

  test.each([null, 'I am on it.'])(
    'P4: delivers a result once (with a pending message: %s)',
    async (pending) => {
      const scene = await start({ model, subagents: report(pending) });
      await scene.say('use report');
      await scene.pass(60_000);
      expect(scene.errors).toEqual([]);
      const result = scene.state().deliveries.find(({ kind }) => kind === 'result');
      expect(result).toMatchObject({ state: 'delivered', grade: 'played' });
      const told = scene.said().filter((text) => text.includes('Sales are up.'));
      expect(told).toHaveLength(1);
      expect(scene.latest().openCalls).toEqual([]);
    },
  );

  test('P4: delivers a result again after an interruption', async () => {
    const scene = await start({ model, subagents: report('I am on it.') });
    await scene.say('use report');
    for (let step = 0; step < 600 && !scene.latest().reply?.text.includes('Sales'); step += 1) {
      await scene.pass(100);
    }
    expect(scene.latest().reply?.text).toContain('Sales');
    await scene.say('Wait a moment.');
    await scene.pass(60_000);
    expect(scene.errors).toEqual([]);
    const told = scene.said().filter((text) => text.includes('Sales are up.'));
    expect(told).toHaveLength(1);
    const result = scene.state().deliveries.find(({ kind }) => kind === 'result');
    expect(result).toMatchObject({ state: 'delivered', grade: 'played' });
  });

  test('restores the conversation after its connection is lost', async () => {
    const scene = await start({ model });
    await scene.say('My name is Ada.');
    await scene.pass(20_000);
    scene.latest().faults.drop();
    await scene.pass(10_000);
    expect(scene.server.connections).toHaveLength(2);
    expect(JSON.stringify(scene.latest().items)).toContain('My name is Ada.');
    await scene.say('Hello again.');
    await scene.pass(20_000);
    expect(scene.said()).toHaveLength(2);
  });

  test('reconnects before the server shuts down, and does not repeat any text', async () => {
    const scene = await start({ model });
    await scene.say('My name is Ada.');
    await scene.pass(20_000);
    scene.latest().faults.goAway(30_000);
    await scene.pass(40_000);
    expect(scene.server.connections).toHaveLength(2);
    expect(scene.server.connections.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    expect(JSON.stringify(scene.latest().items)).toContain('My name is Ada.');
    expect(scene.said()).toHaveLength(1);
    expect(scene.errors).toEqual([]);
  });
});
