import {
  APICallError,
  customProvider,
  generateText,
  jsonSchema,
  tool,
  wrapLanguageModel,
  type LanguageModel,
  type ModelMessage,
  type ToolChoice,
  type ToolSet,
} from 'ai';
import type * as Sdk from 'ai';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  runModelStep,
  toStepError,
  type ModelStepOptions,
} from '../../../src/actors/model/model-step.ts';
import { prepareTools } from '../../../src/actors/model/tools.ts';
import { answer, model, text, type Answer, type Part } from './fakes.ts';

vi.mock('ai', async (importOriginal) => {
  const original = await importOriginal<typeof Sdk>();
  return { ...original, generateText: vi.fn<typeof generateText>(original.generateText) };
});

const bySdk = vi.mocked(generateText);

beforeEach(() => {
  bySdk.mockClear();
});

afterEach(() => {
  globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
  globalThis.AI_SDK_DEFAULT_PROVIDER = undefined;
  globalThis.AI_SDK_LOG_WARNINGS = undefined;
});

const toolsets = [
  {},
  {
    weather: tool({
      description: 'Weather of a city',
      inputSchema: z.object({ city: z.string(), days: z.coerce.number().default(1) }),
      strict: true,
      inputExamples: [{ input: { city: 'Bern', days: 1 } }],
      providerOptions: { test: { cache: true } },
      execute: () => 'sun',
    }),
    remind: tool({
      inputSchema: z.object({ at: z.string().transform((iso) => new Date(iso)) }),
      execute: () => 'done',
    }),
    anything: { inputSchema: jsonSchema({ type: 'object' }), execute: () => 'done' },
    picky: tool({
      inputSchema: z.object({ n: z.number().refine((n) => Promise.resolve(n > 1)) }),
      execute: () => 'done',
    }),
  },
  {
    ping: tool({ inputSchema: z.object({}), execute: () => 'pong' }),
    search: {
      type: 'provider',
      id: 'test.search',
      args: {},
      isProviderExecuted: true,
      inputSchema: z.object({}),
    },
  },
].map((given) => prepareTools(given, 'tools'));

const seldom = <T>(given: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, given);

const words = fc.constantFrom('', ' ', 'Hello.', 'It is sunny.', '\u{1F600}');
const metadata = seldom(
  fc.constantFrom({ test: { id: 'a' } }, { test: { signature: 's', list: [1, { b: null }] } }),
);
const toolName = fc.constantFrom(
  'weather',
  'remind',
  'anything',
  'picky',
  'ping',
  'search',
  'none',
);
const args = fc.constantFrom(
  '{"city":"Bern"}',
  '{"city":"Bern","days":"3"}',
  '{"city":1}',
  '{"n":2}',
  '{"n":0}',
  '{"at":"2026-01-01"}',
  '{}',
  '',
  '  ',
  'null',
  '[1]',
  '{"a"',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{}}}',
  '{"\\u005f_proto__":1,"a":1}',
  '{"deep":{"list":[1,2,{"a":null}]}}',
);
const withMetadata = (part: object, given: unknown): object =>
  given === undefined ? part : { ...part, providerMetadata: given };

const validCall = fc.constantFrom(
  ['weather', '{"city":"Bern","days":"3"}'],
  ['anything', '{"deep":{"list":[1,2,{"a":null}]}}'],
  ['anything', ' '],
  ['picky', '{"n":2}'],
  ['ping', '{}'],
);

const part: fc.Arbitrary<Part> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.uuid(), validCall, metadata)
      .map(([id, [name, input], own]) =>
        withMetadata({ type: 'tool-call', toolCallId: id, toolName: name, input }, own),
      ),
  },
  {
    weight: 12,
    arbitrary: fc.tuple(words, metadata).map(([said, own]) => withMetadata(text(said), own)),
  },
  fc
    .tuple(words, metadata)
    .map(([said, own]) => withMetadata({ type: 'reasoning', text: said }, own)),
  {
    weight: 2,
    arbitrary: fc
      .record({ id: fc.constantFrom('c1', 'c2', 'c3', ''), toolName, args, own: metadata })
      .map(({ id, toolName: name, args: input, own }) =>
        withMetadata({ type: 'tool-call', toolCallId: id, toolName: name, input }, own),
      ),
  },
  fc.constantFrom(
    { type: 'source', sourceType: 'url', id: 's', url: 'https://a.test' },
    { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
    {
      type: 'tool-call',
      toolCallId: 'p1',
      toolName: 'search',
      input: '{}',
      providerExecuted: true,
    },
    {
      type: 'tool-call',
      toolCallId: 'p2',
      toolName: 'dynamic',
      input: '{"a":1}',
      providerExecuted: true,
      dynamic: true,
    },
  ),
) as fc.Arbitrary<Part>;

const count = fc.option(fc.nat(100), { nil: undefined });
const usage = fc.record({
  inputTokens: fc.record({ total: count, noCache: count, cacheRead: count, cacheWrite: count }),
  outputTokens: fc.record({ total: count, text: count, reasoning: count }),
});

const answered: fc.Arbitrary<() => Answer> = fc
  .record({
    content: fc.array(part, { maxLength: 4 }),
    reason: fc.constantFrom('stop', 'tool-calls', 'length', 'error', 'other', 'content-filter'),
    usage,
    own: metadata,
    warnings: fc.constantFrom(...Array.from({ length: 12 }, () => []), undefined, [
      { type: 'unsupported', feature: 'seed' },
    ] as const),
    response: fc.constantFrom(undefined, { id: 'r', modelId: 'm', headers: { a: 'b' } }),
  })
  .map(
    ({ content, reason, usage: counts, own, warnings, response }) =>
      () =>
        ({
          ...answer(structuredClone(content)),
          finishReason: { unified: reason, raw: reason },
          usage: counts,
          warnings,
          ...(own === undefined ? {} : { providerMetadata: structuredClone(own) }),
          ...(response === undefined ? {} : { response }),
        }) as never,
  );
const failing: fc.Arbitrary<() => Answer> = fc
  .constantFrom(
    () => new Error('no'),
    () =>
      new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'EPIPE' }) }),
    () => new APICallError({ message: 'busy', url: 'u', requestBodyValues: {}, statusCode: 429 }),
    () => Object.assign(new Error('auth'), { name: 'GatewayAuthenticationError' }),
    () => 'a text',
  )
  .map((make) => () => {
    // oxlint-disable-next-line typescript/only-throw-error -- a provider may throw anything
    throw make();
  });
const malformed = fc
  .constantFrom({}, { content: [] }, { content: 'text' }, undefined, {
    ...answer([text('a')]),
    content: [{ type: 'unheard of' }],
  })
  .map((given) => () => given as never);

const call = (id: string, name = 'ping') => ({
  type: 'tool-call' as const,
  toolCallId: id,
  toolName: name,
  input: { a: 1 },
});
const outputs = [
  { type: 'text', value: 'pong' },
  { type: 'json', value: { a: [1] } },
  { type: 'error-text', value: 'no' },
  { type: 'execution-denied', reason: 'no' },
  { type: 'content', value: [{ type: 'text', text: 'pong' }] },
] as const;
const result = fc
  .constantFrom(...outputs, ...outputs.slice(0, 4), ...outputs.slice(0, 4), ...outputs.slice(0, 4))
  .map((output) => ({ type: 'tool-result', toolName: 'ping', output }));

const turn: fc.Arbitrary<readonly object[]> = fc.oneof(
  { weight: 12, arbitrary: words.map((content) => [{ role: 'user', content }]) },
  fc
    .array(
      fc.tuple(words, metadata).map(([said, own]) => ({ ...text(said), providerOptions: own })),
      {
        maxLength: 3,
      },
    )
    .map((content) => [{ role: 'user', content }]),
  words.map((content) => [{ role: 'assistant', content }]),
  {
    weight: 12,
    arbitrary: fc
      .record({
        said: words,
        own: metadata,
        results: fc.array(result, { minLength: 2, maxLength: 2 }),
        how: fc.nat(20),
      })
      .map(({ said, own, results, how }) => [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: said },
            { type: 'reasoning', text: said, providerOptions: own },
            { ...call('h1'), providerOptions: own },
            call('h2'),
          ],
        },
        ...(how === 0
          ? [{ role: 'tool', content: [{ ...results[0], toolCallId: 'h1' }] }]
          : how === 1
            ? [
                { role: 'tool', content: [{ ...results[0], toolCallId: 'h1' }] },
                {
                  role: 'tool',
                  content: [{ ...results[1], toolCallId: 'h2', providerOptions: own }],
                },
              ]
            : [
                {
                  role: 'tool',
                  content: [
                    { ...results[0], toolCallId: 'h1' },
                    { ...results[1], toolCallId: 'h2' },
                  ],
                },
              ]),
      ]),
  },
  fc.constantFrom<readonly object[]>(
    [{ role: 'system', content: 'Hidden.' }],
    [{ role: 'tool', content: [] }],
    [{ role: 'user', content: [{ type: 'image', image: 'data:image/png;base64,AAAA' }] }],
    [{ role: 'user', content: 'Hi', providerOptions: { test: { a: 1 } } }],
    [{ role: 'robot', content: 'Hi' }],
  ),
);

const asked = fc.record({
  instructions: fc.constantFrom('', 'Be brief.'),
  messages: fc
    .array(turn, { minLength: 1, maxLength: 4 })
    .map((turns) => turns.flat() as ModelMessage[]),
  tools: fc.constantFrom(...toolsets),
  toolChoice: seldom(
    fc.constantFrom<ToolChoice<ToolSet>>('none', 'none', 'required', 'auto', {
      type: 'tool',
      toolName: 'ping',
    }),
  ),
  settings: seldom(
    fc.constantFrom(
      { maxOutputTokens: 100 },
      { maxOutputTokens: 7 },
      { maxOutputTokens: 1 },
      { maxOutputTokens: 0 },
      { maxOutputTokens: 10, temperature: 0 },
      { headers: { a: 'b' } },
      { providerOptions: { test: { a: 1 } } },
    ),
  ),
});
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

const given = fc.oneof({ weight: 12, arbitrary: answered }, failing, malformed);
const kind = fc.constantFrom('plain', 'plain', 'middleware', 'string');

/** Creates the ids for a step with a listener, for which the SDK uses other prefixes. */
function idsByPrefix(): ModelStepOptions['ids'] {
  const counts = new Map<string, number>();
  return {
    next(prefix) {
      const number = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, number);
      return `${prefix}_${number}`;
    },
  };
}

/** Runs the step and returns everything observable about it. */
async function seenOf(
  { settings, toolChoice, ...rest }: Asked,
  made: () => Answer,
  how: string,
): Promise<object> {
  const calls: object[] = [];
  const warned: unknown[] = [];
  globalThis.AI_SDK_LOG_WARNINGS = ({ warnings }) => void warned.push(...warnings);
  const plain = model((options) => {
    const { abortSignal, ...seen } = options;
    calls.push({ ...structuredClone(seen), hasSignal: abortSignal instanceof AbortSignal });
    return made();
  });
  globalThis.AI_SDK_DEFAULT_PROVIDER = customProvider({ languageModels: { m: plain } });
  const wrapped = wrapLanguageModel({
    model: plain,
    middleware: {
      specificationVersion: 'v4',
      transformParams: ({ params }) => Promise.resolve({ ...params, seed: 1 }),
    },
  });
  const chosen: LanguageModel = how === 'string' ? 'm' : how === 'middleware' ? wrapped : plain;
  const options: ModelStepOptions = {
    caller: { name: 'tester' },
    ...structuredClone({ ...rest, tools: null }),
    tools: rest.tools,
    model: chosen,
    signal: new AbortController().signal,
    ids: idsByPrefix(),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(settings === undefined ? {} : { settings }),
  };
  const outcome = await runModelStep(options).then(
    (response) => ({ response }),
    (error: unknown) => ({ error: toStepError(error) }),
  );
  return { calls, warned, ...outcome };
}

const hello: Asked = {
  instructions: 'Be brief.',
  messages: [{ role: 'user', content: 'Hi' }],
  tools: toolsets[1] as Asked['tools'],
  toolChoice: undefined,
  settings: undefined,
};

test('DIRECT-1: returns the same step as `generateText`', async () => {
  // DIRECT-2
  await seenOf(hello, () => answer([text('Hi')]), 'plain');
  let direct = 0;
  let left = 0;
  await fc.assert(
    fc.asyncProperty(asked, given, kind, async (step, made, how) => {
      bySdk.mockClear();
      const seen = await seenOf(step, made, how);
      if (bySdk.mock.calls.length === 0) direct += 1;
      else left += 1;
      // With a listener, the SDK runs every step.
      globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = [{}];
      bySdk.mockClear();
      const reference = await seenOf(step, made, how);
      globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
      expect(bySdk).toHaveBeenCalledOnce();
      expect(seen).toStrictEqual(reference);
    }),
    { numRuns: 3000 },
  );
  expect(direct).toBeGreaterThan(2000);
  expect(left).toBeGreaterThan(100);
});

describe('DIRECT-2: the first call of a process', () => {
  /** Runs this many steps in a new process, and returns how many of them the SDK ran. */
  async function madeBySdk(steps: number, others: object): Promise<number> {
    vi.resetModules();
    const { generateText: sdk } = await import('ai');
    const { runModelStep: step } = await import('../../../src/actors/model/model-step.ts');
    const right = vi.mocked(sdk).getMockImplementation() as typeof sdk;
    vi.mocked(sdk).mockImplementation((options) => right({ ...options, ...others }));
    for (let number = 0; number < steps; number += 1) {
      const response = await step({
        caller: { name: 'tester' },
        instructions: hello.instructions,
        messages: hello.messages,
        tools: hello.tools,
        model: model(answer([text('Hi')])),
        signal: new AbortController().signal,
        ids: idsByPrefix(),
      });
      expect(response.text).toBe('Hi');
    }
    return vi.mocked(sdk).mock.calls.length;
  }

  test('goes through the SDK once to verify the options that the SDK sets', async () => {
    expect(await madeBySdk(3, {})).toBe(1);
  });

  test('returns its answer even if part of the response cannot be copied', async () => {
    vi.resetModules();
    const { runModelStep: step } = await import('../../../src/actors/model/model-step.ts');
    const body = { read: () => 'a function' };
    const response = await step({
      caller: { name: 'tester' },
      instructions: hello.instructions,
      messages: hello.messages,
      tools: hello.tools,
      model: model({ ...answer([text('Hi')]), response: { body } }),
      signal: new AbortController().signal,
      ids: idsByPrefix(),
    });
    expect(response.text).toBe('Hi');
  });

  test('sends every call through the SDK if the SDK adds other options', async () => {
    expect(await madeBySdk(3, { seed: 7 })).toBe(3);
  });
});
