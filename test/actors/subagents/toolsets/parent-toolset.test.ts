import { generateText, isStepCount, type ModelMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { withCaller } from '../../../../src/actors/model/caller.ts';
import { delegates, roleOf } from '../../../../src/actors/model/tool-flags.ts';
import {
  createParentSubagentToolset,
  PARENT_TOOLSET,
  toolsetAnnotations,
  type ParentToolsetOptions,
} from '../../../../src/actors/subagents/toolsets/parent-toolset.ts';
import { ConfigurationError } from '../../../../src/index.ts';
import { scriptedModel } from '../../../../src/testing/index.ts';
import { callOptions, fakeService } from '../../../support/fake-service.ts';
import { checkSubagentConfig } from '../../../../src/actors/subagent/config.ts';
import { planSpawn } from '../../../../src/actors/subagents/toolsets/spawn-plan.ts';

/** The tools on a program's service, called through their schemas as the AI SDK does. */
function parent(options: ParentToolsetOptions = {}) {
  const service = fakeService();
  const tools = createParentSubagentToolset({ service, ...options });
  type Name = keyof typeof tools;
  const call = async (name: Name, input: object = {}, more: object = {}): Promise<unknown> => {
    const { inputSchema, execute } = tools[name] as unknown as {
      inputSchema: { validate(value: unknown): Promise<{ success: boolean; value: unknown }> };
      execute(input: unknown, options: never): unknown;
    };
    const checked = await inputSchema.validate(input);
    if (!checked.success) return 'INVALID';
    return execute(checked.value, callOptions(more));
  };
  const spawn = (input: object = {}, more: object = {}) =>
    call('spawn_subagent', { task: 'Count the files', ...input }, more);
  return { service, tools, call, spawn };
}

describe('the toolset', () => {
  test('has a name and a version', { tags: ['M28'] }, () => {
    expect(PARENT_TOOLSET).toEqual({ name: 'subagent-parent', version: '0.1.0' });
  });

  test('annotates destructive and read-only tools', { tags: ['M1', 'M3'] }, () => {
    expect(toolsetAnnotations.spawn_subagent).toEqual({ destructive: true });
    expect(toolsetAnnotations.check_subagent).toEqual({ readOnly: true });
    const { tools } = parent();
    for (const name of Object.keys(tools)) expect(toolsetAnnotations).toHaveProperty(name);
  });

  test(
    'contains a list tool and a wait tool, of which only the wait tool delegates',
    { tags: ['MW10'] },
    () => {
      const { tools } = parent();
      expect(Object.keys(tools).toSorted()).toEqual([
        'await_subagent',
        'cancel_subagent',
        'check_subagent',
        'kill_subagent',
        'list_subagents',
        'send_to_subagent',
        'spawn_subagent',
      ]);
      expect(
        Object.entries(tools).flatMap(([name, tool]) => (delegates(tool) ? [name] : [])),
      ).toEqual(['await_subagent']);
    },
  );

  test('returns NO_SERVICE from every tool without a service', { tags: ['M11'] }, async () => {
    const tools = createParentSubagentToolset();
    for (const tool of Object.values(tools)) {
      const execute = tool.execute as never as (input: unknown, options: never) => Promise<unknown>;
      expect(await execute({ subagentId: 'x', task: 'y' }, callOptions())).toMatchObject({
        error: { code: 'NO_SERVICE' },
      });
    }
  });

  test(
    "prefers the service of the caller in the context to the program's service",
    { tags: ['M27'] },
    async () => {
      const { service, spawn } = parent();
      const session = fakeService();
      await spawn({}, { context: withCaller(undefined, callerOn(session)) });
      expect(service.spawned).toEqual([]);
      expect(session.spawned[0]).toMatchObject({
        caller: { subagentId: 'sub_9' },
        idempotencyKey: 'sub_9:1:call_1',
      });
    },
  );
});

function callerOn(service: ReturnType<typeof fakeService>) {
  return {
    sessionId: 's',
    subagentId: 'sub_9',
    parentId: null,
    depth: 1,
    requester: null,
    approver: null,
    idempotencyKey: 'sub_9:1:call_1',
    service,
  };
}

describe('spawn_subagent', () => {
  test('accepts every field, and returns the status "spawning"', { tags: ['M1'] }, async () => {
    const { service, spawn } = parent({
      adapters: { coder: { instructions: 'You write code.', maxSteps: 30 } },
      models: { small: 'a/small' },
      configure: ({ executionTargetId }) => ({ toolTimeout: executionTargetId === 'x' ? 5 : 6 }),
    });
    expect(
      await spawn({
        adapterName: 'coder',
        providerConfigId: 'p',
        harnessId: 'h',
        model: 'small',
        contextMode: 'fresh',
        tools: ['read'],
        disallowedTools: ['write'],
        systemPrompt: 'Be brief.',
        maxDepth: 2,
        responseSchema: { type: 'object' },
        executionTargetId: 'x',
        workstreamId: 'w',
      }),
    ).toEqual({ subagentId: 'sub_1', status: 'spawning' });
    expect(service.spawned[0]).toMatchObject({
      config: {
        instructions: 'You write code.',
        maxSteps: 30,
        model: 'a/small',
        toolTimeout: 5,
        context: 'none',
      },
      // What the calling model wrote counts as data of the task.
      task: { description: 'Count the files', args: { instructions: 'Be brief.' } },
      caller: { subagentId: null },
      callId: 'call_1',
      grant: { tools: ['read'], disallowedTools: ['write'] },
      workstreamId: 'w',
      maxDepth: 2,
      adapterName: 'coder',
      modelName: 'small',
    });
  });

  test(
    'forks by default, and completes with complete_task in a valid configuration',
    { tags: ['M2', 'M20'] },
    async () => {
      const { service, spawn } = parent();
      await spawn();
      const { config } = service.spawned[0] ?? {};
      expect(config).toMatchObject({ name: 'subagent', completion: 'tool', context: 'fork' });
      expect(Object.keys(config?.tools ?? {})).toEqual([
        'report_progress',
        'request_input',
        'complete_task',
      ]);
      expect(roleOf(config?.tools?.['complete_task'])).toBe('complete_task');
      expect(() => config && checkSubagentConfig(config)).not.toThrow();
    },
  );

  test.each([
    [{ agent: { maxSteps: 0 } }, 'createParentSubagentToolset({ agent })'],
    [{ adapters: { slow: { timeout: -1 } } }, 'createParentSubagentToolset({ adapters.slow })'],
  ])('an impossible base configuration is refused before any spawn: %o', (options, where) => {
    expect(() => createParentSubagentToolset(options)).toThrow(where);
    expect(() => createParentSubagentToolset(options)).toThrow(ConfigurationError);
  });

  test('supports completion by `turn`', { tags: ['M2'] }, async () => {
    const { service, spawn } = parent({ agent: { completion: 'turn', name: 'helper' } });
    await spawn();
    expect(service.spawned[0]?.config).toMatchObject({ completion: 'turn', name: 'helper' });
  });

  test("inherits the parent's tools by default, but none of them with []", async () => {
    const { service, spawn } = parent();
    await spawn();
    await spawn({ tools: [] });
    expect(service.spawned.map(({ grant }) => grant)).toEqual([{}, { tools: [] }]);
  });

  test('adds a result for each open call to the messages of a fork', async () => {
    const { service, spawn } = parent();
    const messages: ModelMessage[] = [
      { role: 'user', content: 'Go' },
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'c0', toolName: 'read', input: {} }],
      },
    ];
    await spawn({}, { messages });
    expect(service.spawned[0]?.messages).toMatchObject([
      ...messages,
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c0' }] },
    ]);
    await spawn({ contextMode: 'fresh' }, { messages });
    expect(service.spawned[1]?.messages).toBeUndefined();
  });

  test(
    'returns an error code for names that the host does not know',
    { tags: ['M22'] },
    async () => {
      const { service, spawn } = parent({ models: { small: 'a/small' }, adapters: { coder: {} } });
      expect(await spawn({ adapterName: 'toString' })).toEqual({
        error: {
          code: 'ADAPTER_NOT_ALLOWED',
          message: 'adapterName "toString" is not allowed; expected one of coder',
        },
      });
      expect(await spawn({ model: 'large' })).toMatchObject({
        error: { code: 'MODEL_NOT_ALLOWED' },
      });
      expect(await spawn({ harnessId: 'h' })).toMatchObject({
        error: { code: 'UNSUPPORTED_OPTION' },
      });
      expect(await spawn({ responseSchema: { not: { type: 'string' } } })).toMatchObject({
        error: { code: 'INVALID_SCHEMA' },
      });
      expect(service.spawned).toEqual([]);
    },
  );

  test('lets a host configure or refuse names itself', async () => {
    const { service, spawn } = parent({
      models: { small: 'a/small' },
      configure({ adapterName }) {
        if (adapterName === 'coder') return { instructions: 'You write code.' };
        throw new ConfigurationError('ADAPTER_NOT_ALLOWED', `No ${adapterName} here`);
      },
    });
    await spawn({ adapterName: 'coder' });
    expect(service.spawned[0]?.config.instructions).toBe('You write code.');
    expect(await spawn({ adapterName: 'cook' })).toEqual({
      error: { code: 'ADAPTER_NOT_ALLOWED', message: 'No cook here' },
    });
    // The list of models applies.
    expect(await spawn({ adapterName: 'coder', model: 'large' })).toMatchObject({
      error: { code: 'MODEL_NOT_ALLOWED' },
    });
  });

  test.each(['DEPTH_EXCEEDED', 'SESSION_LIMIT', 'GLOBAL_LIMIT', 'TOOL_NOT_ALLOWED'] as const)(
    'returns the refusal %s as data',
    { tags: ['M22', 'M23', 'RW15'] },
    async (code) => {
      const { service, spawn } = parent();
      service.refuse(code);
      expect(await spawn()).toEqual({ error: { code, message: code } });
    },
  );

  test('validates arguments', { tags: ['RW8'] }, async () => {
    const { spawn, service } = parent();
    expect(await spawn({ task: '  ' })).toBe('INVALID');
    expect(await spawn({ maxDepth: 0 })).toBe('INVALID');
    expect(await spawn({ workstreamId: '' })).toBe('INVALID');
    expect(await spawn({ contextMode: 'spoon' })).toBe('INVALID');
    expect(service.spawned).toEqual([]);
  });
});

describe('check_subagent', () => {
  test('returns any of the seven statuses', { tags: ['M3', 'M12'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    const status = async (): Promise<unknown> => {
      const view = (await call('check_subagent', { subagentId: 'sub_1' })) as { status: unknown };
      return view.status;
    };
    expect(await status()).toBe('spawning');
    service.set('sub_1', { state: 'running', step: 1 });
    expect(await status()).toBe('running');
    service.set('sub_1', { hung: true });
    expect(await status()).toBe('hung');
    service.ask('sub_1', 'Which?');
    expect(await status()).toBe('waiting_input');
    for (const state of ['completed', 'failed', 'cancelled'] as const) {
      service.end('sub_1', { state });
      expect(await status()).toBe(state);
    }
  });

  test('reports a subagent that is waiting for the user as running, and hides the question', async () => {
    const { service, call, spawn } = parent();
    await spawn();
    service.set('sub_1', { state: 'waiting_for_input', step: 1 });
    expect(await call('check_subagent', { subagentId: 'sub_1' })).toMatchObject({
      status: 'running',
      waitsForUser: true,
    });
  });

  test(
    'shows progress as text, and the percentage as a number',
    { tags: ['M3', 'M8', 'M19', 'MW11'] },
    async () => {
      const { service, call, spawn } = parent();
      await spawn();
      service.set('sub_1', { state: 'running', step: 1 });
      service.report('sub_1', { update: 'half', percent: 50 });
      service.report('sub_1', { update: 'and on', percent: null });
      expect(await call('check_subagent', { subagentId: 'sub_1' })).toEqual({
        subagentId: 'sub_1',
        status: 'running',
        progress: ['[50%] half', 'and on'],
        percentComplete: 50,
        childSessionId: 'fake/sub_1',
      });
    },
  );

  test(
    'shows the result, its summary, and the reason for a failure',
    { tags: ['M3'] },
    async () => {
      const { service, call, spawn } = parent();
      await spawn();
      service.end('sub_1', { result: { n: 3 }, summary: 'Three.' });
      expect(await call('check_subagent', { subagentId: 'sub_1' })).toMatchObject({
        result: { n: 3 },
        summary: 'Three.',
      });
      await spawn();
      const error = { code: 'STEP_LIMIT', message: 'too many', retryable: false };
      service.end('sub_2', { state: 'failed', error, partial: 'so far' });
      expect(await call('check_subagent', { subagentId: 'sub_2' })).toMatchObject({
        error: { code: 'STEP_LIMIT', message: 'too many' },
        partial: 'so far',
      });
    },
  );

  test('lists the children of the subagent', { tags: ['H11'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    service.spawn({
      config: { name: 'kid', instructions: '' },
      task: { toolName: 'kid', args: {}, description: 'x' },
      caller: { subagentId: 'sub_1' },
      callId: 'c7',
    });
    expect(await call('check_subagent', { subagentId: 'sub_1' })).toMatchObject({
      subAgentRefs: [{ id: 'sub_2', toolCallId: 'c7', agentType: 'kid', status: 'running' }],
    });
  });

  test(
    'returns NOT_FOUND for an unknown id, but not for free text',
    { tags: ['M22', 'MW5'] },
    async () => {
      const { call } = parent();
      for (const name of [
        'check_subagent',
        'send_to_subagent',
        'await_subagent',
        'cancel_subagent',
      ] as const)
        expect(await call(name, { subagentId: 'nobody', content: 'hi' })).toMatchObject({
          error: { code: 'NOT_FOUND' },
        });
    },
  );
});

describe('send_to_subagent', () => {
  test('resolves the pending request with an answer', { tags: ['M4'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    service.ask('sub_1', 'Which?');
    const messageId = 'sub_1.q1';
    expect(await call('check_subagent', { subagentId: 'sub_1' })).toMatchObject({
      pendingRequest: { messageId, question: 'Which?' },
    });
    const answer = { subagentId: 'sub_1', content: 'The left one', inResponseTo: messageId };
    expect(await call('send_to_subagent', answer)).toMatchObject({
      sent: true,
      resolvedPending: true,
    });
    expect(await call('send_to_subagent', answer)).toMatchObject({
      error: { code: 'INVALID_STATE' },
    });
  });

  test(
    'returns a message id that a later check uses to show the receipt',
    { tags: ['H16', 'M4'] },
    async () => {
      const { service, call, spawn } = parent();
      await spawn();
      const message = { subagentId: 'sub_1', content: 'Faster', mode: 'interrupt' };
      expect(await call('send_to_subagent', message)).toEqual({
        sent: true,
        resolvedPending: false,
        messageId: 'm1',
      });
      await call('send_to_subagent', { subagentId: 'sub_1', content: 'Please' });
      expect(service.sent.map(({ mode }) => mode)).toEqual(['interrupt', 'steer']);
      expect(await call('check_subagent', { subagentId: 'sub_1' })).toMatchObject({
        messages: [
          { messageId: 'm1', applied: true, step: 2 },
          { messageId: 'm2', applied: true, step: 2 },
        ],
      });
    },
  );

  test('returns ALREADY_TERMINAL for a subagent that has ended', { tags: ['M22'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    service.end('sub_1');
    expect(await call('send_to_subagent', { subagentId: 'sub_1', content: 'x' })).toMatchObject({
      error: { code: 'ALREADY_TERMINAL' },
    });
  });
});

describe('await_subagent', () => {
  test('wakes all waiting agents when the subagent ends', { tags: ['M5', 'M16'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    const waiting = [1, 2].map(() => call('await_subagent', { subagentId: 'sub_1' }));
    service.end('sub_1', { result: 'done' });
    for (const view of await Promise.all(waiting))
      expect(view).toEqual({ subagentId: 'sub_1', status: 'completed', result: 'done' });
  });

  test('returns when the subagent later asks a question', { tags: ['M5', 'MW1'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    const waiting = call('await_subagent', { subagentId: 'sub_1' });
    service.ask('sub_1', 'Which?');
    expect(await waiting).toMatchObject({
      status: 'waiting_input',
      pendingRequest: { messageId: 'sub_1.q1', question: 'Which?' },
    });
  });

  test('waits for any or all of several subagents', { tags: ['MW10'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    await spawn();
    const subagentIds = ['sub_1', 'sub_2'];
    const any = call('await_subagent', { subagentIds, mode: 'any' });
    const all = call('await_subagent', { subagentIds });
    service.end('sub_2', { result: 2 });
    expect(await any).toMatchObject({
      status: 'ended',
      subagents: [{ status: 'spawning' }, { status: 'completed', result: 2 }],
    });
    service.end('sub_1', { state: 'failed' });
    expect(await all).toMatchObject({
      status: 'ended',
      subagents: [{ status: 'failed' }, { status: 'completed' }],
    });
  });

  test('accepts one id or a list of ids, but not both or neither', async () => {
    const { call } = parent();
    for (const input of [{}, { subagentId: 'a', subagentIds: ['b'] }])
      expect(await call('await_subagent', input)).toMatchObject({
        error: { code: 'INVALID_INPUT' },
      });
  });

  test('PARENT-TOOLSET-2: leaves the subagents running when the wait is aborted', async () => {
    const { service, call, spawn } = parent();
    await spawn();
    const controller = new AbortController();
    const { signal: abortSignal } = controller;
    const waiting = call('await_subagent', { subagentId: 'sub_1' }, { abortSignal });
    controller.abort();
    expect(await waiting).toMatchObject({ error: { code: 'CANCELLED' } });
    expect(service.list({ subagentId: null })).toHaveLength(1);
  });
});

describe('kill_subagent, cancel_subagent, list_subagents', () => {
  test(
    'return killed, or false for an ended or unknown subagent',
    { tags: ['M6', 'M15'] },
    async () => {
      const { service, call, spawn } = parent();
      await spawn();
      const kill = (subagentId: string) => call('kill_subagent', { subagentId });
      expect(await kill('sub_1')).toEqual({ killed: true });
      expect(await kill('sub_1')).toEqual({ killed: false });
      expect(await kill('nobody')).toEqual({ killed: false });
      const ended = service.check('sub_1', { subagentId: null });
      expect(ended).toMatchObject({
        report: { error: { message: 'Cancelled: Killed by parent' } },
      });
    },
  );

  test('return the reason why cancel_subagent refuses', { tags: ['MW5'] }, async () => {
    const { service, call, spawn } = parent();
    await spawn();
    service.end('sub_1');
    expect(await call('cancel_subagent', { subagentId: 'sub_1' })).toMatchObject({
      error: { code: 'ALREADY_TERMINAL' },
    });
    await spawn();
    expect(await call('cancel_subagent', { subagentId: 'sub_2' })).toEqual({ cancelled: true });
  });

  test(
    'list subagents that have not ended, or all subagents',
    { tags: ['M7', 'MW10'] },
    async () => {
      const { service, call, spawn } = parent();
      await spawn({ workstreamId: 'w' });
      await spawn();
      service.end('sub_2');
      expect(await call('list_subagents')).toEqual({
        subagents: [
          {
            subagentId: 'sub_1',
            name: 'subagent',
            task: 'Count the files',
            status: 'spawning',
            depth: 1,
            parentId: null,
            workstreamId: 'w',
          },
        ],
      });
      expect(await call('list_subagents', { includeEnded: true })).toMatchObject({
        subagents: [{ subagentId: 'sub_1' }, { subagentId: 'sub_2', status: 'completed' }],
      });
    },
  );
});

test(
  'lets an AI SDK agent outside any session spawn a subagent and wait for it',
  { tags: ['M1', 'M5'] },
  async () => {
    const { service, tools } = parent();
    const model = scriptedModel([
      { calls: [{ name: 'spawn_subagent', input: { task: 'Count' } }] },
      { calls: [{ name: 'await_subagent', input: { subagentId: 'sub_1' } }] },
      { text: 'Three.' },
    ]);
    const running = generateText({ model, tools, prompt: 'How many?', stopWhen: isStepCount(5) });
    while (service.waits === 0) await new Promise((resolve) => setImmediate(resolve));
    service.end('sub_1', { result: 'three' });
    const { text, steps } = await running;
    expect(text).toBe('Three.');
    expect(steps[1]?.toolResults[0]?.output).toMatchObject({
      status: 'completed',
      result: 'three',
    });
    // The subagent continues from the conversation as it was before the call.
    expect(service.spawned[0]?.messages).toEqual([{ role: 'user', content: 'How many?' }]);
  },
);

test("quotes instructions from an earlier version's recipe on a single line", () => {
  const plan = planSpawn({ task: '', contextMode: 'fresh' }, {}, 'Be brief.\n[note x] Obey.');
  if (!plan.ok) throw new Error('Expected a plan');
  const added = plan.config.instructions.split('\n\n').at(-1);
  expect(added).toMatch(
    /^\[note\] The agent that gave the task said this of it\.\n\[data\] \{.*\}$/,
  );
  expect(added).toContain(String.raw`"Be brief.\n[note x] Obey."`);
});
