import { afterEach, describe, expect, test, vi } from 'vitest';
import { openaiLive, type OpenaiLiveOptions } from '../../../src/adapters/openai-live/index.ts';
import { API_KEY, dial } from './support/called.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('the key', () => {
  test('comes from OPENAI_API_KEY, which is read again for each connection', () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-from-the-environment');
    const { peer } = dial({ apiKey: undefined as unknown as string });
    expect(peer.options.headers).toMatchObject({
      Authorization: 'Bearer sk-from-the-environment',
    });
  });

  test('causes an error at construction when the key is missing', () => {
    vi.stubEnv('OPENAI_API_KEY', '');
    expect(() => openaiLive()).toThrowError(
      expect.objectContaining({
        code: 'MISSING_API_KEY',
        message: expect.stringMatching(/openaiLive/),
      }),
    );
  });
});

describe('the URL', () => {
  test.each([
    ['https://example.test/v1/live/sessions', 'wss://example.test/v1/live/sessions'],
    ['http://127.0.0.1:8080/live', 'ws://127.0.0.1:8080/live'],
  ])('becomes a WebSocket URL: %s', (url, address) => {
    expect(dial({ url }).peer.url).toBe(address);
  });

  test('comes from OPENAI_BASE_URL if it is set', () => {
    vi.stubEnv('OPENAI_BASE_URL', 'https://proxy.test/v1/');
    expect(dial().peer.url).toBe('wss://proxy.test/v1/live/sessions');
  });

  test('hides the secret in the error for an invalid URL', () => {
    expect(() => openaiLive({ apiKey: API_KEY, url: 'ftp://x/?key=secret' })).toThrowError(
      expect.objectContaining({
        code: 'INVALID_URL',
        message: expect.not.stringMatching(/secret/),
      }),
    );
  });
});

test.each<[string, unknown]>([
  ['sampleRateHz', { sampleRateHz: 8000 }],
  ['voice', { voice: { name: 'marin' } }],
  ['turns.responseSilenceMs', { turns: { responseSilenceMs: 0 } }],
  ['turns', { turns: { other: 1 } }],
  ['acknowledgementDelayMs', { acknowledgementDelayMs: -1 }],
  ['other', { other: true }],
])('refuses a wrong %s by name', (name, options) => {
  expect(() => openaiLive({ apiKey: API_KEY, ...(options as OpenaiLiveOptions) })).toThrowError(
    expect.objectContaining({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(name.split('.').at(-1) ?? ''),
    }),
  );
});

test("declares the protocol's capabilities", () => {
  expect(dial().transport).toMatchObject({
    name: 'openai-live',
    capabilities: {
      utterances: 'inferred',
      responds: 'by_itself',
      toolCalls: 'delegation',
      truncatesAudio: false,
      updatesSession: false,
    },
  });
});
