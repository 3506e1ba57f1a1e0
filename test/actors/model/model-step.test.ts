import { tracingChannel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import {
  AI_SDK_TELEMETRY_TRACING_CHANNEL,
  APICallError,
  createProviderRegistry,
  tool,
  ToolChoiceViolationError,
  type LanguageModel,
  type ModelMessage,
} from 'ai';
import { MockLanguageModelV3, MockLanguageModelV4, MockProviderV4 } from 'ai/test';
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import { z } from 'zod';
import { toolMessage } from '../../../src/actors/model/tool-results.ts';
import { runModelStep, type ModelStepOptions } from '../../../src/actors/model/model-step.ts';
import { runToolCall } from '../../../src/actors/model/tool-run.ts';
import { prepareTools } from '../../../src/actors/model/tools.ts';
import { ConfigurationError, ProviderError } from '../../../src/values/errors.ts';
import {
  answer,
  call,
  countingIds,
  deferred,
  macrotask,
  manualTime,
  model,
  never,
  soon,
  text,
  usage,
  type Answer,
  type Part,
} from './fakes.ts';

const tools = prepareTools(
  {
    weather: tool({
      description: 'Weather of a city',
      inputSchema: z.object({
        city: z.string(),
        days: z.coerce.number().default(1),
      }),
      execute: ({ city, days }) => `${city}: sun for ${days}`,
    }),
    remind: tool({
      inputSchema: z.object({ at: z.string().transform((iso) => new Date(iso)) }),
      execute: ({ at }) => at.getUTCFullYear(),
    }),
    ping: tool({ inputSchema: z.object({}), execute: () => 'pong' }),
  },
  'tools',
);

const question: ModelMessage = { role: 'user', content: 'What is the weather?' };

const step = (scripted: LanguageModel, more: Partial<ModelStepOptions> = {}) =>
  runModelStep({
    caller: { name: 'tester' },
    model: scripted,
    instructions: 'Be brief.',
    messages: [question],
    tools,
    signal: new AbortController().signal,
    ids: countingIds(),
    ...more,
  });

/** Expects that the value survives a round trip through JSON. */
function expectPlainJson(value: unknown): void {
  expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value);
}

afterEach(() => {
  vi.restoreAllMocks();
  globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
  globalThis.AI_SDK_DEFAULT_PROVIDER = undefined;
});

describe('MODEL-STEP-3: the response', () => {
  test('contains text, reasoning and provider metadata', async () => {
    const content: Part[] = [
      { type: 'reasoning', text: 'Let me see.', providerMetadata: { test: { signature: 's' } } },
      text('It is '),
      text('sunny.'),
    ];
    const response = await step(
      model({ ...answer(content), providerMetadata: { test: { cached: true } } }),
    );
    expect(response).toStrictEqual({
      text: 'It is sunny.',
      reasoning: 'Let me see.',
      assistantMessages: [
        {
          role: 'assistant',
          content: [
            {
              type: 'reasoning',
              text: 'Let me see.',
              providerOptions: { test: { signature: 's' } },
            },
            { type: 'text', text: 'It is ' },
            { type: 'text', text: 'sunny.' },
          ],
        },
      ],
      calls: [],
      finish: 'stop',
      usage: {
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 15,
        cacheWriteTokens: 0,
        cachedInputTokens: 2,
        reasoningTokens: 1,
      },
      model: { provider: 'test', modelId: 'scripted' },
      providerMetadata: { test: { cached: true } },
    });
    expectPlainJson(response);
  });

  test("contains parallel calls in the model's order, with defaults and coercions applied", async () => {
    const scripted = model(
      answer([
        text('Looking.'),
        call('c1', 'weather', { city: 'Rome', days: '3' }),
        call('c2', 'weather', { city: 'Oslo' }),
        call('c3', 'ping', ''),
      ]),
    );
    const response = await step(scripted);
    expect(response.calls).toStrictEqual([
      {
        callId: 'c1',
        toolName: 'weather',
        input: { city: 'Rome', days: 3 },
        given: { city: 'Rome', days: '3' },
      },
      {
        callId: 'c2',
        toolName: 'weather',
        input: { city: 'Oslo', days: 1 },
        given: { city: 'Oslo' },
      },
      { callId: 'c3', toolName: 'ping', input: {} },
    ]);
    expect(response.finish).toBe('tool-calls');
    expect(response.assistantMessages).toStrictEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Looking.' },
          {
            type: 'tool-call',
            toolCallId: 'c1',
            toolName: 'weather',
            input: { city: 'Rome', days: 3 },
          },
          {
            type: 'tool-call',
            toolCallId: 'c2',
            toolName: 'weather',
            input: { city: 'Oslo', days: 1 },
          },
          { type: 'tool-call', toolCallId: 'c3', toolName: 'ping', input: {} },
        ],
      },
    ]);
    expectPlainJson(response);
  });

  test("keeps the model's original arguments if the schema converts them to a value that is not JSON", async () => {
    const response = await step(model(answer([call('c1', 'remind', { at: '2031-05-01' })])));
    expect(response.calls).toStrictEqual([
      { callId: 'c1', toolName: 'remind', input: { at: '2031-05-01' }, raw: true },
    ]);
    expectPlainJson(response);
    const [remind] = response.calls;
    const outcome = await runToolCall({
      tool: tools.execution.get('remind')!,
      callId: 'c1',
      input: remind?.input,
      raw: remind?.raw,
      messages: [question],
      signal: new AbortController().signal,
      idempotencyKey: 'k',
      environment: manualTime(),
    });
    expect(outcome).toMatchObject({ status: 'ok', output: 2031 });
  });

  test('counts tokens that the provider omits as 0', async () => {
    const none = {
      inputTokens: {
        total: undefined,
        noCache: undefined,
        cacheRead: undefined,
        cacheWrite: undefined,
      },
      outputTokens: { total: 4, text: undefined, reasoning: undefined },
    };
    const response = await step(model({ ...answer([text('ok')]), usage: none }));
    expect(response.usage).toStrictEqual({ inputTokens: 0, outputTokens: 4, totalTokens: 4 });
  });

  test.each(['stop', 'length', 'content-filter', 'error', 'other', 'interrupted'] as const)(
    'passes on the finish reason %s',
    async (finish) => {
      expect((await step(model(answer([text('Half a')], finish)))).finish).toBe(finish);
    },
  );

  test('does not add a message when the answer is empty', async () => {
    const response = await step(model(answer([])));
    expect(response).toMatchObject({ text: '', assistantMessages: [], calls: [] });
  });

  test('keeps the tool calls and the finish reason when the model reaches its length limit', async () => {
    const response = await step(model(answer([call('c1', 'weather', { city: 'Rome' })], 'length')));
    expect(response.finish).toBe('length');
    expect(response.calls).toHaveLength(1);
  });

  test("contains nothing random, and uses the runtime's ids", async () => {
    const random = vi.spyOn(Math, 'random');
    const script = (): LanguageModel =>
      model(answer([call('', 'weather', { city: 'Rome' }), call('', 'ping', {})]));
    const first = await step(script());
    expect(await step(script())).toStrictEqual(first);
    expect(first.calls.map(({ callId }) => callId)).toEqual(['call_1', 'call_2']);
    expect(random).not.toHaveBeenCalled();
  });
});

describe('MODEL-STEP-5: can be read again by any provider', () => {
  test.each(['[7]', 'null', '"Rome"', '7'])(
    'stores an empty object as arguments instead of %s',
    async (json) => {
      const response = await step(model(answer([call('c1', 'weather', json)])));
      expect(response.calls[0]?.invalid?.message).toContain('Invalid input for tool weather');
      expect(response.assistantMessages[0]?.content).toMatchObject([
        { toolCallId: 'c1', input: {} },
      ]);
    },
  );

  test('treats white space as no text, unless the provider gave it an id', async () => {
    const named = { ...text('\n'), providerMetadata: { openai: { itemId: 'msg_1' } } } as Part;
    const response = await step(model(answer([text(' \n'), named, call('c1', 'ping', {})])));
    expect(response.assistantMessages[0]?.content).toMatchObject([
      { type: 'text', text: '\n', providerOptions: { openai: { itemId: 'msg_1' } } },
      { type: 'tool-call' },
    ]);
  });
});

describe('MODEL-STEP-4: invalid calls', () => {
  test('have arguments that do not match the schema', async () => {
    const response = await step(model(answer([call('c1', 'weather', { city: 7 })])));
    expect(response.calls).toMatchObject([
      { callId: 'c1', toolName: 'weather', input: { city: 7 } },
    ]);
    const message = response.calls[0]?.invalid?.message;
    expect(message).toContain('Invalid input for tool weather');
    expect(message).toContain('expected string, received number');
    expect(response.assistantMessages).toHaveLength(1);
    expectPlainJson(response);
  });

  test('replay malformed JSON as an empty object', async () => {
    const response = await step(model(answer([call('c1', 'weather', '{"city": "Ro')])));
    expect(response.calls[0]?.invalid?.message).toContain('JSON parsing failed');
    expect(response.assistantMessages[0]?.content).toMatchObject([{ toolCallId: 'c1', input: {} }]);
    expectPlainJson(response);
  });

  test('lack required arguments', async () => {
    const response = await step(model(answer([call('c1', 'weather', '')])));
    expect(response.calls[0]?.invalid?.message).toContain('Invalid input for tool weather');
  });

  test('name an unknown tool', async () => {
    const response = await step(model(answer([call('c1', 'fly', {}), call('c2', 'ping', {})])));
    expect(response.calls[0]?.invalid?.message).toBe(
      "Model tried to call unavailable tool 'fly'. Available tools: weather, remind, ping.",
    );
    expect(response.calls[1]).toStrictEqual({ callId: 'c2', toolName: 'ping', input: {} });
    const bare = await step(model(answer([call('c1', 'fly', {})])), {
      tools: prepareTools({}, 'tools'),
    });
    expect(bare.calls[0]?.invalid?.message).toContain('No tools are available.');
  });

  test('produce an error message shorter than the arguments that it quotes', async () => {
    const huge = { city: 1, note: 'x'.repeat(100_000) };
    const response = await step(model(answer([call('c1', 'weather', huge)])));
    expect(response.calls[0]?.invalid?.message.length).toBeLessThan(4200);
  });

  test('produce an error from the runtime, so that the model can continue', async () => {
    const scripted = model(answer([call('c1', 'weather', {})]), answer([text('Sorry.')]));
    const first = await step(scripted);
    const message = first.calls[0]?.invalid?.message ?? '';
    const results = toolMessage(first.calls, [
      {
        callId: 'c1',
        outcome: {
          status: 'error',
          error: { message },
          modelOutput: { type: 'error-text', value: message },
        },
      },
    ]);
    const messages = [question, ...first.assistantMessages, results];
    expect((await step(scripted, { messages })).text).toBe('Sorry.');
    expect(scripted.prompts[1]?.prompt.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ toolCallId: 'c1', output: { type: 'error-text', value: message } }],
    });
  });
});

describe('MODEL-1: ids of calls', () => {
  const inputs = (content: Part[]) =>
    step(model(answer(content))).then(({ calls }) =>
      calls.map(({ callId, input }) => [callId, input]),
    );

  test('stay separate when an id is repeated, each with its own arguments', async () => {
    expect(
      await inputs([
        call('c1', 'weather', { city: 'Rome' }),
        call('c1', 'weather', { city: 'Oslo' }),
      ]),
    ).toEqual([
      ['c1', { city: 'Rome', days: 1 }],
      ['call_1', { city: 'Oslo', days: 1 }],
    ]);
  });

  it('get a new id when repeated', async () => {
    const content = ['call_1', 'call_1', 'call_2', 'call_2'].map((id) => call(id, 'ping', {}));
    const ids = (await inputs(content)).map(([id]) => id);
    expect(new Set(ids).size).toBe(4);
  });

  test('get a new id when missing, and accept arguments that are not text', async () => {
    const odd = { type: 'tool-call', toolName: 'weather', input: { city: 'Rome' } };
    const empty = { type: 'tool-call', toolCallId: 'c9', toolName: 'ping', input: undefined };
    expect(await inputs([odd, empty] as unknown as Part[])).toEqual([
      ['call_1', { city: 'Rome', days: 1 }],
      ['c9', {}],
    ]);
  });

  test('accept an id that an earlier step used', async () => {
    const earlier: ModelMessage[] = [
      question,
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'ping', input: {} }],
      },
      toolMessage([{ callId: 'c1', toolName: 'ping' }], [{ callId: 'c1', output: 'pong' }]),
    ];
    const response = await step(model(answer([call('c1', 'ping', {})])), { messages: earlier });
    expect(response.calls[0]?.callId).toBe('call_1');
    expect(response.assistantMessages[0]?.content).toMatchObject([{ toolCallId: 'call_1' }]);
  });

  test('keeps a call that the provider has executed, without executing it again', async () => {
    const content: Part[] = [
      {
        type: 'tool-call',
        toolCallId: 's1',
        toolName: 'web',
        input: '{"q":"x"}',
        providerExecuted: true,
        dynamic: true,
      },
      {
        type: 'tool-result',
        toolCallId: 's1',
        toolName: 'web',
        result: { hits: 2 },
        dynamic: true,
      },
      call('s1', 'ping', {}),
      text('Found.'),
    ];
    const response = await step(model(answer(content, 'stop')));
    expect(response.calls).toStrictEqual([{ callId: 'call_1', toolName: 'ping', input: {} }]);
    expect(response.assistantMessages).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 's1', providerExecuted: true },
          { type: 'tool-result', toolCallId: 's1', output: { type: 'json', value: { hits: 2 } } },
          { type: 'tool-call', toolCallId: 'call_1' },
          { type: 'text', text: 'Found.' },
        ],
      },
    ]);
    expectPlainJson(response);
  });
});

describe('MODEL-2: invalid answers', () => {
  test.each([
    [undefined, 'content [parts], got undefined'],
    [{}, 'content [parts]'],
    [{ content: [], finishReason: 'stop', usage }, 'finishReason {unified, raw}'],
    [
      { content: [], finishReason: { unified: 'stop' }, usage: { inputTokens: 3 } },
      'usage {inputTokens, outputTokens}',
    ],
  ])('%j', async (wrong, message) => {
    const failing = step(model(() => wrong as unknown as Answer));
    await expect(failing).rejects.toThrow(ProviderError);
    await expect(failing).rejects.toThrow(
      `Expected the model test/scripted to answer with ${message}`,
    );
  });

  test('include `undefined` from a mock that has no answers left', async () => {
    const mock = new MockLanguageModelV4({ doGenerate: [answer([text('one')])] });
    expect((await step(mock)).text).toBe('one');
    await expect(step(mock)).rejects.toThrow('got undefined');
  });
});

describe('MODEL-STEP-1, MODEL-STEP-2: abort', () => {
  test('rejects the step immediately with the abort reason, even if the model ignores the abort', async () => {
    const controller = new AbortController();
    const reason = new Error('cancelled by the user');
    const stuck = step(
      model(() => never()),
      { signal: controller.signal },
    );
    await macrotask();
    controller.abort(reason);
    await expect(soon(stuck)).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('reaches the model as a signal', async () => {
    const controller = new AbortController();
    const scripted = model(
      ({ abortSignal }) =>
        new Promise((_, reject) => {
          abortSignal?.addEventListener('abort', () => reject(new Error('socket closed')));
        }),
    );
    const stuck = step(scripted, { signal: controller.signal });
    await macrotask();
    controller.abort('stop');
    await expect(soon(stuck)).rejects.toBe('stop');
  });

  test('discards an answer that arrives at the same moment as the abort', async () => {
    const controller = new AbortController();
    const scripted = model(() => {
      controller.abort(new Error('too late'));
      return answer([text('done')]);
    });
    await expect(step(scripted, { signal: controller.signal })).rejects.toThrow('too late');
  });

  test('prevents the model call when the signal has already aborted', async () => {
    const scripted = model(answer([text('done')]));
    await expect(step(scripted, { signal: AbortSignal.abort('over') })).rejects.toBe('over');
    await macrotask();
    expect(scripted.prompts).toHaveLength(0);
  });

  test('does not cause an unhandled rejection when an abandoned model fails later', async () => {
    const unhandled: unknown[] = [];
    const listen = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listen);
    const controller = new AbortController();
    const late = deferred<Answer>();
    const stuck = step(
      model(() => late.promise),
      { signal: controller.signal },
    );
    await macrotask();
    controller.abort('stop');
    await expect(stuck).rejects.toBe('stop');
    late.reject(new Error('late'));
    await macrotask();
    await macrotask();
    process.off('unhandledRejection', listen);
    expect(unhandled).toEqual([]);
  });

  test('leaves no listeners on a signal that outlives many steps', async () => {
    const { signal } = new AbortController();
    for (let round = 0; round < 20; round += 1) await step(model(answer([text('ok')])), { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('the request to the model', () => {
  test('contains instructions, messages, tools and settings', async () => {
    const scripted = model(answer([text('ok')]), answer([text('ok')]));
    await step(scripted, {
      settings: {
        temperature: 0.2,
        headers: { 'x-test': '1' },
        providerOptions: { test: { a: 1 } },
      },
    });
    expect(scripted.prompts[0]).toMatchObject({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'What is the weather?' }] },
      ],
      temperature: 0.2,
      headers: { 'x-test': '1' },
      providerOptions: { test: { a: 1 } },
      toolChoice: { type: 'auto' },
    });
    expect(scripted.prompts[0]?.tools?.map(({ name }) => name)).toEqual([
      'weather',
      'remind',
      'ping',
    ]);
    await step(scripted, { instructions: '' });
    expect(scripted.prompts[1]?.prompt.map(({ role }) => role)).toEqual(['user']);
  });

  test('gets sent only once, even if it fails', async () => {
    let calls = 0;
    const busy = new APICallError({
      message: 'busy',
      url: 'http://127.0.0.1',
      requestBodyValues: {},
      statusCode: 503,
    });
    const failing = model(() => {
      calls += 1;
      throw busy;
    });
    await expect(step(failing)).rejects.toBe(busy);
    expect(calls).toBe(1);
  });

  test('throws if the model calls a tool when none are allowed', async () => {
    const scripted = model(answer([call('c1', 'ping', {})]));
    await expect(step(scripted, { toolChoice: 'none' })).rejects.toThrow(ToolChoiceViolationError);
  });
});

describe('models', () => {
  test('supports MockLanguageModelV4 and an older specification', async () => {
    const fresh = new MockLanguageModelV4({ doGenerate: async () => answer([text('four')]) });
    expect((await step(fresh)).text).toBe('four');
    const older = new MockLanguageModelV3({
      doGenerate: async () => ({
        content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'ping', input: '{}' }],
        finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
        usage,
        warnings: [],
      }),
    });
    for (let time = 0; time < 2; time += 1)
      expect(await step(older)).toMatchObject({
        finish: 'tool-calls',
        calls: [{ callId: 'c1', toolName: 'ping' }],
      });
  });

  test('looks up a string in the default provider, which can be a registry', async () => {
    const scripted = new MockLanguageModelV4({
      doGenerate: async () => answer([call('c1', 'ping', {})]),
    });
    globalThis.AI_SDK_DEFAULT_PROVIDER = createProviderRegistry({
      local: new MockProviderV4({ languageModels: { fast: scripted } }),
    }) as unknown as NonNullable<typeof globalThis.AI_SDK_DEFAULT_PROVIDER>;
    expect(await step('local:fast')).toMatchObject({
      finish: 'tool-calls',
      usage: { inputTokens: 10 },
      calls: [{ toolName: 'ping' }],
    });
    await expect(step('local:slow')).rejects.toThrow('slow');
  });

  test.each([[undefined], [{}], [{ specificationVersion: 'v9' }]])('refuses %j', async (wrong) => {
    await expect(step(wrong as unknown as LanguageModel)).rejects.toThrow(ConfigurationError);
  });
});

describe('telemetry', () => {
  test("sends its events to a registered integration, with the runtime's ids and clock", async () => {
    const seen: { callId: string; timeMs?: number }[] = [];
    globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = [
      {
        onStart: ({ callId }) => void seen.push({ callId }),
        onStepEnd: ({ callId, performance }) =>
          void seen.push({ callId, timeMs: performance.responseTimeMs }),
      },
    ];
    const clock = { now: () => 1000 };
    await step(model(answer([text('ok')])), { clock });
    expect(seen).toEqual([{ callId: 'step_1' }, { callId: 'step_1', timeMs: 0 }]);
  });

  test('sends its events to a subscriber of the tracing channel', async () => {
    const types: unknown[] = [];
    const channel = tracingChannel(AI_SDK_TELEMETRY_TRACING_CHANNEL);
    const start = (message: unknown): void => void types.push((message as { type: string }).type);
    channel.start.subscribe(start);
    try {
      await step(model(answer([text('ok')])));
    } finally {
      channel.start.unsubscribe(start);
    }
    expect(types).toContain('generateText');
  });
});

test('supports a loop of three steps and two tools', async () => {
  const scripted = model(
    answer([call('c1', 'weather', { city: 'Rome' })]),
    answer([call('c2', 'remind', { at: '2030-01-01' })]),
    answer([text('Rome is sunny.')]),
  );
  const { signal } = new AbortController();
  const messages: ModelMessage[] = [question];
  const environment = manualTime();
  for (let number = 0; number < 3; number += 1) {
    const response = await step(scripted, { messages, signal });
    messages.push(...response.assistantMessages);
    if (response.calls.length === 0) break;
    const results = [];
    for (const { callId, toolName, input, raw } of response.calls)
      results.push({
        callId,
        outcome: await runToolCall({
          tool: tools.execution.get(toolName)!,
          callId,
          input,
          raw,
          messages,
          signal,
          idempotencyKey: callId,
          environment,
        }),
      });
    messages.push(toolMessage(response.calls, results));
  }
  expect(messages.map(({ role }) => role).join(' ')).toBe(
    'user assistant tool assistant tool assistant',
  );
  expect(scripted.prompts[2]?.prompt.filter(({ role }) => role === 'tool')).toMatchObject([
    { content: [{ output: { type: 'text', value: 'Rome: sun for 1' } }] },
    { content: [{ output: { type: 'json', value: 2030 } }] },
  ]);
  expectPlainJson(messages);
});
