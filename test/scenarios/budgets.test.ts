// The budget of a whole session: the shared limits of its subagents, and the message that the user gets when the budget
// is used up.

import { expect, test } from 'vitest';
import { subtreeUsage } from '../../src/entries/subagents.ts';
import { ConfigurationError } from '../../src/index.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

const searcher = {
  script: ({ user }: { user: string }) =>
    user.includes('last answer') ? say('Two of five found.') : calls(['look']),
  config: { maxSteps: 50, tools: { look: simpleTool(() => 'seen') } },
};

test('fails a subagent when its budget is exhausted, keeps its partial result and tells the user why', async () => {
  const { start, type, state, said } = textTalk({
    subagents: { search: searcher },
    budget: { steps: 5 },
  });
  await start();
  await type('use search');
  expect(state().subagents[0]?.outcome).toMatchObject({
    status: 'failed',
    partial: 'Two of five found.',
    error: { code: 'BUDGET_EXHAUSTED' },
  });
  expect(said().at(-1)).toContain('The budget is used up: no steps left');
});

test('reports an exhausted agent budget and starts no more agents', async () => {
  const { start, type, state, said } = textTalk({
    subagents: { search: searcher },
    budget: { agents: 1 },
  });
  await start();
  await type('use search');
  await type('use search {"again":true}');
  expect(state().subagents).toHaveLength(1);
  expect(said().join('\n')).toContain('expected agents of at most 0');
});

test("shows the cost of each subagent in its view and limits the session's cost", async () => {
  let calls_ = 0;
  const { start, type, state } = textTalk({
    subagents: { search: searcher },
    budget: { cost: 2.5 },
    price: () => (calls_ += 1) && 0.5,
  });
  await start();
  await type('use search');
  const { subagents, usage } = state();
  expect(subagents[0]?.outcome?.error?.message).toContain('no cost left');
  // Five calls and the final one.
  expect(subagents[0]?.usage.cost).toBe(3);
  expect(subtreeUsage(subagents, null).cost).toBe(3);
  // The lead agent's three calls count towards the conversation, but not towards the limit.
  expect(usage).toMatchObject({
    lead: { cost: 1.5 },
    subagents: { cost: 3 },
    total: { cost: 4.5 },
  });
  expect(calls_).toBe(9);
});

test('refuses a limit on the cost if no price is set', () => {
  expect(() => textTalk({ budget: { cost: 1 } })).toThrow(/expected `price`/);
});

test('throws in the constructor if a budget is impossible', () => {
  expect(() => textTalk({ budget: { tokens: 0.5 } })).toThrow(ConfigurationError);
});
