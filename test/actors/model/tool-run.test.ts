import { getEventListeners } from 'node:events';
import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runToolCall, type ToolCallOptions } from '../../../src/actors/model/tool-run.ts';
import { prepareTools, type ToolEntry } from '../../../src/actors/model/tools.ts';
import { CancelledError } from '../../../src/values/errors.ts';
import { deferred, macrotask, manualTime, never, soon } from './fakes.ts';
import type { ToolOutcome, ToolResultOutput } from '../../../src/actors/model/tool-results.ts';

const inputSchema = z.object({ q: z.string().optional() });

const entry = (source: Record<string, unknown>): ToolEntry =>
  prepareTools({ lookup: { inputSchema, ...source } }, 'tools').execution.get('lookup')!;

function run(
  source: Record<string, unknown>,
  more: Partial<ToolCallOptions> = {},
): Promise<ToolOutcome> {
  return runToolCall({
    tool: entry(source),
    callId: 'c1',
    input: { q: 'x' },
    messages: [{ role: 'user', content: 'hi' }],
    signal: new AbortController().signal,
    idempotencyKey: 'sub_1:1:c1',
    environment: manualTime(),
    ...more,
  });
}

const failure = (message: string, code = 'FAILED'): ToolOutcome =>
  ({
    status: 'error',
    error: { message, code },
    modelOutput: { type: 'error-text', value: message },
  }) as ToolOutcome;

async function* yields(...outputs: unknown[]): AsyncGenerator {
  for (const output of outputs) {
    await macrotask();
    yield output;
  }
}

async function countUnhandled(during: () => Promise<void>): Promise<number> {
  let count = 0;
  const listen = (): void => {
    count += 1;
  };
  process.on('unhandledRejection', listen);
  await during();
  await macrotask();
  await macrotask();
  process.off('unhandledRejection', listen);
  return count;
}

test('passes the input and the details of the call to the execute function', async () => {
  const { signal } = new AbortController();
  const seen: unknown[] = [];
  const execute = (...args: unknown[]): void => void seen.push(...args);
  await run({ execute }, { signal, context: { user: 7 } });
  expect(seen).toEqual([
    { q: 'x' },
    {
      toolCallId: 'c1',
      messages: [{ role: 'user', content: 'hi' }],
      abortSignal: signal,
      context: { user: 7 },
      idempotencyKey: 'sub_1:1:c1',
    },
  ]);
});

describe('passes the output of a tool to the model in the SDK’s form', () => {
  test.each<[string, unknown, unknown, ToolResultOutput]>([
    ['text', 'sunny', 'sunny', { type: 'text', value: 'sunny' }],
    ['an object', { n: 1 }, { n: 1 }, { type: 'json', value: { n: 1 } }],
    ['undefined', undefined, null, { type: 'json', value: null }],
    ['a number', 4, 4, { type: 'json', value: 4 }],
    [
      'a date',
      { at: new Date(0), no: undefined },
      { at: '1970-01-01T00:00:00.000Z' },
      { type: 'json', value: { at: '1970-01-01T00:00:00.000Z' } },
    ],
  ])('%s', async (_, returned, output, modelOutput) => {
    for (const execute of [() => returned, async () => returned])
      expect(await run({ execute })).toStrictEqual({ status: 'ok', output, modelOutput });
  });

  test('passes the result of toModelOutput to the model', async () => {
    const seen: unknown[] = [];
    const outcome = await run({
      execute: () => ({ rows: [1, 2, 3] }),
      toModelOutput: async (options: { output: { rows: number[] } }) => {
        seen.push(options);
        return { type: 'text', value: `${options.output.rows.length} rows` };
      },
    });
    expect(outcome).toStrictEqual({
      status: 'ok',
      output: { rows: [1, 2, 3] },
      modelOutput: { type: 'text', value: '3 rows' },
    });
    expect(seen).toEqual([{ toolCallId: 'c1', input: { q: 'x' }, output: { rows: [1, 2, 3] } }]);
  });

  test('converts bytes and URLs in model output to JSON', async () => {
    const outcome = await run({
      execute: () => 'shot',
      toModelOutput: () => ({
        type: 'content',
        value: [
          { type: 'text', text: 'A picture' },
          {
            type: 'file',
            mediaType: 'image/png',
            data: { type: 'data', data: Buffer.from('abc') },
          },
          {
            type: 'file',
            mediaType: 'image/png',
            data: { type: 'url', url: new URL('http://127.0.0.1/a.png') },
          },
        ],
      }),
    });
    expect(outcome.modelOutput).toStrictEqual({
      type: 'content',
      value: [
        { type: 'text', text: 'A picture' },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'YWJj' } },
        {
          type: 'file',
          mediaType: 'image/png',
          data: { type: 'url', url: 'http://127.0.0.1/a.png' },
        },
      ],
    });
  });

  test.each([
    ['throws', () => Promise.reject(new Error('no view')), failure('Error: no view')],
    [
      'gives something else',
      () => 'three rows',
      failure('Tool "lookup" toModelOutput gave no tool result output', 'INVALID_OUTPUT'),
    ],
    [
      'gives a cycle',
      () => {
        const value: unknown[] = [];
        value.push(value);
        return { type: 'json', value };
      },
      failure('Tool "lookup" toModelOutput gave what is not JSON', 'INVALID_OUTPUT'),
    ],
  ])('toModelOutput %s: an error result', async (_, toModelOutput, expected) => {
    const outcome = await run({ execute: () => 1, toModelOutput });
    expect(outcome.status).toBe('error');
    expect(outcome.modelOutput).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining(
        expected.status === 'error' ? expected.error.message : 'never',
      ),
    });
    expect(outcome).toMatchObject({
      error: { code: expected.status === 'error' ? expected.error.code : '' },
    });
  });
});

describe('TOOL-RUN-1: a tool run, which always resolves', () => {
  const thrown = (value: unknown) => () => {
    throw value;
  };

  test.each([
    ['an error', new Error('boom'), 'Error: boom'],
    ['a TypeError', new TypeError('sync'), 'TypeError: sync'],
    ['an AbortError of its own', new DOMException('stop', 'AbortError'), 'AbortError: stop'],
    ['a string', 'a string', 'a string'],
    ['an object', { code: 7 }, '{"code":7}'],
    ['undefined', undefined, 'unknown error'],
    ['null', null, 'unknown error'],
  ])('execute throws %s', async (_, value, message) => {
    expect(await run({ execute: thrown(value) })).toStrictEqual(failure(message));
    expect(await run({ execute: async () => thrown(value)() })).toStrictEqual(failure(message));
    const generator = async function* (): AsyncGenerator {
      yield* [];
      thrown(value)();
    };
    expect(await run({ execute: generator })).toStrictEqual(failure(message));
  });

  test('accepts a returned Error, and a thrown value that cannot be converted to text', async () => {
    expect(await run({ execute: () => new Error('soft') })).toStrictEqual(failure('Error: soft'));
    const hostile = new Error('x');
    Object.defineProperty(hostile, 'toString', { value: thrown(new Error('no')) });
    expect(await run({ execute: thrown(hostile) })).toStrictEqual(
      failure('an error that cannot be written as text'),
    );
  });

  test.each([
    ['a big integer', { n: 1n }, 'Do not know how to serialize a BigInt'],
    ['a function', () => 1, 'a function is not JSON'],
    ['a symbol', Symbol('s'), 'a symbol is not JSON'],
    ['a Map', new Map([['a', 1]]), 'the JSON of Map {} lacks what it holds'],
    ['a Response', new Response('x'), 'the JSON of Response {} lacks what it holds'],
    ['a Blob', new Blob(['x']), 'the JSON of Blob {} lacks what it holds'],
    ['an ArrayBuffer', new ArrayBuffer(8), 'the JSON of ArrayBuffer(8) lacks what it holds'],
    [
      'toJSON that throws',
      {
        toJSON: () => {
          throw new Error('mine');
        },
      },
      'mine',
    ],
  ])('%s is not JSON', async (_, returned, message) => {
    const outcome = await run({ execute: () => returned });
    expect(outcome).toStrictEqual(
      failure(`Tool "lookup" returned what is not JSON: ${message}`, 'INVALID_OUTPUT'),
    );
  });

  test('refuses a cyclic value because it is not JSON', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const outcome = await run({ execute: () => cycle });
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'INVALID_OUTPUT' } });
    expect(outcome.modelOutput).toMatchObject({ value: expect.stringContaining('circular') });
  });

  test('reports a tool without execute', async () => {
    expect(await run({})).toStrictEqual(failure('Tool "lookup" has no execute', 'NOT_EXECUTABLE'));
  });

  test('validates raw input first', async () => {
    const source = {
      inputSchema: z.object({ at: z.string().transform((iso) => new Date(iso)) }),
      execute: ({ at }: { at: Date }) => at.getUTCFullYear(),
    };
    expect(await run(source, { input: { at: '2032-01-01' }, raw: true })).toMatchObject({
      output: 2032,
    });
    expect(await run(source, { input: { at: 5 }, raw: true })).toMatchObject({
      status: 'error',
      error: { code: 'INVALID_INPUT', message: expect.stringContaining('lookup') },
    });
  });

  test('cuts a long error text', async () => {
    const outcome = await run({ execute: thrown(new Error('x'.repeat(50_000))) });
    expect(outcome.status === 'error' && outcome.error.message.length).toBeLessThan(8200);
    expect(outcome.modelOutput).toMatchObject({
      value: expect.stringContaining('more characters'),
    });
  });
});

describe('TOOL-OUTPUT-2: cuts an output that is too large, and says so', () => {
  const maxOutputBytes = 1000;
  const size = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

  test.each([
    ['text', 'x'.repeat(5000), 5000],
    ['text in two bytes', 'ü'.repeat(900), 1800],
    ['text that needs quoting', '\u0001"'.repeat(1000), 2000],
    ['surrogates', `x${'🚕'.repeat(600)}`, 2401],
    ['JSON', { rows: Array.from({ length: 500 }, (_, id) => ({ id })) }, undefined],
  ])('%s', async (_, returned, bytes) => {
    const outcome = await run({ execute: () => returned }, { maxOutputBytes });
    const output = outcome.status === 'ok' ? outcome.output : null;
    expect(output).toMatchObject({ truncated: true, originalBytes: bytes ?? size(returned) });
    expect(size(output)).toBeLessThanOrEqual(maxOutputBytes);
    expect(size(output)).toBeGreaterThan(maxOutputBytes / 5);
    const whole = typeof returned === 'string' ? returned : JSON.stringify(returned);
    const { text } = output as { text: string };
    expect(whole.startsWith(text)).toBe(true);
    expect(text).not.toMatch(/[\uD800-\uDBFF]$/);
    expect(outcome.modelOutput).toStrictEqual({ type: 'json', value: output });
  });

  test('keeps an output whose size in bytes is exactly the limit', async () => {
    const fits = 'x'.repeat(maxOutputBytes);
    expect(await run({ execute: () => fits }, { maxOutputBytes })).toMatchObject({ output: fits });
    expect(await run({ execute: () => `${fits}y` }, { maxOutputBytes })).toMatchObject({
      output: { truncated: true, originalBytes: maxOutputBytes + 1 },
    });
  });

  test('limits an output to 256 KiB by default', async () => {
    const fits = 'x'.repeat(256 * 1024);
    expect(await run({ execute: () => fits })).toMatchObject({ output: fits });
    expect(await run({ execute: () => `${fits}y` })).toMatchObject({ output: { truncated: true } });
  });

  test('limits the result of toModelOutput, except content with files', async () => {
    const big = 'y'.repeat(4000);
    const modelOutput = async (given: unknown): Promise<unknown> =>
      (await run({ execute: () => 1, toModelOutput: () => given }, { maxOutputBytes })).modelOutput;
    expect(await modelOutput({ type: 'text', value: big })).toMatchObject({
      type: 'json',
      value: { truncated: true, originalBytes: 4000 },
    });
    expect(await modelOutput({ type: 'error-json', value: { big } })).toMatchObject({
      type: 'error-json',
      value: { truncated: true },
    });
    const content = { type: 'content', value: [{ type: 'text', text: big }] };
    expect(await modelOutput(content)).toStrictEqual(content);
    const huge = { type: 'content', value: [{ type: 'text', text: 'z'.repeat(9_000_000) }] };
    expect(await modelOutput(huge)).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('more than 8388608'),
    });
  });
});

describe('preliminary outputs', () => {
  test('reach the listener one by one, and the last one becomes the result', async () => {
    const told: unknown[] = [];
    const outcome = await run(
      { execute: () => yields({ done: 1 }, { done: 2 }, 'all') },
      { onPreliminary: (output) => told.push(output) },
    );
    expect(told).toEqual([{ done: 1 }, { done: 2 }, 'all']);
    expect(outcome).toMatchObject({ status: 'ok', output: 'all' });
  });

  test('accept a promise of an iterator, and an iterator that yields nothing', async () => {
    expect(await run({ execute: async () => yields(1, 2) })).toMatchObject({ output: 2 });
    expect(await run({ execute: () => yields() })).toMatchObject({ status: 'ok', output: null });
  });

  test('skip and report values that are not JSON, and tolerate a listener that throws', async () => {
    const told: unknown[] = [];
    const reports: string[] = [];
    const outcome = await run(
      { execute: () => yields(1n, 'fine') },
      {
        onPreliminary: (output) => {
          told.push(output);
          throw new Error('listener');
        },
        report: (error, where) => reports.push(`${where}: ${String(error)}`),
      },
    );
    expect(outcome).toMatchObject({ status: 'ok', output: 'fine' });
    expect(told).toEqual(['fine']);
    expect(reports).toEqual([
      expect.stringContaining(
        'tool call c1: Error: A preliminary output returned what is not JSON',
      ),
      'onPreliminary of tool call c1: Error: listener',
    ]);
  });
});

describe('TOOL-RUN-2: cancellation', () => {
  test.each<[string, () => unknown]>([
    ['a promise', () => never()],
    [
      'a generator',
      async function* () {
        yield 1;
        await never();
      },
    ],
  ])('%s that never settles: cancelled at once', async (_, execute) => {
    const controller = new AbortController();
    const running = run({ execute }, { signal: controller.signal });
    await macrotask();
    controller.abort(new CancelledError('USER'));
    expect(await soon(running)).toStrictEqual(failure('Cancelled: USER', 'CANCELLED'));
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
  });

  test('stops waiting if toModelOutput never settles', async () => {
    const controller = new AbortController();
    const running = run(
      { execute: () => 1, toModelOutput: () => never() },
      { signal: controller.signal },
    );
    await macrotask();
    controller.abort('over');
    expect(await soon(running)).toStrictEqual(failure('Cancelled: over', 'CANCELLED'));
  });

  test("returns the signal's reason, not the error that the aborted tool throws", async () => {
    const controller = new AbortController();
    const execute = (_: unknown, { abortSignal }: { abortSignal: AbortSignal }) =>
      new Promise((_resolve, reject) => {
        abortSignal.addEventListener('abort', () => reject(new Error('tool stopped')));
      });
    for (const timeoutMs of [undefined, 5000]) {
      const scoped = new AbortController();
      const running = run({ execute }, { signal: scoped.signal, timeoutMs });
      await macrotask();
      scoped.abort(new CancelledError('BARGE_IN'));
      expect(await soon(running)).toStrictEqual(failure('Cancelled: BARGE_IN', 'CANCELLED'));
    }
    expect(controller.signal.aborted).toBe(false);
  });

  test('does not start the tool if the signal has already aborted', async () => {
    let started = 0;
    const outcome = await run(
      { execute: () => (started += 1) },
      { signal: AbortSignal.abort(new CancelledError('SHUTDOWN')) },
    );
    expect(outcome).toStrictEqual(failure('Cancelled: SHUTDOWN', 'CANCELLED'));
    expect(started).toBe(0);
  });

  test('calls return() on a generator, and ignores its later outputs', async () => {
    const controller = new AbortController();
    const told: unknown[] = [];
    let isReturned = false;
    const gate = deferred<void>();
    const execute = async function* (): AsyncGenerator<string> {
      try {
        yield 'first';
        await gate.promise;
        yield 'second';
        yield 'third';
      } finally {
        isReturned = true;
      }
    };
    const running = run(
      { execute },
      { signal: controller.signal, onPreliminary: (output) => told.push(output) },
    );
    await macrotask();
    controller.abort(new CancelledError('USER'));
    expect(await soon(running)).toMatchObject({ error: { code: 'CANCELLED' } });
    gate.resolve();
    await macrotask();
    expect(told).toEqual(['first']);
    expect(isReturned).toBe(true);
  });

  test('leaves no listeners on a signal that outlives many calls', async () => {
    const { signal } = new AbortController();
    for (let round = 0; round < 20; round += 1) {
      await run({ execute: async () => 1 }, { signal, timeoutMs: 100 });
      await run({ execute: () => yields(1, 2) }, { signal });
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('TOOL-RUN-2: the time limit', () => {
  test('stops waiting for a tool that ignores its signal', async () => {
    const environment = manualTime();
    let toolSignal: AbortSignal | undefined;
    const execute = (_: unknown, options: { abortSignal: AbortSignal }) => {
      toolSignal = options.abortSignal;
      return never();
    };
    const running = run({ execute }, { environment, timeoutMs: 500 });
    environment.advance(499);
    expect(await soon(running)).toBe('pending');
    expect(toolSignal?.aborted).toBe(false);
    environment.advance(1);
    expect(await soon(running)).toStrictEqual(
      failure('Tool "lookup" timed out after 500 ms', 'TIMEOUT'),
    );
    expect(toolSignal?.reason).toMatchObject({ name: 'TimeoutError' });
  });

  test("prefers the tool's own limit to the run's limit", async () => {
    const environment = manualTime();
    const running = run({ execute: () => never(), timeoutMs: 50 }, { environment, timeoutMs: 500 });
    environment.advance(50);
    expect(await soon(running)).toMatchObject({
      error: { message: 'Tool "lookup" timed out after 50 ms' },
    });
  });

  test('leaves no timer behind when a tool finishes in time, and starts none without a limit', async () => {
    const environment = manualTime();
    await run({ execute: () => 1 }, { environment, timeoutMs: 500 });
    expect(environment.waiting).toBe(0);
    const running = run({ execute: () => macrotask() }, { environment });
    expect(environment.waiting).toBe(0);
    await running;
  });
});

test('TOOL-RUN-3: handles the rejection of an abandoned tool', async () => {
  const unhandled = await countUnhandled(async () => {
    const controller = new AbortController();
    const late = deferred<void>();
    const running = run({ execute: () => late.promise }, { signal: controller.signal });
    const generating = run(
      {
        execute: async function* () {
          yield 1;
          await late.promise;
        },
      },
      { signal: controller.signal },
    );
    const gate = deferred<void>();
    const failsToReturn = run(
      {
        execute: async function* () {
          try {
            await gate.promise;
            yield 1;
          } finally {
            // oxlint-disable-next-line no-unsafe-finally -- the test needs this error
            throw new Error('cannot clean up');
          }
        },
      },
      { signal: controller.signal },
    );
    const refusesToReturn = run(
      {
        execute: () => ({
          [Symbol.asyncIterator]: () => ({
            next: () => never(),
            return: () => {
              throw new Error('cannot');
            },
          }),
        }),
      },
      { signal: controller.signal },
    );
    await macrotask();
    controller.abort('over');
    late.reject(new Error('late'));
    gate.resolve();
    const all = [running, generating, failsToReturn, refusesToReturn];
    for (const outcome of await Promise.all(all))
      expect(outcome).toMatchObject({ error: { code: 'CANCELLED' } });
  });
  expect(unhandled).toBe(0);
});

test("recognises a tool created with the SDK's tool()", async () => {
  const source = tool({ inputSchema, execute: ({ q }, { toolCallId }) => `${toolCallId} ${q}` });
  const prepared = prepareTools({ lookup: source }, 'tools').execution.get('lookup')!;
  expect(await run({}, { tool: prepared })).toMatchObject({ output: 'c1 x' });
});
