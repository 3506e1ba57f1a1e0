// The text of a working subagent, its activity, and what happens when its budget runs out.

import { describe, expect, test } from 'vitest';
import { createChildSubagentToolset } from '../../../src/actors/subagent/child-toolset.ts';
import { DELEGATES } from '../../../src/actors/model/tool-flags.ts';
import { loneSubagent, wordsIn } from '../../support/lone-subagent.ts';
import { calls, never, say, simpleTool, steps } from '../../support/subagent-runs.ts';

describe('with stream: true', { tags: ['H6', 'H22'] }, () => {
  test('emits text and tool calls as they arrive', async () => {
    const run = loneSubagent(
      {
        stream: true,
        tools: {
          look: simpleTool(() => 'seen'),
          fail: simpleTool(() => Promise.reject(new Error('no'))),
        },
      },
      steps(
        { text: 'Let me look.', calls: [{ name: 'look', input: { at: 'it' }, id: 'c1' }] },
        calls(['fail', {}, 'c2']),
        say('All done'),
      ),
    );
    expect(await run.result).toMatchObject({ output: 'All done', usage: { totalTokens: 45 } });
    expect(run.chunks).toEqual([
      { type: 'text_delta', step: 1, delta: 'Let ' },
      { type: 'text_delta', step: 1, delta: 'me ' },
      { type: 'text_delta', step: 1, delta: 'look.' },
      { type: 'tool_start', step: 1, callId: 'c1', toolName: 'look', input: { at: 'it' } },
      { type: 'tool_end', step: 1, callId: 'c1', toolName: 'look', output: 'seen' },
      { type: 'tool_start', step: 2, callId: 'c2', toolName: 'fail', input: {} },
      {
        type: 'tool_end',
        step: 2,
        callId: 'c2',
        toolName: 'fail',
        output: null,
        error: 'Error: no',
      },
      { type: 'text_delta', step: 3, delta: 'All ' },
      { type: 'text_delta', step: 3, delta: 'done' },
    ]);
  });

  test('produces the same outcome and prompts as a run without streaming', async () => {
    const config = { tools: { look: simpleTool(() => 'seen') } };
    const script = () => steps(calls(['look', {}, 'c1']), say('done'));
    const plain = loneSubagent(config, script());
    const streamed = loneSubagent({ ...config, stream: true }, script());
    expect(await streamed.result).toEqual(await plain.result);
    expect(streamed.prompts.map(({ prompt }) => prompt)).toEqual(
      plain.prompts.map(({ prompt }) => prompt),
    );
    expect(plain.chunks).toEqual([]);
  });

  test('SUBAGENT-4: emits nothing more after an abort', async () => {
    const run = loneSubagent({ stream: true }, steps({ text: 'late words', delayMs: 1000 }));
    await run.environment.settle();
    run.subagent.cancel('enough');
    await run.result;
    await run.environment.advance(2000);
    expect(run.chunks).toEqual([]);
  });
});

test('reports activity when something happens, but not while it is waiting', async () => {
  const work = simpleTool(async function* () {
    yield { progress: 'half' };
    await never();
  });
  const run = loneSubagent({ tools: { work } }, steps(calls(['work'])));
  await run.environment.settle();
  const before = run.signsOfLife();
  expect(run.subagent.progress).toBe('half');
  expect(before).toBeGreaterThanOrEqual(4);
  await run.environment.advance(60_000);
  expect(run.signsOfLife()).toBe(before);
});

describe('SUBAGENT-MACHINE-12: a subagent with an exhausted budget', () => {
  test('returns its partial text without tools, and fails', async () => {
    let release: (value: unknown) => void = () => {};
    const work = simpleTool(
      () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    );
    const run = loneSubagent(
      { tools: { work }, interactive: true },
      steps(calls(['work'], ['ask_user', { question: 'Which?' }]), say('Half of it')),
    );
    await run.environment.settle();
    run.subagent.exhaust('It used 1,000 of 1,000 tokens');
    run.subagent.exhaust('A second one changes nothing');
    release('worked');
    expect(await run.result).toMatchObject({
      status: 'failed',
      partial: 'Half of it',
      error: {
        code: 'BUDGET_EXHAUSTED',
        message: 'It used 1,000 of 1,000 tokens',
        retryable: false,
      },
      steps: 2,
      toolLedger: [
        { toolName: 'ask_user', status: 'not_run' },
        { toolName: 'work', status: 'ok', output: 'worked' },
      ],
    });
    expect(wordsIn(run.prompts[1]!).at(-1)).toContain('last answer');
  });

  test('accepts an answer in progress as the result', async () => {
    const run = loneSubagent({}, steps({ text: 'All of it', delayMs: 100 }));
    await run.environment.settle();
    run.subagent.exhaust('Too many tokens');
    await run.environment.advance(100);
    expect(await run.result).toMatchObject({ status: 'completed', output: 'All of it', steps: 1 });
  });

  test('does not run the calls of the current step', async () => {
    const ran: string[] = [];
    const run = loneSubagent(
      { tools: { work: simpleTool(() => void ran.push('work')) } },
      steps({ ...calls(['work']), delayMs: 100 }, say('Nothing yet')),
    );
    await run.environment.settle();
    run.subagent.exhaust('Too many tokens');
    await run.environment.advance(100);
    expect(await run.result).toMatchObject({
      error: { code: 'BUDGET_EXHAUSTED' },
      partial: 'Nothing yet',
      toolLedger: [{ toolName: 'work', status: 'not_run' }],
    });
    expect(ran).toEqual([]);
  });

  test.each(['children', 'an answer', 'its parent'])('stops waiting for %s', async (whom) => {
    const tools = {
      child: simpleTool(never, { [DELEGATES]: true }),
      ...createChildSubagentToolset(),
    };
    const call = {
      children: calls(['child']),
      'an answer': calls(['ask_user', { question: 'Which?' }]),
      'its parent': calls(['request_input', { question: 'Which?' }]),
    }[whom];
    const run = loneSubagent({ tools, interactive: true }, steps(call!, say('Little')));
    await run.environment.settle();
    run.subagent.exhaust('Too many tokens');
    expect(await run.result).toMatchObject({
      error: { code: 'BUDGET_EXHAUSTED' },
      partial: 'Little',
      steps: 2,
    });
    const withdrawn = run.told.filter(([what]) => what.startsWith('withdraw'));
    expect(withdrawn).toHaveLength(whom === 'children' ? 0 : 1);
  });

  test('ends immediately if it is not granted a final step', async () => {
    const run = loneSubagent({ tools: { work: simpleTool(never) } }, steps(calls(['work'])));
    await run.environment.settle();
    run.subagent.exhaust('Too late', false);
    expect(await run.result).toMatchObject({
      status: 'failed',
      error: { code: 'BUDGET_EXHAUSTED', message: 'Too late' },
      steps: 1,
    });
  });
});
