import { describe, expect, it } from 'vitest';
import { suitedModel } from '../../../src/actors/model/provider-prompt.ts';
import {
  scriptedModel,
  type ProviderApi,
  type ScriptedPrompt,
} from '../../../src/testing/index.ts';

type Prompt = ScriptedPrompt['prompt'];

const user = (text: string) => ({
  role: 'user' as const,
  content: [{ type: 'text' as const, text }],
});
const called = (id: string): Prompt => [
  {
    role: 'assistant',
    content: [{ type: 'tool-call', toolCallId: id, toolName: 'look', input: {} }],
  },
  {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: id,
        toolName: 'look',
        output: { type: 'text', value: '7' },
      },
    ],
  },
];
const tools = [
  {
    type: 'function' as const,
    name: 'look',
    inputSchema: { type: 'object' as const, properties: {} },
  },
];

function model(provider: string, modelId: string, api: ProviderApi) {
  const seen: Prompt[] = [];
  const scripted = scriptedModel({
    rules: [api],
    otherwise: ({ prompt }) => {
      seen.push(prompt);
      return { text: 'Up.' };
    },
  });
  return { seen, suited: suitedModel({ ...scripted, provider, modelId }) };
}

describe('suitedModel', () => {
  it.each([
    ['mistral.chat', 'mistral-large-latest'],
    ['openrouter', 'mistralai/devstral-medium'],
  ])(
    'shortens call ids for Mistral, and inserts an answer before the next user message (%s)',
    async (provider, id) => {
      const { suited, seen } = model(provider, id, 'mistral');
      const prompt = [
        user('the sales?'),
        ...called('call_1'),
        user('well?'),
        ...called('aB3dE6gH9'),
      ];
      await suited.doGenerate({ prompt, tools });
      await suited.doStream({ prompt, tools });
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[0]?.map(({ role }) => role).join(' ')).toBe(
        'user assistant tool assistant user assistant tool',
      );
      // The provider's ids are unchanged, and a call and its result have the same id.
      expect(JSON.stringify(seen[0]?.slice(5))).toBe(JSON.stringify(called('aB3dE6gH9')));
    },
  );

  it('inserts a user message when a conversation on Bedrock starts with the assistant', async () => {
    const { suited, seen } = model('amazon-bedrock', 'anthropic.claude-sonnet-4-6', 'bedrock');
    const hello: Prompt = [
      { role: 'system', content: 'You help.' },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello!' }] },
      user('hi'),
    ];
    await suited.doGenerate({ prompt: hello });
    expect(seen[0]?.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    await suited.doGenerate({ prompt: [user('hi')] });
    expect(seen[1]).toEqual([user('hi')]);
  });

  it('returns any other model unchanged', () => {
    const scripted = scriptedModel([]);
    expect(suitedModel(scripted)).toBe(scripted);
  });
});
