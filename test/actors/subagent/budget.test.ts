// A subagent with a budget: model calls are refused before they are made, and one last step returns the completed work.

import { describe, expect, test } from 'vitest';
import { estimateTokens } from '../../../src/actors/model/price.ts';
import { permitFor } from '../../../src/actors/subagent/subagent-work.ts';
import { Budget } from '../../../src/actors/admission/budget.ts';
import type { Usage } from '../../../src/actors/contracts/usage.ts';
import type { ScriptedStep } from '../../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';

type Runs = ReturnType<typeof subagentRuns>;
type Generate = Runs['model']['doGenerate'];
type Result = Awaited<ReturnType<Generate>>;

/** The same model with changed usage, and a record of its limits. */
function metered({ model }: Runs, change: (result: Result, call: number) => Result) {
  const limits: (number | undefined)[] = [];
  const doGenerate: Generate = async (call) => {
    limits.push(call.maxOutputTokens);
    return change(await model.doGenerate(call), limits.length);
  };
  return { model: { ...model, doGenerate }, limits };
}

const costing =
  (tokens: number) =>
  (result: Result): Result => ({
    ...result,
    usage: {
      inputTokens: { ...result.usage.inputTokens, total: tokens },
      outputTokens: { ...result.usage.outputTokens, total: 0 },
    },
  });

const look = { look: simpleTool(() => 'seen') };
/** Calls `look` until its last answer is requested, and then reports its finding. */
const looking = (found: string): ReturnType<typeof steps> =>
  steps(({ prompt }): ScriptedStep => {
    const last = prompt.at(-1);
    const isOver = last?.role === 'user' && JSON.stringify(last.content).includes('last answer');
    return isOver ? say(found) : calls(['look']);
  });

describe('an exhausted budget', () => {
  test('fails the run after a final step without tools, and keeps its partial work', async () => {
    const runs = subagentRuns(looking('So far: half of it.'));
    const { model } = metered(runs, costing(4_000));
    const outcome = await runs.outcome(
      { tools: look, maxSteps: 100, budget: { tokens: 10_000 } },
      { model },
    );
    expect(outcome).toMatchObject({
      status: 'failed',
      partial: 'So far: half of it.',
      output: null,
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('tokens') },
    });
    // After 4000 and 4000, the rest was enough for one more call and for the last one.
    expect(runs.prompts).toHaveLength(4);
    expect(outcome.usage.totalTokens).toBe(16_000);
  });

  test('allows the configured number of steps plus a final step', async () => {
    const runs = subagentRuns(looking('Two looks.'));
    const outcome = await runs.outcome({ tools: look, maxSteps: 100, budget: { steps: 2 } });
    expect(outcome).toMatchObject({
      partial: 'Two looks.',
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('steps') },
    });
    expect(runs.prompts).toHaveLength(3);
  });

  test('does not affect a subagent that completes within the budget', async () => {
    const runs = subagentRuns(steps(calls(['look']), say('Seen.')));
    const outcome = await runs.outcome({ tools: look, budget: { steps: 2, tokens: 10_000 } });
    expect(outcome).toMatchObject({ status: 'completed', text: 'Seen.' });
  });

  test('counts a retried call as another step', async () => {
    let failures = 0;
    const runs = subagentRuns((prompt) => {
      if (JSON.stringify(prompt.prompt.at(-1)).includes('last answer')) return say('Nothing yet.');
      failures += 1;
      throw Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true });
    });
    const { result } = runs.run({ budget: { steps: 2 }, retry: { maxAttempts: 5 } });
    await runs.environment.advance(60_000);
    expect((await result).error?.code).toBe('BUDGET_EXHAUSTED');
    expect(failures).toBe(2);
  });

  test('treats an answer cut off by the budget as partial work, not as a model failure', async () => {
    const runs = subagentRuns(steps(say('The first half of')));
    const { model, limits } = metered(runs, (result) => ({
      ...result,
      finishReason: { unified: 'length', raw: 'length' },
    }));
    const outcome = await runs.outcome({ budget: { tokens: 1_000 } }, { model });
    expect(outcome).toMatchObject({
      partial: 'The first half of',
      error: { code: 'BUDGET_EXHAUSTED' },
    });
    expect(limits).toHaveLength(1);
    expect(limits[0]).toBeLessThan(1_000);
  });

  test('abandons open questions when its time is up, but returns the partial work', async () => {
    const runs = subagentRuns(steps(calls(['ask_user', { question: 'Go on?' }]), say('Nobody.')));
    const { result } = runs.run(
      { interactive: true, budget: { timeMs: 5_000 } },
      { onQuestion: never },
    );
    await runs.environment.advance(5_000);
    expect(await result).toMatchObject({
      status: 'failed',
      partial: 'Nobody.',
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('timeMs') },
    });
    expect(runs.environment.pendingTimers).toBe(0);
  });

  test('clears its timer when the subagent ends early', async () => {
    const runs = subagentRuns(steps(say('Quick.')));
    expect(await runs.outcome({ budget: { timeMs: 5_000 } })).toMatchObject({ text: 'Quick.' });
    expect(runs.environment.pendingTimers).toBe(0);
  });

  test.each([{ tokens: 0 }, { steps: 1.5 }, { agents: -1 }, { timeMs: 0 }, { money: 5 }])(
    'refuses an impossible budget at configuration time: %o',
    (budget) => {
      const runs = subagentRuns(steps(say('Never.')));
      expect(() => runs.run({ budget })).toThrow(/budget/);
    },
  );
});

describe('the cost of a call', () => {
  const budgetOf = (tokens: number): Budget => Budget.create({ tokens }, () => 0);
  const asking = (budget: Budget | null, final = false) =>
    permitFor({ budget, instructions: 'x'.repeat(400), messages: [], final });
  const usage = (totalTokens: number) => ({ inputTokens: 0, outputTokens: 0, totalTokens });
  const free = (): number => 0;
  const answered = (permit: ReturnType<typeof asking>, counted: Usage, text: string): void => {
    if (permit.ok) permit.settle(permit.counted({ usage: counted, text }).totalTokens, 0);
  };

  test("equals the provider's count, or an estimate if the provider reports no count", () => {
    const budget = budgetOf(1_000);
    const counted = asking(budget);
    answered(counted, usage(300), 'whatever');
    // The call is settled once.
    if (counted.ok) counted.failed(true, free);
    expect(budget.report.tokens).toMatchObject({ spent: 300, reserved: 0 });
    const silent = budgetOf(1_000);
    answered(asking(silent), usage(0), 'y'.repeat(80));
    expect(silent.report.tokens?.spent).toBe(120);
  });

  test('charges for an aborted call, which the provider may have processed, but not for a failed call', () => {
    const [broken, failed] = [budgetOf(1_000), budgetOf(1_000)];
    const [first, second] = [asking(broken), asking(failed)];
    if (first.ok) first.failed(true, free);
    if (second.ok) second.failed(false, free);
    expect([broken.report.tokens?.spent, failed.report.tokens?.spent]).toEqual([100, 0]);
  });

  test('refuses a call that exceeds the budget, unless it is the final call', () => {
    expect(asking(budgetOf(100))).toMatchObject({ ok: false });
    expect(asking(budgetOf(100), true)).toMatchObject({ ok: true, maxOutputTokens: 1_024 });
    expect(asking(budgetOf(150))).toMatchObject({ ok: true, maxOutputTokens: 50 });
    expect(asking(null)).toMatchObject({ ok: true, maxOutputTokens: undefined });
  });

  test('charges a fixed estimate for a file of any size', () => {
    const image = { type: 'image' as const, image: new Uint8Array(100_000) };
    expect(
      estimateTokens('', [
        { role: 'user', content: [{ type: 'text', text: 'abcd' }, image] },
        { role: 'assistant', content: 'abcdefgh' },
      ]),
    ).toBe(1_003);
  });
});

describe('the time of a budget', () => {
  const SLOW_MS = 600_000;
  /** The first one occupies the only run slot for ten minutes, and the second one waits for it. */
  function queued(script: ReturnType<typeof steps>) {
    const runs = subagentRuns(script, { maxTotalActive: 1 });
    const { run, environment } = runs;
    const slow = simpleTool(
      () => new Promise((resolve) => environment.scheduler.schedule(() => resolve(1), SLOW_MS)),
    );
    return { ...runs, first: () => run({ name: 'first', tools: { slow }, timeout: 2 * SLOW_MS }) };
  }

  test('passes while the subagent is waiting for a run slot, and then ends it without a model call', async () => {
    const { first, run, prompts, environment } = queued(steps(calls(['slow']), say('done')));
    const one = first();
    await environment.settle();
    let outcome: unknown = null;
    void run({ budget: { timeMs: 30_000 } }).result.then((ended) => (outcome = ended));
    await environment.advance(29_999);
    expect(outcome).toBeNull();
    await environment.advance(1);
    expect(outcome).toMatchObject({
      status: 'failed',
      steps: 0,
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('timeMs') },
    });
    await environment.advance(SLOW_MS);
    expect(await one.result).toMatchObject({ status: 'completed' });
    // The first one made both model calls.
    expect(prompts).toHaveLength(2);
  });

  test('ends a subagent that does not get a run slot within 30 s for its final step', async () => {
    let isAsking = true;
    const { first, run, prompts, environment } = queued(() =>
      isAsking
        ? { text: 'So far', ...calls(['ask_user', { question: 'Which?' }]) }
        : calls(['slow']),
    );
    let outcome: unknown = null;
    void run(
      { interactive: true, inputTimeout: SLOW_MS, budget: { timeMs: 30_000 } },
      { onQuestion: never },
    ).result.then((ended) => (outcome = ended));
    await environment.settle();
    isAsking = false;
    first();
    await environment.advance(59_999);
    expect(outcome).toBeNull();
    await environment.advance(1);
    expect(outcome).toMatchObject({
      status: 'failed',
      partial: 'So far',
      error: { code: 'BUDGET_EXHAUSTED' },
    });
    expect(prompts).toHaveLength(2);
  });

  test("aborts a model call that has not finished 30 s after the budget's time is up", async () => {
    const { run, environment, model } = subagentRuns(() => say('never'));
    let outcome: unknown = null;
    const hanging = { ...model, doGenerate: never };
    void run({ budget: { timeMs: 10_000 } }, { model: hanging }).result.then(
      (ended) => (outcome = ended),
    );
    await environment.advance(39_999);
    expect(outcome).toBeNull();
    await environment.advance(1);
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'BUDGET_EXHAUSTED' } });
    expect(environment.pendingTimers).toBe(0);
  });
});
