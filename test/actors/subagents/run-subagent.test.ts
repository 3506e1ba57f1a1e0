import { tool } from 'ai';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { createRuntime, type RuntimeOptions } from '../../../src/actors/admission/runtime.ts';
import {
  runSubagent,
  type RunSubagentOptions,
} from '../../../src/actors/subagents/run-subagent.ts';
import type { SubagentConfig } from '../../../src/actors/contracts/config.ts';
import type { LargeOutput } from '../../../src/actors/contracts/outcome.ts';
import { defineSubagent } from '../../../src/index.ts';
import { runSubagent as runInRealTime } from '../../../src/entries/subagents.ts';
import {
  readTask,
  scriptedModel,
  simulatedEnvironment,
  type Script,
} from '../../../src/testing/index.ts';

const INSTRUCTIONS = 'You look things up.';

const lookUp = tool({
  description: 'Looks something up',
  inputSchema: z.object({ what: z.string() }),
  execute: ({ what }) => `${what}: found`,
});

const call = (name: string, input: unknown) => ({ calls: [{ name, input }] });
const ask = (question: string, options?: { id: string; label: string }[]) =>
  call('ask_user', { question, ...(options ? { options } : {}) });

function bare(script: Script, runtimeOptions: Partial<RuntimeOptions> = {}) {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, ...runtimeOptions });
  return {
    environment,
    runtime,
    model: scriptedModel({ scripts: [{ when: INSTRUCTIONS, script }] }),
  };
}

function setUp(script: Script, runtimeOptions: Partial<RuntimeOptions> = {}) {
  const { environment, runtime, model } = bare(script, runtimeOptions);
  const errors: unknown[] = [];
  return {
    environment,
    errors,
    run: (config: Partial<SubagentConfig> = {}, options: Partial<RunSubagentOptions> = {}) =>
      runSubagent({ name: 'researcher', instructions: INSTRUCTIONS, ...config }, 'Look it up', {
        runtime,
        model,
        onError: (error) => errors.push(error),
        ...options,
      }),
  };
}

describe('a run', () => {
  test('reports each progress update from a tool to the program once', async () => {
    const { environment, run } = setUp(({ results: [walked] }) =>
      walked === undefined ? call('walk', {}) : { text: 'Done.' },
    );
    const notes: string[] = [];
    const walk = tool({
      description: 'Walks',
      inputSchema: z.object({}),
      async *execute() {
        for (const progress of ['Half way', 'Half way', 'Nearly there']) {
          yield { progress };
          await new Promise<void>((resolve) =>
            environment.scheduler.schedule(() => resolve(), 100),
          );
        }
        yield { progress: 'There', at: 'home' };
      },
    });
    const { result } = run(
      { tools: { walk } },
      { onProgress: ({ update, percent }, id) => notes.push(`${update} ${percent} ${id !== ''}`) },
    );
    await environment.advance(1_000);
    expect((await result).status).toBe('completed');
    expect(notes).toEqual(['Half way null true', 'Nearly there null true', 'There null true']);
  });

  test('works step by step, and lists all steps and calls in the outcome', async () => {
    const prompts: unknown[] = [];
    const steps: number[] = [];
    const { run } = setUp(({ turn, prompt, results }) => {
      prompts.push(readTask(prompt));
      return turn === 1
        ? call('look_up', { what: 'tea' })
        : { text: `I read: ${String(results[0])}` };
    });
    const outcome = await run(
      { tools: { look_up: lookUp } },
      { onStep: ({ step }) => steps.push(step) },
    ).result;
    expect(outcome).toMatchObject({
      status: 'completed',
      text: 'I read: tea: found',
      steps: 2,
      usage: { totalTokens: 30 },
      toolLedger: [{ step: 1, toolName: 'look_up', status: 'ok', output: 'tea: found' }],
    });
    expect(prompts[0]).toEqual({ task: 'Look it up', arguments: {} });
    expect(steps).toEqual([1, 2]);
  });

  test("passes the program's messages to the model, and returns whether each has been read", async () => {
    const read: string[] = [];
    const { environment, run } = setUp(({ turn, prompt }) => {
      read.push(JSON.stringify(prompt.filter(({ role }) => role === 'user').slice(1)));
      return turn === 1 ? call('look_up', { what: 'tea' }) : { text: 'Done.' };
    });
    const found = Promise.withResolvers<string>();
    const slow = { ...lookUp, execute: () => found.promise };
    const { result, send } = run({ tools: { look_up: slow } });
    await environment.settle();
    const receipt = send('Only green tea', { by: 'anna' });
    const refused = await Promise.allSettled([
      send(''),
      send('Go', { mode: 'now' as 'queue' }),
      send('Go', { colour: 'blue' } as object),
    ]);
    found.resolve('tea: found');
    await environment.settle();
    expect(await receipt).toEqual({ applied: true });
    expect((await result).status).toBe('completed');
    expect(read).toEqual(['[]', expect.stringContaining('Only green tea')]);
    expect(await send('Too late')).toMatchObject({ applied: false });
    for (const one of refused)
      expect(one).toMatchObject({ status: 'rejected', reason: { name: 'ConfigurationError' } });
  });

  test('RUN-SUBAGENT-N-1: resolves once its instance has been disposed, even if a hook throws', async () => {
    let disposed = 0;
    const { run, errors } = setUp(() => ({ text: 'done' }));
    const outcome = await run(
      {
        dispose: async () => {
          await Promise.resolve();
          disposed += 1;
        },
      },
      {
        onStep() {
          throw new Error('the hook is broken');
        },
      },
    ).result;
    expect(outcome.status).toBe('completed');
    expect(disposed).toBe(1);
    expect(errors).toEqual([expect.objectContaining({ message: 'the hook is broken' })]);
  });

  test('RUN-SUBAGENT-N-1: returns a failed outcome if it cannot start', async () => {
    const { run } = setUp(() => ({ text: 'never' }));
    const own = { name: 'researcher', instructions: 'Research.' };
    const { result } = run({ createInstance: () => own }, { model: undefined });
    expect(await result).toMatchObject({
      status: 'failed',
      error: { code: 'NO_MODEL', message: expect.stringContaining('expected a model') },
    });
  });

  test("ends with the signal's reason when the program's signal aborts", async () => {
    const { run, environment } = setUp(() => call('hang', {}));
    const hang = tool({ inputSchema: z.object({}), execute: () => new Promise(() => undefined) });
    const controller = new AbortController();
    const { result } = run({ tools: { hang } }, { abortSignal: controller.signal });
    await environment.settle();
    controller.abort(new Error('The request is gone'));
    await environment.advance(60_000);
    expect(await result).toMatchObject({
      status: 'cancelled',
      error: { message: 'Cancelled: The request is gone' },
    });
  });

  test('does not start with a signal that has already aborted', async () => {
    let asked = 0;
    const { run, environment } = setUp(() => ({ text: `answer ${(asked += 1)}` }));
    const { result } = run({}, { abortSignal: AbortSignal.abort(new Error('Too late')) });
    await environment.advance(60_000);
    expect([(await result).status, asked]).toEqual(['cancelled', 0]);
  });

  test('infers the outcome type from the output schema', async () => {
    const { environment, runtime, model } = bare(() => ({ text: '{"count":2}' }));
    const counter = defineSubagent({
      name: 'counter',
      instructions: INSTRUCTIONS,
      outputSchema: z.object({ count: z.number() }),
    });
    const { result } = runInRealTime(counter, 'Count', { runtime, model });
    await environment.settle();
    const { output } = await result;
    expectTypeOf(output).toEqualTypeOf<{ count: number } | LargeOutput | null>();
    const untyped = runInRealTime({ name: 'a', instructions: INSTRUCTIONS }, 'b', {
      runtime,
      model,
    });
    expectTypeOf<Awaited<typeof untyped.result>['output']>().toEqualTypeOf<unknown>();
    await environment.settle();
    await untyped.result;
    expect(output).toEqual({ count: 2 });
  });

  test('ends as cancelled exactly once, even if its tool hangs', async () => {
    const { run, environment } = setUp(() => call('hang', {}));
    const hang = tool({
      inputSchema: z.object({}),
      execute: () => new Promise<string>(() => {}),
    });
    const { result, cancel } = run({ tools: { hang } });
    await environment.settle();
    cancel('enough');
    cancel('again');
    expect(await result).toMatchObject({
      status: 'cancelled',
      error: { message: 'Cancelled: enough' },
      toolLedger: [{ toolName: 'hang', status: 'in_flight' }],
    });
  });

  test('waits for a slot when the runtime has no free slot', async () => {
    const begun: number[] = [];
    const release: (() => void)[] = [];
    const { run, environment } = setUp(
      async ({ turn }) => {
        begun.push(turn);
        await new Promise<void>((resolve) => release.push(resolve));
        return { text: 'done' };
      },
      { maxTotalActive: 2 },
    );
    const results = [run(), run(), run()].map(({ result }) => result);
    await environment.settle();
    expect(begun).toHaveLength(2);
    release[0]?.();
    await environment.settle();
    expect(begun).toHaveLength(3);
    for (const free of release) free();
    for (const outcome of await Promise.all(results)) expect(outcome.status).toBe('completed');
  });
});

describe('the questions of a run', () => {
  const options = [
    { id: 'economy', label: 'Economy' },
    { id: 'premium', label: 'Premium' },
  ];
  const asking: Script = ({ turn, results }) =>
    turn === 1 ? ask('Which one?', options) : { text: JSON.stringify(results[0]) };

  test('reach the program', async () => {
    const { run } = setUp(asking);
    const asked: string[] = [];
    const outcome = await run(
      { interactive: true },
      {
        onQuestion: (question) => {
          asked.push(question.question);
          return { optionId: 'premium' };
        },
      },
    ).result;
    expect(asked).toEqual(['Which one?']);
    expect(outcome.text).toBe('{"userResponse":"Premium","optionId":"premium"}');
  });

  test('end as withdrawn if there is no handler, and as unanswered if its answer is invalid', async () => {
    const first = setUp(asking);
    const { result } = first.run({ interactive: true });
    expect((await result).text).toContain('the user is not there');

    const second = setUp(asking);
    const wrong = second.run({ interactive: true }, { onQuestion: () => ({ optionId: 'first' }) });
    expect((await wrong.result).toolLedger[0]).toMatchObject({ status: 'unanswered' });
    expect(second.errors).toEqual([expect.objectContaining({ code: 'INVALID_ANSWER' })]);
  });

  test('PROGRAM-PORTS-2: expire, and ignore later answers', async () => {
    const answers: ((answer: { text: string }) => void)[] = [];
    const signals: AbortSignal[] = [];
    const { run, environment, errors } = setUp(() => ask('Still there?'));
    const { result } = run(
      { interactive: true, inputTimeout: 1000 },
      {
        onQuestion: (_, signal) => {
          signals.push(signal);
          return new Promise((resolve) => answers.push(resolve));
        },
      },
    );
    await environment.advance(1000);
    answers[0]?.({ text: 'too late' });
    await environment.advance(2000);
    expect(await result).toMatchObject({
      status: 'failed',
      error: { code: 'INPUT_TIMEOUT' },
      toolLedger: [
        { status: 'unanswered', output: expect.stringContaining('attempt 1/3') },
        { status: 'unanswered', output: expect.stringContaining('attempt 2/3') },
        { status: 'unanswered', output: expect.stringContaining('attempt 3/3') },
      ],
    });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(errors).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  });

  test('PROGRAM-PORTS-2: end as withdrawn when the run is cancelled', async () => {
    let signal: AbortSignal | undefined;
    const { run, environment } = setUp(asking);
    const { result, cancel } = run(
      { interactive: true },
      {
        onQuestion: (_, given) => {
          signal = given;
          return new Promise(() => {});
        },
      },
    );
    await environment.settle();
    expect(signal?.aborted).toBe(false);
    cancel();
    expect((await result).status).toBe('cancelled');
    expect(signal?.aborted).toBe(true);
    expect(environment.pendingTimers).toBe(0);
  });

  test('include the approval of a tool call, which does not run before it is approved', async () => {
    const ran: string[] = [];
    const pay = tool({
      inputSchema: z.object({ sum: z.number() }),
      needsApproval: true,
      execute: ({ sum }) => {
        ran.push(String(sum));
        return 'paid';
      },
    });
    for (const approved of [true, false]) {
      const { run } = setUp(({ turn, results }) =>
        turn === 1 ? call('pay', { sum: 5 }) : { text: JSON.stringify(results[0]) },
      );
      const { result } = run({ tools: { pay } }, { onQuestion: () => ({ approved }) });
      const outcome = await result;
      expect(outcome.toolLedger[0]).toMatchObject({ status: approved ? 'ok' : 'denied' });
    }
    expect(ran).toEqual(['5']);
  });
});
