import { describe, expect, test } from 'vitest';
import { configuration } from '../support/configuration.ts';
import { API_KEY, dial, startCall, userFrame } from './support/called.ts';
import { openaiLive } from '../../../src/adapters/openai-live/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { memorySockets } from './support/peer.ts';

/** Returns the state that a stored session leaves. */
function stored(): unknown {
  const call = dial({ store: true });
  call.peer.opens();
  call.peer.starts({ id: 'live/1' });
  return call.of('transport.resumable')[0]?.resume;
}

describe('a session that is stored', () => {
  test('provides a resumption token once it is ready', () => {
    const call = dial({ store: true });
    call.peer.opens();
    call.peer.starts({ id: 'live/1' });
    expect(call.events).toEqual([
      { type: 'transport.ready' },
      {
        type: 'transport.resumable',
        resume: { sessionId: 'live/1', configuration: expect.any(String), untaken: [] },
      },
    ]);
  });

  test('does not provide a token if the session is not stored', () => {
    const call = dial();
    call.peer.opens();
    call.peer.starts();
    expect(call.of('transport.resumable')).toEqual([]);
    expect(call.transport.capabilities.resumes).toBe(false);
  });
});

describe('a resumed session', () => {
  test('starts as a fork that inherits everything except the audio format', () => {
    const call = dial({ store: true }, { resume: stored(), history: () => [] });
    expect(call.peer.url).toBe('wss://api.openai.com/v1/live/sessions/live%2F1/fork');
    expect(call.peer.options.headers).toMatchObject({ Authorization: `Bearer ${API_KEY}` });
    call.peer.opens();
    expect(call.peer.sent).toEqual([
      {
        type: 'session.start',
        event_id: 'event_1',
        session: { audio: { format: { type: 'audio/pcm', rate: 24_000 } }, store: true },
      },
    ]);
    call.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'one' });
    call.connection.sendAudio(userFrame(5, 100));
    call.peer.starts({ id: 'live_2' });
    expect(call.events).toMatchObject([
      { type: 'transport.ready', resumed: true },
      { type: 'transport.resumable', resume: { sessionId: 'live_2' } },
    ]);
    expect(call.peer.sent.slice(1).map(({ type }) => type)).toEqual([
      'session.thinking.append',
      'session.input_audio.append',
    ]);
    call.peer.replies('Welcome back.');
    expect(call.frames.length).toBeGreaterThan(0);
  });

  test.each<[string, (call: ReturnType<typeof dial>) => unknown]>([
    ['is not known', ({ peer }) => peer.fails('Unexpected server response: 404')],
    [
      'is not complete yet',
      ({ peer }) => {
        peer.opens();
        peer.refuses({ code: 'recording_not_ready', message: 'Not finalized.' });
      },
    ],
    [
      'takes too long',
      async (call) => {
        call.peer.opens();
        await call.advance(3000);
      },
    ],
  ])(
    'FORKED-CONNECTION-1: begins anew with the whole history where the stored one %s',
    async (_, fails) => {
      const history = () => [
        { type: 'message.add', itemId: 'h', role: 'user', text: 'A ride, please.' } as const,
      ];
      const call = dial({ store: true }, { resume: stored(), history });
      call.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'one' });
      call.connection.sendAudio(userFrame(5, 100));
      await fails(call);
      expect(call.peers).toHaveLength(2);
      expect(call.of('transport.error')).toMatchObject([{ code: 'RESUME_REFUSED' }]);
      expect(call.of('transport.closed')).toEqual([]);
      call.send({ type: 'message.add', itemId: 'b', role: 'system', text: 'two' });
      call.peer.opens();
      expect(call.peer.url).toBe('wss://api.openai.com/v1/live/sessions');
      call.peer.starts();
      expect(call.events.slice(1)).toMatchObject([
        { type: 'transport.ready', told: true },
        { type: 'transport.resumable' },
      ]);
      expect(call.peer.sent[0]).toMatchObject({ session: { input: [{ role: 'user' }] } });
      expect(call.peer.told.map(([, , text]) => text)).toEqual(['one', 'two']);
      expect(call.peer.audioFrames).toHaveLength(1);
    },
  );

  test('FORKED-CONNECTION-1: closes when both the fork and the new session fail', () => {
    const call = dial({ store: true }, { resume: stored() });
    call.peer.fails('gone');
    call.peer.fails('gone');
    expect(call.peers).toHaveLength(2);
    expect(call.of('transport.closed')).toHaveLength(1);
    expect(call.isComplete).toBe(true);
  });

  test('closes when an established fork is lost', () => {
    const call = dial({ store: true }, { resume: stored() });
    call.peer.opens();
    call.peer.starts({ id: 'live_2' });
    call.peer.closes(1011);
    expect(call.peers).toHaveLength(1);
    expect(call.of('transport.closed')).toHaveLength(1);
  });

  test('closes immediately while the fork is being tried', async () => {
    const call = dial({ store: true }, { resume: stored() });
    await call.connection.close();
    expect(call.peers).toHaveLength(1);
    expect(call.of('transport.closed')).toHaveLength(1);
  });

  test.each([
    ['of other instructions', { store: true }, stored],
    ['that is none', { store: true }, () => ({ sessionId: 7 })],
    ['without storage', { store: false }, stored],
  ])('starts a new session with a token %s', (_, options, resumeOf) => {
    const { peers, webSocket } = memorySockets();
    const environment = simulatedEnvironment();
    const other = { ...configuration, instructions: 'Be rude.' };
    const transport = openaiLive({ apiKey: API_KEY, webSocket, keepAliveMs: null, ...options });
    transport.connect(options.store ? other : configuration, { environment, resume: resumeOf() });
    expect(peers.map(({ url }) => url)).toEqual(['wss://api.openai.com/v1/live/sessions']);
  });
});

test('repeats notes that the model had not consumed, but does not repeat requests', () => {
  const first = dial({ store: true });
  first.peer.opens();
  first.peer.starts();
  first.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'one' });
  first.peer.takesIn();
  first.send({ type: 'message.add', itemId: 'b', role: 'system', text: 'two' });
  first.request('offer:1', 'Say three.');
  const resume = first.of('transport.resumable').at(-1)?.resume;
  const second = dial({ store: true }, { resume });
  second.peer.opens();
  second.send({ type: 'message.add', itemId: 'c', role: 'system', text: 'four' });
  second.peer.starts();
  expect(second.peer.told).toEqual([
    ['thinking', null, 'two'],
    ['thinking', null, 'four'],
  ]);
});

test('provides the same diagnostics for a session that is not a fork', () => {
  expect(startCall().connection.diagnostics).toEqual({
    unknownEvents: {},
    malformedEvents: 0,
    droppedAudio: { frames: 0, durationMs: 0 },
  });
});
