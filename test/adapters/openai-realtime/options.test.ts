import { beforeEach, describe, expect, test, vi } from 'vitest';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import {
  resolveOptions,
  type OpenaiRealtimeOptions,
} from '../../../src/adapters/openai-realtime/options.ts';
import { loadWebSocketFactory } from '../../../src/adapters/socket/web-socket.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

beforeEach(() => {
  vi.stubEnv('OPENAI_API_KEY', 'sk-from-environment');
  vi.stubEnv('OPENAI_BASE_URL', undefined);
  return () => vi.unstubAllEnvs();
});

describe('uses little memory, even if a peer invents types', () => {
  test('comes from the option, or from the environment at each connection', () => {
    expect(resolveOptions({ apiKey: 'sk-option' }).apiKey()).toBe('sk-option');
    const settings = resolveOptions({});
    expect(settings.apiKey()).toBe('sk-from-environment');
    vi.stubEnv('OPENAI_API_KEY', 'sk-rotated');
    expect(settings.apiKey()).toBe('sk-rotated');
  });

  test.each([undefined, ''])(
    'throws at construction, and names the missing environment variable in the error (%j)',
    (key) => {
      vi.stubEnv('OPENAI_API_KEY', key);
      expect(() => openaiRealtime()).toThrow(ConfigurationError);
      expect(() => openaiRealtime()).toThrow(/OPENAI_API_KEY/);
    },
  );
});

describe('the URL', () => {
  const addressOf = (options: OpenaiRealtimeOptions) => resolveOptions(options).url();

  test('points to OpenAI and contains the default model', () => {
    expect(addressOf({})).toBe('wss://api.openai.com/v1/realtime?model=gpt-realtime-2.1');
    expect(addressOf({ model: 'gpt-realtime-2.1-mini' })).toContain('model=gpt-realtime-2.1-mini');
  });

  test.each([
    ['http://127.0.0.1:11434/v1', 'ws://127.0.0.1:11434/v1/realtime?model=gpt-realtime-2.1'],
    ['https://eu.example.com/v1/', 'wss://eu.example.com/v1/realtime?model=gpt-realtime-2.1'],
  ])('respects OPENAI_BASE_URL %s', (baseUrl, address) => {
    vi.stubEnv('OPENAI_BASE_URL', baseUrl);
    expect(addressOf({})).toBe(address);
  });

  test("comes from the option first, and keeps the model that the option's URL contains", () => {
    vi.stubEnv('OPENAI_BASE_URL', 'https://other.example.com/v1');
    expect(addressOf({ url: 'ws://127.0.0.1:1/rt?model=mine&x=1' })).toBe(
      'ws://127.0.0.1:1/rt?model=mine&x=1',
    );
  });

  test.each(['not a url', 'ftp://example.com', '/v1/realtime'])('causes an error for %s', (url) => {
    expect(() => openaiRealtime({ url })).toThrow(
      /`url` to be a wss:, ws:, https: or http: address/,
    );
    vi.stubEnv('OPENAI_BASE_URL', url);
    expect(() => openaiRealtime()).toThrow(/`OPENAI_BASE_URL`/);
  });

  test('appears in the error without its secrets', () => {
    const shown = (() => {
      try {
        openaiRealtime({ url: 'ftp://user:hunter2@example.com/rt?api-key=hunter3' });
      } catch (error) {
        return String(error);
      }
      return 'accepted';
    })();
    expect(shown).toContain('ftp://example.com/rt');
    expect(shown).not.toMatch(/hunter/);
  });
});

describe('other options', () => {
  test('use their defaults even when set to undefined', () => {
    const settings = resolveOptions({
      voice: undefined,
      turnDetection: undefined,
      transcription: { language: 'de', model: undefined },
    });
    expect(settings).toMatchObject({
      voice: 'marin',
      turnDetection: { type: 'semantic_vad' },
      transcription: { model: 'gpt-4o-mini-transcribe', language: 'de' },
      maxBufferedAudioMs: 5_000,
      connectTimeoutMs: 15_000,
      keepAliveMs: 20_000,
    });
    expect(resolveOptions({ keepAliveMs: null }).keepAliveMs).toBeNull();
  });

  test.each([
    [{ speed: 3 }, 'speed'],
    [{ turnDetection: { type: 'none' } }, 'turnDetection.type'],
    [{ turnDetection: { type: 'server_vad', create_response: true } }, 'turnDetection'],
    [{ maxBufferedAudioMs: 0 }, 'maxBufferedAudioMs'],
    [{ connectTimeoutMs: Number.NaN }, 'connectTimeoutMs'],
    [{ webSocket: 'ws' }, 'webSocket'],
    [{ apiKey: '' }, 'apiKey'],
    [{ modle: 'typo' }, 'modle'],
  ])('cause an error that names them: %j', (options, name) => {
    expect(() => openaiRealtime(options as OpenaiRealtimeOptions)).toThrow(ConfigurationError);
    expect(() => openaiRealtime(options as OpenaiRealtimeOptions)).toThrow(name);
  });
});

test('name the install command if the package ws is missing', () => {
  const notInstalled = () => {
    throw Object.assign(new Error("Cannot find module 'ws'"), { code: 'MODULE_NOT_FOUND' });
  };
  expect(() => loadWebSocketFactory('openaiRealtime', notInstalled)).toThrow(ConfigurationError);
  expect(() => loadWebSocketFactory('openaiRealtime', notInstalled)).toThrow(/npm install ws/);
});
