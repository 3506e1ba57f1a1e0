// The tool calls of a step, as the model and the ledger see them.

import { jsonSchema, tool } from 'ai';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import {
  calls,
  never,
  resultsIn,
  say,
  simpleTool,
  steps,
  subagentRuns,
} from '../../support/subagent-runs.ts';

describe('a call that is cut off after it may have had an effect', () => {
  function charging(more: Record<string, unknown> = {}) {
    const charged: string[] = [];
    const doubtful: unknown[] = [];
    const charge = simpleTool(({ idempotencyKey = '' }) => {
      charged.push(idempotencyKey);
      return never();
    }, more);
    const runs = subagentRuns(steps(calls(['charge', { sum: 7 }]), say('over')));
    const { result, cancel } = runs.run(
      { tools: { charge }, toolTimeout: 1000, timeout: 60_000 },
      { onCallInDoubt: (call) => void doubtful.push(call) },
    );
    return { ...runs, charged, doubtful, result, cancel };
  }
  const inDoubt = (idempotencyKey: string) => ({
    subagentId: 'sub_1',
    subagentName: 'worker',
    callId: expect.any(String),
    toolName: 'charge',
    input: { sum: 7 },
    idempotencyKey,
  });

  it('counts as in doubt when it times out, and is reported to the model and the app', async () => {
    const { charged, doubtful, environment, prompts, result } = charging();
    await environment.advance(1000);
    const { toolLedger } = await result;
    expect(doubtful).toEqual(charged.map(inDoubt));
    expect(doubtful).toHaveLength(1);
    expect(resultsIn(prompts[1] as never)).toEqual([
      [
        'charge',
        'error-text',
        expect.stringMatching(/timed out after 1000 ms: whether it was done is not known/),
      ],
    ]);
    expect(toolLedger).toMatchObject([{ status: 'in_flight' }]);
  });

  it('counts as in doubt when the run is cancelled', async () => {
    const { cancel, charged, doubtful, environment, result } = charging();
    await environment.settle();
    cancel('Changed my mind');
    expect(await result).toMatchObject({
      status: 'cancelled',
      toolLedger: [{ status: 'in_flight' }],
    });
    await environment.settle();
    expect(doubtful).toEqual(charged.map(inDoubt));
  });

  it('does not count as in doubt if the tool may be repeated', async () => {
    const { doubtful, environment, prompts, result } = charging({ idempotent: true });
    await environment.advance(1000);
    expect(await result).toMatchObject({ toolLedger: [{ status: 'error' }] });
    expect(JSON.stringify(prompts[1]?.prompt)).not.toContain('is not known');
    expect(doubtful).toEqual([]);
  });
});

describe('the calls of one step', () => {
  test('run concurrently, and return their results in call order', async () => {
    const release = new Map<string, () => void>();
    const begun: string[] = [];
    const slow = tool({
      inputSchema: z.object({ name: z.string() }),
      execute: async ({ name }) => {
        begun.push(name);
        await new Promise<void>((resolve) => release.set(name, resolve));
        return `${name} is done`;
      },
    });
    const { environment, run, prompts } = subagentRuns(
      steps(
        calls(['slow', { name: 'a' }], ['slow', { name: 'b' }], ['slow', { name: 'c' }]),
        say('all done'),
      ),
    );
    const { result } = run({ tools: { slow } });
    await environment.settle();
    expect(begun).toEqual(['a', 'b', 'c']);
    for (const name of ['c', 'a', 'b']) {
      expect(prompts).toHaveLength(1);
      release.get(name)?.();
      await environment.settle();
    }
    expect(prompts[1]?.results).toEqual(['a is done', 'b is done', 'c is done']);
    expect(await result).toMatchObject({
      status: 'completed',
      toolLedger: [{ output: 'c is done' }, { output: 'a is done' }, { output: 'b is done' }],
    });
  });

  test('run once each, even if two of them have the same id', async () => {
    const ran: string[] = [];
    const echo = tool({
      inputSchema: z.object({ text: z.string() }),
      execute: ({ text }) => {
        ran.push(text);
        return text;
      },
    });
    const { outcome, prompts } = subagentRuns(
      steps(
        calls(['echo', { text: 'one' }, 'call_0'], ['echo', { text: 'two' }, 'call_0']),
        calls(['echo', { text: 'three' }, 'call_0']),
        say('done'),
      ),
    );
    const { toolLedger } = await outcome({ tools: { echo } });
    expect(ran).toEqual(['one', 'two', 'three']);
    expect(prompts[1]?.results).toEqual(['one', 'two']);
    expect(prompts[2]?.results).toEqual(['three']);
    expect(new Set(toolLedger.map(({ callId }) => callId)).size).toBe(3);
  });
});

describe('a tool call', () => {
  test('returns an error to the model when the tool throws or rejects, and continues the run', async () => {
    const { outcome, prompts, errors } = subagentRuns(
      steps(calls(['throws'], ['rejects'], ['works']), say('I see')),
    );
    const result = await outcome({
      tools: {
        throws: simpleTool(() => {
          throw new Error('no such flight');
        }),
        rejects: simpleTool(() => Promise.reject(new Error('no such hotel'))),
        works: simpleTool(() => 'a car'),
      },
    });
    expect(resultsIn(prompts[1] as never)).toEqual([
      ['throws', 'error-text', 'Error: no such flight'],
      ['rejects', 'error-text', 'Error: no such hotel'],
      ['works', 'text', 'a car'],
    ]);
    expect(result).toMatchObject({ status: 'completed', text: 'I see' });
    expect(result.toolLedger.map(({ status, output }) => [status, output])).toEqual(
      expect.arrayContaining([
        ['error', 'Error: no such flight'],
        ['error', 'Error: no such hotel'],
        ['ok', 'a car'],
      ]),
    );
    expect(errors).toEqual([]);
  });

  test('returns the reason to the model without running the tool when the input is invalid', async () => {
    const ran: unknown[] = [];
    const add = tool({
      inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
      execute: (input) => {
        ran.push(input);
        return input.a + input.b;
      },
    });
    const { outcome, prompts } = subagentRuns(
      steps(calls(['add', { a: 'two' }]), calls(['add', { a: 2 }]), say('three')),
    );
    const { toolLedger } = await outcome({ tools: { add } });
    expect(ran).toEqual([{ a: 2, b: 1 }]);
    expect(resultsIn(prompts[1] as never)).toEqual([
      ['add', 'error-text', expect.stringContaining('a')],
    ]);
    expect(toolLedger.map(({ status }) => status)).toEqual(['error', 'ok']);
  });

  test('does not run the tool when the input is not JSON', async () => {
    let ran = 0;
    const { outcome, prompts } = subagentRuns(steps(calls(['count', '{"a":']), say('never mind')));
    await outcome({ tools: { count: simpleTool(() => (ran += 1)) } });
    expect(ran).toBe(0);
    expect(resultsIn(prompts[1] as never)[0]?.[1]).toBe('error-text');
  });

  test('names the missing tool and the available ones', async () => {
    const { outcome, prompts } = subagentRuns(steps(calls(['fly'], ['walk']), say('walked')));
    await outcome({ tools: { walk: simpleTool(() => 'slowly') } });
    const [fly, walk] = resultsIn(prompts[1] as never);
    expect(fly).toEqual(['fly', 'error-text', expect.stringMatching(/fly[\s\S]*walk/)]);
    expect(walk).toEqual(['walk', 'text', 'slowly']);
  });

  test('gives the model the text from toModelOutput, and puts the full output into the ledger', async () => {
    const { outcome, prompts } = subagentRuns(steps(calls(['chart']), say('nice chart')));
    const { toolLedger } = await outcome({
      tools: {
        chart: simpleTool(() => ({ points: [1, 2, 3] }), {
          toModelOutput: ({ output }: { output: { points: number[] } }) => ({
            type: 'text',
            value: `a chart of ${output.points.length} points`,
          }),
        }),
      },
    });
    expect(prompts[1]?.results).toEqual(['a chart of 3 points']);
    expect(toolLedger[0]?.output).toEqual({ points: [1, 2, 3] });
  });

  test('returns the last value that the tool yields', async () => {
    const { outcome, prompts } = subagentRuns(steps(calls(['search']), say('found')));
    const { toolLedger } = await outcome({
      tools: {
        search: simpleTool(async function* search() {
          yield { found: 0 };
          yield { found: 2 };
        }),
      },
    });
    expect(prompts[1]?.results).toEqual([{ found: 2 }]);
    expect(toolLedger[0]).toMatchObject({ status: 'ok', output: { found: 2 } });
  });

  test('ends as an error when the tool returns a value that is not JSON', async () => {
    const { outcome, prompts } = subagentRuns(
      steps(calls(['big'], ['round'], ['nothing']), say('well')),
    );
    const round: Record<string, unknown> = {};
    round['self'] = round;
    await outcome({
      tools: {
        big: simpleTool(() => 10n),
        round: simpleTool(() => round),
        nothing: simpleTool(() => {}),
      },
    });
    expect(resultsIn(prompts[1] as never).map(([name, kind]) => [name, kind])).toEqual([
      ['big', 'error-text'],
      ['round', 'error-text'],
      ['nothing', 'json'],
    ]);
  });

  test('aborts the tool at its timeout, without delaying other calls', async () => {
    let signal: AbortSignal | undefined;
    const { environment, run, prompts } = subagentRuns(
      steps(calls(['hang'], ['quick']), say('gave up')),
    );
    const { result } = run({
      toolTimeout: 5000,
      tools: {
        hang: simpleTool(({ abortSignal }) => {
          signal = abortSignal;
          return never();
        }),
        quick: simpleTool(() => 'ok'),
      },
    });
    await environment.advance(4999);
    expect(prompts).toHaveLength(1);
    await environment.advance(1);
    expect((await result).status).toBe('completed');
    expect(signal?.aborted).toBe(true);
    expect(resultsIn(prompts[1] as never)).toEqual([
      ['hang', 'error-text', expect.stringContaining('timed out after 5000 ms')],
      ['quick', 'text', 'ok'],
    ]);
    expect(environment.pendingTimers).toBe(0);
  });

  test('accepts a tool with the older `parameters`', async () => {
    const { outcome, prompts } = subagentRuns(steps(calls(['old', { name: 'Ada' }]), say('hello')));
    await outcome({
      tools: {
        old: {
          description: 'An older tool',
          parameters: z.object({ name: z.string() }),
          execute: ({ name }: { name: string }) => `Hello ${name}`,
        },
      },
    });
    expect(prompts[1]?.results).toEqual(['Hello Ada']);
  });

  test('refuses a tool without a schema at configuration time', () => {
    const { run } = subagentRuns(steps(say('never')));
    const bare = { description: 'No schema', execute: () => 1 };
    expect(() => run({ tools: { bare } })).toThrow('worker.tools.bare: expected an inputSchema');
  });
});

test('P6: gives each call a separate idempotency key', async () => {
  const keys: (string | undefined)[] = [];
  const note = simpleTool(({ idempotencyKey }) => {
    keys.push(idempotencyKey);
    return 'noted';
  });
  const { run, runtime } = subagentRuns(
    steps(calls(['note'], ['note']), calls(['note']), say('done'), calls(['note']), say('done')),
  );
  const first = run({ tools: { note } });
  await first.result;
  const second = run({ tools: { note } });
  await second.result;
  expect(new Set(keys).size).toBe(4);
  expect(keys.slice(0, 3).every((key) => key?.startsWith(first.id))).toBe(true);
  expect(keys[3]?.startsWith(second.id)).toBe(true);
  expect(runtime.environment.clock.now()).toBe(1_700_000_000_000);
});

test(
  'P8: offers the model only its configured tools, plus ask_user if the subagent is interactive',
  { tags: ['R10', 'R11'] },
  async () => {
    const schema = jsonSchema({ type: 'object', properties: {} });
    const tools = { one: { inputSchema: schema, execute: () => 1 } };
    const { outcome, prompts } = subagentRuns(steps(say('done')));
    await outcome({ tools });
    await outcome({ tools, interactive: true });
    await outcome({});
    expect(prompts.map(({ toolNames }) => toolNames)).toEqual([
      ['one'],
      ['one', 'ask_user', 'not_for_me'],
      [],
    ]);
  },
);

test("P8: refuses an author's tool named ask_user", { tags: ['B44'] }, async () => {
  const { run, outcome } = subagentRuns(steps(say('never')));
  const tools = { ask_user: simpleTool(() => 'me') };
  expect(() => run({ tools })).toThrow('belongs to the runtime');
  const own = { name: 'worker', instructions: 'Work.', tools };
  expect(await outcome({ createInstance: () => own })).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('belongs to the runtime') },
  });
});
