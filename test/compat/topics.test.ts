// The topics of a session, and where their messages appear among its events.

import { describe, expect, test } from 'vitest';
import { topic, type SubagentTopics, type TopicSession } from '../../src/compat/index.ts';
import { calls, counting, simpleTool, steps } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';
import { siblingTalk } from '../support/siblings.ts';

function heard<T extends keyof SubagentTopics>(
  session: TopicSession,
  name: T,
): SubagentTopics[T][] {
  const messages: SubagentTopics[T][] = [];
  topic(session, name).subscribe((message) => messages.push(message));
  return messages;
}

describe('the topics', () => {
  test('report progress with the owner and its parents', { tags: ['R28'] }, async () => {
    const { subagent, next } = counting();
    const { session, start, type, environment } = textTalk({ subagents: { report: subagent } });
    const messages = heard(session, 'subagent.progress');
    await start();
    await type('use report');
    next();
    await environment.settle();
    expect(messages).toEqual(
      ['10 of 30', '20 of 30'].map((message) => ({
        taskId: 'sub_1',
        subagentSessionId: 'subagent/sub_1',
        primarySessionId: session.id,
        timestamp: expect.any(Number),
        message,
        percent: null,
      })),
    );
  });

  test('report a result with its question, work and batch', { tags: ['R29'] }, async () => {
    const { session, start, type, finish } = siblingTalk(['flight', 'hotel']);
    const messages = heard(session, 'subagent.result');
    await start();
    await type('use flight and hotel');
    await finish('flight', 'hotel');
    expect(messages[0]).toEqual({
      taskId: 'sub_1',
      subagentSessionId: 'subagent/sub_1',
      primarySessionId: session.id,
      timestamp: expect.any(Number),
      output: 'flight is found',
      isSuccess: true,
      error: null,
      status: 'completed',
      batchId: 'batch_call_1',
      consolidate: true,
      originatingUserRequest: 'use flight and hotel',
      description: 'Does flight',
      toolCalls: [],
      toolCallCount: 0,
    });
    expect(messages[1]).toMatchObject({ output: 'hotel is found', batchId: 'batch_call_1' });
  });

  test("report a failure's error and the calls made before it", { tags: ['R29'] }, async () => {
    const { session, start, type } = textTalk({
      consolidation: 'off',
      subagents: {
        report: {
          script: steps(calls(['look']), () => ({ error: new Error('no such quarter') })),
          config: { tools: { look: simpleTool(() => 'looked') } },
        },
      },
    });
    const messages = heard(session, 'subagent.result');
    await start();
    await type('use report');
    expect(messages).toEqual([
      expect.objectContaining({
        isSuccess: false,
        status: 'failed',
        error: expect.stringContaining('no such quarter'),
        toolCallCount: 1,
        toolCalls: [expect.objectContaining({ toolName: 'look', output: 'looked' })],
        batchId: null,
        consolidate: false,
      }),
    ]);
  });

  test('distinguish cancelled, timed out and failed runs', { tags: ['RW2'] }, async () => {
    const { session, start, type, environment, finish } = siblingTalk(['flight', 'hotel'], {
      each: { config: { timeout: 1000 } },
    });
    const messages = heard(session, 'subagent.result');
    await start();
    await type('use flight and hotel');
    session.subagents.cancel('sub_1', 'not any more');
    await environment.settle();
    await environment.advance(1000);
    await finish();
    expect(messages.map(({ taskId, status, isSuccess }) => [taskId, status, isSuccess])).toEqual([
      ['sub_1', 'cancelled', false],
      ['sub_2', 'timed_out', false],
    ]);
  });

  test('complete when the session ends', async () => {
    const { session, start, close } = textTalk();
    let isComplete = false;
    topic(session, 'subagent.result').subscribe({ complete: () => (isComplete = true) });
    await start();
    await close();
    expect(isComplete).toBe(true);
  });
});
