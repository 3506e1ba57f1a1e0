import { describe, expect, test } from 'vitest';
import { prepareTools } from '../../src/actors/model/tools.ts';
import { runToolCall } from '../../src/actors/model/tool-run.ts';
import { withCaller } from '../../src/actors/model/caller.ts';
import {
  rockbotChildToolset,
  rockbotToolset,
  type RockbotToolsetOptions,
  rockbotLimits,
} from '../../src/compat/rockbot-toolset.ts';
import { sessionLimits } from '../../src/actors/admission/limits.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { fakeService } from '../support/fake-service.ts';

/** The tools as the runtime runs them: the output for a program, and the text for the model. */
function rockbot(agent?: RockbotToolsetOptions['agent']) {
  const environment = simulatedEnvironment({ startAt: 23_400 });
  const service = fakeService();
  const tools = rockbotToolset({ clock: environment.clock, service, agent });
  const entries = prepareTools({ ...tools, ...rockbotChildToolset() }, 'test').execution;
  const run = async (name: string, input: unknown, context?: unknown) => {
    const entry = entries.get(name);
    if (!entry) throw new Error(name);
    const outcome = await runToolCall({
      tool: entry,
      callId: 'call_1',
      input,
      raw: true,
      messages: [],
      signal: new AbortController().signal,
      idempotencyKey: 'k',
      context,
      environment,
    });
    return { read: outcome.modelOutput, outcome };
  };
  /** The text that the model reads. */
  const words = async (name: string, input: unknown = {}) => {
    const { read } = await run(name, input);
    return 'value' in read ? read.value : read;
  };
  return { service, run, words };
}

describe('spawn_subagent', { tags: ['R1', 'R2'] }, () => {
  test('answers immediately with a task_id', async () => {
    const { service, words } = rockbot();
    expect(await words('spawn_subagent', { description: 'Research X', context: 'On Mars' })).toBe(
      'Subagent spawned with task_id: sub_1. It will report progress and send a final result when complete.',
    );
    expect(service.spawned[0]).toMatchObject({
      config: { timeout: 600_000, maxSteps: 12, context: 'none' },
      task: { description: 'Research X', args: { context: 'On Mars' } },
      callId: 'call_1',
    });
    // What the calling model wrote counts as data of the task, not as instructions.
    expect(service.spawned[0]?.config.instructions).not.toContain('On Mars');
  });

  test(
    'gives a subagent ReportProgress but no tools to manage subagents',
    { tags: ['R10'] },
    async () => {
      const { service, words } = rockbot();
      await words('spawn_subagent', { description: 'x' });
      const { grant, config } = service.spawned[0] ?? {};
      expect(grant?.disallowedTools).toEqual([
        'spawn_subagent',
        'cancel_subagent',
        'list_subagents',
      ]);
      expect(Object.keys(config?.tools ?? {})).toEqual(['ReportProgress']);
    },
  );

  test(
    'returns an error text to the model at the limit, but an error code to a program',
    { tags: ['RW15'] },
    async () => {
      const { service, run } = rockbot();
      service.refuse('SESSION_LIMIT');
      const { read, outcome } = await run('spawn_subagent', { description: 'x' });
      expect(read).toEqual({
        type: 'error-text',
        value:
          'Error: SESSION_LIMIT. Use list_subagents to see them, or cancel_subagent to end one.',
      });
      expect(outcome).toMatchObject({ output: { error: { code: 'SESSION_LIMIT' } } });
    },
  );

  test('accepts a description that looks like an error', { tags: ['RW15'] }, async () => {
    const { service, words, run } = rockbot();
    await words('spawn_subagent', { description: 'Error: find out why' });
    expect(service.spawned).toHaveLength(1);
    expect((await run('list_subagents', {})).read).toMatchObject({ type: 'text' });
  });

  test.each([0, -1, 1441, 1e9, Number.NaN, '10'])(
    'refuses %s as timeout_minutes',
    { tags: ['RW8'] },
    async (timeout_minutes) => {
      const { service, run } = rockbot();
      const { outcome } = await run('spawn_subagent', { description: 'x', timeout_minutes });
      expect(outcome).toMatchObject({ status: 'error', error: { code: 'INVALID_INPUT' } });
      expect(service.spawned).toEqual([]);
    },
  );

  test("uses timeout_minutes as the run's timeout", { tags: ['RW8'] }, async () => {
    const { service, words } = rockbot();
    await words('spawn_subagent', { description: 'x', timeout_minutes: 0.5 });
    expect(service.spawned[0]?.config.timeout).toBe(30_000);
  });

  test(
    'configures every subagent with `agent` and uses `timeout` if the call sets no minutes',
    { tags: ['RW8'] },
    async () => {
      const agent = {
        name: 'clerk',
        instructions: 'You file.',
        timeout: 5_000,
        maxSteps: 2,
        toolTimeout: 1_000,
        maxHistory: 7,
        inactivityTimeoutMs: 900,
        budget: { tokens: 100 },
        retry: { maxAttempts: 2 },
        completion: 'tool',
      } as const;
      const { service, words } = rockbot(agent);
      await words('spawn_subagent', { description: 'x' });
      await words('spawn_subagent', { description: 'x', timeout_minutes: 1 });
      const [unsaid, said] = service.spawned.map(({ config }) => config);
      expect(unsaid).toMatchObject(agent);
      expect(said).toMatchObject({ ...agent, timeout: 60_000 });
    },
  );

  test('names the argument that is missing', { tags: ['R3'] }, async () => {
    const { words } = rockbot();
    expect(await words('spawn_subagent', {})).toMatch(/Missing required argument: description/);
    expect(await words('spawn_subagent', { description: '' })).toMatch(
      /Missing required argument: description/,
    );
    expect(await words('cancel_subagent', {})).toMatch(/Missing required argument: task_id/);
  });
});

test(
  'cancel_subagent reports a cancellation or a finished task as plain text, not as an error',
  { tags: ['R4'] },
  async () => {
    const { words, run } = rockbot();
    await words('spawn_subagent', { description: 'x' });
    expect(await words('cancel_subagent', { task_id: 'sub_1' })).toBe('Subagent sub_1 cancelled.');
    expect((await run('cancel_subagent', { task_id: 'sub_1' })).read).toEqual({
      type: 'text',
      value: 'No active subagent found with task_id: sub_1',
    });
  },
);

test(
  'list_subagents lists active subagents with their task and time',
  { tags: ['R5'] },
  async () => {
    const { service, words } = rockbot();
    expect(await words('list_subagents')).toBe('No active subagents.');
    await words('spawn_subagent', { description: 'Research\nquantum computing' });
    await words('spawn_subagent', { description: 'Gone' });
    service.end('sub_2');
    expect(await words('list_subagents')).toBe(
      'Active subagents (1):\n- task_id=sub_1, elapsed=23s, description=Research quantum computing',
    );
  },
);

test('offers ReportProgress only inside a subagent', { tags: ['R9'] }, async () => {
  const { service, words, run } = rockbot();
  await words('spawn_subagent', { description: 'x' });
  const context = withCaller(undefined, {
    sessionId: 's',
    subagentId: 'sub_1',
    parentId: null,
    depth: 1,
    requester: null,
    approver: null,
    idempotencyKey: 'k',
    service,
  });
  const { read } = await run('ReportProgress', { message: 'Found 3 items' }, context);
  expect(read).toEqual({ type: 'text', value: 'Progress reported.' });
  expect(service.list({ subagentId: null })[0]?.progress).toMatchObject([
    { update: 'Found 3 items', percent: null },
  ]);
  expect((await run('ReportProgress', { message: 'x' })).read).toMatchObject({
    type: 'error-text',
  });
});

test('allows three subagents at a time and has no queue', { tags: ['R12'] }, () => {
  expect(sessionLimits(rockbotLimits)).toMatchObject({
    maxConcurrentPerSession: 3,
    whenFull: 'reject',
  });
});
