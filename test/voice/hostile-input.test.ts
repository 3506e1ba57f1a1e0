// Input that a client or a provider must not send is dropped, reported and counted. Nothing throws, and valid input
// still works afterwards.

import { describe, expect, test } from 'vitest';
import { FakeTransport, BY_ITSELF } from '../support/fake-transport.ts';
import { ConfigurationError } from '../../src/values/errors.ts';
import { VoiceSession, withVoice } from '../../src/voice-session.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { LiveConversation } from '../../src/actors/session/state/live-conversation.ts';

function detached(): Int16Array {
  const samples = new Int16Array(480);
  structuredClone(samples.buffer, { transfer: [samples.buffer] });
  return samples;
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const thrower = Object.defineProperty({}, 'samples', {
  get() {
    throw new Error('no');
  },
});

const frames: readonly [name: string, frame: () => unknown][] = [
  ['nothing', () => undefined],
  ['null', () => null],
  ['a number', () => 7],
  ['an array', () => ({ samples: [1, 2], sampleRateHz: 24_000 })],
  ['bytes', () => ({ samples: new Uint8Array(4), sampleRateHz: 24_000 })],
  ['a detached buffer', () => ({ samples: detached(), sampleRateHz: 24_000 })],
  ['a detached buffer of another rate', () => ({ samples: detached(), sampleRateHz: 48_000 })],
  ['a rate that is none', () => ({ samples: new Int16Array(480), sampleRateHz: Number.NaN })],
  ['no rate', () => ({ samples: new Int16Array(480) })],
  ['a revoked proxy', () => revoked()],
  ['a getter that throws', () => thrower],
];

describe('audioIn', () => {
  test.each(frames)('drops and reports %s and then accepts the next frame', async (_, frame) => {
    const talk = voiceTalk();
    await talk.start();
    const { audioIn } = talk.session;
    const good = { samples: new Int16Array(960).fill(9), sampleRateHz: 48_000 };
    audioIn.next(good);
    expect(() => audioIn.next(frame() as never)).not.toThrow();
    expect(talk.errors).toMatchObject([{ where: 'audioIn', error: { code: 'INVALID_AUDIO' } }]);
    const before = talk.model().heard.length;
    audioIn.next(good);
    audioIn.next({ samples: new Int16Array(960).fill(9), sampleRateHz: 24_000 });
    expect(talk.model().heard.length).toBeGreaterThan(before);
    await talk.close();
  });

  test.each([
    ['a Buffer', Buffer.alloc(640), 'got Buffer(640). If it is 16-bit PCM: decodePcm16(bytes)'],
    [
      'floats',
      { samples: new Float32Array(480), sampleRateHz: 16_000 },
      'got Float32Array(480). Samples from -1 to 1',
    ],
    ['base64', 'AAAA', 'got "AAAA". If it is 16-bit PCM in base64: decodePcm16Base64(text)'],
    ['kHz', { samples: new Int16Array(480), sampleRateHz: 16 }, 'from 8000 to 48000, got 16'],
  ])('reports a different mistake after the first: %s', async (_, frame, told) => {
    const talk = voiceTalk();
    await talk.start();
    talk.session.audioIn.next(null as never);
    talk.session.audioIn.next(frame as never);
    expect(talk.errors.map(({ error }) => (error as Error).message)).toEqual([
      expect.stringContaining('Expected a frame { samples, sampleRateHz }, got null'),
      expect.stringContaining(told),
    ]);
    await talk.close();
  });

  test('reports a repeated error at increasing intervals, with a count', async () => {
    const talk = voiceTalk();
    await talk.start();
    for (let n = 0; n < 1000; n += 1) talk.session.audioIn.next(null as never);
    expect(talk.errors.map(({ error }) => (error as Error).message.match(/\d+ were/)?.[0])).toEqual(
      [undefined, '10 were', '100 were', '1000 were'],
    );
  });

  test('survives a buffered frame whose memory has been detached', async () => {
    const transport = new FakeTransport();
    const talk = voiceTalk({ transport });
    await talk.start();
    transport.autoReady = false;
    talk.model().drop();
    await talk.environment.settle();
    const samples = new Int16Array(480);
    talk.session.audioIn.next({ samples, sampleRateHz: 24_000 });
    structuredClone(samples.buffer, { transfer: [samples.buffer] });
    transport.autoReady = true;
    await talk.environment.advance(3000);
    expect(talk.state().connection).toBe('active');
  });

  test('ignores error() and complete() from the app', async () => {
    const talk = voiceTalk();
    await talk.start();
    const { audioIn, playout } = talk.session;
    for (const observer of [audioIn, playout]) {
      expect(() => observer.error('mine')).not.toThrow();
      expect(() => observer.complete()).not.toThrow();
    }
    audioIn.next({ samples: new Int16Array(480), sampleRateHz: 24_000 });
    expect(talk.model().heard).toHaveLength(1);
  });
});

describe('playout', () => {
  test.each<[name: string, report: () => unknown]>([
    ['nothing', () => undefined],
    ['null', () => null],
    ['a string', () => 'item_1'],
    ['an empty object', () => ({})],
    ['a number for an id', () => ({ itemId: 1, playedMs: 1 })],
    ['a time that is none', () => ({ itemId: 'item_1', playedMs: Number.NaN })],
    ['a time in words', () => ({ itemId: 'item_1', playedMs: '7' })],
    ['a revoked proxy', revoked],
  ])('drops and reports %s, and counts playout all the same', async (_, report) => {
    const talk = voiceTalk();
    await talk.start();
    talk.session.notifyBackground('News.');
    await talk.pause();
    const itemId = talk.model().speak('News.');
    expect(() => talk.session.playout.next(report() as never)).not.toThrow();
    expect(talk.errors).toMatchObject([
      { where: 'playout', error: { code: 'INVALID_PLAYOUT_REPORT' } },
    ]);
    await talk.play(itemId);
    expect(talk.state().deliveries[0]?.state).toBe('delivered');
  });
});

function throwsNoHost(): never {
  throw new Error('no such host');
}

describe('a transport', () => {
  test.each<[name: string, connect: () => unknown, cause: string]>([
    ['throws', throwsNoHost, 'no such host'],
    ['returns nothing', () => undefined, 'INVALID_TRANSPORT'],
  ])(
    'ends the session at once, with the cause, when its connect() %s',
    async (_, connect, cause) => {
      const transport = new FakeTransport();
      Object.assign(transport, { connect });
      const talk = voiceTalk({ transport });
      talk.session.attach();
      const started = talk.session.start();
      const caught = started.catch((error: unknown) => error);
      await talk.environment.settle();
      expect(await caught).toMatchObject({ code: 'TRANSPORT_LOST' });
      const [first] = talk.errors as { error: Error & { code?: string } }[];
      expect(`${first?.error.code} ${first?.error.message}`).toContain(cause);
      expect(talk.environment.pendingTimers).toBe(0);
    },
  );

  test('refuses the connection if connect() throws on a reconnect', async () => {
    const transport = new FakeTransport();
    const talk = voiceTalk({ transport });
    await talk.start();
    Object.assign(transport, { connect: throwsNoHost });
    transport.inUse.drop();
    await talk.environment.advance(2000);
    expect(talk.state().connection).toBe('refused');
    expect(talk.state().outage?.message).toContain('no such host');
  });

  test('continues the conversation if send() and sendAudio() throw', async () => {
    const transport = new FakeTransport();
    const talk = voiceTalk({ transport });
    await talk.start();
    const broken = (): void => {
      throw new Error('broken pipe');
    };
    Object.assign(transport.inUse, { send: broken, sendAudio: broken });
    talk.session.audioIn.next({ samples: new Int16Array(480), sampleRateHz: 24_000 });
    await talk.say('hello');
    expect(talk.errors.length).toBeGreaterThan(1);
    expect(talk.state().transcript.at(-1)?.text).toBe('hello');
  });

  test('RESPONSES-8: limits and reports responses that start but never end', async () => {
    const talk = voiceTalk({ transport: new FakeTransport(BY_ITSELF) });
    await talk.start();
    for (let n = 0; n < 100; n += 1) talk.model().beginByItself('', 0);
    await talk.environment.settle();
    const codes = new Set(talk.errors.map(({ error }) => (error as { code?: string }).code));
    expect(codes).toEqual(new Set(['TOO_MANY_RESPONSES']));
    // After one timeout, the session is not waiting for any of the responses.
    await talk.environment.advance(40_000);
    talk.session.notifyBackground('News.');
    await talk.pause();
    expect(talk.asked()).toContain('News.');
  });

  test('keeps the text of messages that start but never end', async () => {
    const talk = voiceTalk();
    await talk.start();
    await talk.say('hello');
    const { responseId } = talk.model().begin('', 0);
    for (let n = 0; n < 100; n += 1)
      talk.model().events.next({
        type: 'assistant.transcribed',
        itemId: `endless_${n}`,
        responseId,
        text: `part ${n}`,
        final: false,
      });
    await talk.environment.settle();
    const said = talk.state().transcript.filter(({ id }) => id.startsWith('endless_'));
    expect(said).toHaveLength(100);
    expect(said.filter(({ final }) => !final)).toHaveLength(32);
  });
});

describe('LIVE-CONVERSATION-5: a response that arrives in many pieces', () => {
  /** The number of new characters that each piece adds to the text that is read, summed over all pieces. */
  function charactersRead(pieces: number): number {
    const live = new LiveConversation({ maxItemChars: 1000 }, () => undefined);
    let read = 0;
    for (let n = 0; n < pieces; n += 1)
      if (live.saying('item', 'x'.repeat(100), 1)) read += textOf(live).length;
    return read;
  }

  function textOf(live: LiveConversation): string {
    const item = live.item('item');
    return item?.role === 'assistant' ? item.text : '';
  }

  test('costs the same to read, however long the hidden part is', () => {
    expect(charactersRead(10_000)).toBe(charactersRead(20));
  });

  test('contains its whole text once it has ended, and counts the omitted characters until then', () => {
    const live = new LiveConversation({ maxItemChars: 1000 }, () => undefined);
    for (let n = 0; n < 50; n += 1) live.saying('item', 'y'.repeat(100), 1);
    expect(live.item('item')).toMatchObject({ text: 'y'.repeat(1000), omittedChars: 4000 });
    expect(live.log.get('item')).toMatchObject({ text: 'y'.repeat(1000), omittedChars: 4000 });
    expect(live.unfinished).toMatchObject([{ itemId: 'item', text: 'y'.repeat(5000) }]);
  });
});

test.each([
  ['of another library', { connect() {} }, 'an object without `capabilities`'],
  ['without connect', { capabilities: {} }, 'an object without `connect`'],
  ['that is a name', 'openai-realtime', '"openai-realtime"'],
  [
    'of your own that brings no lead',
    { connect() {}, capabilities: {} },
    'one without `lead`. In a transport of your own, write `lead: spokenLead` of offstage/transport',
  ],
])('refuses a transport %s by name', (_, transport, got) => {
  const agents = [{ name: 'lead', instructions: 'You help.' }] as const;
  const refusal = new ConfigurationError(
    'INVALID_OPTION',
    `Expected \`transport\` to be a transport such as openaiRealtime({ apiKey }), got ${got}`,
  );
  expect(() => new VoiceSession({ transport: transport as never, agents })).toThrow(refusal);
  expect(() => withVoice(transport as never, {} as never)).toThrow(refusal);
});
