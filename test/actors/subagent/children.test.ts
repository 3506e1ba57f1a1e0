// Calls that wait for other subagents, and what tools know about their caller.

import { describe, expect, test } from 'vitest';
import { callerOf } from '../../../src/actors/model/caller.ts';
import { DELEGATES } from '../../../src/actors/model/tool-flags.ts';
import { loneSubagent, service } from '../../support/lone-subagent.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../../support/subagent-runs.ts';

/** Calls that wait until the test releases them, in the order in which they started. */
function children() {
  const waiting: ((value: unknown) => void)[] = [];
  const child = simpleTool(() => new Promise((resolve) => waiting.push(resolve)), {
    [DELEGATES]: true,
  });
  return { child, waiting };
}

describe('SUBAGENT-MACHINE-3 P7: a call that waits for other subagents', () => {
  test('starts after the ordinary calls, does not hold a slot, and waits alongside questions', async () => {
    const { child, waiting } = children();
    const order: string[] = [];
    const look = simpleTool(() => order.push(`looked with ${waiting.length} waiting`));
    const run = loneSubagent(
      { tools: { child, look }, interactive: true },
      steps(
        calls(
          ['ask_user', { question: 'Which?' }],
          ['child', { no: 1 }],
          ['look'],
          ['child', { no: 2 }],
        ),
        say('done'),
      ),
    );
    await run.environment.settle();
    expect(order).toEqual(['looked with 0 waiting']);
    expect(run.subagent.state).toBe('waiting_for_children');
    expect(waiting).toHaveLength(2);
    expect(run.told).toEqual([['requestSlot'], ['releaseSlot']]);
    // The run's timeout is paused.
    await run.environment.advance(3_600_000);
    waiting[1]?.('two');
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_children');
    waiting[0]?.('one');
    await run.environment.settle();
    // The subagent's question does not need a slot either.
    expect(run.told.slice(2)).toEqual([['ask', 'sub_1.q1']]);
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      answer: { userResponse: 'Blue' },
    });
    expect(await run.result).toMatchObject({ status: 'completed', steps: 2 });
    expect(run.states).toEqual([
      'ready',
      'running',
      'waiting_for_children',
      'waiting_for_input',
      'ready',
      'running',
      'completed',
    ]);
    expect(resultsIn(run.prompts[1]!).map(([name, , value]) => [name, value])).toEqual([
      ['ask_user', { userResponse: 'Blue' }],
      ['child', 'one'],
      ['look', 1],
      ['child', 'two'],
    ]);
  });

  test('SUBAGENT-MACHINE-8: lets its subagent continue once a slot has been granted again', async () => {
    const { child, waiting } = children();
    const run = loneSubagent({ tools: { child } }, steps(calls(['child']), say('done')));
    await run.environment.settle();
    run.holdSlots();
    waiting[0]?.('one');
    await run.environment.settle();
    expect(run.subagent.state).toBe('ready');
    expect(run.prompts).toHaveLength(1);
    run.grantSlot();
    expect(await run.result).toMatchObject({ status: 'completed', output: 'done' });
  });

  test('ignores the time limit of ordinary tools, and ends with its subagent', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const child = simpleTool(
      ({ abortSignal }) => {
        signals.push(abortSignal);
        return never();
      },
      { [DELEGATES]: true },
    );
    const run = loneSubagent({ tools: { child }, toolTimeout: 1000 }, steps(calls(['child'])));
    await run.environment.advance(5000);
    expect(run.subagent.state).toBe('waiting_for_children');
    run.subagent.cancel('enough');
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  });

  test('SUBAGENT-MACHINE-5: starts its subagents only after its approval', async () => {
    const { child, waiting } = children();
    const needy = { ...(child as object), needsApproval: true };
    const run = loneSubagent({ tools: { needy } }, steps(calls(['needy']), say('done')));
    await run.environment.settle();
    expect(waiting).toHaveLength(0);
    run.subagent.receive({
      type: 'question.answered',
      requestId: 'sub_1.q1',
      approved: true,
      answer: { userResponse: 'Yes', approved: true },
    });
    await run.environment.settle();
    expect(run.subagent.state).toBe('waiting_for_children');
    waiting[0]?.('one');
    expect(await run.result).toMatchObject({ output: 'done' });
  });
});

describe('a tool', () => {
  test("receives its caller in addition to the author's context", async () => {
    const seen: unknown[] = [];
    const look = simpleTool((options) => void seen.push(options));
    const bare = simpleTool((options) => void seen.push(options));
    const run = loneSubagent(
      { tools: { look, bare }, toolsContext: { look: { tenant: 'acme' } } },
      steps(calls(['look', {}, 'c1'], ['bare', {}, 'c2']), say('done')),
    );
    await run.result;
    const [first, second] = seen as { context: object; idempotencyKey: string }[];
    expect(first?.context).toMatchObject({ tenant: 'acme' });
    expect(callerOf(first)).toEqual({
      sessionId: 'test',
      subagentId: 'sub_1',
      parentId: 'parent',
      depth: 2,
      requester: null,
      approver: null,
      idempotencyKey: 'sub_1:1:c1',
      service,
    });
    expect(callerOf(second)?.idempotencyKey).toBe('sub_1:1:c2');
    expect(Object.keys(second?.context ?? {})).toEqual(['offstage']);
  });

  test("has no caller outside a subagent's call", () => {
    expect(callerOf(undefined)).toBeNull();
    expect(callerOf({ context: { tenant: 'acme' } })).toBeNull();
    expect(callerOf({ context: null, experimental_context: 'words' })).toBeNull();
  });
});
