// A stream of a model, taken as one answer.

import { describe, expect, test } from 'vitest';
import { resolveModel } from '../../../src/actors/model/model.ts';
import { streamedAnswer, type Delta } from '../../../src/actors/model/streamed-answer.ts';
import { scriptedModel } from '../../../src/testing/index.ts';

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
  test('is what the model gives at once', async () => {
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

  test('keeps the order in which its parts began, and leaves out those that hold nothing', async () => {
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

  test('keeps what proves reasoning that is not shown', async () => {
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

test('STREAMED-ANSWER-1: the proof of the reasoning may come in a piece without words', async () => {
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

describe('STREAMED-ANSWER-2: the call fails', () => {
  test('with the error in the stream', async () => {
    const error = new Error('overloaded');
    await expect(read([{ type: 'error', error }, finish])).rejects.toBe(error);
  });

  test('if the stream just ends', async () => {
    await expect(read([{ type: 'text-start', id: '1' }])).rejects.toMatchObject({
      code: 'STREAM_CUT_OFF',
      retryable: true,
    });
  });

  test.each([
    ['says that it just ended', 'interrupted', usage],
    ['cannot say why it ended, and what it cost', 'other', noUsage],
  ] as const)('if the package %s', async (_, unified, spent) => {
    const reading = read([
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'Sales are' },
      { type: 'finish', usage: spent, finishReason: { unified, raw: undefined } },
    ]);
    await expect(reading).rejects.toMatchObject({ code: 'STREAM_CUT_OFF', retryable: true });
  });

  test('not if the provider gives no reason, but the cost', async () => {
    const { answer } = await read([
      { type: 'finish', usage, finishReason: { unified: 'other', raw: undefined } },
    ]);
    expect(answer.finishReason.unified).toBe('other');
  });

  test('when nobody waits any more, and the stream is told so', async () => {
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
