// The parent's and the child's tools with real subagents, outside any session.

import { describe, expect, test } from 'vitest';
import { createParentSubagentToolset } from '../../../src/actors/subagents/toolsets/parent-toolset.ts';
import { rockbotToolset } from '../../../src/compat/rockbot-toolset.ts';
import { PROGRESS_RING } from '../../../src/actors/subagents/subagent-tree.ts';
import { THE_LEAD } from '../../../src/actors/contracts/service-types.ts';
import type { ScriptedPrompt } from '../../../src/testing/index.ts';
import { simpleTool } from '../../support/subagent-runs.ts';
import { call, program } from '../../support/agents-at-work.ts';

describe('parents and children', () => {
  test(
    'lets a parent spawn a child, read its progress, and get its result with a summary',
    { tags: ['M1', 'M5', 'M8', 'M10', 'M20'] },
    async () => {
      const { plan, service, errors } = program({
        planner: [
          call('spawn_subagent', { task: 'Count the files' }),
          call('await_subagent', { subagentId: 'sub_1' }),
          call('check_subagent', { subagentId: 'sub_1' }),
          { text: 'Done.' },
        ],
        subagent: [
          call('report_progress', { update: 'half', percentComplete: 50 }),
          { text: 'I think that I am done.' },
          call('complete_task', { result: 'There are 3', summary: 'Three.' }),
        ],
      });
      const { text, outputs } = await plan(createParentSubagentToolset({ service }));
      expect(text).toBe('Done.');
      expect(outputs).toEqual([
        { subagentId: 'sub_1', status: 'spawning' },
        { subagentId: 'sub_1', status: 'completed', result: 'There are 3', summary: 'Three.' },
        expect.objectContaining({ progress: ['[50%] half'], percentComplete: 50 }),
      ]);
      expect(errors).toEqual([]);
    },
  );

  test(
    'wakes a waiting parent when the child asks a question, and lets the parent answer',
    { tags: ['M9', 'M4', 'MW1'] },
    async () => {
      const answers: unknown[] = [];
      const { plan, service } = program({
        planner: [
          call('spawn_subagent', { task: 'Paint it' }),
          call('await_subagent', { subagentId: 'sub_1' }),
          ({ results }) => {
            const { pendingRequest } = results[0] as { pendingRequest: { messageId: string } };
            const inResponseTo = pendingRequest.messageId;
            return call('send_to_subagent', { subagentId: 'sub_1', content: 'Blue', inResponseTo });
          },
          call('await_subagent', { subagentId: 'sub_1' }),
          { text: 'Painted.' },
        ],
        subagent: [
          call('request_input', { question: 'Which colour?', context: 'I have two' }),
          ({ results }) => {
            answers.push(...results);
            return call('complete_task', { result: 'It is blue' });
          },
        ],
      });
      const { outputs } = await plan(createParentSubagentToolset({ service }));
      expect(outputs[1]).toMatchObject({
        status: 'waiting_input',
        pendingRequest: { question: 'Which colour?', context: 'I have two' },
      });
      expect(outputs[2]).toMatchObject({ sent: true, resolvedPending: true });
      expect(outputs[3]).toMatchObject({ status: 'completed', result: 'It is blue' });
      expect(answers).toEqual([{ responded: true, response: 'Blue', timedOut: false }]);
    },
  );

  test(
    'lets a child continue if its request is not answered in time',
    { tags: ['M9', 'MW4'] },
    async () => {
      const answers: unknown[] = [];
      const { plan, service, environment } = program({
        planner: [call('spawn_subagent', { task: 'Paint it' }), { text: 'Off it goes.' }],
        subagent: [
          call('request_input', { question: 'Which?', timeoutMs: 5000 }),
          ({ results }) => {
            answers.push(...results);
            return call('complete_task', { result: 'Any' });
          },
        ],
      });
      await plan(createParentSubagentToolset({ service }));
      expect(await service.await(['sub_1'], THE_LEAD)).toMatchObject({ why: 'asked' });
      await environment.advance(4999);
      expect(answers).toEqual([]);
      await environment.advance(1);
      expect(answers).toEqual([{ responded: false, timedOut: true }]);
      expect(await service.await(['sub_1'], THE_LEAD)).toMatchObject({
        why: 'ended',
        reports: [{ result: 'Any' }],
      });
    },
  );

  test('refuses a result that does not match its schema', { tags: ['M1'] }, async () => {
    const responseSchema = {
      type: 'object',
      properties: { count: { type: 'integer' } },
      required: ['count'],
    };
    const { plan, service } = program({
      planner: [
        call('spawn_subagent', { task: 'Count', responseSchema }),
        call('await_subagent', { subagentId: 'sub_1' }),
        { text: 'Counted.' },
      ],
      subagent: [
        call('complete_task', { result: { count: 'three' } }),
        call('complete_task', { result: { count: 3 } }),
      ],
    });
    const { outputs } = await plan(createParentSubagentToolset({ service }));
    expect(outputs[1]).toMatchObject({ status: 'completed', result: { count: 3 } });
  });

  test(
    'shows a forked subagent the conversation, but a fresh subagent only the task',
    { tags: ['M1', 'M2'] },
    async () => {
      const prompts: ScriptedPrompt[] = [];
      const { plan, service } = program({
        planner: [
          call('spawn_subagent', { task: 'A' }),
          call('spawn_subagent', { task: 'B', contextMode: 'fresh' }),
          { text: 'Done.' },
        ],
        subagent: (prompt) => {
          prompts.push(prompt);
          return call('complete_task', { result: 'x' });
        },
      });
      await plan(createParentSubagentToolset({ service }));
      await service.await(['sub_1', 'sub_2'], THE_LEAD);
      const roles = prompts.map(({ prompt }) => prompt.map(({ role }) => role));
      // The first fork was made in the planner's first step, when the planner had read one message.
      expect(roles).toEqual([
        ['system', 'user', 'user'],
        ['system', 'user'],
      ]);
    },
  );

  test("P8: grants a child only those of its spawner's tools that are not denied", async () => {
    const seen: string[][] = [];
    const tools = { read: simpleTool(() => 'r'), write: simpleTool(() => 'w') };
    const { plan, service } = program(
      {
        planner: [
          call('spawn_subagent', { task: 'A' }),
          call('spawn_subagent', { task: 'B', tools: ['read'] }),
          call('spawn_subagent', { task: 'C', tools: [] }),
          call('spawn_subagent', { task: 'D', disallowedTools: ['write'] }),
          call('spawn_subagent', { task: 'E', tools: ['delete'] }),
          { text: 'Done.' },
        ],
        subagent: ({ toolNames }) => {
          seen.push(toolNames.filter((name) => name in tools));
          return call('complete_task', { result: 'x' });
        },
      },
      { tools },
    );
    const { outputs } = await plan(createParentSubagentToolset({ service }));
    await service.await(['sub_1', 'sub_2', 'sub_3', 'sub_4'], THE_LEAD);
    expect(seen.map((names) => names.toSorted())).toEqual([
      ['read', 'write'],
      ['read'],
      [],
      ['read'],
    ]);
    expect(outputs[4]).toMatchObject({ error: { code: 'TOOL_NOT_ALLOWED' } });
  });

  test(
    'lets children spawn children up to a depth limit, and kills them with the parent',
    { tags: ['M23', 'M26', 'HW5', 'MW7'] },
    async () => {
      const deeper: unknown[] = [];
      const parentTools: Record<string, object> = {};
      const { plan, service } = program(
        {
          planner: [
            call('spawn_subagent', { task: 'level 1', contextMode: 'fresh' }),
            call('await_subagent', { subagentId: 'sub_1', timeoutMs: 1000 }),
            call('kill_subagent', { subagentId: 'sub_1' }),
            { text: 'Done.' },
          ],
          subagent: ({ user, results }) => {
            deeper.push(...results);
            if (results.length > 0) return { text: 'waiting', delayMs: 1_000_000 };
            const level = Number(/level (\d)/.exec(user)?.[1]);
            const input = { task: `level ${level + 1}`, contextMode: 'fresh' };
            return call('spawn_subagent', input);
          },
        },
        { tools: parentTools },
      );
      Object.assign(parentTools, createParentSubagentToolset({ service }));
      const { outputs } = await plan(parentTools);
      expect(deeper).toMatchObject([
        { subagentId: 'sub_2' },
        { subagentId: 'sub_3' },
        { error: { code: 'DEPTH_EXCEEDED' } },
      ]);
      expect(outputs[1]).toMatchObject({ status: 'timeout' });
      expect(outputs[2]).toEqual({ killed: true });
      const ended = service.list(THE_LEAD, { includeEnded: true });
      expect(ended.map(({ depth, state }) => [depth, state])).toEqual([
        [1, 'cancelled'],
        [2, 'cancelled'],
        [3, 'cancelled'],
      ]);
    },
  );

  test('P7: does not hold a run slot while a parent is waiting', async () => {
    const parentTools: Record<string, object> = {};
    const { plan, service } = program(
      {
        planner: [
          call('spawn_subagent', { task: 'outer', contextMode: 'fresh' }),
          call('await_subagent', { subagentId: 'sub_1' }),
          { text: 'Done.' },
        ],
        subagent: ({ user, results }) => {
          if (user.includes('inner')) return call('complete_task', { result: 'inner' });
          const [last] = results as [{ subagentId: string; result?: string } | undefined];
          if (!last) return call('spawn_subagent', { task: 'inner', contextMode: 'fresh' });
          if (last.result) return call('complete_task', { result: `outer of ${last.result}` });
          return call('await_subagent', { subagentId: last.subagentId });
        },
      },
      { tools: parentTools, constraints: { maxConcurrentPerSession: 1 } },
    );
    Object.assign(parentTools, createParentSubagentToolset({ service }));
    const { outputs } = await plan(parentTools);
    expect(outputs[1]).toMatchObject({ status: 'completed', result: 'outer of inner' });
  });
});

describe('a child', () => {
  const spawned = [call('spawn_subagent', { task: 'Work' }), { text: 'Off it goes.' }];

  test(
    'has only one open request at a time, and completes after the last request',
    { tags: ['M14', 'M21'] },
    async () => {
      const { plan, service, environment } = program({
        planner: spawned,
        subagent: [
          {
            calls: [
              { name: 'complete_task', input: { result: 'done' } },
              { name: 'request_input', input: { question: 'First?' } },
              { name: 'request_input', input: { question: 'Second?' } },
            ],
          },
        ],
      });
      await plan(createParentSubagentToolset({ service }));
      for (const question of ['First?', 'Second?']) {
        const waited = await service.await(['sub_1'], THE_LEAD);
        const request = waited.ok ? waited.reports[0]?.pendingRequest : null;
        expect(request?.question).toBe(question);
        const answer = { content: 'Yes', inResponseTo: request?.requestId ?? '' };
        expect(service.send('sub_1', answer, THE_LEAD)).toMatchObject({ resolvedPending: true });
        await environment.advance(100);
      }
      expect(await service.await(['sub_1'], THE_LEAD)).toMatchObject({
        why: 'ended',
        reports: [{ state: 'completed', result: 'done' }],
      });
    },
  );

  test('completes with the first of two results', { tags: ['M15'] }, async () => {
    const { plan, service } = program({
      planner: spawned,
      subagent: [
        {
          calls: ['first', 'second'].map((result) => ({
            name: 'complete_task',
            input: { result },
          })),
        },
      ],
    });
    await plan(createParentSubagentToolset({ service }));
    expect(await service.await(['sub_1'], THE_LEAD)).toMatchObject({
      reports: [{ result: 'first' }],
    });
    expect(service.cancel('sub_1', THE_LEAD)).toBe(false);
  });

  test('keeps the latest 50 notes', { tags: ['M19'] }, async () => {
    const updates = Array.from({ length: 60 }, (_, index) => `note ${index + 1}`);
    const { plan, service } = program({
      planner: spawned,
      subagent: [
        { calls: updates.map((update) => ({ name: 'report_progress', input: { update } })) },
        call('complete_task', { result: 'done' }),
      ],
    });
    await plan(createParentSubagentToolset({ service }));
    await service.await(['sub_1'], THE_LEAD);
    const checked = service.check('sub_1', THE_LEAD);
    const progress = checked.ok ? checked.report.progress.map(({ update }) => update) : [];
    expect(PROGRESS_RING).toBe(50);
    expect(progress).toEqual(updates.slice(-PROGRESS_RING));
  });

  test('completes with its first answer in `turn` mode', { tags: ['M20'] }, async () => {
    const { plan, service } = program({ planner: spawned, subagent: [{ text: 'Here you are.' }] });
    await plan(createParentSubagentToolset({ service, agent: { completion: 'turn' } }));
    expect(await service.await(['sub_1'], THE_LEAD)).toMatchObject({
      reports: [{ state: 'completed', result: 'Here you are.' }],
    });
  });

  test(
    'reads an interrupting message immediately, and the receipt names the step',
    { tags: ['H16'] },
    async () => {
      const users: string[] = [];
      const { plan, service } = program({
        planner: [
          call('spawn_subagent', { task: 'Walk' }),
          call('await_subagent', { subagentId: 'sub_1', timeoutMs: 1000 }),
          call('send_to_subagent', { subagentId: 'sub_1', content: 'Run!', mode: 'interrupt' }),
          call('await_subagent', { subagentId: 'sub_1' }),
          { text: 'Done.' },
        ],
        subagent: ({ user, turn }) => {
          users.push(user);
          return turn === 1
            ? { text: 'Walking', delayMs: 1_000_000 }
            : call('complete_task', { result: 'Ran' });
        },
      });
      const { outputs } = await plan(createParentSubagentToolset({ service }));
      expect(users[1]).toContain('Run!');
      expect(outputs[3]).toMatchObject({
        status: 'completed',
        result: 'Ran',
        messages: [{ applied: true, step: 2 }],
      });
    },
  );
});

test(
  "supports RockBot's tool names on one service",
  { tags: ['R1', 'R4', 'R5', 'R9'] },
  async () => {
    const { plan, service, environment } = program({
      planner: [
        call('spawn_subagent', { description: 'Research X', timeout_minutes: 1 }),
        call('list_subagents'),
        call('cancel_subagent', { task_id: 'sub_1' }),
        { text: 'Done.' },
      ],
      subagent: [
        call('ReportProgress', { message: 'Found 3' }),
        { text: 'Never said', delayMs: 1_000_000 },
      ],
    });
    const { outputs } = await plan(rockbotToolset({ clock: environment.clock, service }));
    expect(outputs[0]).toMatch(/^Subagent spawned with task_id: sub_1\. /);
    expect(outputs[1]).toMatch(
      /^Active subagents \(1\):\n- task_id=sub_1, elapsed=\d+s, description=Research X$/,
    );
    expect(outputs[2]).toBe('Subagent sub_1 cancelled.');
  },
);
