// Agents that call agents, with real subagents, outside any session.

import { describe, expect, test } from 'vitest';
import { withCaller } from '../../../src/actors/model/caller.ts';
import { createChildSubagentToolset } from '../../../src/actors/subagent/child-toolset.ts';
import { companions } from '../../../src/compat/companions.ts';
import { THE_LEAD } from '../../../src/actors/contracts/service-types.ts';
import { subAgentRefs } from '../../../src/actors/subagents/toolsets/parent-views.ts';
import { subAgentStream, type SubAgentStreamChunk } from '../../../src/compat/sub-agent-stream.ts';
import {
  createSubAgentTool,
  subAgentTools,
} from '../../../src/actors/subagents/toolsets/sub-agent-tool.ts';
import type { SubagentConfig } from '../../../src/index.ts';
import { workingMemory } from '../../../src/entries/memory.ts';
import { simulatedEnvironment, type ScriptedPrompt } from '../../../src/testing/index.ts';
import { simpleTool } from '../../support/subagent-runs.ts';
import { call, program, summarizer, summaryOf, texts } from '../../support/agents-at-work.ts';

/** A subagent that has the summarizer as a tool. */
const editor: SubagentConfig = {
  name: 'editor',
  instructions: 'You are the editor.',
  tools: subAgentTools(createSubAgentTool(summarizer, texts)),
};

function edit(service: ReturnType<typeof program>['service']) {
  const receipt = service.spawn({
    config: editor,
    task: { toolName: 'editor', args: {}, description: 'Edit' },
    caller: THE_LEAD,
  });
  if (receipt.status === 'rejected') throw new Error(receipt.error.message);
  return receipt.subagentId;
}

describe("a program's tool", { tags: ['H1', 'H4', 'H9'] }, () => {
  test(
    'lets the parent and the child follow separate scripts',
    { tags: ['H13', 'HW8'] },
    async () => {
      const { plan, runtime, model, errors } = program({
        planner: [
          {
            type: 'tool_calls',
            toolCalls: [],
            subAgentCalls: [{ id: 's1', agentType: 'summarizer', input: { texts: ['text1'] } }],
          },
          { type: 'structured_output', output: { result: 'Used summary: short' } },
        ],
        summarizer: [summaryOf('short')],
      });
      const tools = subAgentTools(createSubAgentTool(summarizer, texts, { runtime, model }));
      const { text, outputs } = await plan(tools);
      expect(outputs).toEqual([{ summary: 'short' }]);
      expect(JSON.parse(text)).toEqual({ result: 'Used summary: short' });
      expect(errors).toEqual([]);
    },
  );

  test(
    'runs subagents concurrently, even if they have the same type, and returns results in call order',
    { tags: ['H9', 'HW2'] },
    async () => {
      const { plan, service } = program({
        planner: [
          {
            type: 'tool_calls',
            subAgentCalls: ['slow', 'fast', 'faster'].map((id) => ({
              id,
              agentType: 'summarizer',
              input: { texts: [id] },
            })),
          },
          { text: 'Done.' },
        ],
        summarizer: ({ user }) => {
          const id = /"texts":\["(\w+)"\]/.exec(user)?.[1] ?? '';
          return { ...summaryOf(id), delayMs: { slow: 3000, fast: 2000, faster: 1000 }[id] ?? 0 };
        },
      });
      const { outputs } = await plan(
        subAgentTools(createSubAgentTool(summarizer, texts, { service })),
      );
      expect(outputs).toEqual([{ summary: 'slow' }, { summary: 'fast' }, { summary: 'faster' }]);
    },
  );

  test(
    'returns a failure to the parent, and records it in the reference',
    { tags: ['H10', 'H11'] },
    async () => {
      const { plan, service } = program({
        planner: [call('subagent__summarizer', { texts: [] }, 's1'), { text: 'I do it myself.' }],
        summarizer: () => call('nothing'),
      });
      const { text, outputs } = await plan(
        subAgentTools(createSubAgentTool({ ...summarizer, maxSteps: 2 }, texts, { service })),
      );
      expect(outputs).toEqual([
        { code: 'STEP_LIMIT', error: expect.stringContaining('after 2 steps') as string },
      ]);
      expect(text).toBe('I do it myself.');
      expect(subAgentRefs(service, THE_LEAD)).toMatchObject([
        { id: 'sub_1', toolCallId: 's1', agentType: 'summarizer', status: 'failed' },
      ]);
    },
  );

  test('requests a result again if it does not match the schema', { tags: ['H1'] }, async () => {
    const { plan, service } = program({
      planner: [call('subagent__summarizer', { texts: [] }), { text: 'Done.' }],
      summarizer: [{ text: 'A summary, in words.' }, summaryOf('as JSON')],
    });
    const { outputs } = await plan(
      subAgentTools(createSubAgentTool(summarizer, texts, { service })),
    );
    expect(outputs).toEqual([{ summary: 'as JSON' }]);
  });

  test(
    "shows the child its input, but no part of its parent's conversation",
    { tags: ['H5'] },
    async () => {
      const prompts: ScriptedPrompt[] = [];
      const { plan, service } = program({
        planner: [call('subagent__summarizer', { texts: ['only this'] }), { text: 'Done.' }],
        summarizer: (prompt) => {
          prompts.push(prompt);
          return summaryOf('x');
        },
      });
      await plan(subAgentTools(createSubAgentTool(summarizer, texts, { service })));
      expect(prompts[0]?.prompt.map(({ role }) => role)).toEqual(['system', 'user']);
      expect(prompts[0]?.user).toContain('{"texts":["only this"]}');
    },
  );

  test('ends the child when the program aborts', { tags: ['HW4'] }, async () => {
    const controller = new AbortController();
    const { plan, service } = program({
      planner: [call('subagent__summarizer', { texts: [] })],
      summarizer: () => {
        controller.abort(new Error('enough'));
        return { text: 'Never', delayMs: 1_000_000 };
      },
    });
    const tools = subAgentTools(createSubAgentTool(summarizer, texts, { service }));
    await expect(plan(tools, controller.signal)).rejects.toThrow();
    expect(service.list(THE_LEAD, { includeEnded: true })).toMatchObject([{ state: 'cancelled' }]);
  });
});

describe("a subagent's tool", () => {
  const agents = {
    editor: [call('subagent__summarizer', { texts: ['a'] }, 's1'), { text: 'Edited.' }],
    summarizer: [call('read'), { ...summaryOf('short'), thinking: 'Hm.' }],
  };

  test("P7: releases the parent's slot and pauses its timeout while it is waiting", async () => {
    const { environment, service } = program(
      { ...agents, summarizer: [{ ...summaryOf('late'), delayMs: 500_000 }] },
      { constraints: { maxConcurrentPerSession: 1 } },
    );
    const id = edit(service);
    const ended = service.await([id], THE_LEAD, { timeoutMs: 10_000_000 });
    await environment.advance(1000);
    expect(service.check(id, THE_LEAD)).toMatchObject({
      report: { state: 'waiting_for_children' },
    });
    await environment.advance(700_000);
    expect(await ended).toMatchObject({ why: 'ended', reports: [{ result: 'Edited.' }] });
  });

  test(
    "passes the parent's id to the child, and returns the call's result to the parent",
    { tags: ['H4', 'H8'] },
    async () => {
      const results: unknown[] = [];
      const { environment, service } = program({
        ...agents,
        editor: [
          ...agents.editor.slice(0, 1),
          (prompt) => {
            results.push(...prompt.results);
            return { text: 'Edited.' };
          },
        ],
        summarizer: [summaryOf('short')],
      });
      const id = edit(service);
      await environment.advance(1000);
      expect(results).toEqual([{ summary: 'short' }]);
      expect(service.list(THE_LEAD, { includeEnded: true })).toMatchObject([
        { id, depth: 1, parentId: null },
        { depth: 2, parentId: id, callId: 's1', state: 'completed' },
      ]);
      expect(subAgentRefs(service, { subagentId: id })).toMatchObject([
        { toolCallId: 's1', status: 'completed', output: { summary: 'short' } },
      ]);
    },
  );

  test('ends the children when the parent ends', { tags: ['HW4'] }, async () => {
    const { environment, service } = program({
      ...agents,
      summarizer: [{ text: 'Never', delayMs: 1_000_000 }],
    });
    const id = edit(service);
    await environment.advance(1000);
    service.cancel(id, THE_LEAD, 'enough');
    await environment.advance(1000);
    expect(service.list(THE_LEAD, { includeEnded: true })).toMatchObject([
      { state: 'cancelled' },
      { state: 'cancelled' },
    ]);
  });

  test(
    'merges the events of all agents in the tree into one stream, with the id of each agent',
    { tags: ['H6', 'H22'] },
    async () => {
      const streaming = {
        ...summarizer,
        stream: true,
        tools: { read: simpleTool(() => 'text') },
      };
      const { environment, service } = program(agents);
      const chunks: SubAgentStreamChunk[] = [];
      subAgentStream(service).subscribe((chunk) => chunks.push(chunk));
      const receipt = service.spawn({
        config: { ...editor, tools: subAgentTools(createSubAgentTool(streaming, texts)) },
        task: { toolName: 'editor', args: { page: 1 }, description: 'Edit' },
        caller: THE_LEAD,
      });
      await environment.advance(1000);
      const parent = receipt.status === 'accepted' ? receipt.subagentId : '';
      const own = chunks.map((chunk) => [
        chunk.type,
        'agentId' in chunk ? chunk.agentId : chunk.subAgentId,
      ]);
      const child = own.find(([, id]) => id !== parent)?.[1];
      expect(own).toEqual([
        ['subagent_start', parent],
        ['subagent_start', child],
        ['tool_start', child],
        ['tool_end', child],
        ['thinking', child],
        ['text_delta', child],
        ['output', child],
        ['subagent_end', child],
        ['output', parent],
        ['subagent_end', parent],
      ]);
      expect(chunks[0]).toMatchObject({ input: { page: 1 }, parentAgentId: service.id });
      expect(chunks[1]).toMatchObject({ input: { texts: ['a'] }, parentAgentId: parent });
      expect(chunks[7]).toMatchObject({ success: true, result: { summary: 'short' } });
      expect(chunks.every(({ agentType, timestamp }) => agentType !== '' && timestamp > 0)).toBe(
        true,
      );
    },
  );
});

test(
  'returns an error to a child that asks a question while its parent is waiting for it',
  { tags: ['MW1'] },
  async () => {
    const answers: unknown[] = [];
    const { plan, service } = program({
      planner: [call('subagent__summarizer', { texts: [] }), { text: 'Done.' }],
      summarizer: [
        call('request_input', { question: 'How long?' }),
        ({ results }) => {
          answers.push(...results);
          return summaryOf('short');
        },
      ],
    });
    const { request_input } = createChildSubagentToolset();
    const asking = { ...summarizer, tools: { request_input } };
    const { outputs } = await plan(subAgentTools(createSubAgentTool(asking, texts, { service })));
    expect(outputs).toEqual([{ summary: 'short' }]);
    expect(answers).toEqual([
      {
        responded: true,
        response: expect.stringMatching(/^Nobody can/) as string,
        timedOut: false,
      },
    ]);
  },
);

test('SUB-AGENT-TOOL-1: ends the call when the child is cancelled while it is asking a question', async () => {
  const { plan, service } = program({
    planner: [call('subagent__summarizer', { texts: [] }), { text: 'Done.' }],
    summarizer: [call('request_input', { question: 'How long?' })],
  });
  service.events.subscribe(({ type, subagentId }) => {
    if (type === 'input.requested') service.cancel(subagentId, THE_LEAD, 'no questions');
  });
  const { request_input } = createChildSubagentToolset();
  const asking = { ...summarizer, tools: { request_input } };
  const { outputs } = await plan(subAgentTools(createSubAgentTool(asking, texts, { service })));
  expect(outputs).toEqual([{ error: 'Cancelled: no questions', code: 'CANCELLED' }]);
});

test('lets a companion remember its earlier runs', { tags: ['H18', 'HW6'] }, async () => {
  const prompts: ScriptedPrompt[] = [];
  const { plan, service } = program({
    planner: [
      call('companion__spawnAgent', { agentType: 'researcher', message: 'My name is Ada' }),
      call('companion__sendMessage', { agentId: 'researcher-1', message: 'What is my name?' }),
      call('companion__listChildren'),
      { text: 'Done.' },
    ],
    researcher: (prompt) => {
      prompts.push(prompt);
      return { text: `Answer ${prompts.length}` };
    },
  });
  const researcher = { name: 'researcher', instructions: 'You are the researcher.' };
  const { outputs } = await plan(
    companions([{ agent: researcher, mode: 'blocking' }], { service }),
  );
  expect(outputs).toMatchObject([
    { agentId: 'researcher-1', status: 'completed', result: 'Answer 1' },
    { agentId: 'researcher-1', status: 'completed', result: 'Answer 2' },
    { children: [{ agentId: 'researcher-1', mode: 'blocking', status: 'idle' }] },
  ]);
  const remembered = JSON.stringify(prompts[1]?.prompt);
  expect(remembered).toContain('My name is Ada');
  expect(remembered).toContain('Answer 1');
});

/** Calls a tool as a program would. */
function use(tools: object, name: string, input: object, context?: object): Promise<unknown> {
  const { execute } = (tools as Record<string, { execute(...of: object[]): Promise<unknown> }>)[
    name
  ] as { execute(...of: object[]): Promise<unknown> };
  return execute(input, { toolCallId: 'call_1', messages: [], context });
}

describe('COMPANIONS-1: a message to a companion, which is never lost', { tags: ['H18'] }, () => {
  const researcher = { name: 'researcher', instructions: 'You are the researcher.' };

  test.each([
    ['blocking', true],
    ['blocking', false],
    ['background', true],
    ['background', false],
  ] as const)(
    '%s: starts another run for messages that no run has read (with a memory: %s)',
    async (mode, hasMemory) => {
      const tasks: string[] = [];
      const { service, environment } = program(
        {
          researcher: ({ user }) => {
            tasks.push(user);
            return tasks.length === 1
              ? { error: new Error('the model is broken'), delayMs: 1000 }
              : { text: `Answer to ${user}` };
          },
        },
        // If there is a memory, it takes a moment to handle the end of a subagent.
        hasMemory ? { workingMemory: workingMemory({ environment: simulatedEnvironment() }) } : {},
      );
      const tools = companions([{ agent: { ...researcher, retry: { maxAttempts: 1 } }, mode }], {
        service,
      });
      const spawning = use(tools, 'companion__spawnAgent', {
        agentType: 'researcher',
        message: 'One',
      });
      await environment.settle();
      const telling = use(tools, 'companion__sendMessage', {
        agentId: 'researcher-1',
        message: 'Two',
      });
      await environment.advance(10_000);
      expect(await spawning).toMatchObject({ status: mode === 'blocking' ? 'failed' : 'running' });
      expect(tasks).toEqual([expect.stringContaining('One'), expect.stringContaining('Two')]);
      const told =
        mode === 'blocking'
          ? await telling
          : await use(tools, 'companion__getChildStatus', { agentId: 'researcher-1' });
      expect(told).toMatchObject({ status: 'completed', result: expect.stringContaining('Two') });
    },
  );

  test(
    'reaches the existing companion when the same call is repeated',
    { tags: ['M25'] },
    async () => {
      const { service, environment } = program({ researcher: [{ text: 'Found', delayMs: 1000 }] });
      const tools = companions([{ agent: researcher }], { service });
      const context = withCaller(undefined, {
        sessionId: service.id,
        subagentId: null,
        parentId: null,
        depth: 0,
        requester: null,
        approver: null,
        idempotencyKey: 'k',
        service,
      });
      const input = { agentType: 'researcher', message: 'Go' };
      const first = await use(tools, 'companion__spawnAgent', input, context);
      expect(await use(tools, 'companion__spawnAgent', input, context)).toEqual(first);
      expect(await use(tools, 'companion__listChildren', {}, context)).toMatchObject({
        children: [{ agentId: 'researcher-1' }],
      });
      await environment.advance(2000);
    },
  );
});

test(
  'releases a companion when it is cancelled or its parent has ended',
  { tags: ['H18', 'MW9'] },
  async () => {
    const disposed: string[] = [];
    const agent: SubagentConfig = {
      name: 'researcher',
      instructions: 'You are the researcher.',
      createInstance: () => ({
        name: 'researcher',
        instructions: 'You are the researcher.',
        lifetime: 'session',
        dispose: () => void disposed.push('researcher'),
      }),
    };
    const tools = companions([{ agent }]);
    const { service, environment } = program({
      editor: ({ prompt }) =>
        [
          call('companion__spawnAgent', { agentType: 'researcher', message: 'One' }),
          call('companion__spawnAgent', { agentType: 'researcher', message: 'Two' }),
          { ...call('companion__terminateChild', { agentId: 'researcher-1' }), delayMs: 5000 },
        ][prompt.filter(({ role }) => role === 'tool').length] ?? { text: 'Done.', delayMs: 5000 },
      researcher: ({ user }) => ({ text: 'Found', delayMs: user.includes('One') ? 100_000 : 1000 }),
    });
    const begin = () =>
      service.spawn({
        config: { name: 'editor', instructions: 'You are the editor.', tools: { ...tools } },
        task: { toolName: 'editor', args: {}, description: 'Edit' },
        caller: THE_LEAD,
      });
    begin();
    await environment.advance(8000);
    expect(disposed).toHaveLength(1);
    await environment.advance(8000);
    expect(service.list(THE_LEAD)).toEqual([]);
    // The first editor's work disappears when the next editor has companions.
    begin();
    await environment.advance(4000);
    expect(disposed).toHaveLength(2);
  },
);
