import { connect as connectTcp } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { localVoice } from '../../../src/adapters/local-voice/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { startHarness } from './support/harness.ts';
import { scriptedModel } from './support/scripted-model.ts';
import { scriptedSpeech } from './support/scripted-speech.ts';
import { WireClient } from './support/wire-client.ts';

/** Returns the status of the response to an upgrade request. */
function upgrade(url: string, headers: Record<string, string>): Promise<number> {
  const client = new WireClient(url, { headers });
  return new Promise((resolve) => {
    client.socket.on('unexpected-response', (_request, response) => {
      resolve(response.statusCode ?? 0);
      client.socket.terminate();
    });
    client.socket.on('open', () => {
      resolve(101);
      client.socket.terminate();
    });
  });
}

describe('access', () => {
  test('creates a key at startup, and refuses connections without it', async () => {
    const { address } = await startHarness();
    expect(address.apiKey).toMatch(/^local_.{12}/);
    expect(address.url).toBe(`ws://127.0.0.1:${address.port}/v1/realtime`);

    const withoutKey = new WireClient(address.url);
    expect((await withoutKey.next('error'))['error']).toMatchObject({ code: null });
    expect(await withoutKey.closed()).toEqual({ code: 3000, reason: 'invalid_request_error' });

    const headers = { authorization: 'Bearer sk-other' };
    const liar = new WireClient(address.url, { headers });
    expect((await liar.next('error'))['error']).toMatchObject({ code: 'invalid_api_key' });
    expect(await liar.closed()).toEqual({
      code: 3000,
      reason: 'invalid_request_error.invalid_api_key',
    });
    expect(liar.events.map(({ type }) => type)).toEqual(['error']);
  });

  test('accepts the key as a subprotocol, and never sends it back', async () => {
    const { address } = await startHarness({ apiKey: 'secret-key' });
    const protocols = ['realtime', 'openai-insecure-api-key.secret-key'];
    const client = new WireClient(`${address.url}?model=gpt-realtime-2.1`, {}, protocols);
    expect((await client.next('session.created'))['session'].model).toBe('gpt-realtime-2.1');
    expect(client.socket.protocol).toBe('realtime');
    client.socket.terminate();
  });

  test('refuses all web pages except those from an allowed origin', async () => {
    const { address } = await startHarness({ allowedOrigins: ['http://127.0.0.1:8080'] });
    const authorization = `Bearer ${address.apiKey}`;
    expect(await upgrade(address.url, { authorization, origin: 'http://evil.example' })).toBe(403);
    expect(await upgrade(address.url, { authorization, origin: 'http://127.0.0.1:8080' })).toBe(
      101,
    );
  });

  test('refuses host names that merely resolve to this machine', async () => {
    const { address } = await startHarness();
    const authorization = `Bearer ${address.apiKey}`;
    expect(await upgrade(address.url, { authorization, host: 'evil.example' })).toBe(403);
    const host = `localhost:${address.port}`;
    expect(await upgrade(address.url, { authorization, host })).toBe(101);
  });

  test('serves only /v1/realtime', async () => {
    const { address } = await startHarness();
    expect(await upgrade(`ws://127.0.0.1:${address.port}/v1/other`, {})).toBe(404);
    const response = await fetch(`http://127.0.0.1:${address.port}/v1/realtime`);
    expect(response.status).toBe(404);
  });

  test('admits at most maxConnections clients', async () => {
    const { address, connect } = await startHarness({ maxConnections: 1 });
    const first = await connect();
    const authorization = `Bearer ${address.apiKey}`;
    expect(await upgrade(address.url, { authorization })).toBe(503);
    first.socket.close();
    await first.closed();
    await connect();
  });
});

describe('a hostile client', () => {
  test('loses only its own connection when it sends a frame of more than 15 MiB', async () => {
    const { connect } = await startHarness();
    const [big, other] = [await connect(), await connect()];
    big.socket.send('x'.repeat(15 * 1024 * 1024 + 1));
    expect(await big.closed()).toMatchObject({ code: 1009 });
    await other.fence();
  });

  test('does not affect other clients, even if it does not speak HTTP or disconnects early', async () => {
    const { address, connect } = await startHarness();
    for (const bytes of ['\0\u0001\u0002rubbish\r\n\r\n', 'GET /v1/realtime HTTP/1.1\r\nUpgr']) {
      await new Promise<void>((resolve) => {
        const socket = connectTcp(address.port, '127.0.0.1', () => {
          socket.write(bytes, () => socket.destroy());
        });
        socket.on('close', () => resolve());
        socket.on('error', () => undefined);
      });
    }
    await (await connect()).fence();
  });

  test('stops the model when it disconnects during a response', async () => {
    const never = new Promise(() => undefined);
    const { connect, model } = await startHarness({ answers: [['Hi. ', { until: never }]] });
    const client = await connect();
    client.send({ type: 'response.create' });
    await client.next('response.output_audio.delta');
    const stopped = new Promise((resolve) => {
      model.calls[0]?.abortSignal?.addEventListener('abort', resolve);
    });
    client.socket.terminate();
    await stopped;
  });
});

describe('the server', () => {
  const parts = { model: scriptedModel(), environment: nodeEnvironment() };

  test('starts only once, ends every connection on close, and tolerates repeated close calls', async () => {
    const speech = scriptedSpeech();
    const voice = localVoice({ ...parts, speech });
    const address = await voice.start();
    await expect(voice.start()).rejects.toMatchObject({ code: 'ALREADY_STARTED' });
    const client = await WireClient.connect(address);
    await Promise.all([voice.close(), voice.close()]);
    await client.closed();
    const late = new WireClient(address.url);
    await late.closed();
    // The engine is the app's and may serve other servers.
    expect(speech.closed).toBe(false);
  });

  test('fails to start on a port that is in use', async () => {
    const { address } = await startHarness();
    const voice = localVoice({ ...parts, speech: scriptedSpeech(), port: address.port });
    onTestFinished(() => voice.close());
    await expect(voice.start()).rejects.toMatchObject({ code: 'LISTEN_FAILED' });
  });

  test('fails to start with a voice that the engine does not have', async () => {
    const voice = localVoice({ ...parts, speech: scriptedSpeech(), voice: 'marin' });
    await expect(voice.start()).rejects.toThrow(
      'expected `voice` to be one of slt, rms, got `marin`',
    );
  });

  test.each([
    ['model', { model: undefined }],
    ['environment', { environment: undefined }],
    ['port', { port: 70_000 }],
    ['apiKey', { apiKey: 'with space' }],
    ['maxConnections', { maxConnections: 0 }],
    ['speech', { speech: 'whisper' }],
    ['allowedOrigins.0', { allowedOrigins: ['nonsense'] }],
  ])('refuses the invalid option `%s`, and names it in the error', (name, wrong) => {
    expect(() => localVoice({ ...parts, ...wrong } as never)).toThrow(`\`${name}\``);
  });
});
