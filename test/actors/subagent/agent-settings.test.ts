// `agentSubagent({ agent: settings })`: a subagent works like a `ToolLoopAgent` with the same settings (AGENT-LOOP-1 to
// -3). It refuses settings that it cannot follow and names them (AGENT-SETTINGS-1).

import type { LanguageModelV4CallOptions, LanguageModelV4Content } from '@ai-sdk/provider';
import {
  hasToolCall,
  isStepCount,
  tool,
  ToolLoopAgent,
  type ModelMessage,
  type StepResult,
  type ToolSet,
} from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memoryJournal } from '../../../src/actors/runtime/memory-journal.ts';
import type { AskedQuestion } from '../../../src/actors/contracts/records.ts';
import {
  createRuntime,
  defineSubagent,
  type GivenAnswer,
  type SubagentConfig,
} from '../../../src/index.ts';
import { agentSubagent, runSubagent } from '../../../src/entries/subagents.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const usage = {
  inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 },
};
const text = (words: string): LanguageModelV4Content => ({ type: 'text', text: words });
const call = (toolName: string, input: object, id = `${toolName}-1`): LanguageModelV4Content => ({
  type: 'tool-call',
  toolCallId: id,
  toolName,
  input: JSON.stringify(input),
});

/** A model that plays these steps, and then says that it has nothing to say. */
function saying(...steps: readonly (readonly LanguageModelV4Content[])[]) {
  const calls: LanguageModelV4CallOptions[] = [];
  const model = new MockLanguageModelV4({
    modelId: 'scripted',
    doGenerate: (options) => {
      const content = [...(steps[calls.length] ?? [text('Nothing.')])];
      calls.push(options);
      const unified = content.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
      return Promise.resolve({
        content,
        finishReason: { unified, raw: unified },
        usage,
        warnings: [],
      });
    },
  });
  return { model, calls };
}

const to = z.object({ to: z.string() });
const send = tool({ inputSchema: to, execute: ({ to: name }) => `sent to ${name}` });
const look = tool({ inputSchema: z.object({}), execute: () => ({ found: 2 }) });

function run(config: SubagentConfig, answer: GivenAnswer = { approved: true }) {
  const asked: AskedQuestion[] = [];
  const errors: string[] = [];
  const runtime = createRuntime({ environment: simulatedEnvironment(), journal: memoryJournal() });
  const { result } = runSubagent(config, 'Mail Ann', {
    runtime,
    id: 'run',
    onError: (error) => errors.push(String(error)),
    onQuestion: (question) => {
      asked.push(question);
      return Promise.resolve(answer);
    },
  });
  return { result, asked, errors };
}

/** Returns the fields of a step that an author's function reads. */
const read = ({
  stepNumber,
  model: { modelId },
  content,
  text: words,
  reasoningText,
  toolCalls,
  toolResults,
  finishReason,
  usage: { inputTokens, outputTokens, totalTokens },
}: StepResult<ToolSet>) => ({
  stepNumber,
  modelId,
  content: content.map(({ type }) => type),
  words,
  reasoningText,
  toolCalls: toolCalls.map(({ toolCallId, toolName, input }) => ({ toolCallId, toolName, input })),
  toolResults: toolResults.map(({ toolCallId, toolName, input, output }) => ({
    toolCallId,
    toolName,
    input: input as unknown,
    output: output as unknown,
  })),
  finishReason,
  usage: { inputTokens, outputTokens, totalTokens },
});

describe('a subagent with the settings of a ToolLoopAgent', () => {
  test('gives its functions and its model the same input as a ToolLoopAgent would', async () => {
    const scripted = () =>
      saying(
        [{ type: 'reasoning', text: 'Hm.' }, text('Looking.'), call('look', {})],
        [call('send', { to: 'Ann' }), call('fail', {})],
        [text('Sent.')],
      );
    const fail = tool({
      inputSchema: z.object({}),
      execute: (): string => {
        throw new Error('no');
      },
    });
    const tools = { look, send, fail };
    const settingsOf = (model: MockLanguageModelV4) => {
      const seen: unknown[] = [];
      return {
        seen,
        settings: {
          id: 'mailer',
          model,
          instructions: 'You mail.',
          tools,
          temperature: 0.25,
          topP: 0.5,
          seed: 7,
          maxOutputTokens: 99,
          stopSequences: ['END'],
          headers: { 'x-team': 'mail' },
          providerOptions: { acme: { cache: true, tier: 1 } },
          toolOrder: ['send' as const],
          runtimeContext: { tenant: 'a' },
          stopWhen: [
            ({ steps }: { steps: StepResult<typeof tools>[] }) => {
              seen.push(steps.map(read));
              return false;
            },
          ],
          prepareStep: (given: {
            stepNumber: number;
            messages: ModelMessage[];
            responseMessages: ModelMessage[];
            initialMessages: ModelMessage[];
            initialInstructions: unknown;
            instructions: unknown;
            runtimeContext: Record<string, unknown>;
            steps: StepResult<typeof tools>[];
          }) => {
            const { stepNumber, messages, responseMessages, initialMessages, steps } = given;
            const { instructions, initialInstructions, runtimeContext } = given;
            seen.push({
              stepNumber,
              messages: messages.slice(initialMessages.length),
              responseMessages,
              runtimeContext,
              instructions,
              initialInstructions,
              steps: steps.map(read),
            });
            return stepNumber === 1
              ? {
                  temperature: 0,
                  activeTools: ['send' as const, 'fail' as const],
                  toolChoice: 'required' as const,
                  providerOptions: { acme: { tier: 2 } },
                  instructions: 'You mail, and nothing else.',
                  runtimeContext: { tenant: 'b' },
                }
              : undefined;
          },
        },
      };
    };
    const ours = scripted();
    const theirs = scripted();
    const own = settingsOf(ours.model);
    const other = settingsOf(theirs.model);
    const { text: words } = await new ToolLoopAgent(other.settings).generate({
      prompt: 'Mail Ann',
    });
    const outcome = await run(agentSubagent({ agent: own.settings })).result;
    expect(outcome).toMatchObject({ status: 'completed', text: words });
    expect(own.seen).toEqual(other.seen);
    const settings = ({ prompt, headers, ...rest }: LanguageModelV4CallOptions) => ({
      ...rest,
      abortSignal: undefined,
      team: headers?.['x-team'],
      said: prompt.slice(2),
    });
    const [first, ...later] = ours.calls.map(settings);
    const [theirFirst, ...theirLater] = theirs.calls.map(settings);
    expect({ ...first, said: [] }).toEqual({ ...theirFirst, said: [] });
    // The subagent receives its task in a second message.
    const tail = (said: readonly { role: string }[]) =>
      said.slice(said.findIndex(({ role }) => role === 'assistant'));
    expect(later.map(({ said, ...rest }) => ({ ...rest, said: tail(said) }))).toEqual(
      theirLater.map(({ said, ...rest }) => ({ ...rest, said: tail(said) })),
    );
    expect(
      ours.calls.map(({ prompt }) => JSON.stringify(prompt[0]?.content).split('\\n')[1]),
    ).toEqual(['You mail.', 'You mail, and nothing else.', 'You mail, and nothing else.']);
  });

  test('requests the result without tools once a stop condition is met', async () => {
    const { model, calls } = saying(
      [call('look', {})],
      [call('send', { to: 'Ann' })],
      [text('Done.')],
    );
    const agent = { model, tools: { look, send }, stopWhen: [isStepCount(9), hasToolCall('send')] };
    const outcome = await run(agentSubagent({ name: 'mailer', agent })).result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.', steps: 3 });
    expect(calls.map(({ toolChoice }) => toolChoice?.type)).toEqual(['auto', 'auto', 'none']);
  });

  test('stops after 20 steps if there is no stop condition', async () => {
    const steps = Array.from({ length: 20 }, (_, at) => [call('look', {}, `look-${at}`)]);
    const { model, calls } = saying(...steps, [text('Enough.')]);
    const outcome = await run(agentSubagent({ name: 'mailer', agent: { model, tools: { look } } }))
      .result;
    expect(outcome).toMatchObject({ status: 'completed', text: 'Enough.' });
    expect(calls).toHaveLength(21);
  });

  test.each([
    ['with tools', undefined],
    ['without tools', []],
  ])(
    'fails when the model keeps calling tools after the stop condition, %s',
    async (_, activeTools) => {
      const { model } = saying([call('look', {})], [call('look', {}, 'look-2')]);
      const agent = {
        model,
        tools: { look },
        stopWhen: isStepCount(1),
        maxRetries: 0,
        prepareStep: ({ stepNumber }: { stepNumber: number }) =>
          stepNumber === 1 && activeTools ? { activeTools } : {},
      };
      const { error, toolLedger } = await run(agentSubagent({ name: 'mailer', agent })).result;
      expect(error?.code).toBe('TOOL_CHOICE_VIOLATION');
      expect(toolLedger.map(({ status }) => status)).toEqual(['ok']);
    },
  );

  test('still allows the completion tool after the stop condition', async () => {
    const { model, calls } = saying(
      [call('look', {})],
      [call('complete_task', { result: { found: 2 } })],
    );
    const agent = { model, tools: { look }, stopWhen: isStepCount(1) };
    const config = agentSubagent({
      name: 'mailer',
      agent,
      completion: 'tool',
      outputSchema: z.object({ found: z.number() }),
    });
    expect(await run(config).result).toMatchObject({ status: 'completed', output: { found: 2 } });
    expect(calls[1]?.toolChoice).toEqual({ type: 'tool', toolName: 'complete_task' });
  });

  test('keeps the messages that prepareStep returns for later steps', async () => {
    const { model, calls } = saying(
      [call('look', {})],
      [call('look', {}, 'look-2')],
      [text('Done.')],
    );
    const agent = {
      model,
      tools: { look },
      prepareStep: ({ stepNumber, messages }: { stepNumber: number; messages: ModelMessage[] }) =>
        stepNumber === 1
          ? { messages: [{ role: 'user' as const, content: 'Short.' }, ...messages.slice(-2)] }
          : {},
    };
    await run(agentSubagent({ name: 'mailer', agent })).result;
    const roles = calls.map(({ prompt }) => prompt.map(({ role }) => role).join(' '));
    expect(roles[1]).toBe('system user assistant tool');
    expect(roles[2]).toBe('system user assistant tool assistant tool');
    expect(JSON.stringify(calls[2]?.prompt)).toContain('Short.');
  });

  test('calls the model that prepareStep chooses for a step, and uses its price', async () => {
    const small = saying([call('look', {})]);
    const large = saying([text('Done.')]);
    const agent = {
      model: small.model,
      tools: { look },
      prepareStep: ({ stepNumber }: { stepNumber: number }) =>
        stepNumber === 1 ? { model: large.model } : {},
    };
    const outcome = await run(agentSubagent({ name: 'mailer', agent })).result;
    expect(outcome.text).toBe('Done.');
    expect([small.calls.length, large.calls.length]).toEqual([1, 1]);
  });

  test('repairs a call with repairToolCall', async () => {
    const { model } = saying([call('send', { whom: 'Ann' })], [text('Done.')]);
    const agent = {
      model,
      tools: { send },
      repairToolCall: async ({ toolCall }: { toolCall: { input: string } }) =>
        Promise.resolve({ ...toolCall, input: '{"to":"Ann"}' } as never),
    };
    const { toolLedger } = await run(agentSubagent({ name: 'mailer', agent })).result;
    expect(toolLedger).toMatchObject([{ input: { to: 'Ann' }, output: 'sent to Ann' }]);
  });

  test('gives a tool the context from the settings, and later the context that prepareStep returns', async () => {
    const contexts: unknown[] = [];
    const contextSchema = z.object({ key: z.string() });
    const keyed = tool({
      inputSchema: z.object({}),
      contextSchema,
      execute: (_, { context }) => void contexts.push(context.key),
    });
    const { model } = saying([call('keyed', {})], [call('keyed', {}, 'keyed-2')], [text('Done.')]);
    const config = agentSubagent({
      name: 'mailer',
      agent: {
        model,
        tools: { keyed },
        toolsContext: { keyed: { key: 'first' } },
        prepareStep: ({ stepNumber }) =>
          stepNumber === 1 ? { toolsContext: { keyed: { key: 'second' } } } : {},
      },
    });
    expect((await run(config).result).status).toBe('completed');
    expect(contexts).toEqual(['first', 'second']);
  });
});

describe.each(['the settings of an agent', 'a subagent'])('applies toolApproval of %s', (kind) => {
  const mailer = (
    model: MockLanguageModelV4,
    tools: ToolSet,
    toolApproval: SubagentConfig['toolApproval'],
  ) => {
    const approval = toolApproval && { toolApproval };
    return kind === 'a subagent'
      ? defineSubagent({ name: 'mailer', instructions: 'You mail.', model, tools, ...approval })
      : agentSubagent({ name: 'mailer', agent: { model, tools, ...approval } });
  };
  const answered = { approved: true };
  test.each([
    ['a status', { send: 'user-approval' as const }, answered, 'given', 'May I run send'],
    [
      'a denial by the user',
      { send: 'user-approval' as const },
      { approved: false },
      'denied',
      'May',
    ],
    ['an approval', { send: 'approved' as const }, answered, 'pre_authorised', null],
    ['a denial', { send: 'denied' as const }, answered, 'author_denied', null],
    ['nothing', { send: 'not-applicable' as const }, answered, undefined, null],
    ['nothing for this tool', {}, answered, undefined, null],
    [
      'a reason',
      { send: { type: 'user-approval' as const, reason: 'It goes abroad' } },
      answered,
      'given',
      '(It goes abroad)',
    ],
    [
      'a function of one tool',
      {
        send: ({ to: name }: { to: string }) => (name === 'Ann' ? ('denied' as const) : undefined),
      },
      answered,
      'author_denied',
      null,
    ],
    [
      'a function of all tools',
      ({ toolCall }: { toolCall: { toolName: string } }) =>
        toolCall.toolName === 'send' ? ('user-approval' as const) : undefined,
      answered,
      'given',
      'May I run send',
    ],
    [
      'a function that throws',
      () => {
        throw new Error('no database');
      },
      answered,
      'given',
      'May I run send',
    ],
    [
      'a function that returns another word',
      () => 'yes' as never,
      answered,
      'given',
      'May I run send',
    ],
  ])('%s', async (_, toolApproval, answer, approval, question) => {
    const { model, calls } = saying([call('send', { to: 'Ann' })], [text('Done.')]);
    const { result, asked } = run(mailer(model, { send }, toolApproval), answer);
    const { toolLedger } = await result;
    const isRun = !['denied', 'author_denied'].includes(approval ?? '');
    expect(toolLedger[0]).toMatchObject({ status: isRun ? 'ok' : 'denied' });
    expect(toolLedger[0]?.approval).toBe(approval);
    expect(asked.map((one) => one.question.includes(question ?? '-'))).toEqual(
      question === null ? [] : [true],
    );
    if (!isRun) expect(JSON.stringify(calls[1]?.prompt)).toContain('execution-denied');
  });

  test("calls a tool's function with its parsed input, the tool's context and the messages", async () => {
    const given: unknown[] = [];
    const keyed = tool({
      inputSchema: z.object({ to: z.string().transform((name) => `${name}!`) }),
      contextSchema: z.object({ key: z.string() }),
      execute: () => 'sent',
    });
    const { model } = saying([call('keyed', { to: 'Ann' })], [text('Done.')]);
    const config = {
      ...mailer(
        model,
        { keyed },
        {
          keyed: (input, { toolCallId, toolContext, messages }) => {
            given.push(input, toolCallId, toolContext, messages.length > 0);
            return 'approved';
          },
        },
      ),
      toolsContext: { keyed: { key: 'k' } },
    };
    expect((await run(config).result).status).toBe('completed');
    expect(given).toEqual([{ to: 'Ann!' }, expect.any(String), { key: 'k' }, true]);
  });

  test.each([
    ['user-approval', 'Sends (needs approval)', true],
    [() => undefined, 'Sends (may need approval)', true],
    ['denied', 'Sends', false],
    [undefined, 'Sends', false],
  ] as const)('shows the model which tools need approval: %s', async (own, description, isTold) => {
    const described = tool({ description: 'Sends', inputSchema: to, execute: () => 'sent' });
    const { model, calls } = saying([text('Done.')]);
    await run(mailer(model, { send: described }, own && { send: own })).result;
    expect(calls[0]?.tools).toMatchObject([{ name: 'send', description }]);
    expect(JSON.stringify(calls[0]?.prompt).includes('do not ask before')).toBe(isTold);
  });

  test("overrides the tool's needsApproval, as in the AI SDK", async () => {
    const guarded = tool({ ...send, needsApproval: true });
    const outcomes = [];
    for (const toolApproval of [() => undefined, undefined]) {
      const { model } = saying([call('guarded', { to: 'Ann' })], [text('Done.')]);
      const { result, asked } = run(mailer(model, { guarded }, toolApproval));
      await result;
      outcomes.push(asked.length);
    }
    expect(outcomes).toEqual([0, 1]);
  });
});

describe('a subagent with settings after a restart', () => {
  test('passes the functions all steps, including those that another process ran', async () => {
    const environment = simulatedEnvironment();
    const journal = memoryJournal();
    const seen: unknown[] = [];
    const { model, calls } = saying(
      [text('Looking.'), call('look', {})],
      [call('send', { to: 'Ann' })],
      [text('Sent.')],
      [text('Sent again.')],
    );
    const config = agentSubagent({
      name: 'mailer',
      agent: {
        model,
        tools: { look, send },
        toolApproval: { send: 'user-approval' },
        prepareStep: ({ steps }) => {
          seen.push(steps.map(read));
          return {};
        },
        stopWhen: ({ steps }) =>
          steps.reduce((sum, { usage: { totalTokens = 0 } }) => sum + totalTokens, 0) >= 10,
      },
    });
    const answers: ((answer: GivenAnswer | null) => void)[] = [];
    let current = 0;
    const begin = () => {
      const number = (current += 1);
      const runtime = createRuntime({
        environment,
        journal: {
          ...journal,
          // A killed process writes nothing.
          append: (entry) =>
            number === current ? journal.append(entry) : new Promise<never>(() => {}),
        },
      });
      return runSubagent(config, 'Mail Ann', {
        runtime,
        id: 'run',
        onQuestion: () => new Promise((resolve) => answers.push(resolve)),
      }).result;
    };
    void begin();
    await environment.settle();
    const before = [...seen];
    const result = begin();
    await environment.settle();
    answers.at(-1)?.({ approved: true });
    expect(await result).toMatchObject({ status: 'completed', text: 'Sent.' });
    expect(calls[2]?.toolChoice).toEqual({ type: 'none' });
    const last = seen.at(-1) as ReturnType<typeof read>[];
    expect(before.at(-1)).toEqual([
      { ...last[0], usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } },
    ]);
    expect(last.map(({ toolResults }) => toolResults[0]?.output)).toEqual([
      { found: 2 },
      'sent to Ann',
    ]);
    expect(last.map(({ usage: { totalTokens } }) => totalTokens)).toEqual([10, 0]);
  });
});

describe('settings that a subagent cannot support', () => {
  const { model } = saying();
  const settings = { model, tools: { look } };
  test.each([
    ['output', {}, 'outputSchema'],
    ['prepareCall', () => ({}), 'createInstance'],
    ['onStepFinish', () => undefined, 'events'],
    ['telemetry', { isEnabled: true }, 'offstage/otel'],
    ['toolCallConcurrency', 1, 'side by side'],
    ['stopwhen', [], 'stopWhen'],
    ['stopWhen', 5, 'expected a function'],
    ['temperature', 'hot', 'number'],
    ['timeout', { stepMs: 5 }, 'milliseconds'],
    ['instructions', [{ role: 'system', content: 'Hi', providerOptions: {} }], 'system message'],
    ['activeTools', ['lok'], 'look'],
    ['toolApproval', { lok: 'denied' }, 'look'],
    ['toolApproval', { look: 'maybe' }, 'user-approval'],
    ['tools', { ask: tool({ inputSchema: to, outputSchema: to }) }, 'execute'],
    ['model', undefined, 'model'],
  ])('%s is refused by name: %j', (name, value, hint) => {
    const agent = { ...settings, [name]: value } as never;
    const define = () => agentSubagent({ name: 'mailer', agent });
    expect(define).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/INVALID|NO_MODEL/u) }),
    );
    expect(define).toThrow(name);
    expect(define).toThrow(hint);
  });

  test.each([
    ['tools', { look }],
    ['model', model],
    ['instructions', 'You mail.'],
    ['runs', 'jobs'],
    ['toolApproval', { look: 'denied' }],
    ['relay', {}],
  ])('refuse %s in combination with `agent`', (name, value) => {
    const config = { name: 'mailer', agent: settings, [name]: value } as never;
    expect(() => agentSubagent(config)).toThrow(`mailer.${name}`);
  });

  test.each([
    [{ look: 'maybe' }, 'user-approval'],
    ['user-approval', 'expected a function'],
    [{ lok: 'denied' }, 'expected one of its tools (look)'],
  ])('toolApproval of a subagent is refused: %j', (toolApproval, hint) => {
    const config = { name: 'mailer', instructions: '', model, tools: { look }, toolApproval };
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    expect(() => runSubagent(config as never, 'Mail Ann', { runtime })).toThrow(hint);
  });

  test('throw if they are not passed to agentSubagent', () => {
    const config = { name: 'mailer', instructions: '', agent: settings } as never;
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    expect(() => runSubagent(config, 'Mail Ann', { runtime })).toThrow('agentSubagent({ agent');
  });

  test.each([
    ['prepareStep', () => ({ maxSteps: 3 }), 'maxSteps'],
    ['prepareStep', () => Promise.reject(new Error('no database')), 'no database'],
    ['prepareStep', () => ({ activeTools: ['lok'] }), 'lok'],
    ['prepareStep', () => 7, 'prepareStep'],
  ])('%s with an unsupported result fails the run: %s', async (name, hook, hint) => {
    const agent = { ...settings, [name]: hook } as never;
    const { error } = await run(agentSubagent({ name: 'mailer', agent })).result;
    expect(error).toMatchObject({
      code: 'PREPARATION_FAILED',
      message: expect.stringContaining(hint),
    });
  });

  test('let the run be cancelled even if prepareStep never settles', async () => {
    const environment = simulatedEnvironment();
    const agent = { ...settings, prepareStep: () => new Promise<never>(() => {}) };
    const { result, cancel } = runSubagent(agentSubagent({ name: 'mailer', agent }), 'Mail', {
      runtime: createRuntime({ environment }),
    });
    await environment.settle();
    cancel();
    expect((await result).status).toBe('cancelled');
  });

  test("set the subagent's retries and timeout, unless the subagent sets its own", () => {
    const agent = { ...settings, id: 'mailer', maxRetries: 0, timeout: 5000 };
    expect(agentSubagent({ agent })).toMatchObject({
      name: 'mailer',
      retry: { maxAttempts: 1 },
      timeout: 5000,
    });
    expect(agentSubagent({ agent, timeout: 6000 }).timeout).toBe(6000);
  });
});
