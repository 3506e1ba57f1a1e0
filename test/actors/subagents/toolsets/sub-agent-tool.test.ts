import { generateText, isStepCount } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { delegates } from '../../../../src/actors/model/tool-flags.ts';
import { isSubAgentTool } from '../../../../src/compat/plan-step.ts';
import { subAgentRefs } from '../../../../src/actors/subagents/toolsets/parent-views.ts';
import {
  createSubAgentTool,
  subAgentTools,
  type SubAgentToolOptions,
} from '../../../../src/actors/subagents/toolsets/sub-agent-tool.ts';
import { THE_LEAD } from '../../../../src/actors/contracts/service-types.ts';
import { createRuntime } from '../../../../src/index.ts';
import { workingMemory } from '../../../../src/entries/memory.ts';
import { createSubagentService } from '../../../../src/entries/subagents.ts';
import { scriptedModel, simulatedEnvironment } from '../../../../src/testing/index.ts';
import { callOptions, fakeService } from '../../../support/fake-service.ts';

const summarizer = {
  name: 'summarizer',
  instructions: 'Summarize.',
  outputSchema: z.object({ summary: z.string() }),
};
const input = z.object({ texts: z.array(z.string()), maxLength: z.number().default(500) });

function summarize(options: SubAgentToolOptions = {}) {
  const service = fakeService();
  const made = createSubAgentTool(summarizer, input, {
    description: 'Summarize a list of texts',
    service,
    ...options,
  });
  const call = (texts: string[], more: object = {}): Promise<unknown> =>
    (made.execute as never as (input: unknown, options: never) => Promise<unknown>)(
      { texts, maxLength: 500 },
      callOptions(more),
    );
  return { service, made, call };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the tool of a subagent', { tags: ['H1', 'H2'] }, () => {
  test('works as an AI SDK tool that the runtime recognises as a subagent', () => {
    const { made } = summarize();
    expect(made.description).toBe('Summarize a list of texts');
    expect(isSubAgentTool(made)).toBe(true);
    expect(delegates(made)).toBe(true);
    expect(Object.keys(subAgentTools(made))).toEqual(['subagent__summarizer']);
  });

  test('requires an outputSchema', { tags: ['H1'] }, () => {
    const { outputSchema: _, ...without } = summarizer;
    expect(() => createSubAgentTool(without as never, input)).toThrow(
      /expected the subagent "summarizer" to have an outputSchema/,
    );
  });

  test(
    'refuses two tools for the same agent type, which would share a name',
    { tags: ['HW1'] },
    () => {
      const { made } = summarize();
      expect(() => subAgentTools(made, made)).toThrow(/got "subagent__summarizer" twice/);
    },
  );

  test('returns NO_SERVICE without a service to run it', { tags: ['M11'] }, async () => {
    const { call } = summarize({ service: undefined as never });
    expect(await call(['a'])).toMatchObject({ code: 'NO_SERVICE' });
  });
});

describe('one call of the tool', { tags: ['H4', 'H5'] }, () => {
  test("passes on the input, but not the parent's messages", async () => {
    const { service, call } = summarize();
    const running = call(['a', 'b'], { messages: [{ role: 'user', content: 'secret' }] });
    await turn();
    expect(service.spawned[0]).toMatchObject({
      config: { name: 'summarizer', context: 'none' },
      task: { toolName: 'subagent__summarizer', args: { texts: ['a', 'b'], maxLength: 500 } },
      callId: 'call_1',
      caller: { subagentId: null },
    });
    expect(JSON.stringify(service.spawned[0])).not.toContain('secret');
    service.end('sub_1', { result: { summary: 'ab' } });
    expect(await running).toEqual({ summary: 'ab' });
  });

  test(
    'returns an error to the model for an unknown input, without spawning a subagent',
    { tags: ['R6'] },
    async () => {
      const { service, made } = summarize();
      const model = scriptedModel([
        { calls: [{ name: 'summarize', input: { texts: ['a'], maxLenght: 5 } }] },
        { text: 'Done.' },
      ]);
      const { steps } = await generateText({
        model,
        prompt: 'Go',
        tools: { summarize: made },
        stopWhen: isStepCount(2),
      });
      expect(JSON.stringify(steps[0]?.content)).toContain('did you mean \\"maxLength\\"?');
      expect(service.spawned).toEqual([]);
    },
  );

  test(
    'returns a failure as a result, so that the model decides what to do',
    { tags: ['H10'] },
    async () => {
      const { service, call } = summarize();
      const running = call(['a']);
      await turn();
      const error = { code: 'STEP_LIMIT', message: 'Max steps exceeded', retryable: false };
      service.end('sub_1', { state: 'failed', error, partial: 'half' });
      expect(await running).toEqual({
        error: 'Max steps exceeded',
        code: 'STEP_LIMIT',
        partial: 'half',
      });
    },
  );

  test(
    'returns the error code when the subagent is not allowed to run',
    { tags: ['HW5'] },
    async () => {
      const { service, call } = summarize();
      service.refuse('DEPTH_EXCEEDED');
      expect(await call(['a'])).toMatchObject({ code: 'DEPTH_EXCEEDED' });
    },
  );

  test('ends the child when the parent ends', { tags: ['HW4'] }, async () => {
    const { service, call } = summarize();
    const controller = new AbortController();
    const running = call(['a'], { abortSignal: controller.signal });
    await turn();
    controller.abort();
    expect(await running).toMatchObject({ code: 'CANCELLED' });
    expect(service.list({ subagentId: null })).toEqual([]);
    // A call that has ended spawns no subagent.
    await call(['b'], { abortSignal: controller.signal });
    expect(service.spawned).toHaveLength(1);
  });
});

describe('a child that asks while its parent waits', () => {
  test('learns that it cannot get an answer, and continues', { tags: ['MW1'] }, async () => {
    const { service, call } = summarize();
    const running = call(['a']);
    await turn();
    service.ask('sub_1', 'How long?');
    await turn();
    expect(service.sent).toMatchObject([{ to: 'sub_1', inResponseTo: 'sub_1.q1' }]);
    expect(service.sent[0]?.content).toMatch(/Nobody can answer/);
    service.end('sub_1', { result: { summary: 'short' } });
    expect(await running).toEqual({ summary: 'short' });
  });

  test(
    'returns its question as the result if the parent can answer',
    { tags: ['MW1'] },
    async () => {
      const { service, call } = summarize({ questions: 'return' });
      const running = call(['a']);
      await turn();
      service.ask('sub_1', 'How long?');
      expect(await running).toEqual({
        status: 'waiting_input',
        subagentId: 'sub_1',
        pendingRequest: { messageId: 'sub_1.q1', question: 'How long?' },
      });
      expect(service.list({ subagentId: null })).toHaveLength(1);
    },
  );
});

test(
  'runs the parallel children of a step, and returns their results in call order',
  { tags: ['H8', 'H9', 'HW2'] },
  async () => {
    const { service, made } = summarize();
    const model = scriptedModel([
      {
        type: 'tool_calls',
        content: 'I will summarize these texts.',
        subAgentCalls: [
          { id: 's1', agentType: 'summarizer', input: { texts: ['one'] } },
          { id: 's2', agentType: 'summarizer', input: { texts: ['two'] } },
        ],
      },
      { type: 'text', content: 'Both are done.' },
    ]);
    const running = generateText({
      model,
      tools: subAgentTools(made),
      prompt: 'Summarize',
      stopWhen: isStepCount(3),
    });
    while (service.waits < 2) await turn();
    // Both run at the same time, and the second one ends first.
    expect(service.spawned.map(({ callId }) => callId)).toEqual(['s1', 's2']);
    service.end('sub_2', { result: { summary: '2' } });
    service.end('sub_1', {
      state: 'failed',
      error: { code: 'X', message: 'no', retryable: false },
    });
    const { text, responseMessages } = await running;
    expect(text).toBe('Both are done.');
    expect(responseMessages.slice(0, 2)).toMatchObject([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I will summarize these texts.' },
          { type: 'tool-call', toolCallId: 's1', toolName: 'subagent__summarizer' },
          { type: 'tool-call', toolCallId: 's2', toolName: 'subagent__summarizer' },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 's1',
            toolName: 'subagent__summarizer',
            output: { value: { error: 'no', code: 'X' } },
          },
          { type: 'tool-result', toolCallId: 's2', output: { value: { summary: '2' } } },
        ],
      },
    ]);
    expect(subAgentRefs(service, { subagentId: null })).toEqual([
      { id: 'sub_1', toolCallId: 's1', agentType: 'summarizer', status: 'failed', error: 'no' },
      {
        id: 'sub_2',
        toolCallId: 's2',
        agentType: 'summarizer',
        status: 'completed',
        output: { summary: '2' },
      },
    ]);
  },
);

test(
  'shows in references whether a child is cancelled or waiting',
  { tags: ['H11', 'HW7'] },
  () => {
    const service = fakeService();
    const spawn = () =>
      service.spawn({
        config: summarizer,
        task: { toolName: 'x', args: {}, description: 'x' },
        caller: { subagentId: null },
      });
    for (let count = 0; count < 3; count += 1) spawn();
    service.cancel('sub_1', { subagentId: null }, 'enough');
    service.ask('sub_2', 'Which?');
    const refs = subAgentRefs(service, { subagentId: null });
    expect(refs.map(({ status }) => status)).toEqual(['cancelled', 'waiting_input', 'running']);
    expect(subAgentRefs(service, { subagentId: 'sub_1' })).toEqual([]);
  },
);

test('LIN-2: returns an error and starts nothing if an input is not in working memory', async () => {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment });
  const service = createSubagentService({
    runtime: createRuntime({ environment }),
    workingMemory: memory,
    model: scriptedModel({
      scripts: [{ when: 'Summarize', script: () => ({ text: '{"summary":"Short."}' }) }],
    }),
  });
  await memory.save({ sessionId: service.id, path: [] }, { key: 'texts', value: 'Long.' });
  const schema = z.object({ inputs: z.array(z.string()) });
  const made = createSubAgentTool({ ...summarizer, lineage: true }, schema, { service });
  const call = async (key: string): Promise<unknown> => {
    const done = (made.execute as never as (input: unknown, options: never) => Promise<unknown>)(
      { inputs: [key] },
      callOptions(),
    );
    await environment.settle();
    return done;
  };
  expect(await call('text')).toMatchObject({
    code: 'INPUT_NOT_FOUND',
    error: expect.stringContaining(`near matches: "session/${service.id}/texts"`) as string,
  });
  expect(service.list(THE_LEAD, { includeEnded: true })).toEqual([]);
  expect(await call(`session/${service.id}/texts`)).toEqual({ summary: 'Short.' });
});
