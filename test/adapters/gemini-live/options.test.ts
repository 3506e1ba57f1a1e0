import { beforeEach, describe, expect, test, vi } from 'vitest';
import { geminiLive, type GeminiLiveOptions } from '../../../src/adapters/gemini-live/index.ts';
import { API_KEY_VARIABLES } from '../../../src/adapters/gemini-live/address.ts';
import { resolveOptions } from '../../../src/adapters/gemini-live/options.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

beforeEach(() => {
  for (const name of API_KEY_VARIABLES) vi.stubEnv(name, undefined);
  vi.stubEnv('GOOGLE_GEMINI_BASE_URL', undefined);
  return () => vi.unstubAllEnvs();
});

const keyOf = (options: GeminiLiveOptions = {}) => resolveOptions(options).address().secret;

describe('the key', () => {
  test('comes from the first variable that is set, unless the option provides it', () => {
    vi.stubEnv('GEMINI_API_KEY', 'gemini');
    expect(keyOf()).toBe('gemini');
    vi.stubEnv('GOOGLE_API_KEY', 'google');
    expect(keyOf()).toBe('google');
    vi.stubEnv('GOOGLE_GENERATIVE_AI_API_KEY', 'ai-sdk');
    expect(keyOf()).toBe('ai-sdk');
    vi.stubEnv('GOOGLE_GENERATIVE_AI_API_KEY', '');
    expect(keyOf()).toBe('google');
    expect(keyOf({ apiKey: 'mine' })).toBe('mine');
  });

  test('gets read from the current environment at each connection', () => {
    vi.stubEnv('GEMINI_API_KEY', 'old');
    const settings = resolveOptions({});
    vi.stubEnv('GEMINI_API_KEY', 'new');
    expect(settings.address().secret).toBe('new');
  });

  test('causes an error that names the variables if it is missing at construction', () => {
    expect(() => geminiLive()).toThrow(ConfigurationError);
    expect(() => geminiLive()).toThrow(
      /GOOGLE_GENERATIVE_AI_API_KEY, GOOGLE_API_KEY, GEMINI_API_KEY/,
    );
  });

  test('becomes optional when there is an ephemeral token', () => {
    expect(keyOf({ ephemeralToken: 'auth_tokens/1' })).toBe('auth_tokens/1');
  });
});

describe('the URL', () => {
  const urlOf = (options: GeminiLiveOptions) =>
    resolveOptions({ apiKey: 'k', ...options }).address().url;
  const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

  test.each([
    ['http://127.0.0.1:8080', `ws://127.0.0.1:8080${path}`],
    ['https://eu.example.com/gemini/', `wss://eu.example.com/gemini${path}`],
    [
      'https://generativelanguage.googleapis.com/v1beta',
      `wss://generativelanguage.googleapis.com${path}`,
    ],
  ])('respects GOOGLE_GEMINI_BASE_URL %s', (baseUrl, url) => {
    vi.stubEnv('GOOGLE_GEMINI_BASE_URL', baseUrl);
    expect(urlOf({})).toBe(url);
    vi.stubEnv('GOOGLE_GEMINI_BASE_URL', 'https://other.example.com');
    expect(urlOf({ baseUrl })).toBe(url);
  });

  test('accepts a complete URL unchanged', () => {
    expect(urlOf({ url: 'https://proxy.example.com/live?x=1' })).toBe(
      'wss://proxy.example.com/live?x=1',
    );
    expect(urlOf({ url: 'ws://127.0.0.1/live?x=1', ephemeralToken: 'auth_tokens/1' })).toBe(
      'ws://127.0.0.1/live?x=1&access_token=auth_tokens/1',
    );
  });

  test.each(['ftp://example.com', 'not an address'])('refuses %s', (url) => {
    expect(() => urlOf({ url })).toThrow(/`url` to be an address/);
  });

  test('hides a secret in the error for an invalid URL', () => {
    const baseUrl = 'ftp://user:secret@example.com?key=secret';
    expect(() => urlOf({ baseUrl })).toThrow(/ftp:\/\/example\.com/);
    expect(() => urlOf({ baseUrl })).not.toThrow(/secret/);
  });
});

describe('options', () => {
  const wrong = (options: unknown) => () =>
    geminiLive({ apiKey: 'k', ...(options as GeminiLiveOptions) });

  test.each([
    [{ modle: 'x' }, /modle/],
    [{ temperature: 3 }, /`temperature`/],
    [{ voiceActivity: { silenceDurationMs: -1 } }, /`voiceActivity\.silenceDurationMs`/],
    [{ compression: true }, /`compression`/],
    [{ webSocket: 'ws' }, /`webSocket`: expected a function/],
  ])('refuses %j, and names it in the error', (options, message) => {
    expect(wrong(options)).toThrow(message);
  });

  test.each([
    ['gemini-3.8-live', { level: 'low' }, /`thinking\.level`: gemini-3\.8-live does not take one/],
    ['gemini-3.8-live', { budget: 0 }, /`thinking\.budget`/],
    ['gemini-3.1-flash-live-preview', { budget: 0 }, /`thinking\.budget`/],
    ['gemini-2.5-flash-native-audio-latest', { level: 'low' }, /`thinking\.level`/],
    ['gemini-3.8-live-extended-thinking', { level: 'low', budget: 9 }, /got both/],
  ])('model %s: refuses the thinking option %j', (model, thinking, message) => {
    expect(wrong({ model, thinking })).toThrow(message);
  });

  test.each([
    ['gemini-3.8-live', undefined, undefined],
    ['gemini-3.8-live', {}, undefined],
    ['gemini-3.8-live-extended-thinking', undefined, { level: 'low' }],
    ['gemini-3.8-live-extended-thinking', { budget: 9 }, { budget: 9 }],
    ['gemini-3.1-flash-live-preview', { level: 'minimal' }, { level: 'minimal' }],
    ['gemini-9-live', { level: 'low' }, { level: 'low' }],
  ] as const)('model %s: resolves the thinking option %j', (model, thinking, expected) => {
    expect(resolveOptions({ apiKey: 'k', model, thinking }).thinking).toEqual(expected);
  });
});
