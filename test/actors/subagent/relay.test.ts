// A subagent whose work is done by a third-party agent (RELAY-LOOP-1..5): the states, approvals, limits and ledger are
// the same, and recovery depends on what the agent can do.

import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import {
  createRuntime,
  defineSubagent,
  defineTool,
  TextSession,
  type GivenAnswer,
} from '../../../src/index.ts';
import { relayLoop } from '../../../src/actors/subagent/relay-loop.ts';
import {
  runSubagent,
  type RunSubagentOptions,
} from '../../../src/actors/subagents/run-subagent.ts';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import {
  actsPrompt,
  scriptedModel,
  scriptedRelay,
  simulatedEnvironment,
  type RelayAct,
  type ScriptedRelayOptions,
} from '../../../src/testing/index.ts';
import type { SubagentConfig } from '../../../src/index.ts';
import { loneSubagent } from '../../support/lone-subagent.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import {
  THE_LEAD,
  type Relay,
  type RelayAnswer,
  type RelayEvent,
  createSubagentService,
} from '../../../src/entries/subagents.ts';

const EDIT = { title: 'Edit notes.txt', kind: 'edit', input: { path: 'notes.txt', text: 'hi' } };
const BOOK = { title: 'Book a ride', kind: 'execute', input: { to: 'airport' } };

/** A subagent on a scripted agent whose questions the test answers. */
function relayed(acts: readonly RelayAct[], options: ScriptedRelayOptions = {}) {
  const relay = scriptedRelay(options);
  const environment = simulatedEnvironment();
  const journal = memoryJournal();
  let current = 0;
  const asked: AskedQuestion[] = [];
  const withdrawn: string[] = [];
  const answers: ((answer: GivenAnswer | null) => void)[] = [];
  const errors: string[] = [];
  const doubts: unknown[] = [];
  const progress: string[] = [];
  const handlers: Partial<RunSubagentOptions> = {
    onQuestion: (question, signal) => {
      asked.push(question);
      signal.addEventListener('abort', () => withdrawn.push(question.requestId));
      return new Promise<GivenAnswer | null>((resolve) => answers.push(resolve));
    },
    onCallInDoubt: ({ toolName, input }) => void doubts.push([toolName, input]),
    onError: (error) => void errors.push(String(error)),
    onProgress: ({ update }) => void progress.push(update),
  };
  const process = () => {
    const number = (current += 1);
    return createRuntime({
      environment,
      journal: {
        ...journal,
        read: (query) => journal.read(query),
        // A killed process writes nothing.
        append: (entry) =>
          number === current ? journal.append(entry) : new Promise<never>(() => {}),
      },
    });
  };
  let runtime = process();
  const config: SubagentConfig = { name: 'coder', instructions: 'You write code.', relay };
  const begin = (more: Partial<SubagentConfig> = {}, task = actsPrompt(...acts)) =>
    runSubagent({ ...config, ...more }, task, { runtime, id: 'run', ...handlers });
  return {
    relay,
    environment,
    asked,
    withdrawn,
    errors,
    doubts,
    progress,
    begin,
    answer: (answer: GivenAnswer | null) => answers.shift()?.(answer),
    /** Starts another process on the same journal, as if this one had been killed. */
    another: () => {
      runtime = process();
    },
    told: (type: string) => relay.told.filter((one) => one.type === type),
  };
}

const prompts = (relay: ReturnType<typeof scriptedRelay>): string[] =>
  relay.told.flatMap((one) => (one.type === 'prompt' ? [one.text] : []));

describe('a turn', () => {
  test("returns the agent's text as the result, and releases the agent", async () => {
    const { begin, relay } = relayed([
      { progress: 'looking' },
      { say: 'All is ' },
      { say: 'well.' },
    ]);
    const outcome = await begin().result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'All is well.' });
    expect(relay.running).toBe(0);
    expect(prompts(relay)).toHaveLength(1);
    expect(prompts(relay)[0]).toContain('You write code.');
  });

  test('includes the text of the earlier conversation, even text next to an image', async () => {
    const { relay, environment } = relayed([]);
    const service = createSubagentService({ runtime: createRuntime({ environment }) });
    service.spawn({
      config: { name: 'coder', instructions: 'You write code.', relay },
      task: { toolName: 'coder', description: 'code', args: {} },
      caller: THE_LEAD,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'file', mediaType: 'image/png', data: new Uint8Array([1]) },
            { type: 'text', text: 'Paint it blue.' },
          ],
        },
      ],
    });
    await environment.settle();
    expect(prompts(relay)[0]).toContain('Paint it blue.');
    await Promise.all([service.close(), environment.advance(10_000)]);
  });

  test('reports each progress message of the agent to the program once, while the agent is working', async () => {
    const { begin, progress, environment } = relayed([
      { progress: 'looking' },
      { untilCancelled: true },
    ]);
    const run = begin();
    await environment.settle();
    await environment.advance(1_000);
    expect(progress).toEqual(['looking']);
    run.cancel('enough');
    await run.result;
    expect(progress).toEqual(['looking']);
  });

  test('reports progress even if the agent asks a question or ends immediately afterwards', async () => {
    const { begin, progress, environment, answer } = relayed([
      { progress: 'looking' },
      { question: 'Which one?' },
      { progress: 'booking' },
      { say: 'Done.' },
    ]);
    const { result } = begin();
    await environment.settle();
    expect(progress).toEqual(['looking']);
    answer({ text: 'The first' });
    await environment.settle();
    expect((await result).status).toBe('completed');
    expect(progress[0]).toBe('looking');
    expect(progress.length).toBeLessThanOrEqual(2);
  });

  test('lists the tools of the agent in the ledger', async () => {
    const { begin } = relayed([{ tool: EDIT }, { tool: BOOK, fails: true }, { say: 'Done.' }]);
    const outcome = await begin().result;
    expect(outcome.text).toBe('Done.');
    expect(outcome.toolLedger.filter(({ toolName }) => toolName === 'agent_tool')).toEqual([
      expect.objectContaining({ input: EDIT, status: 'ok', output: 'done' }),
      expect.objectContaining({ input: BOOK, status: 'error' }),
    ]);
  });

  test.each(['refused', 'limit', 'failed', 'cancelled'] as const)(
    'fails when it ends as %s',
    async (end) => {
      const { begin } = relayed([{ say: 'Half.' }, { end }]);
      const outcome = await begin().result;
      expect(outcome).toMatchObject({
        status: 'failed',
        error: { code: `RELAY_${end.toUpperCase()}`, retryable: false },
      });
    },
  );

  test('fails when the agent produces no text', async () => {
    const { begin } = relayed([]);
    expect(await begin().result).toMatchObject({ error: { code: 'EMPTY_OUTPUT' } });
  });
});

describe('a permission', () => {
  test('becomes an approval of one call, whose answer is sent to the agent', async () => {
    const { begin, asked, answer, environment, told } = relayed([{ permission: EDIT }]);
    const { result } = begin();
    await environment.settle();
    expect(asked).toEqual([
      expect.objectContaining({
        kind: 'approval',
        action: { toolName: 'agent_tool', input: EDIT },
        question: 'May the agent do this (edit): "Edit notes.txt" (path: "notes.txt", text: "hi")?',
      }),
    ]);
    expect(told('answer')).toEqual([]);
    answer({ approved: true });
    const outcome = await result;
    expect(told('answer')).toEqual([
      expect.objectContaining({ requestId: 'request-1', answer: { type: 'permitted' } }),
    ]);
    expect(outcome.toolLedger.at(-1)).toMatchObject({
      input: EDIT,
      status: 'ok',
      approval: 'given',
      output: 'done',
    });
    expect(outcome.text).toBe('permitted. ');
  });

  it.each([
    ['arguments', { ...EDIT, input: { text: `echo ${' '.repeat(2_000)}; rm -rf ~` } }],
    ['a title', { ...EDIT, title: `echo ${' '.repeat(2_000)}; rm -rf ~`, input: null }],
  ])('keeps %s that is too long to be said whole for its buttons', async (_, permission) => {
    const { begin, asked, environment } = relayed([{ permission }]);
    void begin();
    await environment.settle();
    expect(asked[0]).toMatchObject({
      byButton: true,
      question: expect.stringContaining('too long to be said'),
      action: { toolName: 'agent_tool', input: permission },
    });
  });

  it("makes invisible characters in the agent's text visible to the user", async () => {
    const { begin, asked, environment } = relayed([
      { permission: { ...EDIT, title: 'Edit \u202etxt.seton', input: { path: 'n\u200bote' } } },
    ]);
    void begin();
    await environment.settle();
    expect(asked[0]?.question).toBe(
      'May the agent do this (edit): "Edit \\u202etxt.seton" (path: "n\\u200bote")?',
    );
  });

  test('reaches the agent as a denial when the user denies it', async () => {
    const { begin, answer, environment, told } = relayed([{ permission: EDIT }]);
    const { result } = begin();
    await environment.settle();
    answer({ approved: false });
    const outcome = await result;
    expect(told('answer')).toEqual([
      expect.objectContaining({ answer: { type: 'denied', words: 'No' } }),
    ]);
    expect(outcome.toolLedger.at(-1)).toMatchObject({ status: 'denied', approval: 'denied' });
  });

  test('ends as denied when the agent ends its turn after a denial', async () => {
    const { begin, answer, environment } = relayed([{ permission: EDIT }, { end: 'cancelled' }]);
    const { result } = begin();
    await environment.settle();
    answer({ approved: false });
    expect(await result).toMatchObject({ status: 'failed', error: { code: 'RELAY_DENIED' } });
  });

  test('counts as denied when it expires', async () => {
    const { begin, environment, told } = relayed([{ permission: EDIT }]);
    const { result } = begin({ inputTimeout: 1_000 });
    await environment.settle();
    await environment.advance(1_000);
    await result;
    expect(told('answer')).toEqual([
      expect.objectContaining({ answer: expect.objectContaining({ type: 'denied' }) }),
    ]);
  });

  test('accepts an approval that the author gave in advance', async () => {
    const { begin, asked } = relayed([{ permission: EDIT }]);
    const when = (input: unknown): boolean => (input as { kind: string }).kind === 'edit';
    const outcome = await begin({ preApproved: [{ tool: 'agent_tool', when }] }).result;
    expect(asked).toEqual([]);
    expect(outcome.toolLedger.at(-1)).toMatchObject({ approval: 'pre_authorised' });
  });
});

describe('a running tool that requests permission', () => {
  /** As with Codex, `in_progress` arrives before the request. */
  function stage() {
    const environment = simulatedEnvironment();
    const doubts: string[] = [];
    const asked: ((answer: GivenAnswer) => void)[] = [];
    let receive: (event: RelayEvent) => void = () => {};
    let answered: RelayAnswer | null = null;
    const relay: Relay = {
      name: 'an agent',
      capabilities: { ...scriptedRelay().capabilities },
      loop: scriptedRelay().loop,
      start: (start) => {
        ({ receive } = start);
        return Promise.resolve({
          id: 's',
          isRunning: false,
          prompt: () => {},
          steer: () => {},
          answer: (_requestId, answer) => void (answered = answer),
          interrupt: () => receive({ type: 'turn_ended', reason: 'cancelled' }),
          release: () => Promise.resolve('idle'),
        });
      },
    };
    const { result } = runSubagent(
      { name: 'coder', instructions: 'You write code.', relay, retry: { baseDelayMs: 0 } },
      'the task',
      {
        runtime: createRuntime({ environment, journal: memoryJournal() }),
        onQuestion: () => new Promise<GivenAnswer>((resolve) => asked.push(resolve)),
        onCallInDoubt: ({ input }) => void doubts.push(JSON.stringify(input)),
      },
    );
    const send = async (...events: readonly RelayEvent[]): Promise<void> => {
      await environment.settle();
      for (const event of events) receive(event);
      await environment.settle();
    };
    return { environment, doubts, asked, result, send, answer: () => answered };
  }
  const TOOL = { toolId: 't', ...EDIT };
  const ASKS: readonly RelayEvent[] = [
    { type: 'tool_started', ...TOOL },
    { type: 'permission', requestId: 'r', ...TOOL },
  ];
  const DONE: readonly RelayEvent[] = [
    { type: 'words', text: 'Done.' },
    { type: 'turn_ended', reason: 'completed' },
  ];

  test('does not count as in doubt if the connection ends before the permission is answered', async () => {
    const { doubts, result, send } = stage();
    await send(...ASKS);
    await send({ type: 'closed', message: 'killed' });
    await send(...DONE);
    expect((await result).status).toBe('completed');
    expect(doubts).toEqual([]);
  });

  test('does not count as in doubt if it was permitted and finished before the connection ended', async () => {
    const { asked, doubts, result, send, answer } = stage();
    await send(...ASKS);
    asked[0]?.({ approved: true });
    await send();
    expect(answer()).toEqual({ type: 'permitted' });
    await send({ type: 'tool_ended', toolId: 't', ok: true, output: 'done' });
    await send({ type: 'closed', message: 'killed' });
    await send(...DONE);
    const { status, toolLedger } = await result;
    expect(status).toBe('completed');
    expect(doubts).toEqual([]);
    expect(toolLedger.at(-1)).toMatchObject({ approval: 'given', output: 'done' });
  });

  test('counts as in doubt if the connection ends after it has been permitted', async () => {
    const { asked, doubts, result, send } = stage();
    await send(...ASKS);
    asked[0]?.({ approved: true });
    await send();
    await send({ type: 'closed', message: 'killed' });
    await send(...DONE);
    expect((await result).status).toBe('completed');
    expect(doubts).toHaveLength(1);
  });
});

describe('a question', () => {
  const options = [
    { id: 'early', label: 'At eight' },
    { id: 'late', label: 'At nine' },
  ];

  test('reaches the user with its options', async () => {
    const { begin, asked, answer, environment } = relayed([{ question: 'When?', options }]);
    const { result } = begin();
    await environment.settle();
    expect(asked).toEqual([
      expect.objectContaining({ kind: 'question', question: 'When?', options }),
    ]);
    answer({ optionId: 'late' });
    expect((await result).text).toBe('answer: late. ');
  });

  test('returns “no answer” to the agent when the user does not answer', async () => {
    const { begin, answer, environment } = relayed([{ question: 'When?', options }]);
    const { result } = begin();
    await environment.settle();
    answer(null);
    expect((await result).text).toBe('no answer. ');
  });

  test('does not reach the user if the subagent is not interactive', async () => {
    const { begin, asked } = relayed([{ question: 'When?' }]);
    expect((await begin({ interactive: false }).result).text).toBe('no answer. ');
    expect(asked).toEqual([]);
  });

  test('ends as withdrawn when the agent ends', async () => {
    const { begin, asked, withdrawn, environment, relay, errors } = relayed([
      { question: 'When?' },
    ]);
    const { result } = begin({ retry: { maxAttempts: 1 } });
    await environment.settle();
    relay.kill();
    expect(await result).toMatchObject({ status: 'failed', error: { code: 'RELAY_CLOSED' } });
    expect(withdrawn).toEqual([asked[0]?.requestId]);
    expect(errors).toEqual([]);
  });
});

describe('the end of a run', () => {
  test('cancels the agent, and releases it', async () => {
    const { begin, environment, relay } = relayed([{ untilCancelled: true }]);
    const run = begin();
    await environment.settle();
    run.cancel('enough');
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect(relay.running).toBe(0);
    expect(relay.told.at(-1)).toMatchObject({ type: 'release', how: 'cancelled' });
  });

  test('kills an agent that does not stop within its grace period', async () => {
    const { begin, environment, relay } = relayed([{ deaf: true }, { untilCancelled: true }]);
    const run = begin();
    await environment.settle();
    run.cancel('enough');
    await environment.advance(1_000);
    await run.result;
    expect(relay.told.at(-1)).toMatchObject({ type: 'release', how: 'killed' });
  });

  test("occurs at the subagent's time limit", async () => {
    const { begin, environment, relay } = relayed([{ untilCancelled: true }]);
    const { result } = begin({ timeout: 5_000 });
    await environment.settle();
    await environment.advance(5_000);
    expect(await result).toMatchObject({ status: 'timed_out' });
    expect(relay.running).toBe(0);
  });

  test('includes the partial text of an agent that has used up its budget', async () => {
    const { begin } = relayed([{ say: 'Half of it.' }, { tool: EDIT }, { untilCancelled: true }]);
    const outcome = await begin({ budget: { steps: 2 } }).result;
    expect(outcome).toMatchObject({ partial: 'Half of it.' });
  });
});

describe('the cost that an agent reports', () => {
  /** A relay that reports the cost of each of its tools. */
  const charging = (relay: Relay, cost: number): Relay => ({
    ...relay,
    start: ({ receive, ...options }) =>
      relay.start({
        ...options,
        receive: (event) => {
          if (event.type === 'tool_started')
            receive({
              type: 'usage',
              inputTokens: 10,
              outputTokens: 5,
              cachedInputTokens: 4,
              cacheWriteTokens: 2,
              reasoningTokens: 3,
              cost,
            });
          receive(event);
        },
      }),
  });

  test("becomes the outcome's cost, without a call to `price`", async () => {
    const { begin, relay } = relayed([{ tool: EDIT }, { tool: BOOK }, { say: 'Done.' }]);
    const config = { relay: charging(relay, 0.75), budget: { cost: 10 } };
    expect(await begin(config).result).toMatchObject({
      status: 'completed',
      usage: {
        cost: 1.5,
        inputTokens: 20,
        cachedInputTokens: 8,
        cacheWriteTokens: 4,
        reasoningTokens: 6,
      },
    });
  });

  test('counts against the budget', async () => {
    const { begin, relay } = relayed([
      { say: 'Half of it.' },
      { tool: EDIT },
      { tool: BOOK },
      { untilCancelled: true },
    ]);
    const outcome = await begin({ relay: charging(relay, 0.75), budget: { cost: 1 } }).result;
    expect(outcome).toMatchObject({
      partial: 'Half of it.',
      error: { code: 'BUDGET_EXHAUSTED', message: expect.stringContaining('cost') },
    });
  });
});

describe('an agent whose process ends', () => {
  test('resumes with a note that the connection was lost and its running tool is in doubt', async () => {
    let turns = 0;
    const { begin, environment, relay, doubts } = relayed([], {
      script: () =>
        (turns += 1) === 1 ? [{ tool: EDIT, untilCancelled: true }] : [{ say: 'Finished.' }],
    });
    const { result } = begin();
    await environment.settle();
    relay.kill();
    await environment.settle();
    await environment.advance(60_000);
    const outcome = await result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'Finished.' });
    expect(prompts(relay)[1]).toContain('Find out what is done before you repeat anything');
    expect(doubts).toEqual([['agent_tool', EDIT]]);
    expect(outcome.toolLedger).toContainEqual(
      expect.objectContaining({ input: EDIT, status: 'in_flight' }),
    );
  });

  test('fails when it cannot resume', async () => {
    const { begin, environment, relay } = relayed([{ untilCancelled: true }], {
      capabilities: { resumes: false },
    });
    const { result } = begin();
    await environment.settle();
    relay.kill();
    expect(await result).toMatchObject({ status: 'failed', error: { code: 'RELAY_CLOSED' } });
    expect(prompts(relay)).toHaveLength(1);
  });

  test('fails when it sends too many events at once', async () => {
    const flood = Array.from({ length: 3_000 }, (): RelayAct => ({ tool: BOOK }));
    const { begin } = relayed(flood, { capabilities: { resumes: false } });
    expect(await begin().result).toMatchObject({
      error: {
        code: 'RELAY_CLOSED',
        message: expect.stringContaining('more than 2000 events at once'),
      },
    });
  });

  test('reports an event that cannot be read, and continues the turn', async () => {
    const { begin, errors } = relayed([{ garbage: true }, { say: 'Well.' }]);
    expect((await begin().result).text).toBe('Well.');
    expect(errors).toEqual([expect.stringContaining('got one that cannot be read')]);
  });

  test('RELAY-LOOP-5: reports a relay that throws while it refuses an unreadable event', async () => {
    const errors: string[] = [];
    const relay: Relay = {
      name: 'an agent',
      loop: relayLoop,
      capabilities: {
        openQuestionSurvives: false,
        resumes: false,
        steers: false,
        reportsTools: false,
      },
      start: ({ receive, scheduler }) =>
        Promise.resolve({
          id: 's1',
          isRunning: false,
          prompt() {
            receive({ type: 'permission', requestId: 'r1', title: 7 } as never);
            scheduler.schedule(() => {
              receive({ type: 'words', text: 'Well.' });
              receive({ type: 'turn_ended', reason: 'completed' });
            }, 1000);
          },
          steer() {},
          answer() {
            throw new Error('the agent is gone');
          },
          interrupt() {},
          release: () => Promise.resolve('idle'),
        }),
    };
    const environment = simulatedEnvironment();
    const { result } = runSubagent({ name: 'coder', instructions: '', relay }, 'Write', {
      runtime: createRuntime({ environment }),
      onError: (error) => void errors.push(String(error)),
    });
    await environment.settle();
    await environment.advance(1000);
    expect((await result).text).toBe('Well.');
    expect(errors).toEqual([
      expect.stringContaining('cannot be read'),
      expect.stringContaining('the agent is gone'),
    ]);
  });
});

describe('a message', () => {
  const lone = (acts: readonly RelayAct[], options: ScriptedRelayOptions = {}) => {
    let turns = 0;
    const relay = scriptedRelay({
      script: () => ((turns += 1) === 1 ? acts : [{ say: 'The second turn.' }]),
      ...options,
    });
    return { relay, ...loneSubagent({ relay }, () => ({ text: '' })) };
  };

  test('steers an agent that supports steering', async () => {
    const { relay, subagent, environment, result, receipts } = lone([{ untilCancelled: true }]);
    await environment.settle();
    subagent.message('m1', 'Be quick', 'steer');
    await environment.settle();
    expect(relay.told.at(-1)).toMatchObject({
      type: 'steer',
      text: expect.stringContaining('Be quick'),
    });
    expect(receipts()).toEqual([['applied', ['m1'], 3]]);
    subagent.cancel('enough');
    expect((await result).status).toBe('cancelled');
  });

  test('becomes the next prompt if the agent does not support steering', async () => {
    const { relay, subagent, environment, result } = lone([{ question: 'When?' }], {
      capabilities: { steers: false },
    });
    await environment.settle();
    subagent.message('m1', 'Be quick', 'steer');
    subagent.receive({ type: 'question.withdrawn', requestId: 'sub_1.q1' });
    expect((await result).text).toBe('no answer. \n\nThe second turn.');
    expect(prompts(relay)[1]).toContain('Be quick');
  });

  test('cancels an open question and ends the turn if it is an interrupting message', async () => {
    const { relay, subagent, environment, result } = lone([{ question: 'When?' }]);
    await environment.settle();
    subagent.message('m1', 'Never mind', 'interrupt');
    expect((await result).text).toBe('The second turn.');
    expect(relay.told.flatMap((one) => (one.type === 'answer' ? [one.answer] : []))).toEqual([
      { type: 'cancelled' },
    ]);
    expect(prompts(relay)[1]).toContain('Never mind');
  });

  test('ends the running turn first if it is an interrupting message', async () => {
    const { relay, subagent, environment, result } = lone([{ untilCancelled: true }]);
    await environment.settle();
    subagent.message('m1', 'Stop that', 'interrupt');
    expect((await result).text).toBe('The second turn.');
    expect(relay.told.map(({ type }) => type)).toEqual([
      'start', 'prompt', 'interrupt', 'prompt', 'release',
    ]); // prettier-ignore
    expect(prompts(relay)[1]).toContain('Stop that');
  });
});

describe('after this process has crashed', () => {
  test('withdraws an open question, and prompts the agent again', async () => {
    let turns = 0;
    const stage = relayed([], {
      script: () => [{ question: (turns += 1) === 1 ? 'When?' : 'When shall it come?' }],
    });
    const { begin, environment, another, asked, answer, relay } = stage;
    void begin();
    await environment.settle();
    expect(asked).toHaveLength(1);
    another();
    relay.kill();
    const { result } = begin();
    await environment.settle();
    // The question in the journal is asked again under its old id.
    expect(asked[1]?.requestId).toBe(asked[0]?.requestId);
    answer(null);
    answer({ text: 'At eight' });
    await environment.settle();
    expect(prompts(relay)[1]).toContain('At eight');
    expect(asked.at(-1)?.question).toBe('When shall it come?');
    answer({ text: 'At nine' });
    expect((await result).text).toBe('answer: At nine. ');
    expect(relay.told.filter(({ type }) => type === 'answer')).toHaveLength(1);
  });

  test('answers a question that survived the crash, without asking the user again', async () => {
    const stage = relayed([{ question: 'When?' }], {
      capabilities: { openQuestionSurvives: true },
    });
    const { begin, environment, another, asked, answer, relay } = stage;
    void begin();
    await environment.settle();
    another();
    relay.kill();
    const { result } = begin();
    await environment.settle();
    answer(null);
    answer({ text: 'At eight' });
    expect((await result).text).toBe('answer: At eight. ');
    expect(new Set(asked.map(({ requestId }) => requestId)).size).toBe(1);
    expect(prompts(relay)).toHaveLength(1);
  });

  test.each([
    [{ optionId: 'approve_lasting' }, { type: 'permitted', lasting: true }],
    [{ approved: true }, { type: 'permitted' }],
  ])(
    "passes on the user's decision about a permission that survived the crash: %j",
    async (given, passed) => {
      const stage = relayed([{ permission: EDIT, lasting: 'All edits' }], {
        capabilities: { openQuestionSurvives: true },
      });
      const { begin, environment, another, answer, relay } = stage;
      void begin();
      await environment.settle();
      another();
      relay.kill();
      const { result } = begin();
      await environment.settle();
      answer(null);
      answer(given);
      expect((await result).text).toBe('permitted. ');
      expect(relay.told.filter(({ type }) => type === 'answer')).toEqual([
        expect.objectContaining({ answer: passed }),
      ]);
    },
  );

  test('ignores a lasting permission that was not offered', async () => {
    const { begin, environment, answer, errors, relay } = relayed([{ permission: EDIT }]);
    const { result } = begin();
    await environment.settle();
    answer({ optionId: 'approve_lasting' });
    await environment.advance(600_000);
    await result;
    expect(errors.length).toBeGreaterThan(0);
    expect(relay.told.filter((one) => JSON.stringify(one).includes('permitted'))).toEqual([]);
  });

  test('does not apply an approval that may not have arrived to another request', async () => {
    let turns = 0;
    const stage = relayed([], {
      script: () =>
        (turns += 1) === 1
          ? [{ permission: EDIT }, { untilCancelled: true }]
          : [{ permission: EDIT }],
    });
    const { begin, environment, another, asked, answer, relay } = stage;
    void begin();
    await environment.settle();
    answer({ approved: true });
    await environment.settle();
    another();
    relay.kill();
    const { result } = begin();
    await environment.settle();
    expect(asked).toHaveLength(2);
    answer({ approved: false });
    await result;
    expect(relay.told.filter(({ type }) => type === 'answer')).toEqual([
      expect.objectContaining({ requestId: 'request-1', answer: { type: 'permitted' } }),
      expect.objectContaining({
        requestId: 'request-2',
        answer: expect.objectContaining({ type: 'denied' }),
      }),
    ]);
  });
});

describe('the configuration', () => {
  const relay = scriptedRelay();
  const base = { name: 'coder', instructions: 'You write code.' };

  test('refuses model options, and names them in the error', () => {
    for (const more of [{ tools: {} }, { lifetime: 'session' as const }, { toolTimeout: 5 }])
      expect(() => defineSubagent({ ...base, relay, ...more })).toThrow(
        new RegExp(`coder\\.${Object.keys(more)[0]}: expected none beside relay`),
      );
  });

  test.each([[{}], [7], [{ name: 'x', start() {} }], [{ ...base, start() {}, capabilities: {} }]])(
    'a subagent with the relay %j is refused',
    (value) => {
      expect(() => defineSubagent({ ...base, relay: value as unknown as Relay })).toThrow(
        /`relay`: expected a relay/,
      );
    },
  );

  it('refuses a relay without a step loop', () => {
    const { name, capabilities, start } = scriptedRelay();
    const bare = { name, capabilities, start } as unknown as Relay;
    expect(() => defineSubagent({ ...base, relay: bare })).toThrow(
      /`loop: relayLoop` of offstage\/subagents/,
    );
  });

  test('refuses `runs: jobs`, and names it in the error', () => {
    expect(() => defineSubagent({ ...base, relay, runs: 'jobs' })).toThrow(/runs/);
  });
});

describe('a session that a subagent leaves open', () => {
  test.each([
    ['continues after its agent died', 3, 'completed', 0],
    ['gives up when its agent has died', 1, 'failed', 1],
  ] as const)(
    'stays until the end of a subagent that %s',
    async (_how, maxAttempts, status, discards) => {
      const relay = scriptedRelay({
        script: (prompt) =>
          prompt.includes('connection ended') ? [{ say: 'Done.' }] : [{ die: true }],
      });
      const discarded: string[] = [];
      const releases: string[] = [];
      const own: Relay = {
        name: relay.name,
        capabilities: relay.capabilities,
        loop: relay.loop,
        start: async (start) => {
          const session = await relay.start(start);
          const release = session.release.bind(session);
          return Object.assign(session, {
            release: (why: 'ended' | 'suspended') => {
              releases.push(why);
              return release(why);
            },
          });
        },
        discard: (subagentId) => void discarded.push(subagentId),
      };
      const { begin } = relayed([]);
      const outcome = await begin({ relay: own, retry: { maxAttempts, baseDelayMs: 0 } }).result;
      expect(outcome.status).toBe(status);
      expect(releases).toEqual(discards === 1 ? ['suspended'] : ['suspended', 'ended']);
      expect(discarded).toHaveLength(discards);
    },
  );

  test('gets released if it opens after the subagent has been cancelled', async () => {
    const agent = scriptedRelay();
    const releases: string[] = [];
    const opening = Promise.withResolvers<void>();
    const relay: Relay = {
      name: agent.name,
      capabilities: agent.capabilities,
      loop: agent.loop,
      start: async (start) => {
        const session = await agent.start(start);
        await opening.promise;
        return Object.assign(session, {
          release: async (why: 'ended' | 'suspended') => void releases.push(why),
        });
      },
    };
    const { subagent, environment, result } = loneSubagent({ relay }, () => ({ text: '' }));
    await environment.settle();
    subagent.cancel('enough');
    expect((await result).status).toBe('cancelled');
    expect(releases).toEqual([]);
    opening.resolve();
    await environment.settle();
    expect(releases).toEqual(['suspended']);
  });
});

describe("the agent's prompt", () => {
  it.each([
    ['no conversation, facts or sibling tasks by default', {}, false],
    ['the conversation and facts that its configuration names', { context: 'snapshot' }, true],
  ] as const)('includes the task, and %s', async (_, named, readsConversation) => {
    const relay = scriptedRelay({ script: () => [{ say: 'The bug is fixed.' }] });
    const environment = simulatedEnvironment();
    const session = new TextSession({
      environment,
      model: scriptedModel([
        { text: 'Noted.' },
        { calls: [{ name: 'ask_coder', input: { task: 'fix it' } }] },
        { text: 'On it.' },
        { text: 'It is fixed.' },
      ]),
      agents: [
        {
          name: 'lead',
          instructions: 'You talk.',
          tools: [
            defineTool({
              name: 'ask_coder',
              description: 'Gives a task to the coder.',
              parameters: z.object({ task: z.string() }),
              execution: 'background',
            }),
          ],
        },
      ],
      subagentConfigs: {
        ask_coder: { name: 'coder', instructions: 'You write code.', relay, ...named },
      },
    });
    await session.start();
    await session.sendText('My pin is 1234.');
    // The first reply also answers a message that arrives before the reply starts.
    await environment.settle();
    await session.sendText('Fix it');
    await session.nextResult();
    const prompt = relay.told.find(({ type }) => type === 'prompt');
    expect(JSON.stringify(prompt)).toContain('fix it');
    expect(JSON.stringify(prompt).includes('1234')).toBe(readsConversation);
    await session.close();
  });
});
