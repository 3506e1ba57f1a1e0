// How a subagent's work ends, and how it asks the agent that gave it the task.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createChildSubagentToolset } from '../../../src/actors/subagent/child-toolset.ts';
import { loneSubagent, wordsIn } from '../../support/lone-subagent.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../../support/subagent-runs.ts';

const { complete_task, request_input } = createChildSubagentToolset();

describe('complete_task', { tags: ['M10'] }, () => {
  test('ends the run with its result and its summary', async () => {
    const run = loneSubagent(
      { tools: { complete_task } },
      steps({
        text: 'Handing in.',
        calls: [{ name: 'complete_task', input: { result: 'The report', summary: 'It is done' } }],
      }),
    );
    expect(await run.result).toMatchObject({
      status: 'completed',
      output: 'The report',
      text: 'The report',
      summary: 'It is done',
      steps: 1,
      toolLedger: [{ toolName: 'complete_task', status: 'ok', output: { completed: true } }],
    });
  });

  test('waits for the other calls of its step, and uses the first of several completions', async () => {
    const done: string[] = [];
    const work = simpleTool(() => void done.push('worked'));
    const run = loneSubagent(
      { tools: { complete_task, work } },
      steps(
        calls(
          ['complete_task', { result: 'first' }],
          ['work'],
          ['complete_task', { result: 'second' }],
        ),
      ),
    );
    const { output, toolLedger } = await run.result;
    expect(output).toBe('first');
    expect(done).toEqual(['worked']);
    expect(toolLedger.map(({ toolName, status }) => [toolName, status])).toEqual([
      ['work', 'ok'],
      ['complete_task', 'ok'],
      ['complete_task', 'not_run'],
    ]);
  });

  test("SUBAGENT-MACHINE-7: counts in the last step, but prevents the step's other calls", async () => {
    const run = loneSubagent(
      { tools: { complete_task, work: simpleTool(never) }, maxSteps: 1 },
      steps(calls(['work'], ['complete_task', { result: 'in time' }])),
    );
    expect(await run.result).toMatchObject({ status: 'completed', output: 'in time' });
  });

  test('waits for a request_input call in the same step', { tags: ['M21'] }, async () => {
    const run = loneSubagent(
      { tools: { complete_task, request_input } },
      steps(calls(['complete_task', { result: 'done' }], ['request_input', { question: 'Sure?' }])),
    );
    await run.environment.settle();
    expect(run.subagent.outcome).toBeNull();
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      answer: { userResponse: 'Yes' },
    });
    expect(await run.result).toMatchObject({ output: 'done', steps: 1 });
  });

  test('leads to another step if a message arrives before it', { tags: ['M20'] }, async () => {
    let release: (value: unknown) => void = () => {};
    const work = simpleTool(
      () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    );
    const run = loneSubagent(
      { tools: { complete_task, work } },
      steps(
        calls(['work'], ['complete_task', { result: 'too early' }]),
        calls(['complete_task', { result: 'with the change' }]),
      ),
    );
    await run.environment.settle();
    run.subagent.message('m1', 'A change', 'queue');
    release('worked');
    expect(await run.result).toMatchObject({ output: 'with the change', steps: 2 });
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'A change']);
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
  });
});

describe("with completion: 'tool'", { tags: ['M20'] }, () => {
  test('does not finish with a text answer, and adds complete_task automatically', async () => {
    const run = loneSubagent(
      { completion: 'tool' },
      steps(say('I think I am done'), calls(['complete_task', { result: 'now I am' }])),
    );
    expect(await run.result).toMatchObject({ output: 'now I am', steps: 2 });
    expect(run.prompts[0]?.toolNames).toEqual(['complete_task']);
    expect(run.prompts[1]?.user).toContain('before you call the quoted tool');
    expect(run.prompts[1]?.user).toContain('{"tool":"complete_task"}');
  });

  test('accepts a tool with the completion role under another name', async () => {
    const run = loneSubagent(
      { completion: 'tool', tools: { hand_in: complete_task } },
      steps(say('done'), calls(['hand_in', { result: 'done' }])),
    );
    expect(await run.result).toMatchObject({ output: 'done' });
    expect(run.prompts[0]?.toolNames).toEqual(['hand_in']);
    expect(run.prompts[1]?.user).toContain('{"tool":"hand_in"}');
  });

  test('fails at the step limit if the subagent never calls complete_task', async () => {
    const run = loneSubagent({ completion: 'tool', maxSteps: 3 }, steps(say('done')));
    expect(await run.result).toMatchObject({
      status: 'failed',
      error: { code: 'STEP_LIMIT' },
      partial: 'done',
      steps: 3,
    });
  });

  test('requests the result again if it does not match the schema', { tags: ['H15'] }, async () => {
    const run = loneSubagent(
      { completion: 'tool', outputSchema: z.object({ total: z.number() }) },
      steps(
        calls(['complete_task', { result: { total: 'a lot' } }]),
        calls(['complete_task', { result: { total: 12 }, summary: 'Twelve' }]),
      ),
    );
    expect(await run.result).toMatchObject({
      status: 'completed',
      output: { total: 12 },
      text: 'Twelve',
      steps: 2,
    });
    expect(resultsIn(run.prompts[1]!)).toMatchObject([
      ['complete_task', 'error-text', expect.stringContaining('not accepted')],
    ]);
    expect(run.prompts[0]?.system).toContain('"total"');
    expect(run.prompts[0]?.system).toContain('complete_task');
  });

  test(
    'requests a text answer again if it does not match the schema',
    { tags: ['H15'] },
    async () => {
      const run = loneSubagent(
        { outputSchema: z.object({ total: z.number() }) },
        steps(say('twelve'), say('{"total": "12"}'), say('```json\n{"total": 12}\n```')),
      );
      expect(await run.result).toMatchObject({ output: { total: 12 }, steps: 3 });
      expect(run.prompts[1]?.user).toMatch(/^\[note .*not accepted.*\n\[data\] .*not JSON/s);
      expect(run.prompts[2]?.user).toContain('total');
    },
  );
});

describe('request_input', { tags: ['M9'] }, () => {
  const asking = (input: object) =>
    loneSubagent(
      { tools: { request_input } },
      steps(calls(['request_input', input]), ({ results }) => say(JSON.stringify(results))),
    );

  test('asks the agent that assigned the task, and continues with the answer', async () => {
    const run = asking({ question: 'Which one?', context: 'There are two' });
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_input');
    expect(run.inputs).toEqual([
      {
        requestId: 'sub_1.q1',
        subagentId: 'sub_1',
        subagentName: 'worker',
        question: 'Which one?',
        context: 'There are two',
      },
    ]);
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      answer: { userResponse: 'The first' },
    });
    expect((await run.result).output).toBe(
      '[{"responded":true,"response":"The first","timedOut":false}]',
    );
  });

  test('returns a timeout when its own time limit passes without an answer', async () => {
    const run = asking({ question: 'Which one?', timeoutMs: 500 });
    await run.environment.settle();
    expect(run.inputs).toMatchObject([{ timeoutMs: 500 }]);
    run.subagent.receive({ type: 'question.expired', requestId: 'sub_1.q1' });
    expect((await run.result).output).toBe('[{"responded":false,"timedOut":true}]');
  });

  test('does not report a timeout after it has been withdrawn', { tags: ['MW4'] }, async () => {
    const run = asking({ question: 'Which one?' });
    await run.environment.settle();
    run.subagent.receive({ type: 'question.withdrawn', requestId: 'sub_1.q1' });
    expect((await run.result).output).toBe('[{"responded":false,"timedOut":false}]');
  });

  test('gets withdrawn when its subagent ends', { tags: ['MW3'] }, async () => {
    const run = asking({ question: 'Which one?' });
    await run.environment.settle();
    run.subagent.cancel('enough');
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect(run.told.filter(([what]) => what.includes('nput'))).toEqual([
      ['requestInput', 'sub_1.q1'],
      ['withdrawInput', 'sub_1.q1'],
    ]);
  });

  test('SUBAGENT-MACHINE-6: does not end the subagent, however many requests remain unanswered', async () => {
    const run = loneSubagent(
      { tools: { request_input }, maxInputRetries: 1 },
      steps(calls(['request_input', { question: 'Which?' }]), say('on my own, then')),
    );
    await run.environment.settle();
    run.subagent.receive({ type: 'question.expired', requestId: 'sub_1.q1' });
    expect(await run.result).toMatchObject({ status: 'completed' });
  });
});
