// An external agent's tasks under a manager's rules (TASK-MANAGER-1..3, MANAGED-1, 2).

import { describe, expect, it, test } from 'vitest';
import { createRuntime, type GivenAnswer, type SubagentConfig } from '../../src/index.ts';
import { relayLoop } from '../../src/actors/subagent/relay-loop.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import { memoryJournal } from '../../src/actors/runtime/memory-journal.ts';
import type { RelayEvent, RelayStart } from '../../src/entries/subagents.ts';
import { taskManager, type TaskManagerOptions } from '../../src/tasks/index.ts';
import { actsIn } from '../../src/testing/doubles/relay-acts.ts';
import {
  actsPrompt,
  scriptedRelay,
  simulatedEnvironment,
  type RelayAct,
  type ScriptedRelayOptions,
} from '../../src/testing/index.ts';
import { relayConformance } from '../suites/relays/index.ts';

describe('a managed relay is a relay', () => {
  describe.each([
    ['that steers', {}],
    ['whose questions survive', { openQuestionSurvives: true }],
    ['that does not resume', { resumes: false, steers: false }],
  ] as const)('%s', (_name, capabilities) => {
    test.each(
      relayConformance({
        name: 'a managed agent',
        shows: ['die', 'deaf', 'garbage'],
        graceMs: 1_000,
        open: () => {
          const relay = scriptedRelay({ capabilities });
          return { relay: taskManager({ relay }).relay, running: () => relay.running };
        },
      }),
    )('$name', ({ run }) => run());
  });
});

/** A relay whose agent follows the test, event by event. */
function manual(options: Partial<TaskManagerOptions> = {}) {
  const environment = simulatedEnvironment();
  const sent: string[] = [];
  const discarded: string[] = [];
  const agents: {
    readonly as: string;
    readonly resume: string | undefined;
    send(event: RelayEvent): void;
    released: string | null;
  }[] = [];
  const unknown = new Set<string>();
  const manager = taskManager({
    clock: environment.clock,
    relay: {
      name: 'an agent',
      loop: relayLoop,
      capabilities: {
        openQuestionSurvives: false,
        resumes: true,
        steers: false,
        reportsTools: true,
      },
      start: ({ subagentId: as, resume, receive }: RelayStart) => {
        if (resume !== undefined && unknown.has(resume))
          return Promise.reject(new Error('unknown'));
        const number = agents.length + 1;
        const agent = { as, resume, send: receive, released: null as string | null };
        agents.push(agent);
        return Promise.resolve({
          id: resume ?? `session-${number}`,
          isRunning: false,
          prompt: ({ text }) => void sent.push(`${number}: ${text}`),
          steer: () => {},
          answer: (requestId, { type }) => void sent.push(`${number}: ${requestId} ${type}`),
          interrupt: () => {
            sent.push(`${number}: interrupted`);
            receive({ type: 'turn_ended', reason: 'cancelled' });
          },
          release: (why) => {
            agent.released = why;
            return Promise.resolve('idle' as const);
          },
        });
      },
      discard: (subagentId) => void discarded.push(subagentId),
    },
    plan: ({ args }) => args,
    ...options,
  });
  const scope = {};
  let count = 0;
  const start = async (
    args: Record<string, unknown> = {},
    {
      of = scope,
      resume,
      id = `task-${(count += 1)}`,
    }: { of?: object; resume?: string; id?: string } = {},
  ) => {
    const events: RelayEvent[] = [];
    const session = await manager.relay.start({
      subagentId: id,
      ...(resume === undefined ? {} : { resume }),
      task: { toolName: 'ask', args, description: 'a task', scope: of },
      signal: new AbortController().signal,
      scheduler: environment.scheduler,
      ids: environment.ids,
      receive: (event) => void events.push(event),
      report: (error) => {
        throw error;
      },
    });
    return { session, events, agent: agents.at(-1)! };
  };
  /** Runs a task that completes. */
  const done = async (args: Record<string, unknown> = {}, options = {}) => {
    const { session, agent, events } = await start(args, options);
    session.prompt({ key: 'k', text: 'go' });
    agent.send({ type: 'words', text: 'Done.' });
    agent.send({ type: 'turn_ended', reason: 'completed' });
    await session.release('ended');
    return { session, agent, events };
  };
  return { manager, environment, sent, discarded, agents, unknown, start, done };
}

describe('threads', { tags: ['B79', 'B80'] }, () => {
  test("continues in the conversation and the folder of the topic's last task", async () => {
    const { done, agents, manager } = manual();
    await done({ topic: 'mail' });
    await done({ topic: 'mail' });
    await done({ topic: 'other' });
    await done();
    expect(agents.map(({ as, resume, released }) => [as, resume, released])).toEqual([
      ['task-1', undefined, 'suspended'],
      ['task-1', 'session-1', 'suspended'],
      ['task-3', undefined, 'suspended'],
      ['task-4', undefined, 'ended'],
    ]);
    expect(manager.stats()).toEqual({
      running: 0,
      waiting: 0,
      threads: [
        { topic: 'mail', sessionId: 'session-1', tasks: 2 },
        { topic: 'other', sessionId: 'session-3', tasks: 1 },
      ],
    });
  });

  test('keeps the threads of different sessions separate (TASK-MANAGER-1)', async () => {
    const { done, agents } = manual();
    await done({ topic: 'mail' });
    await done({ topic: 'mail' }, { of: {} });
    expect(agents.map(({ as, resume }) => [as, resume])).toEqual([
      ['task-1', undefined],
      ['task-2', undefined],
    ]);
  });

  it("passes the session's latest topic to the plan until its thread is dropped", async () => {
    const given: (string | undefined)[] = [];
    const { done, environment } = manual({
      threadTtlMs: 60_000,
      plan: ({ args }, latestTopic) => {
        given.push(latestTopic);
        return args;
      },
    });
    await done({ topic: 'mail' });
    await done({}, { of: {} });
    await done();
    await done({ topic: 'calendar' });
    await done();
    await environment.advance(60_000);
    await done();
    expect(given).toEqual([undefined, undefined, 'mail', 'mail', 'calendar', undefined]);
  });

  test("does not create a thread for a failed task and keeps the topic's previous thread (TASK-MANAGER-2)", async () => {
    const { done, start, agents, manager } = manual();
    const fail = async () => {
      const { session, agent } = await start({ topic: 'mail' });
      session.prompt({ key: 'k', text: 'go' });
      agent.send({ type: 'turn_ended', reason: 'failed' });
      await session.release('ended');
    };
    await fail();
    expect(agents[0]?.released).toBe('ended');
    await done({ topic: 'mail' });
    await fail();
    expect(manager.stats().threads).toEqual([{ topic: 'mail', sessionId: 'session-2', tasks: 1 }]);
  });

  test("interrupts a cancelled task's turn before it releases the thread", async () => {
    const { done, start, agents, sent } = manual();
    await done({ topic: 'mail' });
    const { session, events } = await start({ topic: 'mail' });
    session.prompt({ key: 'k', text: 'go' });
    expect(await session.release('ended')).toBe('cancelled');
    expect(sent.at(-1)).toBe('2: interrupted');
    expect(events).toEqual([]);
    expect(agents[1]?.released).toBe('suspended');
  });

  test('starts a new thread if the agent no longer knows the old one, unless the task is resumed', async () => {
    const { done, start, agents, unknown } = manual();
    await done({ topic: 'mail' });
    unknown.add('session-1');
    await done({ topic: 'mail' });
    expect(agents[1]).toMatchObject({ as: 'task-2', resume: undefined });
    await expect(start({ topic: 'mail' }, { resume: 'task-1/session-1' })).rejects.toThrow(
      'unknown',
    );
  });

  test("resumes a task in its thread's folder in another process", async () => {
    const before = manual();
    await before.done({ topic: 'mail' });
    const { session } = await before.start({ topic: 'mail' });
    const after = manual();
    await after.start({ topic: 'mail' }, { resume: session.id, id: 'task-2' });
    expect(after.agents).toMatchObject([{ as: 'task-1', resume: 'session-1' }]);
  });

  test('drops an unused thread with its folder, and the oldest threads beyond the limit', async () => {
    const { done, environment, manager, discarded } = manual({
      threadTtlMs: 60_000,
      maxThreads: 2,
    });
    await done({ topic: 'a' });
    await done({ topic: 'b' });
    await done({ topic: 'c' });
    expect(discarded).toEqual(['task-1']);
    await environment.advance(60_000);
    expect(manager.stats().threads).toEqual([]);
    expect(discarded).toEqual(['task-1', 'task-2', 'task-3']);
    expect(environment.pendingTimers).toBe(0);
  });

  test('reports that it cannot remove a folder, and continues', async () => {
    const relay = scriptedRelay();
    const environment = simulatedEnvironment();
    const { relay: managed } = taskManager({
      clock: environment.clock,
      threadTtlMs: 60_000,
      plan: () => ({ topic: 'mail' }),
      relay: {
        ...relay,
        start: (start) => relay.start(start),
        discard() {
          throw new Error('not yours');
        },
      },
    });
    const errors: string[] = [];
    const { promise: ended, resolve } = Promise.withResolvers<RelayEvent>();
    const session = await managed.start({
      subagentId: 'task-1',
      task: { toolName: 'ask', args: {}, description: 'a task', scope: {} },
      signal: new AbortController().signal,
      scheduler: environment.scheduler,
      ids: environment.ids,
      receive: (event) => event.type === 'turn_ended' && resolve(event),
      report: (error) => void errors.push(String(error)),
    });
    session.prompt({ key: 'k', text: actsPrompt({ say: 'Done.' }) });
    await ended;
    await session.release('ended');
    await environment.advance(60_000);
    expect(errors).toEqual(['Error: not yours']);
  });

  test("runs a topic's tasks in sequence and reports that the second one is waiting", async () => {
    const { start, agents, environment } = manual();
    const first = await start({ topic: 'mail' });
    const second = start({ topic: 'mail' });
    await environment.settle();
    expect(agents).toHaveLength(1);
    await first.session.release('ended');
    const { events: told } = await second;
    expect(told).toEqual([{ type: 'progress', text: 'It waits for its turn: 0 before it' }]);
  });

  test('lets a task use another relay with the same capabilities', async () => {
    const own = scriptedRelay({ capabilities: { steers: false } });
    const { start, agents } = manual();
    await start({ relay: own });
    expect([own.running, agents.length]).toEqual([1, 0]);
    await expect(start({ relay: scriptedRelay() })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('`steers`'),
    });
    await expect(start({ topic: 7 })).rejects.toThrow('topic');
  });
});

describe('answers', { tags: ['B80', 'B82'] }, () => {
  test('repeats the request once after an empty answer (MANAGED-2)', async () => {
    const { start, sent } = manual();
    const { session, agent, events } = await start();
    session.prompt({ key: 'k', text: 'go' });
    agent.send({ type: 'words', text: ' \n' });
    agent.send({ type: 'turn_ended', reason: 'completed' });
    expect(sent).toEqual(['1: go', expect.stringContaining('1: Your answer was empty')]);
    agent.send({ type: 'turn_ended', reason: 'completed' });
    expect(sent).toHaveLength(2);
    expect(events.at(-1)).toEqual({ type: 'turn_ended', reason: 'completed' });
  });

  test("asks the user a question found in the agent's text and sends the answer as the next prompt", async () => {
    const { start, sent } = manual({ questionIn: (words) => (words.endsWith('?') ? words : null) });
    const { session, agent, events } = await start();
    session.prompt({ key: 'k', text: 'go' });
    agent.send({ type: 'words', text: 'Which one?' });
    agent.send({ type: 'turn_ended', reason: 'completed' });
    expect(events.at(-1)).toEqual({ type: 'question', requestId: 'words-1', text: 'Which one?' });
    session.answer('words-1', { type: 'answered', text: 'The red one' });
    session.answer('words-1', { type: 'answered', text: 'again' });
    expect(sent.slice(1)).toEqual(['1: The red one', '1: words-1 answered']);
    agent.send({ type: 'words', text: 'Done.' });
    agent.send({ type: 'turn_ended', reason: 'completed' });
    expect(events.at(-1)).toEqual({ type: 'turn_ended', reason: 'completed' });
  });

  test.each(['interrupted', 'not answered'])(
    "ends the turn if a question found in the agent's text is %s",
    async (how) => {
      const { start } = manual({ questionIn: (words) => words });
      const { session, agent, events } = await start();
      session.prompt({ key: 'k', text: 'go' });
      agent.send({ type: 'words', text: 'Which one?' });
      agent.send({ type: 'turn_ended', reason: 'completed' });
      if (how === 'interrupted') session.interrupt();
      else session.answer('words-1', { type: 'cancelled' });
      const reason = how === 'interrupted' ? 'cancelled' : 'completed';
      expect(events.at(-1)).toEqual({ type: 'turn_ended', reason });
    },
  );
});

describe('caps', { tags: ['B79', 'B82'] }, () => {
  test('ends a turn exactly once at a token or cost limit (MANAGED-1)', async () => {
    const { start, sent } = manual({
      caps: { cost: 2 },
      price: ({ inputTokens, outputTokens }) => inputTokens / 1_000 + outputTokens / 100,
    });
    const { session, agent, events } = await start();
    session.prompt({ key: 'k', text: 'go' });
    agent.send({ type: 'usage', inputTokens: 500, outputTokens: 100 });
    expect(sent).toEqual(['1: go']);
    agent.send({ type: 'usage', inputTokens: 500, outputTokens: 0 });
    agent.send({ type: 'usage', inputTokens: 500, outputTokens: 0 });
    expect(sent).toEqual(['1: go', '1: interrupted']);
    expect(events.filter(({ type }) => type === 'turn_ended')).toEqual([
      { type: 'turn_ended', reason: 'limit', message: 'it cost 2 of 2' },
    ]);
  });

  test('does not count time spent in the queue or during a question', async () => {
    const { start, environment } = manual({ caps: { timeMs: 1_000 } });
    const { session, agent, events: told } = await start();
    session.prompt({ key: 'k', text: 'go' });
    await environment.advance(600);
    agent.send({ type: 'question', requestId: 'q', text: 'Which?' });
    await environment.advance(60_000);
    session.answer('q', { type: 'answered', text: 'This' });
    await environment.advance(399);
    expect(told.some(({ type }) => type === 'turn_ended')).toBe(false);
    await environment.advance(1);
    expect(told.at(-1)).toMatchObject({ type: 'turn_ended', reason: 'limit' });
    await session.release('ended');
    expect(environment.pendingTimers).toBe(0);
  });

  test('continues to count for a task after its connection was lost', async () => {
    const { start } = manual({ caps: { tokens: 100 } });
    const { session, agent } = await start({}, { id: 'a' });
    session.prompt({ key: 'k', text: 'go' });
    agent.send({ type: 'usage', inputTokens: 60, outputTokens: 0 });
    agent.send({ type: 'closed', message: 'killed' });
    await session.release('suspended');
    const again = await start({}, { id: 'a', resume: session.id });
    again.session.prompt({ key: 'k2', text: 'go on' });
    again.agent.send({ type: 'usage', inputTokens: 40, outputTokens: 0 });
    expect(again.events.at(-1)).toMatchObject({
      reason: 'limit',
      message: 'it used 100 of 100 tokens',
    });
  });
});

describe('a subagent on a task manager', () => {
  function run(
    script: (prompt: string) => readonly RelayAct[],
    options: Partial<TaskManagerOptions> = {},
    config: Partial<SubagentConfig> = {},
  ) {
    const relay = scriptedRelay({ script } satisfies ScriptedRelayOptions);
    const environment = simulatedEnvironment();
    const manager = taskManager({ relay, clock: environment.clock, ...options });
    const asked: string[] = [];
    const runtime = createRuntime({ environment, journal: memoryJournal() });
    const begin = (task = 'the task') =>
      runSubagent(
        { name: 'coder', instructions: 'You write code.', relay: manager.relay, ...config },
        task,
        {
          runtime,
          onQuestion: ({ question }): Promise<GivenAnswer> => {
            asked.push(question);
            return Promise.resolve({ text: 'the red one' });
          },
        },
      ).result;
    return { relay, manager, asked, begin };
  }

  test('asks a question in its text, receives the answer, completes and frees its place', async () => {
    const { begin, asked, manager } = run(
      (prompt) => (prompt === 'the red one' ? [{ say: 'Painted.' }] : [{ say: 'Which colour?' }]),
      { questionIn: (words) => (words.endsWith('?') ? words : null) },
    );
    expect(await begin()).toMatchObject({ status: 'completed', text: 'Painted.' });
    expect(asked).toEqual(['Which colour?']);
    expect(manager.stats()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('prompts again if the agent says nothing', async () => {
    const { begin, relay } = run((prompt) =>
      prompt.includes('empty') ? [{ say: 'Two files.' }] : [],
    );
    expect(await begin()).toMatchObject({ status: 'completed', text: 'Two files.' });
    expect(relay.told.filter(({ type }) => type === 'prompt')).toHaveLength(2);
  });

  test('restarts an agent that has died and frees its places', async () => {
    let lives = 0;
    const { begin, manager } = run(
      () => ((lives += 1) === 1 ? [{ die: true }] : [{ say: 'Done.' }]),
      { maxRunning: 1 },
      { retry: { maxAttempts: 3, baseDelayMs: 0 } },
    );
    expect(await begin()).toMatchObject({ status: 'completed', text: 'Done.' });
    expect(manager.stats()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('completes many tasks with few places', async () => {
    let most = 0;
    const { begin, relay } = run(
      (prompt) => {
        most = Math.max(most, relay.running);
        return actsIn(prompt);
      },
      { maxRunning: 3 },
    );
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => begin(actsPrompt({ say: `task ${at}` }))),
    );
    expect(all.every(({ status }) => status === 'completed')).toBe(true);
    expect(most).toBe(3);
  });
});

test.each([
  [{}, 'relay'],
  [{ relay: {} }, 'a relay'],
  [{ relay: scriptedRelay(), maxRunning: 0 }, 'maxRunning'],
  [{ relay: scriptedRelay(), caps: { money: 1 } }, 'money'],
  [{ relay: scriptedRelay(), runs: 'jobs' }, 'runs'],
])('invalid options are refused by name: %o', (options, name) => {
  expect(() => taskManager(options as never)).toThrow(name);
});
