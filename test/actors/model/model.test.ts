import { APICallError, jsonSchema, UnsupportedFunctionalityError, type LanguageModel } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runModelStep } from '../../../src/actors/model/model-step.ts';
import { structuredOutput } from '../../../src/actors/model/output.ts';
import { prepareTools } from '../../../src/actors/model/tools.ts';
import {
  answer,
  call,
  countingIds,
  model,
  text,
  type Answer,
  type ScriptedModel,
} from './fakes.ts';
import { resolveModel, streamedAnswer, type Delta } from '../../../src/actors/model/model.ts';
import { scriptedModel } from '../../../src/testing/index.ts';

const prices = z.object({ price: z.number() });
const json = text('{"price":12}');

const refusal = (statusCode: number, message = 'response_format is not supported'): APICallError =>
  new APICallError({ message, statusCode, url: 'http://127.0.0.1', requestBodyValues: {} });

const throwing = (error: unknown) => (): Answer => {
  throw error;
};

function asking(asked: LanguageModel, schema: unknown = prices) {
  const reports: unknown[] = [];
  const step = () =>
    runModelStep({
      caller: { name: 'tester' },
      model: asked,
      instructions: 'Tell the price.',
      messages: [{ role: 'user', content: 'Well?' }],
      tools: prepareTools({ look: { inputSchema: z.object({ at: z.string() }) } }, 'tools'),
      signal: new AbortController().signal,
      ids: countingIds(),
      structured: structuredOutput(asked, schema, (error) => reports.push(error)),
    });
  return { step, reports };
}

const formatsOf = ({ prompts }: ScriptedModel): unknown[] =>
  prompts.map(({ responseFormat }) => responseFormat?.type ?? null);

test('sends the output schema together with the tools', async () => {
  const asked = model(answer([call('c1', 'look', { at: 'shop' })]), answer([json]));
  const { step } = asking(asked);
  expect((await step()).calls).toMatchObject([{ toolName: 'look' }]);
  expect((await step()).text).toBe('{"price":12}');
  expect(asked.prompts[1]).toMatchObject({
    tools: [{ name: 'look' }],
    responseFormat: {
      type: 'json',
      name: 'result',
      schema: { type: 'object', properties: { price: { type: 'number' } } },
    },
  });
});

test.each([
  ['an array', z.array(z.number())],
  ['a union', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
  ['a schema that is promised', () => jsonSchema(Promise.resolve({ type: 'object' }))],
])('%s is asked for in words', async (_, schema) => {
  const asked = model(answer([json]));
  await asking(asked, schema).step();
  expect(formatsOf(asked)).toEqual([null]);
});

describe('STRUCT-1: a call whose format the model refuses', () => {
  test.each([
    ['400', refusal(400)],
    ['422', refusal(422)],
    ['an error of the SDK', new UnsupportedFunctionalityError({ functionality: 'JSON' })],
  ])('repeats the call once with the format described in words: %s', async (_, error) => {
    const asked = model(throwing(error), answer([json]), answer([json]));
    const { step, reports } = asking(asked);
    expect((await step()).text).toBe('{"price":12}');
    expect(reports).toEqual([error]);
    expect(formatsOf(asked)).toEqual(['json', null]);
  });

  test.each([400, 422])(
    'throws the error if the call fails again without the format: %s',
    async (status) => {
      const asked = model(
        throwing(refusal(status, 'the history is broken')),
        throwing(refusal(status, 'the history is broken')),
        answer([json]),
      );
      const { step, reports } = asking(asked);
      await expect(step()).rejects.toThrow('the history is broken');
      expect(reports).toEqual([]);
      // The format was not the cause, so the answer is requested again.
      await asking(asked).step();
      expect(formatsOf(asked)).toEqual(['json', null, 'json']);
    },
  );

  test.each([401, 429, 500, 503])(
    'throws any other error without calling the model again: %s',
    async (status) => {
      const asked = model(throwing(refusal(status, 'no')), answer([json]));
      await expect(asking(asked).step()).rejects.toThrow('no');
      expect(formatsOf(asked)).toEqual(['json']);
    },
  );
});

describe('STRUCT-2: an answer without content', () => {
  test('repeats the request with written instructions, and counts the tokens of both calls', async () => {
    const asked = model(answer([], 'stop'), answer([json]), answer([json]));
    const { step, reports } = asking(asked);
    expect(await step()).toMatchObject({
      text: '{"price":12}',
      usage: { inputTokens: 20, outputTokens: 10, totalTokens: 30, cachedInputTokens: 4 },
    });
    expect(reports).toHaveLength(1);
    await asking(asked).step();
    expect(formatsOf(asked)).toEqual(['json', null, null]);
  });

  test('returns a second empty answer unchanged', async () => {
    const asked = model(answer([], 'stop'), answer([], 'stop'), answer([json]));
    const { step, reports } = asking(asked);
    expect(await step()).toMatchObject({ text: '', usage: { totalTokens: 30 } });
    expect(reports).toEqual([]);
    await asking(asked).step();
    expect(formatsOf(asked)).toEqual(['json', null, 'json']);
  });
});

describe('STRUCT-3: does not request a refused format again', () => {
  test('tries another schema after a refusal, but does not resend the schema that the model refused', async () => {
    const asked = model(
      throwing(refusal(400)),
      answer([json]),
      answer([json]),
      answer([text('{"name":"x"}')]),
    );
    await asking(asked).step();
    await asking(asked).step();
    await asking(asked, z.object({ name: z.string() })).step();
    expect(formatsOf(asked)).toEqual(['json', null, null, 'json']);
  });

  test('stops requesting formats from the model after two refused schemas', async () => {
    const asked = model(
      throwing(refusal(400)),
      answer([json]),
      throwing(refusal(400)),
      answer([json]),
      answer([json]),
    );
    for (const key of ['a', 'b', 'c']) await asking(asked, z.object({ [key]: z.string() })).step();
    expect(formatsOf(asked)).toEqual(['json', null, 'json', null, null]);
  });

  test.each([
    { type: 'unsupported', feature: 'responseFormat' },
    { type: 'unsupported-setting', setting: 'responseFormat' },
  ])(
    'stops requesting a format after a model warns that it ignores the format: %o',
    async (warning) => {
      const warned = { ...answer([json]), warnings: [warning] } as unknown as Answer;
      const asked = model(warned, answer([json]));
      expect((await asking(asked).step()).text).toBe('{"price":12}');
      await asking(asked, z.object({ other: z.string() })).step();
      expect(formatsOf(asked)).toEqual(['json', null]);
    },
  );

  test('still requests the format from another model', async () => {
    const [one, other] = [model(throwing(refusal(400)), answer([json])), model(answer([json]))];
    await asking(one).step();
    await asking(other).step();
    expect(formatsOf(other)).toEqual(['json']);
  });
});

type Stream = Parameters<typeof streamedAnswer>[0]['stream'];
type Part = Stream extends ReadableStream<infer P> ? P : never;

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};
const none = undefined;
const noUsage = {
  inputTokens: { total: none, noCache: none, cacheRead: none, cacheWrite: none },
  outputTokens: { total: none, text: none, reasoning: none },
};
const finish: Part = { type: 'finish', usage, finishReason: { unified: 'stop', raw: 'stop' } };

function streamOf(parts: readonly Part[], cancelled?: () => void): Stream {
  let next = 0;
  return new ReadableStream<Part>(
    {
      pull(controller) {
        const part = parts[next];
        next += 1;
        if (part) controller.enqueue(part);
        else controller.close();
      },
      ...(cancelled ? { cancel: cancelled } : {}),
    },
    { highWaterMark: 0 },
  );
}

async function read(parts: readonly Part[]) {
  const told: Delta[] = [];
  const answer = await streamedAnswer({ stream: streamOf(parts) }, undefined, (delta) =>
    told.push(delta),
  );
  return { answer, told };
}

describe('STREAMED-ANSWER-1: the answer', () => {
  test('equals the result of a non-streaming call', async () => {
    const steps = [
      {
        thinking: 'hm hm',
        text: 'Let me see.',
        calls: [{ name: 'look', input: { at: 'it' }, id: 'c1' }],
      },
    ];
    const call = { prompt: [], abortSignal: undefined } as never;
    const [whole, streaming] = [
      resolveModel(scriptedModel(steps)),
      resolveModel(scriptedModel(steps)),
    ];
    const told: Delta[] = [];
    const answer = await streamedAnswer(await streaming.doStream(call), undefined, (delta) =>
      told.push(delta),
    );
    expect(answer).toEqual(await whole.doGenerate(call));
    expect(told.filter(({ type }) => type === 'text').map(({ delta }) => delta)).toEqual([
      'Let ',
      'me ',
      'see.',
    ]);
  });

  test('keeps its parts in the order in which they started, and omits empty parts', async () => {
    const { answer, told } = await read([
      { type: 'text-start', id: '1' },
      { type: 'text-start', id: '2' },
      { type: 'text-start', id: '3' },
      { type: 'text-delta', id: '2', delta: 'two' },
      { type: 'text-delta', id: '1', delta: 'one' },
      { type: 'text-delta', id: '9', delta: 'of nobody' },
      { type: 'text-end', id: '1' },
      finish,
    ]);
    expect(answer.content).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ]);
    expect(told.map(({ delta }) => delta)).toEqual(['two', 'one']);
  });

  test('keeps the provider metadata of hidden reasoning', async () => {
    const providerMetadata = { openai: { encrypted: 'abc' } };
    const { answer } = await read([
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-end', id: '1', providerMetadata },
      { type: 'response-metadata', id: 'resp_1' },
      finish,
    ]);
    expect(answer.content).toEqual([{ type: 'reasoning', text: '', providerMetadata }]);
    expect(answer.response).toEqual({ id: 'resp_1' });
    expect(answer.usage).toEqual(usage);
  });
});

test('STREAMED-ANSWER-1: keeps the provider metadata of an empty reasoning delta', async () => {
  const providerMetadata = { anthropic: { signature: 'sig' } };
  const { answer } = await read([
    { type: 'reasoning-start', id: '1' },
    { type: 'reasoning-delta', id: '1', delta: 'Hm.' },
    { type: 'reasoning-delta', id: '1', delta: '', providerMetadata },
    { type: 'reasoning-end', id: '1' },
    finish,
  ]);
  expect(answer.content).toEqual([{ type: 'reasoning', text: 'Hm.', providerMetadata }]);
});

describe('STREAMED-ANSWER-2: a call whose stream ends', () => {
  test('rejects with the error in the stream', async () => {
    const error = new Error('overloaded');
    await expect(read([{ type: 'error', error }, finish])).rejects.toBe(error);
  });

  test('rejects with a retryable error if the stream ends without a finish part', async () => {
    await expect(read([{ type: 'text-start', id: '1' }])).rejects.toMatchObject({
      code: 'STREAM_CUT_OFF',
      retryable: true,
    });
  });

  test.each([
    ['says that it just ended', 'interrupted', usage],
    ['cannot say why it ended, and what it cost', 'other', noUsage],
  ] as const)('rejects with a retryable error if the package %s', async (_, unified, spent) => {
    const reading = read([
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'Sales are' },
      { type: 'finish', usage: spent, finishReason: { unified, raw: undefined } },
    ]);
    await expect(reading).rejects.toMatchObject({ code: 'STREAM_CUT_OFF', retryable: true });
  });

  test('succeeds if the provider reports the usage but no finish reason', async () => {
    const { answer } = await read([
      { type: 'finish', usage, finishReason: { unified: 'other', raw: undefined } },
    ]);
    expect(answer.finishReason.unified).toBe('other');
  });

  test('rejects on abort, and cancels the stream', async () => {
    const controller = new AbortController();
    let isCancelled = false;
    const parts: Part[] = [
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'one' },
      { type: 'text-delta', id: '1', delta: 'two' },
      finish,
    ];
    const told: string[] = [];
    const stream = streamOf(parts, () => {
      isCancelled = true;
    });
    const reading = streamedAnswer({ stream }, controller.signal, ({ delta }) => {
      told.push(delta);
      controller.abort(new Error('enough'));
    });
    await expect(reading).rejects.toThrow('enough');
    expect(told).toEqual(['one']);
    expect(isCancelled).toBe(true);
  });
});
