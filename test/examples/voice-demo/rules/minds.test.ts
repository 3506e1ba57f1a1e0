import { describe, expect, test } from 'vitest';
import {
  chooseMinds,
  type MindOptions,
  type Minds,
} from '../../../../examples/voice-demo/rules/minds.ts';
import { FakeTransport } from '../../../support/fake-transport.ts';
import { forgetKeys, testEnvironment } from '../support.ts';

const environment = testEnvironment();
const key = 'sk-very-secret';

/** Returns the choice for these environment variables only. */
function choose(
  variables: Readonly<Record<string, string | undefined>>,
  options: Partial<MindOptions> = {},
): Promise<Minds> {
  forgetKeys(variables);
  return chooseMinds({ environment, transport: undefined, ...options });
}

/** A custom voice, so no engine is loaded. */
const transport = new FakeTransport();

describe('choice of the model', () => {
  test("uses the demo's rules and a local voice if there is no key", async () => {
    const { model, about } = await choose({}, { transport });
    expect(model.modelId).toBe('rules');
    expect(about.transport).toBe('local-voice');
    expect(about.lead).toContain('no key');
  });

  test('uses OpenAI for everything if its key is set', async () => {
    const minds = await choose({ OPENAI_API_KEY: key });
    expect(minds.transport.name).toBe('openai-realtime');
    expect(minds.model.provider).toContain('openai');
    expect(minds.about).toEqual({
      transport: 'openai-realtime',
      lead: 'gpt-realtime-2.1',
      subagents: 'OpenAI gpt-5.4-mini',
      speech: 'OpenAI Realtime',
    });
  });

  test('uses OpenAI for everything if OpenAI Live is selected', async () => {
    const variables = { TRANSPORT: 'openai-live', OPENAI_API_KEY: key, OPENAI_MODEL: 'gpt-5.6' };
    const minds = await choose(variables);
    expect(minds.transport.name).toBe('openai-live');
    expect(minds.model.provider).toContain('openai');
    expect(minds.about).toMatchObject({ lead: 'gpt-live-1', subagents: 'OpenAI gpt-5.6' });
  });

  test('uses Google for everything if Gemini Live is selected', async () => {
    const variables = {
      TRANSPORT: 'gemini-live',
      GEMINI_API_KEY: key,
      VOICE_MODEL: 'gemini-3.1-flash-live',
      GOOGLE_MODEL: 'gemini-flash-latest',
    };
    const minds = await choose(variables);
    expect(minds.transport.name).toBe('gemini-live');
    expect(minds.model.provider).toContain('google');
    expect(minds.about).toEqual({
      transport: 'gemini-live',
      lead: 'gemini-3.1-flash-live',
      subagents: 'Google gemini-flash-latest',
      speech: 'Gemini Live',
    });
  });

  test('uses a local voice with the model at a base URL', async () => {
    const variables = {
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1',
      OPENAI_MODEL: 'llama3.2',
    };
    const { model, about } = await choose(variables, { transport });
    expect(model.modelId).toBe('llama3.2');
    expect(about.lead).toBe('llama3.2 at 127.0.0.1:11434');
    expect(about.speech).toContain('on this machine');
  });

  test('names the missing setting if a base URL is set without a model', async () => {
    const variables = { OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1' };
    await expect(choose(variables)).rejects.toMatchObject({ code: 'MISSING_MODEL' });
  });

  test('reports that the base URL is invalid, without printing it', async () => {
    const variables = { OPENAI_BASE_URL: 'user:secret', OPENAI_MODEL: 'm' };
    await expect(choose(variables)).rejects.toMatchObject({
      code: 'INVALID_URL',
      message: expect.not.stringContaining('secret') as string,
    });
  });

  test('prefers a configured model or transport to any key', async () => {
    const { model } = await choose({}, { transport });
    expect((await choose({}, { model, transport })).model).toBe(model);
    const variables = { TRANSPORT: 'openai-live', OPENAI_API_KEY: key };
    const remotely = await choose(variables, { model, transport });
    expect(remotely).toMatchObject({ transport, model });
  });

  test.each([
    { OPENAI_API_KEY: key },
    { OPENAI_API_KEY: key, OPENAI_MODEL: 'gpt-5.4' },
    { OPENAI_API_KEY: key, OPENAI_BASE_URL: 'http://u:p@127.0.0.1:1/v1', OPENAI_MODEL: 'm' },
    { GOOGLE_API_KEY: key, TRANSPORT: 'gemini-live' },
  ])('prints no keys or passwords', async (variables) => {
    const { about } = await choose(variables, { transport });
    expect(JSON.stringify(about)).not.toMatch(/secret|u:p/);
  });
});
