import { describe, expect, test } from 'vitest';
import { chooseMinds } from '../../../examples/voice-demo/minds.ts';
import { testEnvironment } from './support.ts';

const environment = testEnvironment();
const key = 'sk-very-secret';

describe('who thinks', () => {
  test('without a key: the rules of the demo, and a local voice', async () => {
    const { leadModel, subagentModel, about } = await chooseMinds({ environment, variables: {} });
    expect(leadModel?.modelId).toBe('rules');
    expect(subagentModel).toBe(leadModel);
    expect(about.lead).toContain('no key');
  });

  test('an empty variable is no key', async () => {
    const variables = { OPENAI_API_KEY: '', OPENAI_BASE_URL: '' };
    expect((await chooseMinds({ environment, variables })).leadModel?.modelId).toBe('rules');
  });

  test('with a key: OpenAI for all', async () => {
    const minds = await chooseMinds({ environment, variables: { OPENAI_API_KEY: key } });
    expect(minds.leadModel).toBeNull();
    expect(minds.subagentModel.provider).toContain('openai');
    expect(minds.about.speech).toBe('OpenAI Realtime');
  });

  test('with a base URL: that model, behind a local voice', async () => {
    const variables = {
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1',
      OPENAI_MODEL: 'llama3.2',
    };
    const { leadModel, subagentModel, about } = await chooseMinds({ environment, variables });
    expect(leadModel?.modelId).toBe('llama3.2');
    expect(subagentModel).toBe(leadModel);
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

  test('a model that is handed in goes before all', async () => {
    const { subagentModel } = await chooseMinds({ environment, variables: {} });
    const variables = { OPENAI_API_KEY: key };
    const minds = await chooseMinds({ environment, model: subagentModel, variables });
    expect(minds.leadModel).toBe(subagentModel);
  });

  test.each([
    { OPENAI_API_KEY: key },
    { OPENAI_API_KEY: key, OPENAI_MODEL: 'gpt-5.4' },
    { OPENAI_API_KEY: key, OPENAI_BASE_URL: 'http://u:p@127.0.0.1:1/v1', OPENAI_MODEL: 'm' },
  ])('what is shown never holds a key or password', async (variables) => {
    const { about } = await chooseMinds({ environment, variables });
    expect(JSON.stringify(about)).not.toMatch(/secret|u:p/);
  });
});
