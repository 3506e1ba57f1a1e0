// The cost of model calls: the app supplies the prices, the outcome contains the total, and a budget can limit it.

import { describe, expect, test } from 'vitest';
import { subtreeUsage } from '../../../src/entries/subagents.ts';
import { ConfigurationError, type Price } from '../../../src/index.ts';
import { calls, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';

type PricedCall = Parameters<Price>[0];

const look = { look: simpleTool(() => 'seen') };
/** Calls `look` until its last answer is requested, and then reports its finding. */
const looking = steps(({ prompt }) => {
  const last = prompt.at(-1);
  const isOver = last?.role === 'user' && JSON.stringify(last.content).includes('last answer');
  return isOver ? say('Half of it.') : calls(['look']);
});

const priced = (script: ReturnType<typeof steps>, price: Price) => subagentRuns(script, { price });

describe('price', () => {
  test('gets called once for each model call, with the model and its token usage', async () => {
    const asked: PricedCall[] = [];
    const runs = priced(steps(calls(['look']), say('Seen.')), (call) => {
      asked.push(call);
      return 0.25;
    });
    const outcome = await runs.outcome({ tools: look });
    expect(outcome).toMatchObject({ status: 'completed', usage: { cost: 0.5 } });
    const { provider, modelId } = runs.model;
    expect(asked).toHaveLength(2);
    for (const { usage, ...call } of asked) {
      expect(call).toEqual({ provider, modelId, name: 'worker' });
      expect(usage.totalTokens).toBeGreaterThan(0);
    }
    const total = asked.reduce((sum, { usage }) => sum + usage.totalTokens, 0);
    expect(outcome.usage.totalTokens).toBe(total);
  });

  test('calls price with an estimate if the provider reports no usage, but omits it from the outcome', async () => {
    const asked: PricedCall[] = [];
    const { model, outcome } = priced(steps(say('y'.repeat(80))), (call) => asked.push(call));
    const silent: typeof model = {
      ...model,
      doGenerate: async (call) => ({
        ...(await model.doGenerate(call)),
        usage: { inputTokens: {}, outputTokens: {} } as never,
      }),
    };
    const { usage } = await outcome({}, { model: silent });
    expect(usage).toEqual({ inputTokens: 0, outputTokens: 0, totalTokens: 0, cost: 1 });
    expect(asked[0]?.usage).toMatchObject({ outputTokens: 20 });
    expect(asked[0]?.usage.inputTokens).toBeGreaterThan(0);
  });

  test('calls price with the cached tokens and the tokens written to the cache', async () => {
    const asked: PricedCall[] = [];
    const { model, outcome } = priced(steps(say('Done.')), (call) => asked.push(call));
    const caching: typeof model = {
      ...model,
      doGenerate: async (call) => ({
        ...(await model.doGenerate(call)),
        usage: {
          inputTokens: { total: 100, noCache: 10, cacheRead: 70, cacheWrite: 20 },
          outputTokens: { total: 9, text: 4, reasoning: 5 },
        },
      }),
    };
    const counted = {
      inputTokens: 100,
      outputTokens: 9,
      totalTokens: 109,
      cachedInputTokens: 70,
      cacheWriteTokens: 20,
      reasoningTokens: 5,
    };
    expect((await outcome({}, { model: caching })).usage).toEqual({ ...counted, cost: 1 });
    expect(asked[0]?.usage).toEqual(counted);
  });

  test.each<[string, () => unknown]>([
    ['not a number', () => NaN],
    ['negative', () => -1],
    ['infinite', () => Infinity],
    ['text', () => '1.50'],
    ['nothing', () => undefined],
    ['a promise', async () => 1],
    [
      'an error',
      () => {
        throw new Error('no such model');
      },
    ],
  ])('reports a price that is %s, and loses nothing', async (_what, price) => {
    const runs = priced(steps(calls(['look']), say('Seen.')), price as Price);
    const outcome = await runs.outcome({ tools: look });
    expect(outcome).toMatchObject({ status: 'completed', text: 'Seen.' });
    expect(outcome.usage).not.toHaveProperty('cost');
    expect(runs.errors).toHaveLength(2);
    expect(runs.errors[0]?.where).toContain('price');
  });

  test('fails if it is not a function', () => {
    expect(() => subagentRuns(steps(say('Never.')), { price: 5 as never })).toThrow(
      ConfigurationError,
    );
  });
});

describe('budget.cost', () => {
  test('ends the work with its partial result once the budget is spent', async () => {
    const runs = priced(looking, () => 0.4);
    const outcome = await runs.outcome({ tools: look, maxSteps: 100, budget: { cost: 1 } });
    expect(outcome).toMatchObject({
      status: 'failed',
      partial: 'Half of it.',
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('cost') },
    });
    // 0.4, 0.8, 1.2: the third call started with 0.2 left. Then comes the last one, which exceeds the limit.
    expect(runs.prompts).toHaveLength(4);
    expect(outcome.usage.cost).toBeCloseTo(1.6);
  });

  test('lets the work complete while money is left', async () => {
    const { outcome } = priced(steps(calls(['look']), say('Seen.')), () => 0.4);
    expect(await outcome({ tools: look, budget: { cost: 1 } })).toMatchObject({ text: 'Seen.' });
  });

  test('treats a call with unknown cost as the last call', async () => {
    const runs = priced(looking, () => NaN);
    const outcome = await runs.outcome({ tools: look, maxSteps: 100, budget: { cost: 1 } });
    expect(outcome).toMatchObject({
      partial: 'Half of it.',
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('not known') },
    });
    expect(runs.prompts).toHaveLength(2);
  });

  test('counts an aborted call because the provider may have processed it', async () => {
    const asked: PricedCall[] = [];
    const { run, model, environment } = priced(looking, (call) => asked.push(call));
    let isHanging = false;
    const hanging: typeof model = {
      ...model,
      doGenerate: (call) =>
        new Promise((_resolve, reject) => {
          isHanging = true;
          call.abortSignal?.addEventListener('abort', () => reject(new Error('aborted')));
        }),
    };
    const { cancel, result } = run({ budget: { cost: 100 } }, { model: hanging });
    await environment.settle();
    expect(isHanging).toBe(true);
    cancel();
    await result;
    await environment.settle();
    expect(asked).toMatchObject([{ usage: { outputTokens: 0 } }]);
  });

  test.each([0, -1, NaN, Infinity, '1'])('refuses %o at configuration time', (cost) => {
    const { run } = priced(looking, () => 1);
    expect(() => run({ budget: { cost: cost as number } })).toThrow(/budget/);
  });

  test('refuses a run without a price, because its cost could not be counted', () => {
    const { run } = subagentRuns(looking);
    expect(() => run({ budget: { cost: 1 } })).toThrow(/expected `price`.*beside `budget.cost`/);
  });
});

describe('the usage of a subtree', () => {
  const usage = (totalTokens: number, cost?: number) => ({
    inputTokens: 0,
    outputTokens: totalTokens,
    totalTokens,
    ...(cost === undefined ? {} : { cost }),
  });
  const subagents = [
    { id: 'a', parentId: null, usage: usage(1, 0.5) },
    { id: 'b', parentId: 'a', usage: usage(10) },
    { id: 'c', parentId: 'b', usage: usage(100, 0.25) },
    { id: 'd', parentId: null, usage: usage(1000) },
    // The parent of `e` was deleted.
    { id: 'e', parentId: 'gone', usage: usage(10_000) },
  ];

  test.each([
    ['a', 111, 0.75],
    ['b', 110, 0.25],
    ['d', 1000, undefined],
    [null, 11_111, 0.75],
    ['nobody', 0, undefined],
  ] as const)('sums the usage under %s to %d tokens', (id, totalTokens, cost) => {
    expect(subtreeUsage(subagents, id)).toEqual(usage(totalTokens, cost));
  });

  test('refuses subagents without usage and ids that are not strings', () => {
    expect(() => subtreeUsage([{ id: 'a' }] as never, 'a')).toThrow(/subtreeUsage.*usage/s);
    expect(() => subtreeUsage(subagents, 5 as never)).toThrow(ConfigurationError);
  });
});
