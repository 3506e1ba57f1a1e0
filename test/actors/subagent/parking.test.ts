// While a subagent is waiting for the user, it is stored as one string; an inspected subagent stays an actor. Observers
// see no difference.

import { describe, expect, test } from 'vitest';
import type { RuntimeOptions } from '../../../src/index.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import type { GivenAnswer } from '../../../src/actors/subagent/ask-user.ts';
import { calls, say, simpleTool, steps, subagentRuns } from '../../support/subagent-runs.ts';

/** A run that works, asks a question, continues, asks for approval, and completes. */
function longRun(runtimeOptions: Partial<RuntimeOptions> = {}) {
  const asked: { question: AskedQuestion; answer: (given: GivenAnswer) => void }[] = [];
  const runs = subagentRuns(
    steps(
      calls(['look', { at: 'this' }], ['ask_user', { question: 'Red or blue?' }, 'c1']),
      calls(['look', { at: 'that' }], ['pay', { sum: 5 }]),
      ({ results }) => say(`done: ${JSON.stringify(results)}`),
    ),
    runtimeOptions,
  );
  const { result, cancel } = runs.run(
    {
      interactive: true,
      tools: {
        look: simpleTool(() => ({ saw: ['much', null] })),
        pay: simpleTool(() => 'paid', { needsApproval: true }),
      },
    },
    {
      onQuestion: (question) =>
        new Promise((resolve) => asked.push({ question, answer: (given) => resolve(given) })),
    },
  );
  return { ...runs, asked, result, cancel };
}

async function wholeStory(runtimeOptions: Partial<RuntimeOptions>) {
  const { environment, asked, result, prompts, errors } = longRun(runtimeOptions);
  await environment.advance(1000);
  asked[0]?.answer({ text: 'blue' });
  await environment.advance(1000);
  asked[1]?.answer({ approved: true });
  return {
    outcome: await result,
    prompts: prompts.map(({ prompt }) => prompt),
    questions: asked.map(({ question }) => question),
    errors,
  };
}

describe('SUBAGENT-3: a waiting subagent', () => {
  test('resumes with the same outcome as without parking', async () => {
    const parked = await wholeStory({});
    const kept = await wholeStory({ inspect: () => {} });
    expect(parked.outcome).toMatchObject({ status: 'completed', steps: 3 });
    expect(parked.outcome.toolLedger.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(parked.questions).toHaveLength(2);
    expect(parked).toEqual(kept);
  });

  test("has only one timer, which ends the wait for the user's answer", async () => {
    const { environment, cancel, result } = longRun();
    await environment.settle();
    expect(environment.pendingTimers).toBe(1);
    cancel();
    await result;
    expect(environment.pendingTimers).toBe(0);
  });

  test('ends when it is cancelled, and keeps its completed work', async () => {
    const { environment, asked, cancel, result } = longRun();
    await environment.settle();
    cancel('enough');
    const outcome = await result;
    expect(outcome).toMatchObject({ status: 'cancelled', steps: 1, usage: { totalTokens: 15 } });
    expect(outcome.toolLedger.map(({ toolName, status }) => [toolName, status])).toEqual([
      ['look', 'ok'],
      ['ask_user', 'not_run'],
    ]);
    asked[0]?.answer({ text: 'too late' });
    await environment.settle();
    expect(await result).toBe(outcome);
  });
});
