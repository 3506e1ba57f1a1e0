// The project's adapters on the fake's in-memory sockets, in virtual time. Calls, answers, interruptions and lost
// connections behave as with a real server.

import { describe, expect, onTestFinished, test } from 'vitest';
import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import { openaiLive } from '../../../src/adapters/openai-live/index.ts';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import type { AudioFrame } from '../../../src/voice/audio/audio-frame.ts';
import type {
  Transport,
  TransportCommand,
  TransportEvent,
} from '../../../src/voice/connection/transport.ts';
import type { WebSocketFactory } from '../../../src/adapters/socket/web-socket.ts';
import type { FakeVoiceModel } from '../../../src/testing/voice-server/index.ts';
import { stage, type Stage } from './support/raw-client.ts';

const configuration = {
  instructions: 'Be brief.',
  tools: [{ name: 'book_ride', description: 'Books a ride.', parameters: { type: 'object' } }],
};

interface Talk extends Stage {
  readonly model: FakeVoiceModel;
  readonly events: readonly TransportEvent[];
  readonly frames: readonly AudioFrame[];
  say(command: TransportCommand): void;
  last<Type extends TransportEvent['type']>(
    type: Type,
  ): Extract<TransportEvent, { type: Type }> | undefined;
}

type Make = (options: {
  readonly apiKey: string;
  readonly webSocket: WebSocketFactory;
  readonly keepAliveMs: null;
}) => Transport;

async function talk(make: Make = openaiRealtime): Promise<Talk> {
  const place = stage();
  const { environment, server, pass } = place;
  const { webSocket } = server;
  const transport = make({ apiKey: 'some-key', webSocket, keepAliveMs: null });
  const connection = transport.connect(configuration, { environment });
  onTestFinished(async () => {
    const closed = connection.close();
    await pass(5_000);
    await closed;
  });
  const events: TransportEvent[] = [];
  const frames: AudioFrame[] = [];
  connection.events.subscribe((event) => events.push(event));
  connection.audio.subscribe((frame) => frames.push(frame));
  const model = await server.nextConnection();
  await pass();
  return {
    ...place,
    model,
    events,
    frames,
    say: (command) => connection.send(command),
    last: (type) =>
      events.findLast(
        (event): event is Extract<TransportEvent, { type: typeof type }> => event.type === type,
      ),
  };
}

describe('openaiRealtime', () => {
  test('configures the model, calls a tool, reads its answer and speaks', async () => {
    const { model, events, frames, last, say, pass } = await talk();
    expect(last('transport.ready')).toBeDefined();
    expect(model).toMatchObject({ instructions: 'Be brief.', tools: configuration.tools });
    void model.user.says('book me a ride', { durationMs: 800 });
    await pass(1_000);
    expect(events.slice(0, 5).map(({ type }) => type)).toEqual([
      'transport.ready',
      'utterance.started',
      'utterance.ended',
      'utterance.transcribed',
      'utterance.transcribed',
    ]);
    model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } });
    say({ type: 'response.request', responseKey: 'first' });
    await pass(100);
    const call = last('tool.called');
    expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
    say({ type: 'tool.answer', callId: call?.callId ?? '', output: 'booked' });
    say({ type: 'response.request', responseKey: 'second', instructions: 'Be glad.' });
    await pass(3_000);
    expect(last('response.ended')).toMatchObject({ responseKey: 'second', status: 'completed' });
    expect(last('assistant.transcribed')).toMatchObject({ text: 'The result is: booked' });
    const samples = frames.reduce((sum, frame) => sum + frame.samples.length, 0);
    expect(samples / 24).toBe(model.replies.at(-1)?.audioMs);
    expect(last('transport.error')).toBeUndefined();
  });

  test('stops when it is interrupted and drops audio that has not been heard', async () => {
    const { model, last, say, pass } = await talk();
    model.willAnswer({ say: 'One two three four.', durationMs: 4_000 });
    say({ type: 'response.request', responseKey: 'story' });
    await pass(500);
    model.user.begins();
    say({ type: 'response.cancel' });
    await pass();
    const ended = last('response.ended');
    expect(ended).toMatchObject({ responseKey: 'story', status: 'cancelled' });
    const itemId = ended?.audio[0]?.itemId ?? '';
    say({ type: 'playout.truncate', itemId, playedMs: 500 });
    await pass();
    expect(model.items.find(({ id }) => id === itemId)).toMatchObject({ text: 'One ' });
  });

  test.each<[string, (model: FakeVoiceModel) => void, Partial<TransportEvent>]>([
    ['a drop', ({ faults }) => faults.drop(), { code: 1006, retryable: true }],
    ['1011', ({ faults }) => faults.close(1011), { code: 1011, retryable: true }],
    ['1007', ({ faults }) => faults.close(1007), { code: 1007, retryable: false }],
    ['the limit of a session', ({ faults }) => faults.expire(), { code: 1001, retryable: true }],
  ])('reports %s with its code, and whether to reconnect', async (_, suffer, expected) => {
    const { model, events, pass } = await talk();
    suffer(model);
    await pass();
    expect(events.at(-1)).toMatchObject({ type: 'transport.closed', ...expected });
  });

  test('survives events that it cannot read', async () => {
    const { model, events, last, pass } = await talk();
    model.faults.malformed();
    model.faults.unknownEvent('session.weather');
    await pass();
    expect(events.flatMap((event) => (event.type === 'transport.error' ? event.code : []))).toEqual(
      ['MALFORMED_EVENT', 'UNKNOWN_EVENT'],
    );
    expect(last('transport.closed')).toBeUndefined();
  });
});

test('geminiLive answers on its own, calls a tool and, when asked, speaks about the result', async () => {
  const { model, last, say, pass, frames } = await talk(geminiLive);
  expect(last('transport.ready')).toBeDefined();
  expect(model).toMatchObject({ wire: 'gemini-live', tools: configuration.tools });
  expect(model.instructions).toContain('Be brief.');
  model.willAnswer({ call: 'book_ride', arguments: { to: 'airport' } }, { say: 'On it.' });
  void model.user.says('book me a ride', { durationMs: 800 });
  await pass(5_000);
  const call = last('tool.called');
  expect(call).toMatchObject({ name: 'book_ride', arguments: '{"to":"airport"}' });
  expect(last('response.ended')).toMatchObject({ responseKey: null, status: 'completed' });
  expect(frames.length).toBeGreaterThan(0);
  say({ type: 'tool.answer', callId: call?.callId ?? '', output: 'booked' });
  model.willAnswer({ say: 'It is booked.' });
  say({ type: 'response.request', responseKey: 'result' });
  await pass(10_000);
  expect(last('response.ended')).toMatchObject({ responseKey: 'result', status: 'completed' });
  expect(last('assistant.transcribed')).toMatchObject({ text: 'It is booked.', final: true });
});

test('openaiLive receives a delegation and has its result spoken', async () => {
  const { model, last, say, pass } = await talk(openaiLive);
  expect(last('transport.ready')).toBeDefined();
  expect(model.instructions).toContain('Be brief.');
  model.willAnswer({ delegate: true, delegationId: 'one' });
  void model.user.says('book me a ride', { durationMs: 800 });
  await pass(5_000);
  expect(last('delegation.created')).toMatchObject({ delegationId: 'one' });
  say({ type: 'delegation.accept', delegationId: 'one', callIds: ['call_1'] });
  say({ type: 'tool.answer', callId: 'call_1', output: 'booked' });
  say({ type: 'response.request', responseKey: 'result' });
  await pass(20_000);
  expect(model.replies.map(({ cause }) => cause.type)).toContain('result');
  expect(last('response.ended')).toMatchObject({ status: 'completed' });
});
