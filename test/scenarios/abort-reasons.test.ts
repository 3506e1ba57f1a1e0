// `abortSignal.reason` says why a tool was aborted: it holds the canceller and the reason, or the timeout.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  CancelledError,
  CapacityError,
  defineTool,
  type OffstageError,
  TimeoutError,
  type SubagentConfig,
} from '../../src/index.ts';
import { calls, never, say, simpleTool, subagentRuns } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

/** A tool that hangs, and the reasons for which it was aborted. */
function watched(more: Record<string, unknown> = {}) {
  const reasons: unknown[] = [];
  const watch = (abortSignal: AbortSignal | undefined): Promise<never> => {
    abortSignal?.addEventListener('abort', () => void reasons.push(abortSignal.reason));
    return never();
  };
  return { reasons, watch, hang: simpleTool(({ abortSignal }) => watch(abortSignal), more) };
}

const reason = (type: new (...given: never[]) => OffstageError, words: string, code?: string) =>
  expect.toSatisfy(
    (given) =>
      given instanceof type &&
      given.message.includes(words) &&
      (code === undefined || given.code === code),
    `${type.name} "${words}"`,
  );

describe('a tool of a subagent', () => {
  type Runs = ReturnType<typeof subagentRuns>;
  test.each<
    [
      what: string,
      config: Partial<SubagentConfig>,
      more: Record<string, unknown>,
      act: (run: ReturnType<Runs['run']>, runs: Runs) => unknown,
      expected: unknown,
    ]
  >([
    [
      'its own time',
      {},
      { timeoutMs: 1000 },
      () => {},
      reason(TimeoutError, 'Tool "hang" timed out after 1000 ms', 'TIMEOUT'),
    ],
    [
      'the time of the run',
      { timeout: 2000 },
      {},
      () => {},
      reason(TimeoutError, 'used up its time', 'TIMEOUT'),
    ],
    [
      'the time of its budget',
      { budget: { timeMs: 3000 } },
      {},
      () => {},
      reason(CapacityError, 'no timeMs left', 'BUDGET_EXHAUSTED'),
    ],
    [
      'a cancellation',
      {},
      {},
      ({ cancel }) => cancel('the customer left'),
      reason(CancelledError, 'Cancelled: the customer left'),
    ],
  ])('gets its abort reason: %s', async (_, config, more, act, expected) => {
    const { hang, reasons } = watched(more);
    const runs = subagentRuns(({ turn }) => (turn === 1 ? calls(['hang']) : say('done')));
    const run = runs.run({ tools: { hang }, ...config });
    await runs.environment.settle();
    act(run, runs);
    await runs.environment.advance(60_000);
    await run.result;
    expect(reasons).toEqual([expected]);
  });
});

describe('a tool of a session', () => {
  type Talk = ReturnType<typeof textTalk>;
  const acts: [what: string, act: (talk: Talk) => unknown, expected: unknown][] = [
    [
      'the close of the session',
      ({ session }) => void session.close(),
      reason(CancelledError, 'the session was closed'),
    ],
    [
      'its suspension',
      ({ session }) => void session.suspend(),
      reason(CancelledError, 'the session was suspended'),
    ],
  ];

  test.each([
    ...acts,
    [
      'a cancellation of the call',
      ({ session }: Talk) => session.cancelToolCall(session.pendingToolCalls[0] ?? ''),
      reason(CancelledError, 'the app cancelled the call'),
    ],
    [
      'its own time',
      ({ environment }: Talk) => environment.advance(30_000),
      reason(TimeoutError, 'Tool "hang" timed out'),
    ],
  ] as typeof acts)('gives an inline call its abort reason: %s', async (_, act, expected) => {
    const { reasons, watch } = watched();
    const talk = textTalk({
      tools: [
        defineTool({
          name: 'hang',
          description: 'Hangs',
          parameters: z.object({}),
          execute: (_args, { abortSignal }) => watch(abortSignal),
        }),
      ],
    });
    await talk.start();
    await talk.type('use hang');
    act(talk);
    await talk.environment.advance(60_000);
    expect(reasons).toEqual([expected]);
  });

  test.each([
    ...acts,
    [
      'a cancellation of the subagent',
      ({ session }: Talk) =>
        session.subagents.cancel(session.subagents.list()[0]?.id ?? '', 'no longer wanted'),
      reason(CancelledError, 'no longer wanted'),
    ],
  ] as typeof acts)('gives a call of a subagent its abort reason: %s', async (_, act, expected) => {
    const { hang, reasons } = watched();
    const talk = textTalk({
      subagents: { work: { script: () => calls(['hang']), config: { tools: { hang } } } },
    });
    await talk.start();
    await talk.type('use work');
    act(talk);
    await talk.environment.advance(60_000);
    expect(reasons).toEqual([expected]);
  });

  test('does not abort the signal of a call that has finished', async () => {
    const signals: AbortSignal[] = [];
    const talk = textTalk({
      tools: [
        defineTool({
          name: 'quick',
          description: 'Is quick',
          parameters: z.object({}),
          execute: (_args, { abortSignal }) => void signals.push(abortSignal),
        }),
      ],
    });
    await talk.start();
    await talk.type('use quick');
    await talk.close();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});
