import { APICallError, UnsupportedFunctionalityError } from 'ai';
import { describe, expect, it } from 'vitest';
import {
  providerRefusals,
  providerRules,
  refusalBody,
  refusalError,
  scriptedModel,
  type RuledCall,
} from '../../../src/testing/index.ts';

type Prompt = RuledCall['prompt'];
type Tool = NonNullable<RuledCall['tools']>[number];

const system = { role: 'system' as const, content: 'You help.' };
const user = (text: string) => ({
  role: 'user' as const,
  content: [{ type: 'text' as const, text }],
});
const said = (text: string) => ({
  role: 'assistant' as const,
  content: [{ type: 'text' as const, text }],
});
const call = (toolCallId = 'abc123XYZ', toolName = 'look', input: unknown = { at: 'sales' }) => ({
  type: 'tool-call' as const,
  toolCallId,
  toolName,
  input,
});
const called = (...parts: ReturnType<typeof call>[]) => ({
  role: 'assistant' as const,
  content: parts,
});
const result = (...ids: string[]) => ({
  role: 'tool' as const,
  content: ids.map((toolCallId) => ({
    type: 'tool-result' as const,
    toolCallId,
    toolName: 'look',
    output: { type: 'text' as const, value: '7' },
  })),
});
const tool = (inputSchema: object, name = 'look'): Tool => ({
  type: 'function',
  name,
  inputSchema,
});
const shape = { type: 'object', properties: { at: { type: 'string' } } };
const look = tool(shape);

const good: Prompt = [
  system,
  user('the sales?'),
  called(call()),
  result('abc123XYZ'),
  said('Up by 7.'),
  user('thanks'),
];
const asked: Prompt = [system, user('the sales?')];

const namesOf = (prompt: Prompt, tools: Tool[] = [look]): readonly string[] => [
  ...new Set(providerRefusals({ prompt, tools }).map(({ rule }) => rule.name)),
];

const planted: readonly [what: string, rules: readonly string[], prompt: Prompt, tools?: Tool[]][] =
  [
    ['a prompt that ends with the assistant', ['last-message'], [...asked, said('Well,')]],
    ['a system message in mid-conversation', ['system-first'], [...asked, system, user('and?')]],
    [
      'a system message after the assistant',
      ['system-first'],
      [...asked, said('Up.'), system, user('and?')],
    ],
    ['instructions alone', ['some-message', 'first-message'], [system]],
    ['a greeting before the user', ['first-message'], [system, said('Hello!'), user('hi')]],
    [
      'a call after words of the assistant',
      ['call-after-user'],
      [...asked, said('I look.'), called(call()), result('abc123XYZ')],
    ],
    [
      'a call without its result',
      ['result-for-call'],
      [...asked, called(call(), call('other1234')), result('abc123XYZ')],
    ],
    [
      'words between a call and its result',
      ['result-for-call', 'call-for-result'],
      [...asked, called(call()), user('well?'), result('abc123XYZ')],
    ],
    ['a result without its call', ['call-for-result'], [...asked, result('abc123XYZ')]],
    [
      'two results of a call',
      ['one-result-for-call'],
      [...asked, called(call()), result('abc123XYZ', 'abc123XYZ')],
    ],
    ['calls without tools', ['tools-for-calls'], good, []],
    [
      'an id with other characters',
      ['call-id'],
      [...asked, called(call('functions.look:0')), result('functions.look:0')],
    ],
    [
      'an id of 65 characters',
      ['call-id'],
      [...asked, called(call('a'.repeat(65))), result('a'.repeat(65))],
    ],
    [
      'an id twice',
      ['unique-call-id'],
      [
        ...asked,
        called(call()),
        result('abc123XYZ'),
        said('Up.'),
        user('again'),
        called(call()),
        result('abc123XYZ'),
      ],
    ],
    [
      'a called name with a space',
      ['called-name'],
      [...asked, called(call('abc123XYZ', 'look up')), result('abc123XYZ')],
    ],
    [
      'arguments that are a list',
      ['called-arguments'],
      [...asked, called(call('abc123XYZ', 'look', [7])), result('abc123XYZ')],
    ],
    ['the user after a result', ['user-after-result'], [...good.slice(0, 4), user('well?')]],
    ['a blank text', ['blank-text'], [...asked, said(' \n'), user('well?')]],
    ['an empty text of the user', ['blank-text', 'empty-message'], [system, user('')]],
    ['an empty message of the assistant', ['empty-message'], [...asked, said(''), user('well?')]],
    [
      'a name of a tool with a space',
      ['tool-name'],
      asked,
      [tool({ type: 'object', properties: {} }, 'look up')],
    ],
    [
      'a name that begins with a digit',
      ['tool-name'],
      asked,
      [tool({ type: 'object', properties: {} }, '7up')],
    ],
    [
      'a name of 65 characters',
      ['tool-name'],
      asked,
      [tool({ type: 'object', properties: {} }, 'a'.repeat(65))],
    ],
    ['two tools of a name', ['unique-tool-name'], asked, [look, look]],
    ['a union as parameters', ['object-at-root'], asked, [tool({ anyOf: [shape] })]],
    [
      'a union beside the properties',
      ['object-at-root'],
      asked,
      [tool({ type: 'object', properties: {}, oneOf: [{ required: ['at'] }] })],
    ],
    ['a text as parameters', ['object-at-root'], asked, [tool({ type: 'string' })]],
    [
      'a tuple',
      ['listed-items'],
      asked,
      [
        tool({
          type: 'object',
          properties: { at: { type: 'array', items: [{ type: 'number' }, { type: 'number' }] } },
        }),
      ],
    ],
    [
      'a list of anything without items',
      ['items'],
      asked,
      [tool({ type: 'object', properties: { at: { type: 'array' } } })],
    ],
    ['an object without properties', ['properties'], asked, [tool({ type: 'object' })]],
    [
      'a property with a bracket',
      ['property-name'],
      asked,
      [tool({ type: 'object', properties: { 'filter[id]': { type: 'string' } } })],
    ],
  ];

describe('providerRules', () => {
  it('accept a conversation with a call, its result and a reply', () => {
    expect(namesOf(good)).toEqual([]);
  });

  it.each(planted)('refuse %s', (_, rules, prompt, tools) => {
    expect(namesOf(prompt, tools).toSorted()).toEqual(rules.toSorted());
  });

  it('each detect a planted violation', () => {
    const pairOf = ({ api, name }: (typeof providerRules)[number]) => `${api} ${name}`;
    const shown = new Set(
      planted.flatMap(([, , prompt, tools = [look]]) =>
        providerRefusals({ prompt, tools }).map(({ rule }) => pairOf(rule)),
      ),
    );
    // These rules require an earlier answer from the model.
    const ofAnswers = /reasoning-kept|call-state-kept/;
    const all = providerRules.map(pairOf).filter((pair) => !ofAnswers.test(pair));
    expect(all.filter((pair) => !shown.has(pair))).toEqual([]);
  });

  it("accept separate results and text after calls if the provider's package merges them", () => {
    const both = called(call(), call('def456UVW'));
    const apart: Prompt = [...asked, both, result('def456UVW'), result('abc123XYZ')];
    const after: Prompt = [...asked, called(call()), said('I look.'), result('abc123XYZ')];
    const refusing = (prompt: Prompt) =>
      providerRefusals({ prompt, tools: [look] }).map(({ rule }) => rule.api);
    expect(refusing(apart)).toEqual(['google']);
    expect(refusing(after)).not.toContain('anthropic');
    expect(refusing(after)).not.toContain('openai-responses');
    expect(refusing(after)).toContain('openai-chat');
  });

  it('each cite a source', () => {
    for (const { source } of providerRules) expect(source).toMatch(/^https:\/\//);
  });
});

describe('refusalError', () => {
  it("return the package's error with the API's message and body", () => {
    for (const refusal of providerRefusals({ prompt: [...asked, system, user('')] })) {
      const error = refusalError(refusal);
      expect(error.message).toContain(refusal.words);
      if (refusal.rule.byPackage) {
        expect(UnsupportedFunctionalityError.isInstance(error)).toBe(true);
        continue;
      }
      expect(error).toSatisfy(APICallError.isInstance);
      expect(error).toMatchObject({
        statusCode: 400,
        isRetryable: false,
        responseBody: JSON.stringify(refusalBody(refusal)),
      });
    }
  });
});

describe('a scripted model with rules', () => {
  const thinker = scriptedModel({
    rules: true,
    otherwise: [
      {
        thinking: 'Look first.',
        calls: [
          { name: 'look', input: {} },
          { name: 'look', input: {} },
        ],
      },
      { text: 'Up.' },
      { text: 'Up.' },
    ],
  });

  it('refuses its own calls if they are split or lack reasoning, but accepts complete ones', async () => {
    const { content } = await thinker.doGenerate({ prompt: asked });
    const echoed = content.map((part) => {
      const { providerMetadata: providerOptions, ...rest } = part as typeof part & {
        providerMetadata?: Record<string, Record<string, string>>;
      };
      const parsed = rest.type === 'tool-call' ? { ...rest, input: {} } : rest;
      return { ...parsed, ...(providerOptions && { providerOptions }) };
    }) as Extract<Prompt[number], { role: 'assistant' }>['content'];
    const read = (...messages: Prompt) =>
      thinker.doGenerate({ prompt: [...asked, ...messages], tools: [look] });
    const whole = { role: 'assistant' as const, content: echoed };
    await expect(
      read({ ...whole, content: echoed.slice(1) }, result('call_1', 'call_2')),
    ).rejects.toThrow('Expected `thinking` or `redacted_thinking`, but found `tool_use`');
    await expect(
      read(
        { ...whole, content: echoed.slice(0, 2) },
        result('call_1'),
        { ...whole, content: [...echoed.slice(0, 1), ...echoed.slice(2)] },
        result('call_2'),
      ),
    ).rejects.toThrow('Function call is missing a thought_signature in functionCall parts');
    expect((await read(whole, result('call_1', 'call_2'))).content).toEqual([
      { type: 'text', text: 'Up.' },
    ]);
  });

  it('refuses exactly the calls that the named APIs refuse', async () => {
    const prompt: Prompt = [system, said('Hello!'), user('hi')];
    const ask = (rules: boolean | 'bedrock'[]) =>
      scriptedModel({ rules, otherwise: () => ({ text: 'Hi.' }) }).doGenerate({ prompt });
    await expect(ask(['bedrock'])).rejects.toThrow('A conversation must start with a user message');
    await expect(ask(true)).resolves.toBeDefined();
    await expect(ask(false)).resolves.toBeDefined();
  });
});
