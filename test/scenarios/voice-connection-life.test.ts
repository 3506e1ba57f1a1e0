// A conversation outlives its connections: when they end, they are replaced or resumed without a noticeable change.
// Their usage is counted, and images that were shown on them are not stored.

import { receiveClientMessage } from '../../src/compat/index.ts';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import type { TransportCapabilities } from '../../src/voice/connection/transport.ts';
import { BY_ITSELF, FakeTransport, type FakeConnection } from '../support/fake-transport.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { voiceTalk, type VoiceTalkOptions } from '../support/voice-talk.ts';

const HOUR = 3_600_000;

async function talkOver(
  capabilities: Partial<TransportCapabilities> = {},
  options: VoiceTalkOptions = {},
) {
  const transport = new FakeTransport(capabilities);
  const talk = voiceTalk({ ...options, transport });
  await talk.start();
  const frame = (mark: number) => ({
    samples: new Int16Array(480).fill(mark),
    sampleRateHz: 24_000,
  });
  return {
    ...talk,
    expire: async (inMs = 60_000) => {
      transport.inUse.events.next({ type: 'transport.expiring', inMs });
      await talk.environment.settle();
    },
    /** Sends this many marked frames of 20 ms of the user's audio. */
    hum: (...marks: number[]) => {
      for (const mark of marks) talk.session.audioIn.next(frame(mark));
    },
    connections: () =>
      talk.events.flatMap((event) => (event.type === 'connection.changed' ? [event.state] : [])),
  };
}

/** Returns the marks in the order in which they were heard. Repeated audio arrives in longer frames. */
const marks = ({ heard }: FakeConnection): number[] => {
  const all = heard.flatMap(({ samples }) => [...samples]);
  return all.filter((mark, index) => mark !== all[index - 1]);
};
const types = ({ commands }: FakeConnection): string[] => commands.map(({ type }) => type);

/** Returns the messages of the note that is written when the user has heard only these words. */
const cutAt = (heard: string) => [
  { role: 'system', text: expect.stringContaining('heard only what is quoted') },
  {
    role: 'user',
    isNote: true,
    text: expect.stringContaining(`{"heard":${JSON.stringify(heard)}}`),
  },
];

const report = { script: () => say('Sales are up.') };
const ride = {
  script: steps(calls(['ask_user', { question: 'Which colour?' }]), ({ results }) =>
    say(`Got ${JSON.stringify(results[0])}`),
  ),
  config: { interactive: true },
};

describe('a connection that is about to end', () => {
  test('gives way in a pause to a connection with the whole conversation and its calls', async () => {
    const {
      transport,
      environment,
      use,
      speak,
      pause,
      say: utter,
      asked,
      connections,
      result,
    } = await talkOver(
      { maxConnectionMs: HOUR },
      { subagents: { report: { ...report, pending: null } } },
    );
    await use('report');
    await pause();
    await speak('Sales are up.');
    await environment.advance(HOUR * 0.8);
    expect(result()).toMatchObject({ state: 'delivered' });
    await environment.advance(HOUR * 0.16);
    expect(transport.connections).toHaveLength(2);
    const [before, after] = transport.connections as [FakeConnection, FakeConnection];
    expect(before.isClosed).toBe(true);
    expect(types(after)).toEqual(
      expect.arrayContaining(['message.add', 'tool.recall', 'tool.answer']),
    );
    await utter('and now?');
    expect(asked()).toBe('reply');
    await speak('That was all.');
    await pause();
    // The session has noticed nothing.
    expect(connections()).toEqual(['connecting', 'active']);
  });

  test('passes on an open call, whose result is delivered on the new connection', async () => {
    const { environment, transport, use, model, expire, pause, asked, speak, result } =
      await talkOver({}, { subagents: { ride: { ...ride, pending: null } } });
    await use('ride');
    await pause();
    await speak('Which colour?');
    await expire();
    expect(transport.connections).toHaveLength(2);
    expect(model().of('tool.recall')).toHaveLength(1);
    expect(model().of('tool.answer')).toEqual([]);
    model().utterance('red');
    await environment.settle();
    await environment.advance(2000);
    expect(asked()).toContain('red');
    await speak('You get a red one.');
    expect(result()).toMatchObject({ state: 'delivered' });
    expect(model().of('tool.answer')).toHaveLength(1);
  });

  test('does not interrupt a reply, and repeats the current delivery on the new connection', async () => {
    const { environment, transport, use, pause, play, expire, asked, result, speak } =
      await talkOver({}, { subagents: { report } });
    await use('report');
    await pause();
    const telling = transport.inUse.begin('Sales', 1000);
    await play(telling.itemId, 300);
    await expire(8000);
    expect(transport.connections).toHaveLength(2);
    expect(transport.inUse).toBe(transport.connections[0]);
    await environment.advance(6000);
    expect(transport.inUse).toBe(transport.connections[1]);
    await play(telling.itemId, 1000);
    await pause();
    expect(asked()).toContain('Sales are up.');
    await speak('Sales are up.');
    expect(result()).toMatchObject({ state: 'delivered', attempts: 2 });
  });

  test('MODEL-MEMORY-1: passes the text of a playing reply to the new connection and notes if it is cut off', async () => {
    const { model, say: utter, expire, session, environment, events } = await talkOver();
    await utter('tell me a story');
    const itemId = model().speak('Once upon a time there was a king', 4000);
    session.playout.next({ itemId, playedMs: 1000 });
    await expire();
    expect(model().of('message.add').at(-1)).toMatchObject({ role: 'assistant', itemId });
    model().speechStarted('u9');
    session.playout.next({ itemId, playedMs: 2000 });
    model().speechEnded('u9', 'stop, that is enough');
    await environment.settle();
    expect(events).toContainEqual({ type: 'speech.interrupted', itemId, playedMs: 2000 });
    expect(model().of('playout.truncate')).toEqual([]);
    expect(model().of('message.add').slice(-2)).toMatchObject(cutAt('Once upon a time'));
    expect(
      model()
        .of('message.add')
        .filter(({ text }) => text.includes('heard')),
    ).toHaveLength(2);
  });

  test('MODEL-MEMORY-1, CONTINUATION-1: sends only the position of a truncation to a model that resumes', async () => {
    const {
      transport,
      model,
      say: utter,
      session,
      environment,
    } = await talkOver({
      resumes: true,
    });
    await utter('tell me a story');
    const itemId = model().speak('Once upon a time there was a king', 4000);
    session.playout.next({ itemId, playedMs: 1000 });
    model().events.next({ type: 'transport.resumable', resume: 'token' });
    transport.autoReady = false;
    model().drop();
    await session.sendText('that is enough');
    // The client drops unplayed audio and reports this.
    session.playout.next({ itemId, playedMs: 2000 });
    await environment.advance(5000);
    expect(transport.connections).toHaveLength(2);
    model().ready({ resumed: true });
    await environment.settle();
    expect(model().of('playout.truncate')).toEqual([]);
    expect(model().of('message.add')).toMatchObject([
      { role: 'user', text: 'that is enough' },
      ...cutAt('Once upon a time'),
    ]);
  });

  test('MODEL-MEMORY-2, CONTINUATION-1: passes a pending note to the connection that resumes', async () => {
    const { transport, model, leave, environment } = await talkOver({
      ...BY_ITSELF,
      silentContext: false,
      resumes: true,
    });
    const { end } = model().beginByItself('Once upon a time there was a king', 4000);
    // No client is attached, so the speech is stopped. The model learns this with the next request.
    leave();
    end('cancelled');
    await environment.settle();
    expect(model().of('message.add')).toEqual([]);
    model().events.next({ type: 'transport.resumable', resume: 'token' });
    transport.autoReady = false;
    model().drop();
    await environment.advance(5000);
    model().ready({ resumed: true });
    await environment.settle();
    expect(model().of('message.add')).toMatchObject([
      {
        role: 'system',
        text: expect.stringContaining('The user heard nothing of what you were saying'),
      },
    ]);
  });

  test('CONTINUATION-1: passes on later notes after the conversation', async () => {
    const { transport, expire, session, say: utter, speak, environment } = await talkOver();
    await utter('tell me a story');
    await speak('Once upon a time');
    transport.inUse.speechStarted('u9');
    session.notifyBackground('There is a fire', { priority: 'urgent' });
    await expire(8000);
    // At the last moment, the session no longer waits for the speech to end.
    await environment.advance(7000);
    expect(transport.inUse).toBe(transport.connections[1]);
    expect(types(transport.inUse)).toEqual([
      'message.add',
      'message.add',
      'message.add',
      'message.add',
      'response.request',
    ]);
    expect(transport.inUse.of('message.add').map(({ text }) => text)).toEqual([
      'tell me a story',
      'Once upon a time',
      expect.stringMatching(/^\[note .*There is news for the user/),
      expect.stringMatching(/^\[data .*There is a fire/),
    ]);
  });

  test('gives way to a transfer, which replaces the connection only once', async () => {
    const lookUp = defineTool({
      name: 'look_up',
      description: 'Looks up',
      parameters: z.object({}),
      execute: () => '7 euros',
    });
    const { session, transport, environment, expire, state } = await talkOver(
      { updatesSession: false },
      { others: [{ name: 'billing', tools: [lookUp] }] },
    );
    transport.autoReady = false;
    await expire(30_000);
    const transfer = session.transfer('billing');
    await environment.settle();
    expect(transport.connections.map(({ isClosed }) => isClosed)).toEqual([false, true, false]);
    transport.connections[2]?.ready();
    await environment.settle();
    expect(await transfer).toMatchObject({ status: 'transferred' });
    await environment.advance(60_000);
    expect(state().agent).toBe('billing');
    expect(transport.connections).toHaveLength(3);
  });
});

describe('a connection that is resumed', () => {
  const resumes = { resumes: true } as const;

  test("SESSION-8: closes before the next one opens and passes on the user's speech from the gap", async () => {
    const {
      transport,
      environment,
      expire,
      hum,
      say: utter,
      speak,
      connections,
      session,
    } = await talkOver(resumes, { voice: { maxReconnects: 0 } });
    await utter('hello');
    await speak('Hello!');
    transport.inUse.events.next({ type: 'transport.resumable', resume: 'token' });
    transport.autoReady = false;
    await expire();
    const [before, after] = transport.connections as [FakeConnection, FakeConnection];
    expect(before.isClosed).toBe(true);
    expect(after.resume).toBe('token');
    hum(1, 2);
    session.notifyBackground('News.');
    await session.sendText('are you there?');
    await environment.advance(1000);
    after.ready({ resumed: true });
    hum(3);
    await environment.settle();
    expect(marks(after)).toEqual([1, 2, 3]);
    expect(after.of('message.add').map(({ text }) => text)).toEqual(['are you there?']);
    expect(types(after).at(-1)).toBe('response.request');
    await speak('I am.');
    await environment.advance(400);
    expect(after.of('message.add').map(({ text }) => text)).toEqual([
      'are you there?',
      expect.stringMatching(/^\[note .*There is news for the user/),
      expect.stringMatching(/^\[data .*"News\."/),
    ]);
    expect(connections()).toEqual(['connecting', 'active', 'connecting', 'active']);
  });

  test('CONTINUATION-2: sends the whole conversation on another connection if it cannot be resumed', async () => {
    const { transport, environment, say: utter, speak, state } = await talkOver(resumes);
    await utter('hello');
    await speak('Hello!');
    transport.inUse.events.next({ type: 'transport.resumable', resume: 'token' });
    transport.autoReady = false;
    transport.inUse.drop();
    await environment.advance(1000);
    const refused = transport.inUse;
    expect(refused.resume).toBe('token');
    refused.events.next({ type: 'transport.closed', code: 1007, reason: 'no', retryable: true });
    await environment.advance(2000);
    expect(transport.inUse.resume).toBeUndefined();
    transport.inUse.ready();
    await environment.settle();
    expect(transport.inUse.of('message.add').map(({ text }) => text)).toEqual(['hello', 'Hello!']);
    expect(state().connection).toBe('active');
  });
});

describe("the user's speech while there is no connection", () => {
  test('CONNECTION-MANAGER-2: reaches the next connection, but only with its most recent audio', async () => {
    const { transport, environment, hum } = await talkOver({}, { voice: { keptAudioMs: 60 } });
    hum(1);
    transport.autoReady = false;
    transport.inUse.drop();
    await environment.settle();
    hum(2, 3);
    await environment.advance(1000);
    transport.inUse.drop();
    await environment.settle();
    hum(4, 5);
    await environment.advance(2000);
    transport.inUse.ready();
    hum(6);
    await environment.settle();
    expect(marks(transport.inUse)).toEqual([3, 4, 5, 6]);
  });

  test('CONNECTION-MANAGER-6: reaches the next connection from its beginning and gets one reply', async () => {
    const { transport, environment, hum, model, asked } = await talkOver();
    hum(1, 2);
    await environment.advance(5000);
    model().events.next({ type: 'utterance.started', utteranceId: 'u1', audioStartMs: 40 });
    for (const mark of [3, 4, 5]) {
      hum(mark);
      await environment.advance(20);
    }
    model().drop();
    await environment.settle();
    hum(6);
    await environment.advance(1000);
    expect(marks(transport.inUse).slice(-4)).toEqual([3, 4, 5, 6]);
    model().utterance('what is the time?', 'u2');
    await environment.settle();
    expect(asked()).toBe('reply');
    expect(model().openRequests).toHaveLength(1);
  });

  test('CONNECTION-MANAGER-6: does not reach the next connection again after a complete reply', async () => {
    const { transport, environment, hum, model, play, asked } = await talkOver(BY_ITSELF);
    hum(1, 2);
    model().speechStarted('u1');
    await environment.advance(40);
    model().events.next({ type: 'utterance.ended', utteranceId: 'u1' });
    await play(model().speakByItself('It is noon.'));
    model().drop();
    await environment.advance(1000);
    expect(marks(transport.inUse)).toEqual([]);
    expect(asked()).toBeNull();
  });

  test('does not reach any connection before the session starts or after it ends', async () => {
    const transport = new FakeTransport();
    const { start, session, close } = voiceTalk({ transport });
    const sound = { samples: new Int16Array(480), sampleRateHz: 24_000 };
    session.audioIn.next(sound);
    await start();
    await close();
    session.audioIn.next(sound);
    expect(transport.connections.flatMap(({ heard }) => heard)).toEqual([]);
  });
});

describe('a connection that is lost during work', () => {
  test('keeps the result of a call that could not remain open', async () => {
    const { use, pause, speak, model, environment, result } = await talkOver(
      { defersToolResults: false },
      { subagents: { ride: { ...ride, pending: null } } },
    );
    await use('ride');
    await pause();
    await speak('Which colour?');
    model().drop();
    await environment.advance(1000);
    // The call was acknowledged at once, so the new connection receives it as a finished call.
    expect(model().of('tool.recall')).toHaveLength(1);
    expect(model().of('tool.answer')).toHaveLength(1);
    model().utterance('red');
    await environment.advance(2000);
    await speak('You get a red one.');
    expect(result()).toMatchObject({ state: 'delivered' });
    expect(model().of('tool.answer')).toHaveLength(1);
  });

  test('keeps the result and sends a silent tool answer if the model responds on its own', async () => {
    const { transport, environment, asked, speak, result, model, session, play } = await talkOver(
      BY_ITSELF,
      { subagents: { ride: { ...ride, pending: null } } },
    );
    model().utterance('book a ride');
    await environment.settle();
    const booking = model().beginByItself('', 0);
    const { responseId } = booking;
    const call = { callId: 'call_1', name: 'ride', arguments: '{}', responseId } as const;
    model().events.next({ type: 'tool.called', ...call });
    booking.end();
    await environment.settle();
    await play(model().speakByItself('On it.'));
    await environment.advance(400);
    await speak('Which colour?');
    transport.inUse.drop();
    await environment.advance(1000);
    expect(model().of('tool.recall')).toHaveLength(1);
    expect(asked()).toBeNull();
    const { requestId = '' } = session.store.getSnapshot().context.questions.at(-1) ?? {};
    await session.answer(requestId, { text: 'red' });
    await environment.advance(2000);
    expect(asked()).toContain('red');
    expect(model().of('tool.answer')).toEqual([expect.objectContaining({ silent: true })]);
    await speak('You get a red one.');
    expect(result()).toMatchObject({ state: 'delivered' });
  });
});

describe("the transport's reports", () => {
  const used = (inputTokens: number | null, outputTokens: number | null) =>
    ({ type: 'usage.reported', inputTokens, outputTokens, raw: { secret: 'sk-1' } }) as const;

  test('sum the usage of all connections without the raw report', async () => {
    const told: unknown[] = [];
    const { model, environment, state, events } = await talkOver(
      {},
      { hooks: { onUsage: (event) => told.push(event) } },
    );
    expect(state().usage.lead).toEqual({ inputTokens: null, outputTokens: null });
    const first = model();
    first.events.next(used(10, null));
    first.events.next({ type: 'transport.closed', code: 1006, reason: 'lost', retryable: true });
    // The usage in the connection's last message counts.
    first.events.next(used(1, 2));
    await environment.advance(1000);
    model().events.next(used(5, 3));
    expect(state().usage.lead).toEqual({ inputTokens: 16, outputTokens: 5 });
    const changes = events.filter(({ type }) => type === 'usage.changed');
    expect(changes.at(-1)).toEqual({
      type: 'usage.changed',
      usage: {
        lead: { inputTokens: 16, outputTokens: 5 },
        subagents: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
        total: { inputTokens: 16, outputTokens: 5, totalTokens: 21 },
      },
      used: { inputTokens: 5, outputTokens: 3 },
    });
    expect(told).toHaveLength(3);
    expect(JSON.stringify([told, changes])).not.toContain('sk-1');
  });

  test('sum the details of cache and audio usage', async () => {
    const { model, state, events } = await talkOver();
    const sound = { cachedInputTokens: 4, audioInputTokens: 8, audioOutputTokens: 2 };
    model().events.next({ ...used(10, 3), ...sound });
    model().events.next(used(1, 1));
    model().events.next({ ...used(5, 3), audioInputTokens: 5, cachedInputTokens: -1 });
    expect(state().usage.lead).toEqual({
      inputTokens: 16,
      outputTokens: 7,
      cachedInputTokens: 4,
      audioInputTokens: 13,
      audioOutputTokens: 2,
    });
    const changes = events.filter(({ type }) => type === 'usage.changed');
    expect(changes.at(-1)).toMatchObject({
      used: { inputTokens: 5, outputTokens: 3, audioInputTokens: 5 },
    });
  });

  test("contain the provider's latest limits", async () => {
    const told: unknown[] = [];
    const { model, state, events } = await talkOver(
      {},
      { hooks: { onLimits: (event) => told.push(event) } },
    );
    const limits = [{ name: 'tokens', limit: 100, remaining: 7, resetInMs: 1500 }];
    expect(state().limits).toEqual([]);
    model().events.next({ type: 'limits.reported', limits });
    expect(state().limits).toEqual(limits);
    expect(told).toEqual([{ limits }]);
    expect(events.filter(({ type }) => type === 'limits.changed')).toHaveLength(1);
  });
});

describe('a picture', () => {
  const png = { mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) };
  const code = (expected: string) => expect.objectContaining({ code: expected });

  test('reaches a model that accepts images, and is described to later connections', async () => {
    const { session, model, environment } = await talkOver({ acceptsImages: true });
    expect(session.showImage(png)).toBe(true);
    expect(model().of('image.add')).toEqual([
      { type: 'image.add', itemId: expect.any(String), ...png },
    ]);
    expect(model().of('message.add')).toEqual([]);
    model().drop();
    await environment.settle();
    expect(session.showImage(png)).toBe(false);
    await environment.advance(1000);
    expect(model().of('image.add')).toEqual([]);
    expect(
      model()
        .of('message.add')
        .map(({ text }) => text),
    ).toEqual([
      expect.stringMatching(/^\[note .*showed a picture here/),
      expect.stringMatching(/^\[data .*"image\/png"/),
    ]);
  });

  test.each([
    ['another kind of file', { ...png, mediaType: 'image/tiff' }],
    ['nothing', { ...png, data: new Uint8Array() }],
    ['too much', { ...png, data: new Uint8Array(5 * 1024 * 1024 + 1) }],
    ['what is not bytes', { ...png, data: 'AQID' as unknown as Uint8Array }],
  ])('causes an error by name if it is %s', async (_, image) => {
    const { session, model } = await talkOver({ acceptsImages: true });
    expect(() => session.showImage(image)).toThrow(code('INVALID_IMAGE'));
    expect(model().commands).toEqual([]);
  });

  test('throws a named error if the transport does not accept images', async () => {
    const { session } = await talkOver();
    expect(() => session.showImage(png)).toThrow(code('IMAGES_NOT_ACCEPTED'));
    expect(() => session.showImage(png)).toThrow('fake');
  });

  test('arrives as base64 from a client', async () => {
    const { session, model, environment, errors } = await talkOver({ acceptsImages: true });
    const message = { type: 'image_input', mediaType: 'image/png', data: 'AQID' };
    expect(await receiveClientMessage(session, message)).toEqual({ accepted: true });
    expect(model().of('image.add')).toEqual([expect.objectContaining({ data: png.data })]);
    expect(await receiveClientMessage(session, { ...message, data: 'no base64!' })).toMatchObject({
      reason: 'invalid',
    });
    expect(
      await receiveClientMessage(session, { ...message, mediaType: 'text/html' }),
    ).toMatchObject({ reason: 'refused', message: expect.stringContaining('image/jpeg') });
    model().drop();
    await environment.settle();
    expect(await receiveClientMessage(session, message)).toMatchObject({ reason: 'refused' });
    expect(errors).toHaveLength(1);
  });
});

test('reports that no connection is possible but does not close the session', async () => {
  const { transport, state, environment } = await talkOver();
  transport.inUse.events.next({
    type: 'transport.closed',
    code: 1008,
    reason: 'Refused by policy (1008): account suspended',
    retryable: false,
  });
  await environment.settle();
  expect(state()).toMatchObject({
    connection: 'refused',
    outage: { code: 'TRANSPORT_LOST', message: expect.stringContaining('account suspended') },
  });
  expect(transport.connections).toHaveLength(1);
});
