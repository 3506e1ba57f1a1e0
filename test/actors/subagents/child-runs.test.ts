// The subagents of a run on an engine, each as a separate run: they have no more authority than inside the parent's
// run.

import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { jobWorker, runWorker, type RunOrder } from '../../../src/entries/jobs.ts';
import {
  createRuntime,
  type SubagentConfig,
  createChildSubagentToolset,
  createSubAgentTool,
} from '../../../src/index.ts';
import { runSubagent, type RunSubagentOptions } from '../../../src/entries/subagents.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  simulatedJobs,
  simulatedRuns,
  type ScriptedStep,
} from '../../../src/testing/index.ts';

const pays: string[] = [];
const pay = tool({
  description: 'Pays',
  inputSchema: z.object({ dollars: z.number() }),
  needsApproval: true,
  execute: ({ dollars }) => {
    pays.push(`${dollars}`);
    return { paid: dollars };
  },
});

type Helper = Parameters<typeof createSubAgentTool>[0];

const helperOf = (own: Partial<Helper>, questions?: 'return') =>
  createSubAgentTool(
    {
      name: 'helper',
      instructions: 'You help.',
      runs: 'jobs',
      interactive: true,
      inputTimeout: 600_000,
      tools: { pay },
      outputSchema: z.object({ said: z.string() }),
      structured: 'off',
      ...own,
    },
    z.object({ what: z.string() }),
    questions ? { questions } : {},
  );

type Steps = readonly ScriptedStep[];
const said = (text: string): ScriptedStep => ({ text: JSON.stringify({ said: text }) });
const help: ScriptedStep = {
  calls: [{ name: 'helper', input: { what: 'this' }, id: 'call_help' }],
};

/** Plays a run of `main`; both scripts go by the number of the model's answers so far. */
async function play(
  main: Partial<SubagentConfig>,
  scripts: { readonly main: Steps; readonly helper: Steps },
  options: Partial<RunSubagentOptions> = {},
) {
  const environment = simulatedEnvironment();
  const config: SubagentConfig = {
    name: 'main',
    instructions: 'You lead.',
    runs: 'jobs',
    interactive: true,
    inputTimeout: 600_000,
    ...main,
  };
  const configs = { main: config };
  const model = scriptedModel({
    otherwise({ prompt, system }) {
      const own = system.includes('You lead.') ? scripts.main : scripts.helper;
      const turn = prompt.filter(({ role }) => role === 'assistant').length;
      return own[turn] ?? said('nothing more');
    },
  });
  const jobs = simulatedJobs({ handler: jobWorker({ environment, configs, model }) });
  const handler = runWorker({ environment, configs, jobs });
  const orders = new Map<string, RunOrder>();
  const engine = simulatedRuns({
    environment,
    handler: {
      step: handler.step,
      turn(turn, signal) {
        orders.set(turn.order.id, turn.order);
        return handler.turn(turn, signal);
      },
    },
  });
  const { result } = runSubagent(config, 'Go', {
    runtime: createRuntime({ environment }),
    engine,
    id: 'run',
    by: 'ada',
    ...options,
  });
  let isOver = false;
  void result.then(() => {
    isOver = true;
  });
  for (let look = 0; look < 200 && !isOver; look += 1) await environment.settle();
  return { outcome: await result, orders: [...orders.values()] };
}

test('RUN-WORKER-5: inherits the users who may answer, and the user it acts for', async () => {
  const asked: unknown[] = [];
  const { outcome, orders } = await play(
    { answerableBy: ['ada'], tools: { helper: helperOf({}) } },
    {
      main: [help],
      helper: [{ calls: [{ name: 'ask_user', input: { question: 'Which?' } }] }, said('blue')],
    },
    {
      onQuestion: ({ answerableBy, subagentName }) => {
        asked.push([subagentName, answerableBy]);
        return { text: 'Blue', by: 'ada' };
      },
    },
  );
  expect(outcome.status).toBe('completed');
  expect(asked).toEqual([['helper', ['ada']]]);
  expect(orders.map(({ config, by, above }) => [config, by, above?.depth])).toEqual([
    ['main', 'ada', undefined],
    ['helper', 'ada', 1],
  ]);
});

test('RUN-WORKER-5: does not ask again for a call that the user denied to the run', async () => {
  const payment: ScriptedStep = { calls: [{ name: 'pay', input: { dollars: 7 } }] };
  const asked: string[] = [];
  const { outcome, orders } = await play(
    { tools: { pay, helper: helperOf({}) } },
    { main: [payment, help], helper: [payment, said('not paid')] },
    {
      onQuestion: ({ subagentName }) => {
        asked.push(subagentName);
        return { approved: false };
      },
    },
  );
  expect(outcome.status).toBe('completed');
  expect(orders).toHaveLength(2);
  expect([asked, pays]).toEqual([['main'], []]);
});

test('RUN-WORKER-5: runs a subagent with a budget inside the run, and charges its steps to the run', async () => {
  const { outcome, orders } = await play(
    { budget: { steps: 3 }, tools: { helper: helperOf({}) } },
    {
      main: [help, { text: 'Done' }],
      helper: [{ calls: [{ name: 'ask_user', input: { question: 'Which?' } }] }, said('blue')],
    },
    { onQuestion: () => ({ text: 'Blue' }) },
  );
  expect(orders).toHaveLength(1);
  expect(outcome.toolLedger[0]).toMatchObject({ toolName: 'helper', output: { said: 'blue' } });
});

test('RUN-WORKER-5: limits a chain of child runs to the depth allowed for subagents', async () => {
  const nested = helperOf({ name: 'third', tools: {} });
  const second = helperOf({ name: 'second', tools: { helper: nested } });
  const config = (nestedTool: object) => ({ tools: { helper: nestedTool } });
  const chain = await play(config(second), { main: [help], helper: [help, said('deep')] });
  expect(chain.orders.map(({ above }) => above?.depth ?? 0)).toEqual([0, 1, 2]);
  const first = helperOf({ name: 'first', tools: { helper: second } });
  const deeper = await play(config(first), { main: [help], helper: [help, said('deep')] });
  expect(deeper.orders.map(({ above }) => above?.depth ?? 0)).toEqual([0, 1, 2]);
});

test("does not let the program answer a child's request to its parent", async () => {
  const asks = { calls: [{ name: 'request_input', input: { question: 'How much?' } }] };
  const tools = { request_input: createChildSubagentToolset().request_input };
  let requests = 0;
  const { outcome, orders } = await play(
    { tools: { helper: helperOf({ tools }) } },
    { main: [help], helper: [asks, said('unknown')] },
    {
      onInput: () => {
        requests += 1;
        return 'Seven';
      },
    },
  );
  expect([outcome.status, requests, orders.length]).toEqual(['completed', 0, 2]);
});

test("runs a subagent inside the run if the call returns the subagent's question", async () => {
  const { orders } = await play(
    { tools: { helper: helperOf({}, 'return') } },
    { main: [help], helper: [said('here')] },
  );
  expect(orders).toHaveLength(1);
});

test.each(['x'.repeat(200), '✓'.repeat(200), 'a/b:c\n#1'])(
  "RUN-WORKER-4: limits the id of a child run to every engine's maximum for a parent named %j",
  async (id) => {
    const { outcome, orders } = await play(
      { tools: { helper: helperOf({}) } },
      { main: [help], helper: [said('here')] },
      { id },
    );
    expect(outcome.status).toBe('completed');
    const [, child] = orders.map((order) => encodeURIComponent(order.id));
    expect(child?.length).toBeLessThanOrEqual(200);
  },
);

test("returns a child's outcome unchanged, even if its schema transforms values", async () => {
  const outputSchema = z.object({ said: z.string().transform((text) => text.length) });
  const { outcome } = await play(
    { tools: { helper: helperOf({ outputSchema }) } },
    { main: [help], helper: [said('four')] },
  );
  expect(outcome.toolLedger[0]).toMatchObject({ output: { said: 4 } });
});
