import { generateText, isStepCount, streamText, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError } from '../../../src/index.ts';
import { scriptedModel, simulatedEnvironment, type Script } from '../../../src/testing/index.ts';

/** Makes one model call, as a session or program does. */
function ask(
  given: Parameters<typeof scriptedModel>[0],
  system = 'You are nobody.',
  prompt = 'Go',
) {
  const model = scriptedModel(given);
  const call = (instructions = system, words = prompt, abortSignal?: AbortSignal) =>
    generateText({
      model,
      instructions,
      prompt: words,
      maxRetries: 0,
      ...(abortSignal ? { abortSignal } : {}),
      tools: {
        subagent__summarizer: tool({ inputSchema: z.looseObject({}), outputSchema: z.any() }),
      },
    });
  return { model, call };
}

describe('the kinds of steps', () => {
  test('include text and the reasoning before it', { tags: ['H13', 'H14'] }, async () => {
    const { call } = ask([
      { text: 'Hello', thinking: 'A greeting.' },
      { type: 'text', content: 'Bye', thinking: 'The end.', shouldStop: true },
    ]);
    const first = await call();
    expect(first.text).toBe('Hello');
    expect(first.finalStep.reasoningText).toBe('A greeting.');
    expect(first.finishReason).toBe('stop');
    expect((await call()).text).toBe('Bye');
  });

  test(
    'include tool calls and subagent calls by agent type',
    { tags: ['H13', 'H14', 'H19'] },
    async () => {
      const { call } = ask([
        {
          type: 'tool_calls',
          content: 'I ask.',
          toolCalls: [{ id: 't1', name: 'unknown', arguments: {} }],
          subAgentCalls: [{ id: 's1', agentType: 'summarizer', input: { texts: ['a'] } }],
        },
      ]);
      const { toolCalls, finishReason, text } = await call();
      expect(text).toBe('I ask.');
      expect(finishReason).toBe('tool-calls');
      expect(toolCalls.map(({ toolCallId, toolName }) => [toolCallId, toolName])).toEqual([
        ['t1', 'unknown'],
        ['s1', 'subagent__summarizer'],
      ]);
      expect(toolCalls[1]?.input).toEqual({ texts: ['a'] });
    },
  );

  test('include structured output as JSON', { tags: ['H13', 'H14'] }, async () => {
    const { call } = ask([{ type: 'structured_output', output: { result: 'Used' } }]);
    expect(JSON.parse((await call()).text)).toEqual({ result: 'Used' });
  });

  test('include errors that fail the call, in both notations', async () => {
    const { call } = ask([
      { error: new Error('down') },
      { type: 'error', error: new Error('out') },
    ]);
    await expect(call()).rejects.toThrow('down');
    await expect(call()).rejects.toThrow('out');
  });

  test('include a function that reads the prompt', async () => {
    const { call } = ask([{ text: 'One' }, ({ user, turn }) => ({ text: `${turn}: ${user}` })]);
    await call();
    expect((await call('', 'Two')).text).toBe('2: Two');
  });

  test('include an answer that is cut off', async () => {
    const { call } = ask([{ text: 'Half of', finish: 'length' }]);
    expect((await call()).finishReason).toBe('length');
  });

  test('stream the same content word by word, reasoning first', async () => {
    const { model } = ask([{ text: 'One two', thinking: 'Let me count.' }]);
    const kinds: string[] = [];
    for await (const part of streamText({ model, prompt: 'Go' }).stream)
      if (part.type === 'text-delta' || part.type === 'reasoning-delta')
        kinds.push(`${part.type} ${part.text}`);
    expect(kinds).toEqual([
      'reasoning-delta Let ',
      'reasoning-delta me ',
      'reasoning-delta count.',
      'text-delta One ',
      'text-delta two',
    ]);
  });
});

describe('delays', () => {
  test("use the environment's time", async () => {
    const environment = simulatedEnvironment();
    const { call } = ask({ environment, otherwise: [{ text: 'Late', delayMs: 500 }] });
    let text: string | null = null;
    void call().then((result) => {
      text = result.text;
    });
    await environment.advance(499);
    expect(text).toBeNull();
    await environment.advance(1);
    expect(text).toBe('Late');
  });

  test('end immediately and leave no timer when the call is aborted', async () => {
    const environment = simulatedEnvironment();
    const { call } = ask({ environment, otherwise: [{ text: 'Late', delayMs: 500 }] });
    const controller = new AbortController();
    let failed: unknown;
    call('', 'Go', controller.signal).catch((error: unknown) => {
      failed = error;
    });
    await environment.settle();
    controller.abort(new Error('enough'));
    await environment.settle();
    expect(failed).toEqual(new Error('enough'));
    expect(environment.pendingTimers).toBe(0);
  });

  test('require an environment', async () => {
    const { call } = ask([{ text: 'Late', delayMs: 500 }]);
    await expect(call()).rejects.toThrow(ConfigurationError);
  });
});

describe('scripts by agent', { tags: ['H19', 'HW8'] }, () => {
  const agents = {
    planner: [{ text: 'plan 1' }, { text: 'plan 2' }],
    'plan-checker': [{ text: 'check 1' }],
    summarizer: [{ text: 'sum 1' }, { text: 'sum 2' }],
  };

  test('lets a parent and a child that run concurrently read from their own scripts', async () => {
    const { call } = ask({ agents });
    const answers = await Promise.all([
      call('You are the planner. Delegate to the summarizer.'),
      call('You are the summarizer, working for the planner.'),
      call('You are the planner. Delegate to the summarizer.'),
      call('You are the summarizer, working for the planner.'),
    ]);
    expect(answers.map(({ text }) => text)).toEqual(['plan 1', 'sum 1', 'plan 2', 'sum 2']);
  });

  test('identifies a subagent by its task even if its prompt names other agents', async () => {
    const { call } = ask({ agents });
    const system =
      '# Instructions\nHelp the planner.\n\n# Task\nYou do the work of the tool subagent__summarizer in the background.';
    expect((await call(system)).text).toBe('sum 1');
  });

  test('matches a name as a whole word, so that plan and planner do not match plan-checker', async () => {
    const { call } = ask({ agents: { plan: [{ text: 'no' }], ...agents } });
    expect((await call('You are the plan-checker.')).text).toBe('check 1');
  });

  test('lets a function identify the agent', async () => {
    const { call } = ask({
      agents,
      agentOf: ({ user }) => (user.includes('sum') ? 'summarizer' : undefined),
      otherwise: [{ text: 'somebody else' }],
    });
    expect((await call('', 'to sum up')).text).toBe('sum 1');
    expect((await call('', 'planner')).text).toBe('somebody else');
  });

  test('accepts a string, a pattern or a function for `when`', async () => {
    const { call } = ask({
      scripts: [
        { when: 'text', script: [{ text: 'by text' }] },
        { when: /^pat+ern/i, script: () => ({ text: 'by pattern' }) },
        { when: ({ user }) => user === 'fun', script: [{ text: 'by function' }] },
      ],
    });
    expect((await call('a text')).text).toBe('by text');
    expect((await call('PATTTERN')).text).toBe('by pattern');
    expect((await call('', 'fun')).text).toBe('by function');
  });

  test('matches a global pattern from the start of the text each time', async () => {
    const { call } = ask({ scripts: [{ when: /nobody/g, script: () => ({ text: 'yes' }) }] });
    expect([(await call()).text, (await call()).text]).toEqual(['yes', 'yes']);
  });

  test('names the exhausted script and the request', async () => {
    const { call } = ask({ agents });
    await call('You are the plan-checker.');
    await expect(call('You are the plan-checker.', 'Once more')).rejects.toThrow(
      /script "plan-checker" has 1 steps, but was asked for step 2.*Once more/,
    );
  });

  test('names the agent that lacks a script', async () => {
    const { call } = ask({ agents });
    await expect(call('You are the butler.')).rejects.toThrow(
      /no script for .*butler.*planner, plan-checker, summarizer/,
    );
  });
});

test('works in an AI SDK tool loop', async () => {
  const model = scriptedModel([
    { calls: [{ name: 'add', input: { a: 1, b: 2 } }] },
    { text: 'Three.' },
  ]);
  const { text, steps } = await generateText({
    model,
    prompt: 'Add',
    stopWhen: isStepCount(3),
    tools: {
      add: tool({
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        execute: ({ a, b }) => a + b,
      }),
    },
  });
  expect(text).toBe('Three.');
  expect(steps[0]?.toolResults[0]?.output).toBe(3);
});

test('passes a script the step number of its own run, so that concurrent runs share no counter', async () => {
  const seen: [number, number][] = [];
  const script: Script = ({ turn, step }) => {
    seen.push([turn, step]);
    return { text: `step ${step}` };
  };
  const model = scriptedModel({ otherwise: script });
  const call = (...roles: ('user' | 'assistant')[]) =>
    model.doGenerate({
      prompt: roles.map((role) => ({ role, content: [{ type: 'text', text: 'x' }] })),
    });
  await call('user');
  await call('user', 'assistant', 'user');
  await call('user');
  expect(seen).toEqual([
    [1, 1],
    [2, 2],
    [3, 1],
  ]);
});
