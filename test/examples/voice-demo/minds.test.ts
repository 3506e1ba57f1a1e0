import { describe, expect, test } from 'vitest';
import { chooseMinds } from '../../../examples/voice-demo/minds.ts';
import { testEnvironment } from './support.ts';

const environment = testEnvironment();
const key = 'sk-very-secret';

describe('choice of the model', () => {
  test('without a key: the rules of the demo, and a local voice', async () => {
    const { lead, subagentModel, about } = await chooseMinds({ environment, variables: {} });
    expect(lead).toEqual({ voice: 'local-voice', model: subagentModel });
    expect(subagentModel.modelId).toBe('rules');
    expect(about.transport).toBe('local-voice');
    expect(about.lead).toContain('no key');
  });

  test('with a key: OpenAI for all', async () => {
    const minds = await chooseMinds({ environment, variables: { OPENAI_API_KEY: key } });
    expect(minds.lead).toEqual({ voice: 'openai-realtime', model: null });
    expect(minds.subagentModel.provider).toContain('openai');
    expect(minds.about).toEqual({
      transport: 'openai-realtime',
      lead: 'gpt-realtime-2.1',
      subagents: 'OpenAI gpt-5.4-mini',
      speech: 'OpenAI Realtime',
    });
  });

  test('OpenAI Live: OpenAI for all', async () => {
    const variables = { TRANSPORT: 'openai-live', OPENAI_API_KEY: key, OPENAI_MODEL: 'gpt-5.6' };
    const { subagentModel, about } = await chooseMinds({ environment, variables });
    expect(subagentModel.provider).toContain('openai');
    expect(about).toMatchObject({ lead: 'gpt-live-1', subagents: 'OpenAI gpt-5.6' });
  });

  test('Gemini Live: Google for all', async () => {
    const variables = {
      TRANSPORT: 'gemini-live',
      GEMINI_API_KEY: key,
      VOICE_MODEL: 'gemini-3.1-flash-live',
      GOOGLE_MODEL: 'gemini-flash-latest',
    };
    const { subagentModel, about } = await chooseMinds({ environment, variables });
    expect(subagentModel.provider).toContain('google');
    expect(about).toEqual({
      transport: 'gemini-live',
      lead: 'gemini-3.1-flash-live',
      subagents: 'Google gemini-flash-latest',
      speech: 'Gemini Live',
    });
  });

  test('with a base URL: that model, behind a local voice', async () => {
    const variables = {
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1',
      OPENAI_MODEL: 'llama3.2',
    };
    const { lead, subagentModel, about } = await chooseMinds({ environment, variables });
    expect(subagentModel.modelId).toBe('llama3.2');
    expect(lead.model).toBe(subagentModel);
    expect(about.lead).toBe('llama3.2 at 127.0.0.1:11434');
    expect(about.speech).toContain('on this machine');
  });

  test('a base URL without a model says what to set', async () => {
    const variables = { OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1' };
    await expect(chooseMinds({ environment, variables })).rejects.toMatchObject({
      code: 'MISSING_MODEL',
    });
  });

  test('a base URL that is none says so, without repeating it', async () => {
    const variables = { OPENAI_BASE_URL: 'user:secret', OPENAI_MODEL: 'm' };
    const refused = chooseMinds({ environment, variables });
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_URL',
      message: expect.not.stringContaining('secret') as string,
    });
  });

  test('a model that is handed in goes before all, with whatever voice', async () => {
    const { subagentModel: model } = await chooseMinds({ environment, variables: {} });
    const locally = await chooseMinds({ environment, model, variables: {} });
    expect(locally.lead.model).toBe(model);
    const variables = { TRANSPORT: 'openai-live', OPENAI_API_KEY: key };
    const remotely = await chooseMinds({ environment, model, variables });
    expect(remotely).toMatchObject({ lead: { model: null }, subagentModel: model });
  });

  test.each([
    { OPENAI_API_KEY: key },
    { OPENAI_API_KEY: key, OPENAI_MODEL: 'gpt-5.4' },
    { OPENAI_API_KEY: key, OPENAI_BASE_URL: 'http://u:p@127.0.0.1:1/v1', OPENAI_MODEL: 'm' },
    { GOOGLE_API_KEY: key, TRANSPORT: 'gemini-live' },
  ])('what is shown never holds a key or password', async (variables) => {
    const { about } = await chooseMinds({ environment, variables });
    expect(JSON.stringify(about)).not.toMatch(/secret|u:p/);
  });
});
