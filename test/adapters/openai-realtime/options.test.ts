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

describe('the key', () => {
  test('comes from the option, else from the environment, read anew at each connect', () => {
    expect(resolveOptions({ apiKey: 'sk-option' }).apiKey()).toBe('sk-option');
    const settings = resolveOptions({});
    expect(settings.apiKey()).toBe('sk-from-environment');
    vi.stubEnv('OPENAI_API_KEY', 'sk-rotated');
    expect(settings.apiKey()).toBe('sk-rotated');
  });

  test.each([undefined, ''])(
    'missing (%j): an error at construction that names the variable',
    (key) => {
      vi.stubEnv('OPENAI_API_KEY', key);
      expect(() => openaiRealtime()).toThrow(ConfigurationError);
      expect(() => openaiRealtime()).toThrow(/OPENAI_API_KEY/);
    },
  );
});

describe('the address', () => {
  const addressOf = (options: OpenaiRealtimeOptions) => resolveOptions(options).url();

  test('is OpenAI by default, with the model', () => {
    expect(addressOf({})).toBe('wss://api.openai.com/v1/realtime?model=gpt-realtime-2.1');
    expect(addressOf({ model: 'gpt-realtime-2.1-mini' })).toContain('model=gpt-realtime-2.1-mini');
  });

  test.each([
    ['http://127.0.0.1:11434/v1', 'ws://127.0.0.1:11434/v1/realtime?model=gpt-realtime-2.1'],
    ['https://eu.example.com/v1/', 'wss://eu.example.com/v1/realtime?model=gpt-realtime-2.1'],
  ])('OPENAI_BASE_URL %s is respected', (baseUrl, address) => {
    vi.stubEnv('OPENAI_BASE_URL', baseUrl);
    expect(addressOf({})).toBe(address);
  });

  test('the option wins, and a model in it stays', () => {
    vi.stubEnv('OPENAI_BASE_URL', 'https://other.example.com/v1');
    expect(addressOf({ url: 'ws://127.0.0.1:1/rt?model=mine&x=1' })).toBe(
      'ws://127.0.0.1:1/rt?model=mine&x=1',
    );
  });

  test.each(['not a url', 'ftp://example.com', '/v1/realtime'])('%s is refused', (url) => {
    expect(() => openaiRealtime({ url })).toThrow(
      /`url` to be a wss:, ws:, https: or http: address/,
    );
    vi.stubEnv('OPENAI_BASE_URL', url);
    expect(() => openaiRealtime()).toThrow(/`OPENAI_BASE_URL`/);
  });

  test('a refused value is shown without its secrets', () => {
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
  test('have defaults, which an explicit undefined does not remove', () => {
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
  ])('%j is refused by name', (options, name) => {
    expect(() => openaiRealtime(options as OpenaiRealtimeOptions)).toThrow(ConfigurationError);
    expect(() => openaiRealtime(options as OpenaiRealtimeOptions)).toThrow(name);
  });
});

test('without the package ws the error says what to install', () => {
  const notInstalled = () => {
    throw Object.assign(new Error("Cannot find module 'ws'"), { code: 'MODULE_NOT_FOUND' });
  };
  expect(() => loadWebSocketFactory('openaiRealtime', notInstalled)).toThrow(ConfigurationError);
  expect(() => loadWebSocketFactory('openaiRealtime', notInstalled)).toThrow(/npm install ws/);
});
