// Workers of several versions serve one run on an engine (RUN-WORKER-6): for a limited time, a worker leaves a part
// that it does not know to others.

import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { jobWorker, runWorker, type RunHandler, type RunOrder } from '../../../src/entries/jobs.ts';
import { createRuntime, type SubagentConfig } from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import { scriptedModel, simulatedEnvironment, simulatedRuns } from '../../../src/testing/index.ts';

const OFFER_MS = 60_000;
const { signal } = new AbortController();

function versions() {
  const environment = simulatedEnvironment();
  const paid: string[] = [];
  const pay = (name: string) =>
    tool({
      description: 'Pays',
      inputSchema: z.object({ dollars: z.number() }),
      needsApproval: true,
      execute: ({ dollars }) => {
        paid.push(`${name} ${dollars}`);
        return { paid: dollars };
      },
    });
  const model = scriptedModel({
    otherwise: ({ results }) =>
      results.length > 0
        ? { text: `Read: ${JSON.stringify(results)}` }
        : { calls: [{ name: 'pay', input: { dollars: 7 } }] },
  });
  const workerOf = (
    tools: NonNullable<SubagentConfig['tools']>,
    name = 'treasurer',
  ): RunHandler => {
    const config: SubagentConfig = {
      name,
      instructions: 'You pay.',
      runs: 'jobs',
      interactive: true,
      inputTimeout: 86_400_000,
      tools,
    };
    const configs = { [name]: config };
    const steps = jobWorker({ environment, configs, model });
    return runWorker({ environment, configs, steps, offerMs: OFFER_MS });
  };
  return { environment, paid, workerOf, newer: workerOf({ pay: pay('newer') }) };
}

/** Starts a run on an engine whose worker changes. */
function begun(environment: ReturnType<typeof simulatedEnvironment>, first: RunHandler) {
  let worker = first;
  const engine = simulatedRuns({
    environment,
    handler: {
      turn: (turn, stop) => worker.turn(turn, stop),
      step: (step, stop) => worker.step?.(step, stop) ?? Promise.resolve({ lost: true }),
    },
    steps: 'one',
  });
  const { promise: consent, resolve: approve } = Promise.withResolvers<void>();
  const config = { name: 'treasurer', instructions: '', runs: 'jobs', interactive: true } as const;
  let text: string | null = null;
  void runSubagent(config, 'Pay seven dollars', {
    runtime: createRuntime({ environment }),
    engine,
    id: 'pay-7',
    onQuestion: async () => {
      await consent;
      return { approved: true };
    },
  }).result.then((outcome) => {
    text = `${outcome.status} ${outcome.error?.code ?? outcome.text}`;
  });
  return {
    approve,
    said: () => text,
    deploy(next: RunHandler) {
      worker = next;
    },
  };
}

describe('a deploy while a run waits for an approval', () => {
  test('delays the call until a worker has the tool, and then runs it once', async () => {
    const { environment, paid, workerOf, newer } = versions();
    const run = begun(environment, newer);
    await environment.settle();
    run.deploy(workerOf({}));
    run.approve();
    await environment.advance(OFFER_MS / 2);
    expect([run.said(), paid]).toEqual([null, []]);
    run.deploy(newer);
    await environment.advance(2_000);
    expect([run.said(), paid]).toEqual(['completed Read: [{"paid":7}]', ['newer 7']]);
  });

  test('informs the model after `offerMs` that the tool no longer exists', async () => {
    const { environment, paid, workerOf, newer } = versions();
    const run = begun(environment, newer);
    await environment.settle();
    run.deploy(workerOf({}));
    run.approve();
    await environment.advance(OFFER_MS + 2_000);
    expect([run.said(), paid]).toEqual(['completed Read: ["There is no tool \\"pay\\""]', []]);
  });

  test('ends the run as lost after `offerMs` if the configuration no longer exists', async () => {
    const { environment, workerOf, newer } = versions();
    const run = begun(environment, newer);
    await environment.settle();
    run.deploy(workerOf({}, 'somebody_else'));
    run.approve();
    await environment.advance(OFFER_MS / 2);
    expect(run.said()).toBe(null);
    await environment.advance(OFFER_MS);
    expect(run.said()).toBe('lost NOT_RECOVERABLE');
  });
});

describe('a turn from a later version', () => {
  const order: RunOrder = {
    id: 'pay-7',
    config: 'treasurer',
    task: { description: 'Pay', toolName: 'treasurer', args: {} },
  };
  const turn = {
    order,
    number: 1,
    journal: [],
    waiting: [],
    news: { type: 'begun' },
    steps: 'one',
  } as const;

  test.each([
    ['a field of the turn', { ...turn, urgent: true }],
    ['a field of the order', { ...turn, order: { ...order, urgent: true } }],
    // Without that part, the run would have more authority than it was granted.
    [
      'a bound of the run above',
      { ...turn, order: { ...order, above: { depth: 1, denied: [], atNight: false } } },
    ],
    ['another piece of news', { ...turn, news: { type: 'told', words: 'Hurry' } }],
  ])('stays available to other workers when this part is unknown: %s', async (_what, later) => {
    const { environment, newer } = versions();
    const given = later as typeof turn;
    expect(await newer.turn(given, signal)).toMatchObject({ missing: 'another worker' });
    const between = { ...given, steps: 'none' } as const;
    await expect(newer.turn(between, signal)).rejects.toMatchObject({
      code: 'JOB_UNREADABLE',
      retryable: true,
    });
    await environment.advance(OFFER_MS);
    expect(await newer.turn(given, signal)).toMatchObject({
      outcome: { status: 'lost', error: { code: 'JOB_UNREADABLE' } },
    });
  });

  test('fails the step with the reason for its refusal after `offerMs`', async () => {
    const { environment, newer } = versions();
    const step = {
      key: 'pay-7/1:2',
      name: 'tool fly',
      once: true,
      body: '{"of":"a later version"}',
    };
    expect(await newer.step?.(step, signal)).toMatchObject({ refused: {} });
    expect(await newer.step?.(step, signal)).toMatchObject({ refused: {} });
    await environment.advance(OFFER_MS);
    expect(await newer.step?.(step, signal)).toMatchObject({ failed: { retryable: false } });
  });
});
