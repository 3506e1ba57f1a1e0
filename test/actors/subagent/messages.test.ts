// Messages to a running subagent: when each one is read, and the one receipt that it gets.

import { describe, expect, test } from 'vitest';
import { DELEGATES } from '../../../src/actors/model/tool-flags.ts';
import { loneSubagent, wordsIn } from '../../support/lone-subagent.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../../support/subagent-runs.ts';

/** A tool that works until the test releases it. */
function heldTool() {
  let release: (value: unknown) => void = () => {};
  let signal: AbortSignal | undefined;
  const work = simpleTool(({ abortSignal }) => {
    signal = abortSignal;
    return new Promise((resolve) => {
      release = resolve;
    });
  });
  return { work, release: (value: unknown) => release(value), signal: () => signal };
}

describe('a steering message', () => {
  test('reaches the model in the next step', { tags: ['RW14'] }, async () => {
    const { work, release } = heldTool();
    const run = loneSubagent({ tools: { work } }, steps(calls(['work']), say('done')));
    await run.environment.settle();
    run.subagent.message('m1', 'Only the cheap ones', 'steer');
    await run.environment.settle();
    expect(run.receipts()).toEqual([]);
    release('worked');
    expect(await run.result).toMatchObject({ status: 'completed', output: 'done' });
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'Only the cheap ones']);
    expect(resultsIn({ ...run.prompts[1]!, prompt: run.prompts[1]!.prompt.slice(0, -1) })).toEqual([
      ['work', 'text', 'worked'],
    ]);
  });

  test('prevents the model from finishing before it has read the message', async () => {
    const script = steps({ text: 'done', delayMs: 100 }, say('done again'));
    const run = loneSubagent({}, script);
    await run.environment.settle();
    run.subagent.message('m1', 'One more thing', 'steer');
    await run.environment.advance(100);
    expect(await run.result).toMatchObject({ output: 'done again', steps: 2 });
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
  });
});

describe('a queued message', () => {
  test('reaches the model only when the model would otherwise have finished', async () => {
    const { work, release } = heldTool();
    const run = loneSubagent(
      { tools: { work } },
      steps(calls(['work']), say('first done'), say('second done')),
    );
    await run.environment.settle();
    run.subagent.message('m1', 'Then the other one', 'queue');
    release('worked');
    expect(await run.result).toMatchObject({ output: 'second done', steps: 3 });
    expect(run.prompts.map((prompt) => wordsIn(prompt).length)).toEqual([1, 1, 2]);
    expect(run.receipts()).toEqual([['applied', ['m1'], 3]]);
  });

  test('stays queued even if it arrives between two steps while its subagent is waiting for a slot', async () => {
    const run = loneSubagent(
      { interactive: true },
      steps(calls(['ask_user', { question: 'Which?' }]), say('first done'), say('second done')),
    );
    await run.environment.settle();
    run.holdSlots();
    const answer = { userResponse: 'Blue' };
    run.subagent.receive({ type: 'question.answered', requestId: 'sub_1.q1', answer });
    await run.environment.settle();
    expect(run.subagent.state).toBe('ready');
    run.subagent.message('m1', 'Then the other one', 'queue');
    run.grantSlot();
    expect(await run.result).toMatchObject({ output: 'second done', steps: 3 });
    expect(run.receipts()).toEqual([['applied', ['m1'], 3]]);
  });

  test('reaches the model immediately when it arrives before the first step', async () => {
    const run = loneSubagent({}, steps(say('done')));
    run.subagent.message('m1', 'In French', 'queue');
    expect(await run.result).toMatchObject({ steps: 1 });
    expect(wordsIn(run.prompts[0]!)).toEqual(['Do it', 'In French']);
    expect(run.receipts()).toEqual([['applied', ['m1'], 1]]);
  });

  test('fails when the subagent has no step left to read it', async () => {
    const script = steps({ text: 'done', delayMs: 100 });
    const run = loneSubagent({ maxSteps: 1 }, script);
    await run.environment.settle();
    run.subagent.message('m1', 'One more thing', 'queue');
    await run.environment.advance(100);
    await run.result;
    expect(run.receipts()).toEqual([
      ['refused', ['m1'], 'It ended before it could read it: completed'],
    ]);
  });
});

describe('an interrupting message', () => {
  test('aborts the model call, joins the next call, and counts as a step', async () => {
    const script = steps({ text: 'never said', delayMs: 60_000 }, say('done'));
    const run = loneSubagent({}, script);
    await run.environment.settle();
    run.subagent.message('m1', 'Stop, another way', 'interrupt');
    expect(await run.result).toMatchObject({ output: 'done', steps: 2 });
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'Stop, another way']);
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
    expect(run.environment.pendingTimers).toBe(0);
  });

  test('aborts the tools of the step, and settles them as interrupted', async () => {
    const { work, signal } = heldTool();
    const run = loneSubagent(
      { tools: { work, quick: simpleTool(() => 'quick') }, interactive: true },
      steps(calls(['work'], ['quick'], ['ask_user', { question: 'Which?' }]), ({ results }) =>
        say(JSON.stringify(results)),
      ),
    );
    await run.environment.settle();
    run.subagent.message('m1', 'Forget it', 'interrupt');
    const { output, toolLedger } = await run.result;
    expect(JSON.parse(output as string)).toEqual([]);
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'Forget it']);
    const error = { error: 'interrupted by a message' };
    expect(run.prompts[1]!.prompt.find(({ role }) => role === 'tool')?.content).toMatchObject([
      {
        toolName: 'work',
        output: { value: { error: expect.stringContaining('whether it was done is not known') } },
      },
      { toolName: 'quick', output: { type: 'text', value: 'quick' } },
      { toolName: 'ask_user', output: { type: 'json', value: error } },
    ]);
    expect(signal()?.aborted).toBe(true);
    expect(toolLedger.map(({ toolName, status }) => [toolName, status])).toEqual([
      ['quick', 'ok'],
      ['work', 'in_flight'],
      ['ask_user', 'not_run'],
    ]);
  });

  test('withdraws the question that the subagent is waiting for, even if the subagent is parked', async () => {
    const run = loneSubagent(
      { interactive: true },
      steps(calls(['ask_user', { question: 'Which?' }]), say('done')),
    );
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_input');
    run.subagent.message('m1', 'Blue', 'interrupt');
    expect(await run.result).toMatchObject({
      status: 'completed',
      toolLedger: [{ toolName: 'ask_user', status: 'unanswered' }],
    });
    expect(run.told.filter(([what]) => what === 'ask' || what === 'withdraw')).toEqual([
      ['ask', 'sub_1.q1'],
      ['withdraw', 'sub_1.q1'],
    ]);
  });

  test('stops the wait for children', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const wait = simpleTool(
      ({ abortSignal }) => {
        signals.push(abortSignal);
        return never();
      },
      { [DELEGATES]: true },
    );
    const run = loneSubagent({ tools: { wait } }, steps(calls(['wait']), say('done')));
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_children');
    run.subagent.message('m1', 'Go on without them', 'interrupt');
    expect(await run.result).toMatchObject({ output: 'done', steps: 2 });
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  });

  test('cancels approved calls that are waiting for a slot', async () => {
    let payments = 0;
    const pay = simpleTool(() => (payments += 1), { needsApproval: true });
    const run = loneSubagent({ tools: { pay } }, steps(calls(['pay']), say('done')));
    await run.environment.settle();
    run.holdSlots();
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      approved: true,
      answer: { userResponse: 'Yes', approved: true },
    });
    await run.environment.settle();
    expect(run.subagent.state).toBe('ready');
    run.subagent.message('m1', 'Stop, the wrong account', 'interrupt');
    run.grantSlot();
    expect(await run.result).toMatchObject({
      output: 'done',
      steps: 2,
      toolLedger: [{ toolName: 'pay', status: 'not_run', approval: 'given' }],
    });
    expect(payments).toBe(0);
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'Stop, the wrong account']);
  });

  test('behaves like a steering message in the last step', async () => {
    const run = loneSubagent({ maxSteps: 1 }, steps({ text: 'done', delayMs: 100 }));
    await run.environment.settle();
    run.subagent.message('m1', 'Stop', 'interrupt');
    await run.environment.advance(100);
    expect(await run.result).toMatchObject({ status: 'completed', output: 'done' });
    expect(run.receipts()).toMatchObject([['refused', ['m1'], expect.any(String)]]);
  });
});

describe('SUBAGENT-5: a message', () => {
  test('fails when its subagent has ended', { tags: ['MW6'] }, async () => {
    const run = loneSubagent({}, steps(say('done')));
    await run.result;
    run.subagent.message('m1', 'Hello?', 'steer');
    expect(run.receipts()).toEqual([['refused', ['m1'], 'It has ended: completed']]);
  });

  test('fails when its subagent is cancelled or killed', async () => {
    for (const how of ['cancel', 'kill'] as const) {
      const run = loneSubagent({}, steps({ text: 'never said', delayMs: 60_000 }));
      await run.environment.settle();
      run.subagent.message('m1', 'Hello', 'steer');
      run.subagent.message('m2', 'Still in the mailbox', 'queue');
      if (how === 'kill') run.subagent.kill('closing');
      else run.subagent.cancel('closing');
      await run.result;
      expect(run.receipts()).toMatchObject([['refused', ['m1', 'm2'], expect.any(String)]]);
    }
  });

  test('counts once even if it arrives twice with the same id', async () => {
    const { work, release } = heldTool();
    const run = loneSubagent({ tools: { work } }, steps(calls(['work']), say('done')));
    await run.environment.settle();
    run.subagent.message('m1', 'Twice', 'steer');
    run.subagent.message('m1', 'Twice', 'steer');
    release('worked');
    await run.result;
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'Twice']);
  });

  test('P7: fails when 100 messages are unread', async () => {
    const run = loneSubagent({}, steps({ text: 'never said', delayMs: 60_000 }));
    await run.environment.settle();
    for (let index = 1; index <= 101; index += 1)
      run.subagent.message(`m${index}`, 'Hello', 'queue');
    expect(run.receipts()).toEqual([['refused', ['m101'], '100 messages are unread already']]);
  });

  test('does not wake a subagent that is parked at a question', async () => {
    const run = loneSubagent(
      { interactive: true },
      steps(calls(['ask_user', { question: 'Which?' }]), say('done')),
    );
    await run.environment.settle();
    run.subagent.message('m1', 'It is urgent', 'steer');
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_input');
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      answer: { userResponse: 'Blue' },
    });
    await run.result;
    expect(wordsIn(run.prompts[1]!)).toEqual(['Do it', 'It is urgent']);
    expect(run.receipts()).toEqual([['applied', ['m1'], 2]]);
  });
});
