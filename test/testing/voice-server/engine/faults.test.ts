// Each fault has its effect on each wire that supports the fault.

import { describe, expect, test } from 'vitest';
import type { VoiceWire } from '../../../../src/testing/voice-server/index.ts';
import { stage, type Loose } from '../support/raw-client.ts';

const wires: readonly VoiceWire[] = ['openai-realtime', 'openai-live', 'gemini-live'];
const soundOf: Record<VoiceWire, string> = {
  'openai-realtime': 'response.output_audio.delta',
  'openai-live': 'session.output_audio.delta',
  'gemini-live': 'serverContent',
};

describe.each(wires)('the faults of %s', (wire) => {
  const sounds = (events: readonly Loose[]): number =>
    events.filter(
      (event) => event['type'] === soundOf[wire] || event['serverContent']?.modelTurn !== undefined,
    ).length;

  test('drop: ends the connection without a close frame, immediately or later', async () => {
    const { call, pass } = stage();
    const now = await call(wire);
    now.model.faults.drop();
    await pass();
    expect(now.client.closed).toEqual({ code: 1006, reason: '' });
    expect(await now.model.closed).toBe(1006);
    expect(now.model.isOpen).toBe(false);

    const later = await call(wire);
    later.model.faults.drop({ afterMs: 500 });
    await pass(499);
    expect(later.client.closed).toBeNull();
    await pass(1);
    expect(later.client.closed?.code).toBe(1006);

    const counted = await call(wire);
    const before = counted.client.events.length;
    counted.model.faults.drop({ afterFrames: 3 });
    counted.model.answers({ say: 'A long story.', durationMs: 5_000 });
    await pass(5_000);
    expect(counted.client.closed?.code).toBe(1006);
    expect(counted.client.events).toHaveLength(before + 3);
  });

  test.each([1007, 1008, 1011])(
    'close %i: closes after everything sent before it',
    async (code) => {
      const { call, pass } = stage();
      const { client, model } = await call(wire);
      model.faults.unknownEvent('weather');
      model.faults.close(code, 'on purpose');
      await pass();
      expect(client.count('weather')).toBe(1);
      expect(client.closed).toEqual({ code, reason: 'on purpose' });
    },
  );

  test("expire: ends a connection at its maximum age with the wire's own code", async () => {
    const { call, pass } = stage({ maxConnectionMs: 10_000 });
    const { client, model } = await call(wire);
    await pass(10_000);
    const codes = { 'openai-realtime': 1001, 'openai-live': 1000, 'gemini-live': 1011 };
    expect(client.closed?.code).toBe(codes[wire]);
    if (wire === 'openai-realtime') {
      expect(client.last('error')?.['error']).toMatchObject({ code: 'session_expired' });
    } else if (wire === 'openai-live') {
      expect(client.last('session.closed')).toMatchObject({ reason: 'expired' });
    }
    expect(await model.closed).toBe(codes[wire]);
  });

  test('silence: does not answer the user until the silence is over', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    model.faults.silence();
    model.user.ends('hello');
    await pass(60_000);
    expect(sounds(client.events)).toBe(0);
    model.faults.silence(false);
    model.user.ends('hello?');
    await pass(5_000);
    expect(sounds(client.events)).toBeGreaterThan(0);
  });

  test('delayFrames and stall: deliver everything later and in order', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    const numbers = (): unknown[] =>
      client.events
        .flatMap((event) => Object.keys(event).concat(String(event['type'])))
        .filter((name) => name.startsWith('n'));
    model.faults.delayFrames(200);
    model.faults.unknownEvent('n1');
    model.faults.delayFrames(0);
    model.faults.unknownEvent('n2');
    await pass(199);
    expect(numbers()).toEqual([]);
    await pass(1);
    expect(numbers()).toEqual(['n1', 'n2']);
    model.faults.stall();
    model.faults.unknownEvent('n3');
    await pass(60_000);
    expect(numbers()).toHaveLength(2);
    expect(client.closed).toBeNull();
    model.faults.stall(false);
    await pass();
    expect(numbers()).toEqual(['n1', 'n2', 'n3']);
  });

  test('malformed: sends frames that are not JSON or not events', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    model.faults.malformed();
    model.faults.malformed('{"type": 7}');
    await pass();
    expect(client.last('not JSON')).toBeDefined();
    expect(client.events.at(-1)).toEqual({ type: 7 });
  });

  test('deltasAfterCancel: sends one more piece after an interruption', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    model.faults.deltasAfterCancel();
    const story = model.answers({ say: 'A long story.', durationMs: 5_000 });
    await pass(300);
    const before = sounds(client.events);
    model.user.begins();
    await pass();
    expect(story.status).toBe('cancelled');
    expect(sounds(client.events)).toBe(before + 1);
    await pass(5_000);
    expect(sounds(client.events)).toBe(before + 1);
  });

  test('duplicateCalls: sends the same call twice', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    model.faults.duplicateCalls();
    model.answers({ call: 'book_ride', arguments: { to: 'airport' } });
    await pass(100);
    const calls = {
      'openai-realtime': 'response.function_call_arguments.done',
      'openai-live': 'session.delegation.created',
      'gemini-live': 'toolCall',
    };
    expect(client.count(calls[wire])).toBe(2);
    expect(model.openCalls).toHaveLength(1);
  });

  test('transcripts: arrive early, twice, late or never', async () => {
    const { call, pass } = stage();
    const { client, model } = await call(wire);
    const heard = (): string => {
      const words = client.events.map((event) => {
        if (String(event['type']).endsWith('transcription.completed')) return event['transcript'];
        if (event['type'] === 'session.input_transcript.delta') return event['delta'];
        return event['serverContent']?.inputTranscription?.text ?? '';
      });
      client.events.length = 0;
      return words.join('');
    };
    const says = async (transcript: Parameters<typeof model.user.says>[1]): Promise<string> => {
      void model.user.says('one two', { durationMs: 100, ...transcript });
      await pass(101);
      return heard();
    };
    model.faults.silence();
    const isWhole = wire === 'openai-realtime';
    expect(await says({})).toBe('one two');
    expect(await says({ transcript: 'early' })).toBe('one two');
    expect(await says({ transcript: 'duplicated' })).toBe(
      isWhole ? 'one twoone two' : 'one two two',
    );
    expect(await says({ transcript: 'none' })).toBe('');
    expect(await says({ transcript: { lateMs: 1_000 } })).toBe('');
    await pass(1_000);
    expect(heard()).toBe('one two');
  });
});

test('Realtime: refuses responses and a configuration, and makes a transcript fail', async () => {
  const { call, pass } = stage();
  const { client, model } = await call('openai-realtime');
  model.faults.refuseResponses();
  client.send({ type: 'response.create', event_id: 'mine' });
  await pass();
  expect(client.last('error')?.['error']).toMatchObject({
    type: 'server_error',
    event_id: 'mine',
  });
  expect(model.replies).toEqual([]);
  model.faults.refuseConfiguration();
  client.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Other.' } });
  await pass();
  expect(client.last('error')?.['error']).toMatchObject({ code: 'invalid_value' });
  expect(model.instructions).toBe('Be brief.');
  model.user.ends('mumble', { transcript: 'failed' });
  await pass();
  expect(client.last('conversation.item.input_audio_transcription.failed')).toBeDefined();
});

test('Gemini: announces the end with goAway, then closes and withdraws calls', async () => {
  const { call, pass } = stage();
  const { client, model } = await call('gemini-live');
  model.answers({ call: 'book_ride', callId: 'one' }, { call: 'book_ride', callId: 'two' });
  await pass(100);
  model.faults.cancelCalls(['one']);
  model.faults.goAway(2_500);
  await pass();
  expect(client.last('toolCallCancellation')).toEqual({ toolCallCancellation: { ids: ['one'] } });
  expect(client.last('goAway')).toEqual({ goAway: { timeLeft: '2.5s' } });
  expect(model.openCalls.map(({ callId }) => callId)).toEqual(['two']);
  await pass(2_500);
  expect(client.closed?.code).toBe(1011);
});

test('refuses a fault that the wire cannot produce', async () => {
  const { call } = stage();
  const { model } = await call('openai-live');
  const refusal = expect.objectContaining({ code: 'NOT_ON_THIS_WIRE' });
  expect(() => model.faults.goAway(1)).toThrow(refusal);
  expect(() => model.faults.cancelCalls()).toThrow(refusal);
  expect(() => model.faults.forgetHandles()).toThrow(refusal);
  expect(() => model.faults.refuseResponses()).toThrow(refusal);
});

test("delays the client's frames on a slow uplink without losing any", async () => {
  const { call, pass, server } = stage();
  const { model } = await call('openai-realtime');
  const socket = server.webSocket('wss://api.test/v1/realtime?model=m', {
    headers: { authorization: 'Bearer k' },
    maxPayload: 0,
    perMessageDeflate: false,
  });
  const second = await server.nextConnection();
  second.faults.stall();
  await pass();
  socket.send('{"type":"response.cancel"}', () => {});
  await pass(1_000);
  expect(socket.bufferedAmount).toBe(26);
  expect(second.received).toEqual([]);
  second.faults.stall(false);
  await pass();
  expect(socket.bufferedAmount).toBe(0);
  expect(second.received).toMatchObject([{ type: 'response.cancel' }]);
  expect(model.received).toHaveLength(1);
});
