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

test('the schema goes with the call, beside the tools', async () => {
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

describe('STRUCT-1: refused for its format', () => {
  test.each([
    ['400', refusal(400)],
    ['422', refusal(422)],
    ['an error of the SDK', new UnsupportedFunctionalityError({ functionality: 'JSON' })],
  ])('the call is made again in words, once: %s', async (_, error) => {
    const asked = model(throwing(error), answer([json]), answer([json]));
    const { step, reports } = asking(asked);
    expect((await step()).text).toBe('{"price":12}');
    expect(reports).toEqual([error]);
    expect(formatsOf(asked)).toEqual(['json', null]);
  });

  test.each([400, 422])(
    'an error that also occurs without it is not hidden: %s',
    async (status) => {
      const asked = model(
        throwing(refusal(status, 'the history is broken')),
        throwing(refusal(status, 'the history is broken')),
        answer([json]),
      );
      const { step, reports } = asking(asked);
      await expect(step()).rejects.toThrow('the history is broken');
      expect(reports).toEqual([]);
      // It was not the format: it is asked for again.
      await asking(asked).step();
      expect(formatsOf(asked)).toEqual(['json', null, 'json']);
    },
  );

  test.each([401, 429, 500, 503])(
    'any other error is the error of the call: %s',
    async (status) => {
      const asked = model(throwing(refusal(status, 'no')), answer([json]));
      await expect(asking(asked).step()).rejects.toThrow('no');
      expect(formatsOf(asked)).toEqual(['json']);
    },
  );
});

describe('STRUCT-2: an answer that holds nothing', () => {
  test('is asked for again in words, and the tokens of both are counted', async () => {
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

  test('twice is what the model says', async () => {
    const asked = model(answer([], 'stop'), answer([], 'stop'), answer([json]));
    const { step, reports } = asking(asked);
    expect(await step()).toMatchObject({ text: '', usage: { totalTokens: 30 } });
    expect(reports).toEqual([]);
    await asking(asked).step();
    expect(formatsOf(asked)).toEqual(['json', null, 'json']);
  });
});

describe('STRUCT-3: a refused format is not requested again', () => {
  test('a schema of a model; another schema is tried', async () => {
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

  test('after two schemas the model', async () => {
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
  ])('a model that ignores it, after its first answer, which counts: %o', async (warning) => {
    const warned = { ...answer([json]), warnings: [warning] } as unknown as Answer;
    const asked = model(warned, answer([json]));
    expect((await asking(asked).step()).text).toBe('{"price":12}');
    await asking(asked, z.object({ other: z.string() })).step();
    expect(formatsOf(asked)).toEqual(['json', null]);
  });

  test('another model is asked', async () => {
    const [one, other] = [model(throwing(refusal(400)), answer([json])), model(answer([json]))];
    await asking(one).step();
    await asking(other).step();
    expect(formatsOf(other)).toEqual(['json']);
  });
});
