import { describe, expect, test } from 'vitest';
import { chooseVoice } from '../../../../examples/voice-demo/rules/minds.ts';
import { thisMachine, type Machine } from '../../../../src/cli/doctor/index.ts';

const key = 'sk-very-secret';

/** A machine with all packages except these; `voice` stands for the packages of the local voice. */
const machineWithout = (...packages: readonly string[]): Machine => ({
  nodeVersion: '24.0.0',
  variables: {},
  installed: (name) => (packages.includes(name) ? null : '1.0.0'),
  range: () => null,
  voiceFolder: () => (packages.includes('voice') ? null : '/voice'),
});

const choose = (variables: Record<string, string>, ...missing: readonly string[]) =>
  chooseVoice({ ...machineWithout(...missing), variables });

describe('selection of the voice', () => {
  test('uses the local voice if there is no key or if a custom model is set', () => {
    expect(choose({})).toBe('local-voice');
    expect(choose({ OPENAI_API_KEY: '', TRANSPORT: '' })).toBe('local-voice');
    const own = { OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1', OPENAI_API_KEY: key };
    expect(choose(own)).toBe('local-voice');
  });

  test('uses OpenAI Realtime with an OpenAI key even if other keys are set', () => {
    expect(choose({ OPENAI_API_KEY: key })).toBe('openai-realtime');
    expect(choose({ GOOGLE_API_KEY: key })).toBe('local-voice');
  });

  test.each(['openai-realtime', 'openai-live', 'gemini-live', 'local-voice'])(
    'uses the voice named by TRANSPORT: %s',
    (TRANSPORT) => {
      expect(choose({ TRANSPORT, OPENAI_API_KEY: key, GEMINI_API_KEY: key })).toBe(TRANSPORT);
    },
  );

  test('refuses an unknown name and lists the known ones', () => {
    expect(() => choose({ TRANSPORT: 'gemini' })).toThrow(
      /^Expected TRANSPORT to be one of openai-realtime, .*, got "gemini"$/,
    );
  });

  test.each([
    ['openai-live', /No key: set OPENAI_API_KEY/],
    ['gemini-live', /No key: set GOOGLE_GENERATIVE_AI_API_KEY, or GOOGLE_API_KEY/],
  ])('names the missing key for %s and the commands that check it', (TRANSPORT, words) => {
    expect(() => choose({ TRANSPORT })).toThrow(words);
    expect(() => choose({ TRANSPORT })).toThrow(`npm run doctor ${TRANSPORT}`);
    expect(() => choose({ TRANSPORT })).toThrow('npx offstage doctor');
  });

  test('names an invalid key or a missing package without printing a key', () => {
    expect(() => choose({ OPENAI_API_KEY: `"${key}"` })).toThrow(/quotation marks/);
    expect(() => choose({ OPENAI_API_KEY: `"${key}"` })).not.toThrow(/secret/);
    expect(() => choose({}, 'ws')).toThrow(/ws is missing/);
  });

  test('names the install command if the packages of the local voice are missing', () => {
    expect(() => choose({}, 'voice')).toThrow(/run npx offstage voice install/);
  });

  test("detects the local voice's packages on this machine", () => {
    expect(chooseVoice({ ...thisMachine(), variables: {} })).toBe('local-voice');
  });
});
