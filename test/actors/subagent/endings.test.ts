// How runs end, and their outcomes (P1): steps, time, cancellation and failing models.

import { APICallError } from 'ai';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import type { Outcome } from '../../../src/index.ts';
import type { Script } from '../../../src/testing/index.ts';
import { apiError } from '../../support/api-error.ts';
import { calls, never, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';

const overloaded = (isRetryable: boolean, statusCode = isRetryable ? 503 : 400): APICallError =>
  new APICallError({
    message: `status ${statusCode}`,
    url: 'http://127.0.0.1',
    requestBodyValues: {},
    statusCode,
    isRetryable,
  });

describe('SUBAGENT-MACHINE-7: the step limit', () => {
  test(
    'ends the run without running the calls of the last step, but lists them in the ledger',
    { tags: ['R22', 'RW3'] },
    async () => {
      let ran = 0;
      const { outcome } = subagentRuns(() => calls(['count'], ['count']));
      const result = await outcome({ maxSteps: 3, tools: { count: simpleTool(() => (ran += 1)) } });
      expect(ran).toBe(4);
      expect(result).toMatchObject({
        status: 'failed',
        steps: 3,
        error: { code: 'STEP_LIMIT', message: expect.stringContaining('3'), retryable: false },
      });
      expect(result.toolLedger.map(({ step, status }) => `${step} ${status}`)).toEqual([
        '1 ok',
        '1 ok',
        '2 ok',
        '2 ok',
        '3 not_run',
        '3 not_run',
      ]);
    },
  );

  test.each([
    [2, 'completed'],
    [1, 'failed'],
  ])('ends an answer in step %i of 2 … with %s', async (maxSteps, status) => {
    const { outcome } = subagentRuns(steps(calls(['count']), say('done')));
    expect((await outcome({ maxSteps, tools: { count: simpleTool(() => 1) } })).status).toBe(
      status,
    );
  });

  it.each(['turn', 'tool'] as const)(
    'announces the last step to the model, and keeps its result (completion: %s)',
    async (completion) => {
      const { outcome, prompts } = subagentRuns(
        steps(
          calls(['count']),
          completion === 'turn'
            ? say('found 1; the rest is missing')
            : calls(['complete_task', { result: 'found 1; the rest is missing' }]),
        ),
      );
      const tools = { count: simpleTool(() => 1) };
      expect(await outcome({ maxSteps: 2, tools, completion })).toMatchObject({
        status: 'completed',
        output: 'found 1; the rest is missing',
      });
      const said = prompts.map((prompt) =>
        JSON.stringify(prompt).includes('This is your last step'),
      );
      expect(said).toEqual([false, true]);
    },
  );

  it('keeps the tool choice of a run with one step', async () => {
    const { outcome, prompts } = subagentRuns(steps(say('done')));
    await outcome({ maxSteps: 1, tools: { count: simpleTool(() => 1) } });
    expect(JSON.stringify(prompts)).not.toContain('This is your last step');
  });

  test('does not ask the user a question from the last step', async () => {
    let asked = 0;
    const { outcome } = subagentRuns(() => calls(['ask_user', { question: 'Well?' }]));
    const result = await outcome(
      { maxSteps: 1, interactive: true },
      {
        onQuestion: () => {
          asked += 1;
          return { text: 'yes' };
        },
      },
    );
    expect(asked).toBe(0);
    expect(result.toolLedger).toEqual([expect.objectContaining({ status: 'not_run' })]);
  });

  test(
    'defaults to 5 steps, with a timeout of 10 minutes per run',
    { tags: ['B24', 'B25', 'R13'] },
    async () => {
      const { outcome, prompts } = subagentRuns(() => calls(['count']));
      await outcome({ tools: { count: simpleTool(() => 1) } });
      expect(prompts).toHaveLength(5);
      const hanging = subagentRuns(steps(calls(['hang'])));
      const { result } = hanging.run({ tools: { hang: simpleTool(never) } });
      let ended: Outcome | null = null;
      void result.then((it) => (ended = it));
      await hanging.environment.advance(599_999);
      expect(ended).toBeNull();
      await hanging.environment.advance(1);
      expect(ended).toMatchObject({ status: 'timed_out' });
    },
  );
});

describe('SUBAGENT-MACHINE-2: the run’s timeout', () => {
  test(
    'ends the run at any point, and keeps the completed work',
    { tags: ['B33', 'R24', 'RW2', 'MW2'] },
    async () => {
      const signals: AbortSignal[] = [];
      const { run, environment } = subagentRuns(
        steps({ ...calls(['quick']), text: 'Half of it is done.' }, calls(['hang'])),
      );
      const { result } = run({
        timeout: 1000,
        tools: {
          quick: simpleTool(() => 'ok'),
          hang: simpleTool(({ abortSignal }) => {
            if (abortSignal) signals.push(abortSignal);
            return never();
          }),
        },
      });
      await environment.advance(1000);
      expect(await result).toMatchObject({
        status: 'timed_out',
        output: null,
        text: '',
        partial: 'Half of it is done.',
        error: { code: 'TIMEOUT', retryable: true },
        steps: 2,
        toolLedger: [
          { toolName: 'quick', status: 'ok' },
          { toolName: 'hang', status: 'in_flight' },
        ],
      });
      expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('pauses while the run is waiting for the user, and continues with the remaining time', async () => {
    let answer: (given: { text: string }) => void = () => {};
    const { run, environment } = subagentRuns(
      steps(calls(['slow']), calls(['ask_user', { question: 'Well?' }]), calls(['hang'])),
    );
    const slow = simpleTool(
      () => new Promise((resolve) => environment.scheduler.schedule(() => resolve('ok'), 600)),
    );
    const { result } = run(
      {
        interactive: true,
        timeout: 1000,
        inputTimeout: 7_200_000,
        tools: { slow, hang: simpleTool(never) },
      },
      { onQuestion: () => new Promise((resolve) => (answer = resolve)) },
    );
    let ended: Outcome | null = null;
    void result.then((it) => (ended = it));
    await environment.advance(3_600_000);
    expect(ended).toBeNull();
    answer({ text: 'yes' });
    await environment.advance(399);
    expect(ended).toBeNull();
    await environment.advance(1);
    expect(ended).toMatchObject({
      status: 'timed_out',
      toolLedger: [{ status: 'ok' }, { status: 'ok' }, { status: 'in_flight' }],
    });
  });

  test('pauses while the run is waiting for a slot', async () => {
    let release: () => void = () => {};
    const { run, environment } = subagentRuns(
      async ({ turn }) => {
        if (turn === 1) await new Promise<void>((resolve) => (release = resolve));
        return say('done');
      },
      { maxTotalActive: 1 },
    );
    const first = run({ timeout: 3_600_000 });
    const second = run({ timeout: 1000 });
    await environment.advance(1_800_000);
    release();
    expect((await first.result).status).toBe('completed');
    expect((await second.result).status).toBe('completed');
  });
});

describe('cancellation', () => {
  const untilCancelled = async (script: Script, tools: Record<string, unknown> = {}) => {
    const made = subagentRuns(script);
    const { result, cancel } = made.run({ tools });
    await made.environment.settle();
    cancel('enough');
    // No time passes.
    return { ...made, outcome: await result };
  };

  test('ends the run immediately, even if a tool never settles', { tags: ['R16'] }, async () => {
    const { outcome, environment } = await untilCancelled(steps(calls(['hang'])), {
      hang: simpleTool(never),
    });
    expect(outcome).toMatchObject({
      status: 'cancelled',
      error: { code: 'CANCELLED', message: 'Cancelled: enough', retryable: false },
    });
    expect(environment.clock.now()).toBe(1_700_000_000_000);
    expect(environment.pendingTimers).toBe(0);
  });

  test('ends the run immediately, even if the model ignores its signal', async () => {
    let signal: AbortSignal | undefined;
    const { outcome } = await untilCancelled((prompt) => {
      signal = prompt.signal;
      return never();
    });
    expect(outcome.status).toBe('cancelled');
    expect(signal?.aborted).toBe(true);
  });

  test(
    'takes precedence over later events, and prevents further model calls',
    { tags: ['B43', 'M15'] },
    async () => {
      let finish: (value: string) => void = () => {};
      const { outcome, environment, prompts, errors } = await untilCancelled(
        steps(calls(['slow'])),
        {
          slow: simpleTool(() => new Promise<string>((resolve) => (finish = resolve))),
        },
      );
      finish('too late');
      await environment.advance(60_000);
      expect(outcome.status).toBe('cancelled');
      expect(prompts).toHaveLength(1);
      expect(errors).toEqual([]);
    },
  );

  test('ends the run even while it is waiting for a retry', async () => {
    const { environment, prompts } = await untilCancelled(() => ({ error: overloaded(true) }));
    expect(environment.pendingTimers).toBe(0);
    await environment.advance(60_000);
    expect(prompts).toHaveLength(1);
  });

  test('ends the run even before it has started', async () => {
    const { run, prompts } = subagentRuns(() => say('never'));
    const { result, cancel } = run();
    cancel();
    expect(await result).toMatchObject({ status: 'cancelled', steps: 0 });
    expect(prompts).toEqual([]);
  });
});

describe('a model call that fails', () => {
  test('gets retried after growing delays if the error is retryable', async () => {
    const at: number[] = [];
    const script = steps({ error: overloaded(true) }, { error: overloaded(true) }, say('at last'));
    const { run, environment, errors } = subagentRuns((prompt) => {
      at.push(environment.clock.now());
      return script(prompt);
    });
    const { result } = run();
    await environment.advance(10_000);
    expect(await result).toMatchObject({ status: 'completed', text: 'at last', steps: 1 });
    const [first = 0, second = 0, third = 0] = at;
    // Between half a second and a second, and then between one and two seconds.
    expect(second - first).toBeGreaterThanOrEqual(500);
    expect(second - first).toBeLessThanOrEqual(1000);
    expect(third - second).toBeGreaterThanOrEqual(1000);
    expect(third - second).toBeLessThanOrEqual(2000);
    expect(errors).toHaveLength(2);
    expect(environment.pendingTimers).toBe(0);
  });

  test('ends the run after maxAttempts, with the provider’s error', async () => {
    const { run, environment, prompts } = subagentRuns(() => ({ error: overloaded(true) }));
    const { result } = run({ retry: { maxAttempts: 2, baseDelayMs: 10 } });
    await environment.advance(1000);
    expect(await result).toMatchObject({
      status: 'failed',
      error: {
        code: 'PROVIDER_UNAVAILABLE',
        message: expect.stringContaining('503'),
        retryable: true,
      },
    });
    expect(prompts).toHaveLength(2);
  });

  test.each([
    ['the provider refused', overloaded(false), 'PROVIDER_REFUSED'],
    ['the key is not accepted', overloaded(false, 401), 'PROVIDER_UNAUTHORIZED'],
    ['its error is no provider error', new Error('a bug'), 'MODEL_ERROR'],
  ])('gets no retry when %s', async (_, error, code) => {
    const { outcome, prompts, environment } = subagentRuns(() => ({ error }));
    expect(await outcome()).toMatchObject({ status: 'failed', error: { code, retryable: false } });
    expect(prompts).toHaveLength(1);
    expect(environment.pendingTimers).toBe(0);
  });

  test('waits until the retry time that the provider specifies', async () => {
    const error = apiError(429, 'slow down', { 'retry-after': '20' });
    const { run, environment, prompts } = subagentRuns(steps({ error }, say('at last')));
    const { result } = run();
    await environment.advance(19_999);
    expect(prompts).toHaveLength(1);
    await environment.advance(1);
    expect((await result).text).toBe('at last');
  });

  test('does not count as a step, and has its own retries in each step', async () => {
    const { run, environment } = subagentRuns(
      steps(
        { error: overloaded(true) },
        calls(['count']),
        { error: overloaded(true) },
        say('done'),
      ),
    );
    const { result } = run({
      retry: { maxAttempts: 2, baseDelayMs: 10 },
      tools: { count: simpleTool(() => 1) },
    });
    await environment.advance(1000);
    expect(await result).toMatchObject({ status: 'completed', steps: 2 });
  });

  test('gets retried at a different time from other calls that failed at the same moment', async () => {
    const { run, environment } = subagentRuns(() => ({ error: overloaded(true) }));
    const at: number[] = [];
    const begin = environment.clock.now();
    const runs = Array.from({ length: 8 }, () =>
      run({ retry: { maxAttempts: 2 } }).result.then(() =>
        at.push(environment.clock.now() - begin),
      ),
    );
    await environment.advance(2000);
    await Promise.all(runs);
    expect(new Set(at).size).toBeGreaterThan(4);
    expect(at.every((ms) => ms >= 500 && ms <= 1000)).toBe(true);
  });
});

describe('an answer without content', () => {
  test('fails the run if the answer is only white space', async () => {
    const { outcome } = subagentRuns(() => say('  '));
    expect(await outcome()).toMatchObject({ status: 'failed', error: { code: 'EMPTY_OUTPUT' } });
  });

  test("P1: keeps its text when the model's length limit cuts it off", async () => {
    const { run, model } = subagentRuns(() => say('The first half of'));
    const cutOff = {
      ...model,
      doGenerate: async (options: never) => ({
        ...(await model.doGenerate(options)),
        finishReason: { unified: 'length' as const, raw: 'length' },
      }),
    };
    const steps_: number[] = [];
    const { result } = run({ model: cutOff }, { onStep: ({ step }) => steps_.push(step) });
    expect(await result).toMatchObject({
      status: 'failed',
      error: { code: 'OUTPUT_TRUNCATED' },
      partial: 'The first half of',
      usage: { totalTokens: 15 },
    });
    expect(steps_).toEqual([1]);
  });

  test('does not run calls that were cut off', async () => {
    let ran = 0;
    const { run, model } = subagentRuns(() => calls(['count']));
    const cutOff = {
      ...model,
      doGenerate: async (options: never) => ({
        ...(await model.doGenerate(options)),
        finishReason: { unified: 'length' as const, raw: 'length' },
      }),
    };
    const { result } = run({ model: cutOff, tools: { count: simpleTool(() => (ran += 1)) } });
    expect(await result).toMatchObject({
      status: 'failed',
      error: { code: 'OUTPUT_TRUNCATED' },
      usage: { totalTokens: 15 },
    });
    expect(ran).toBe(0);
  });
});

describe('the output schema', () => {
  const outputSchema = z.object({ price: z.number() });

  test('appears in the prompt, and turns the answer into a parsed value', async () => {
    const { outcome, prompts } = subagentRuns(() => say('```json\n{"price": 12}\n```'));
    expect(await outcome({ outputSchema })).toMatchObject({
      status: 'completed',
      output: { price: 12 },
    });
    expect(prompts[0]?.system).toContain('"price"');
  });

  test('rejects an answer that does not match, and gives the model the reason, while steps are left', async () => {
    const { outcome, prompts } = subagentRuns(
      steps(say('about twelve'), say('{"price": "12"}'), say('{"price": 12}')),
    );
    expect(await outcome({ outputSchema })).toMatchObject({ output: { price: 12 }, steps: 3 });
    expect(prompts[1]?.user).toContain('not JSON');
    expect(prompts[2]?.user).toContain('price');
  });

  const look = simpleTool(() => 'seen');

  test.each([
    ['by default', {}, true],
    ['beside tools', { tools: { look } }, true],
    ['with a stream', { stream: true }, true],
    ['no, when it is off', { structured: 'off' as const }, false],
    ['no, where the result is handed in by a tool', { completion: 'tool' as const }, false],
    ['no, beside a tool of the name that packages ask by', { tools: { json: look } }, false],
  ])('determines whether structured output is requested: %s', async (_, config, isAsked) => {
    const { outcome, prompts } = subagentRuns(() => say('{"price": 12}'));
    await outcome({ outputSchema, maxSteps: 1, ...config });
    expect(prompts[0]?.outputSchema !== null).toBe(isAsked);
    // The model still receives the schema as text.
    expect(prompts[0]?.system).toContain('"price"');
  });

  test('fails at the step limit if no answer matches, and returns the last text as a partial result', async () => {
    const { outcome, prompts } = subagentRuns(() => say('about twelve'));
    expect(await outcome({ outputSchema, maxSteps: 2 })).toMatchObject({
      status: 'failed',
      error: {
        code: 'STEP_LIMIT',
        message: expect.stringMatching(
          /after 2 steps; its answer was not accepted: it is not JSON/,
        ),
      },
      output: null,
      partial: 'about twelve',
    });
    expect(prompts).toHaveLength(2);
  });
});

test(
  'P1: does not change an outcome when events arrive late',
  { tags: ['B43', 'M15'] },
  async () => {
    const { run, environment } = subagentRuns(() => say('done'));
    const { result, cancel } = run();
    const outcome = await result;
    const before = structuredClone(outcome);
    cancel('too late');
    await environment.advance(3_600_000);
    expect(await result).toEqual(before);
  },
);

test("adds up the provider's usage over all steps", async () => {
  const { outcome } = subagentRuns(steps(calls(['count']), calls(['count']), say('done')));
  expect((await outcome({ tools: { count: simpleTool(() => 1) } })).usage).toEqual({
    inputTokens: 30,
    outputTokens: 15,
    totalTokens: 45,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  });
});
