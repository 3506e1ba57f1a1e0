import { describe, expect, test } from 'vitest';
import { startInstructions } from '../../../src/adapters/openai-live/model-words.ts';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { configuration } from '../support/configuration.ts';
import { API_KEY, dial, startCall, userFrame } from './support/called.ts';

describe('the upgrade', () => {
  test('contains the key and the configured headers, but no query', () => {
    const { peer } = dial({ headers: { 'OpenAI-Project': 'proj_1' } });
    expect(peer.url).toBe('wss://api.openai.com/v1/live/sessions');
    expect(peer.options.headers).toEqual({
      'OpenAI-Project': 'proj_1',
      Authorization: `Bearer ${API_KEY}`,
    });
  });
});

describe('session.start', () => {
  test('comes first, with all settings that cannot change later', () => {
    const { peer } = dial();
    peer.opens();
    expect(peer.sent).toEqual([
      {
        type: 'session.start',
        event_id: 'event_1',
        session: {
          model: 'gpt-live-1',
          instructions: startInstructions(configuration),
          audio: { format: { type: 'audio/pcm', rate: 24_000 }, output: { voice: 'marin' } },
          delegation: { type: 'client' },
          store: false,
        },
      },
    ]);
  });

  test('maps every option to its field', () => {
    const { peer, transport } = dial({
      model: 'gpt-live-2',
      voice: { id: 'voice_1' },
      sampleRateHz: 16_000,
      acknowledgementDelayMs: 250,
      store: true,
    });
    peer.opens();
    expect(peer.sent[0]).toMatchObject({
      session: {
        model: 'gpt-live-2',
        audio: {
          format: { type: 'audio/pcm', rate: 16_000 },
          output: { voice: { id: 'voice_1' } },
        },
        delegation: { type: 'client', acknowledgement_delay_ms: 250 },
        store: true,
      },
    });
    expect(transport.capabilities).toMatchObject({
      inputSampleRateHz: 16_000,
      outputSampleRateHz: 16_000,
      resumes: true,
    });
  });

  test('describes the tools in the instructions, because the protocol does not support tools', () => {
    const text = startInstructions(configuration);
    expect(text).toMatch(/^Be brief\.\n/);
    expect(text).toContain('- book_ride: Books a ride (details: to, when)');
    // On this wire, the model itself says "One moment."
    expect(text).toContain('acknowledged for you');
    expect(startInstructions({ ...configuration, tools: [] })).toContain('Do not delegate');
  });
});

describe('readiness', () => {
  test('arrives with session.started, followed in order by earlier messages and audio', () => {
    const call = dial();
    call.send({ type: 'message.add', itemId: 'a', role: 'system', text: 'one' });
    call.connection.sendAudio(userFrame(5, 100));
    call.peer.opens();
    call.send({ type: 'message.add', itemId: 'b', role: 'system', text: 'two' });
    expect(call.news()).toEqual([]);
    call.peer.starts();
    expect(call.events).toEqual([{ type: 'transport.ready' }]);
    expect(call.peer.sent.map(({ type }) => type)).toEqual([
      'session.start',
      'session.thinking.append',
      'session.thinking.append',
      'session.input_audio.append',
    ]);
    expect(call.peer.told.map(([, , text]) => text)).toEqual(['one', 'two']);
  });

  test('includes the conversation history in the first event', () => {
    const call = dial(
      {},
      {
        history: () => [
          { type: 'message.add', itemId: 'a', role: 'user', text: 'A ride, please.' },
          { type: 'message.add', itemId: 'b', role: 'assistant', text: 'Where to?' },
          { type: 'tool.recall', callId: 'c1', name: 'book_ride', arguments: '{"to":"Rome"}' },
          { type: 'tool.answer', callId: 'c1', output: 'Booked.' },
          { type: 'message.add', itemId: 'c', role: 'system', text: '[SYSTEM: Be quick.]' },
        ],
      },
    );
    call.peer.opens();
    expect(call.peer.sent[0]).toMatchObject({
      session: {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'A ride, please.' }] },
          { role: 'assistant', content: [{ type: 'output_text', text: 'Where to?' }] },
          {
            role: 'user',
            content: [{ text: expect.stringContaining(String.raw`{\"to\":\"Rome\"}`) }],
          },
          { role: 'user', content: [{ text: expect.stringContaining('Booked.') }] },
          { role: 'developer', content: [{ text: '[SYSTEM: Be quick.]' }] },
        ],
      },
    });
    call.peer.starts();
    expect(call.events).toEqual([{ type: 'transport.ready', told: true }]);
  });

  test('fails if the session is refused, and reports whether to retry', () => {
    const refused = dial();
    refused.peer.opens();
    refused.peer.refuses({ code: 'model_not_found', message: `No model for ${API_KEY}` });
    expect(refused.of('transport.closed')).toEqual([
      {
        type: 'transport.closed',
        code: null,
        reason: 'The server refused the session: No model for [redacted]',
        retryable: false,
      },
    ]);
    const busy = dial();
    busy.peer.opens();
    busy.peer.refuses({ type: 'server_error', code: 'overloaded', message: 'Later.' });
    expect(busy.of('transport.closed')).toMatchObject([{ retryable: true }]);
  });

  test('fails with a retryable error if the session does not start in time', async () => {
    const call = dial({ connectTimeoutMs: 1000 });
    call.peer.opens();
    await call.advance(1000);
    expect(call.of('transport.closed')).toMatchObject([{ retryable: true }]);
  });
});

describe('the input clock of a session', () => {
  test('INPUT-CLOCK-1: sends silence in real time if the user sends nothing', async () => {
    const call = startCall();
    await call.advance(1000);
    const { audioFrames } = call.peer;
    expect(audioFrames).toHaveLength(8);
    const samples = decodePcm16Base64(audioFrames[0]?.audio ?? '');
    expect(samples).toHaveLength(2400);
    expect(samples.every((sample) => sample === 0)).toBe(true);
    expect(call.environment.pendingTimers).toBe(0);
  });

  test('INPUT-CLOCK-1: does not add silence to audio that is merely late', async () => {
    const call = startCall();
    for (let index = 0; index < 5; index += 1) {
      call.connection.sendAudio(userFrame(7, 250));
      await call.advance(250);
    }
    expect(call.peer.audioFrames).toHaveLength(5);
  });

  test("INPUT-CLOCK-2: counts silence separately from the user's audio", async () => {
    const call = startCall();
    call.connection.sendAudio(userFrame(7, 200));
    // The user speaks for 200 ms, is silent for 800 ms, and speaks again.
    await call.advance(1000);
    expect(call.peer.audioFrames).toHaveLength(9);
    call.connection.sendAudio(userFrame(7, 200));
    call.peer.hears('Hello', 1000);
    expect(call.news()).toContain('user begins at 200');
  });

  test('stops with the session', async () => {
    const call = startCall();
    const closed = call.connection.close();
    await call.advance(10_000);
    await closed;
    expect(call.peer.audioFrames).toEqual([]);
  });
});
