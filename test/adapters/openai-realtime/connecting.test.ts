import { describe, expect, onTestFinished, test } from 'vitest';
import {
  openaiRealtime,
  type OpenaiRealtimeOptions,
} from '../../../src/adapters/openai-realtime/index.ts';
import { decodePcm16Base64 } from '../../../src/voice/audio/pcm16.ts';
import { configuration } from '../support/configuration.ts';
import { API_KEY, connectTo, startCall, userAudio } from './support/connected.ts';
import { startFakeServer, type FakeServerOptions } from './support/fake-server.ts';

function deferred() {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

async function startServer(options?: FakeServerOptions) {
  const server = await startFakeServer(options);
  onTestFinished(() => server.close());
  return server;
}

async function firstEvent(options: OpenaiRealtimeOptions = {}) {
  const server = await startServer();
  connectTo(server.url, options);
  const peer = await server.nextPeer();
  const event = await peer.next('session.update');
  return { peer, event };
}

describe('the upgrade', () => {
  test('sends the key in the Authorization header, the model in the URL, and the configured headers', async () => {
    const { peer } = await firstEvent({
      model: 'gpt-realtime-2.1-mini',
      headers: { 'OpenAI-Project': 'proj_1', authorization: 'Bearer not-mine' },
    });
    expect(peer.request.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(peer.request.headers['openai-project']).toBe('proj_1');
    expect(peer.request.url).toBe('/v1/realtime?model=gpt-realtime-2.1-mini');
    expect(JSON.stringify(peer.received)).not.toContain(API_KEY);
  });
});

describe('SOCKET-CONNECTION-3: session.update, which is the first message', () => {
  test('turns off both flags of the turn detector', async () => {
    const { event } = await firstEvent();
    expect(event).toEqual({
      type: 'session.update',
      event_id: expect.any(String),
      session: {
        type: 'realtime',
        output_modalities: ['audio'],
        instructions: 'Be brief.',
        tools: [{ type: 'function', ...configuration.tools[0] }],
        audio: {
          input: {
            format: { type: 'audio/pcm', rate: 24_000 },
            transcription: { model: 'gpt-4o-mini-transcribe' },
            // The server waits for the rest of an unfinished sentence.
            turn_detection: {
              type: 'semantic_vad',
              create_response: false,
              interrupt_response: false,
            },
          },
          output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'marin' },
        },
      },
    });
  });

  test('requests text if the app has its own voice', async () => {
    const { event } = await firstEvent({ output: 'text' });
    expect(event).toMatchObject({ session: { output_modalities: ['text'] } });
    const { capabilities } = openaiRealtime({ apiKey: API_KEY, output: 'text' });
    // Only audio can be truncated.
    expect(capabilities).toMatchObject({ output: 'text', truncatesAudio: false });
  });

  test('maps every option to its field', async () => {
    const { event } = await firstEvent({
      voice: { id: 'voice_1' },
      speed: 1.2,
      transcription: { language: 'en', prompt: 'rides' },
      turnDetection: {
        type: 'server_vad',
        threshold: 0.6,
        prefixPaddingMs: 200,
        silenceDurationMs: 400,
      },
      noiseReduction: 'far_field',
      reasoningEffort: 'low',
      maxOutputTokens: 500,
    });
    expect(event.session).toMatchObject({
      reasoning: { effort: 'low' },
      max_output_tokens: 500,
      audio: {
        input: {
          transcription: { model: 'gpt-4o-mini-transcribe', language: 'en', prompt: 'rides' },
          turn_detection: {
            type: 'server_vad',
            threshold: 0.6,
            prefix_padding_ms: 200,
            silence_duration_ms: 400,
            create_response: false,
            interrupt_response: false,
          },
          noise_reduction: { type: 'far_field' },
        },
        output: { voice: { id: 'voice_1' }, speed: 1.2 },
      },
    });
  });

  test('requests semantic turn detection', async () => {
    const { event } = await firstEvent({
      turnDetection: { type: 'semantic_vad', eagerness: 'low' },
    });
    expect(event.session.audio?.input).toMatchObject({
      turn_detection: {
        type: 'semantic_vad',
        eagerness: 'low',
        create_response: false,
        interrupt_response: false,
      },
    });
  });
});

describe('the readiness of a connection', () => {
  test('keeps commands in order but only the newest audio until the connection is ready', async () => {
    const server = await startServer();
    const client = connectTo(server.url, { maxBufferedAudioMs: 200 });
    client.send({ type: 'message.add', itemId: 'item_1', role: 'user', text: 'hello' });
    for (const mark of [1, 2, 3]) client.connection.sendAudio(userAudio(mark));
    const peer = await server.nextPeer();
    await peer.next('session.update');
    client.send({ type: 'item.delete', itemId: 'item_1' });
    client.send({ type: 'response.request', responseKey: 'answer' });
    expect(peer.received.map(({ type }) => type)).toEqual(['session.update']);
    expect(client.events).toEqual([]);

    peer.send({ type: 'session.updated', session: { type: 'realtime' } });
    await client.next('transport.ready');
    const appended = await peer.next('input_audio_buffer.append');
    await peer.next('input_audio_buffer.append');
    expect(peer.received.map(({ type }) => type)).toEqual([
      'session.update',
      'conversation.item.create',
      'conversation.item.delete',
      'response.create',
      'input_audio_buffer.append',
      'input_audio_buffer.append',
    ]);
    expect(decodePcm16Base64(appended.audio)[0]).toBe(2);
    expect(client.connection.diagnostics.droppedAudio).toEqual({ frames: 1, durationMs: 100 });
    expect(client.events).toEqual([{ type: 'transport.ready' }]);
  });

  test('needs session.updated, not only session.created', async () => {
    const server = await startServer();
    const client = connectTo(server.url);
    const peer = await server.nextPeer();
    peer.send({ type: 'session.created', session: { type: 'realtime' } });
    // The arrival of a later event proves that session.created has been handled.
    peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 1, item_id: 'i' });
    await client.next('utterance.ended');
    expect(client.events.map(({ type }) => type)).toEqual(['utterance.ended']);
  });

  test('occurs only once', async () => {
    const { client, peer } = await startCall();
    client.send({ type: 'session.configure', configuration });
    await peer.next('session.update');
    peer.send({ type: 'session.updated', session: { type: 'realtime' } });
    peer.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 1, item_id: 'i' });
    await client.next('utterance.ended');
    expect(client.events.filter(({ type }) => type === 'transport.ready')).toHaveLength(1);
  });

  test('SOCKET-CONNECTION-4: fails when too many bytes are buffered', async () => {
    const server = await startServer();
    const client = connectTo(server.url);
    const text = 'x'.repeat(4 * 1024 * 1024);
    for (let n = 0; n < 4; n += 1) {
      client.send({ type: 'message.add', itemId: `item_${n}`, role: 'user', text });
    }
    expect(await client.next('transport.closed')).toMatchObject({
      reason: expect.stringContaining('too slow'),
      retryable: true,
    });
  });
});

describe('transport.closed', () => {
  test('reports a failure after an upgrade that is never answered', async () => {
    const upgraded = deferred();
    const server = await startServer({ onUpgrade: () => upgraded.resolve() });
    const client = connectTo(server.url, { connectTimeoutMs: 700 });
    await upgraded.promise;
    client.environment.advance(699);
    expect(client.events).toEqual([]);
    client.environment.advance(1);
    expect(await client.next('transport.closed')).toEqual({
      type: 'transport.closed',
      code: null,
      reason: 'Not ready after 700 ms: no connection',
      retryable: true,
    });
    await client.completed;
  });

  test('reports a failure after a session.update that is never answered', async () => {
    const server = await startServer();
    const client = connectTo(server.url);
    const peer = await server.nextPeer();
    await peer.next('session.update');
    client.environment.advance(15_000);
    expect(await client.next('transport.closed')).toMatchObject({
      reason: 'Not ready after 15000 ms: no answer to the configuration',
      retryable: true,
    });
  });

  test.each([
    ['invalid_request_error', 'invalid_value', false],
    ['server_error', null, true],
    ['invalid_request_error', 'rate_limit_exceeded', true],
  ])(
    'reports a failure after a session.update that is refused: %s, %s',
    async (type, code, retryable) => {
      const server = await startServer();
      const client = connectTo(server.url);
      const peer = await server.nextPeer();
      const update = await peer.next('session.update');
      const error = { type, code, message: 'No voice marin' };
      // Some servers do not name the refused event.
      const eventId = retryable ? {} : { event_id: update.event_id };
      peer.send({ type: 'error', error: { ...error, ...eventId } });
      expect(await client.next('transport.closed')).toMatchObject({
        reason: 'The server refused the session: No voice marin',
        retryable,
      });
      expect(client.events.map((event) => event.type)).toEqual([
        'transport.error',
        'transport.closed',
      ]);
    },
  );

  test.each([
    [401, 'invalid_api_key', `Incorrect API key provided: ${API_KEY}. Get one`, false],
    [403, 'model_access', 'Not for you', false],
    [429, 'rate_limit_exceeded', 'Slow down', true],
    [503, 'overloaded', 'Later', true],
  ])(
    'reports a failure after HTTP %i with its reason, but without the key',
    async (status, code, message, retryable) => {
      const body = JSON.stringify({ error: { code, message } });
      const server = await startServer({
        onUpgrade: (_, socket) =>
          socket.end(
            `HTTP/1.1 ${status} No\r\nContent-Type: application/json\r\n` +
              `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
          ),
      });
      const client = connectTo(server.url);
      const closed = await client.next('transport.closed');
      expect(closed).toMatchObject({ code: status, retryable });
      expect(closed.reason).toContain(code);
      expect(closed.reason).not.toContain(API_KEY);
      await client.completed;
      await client.connection.close();
    },
  );

  test('names the option when the server refuses the transcription model', async () => {
    const server = await startServer();
    const client = connectTo(server.url);
    const peer = await server.nextPeer();
    await peer.next('session.update');
    const message = 'Model "gpt-4o-mini-transcribe" is not supported.';
    const error = { type: 'invalid_request_error', code: 'invalid_model', message };
    peer.send({ type: 'error', error });
    expect(await client.next('transport.closed')).toMatchObject({
      reason: `The server refused the session: ${message} (openaiRealtime({ transcription: { model: 'gpt-4o-mini-transcribe' } }))`,
      retryable: false,
    });
  });

  test('reports a failure after a refusal whose body never ends', async () => {
    const refused = deferred();
    const server = await startServer({
      onUpgrade: (_, socket) => {
        socket.write('HTTP/1.1 500 No\r\nContent-Length: 999\r\n\r\npartial');
        refused.resolve();
      },
    });
    const client = connectTo(server.url);
    await refused.promise;
    client.environment.advance(15_000);
    expect(await client.next('transport.closed')).toMatchObject({ retryable: true });
  });

  test('reports a failure after a refused connection', async () => {
    const server = await startFakeServer();
    await server.close();
    const client = connectTo(server.url);
    expect(await client.next('transport.closed')).toMatchObject({
      code: null,
      reason: expect.stringContaining('ECONNREFUSED'),
      retryable: true,
    });
  });

  test('reports a failure when the factory throws', async () => {
    const client = connectTo('ws://127.0.0.1:1', {
      webSocket: () => {
        throw new TypeError('no sockets today');
      },
    });
    expect(await client.next('transport.closed')).toMatchObject({
      reason: 'Could not connect: no sockets today',
      retryable: false,
    });
  });

  test('reports a failure for a key that is not a valid header, without showing the key', async () => {
    const server = await startServer();
    const client = connectTo(server.url, { apiKey: 'sk-broken\nkey-0123456789' });
    const closed = await client.next('transport.closed');
    expect(closed.retryable).toBe(false);
    expect(closed.reason).not.toContain('0123456789');
  });
});
