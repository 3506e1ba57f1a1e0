// The rest of the wire: usage, limits, the end of a session, and further requests.

import { describe, expect, test } from 'vitest';
import { watchedExpiry } from '../../../src/adapters/openai-realtime/openai-realtime.ts';
import { createClientSecret } from '../../../src/adapters/openai-realtime/index.ts';
import { ProviderError } from '../../../src/values/errors.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { tokenServer } from '../socket/token-server.ts';
import { startCall } from './support/connected.ts';

describe('usage and limits', () => {
  test('report the tokens of a response, and of a transcription if the server counts them', async () => {
    const { client, peer } = await startCall();
    const usage = { input_tokens: 120, output_tokens: 34, total_tokens: 154 };
    peer.send({ type: 'response.created', response: { id: 'r1' } });
    peer.send({ type: 'response.done', response: { id: 'r1', status: 'completed', usage } });
    expect(await client.next('usage.reported')).toEqual({
      type: 'usage.reported',
      inputTokens: 120,
      outputTokens: 34,
      raw: { input_tokens: 120, output_tokens: 34 },
    });
    peer.send({
      type: 'conversation.item.input_audio_transcription.completed',
      item_id: 'u1',
      content_index: 0,
      transcript: 'Hello.',
      usage: { type: 'tokens', input_tokens: 7, output_tokens: 2, total_tokens: 9 },
    });
    expect(await client.next('usage.reported')).toMatchObject({ inputTokens: 7, outputTokens: 2 });
  });

  test('report cached and audio tokens, and omit malformed fields', async () => {
    const { client, peer } = await startCall();
    const ends = (usage: object): void =>
      peer.send({ type: 'response.done', response: { id: 'r1', status: 'completed', usage } });
    peer.send({ type: 'response.created', response: { id: 'r1' } });
    ends({
      input_tokens: 120,
      output_tokens: 34,
      input_token_details: { audio_tokens: 90, text_tokens: 30, cached_tokens: 64 },
      output_token_details: { audio_tokens: 30, text_tokens: 4 },
    });
    expect(await client.next('usage.reported')).toMatchObject({
      cachedInputTokens: 64,
      audioInputTokens: 90,
      audioOutputTokens: 30,
    });
    peer.send({ type: 'response.created', response: { id: 'r1' } });
    ends({ input_tokens: 1, output_tokens: 2, input_token_details: 'none' });
    const { type, raw: _raw, ...used } = await client.next('usage.reported');
    expect([type, used]).toEqual(['usage.reported', { inputTokens: 1, outputTokens: 2 }]);
  });

  test('report limits in milliseconds, and omit a limit without numbers', async () => {
    const { client, peer } = await startCall();
    peer.send({
      type: 'rate_limits.updated',
      rate_limits: [
        { name: 'tokens', limit: 40_000, remaining: 38_000, reset_seconds: 1.5 },
        { name: 'requests' },
      ],
    });
    expect(await client.next('limits.reported')).toEqual({
      type: 'limits.reported',
      limits: [{ name: 'tokens', limit: 40_000, remaining: 38_000, resetInMs: 1500 }],
    });
  });
});

describe('the end of the session', () => {
  const started = (expiresInMs: number) => {
    const environment = simulatedEnvironment();
    const said: number[] = [];
    const expiry = watchedExpiry(environment, (inMs) => said.push(inMs));
    expiry.known((environment.clock.now() + expiresInMs) / 1000);
    return { environment, said, expiry };
  };

  test('EXPIRY-1: causes one warning five minutes in advance', async () => {
    const { environment, said, expiry } = started(60 * 60_000);
    expiry.known(environment.clock.now() / 1000 + 1800);
    await environment.advance(54 * 60_000);
    expect(said).toEqual([]);
    await environment.advance(6 * 60_000);
    expect(said).toEqual([5 * 60_000]);
  });

  test('EXPIRY-1: causes an immediate warning if it is less than five minutes away', async () => {
    const { environment, said } = started(60_000);
    await environment.advance(1);
    expect(said).toEqual([60_000]);
  });

  test.each([[-1], [24 * 60 * 60_000], [Number.NaN]])(
    'EXPIRY-2: does not cause a warning when it is %d ms away',
    async (ms) => {
      const { environment, said } = started(ms);
      await environment.advance(25 * 60 * 60_000);
      expect(said).toEqual([]);
    },
  );

  test('does not cause a warning on a closed connection', async () => {
    const { environment, said, expiry } = started(60 * 60_000);
    expiry.stop();
    await environment.advance(60 * 60_000);
    expect(said).toEqual([]);
  });
});

test('adds a picture as a user message', async () => {
  const { client, peer } = await startCall();
  const data = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
  client.connection.send({ type: 'image.add', itemId: 'pic', mediaType: 'image/png', data });
  expect(await peer.next('conversation.item.create')).toMatchObject({
    item: {
      id: 'pic',
      type: 'message',
      role: 'user',
      content: [{ type: 'input_image', image_url: 'data:image/png;base64,AgM=' }],
    },
  });
});

test('keeps an out-of-band response out of the conversation, so that it cannot be truncated', async () => {
  const { client, peer } = await startCall();
  const { connection } = client;
  connection.send({ type: 'response.request', responseKey: 'filler', outOfBand: true });
  expect(await peer.next('response.create')).toMatchObject({
    response: { conversation: 'none', metadata: { response_key: 'filler' } },
  });
  peer.send({
    type: 'response.created',
    response: { id: 'r1', metadata: { response_key: 'filler' } },
  });
  peer.send({
    type: 'response.output_audio.delta',
    response_id: 'r1',
    item_id: 'a1',
    output_index: 0,
    content_index: 0,
    delta: Buffer.alloc(960).toString('base64'),
  });
  peer.send({ type: 'response.done', response: { id: 'r1', status: 'completed' } });
  expect(await client.next('response.ended')).toMatchObject({
    responseKey: 'filler',
    audio: [{ itemId: 'a1', durationMs: 20 }],
  });
  connection.send({ type: 'playout.truncate', itemId: 'a1', playedMs: 10 });
  connection.send({ type: 'item.delete', itemId: 'after' });
  expect(await peer.next('conversation.item.delete')).toMatchObject({ item_id: 'after' });
  expect(peer.received.some(({ type }) => type === 'conversation.item.truncate')).toBe(false);
});

test('sends additional session fields, but gives its own fields precedence', async () => {
  const session = { truncation: 'disabled', tracing: 'auto', output_modalities: ['text'] };
  const { peer } = await startCall({ session });
  const [first] = peer.received;
  expect(first).toMatchObject({
    type: 'session.update',
    session: { truncation: 'disabled', tracing: 'auto', output_modalities: ['audio'] },
  });
});

describe('a client secret', () => {
  async function started(status: number, answer: string) {
    const { requests, host } = await tokenServer(status, answer);
    const options = { apiKey: 'sk-proj-secret-of-ours', url: `ws://${host}/v1/realtime` };
    return { requests, options };
  }

  test("comes from an HTTP request with the session's options", async () => {
    const { requests, options } = await started(200, '{"value":"ek_1","expires_at":1800000000}');
    const made = await createClientSecret({
      options: { ...options, voice: 'cedar' },
      configuration: { instructions: 'Be brief.', tools: [] },
      expiresInSeconds: 120,
    });
    expect(made).toEqual({ value: 'ek_1', expiresAt: new Date(1_800_000_000_000) });
    expect(requests[0]?.request.url).toBe('/v1/realtime/client_secrets');
    expect(requests[0]?.request.headers.authorization).toBe('Bearer sk-proj-secret-of-ours');
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({
      expires_after: { anchor: 'created_at', seconds: 120 },
      session: {
        type: 'realtime',
        model: 'gpt-realtime-2.1',
        instructions: 'Be brief.',
        audio: { output: { voice: 'cedar' } },
      },
    });
  });

  test.each([
    [401, '{"error":{"message":"Incorrect API key: sk-proj-secret-of-ours"}}', false],
    [503, 'busy', true],
    [200, '{"session":{}}', false],
  ])('fails with HTTP %i %s', async (status, answer, retryable) => {
    const { options } = await started(status, answer);
    const error = await createClientSecret({ options }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ code: 'TOKEN_REFUSED', retryable });
    expect(String(error)).not.toContain('secret-of-ours');
  });

  test('requires a valid lifetime, and names it in the error', async () => {
    await expect(createClientSecret({ expiresInSeconds: 5 })).rejects.toThrow('expiresInSeconds');
  });
});
