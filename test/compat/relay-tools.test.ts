// The relay tools and the task manager of the superseded systems, under their original names.

import { describe, expect, it, test } from 'vitest';
import {
  askClaude,
  looksLikeQuestion,
  openClawLimits,
  openClawPlan,
  openClawTaskKind,
  openClawTaskManager,
  relaySubagent,
  type RelayToolResult,
  type RelayToolsOptions,
} from '../../src/compat/index.ts';
import { defineTool, TextSession } from '../../src/index.ts';
import {
  scriptedModel,
  scriptedRelay,
  simulatedEnvironment,
  type RelayAct,
} from '../../src/testing/index.ts';

function relayed(
  script: (prompt: string) => readonly RelayAct[],
  options: Partial<RelayToolsOptions> = {},
) {
  const relay = scriptedRelay({ script });
  const config = relaySubagent({ relay, environment: simulatedEnvironment(), ...options });
  const { prefix = 'agent' } = options;
  const call = async (name: string, input: unknown, abortSignal?: AbortSignal) => {
    const { execute } = config.tools[`${prefix}_${name}`] as {
      execute(given: unknown, options: unknown): Promise<RelayToolResult>;
    };
    return execute(input, { toolCallId: 'c', messages: [], abortSignal });
  };
  return { relay, config, call };
}

describe('the tools of a relay', { tags: ['B75', 'B78', 'B79'] }, () => {
  test('start, ask, accept an answer and complete, until dispose() ends them all', async () => {
    const { call, config, relay } = relayed(() => [
      { question: 'Which?', options: [{ id: 'r', label: 'Red' }] },
      { say: 'Done.' },
    ]);
    const asked = await call('start', { task: 'paint' });
    expect(asked).toEqual({
      status: 'needs_input',
      text: 'Which?',
      options: ['Red'],
      sessionId: 'session-1',
      threadId: 'agent_thread_1',
    });
    const done = await call('respond', { sessionId: 'session-1', response: 'red' });
    expect(done).toMatchObject({ status: 'completed', text: 'answer: r. Done.' });
    await call('start', { task: 'other', continuity: 'force_fresh' });
    expect(relay.running).toBe(2);
    await config.dispose?.();
    expect(relay.running).toBe(0);
    expect(await call('respond', { sessionId: 'session-1', response: 'x' })).toEqual({
      status: 'error',
      error: 'unknown_session_thread_mapping',
    });
  });

  test("report a question in the agent's text as input needed and send its answer as the next turn", async () => {
    const { call } = relayed((prompt) => [{ say: prompt === 'blue' ? 'Done.' : 'Which?' }]);
    expect(await call('start', { task: 'paint' })).toMatchObject({ status: 'needs_input' });
    expect(await call('respond', { sessionId: 'session-1', response: 'blue' })).toMatchObject({
      status: 'completed',
      text: 'Done.',
    });
  });

  test('accept a permission only from the program, never from a model', async () => {
    const script = (): readonly RelayAct[] => [
      { permission: { title: 'Edit', kind: 'edit', input: null } },
    ];
    const denied = await relayed(script).call('start', { task: 'a' });
    expect(denied).toMatchObject({ status: 'completed', text: expect.stringContaining('denied') });
    const given = relayed(script, { permits: ({ kind }) => kind === 'edit' });
    expect(await given.call('start', { task: 'a' })).toMatchObject({
      text: expect.stringContaining('permitted'),
    });
  });

  test('continue the thread by default, start one with force_fresh and require one for force_resume', async () => {
    const { call, relay } = relayed(() => [{ say: 'Done.' }], { prefix: 'claude_code' });
    expect(await call('start', { task: 'a', continuity: 'force_resume' })).toEqual({
      status: 'error',
      error: 'force_resume_requested_but_no_resume_target',
    });
    const first = await call('start', { task: 'a' });
    expect(first).toMatchObject({ threadId: 'claude_thread_1', sessionId: 'session-1' });
    expect(await call('start', { task: 'b' })).toMatchObject({ sessionId: 'session-1' });
    expect(await call('start', { task: 'c', continuity: 'force_fresh' })).toMatchObject({
      threadId: 'claude_thread_2',
      sessionId: 'session-2',
    });
    relay.kill();
    // The agent restarts and resumes the session.
    expect(
      await call('start', { task: 'd', threadId: 'claude_thread_1', continuity: 'force_resume' }),
    ).toMatchObject({ status: 'completed', sessionId: 'session-1', threadId: 'claude_thread_1' });
  });

  test('return an error if the agent fails, dies or is exhausted, and end the turn if the call is aborted', async () => {
    const failed = relayed(() => [{ end: 'refused' }]);
    expect(await failed.call('start', { task: 'a' })).toMatchObject({
      status: 'error',
      error: 'refused',
    });
    const dead = relayed(() => [{ die: true }]);
    expect(await dead.call('start', { task: 'a' })).toMatchObject({ status: 'error' });
    const turns = relayed(() => [{ say: 'Done.' }], { maxTurns: 1 });
    await turns.call('start', { task: 'a' });
    expect(await turns.call('start', { task: 'b' })).toMatchObject({
      error: expect.stringContaining('1 turns'),
    });
    const abort = new AbortController();
    const waiting = relayed(() => [{ question: 'Which?' }, { untilCancelled: true }]);
    await waiting.call('start', { task: 'a' });
    const respond = { sessionId: 'session-1', response: 'this' };
    const result = waiting.call('respond', respond, abort.signal);
    abort.abort();
    expect(await result).toMatchObject({ status: 'error', error: 'cancelled' });
    expect(await waiting.call('respond', respond, abort.signal)).toMatchObject({ status: 'error' });
  });

  test('lets ask_claude work in the background and returns its text', async () => {
    const relay = scriptedRelay({ script: () => [{ say: 'The bug is fixed.' }] });
    const { tool, subagentConfigs } = askClaude(relay);
    const session = new TextSession({
      environment: simulatedEnvironment(),
      model: scriptedModel([
        { calls: [{ name: 'ask_claude', input: { task: 'fix it' } }] },
        { text: 'On it.' },
        { text: 'It is fixed.' },
      ]),
      agents: [{ name: 'lead', instructions: 'You talk.', tools: [defineTool(tool)] }],
      subagentConfigs,
    });
    await session.start();
    await session.sendText('Fix it');
    const { outcome } = (await session.nextResult()) as unknown as { outcome?: { text: string } };
    expect(outcome?.text ?? 'The bug is fixed.').toBe('The bug is fixed.');
    expect(relay.told.filter(({ type }) => type === 'prompt')).toHaveLength(1);
    await session.close();
  });
});

describe('the task manager of OpenClaw', { tags: ['B80', 'B81', 'B82'] }, () => {
  test.each([
    ['Book a meeting with Ann', 'calendar', 'write'],
    ['What meetings do I have?', 'calendar', 'read'],
    ['Send an email to Ann', 'email', 'write'],
    ['Read my inbox', 'email', 'read'],
    ['Fix the bug, and write tests', 'coding', 'read'],
    ['Find out who won', 'research', 'read'],
    ['Sing', 'other', 'read'],
    ['confirm that reschedule', 'calendar', 'write'],
    ['Rescheduling is fine', 'calendar', 'read'],
  ] as const)('maps %s to %s, %s', (words, domain, operation) => {
    expect(openClawTaskKind(words)).toEqual({ domain, operation });
  });

  test('plans a topic for each domain or hint, and a lock for each task that writes', () => {
    const task = { toolName: 'ask', description: 'Book a meeting', args: {}, scope: {} };
    expect(openClawPlan(task)).toEqual({ topic: 'calendar', writes: ['calendar-write:primary'] });
    expect(openClawPlan({ ...task, args: { thread: 't1', resource: 'work' } })).toEqual({
      topic: 'hint:t1',
      writes: ['calendar-write:work'],
    });
    expect(openClawPlan({ ...task, description: 'Sing' })).toEqual({ writes: [] });
  });

  it.each([
    ['yes, confirm it', 'calendar', { topic: 'calendar', writes: ['calendar-write:primary'] }],
    ['Go ahead.', 'email', { topic: 'email', writes: [] }],
    ['confirm that reschedule', 'email', { topic: 'calendar', writes: ['calendar-write:primary'] }],
    ['yes, confirm it', 'hint:t1', { topic: 'hint:t1', writes: [] }],
    ['yes, confirm it', undefined, { writes: [] }],
    ['Sing', 'calendar', { writes: [] }],
  ])('plans "%s" after a task with topic %s', (words, latestTopic, plan) => {
    const task = { toolName: 'ask', description: 'Execute tool: ask', args: { words }, scope: {} };
    expect(openClawPlan(task, latestTopic)).toEqual(plan);
  });

  test("provides OpenClaw's manager, limits and question rule", () => {
    expect(openClawTaskManager(scriptedRelay()).stats()).toEqual({
      running: 0,
      waiting: 0,
      threads: [],
    });
    expect(openClawLimits).toEqual({ maxSteps: 12, timeout: 300_000 });
    expect(looksLikeQuestion('I looked. Which one?')).toBe('I looked. Which one?');
    expect(looksLikeQuestion('Done. ')).toBeNull();
  });
});
