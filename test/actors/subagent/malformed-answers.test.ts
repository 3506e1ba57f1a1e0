// Model answers that do not match the AI SDK's types. Each ends the step at once with a typed error, or is read as far
// as possible.

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SubagentConfig } from '../../../src/index.ts';
import { hostileValues } from '../../support/hostile-values.ts';
import { loneSubagent } from '../../support/lone-subagent.ts';
import type { SubagentUnitEvent } from '../../../src/actors/subagent/subagent-events.ts';
import { calls, never, say, simpleTool, subagentRuns } from '../../support/subagent-runs.ts';
import {
  answer,
  call,
  model,
  text,
  usage,
  type Answer,
  type Model,
  type Part,
} from '../model/fakes.ts';

type Stream = Awaited<ReturnType<Model['doStream']>>['stream'];
type StreamPart = Stream extends ReadableStream<infer Each> ? Each : never;

const signed = { test: { signature: 's' } };
const answered: Answer = {
  ...answer([
    { type: 'reasoning', text: 'The user wants work.', providerMetadata: signed },
    text('I work.'),
    call('c1', 'work', { much: 1 }),
    { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com', title: 'Example' },
    { type: 'file', mediaType: 'text/plain', data: { type: 'data', data: 'aGk=' } },
    {
      type: 'tool-call',
      toolCallId: 'p1',
      toolName: 'search',
      input: '{}',
      providerExecuted: true,
    },
    { type: 'tool-result', toolCallId: 'p1', toolName: 'search', result: { found: 1 } },
  ]),
  providerMetadata: signed,
  response: { id: 'r1', modelId: 'm', timestamp: new Date(0) },
};
const finish = { type: 'finish', usage, finishReason: answered.finishReason } as const;
const parts: readonly StreamPart[] = [
  { type: 'stream-start', warnings: [] },
  { type: 'response-metadata', id: 'r1' },
  { type: 'reasoning-start', id: '1' },
  { type: 'reasoning-delta', id: '1', delta: 'The user wants work.' },
  { type: 'reasoning-end', id: '1', providerMetadata: signed },
  { type: 'text-start', id: '2' },
  { type: 'text-delta', id: '2', delta: 'I work.' },
  { type: 'text-end', id: '2' },
  { type: 'tool-input-start', id: 'c1', toolName: 'work' },
  { type: 'tool-input-delta', id: 'c1', delta: '{"much":1}' },
  { type: 'tool-input-end', id: 'c1' },
  { type: 'tool-call', toolCallId: 'c1', toolName: 'work', input: '{"much":1}' },
  finish,
];

/** A model that returns or streams `first`, and then says that it is done. */
function answering(
  first: { readonly answer: unknown } | { readonly stream: readonly unknown[] },
): Model {
  let asked = 0;
  const done = answer([text('Done.')]);
  return {
    ...model(),
    doGenerate: async () =>
      ((asked += 1) === 1 && 'answer' in first ? first.answer : done) as Answer,
    doStream: async () => {
      const isFirst = (asked += 1) === 1 && 'stream' in first;
      const last: readonly unknown[] = [
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'Done.' },
        { type: 'finish', usage, finishReason: done.finishReason },
      ];
      return {
        stream: new ReadableStream<StreamPart>({
          start(controller) {
            for (const part of isFirst ? first.stream : last)
              controller.enqueue(part as StreamPart);
            controller.close();
          },
        }),
      };
    },
  };
}

async function endOf(given: Model, streams = false, config: Partial<SubagentConfig> = {}) {
  const runs = subagentRuns(() => say('Nothing.'));
  const { result } = runs.run({
    tools: { work: simpleTool(() => 'worked') },
    model: given,
    retry: { maxAttempts: 1 },
    stream: streams,
    ...config,
  });
  const began = runs.environment.clock.now();
  const { status, error } = await result;
  return { status, code: error?.code ?? null, tookMs: runs.environment.clock.now() - began, runs };
}

type Path = readonly (string | number)[];

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || value instanceof Date) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([key, held]) =>
      pathsIn(held, [...path, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

const REMOVED = Symbol('removed');

/** Returns a copy with a different value in one place. */
function withOther(value: unknown, [key, ...rest]: Path, other: unknown): unknown {
  if (key === undefined) return other;
  const held = (value as Readonly<Record<string | number, unknown>>)[key];
  const next = withOther(held, rest, other);
  if (Array.isArray(value))
    return next === REMOVED ? value.toSpliced(Number(key), 1) : value.with(Number(key), next);
  const { [key]: _, ...others } = value as Readonly<Record<string | number, unknown>>;
  return next === REMOVED ? others : { ...others, [key]: next };
}

const others: fc.Arbitrary<() => unknown> = fc.oneof(
  fc.constantFrom(
    ...[
      REMOVED,
      null,
      undefined,
      0,
      Number.NaN,
      '',
      'x',
      true,
      [],
      {},
      [null],
      'a\0\uD800',
      10n,
    ].map((value) => () => value),
  ),
  fc
    .constantFrom(
      ...Object.keys(hostileValues).filter((name) => !name.includes('rejected promise')),
    )
    .map((name) => hostileValues[name] as () => unknown),
);
/** Codes that no answer may cause, because they stand for an event that the runtime's own journal refuses. */
const REFUSED_INSIDE = ['MALFORMED_EVENT', 'INTERNAL', 'TIMEOUT', 'CRASHED'];

describe('a malformed answer from a model', () => {
  const lacking = (part: object): Part => part as Part;
  it.each<[string, Part]>([
    ['a call without a name', lacking({ type: 'tool-call', toolCallId: 'c1', input: '{}' })],
    ['a call whose name is empty', call('c1', '', {})],
    ['a text without a text', lacking({ type: 'text' })],
    ['reasoning without a text', lacking({ type: 'reasoning' })],
    ['a part without a type', lacking({ text: 'Hello.' })],
    ['a part that is no object', lacking(Object('Hello.') as object)],
    [
      'a result of the provider without the id of its call',
      lacking({ type: 'tool-result', toolName: 'search', result: 1 }),
    ],
  ])('fails the step at once: %s', async (_, part) => {
    const end = await endOf(answering({ answer: answer([part], 'tool-calls') }));
    expect(end).toMatchObject({ status: 'failed', code: 'MALFORMED_RESPONSE', tookMs: 0 });
  });

  it.each<[string, readonly unknown[]]>([
    ['a call without a name', [{ type: 'tool-call', toolCallId: 'c1', input: '{}' }, finish]],
    [
      'words that are no text',
      [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1' }, finish],
    ],
    ['an end without token counts', [{ ...finish, usage: undefined }]],
    ['a part that is null', [null, finish]],
  ])('fails the step at once, in a stream: %s', async (_, stream) => {
    const end = await endOf(answering({ stream }), true);
    expect(end).toMatchObject({ status: 'failed', code: 'MALFORMED_RESPONSE', tookMs: 0 });
  });

  it.each<[string, unknown]>([
    ['a long text', 'x'.repeat(100_000)],
    ['a long list', Array.from({ length: 100_000 }, () => ({ type: 'other', message: 'm' }))],
    ['texts', ['one', 'two']],
    ['an object', { length: 100_000 }],
  ])('writes no more than 20 warnings to the console: %s', async (_, warnings) => {
    const warned: unknown[] = [];
    globalThis.AI_SDK_LOG_WARNINGS = (options) => void warned.push(...options.warnings);
    onTestFinished(() => {
      globalThis.AI_SDK_LOG_WARNINGS = undefined;
    });
    await endOf(answering({ answer: { ...answered, warnings } }));
    await endOf(answering({ stream: [{ type: 'stream-start', warnings }, ...parts] }), true);
    expect(warned.length).toBeLessThanOrEqual(2 * 20);
  });

  const withCounts = (inputTokens: unknown) => ({
    ...answered,
    usage: { ...usage, inputTokens: inputTokens as typeof usage.inputTokens },
  });
  it.each<[string, unknown]>([
    ['a text', 'x'.repeat(100_000)],
    ['a list', [1, 2]],
    ['a number', 7],
  ])('fails the step at once where token counts are %s', async (_, counts) => {
    const end = await endOf(answering({ answer: withCounts(counts) }));
    expect(end).toMatchObject({ status: 'failed', code: 'MALFORMED_RESPONSE', tookMs: 0 });
  });

  it('never becomes an event that the journal refuses, whichever field is malformed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pathsIn(answered)), others, async (path, other) => {
        const mutant = withOther(answered, path, other());
        const end = await endOf(answering({ answer: mutant === REMOVED ? undefined : mutant }));
        expect(end.tookMs).toBe(0);
        expect(REFUSED_INSIDE).not.toContain(end.code);
      }),
      { numRuns: 150 },
    );
  });

  it('never becomes an event that the journal refuses, whichever stream field is malformed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pathsIn(parts).slice(1)), others, async (path, other) => {
        const stream = withOther(parts, path, other()) as readonly unknown[];
        const end = await endOf(answering({ stream }), true);
        expect(end.tookMs).toBe(0);
        expect(REFUSED_INSIDE).not.toContain(end.code);
      }),
      { numRuns: 150 },
    );
  });
});

describe("SUBAGENT-8: an event that a subagent's unit refuses", () => {
  const refused = (event: object) => event as SubagentUnitEvent;
  const waiting = async () => {
    const run = loneSubagent({ tools: { ask: simpleTool(never) } }, () => calls(['ask', {}, 'c1']));
    await run.environment.settle();
    return run;
  };

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['an answer', { type: 'model.responded', step: 1, calls: [], response: {} }, 'MALFORMED_EVENT'],
    [
      'a failure with an answer',
      { type: 'model.failed', step: 1, error: {}, response: {} },
      'MALFORMED_EVENT',
    ],
    ['a failure', { type: 'model.failed', step: 1, error: {} }, 'INTERNAL'],
    ['a preparation', { type: 'subagent.prepared', messages: 1 }, 'MALFORMED_EVENT'],
    ['a grant', { type: 'slot.granted', history: 1 }, 'INTERNAL'],
    ['a limit', { type: 'budget.exhausted', graceful: 1, message: 'over' }, 'INTERNAL'],
  ])('leaves nothing waiting: %s', async (_, event, code) => {
    const run = loneSubagent({}, never);
    // The preparation is still running.
    if (event['type'] !== 'subagent.prepared') await run.environment.settle();
    run.subagent.receive(refused(event));
    expect(await run.result).toMatchObject({ status: 'failed', error: { code } });
  });

  it('turns the refused outcome of a call into an error', async () => {
    const run = await waiting();
    run.subagent.receive(
      refused({ type: 'tool.settled', step: 1, callId: 'c1', outcome: { status: 'odd' } }),
    );
    await run.environment.settle();
    expect(run.subagent.log.ledger).toMatchObject([{ callId: 'c1', status: 'error' }]);
    run.subagent.kill('the test is over');
  });
});
