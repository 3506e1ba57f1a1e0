import { describe, expect, test } from 'vitest';
import { createEphemeralToken } from '../../../src/adapters/gemini-live/index.ts';
import { ProviderError } from '../../../src/values/errors.ts';
import { tokenServer } from '../socket/token-server.ts';
import { configuration } from '../support/configuration.ts';
import { API_KEY } from './support/call.ts';

async function started(status: number, answer: string) {
  const { requests, host } = await tokenServer(status, answer);
  return { requests, access: { apiKey: API_KEY, baseUrl: `http://${host}/v1beta` } };
}

test('requests a token with the key in a header', async () => {
  const { requests, access } = await started(
    200,
    '{"name":"auth_tokens/1","expireTime":"2026-01-01T00:30:00Z"}',
  );
  expect(await createEphemeralToken({ ...access, uses: 3 })).toEqual({
    token: 'auth_tokens/1',
    expiresAt: new Date('2026-01-01T00:30:00Z'),
  });
  const [made] = requests;
  expect(made?.request.method).toBe('POST');
  expect(made?.request.url).toBe('/v1alpha/auth_tokens');
  expect(made?.request.headers['x-goog-api-key']).toBe(API_KEY);
  expect(JSON.parse(made?.body ?? '')).toEqual({ uses: 3 });
});

test('EPHEMERAL-TOKEN-1: restricts a token to the options of a session', async () => {
  const { requests, access } = await started(200, '{"name":"auth_tokens/1"}');
  await createEphemeralToken({
    ...access,
    expiresAt: new Date('2026-01-01T00:30:00Z'),
    beginsUntil: new Date('2026-01-01T00:01:00Z'),
    locked: { options: { voice: 'Kore' }, configuration },
  });
  expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({
    expireTime: '2026-01-01T00:30:00.000Z',
    newSessionExpireTime: '2026-01-01T00:01:00.000Z',
    bidiGenerateContentSetup: {
      model: 'models/gemini-3.8-live',
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      generationConfig: {
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      },
    },
  });
});

describe('createEphemeralToken', () => {
  test.each([
    [400, `API key ${API_KEY} not valid`, false],
    [429, 'Slow down', true],
    [503, 'Later', true],
    [200, '{"name":""}', false],
    [200, 'no json', false],
  ])('rejects on status %i: %s', async (status, answer, retryable) => {
    const { access } = await started(status, answer);
    const error = await createEphemeralToken(access).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ code: 'TOKEN_REFUSED', retryable });
    expect(String(error)).not.toContain(API_KEY);
  });

  test('rejects when the server cannot be reached', async () => {
    const failing = () => Promise.reject(new Error(`no way to ${API_KEY}`));
    const error = await createEphemeralToken({ apiKey: API_KEY, fetch: failing }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'TOKEN_REFUSED', retryable: true });
    expect(String(error)).not.toContain(API_KEY);
  });

  test('rejects with the abort reason', async () => {
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await expect(createEphemeralToken({ apiKey: API_KEY, signal })).rejects.toBe(reason);
  });

  test.each([
    [{ uses: -1 }, /uses/],
    [{ locked: { options: { model: 7 }, configuration } }, /`model`/],
  ])('refuses wrong options, and names them in the error: %j', async (options, message) => {
    await expect(createEphemeralToken({ apiKey: API_KEY, ...(options as object) })).rejects.toThrow(
      message,
    );
  });
});
