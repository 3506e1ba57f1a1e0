// Inline calls that are detached because they take too long or the user talks over them.

import { describe, expect, test } from 'vitest';
import { jsonSchema } from 'ai';
import { z } from 'zod';
import { leadTools, THE_LEAD } from '../../src/entries/subagents.ts';
import {
  createParentSubagentToolset,
  defineSubagent,
  defineTool,
  type ToolDefinition,
} from '../../src/index.ts';
import type { Script, ScriptedPrompt } from '../../src/testing/index.ts';
import { BY_ITSELF, FakeTransport } from '../support/fake-transport.ts';
import { never } from '../support/subagent-runs.ts';
import { instructionsOf, leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const RESULT = 'the flat has three rooms';

/** A tool that returns when the test lets it, and the number of its runs. */
function slowTool(more: Partial<ToolDefinition> = {}) {
  const runs: { signal: AbortSignal; returns: (value: unknown) => void }[] = [];
  const tool = defineTool({
    name: 'look_up',
    description: 'Looks something up',
    parameters: jsonSchema<never>({ type: 'object', properties: { topic: { type: 'string' } } }),
    timeout: 60_000,
    execute: (_, { abortSignal: signal }) =>
      new Promise((resolve, reject) => {
        runs.push({ signal, returns: resolve });
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
    ...more,
  });
  return { tool, runs };
}

const lead: Script = (prompt) => {
  const json = /^steer (\{.*\})$/s.exec(prompt.user)?.[1];
  if (json === undefined || prompt.prompt.at(-1)?.role !== 'user') return leadScript(prompt);
  return { calls: [{ name: 'running_task', input: json }] };
};

async function begun(
  more: Partial<ToolDefinition> = {},
  options: TalkOptions = {},
  words = 'use look_up {"topic":"flat"}',
) {
  const { tool, runs } = slowTool(more);
  const prompts: ScriptedPrompt[] = [];
  const it = textTalk({
    lead,
    tools: [tool],
    onModelCall: (_, prompt) => prompts.push(prompt),
    ...options,
  });
  await it.start();
  void it.session.sendText(words);
  await it.environment.settle();
  expect(runs).toHaveLength(1);
  return {
    ...it,
    runs,
    prompts,
    read: () => JSON.stringify(prompts.at(-1)?.prompt),
    said: () =>
      it
        .state()
        .transcript.filter(({ role }) => role === 'assistant')
        .map(({ text }) => text),
    results: () => it.state().deliveries.filter(({ kind }) => kind === 'result'),
    async returns(value: unknown) {
      runs[0]?.returns(value);
      await it.environment.settle();
      await it.environment.advance(1000);
    },
  };
}

describe('a call that takes too long', () => {
  test('continues in the background and delivers its result once', async () => {
    const it = await begun({ detach: { afterMs: 5000 } });
    await it.environment.advance(4999);
    expect(it.said()).toEqual([]);
    await it.environment.advance(1);
    expect(it.said()).toEqual([expect.stringContaining('still_in_progress')]);
    await it.type('hello');
    expect(it.said().at(-1)).toBe('You said: hello');
    await it.returns(RESULT);
    expect(it.said().filter((text) => text.includes(RESULT))).toEqual([
      expect.stringContaining('Told: '),
    ]);
    expect(it.results()).toMatchObject([{ state: 'delivered', label: 'look_up', text: RESULT }]);
    expect(it.runs).toHaveLength(1);
    expect(it.errors).toEqual([]);
  });

  test.each([
    ['starts after a minute by default', {}, 1],
    ['starts after a minute with `onWords: true`', { detach: { onWords: true } }, 1],
    ['never starts with only `onWords: false`', { detach: { onWords: false } }, 0],
  ])('continues in the background: %s', async (_, detach, replies) => {
    const it = await begun({ ...detach, timeout: 300_000 });
    await it.environment.advance(59_999);
    expect(it.said()).toEqual([]);
    await it.environment.advance(1);
    expect(it.said()).toHaveLength(replies);
    await it.environment.advance(120_000);
    expect(it.said()).toHaveLength(replies);
  });

  test('answers the model if it finishes in time', async () => {
    const it = await begun({ detach: { afterMs: 5000 } });
    await it.environment.advance(4000);
    await it.returns(RESULT);
    expect(it.said()).toEqual([expect.stringContaining(RESULT)]);
    await it.environment.advance(60_000);
    expect(it.said()).toHaveLength(1);
    expect(it.results()).toEqual([]);
  });

  test('ends at its time limit even in the background', async () => {
    const doubts: string[] = [];
    const it = await begun(
      { detach: { afterMs: 5000 } },
      { hooks: { onCallInDoubt: ({ toolName }) => doubts.push(toolName) } },
    );
    await it.environment.advance(61_000);
    expect(it.results()).toMatchObject([
      { state: 'delivered', text: expect.stringContaining('timed out') },
    ]);
    expect(it.runs[0]?.signal.reason).toMatchObject({ code: 'TIMEOUT' });
    expect(doubts).toEqual(['look_up']);
  });
});

describe('messages from the user during a call', () => {
  const during = async (it: Awaited<ReturnType<typeof begun>>, text = 'hello') => {
    void it.session.sendText(text);
    await it.environment.settle();
  };

  test('P10: get an answer after two seconds with the default options', async () => {
    const it = await begun();
    await it.environment.advance(5000);
    await during(it);
    expect(it.said()).toEqual([]);
    await it.environment.advance(2000);
    // One reply, to the user's words and to the answer that the work continues.
    expect(it.said()).toHaveLength(1);
    expect(it.read()).toContain('continues in the background');
    expect(it.read()).toContain('hello');
    await it.returns(RESULT);
    expect(it.said()).toHaveLength(2);
    expect(it.said().at(-1)).toContain(RESULT);
    expect(it.results()).toMatchObject([{ state: 'delivered' }]);
  });

  test('get a reply that includes the result if the tool finishes within two seconds', async () => {
    const it = await begun();
    await during(it);
    await it.environment.advance(1500);
    await it.returns(RESULT);
    expect(it.read()).toContain(RESULT);
    await it.environment.advance(60_000);
    expect(it.results()).toEqual([]);
    expect(it.said()).toHaveLength(1);
  });

  test('detach the call immediately with `onWords: true`', async () => {
    const it = await begun({ detach: { onWords: true }, pendingMessage: 'I go on with it.' });
    await during(it);
    await it.environment.advance(1);
    expect(it.said()).toHaveLength(1);
    expect(it.read()).toContain('I go on with it.');
  });

  test('wait for the tool with `onWords: false`', async () => {
    const it = await begun({ detach: { onWords: false } });
    await during(it);
    await it.environment.advance(30_000);
    expect(it.said()).toEqual([]);
    await it.returns(RESULT);
    expect(it.said()).toHaveLength(1);
    expect(it.read()).toContain(RESULT);
  });

  test('wait for the tool while the outbox has no room for its result', async () => {
    const it = await begun(
      {},
      { limits: { maxDeliveries: 1 }, subagents: { other: { script: never } } },
      'use other and look_up {"topic":"flat"}',
    );
    await during(it);
    await it.environment.advance(10_000);
    expect(it.said()).toEqual([]);
    await it.returns(RESULT);
    expect(it.said()).toHaveLength(1);
    expect(it.read()).toContain(RESULT);
    expect(it.results()).toEqual([]);
  });

  test('detach the call only once, even if they are very long and repeated', async () => {
    const it = await begun();
    await during(it);
    await it.environment.advance(1000);
    await during(it, 'x'.repeat(90_000));
    await it.environment.advance(5000);
    const { length } = it.said();
    await during(it, 'again');
    await it.environment.advance(5000);
    expect(it.said()).toHaveLength(length + 1);
    await it.returns(RESULT);
    expect(it.results()).toHaveLength(1);
    expect(it.runs).toHaveLength(1);
  });
});

describe('a detached call', () => {
  async function detached(more: Partial<ToolDefinition> = {}, options: TalkOptions = {}) {
    const it = await begun({ detach: { afterMs: 1000 }, ...more }, options);
    await it.environment.advance(1000);
    const answers = () =>
      it.events.flatMap((event) =>
        event.type === 'tool.answered' && event.name === 'running_task' ? [event.output] : [],
      );
    const steer = async (input: object) => {
      void it.session.sendText(`steer ${JSON.stringify(input)}`);
      await it.environment.advance(1500);
      return answers().at(-1);
    };
    return { ...it, steer };
  }

  test('lets the user ask about it and stop it', async () => {
    const doubts: string[] = [];
    const it = await detached(
      {},
      { hooks: { onCallInDoubt: ({ callId }) => doubts.push(callId) } },
    );
    expect(await it.steer({ action: 'status' })).toMatchObject({
      tasks: [{ task: 'look_up: topic: "flat"', status: 'running' }],
    });
    expect(await it.steer({ action: 'tell', words: 'also the garden' })).toMatchObject({
      status: 'refused',
    });
    expect(await it.steer({ action: 'stop', task: 'the flat' })).toMatchObject({
      status: 'stopped',
      task: 'look_up: topic: "flat"',
    });
    expect(it.runs[0]?.signal.aborted).toBe(true);
    expect(doubts).toHaveLength(1);
    await it.returns(RESULT);
    expect(it.results()).toEqual([]);
    expect(await it.steer({ action: 'status' })).toMatchObject({ ended: [] });
    // The call's place is free again.
    expect(it.session.pendingToolCalls).toEqual([]);
  });

  test('absorbs an identical call but not a different one', async () => {
    const it = await detached();
    await it.type('use look_up {"topic":"flat"}');
    expect(it.said().at(-1)).toContain('already_in_progress');
    expect(it.runs).toHaveLength(1);
    void it.session.sendText('use look_up {"topic":"garden"}');
    await it.environment.settle();
    expect(it.runs).toHaveLength(2);
  });

  test('stops when the app cancels it or when the session ends', async () => {
    const it = await detached();
    const [callId = ''] = it.session.pendingToolCalls;
    expect(it.session.cancelToolCall(callId)).toBe(true);
    await it.environment.settle();
    expect(it.runs[0]?.signal.aborted).toBe(true);
    expect(it.results()).toEqual([]);

    const other = await detached();
    await other.close();
    expect(other.runs[0]?.signal.aborted).toBe(true);
  });

  test('prevents the session from being idle', async () => {
    const it = await detached();
    let isIdle = false;
    void it.session.idle().then(() => (isIdle = true));
    await it.environment.advance(5000);
    expect(isIdle).toBe(false);
    await it.returns(RESULT);
    expect(isIdle).toBe(true);
  });

  test('resolves `nextResult()` with its result', async () => {
    const it = await detached();
    const next = it.session.nextResult();
    await it.returns(RESULT);
    expect(await next).toMatchObject({ text: RESULT });
  });

  test('delivers an error as text and an object as JSON', async () => {
    const failing = await detached();
    failing.runs[0]?.returns(new Error('no such flat'));
    await failing.environment.advance(1000);
    expect(failing.results()).toMatchObject([{ state: 'delivered', text: 'no such flat' }]);

    const it = await detached();
    await it.returns({ rooms: 3 });
    expect(it.results()).toMatchObject([{ text: '{"rooms":3}' }]);
  });
});

describe('a detached wait for subagents', () => {
  test('ends at its time limit and does not deliver any result twice', async () => {
    let ends: ((step: object) => void) | undefined;
    const it = textTalk({
      lead,
      subagents: { report: { script: () => new Promise((resolve) => (ends = resolve as never)) } },
      tools: leadTools(createParentSubagentToolset(), {
        detach: { await_subagent: { afterMs: 5000 } },
      }),
    });
    await it.start();
    await it.type('use report');
    void it.session.sendText('use await_subagent {"subagentId":"sub_1"}');
    await it.environment.advance(5000);
    expect(it.said().at(-1)).toContain('still_in_progress');
    expect(it.state().subagents).toMatchObject([{ state: 'running' }]);
    ends?.({ text: RESULT });
    await it.environment.advance(2000);
    const told = it.said().filter((text) => text.includes(RESULT));
    expect(told).toEqual([expect.stringContaining('Told: ')]);
    expect(it.state().deliveries.map(({ deliveryId }) => deliveryId)).toEqual(['call_1']);
    expect(it.session.pendingToolCalls).toEqual([]);
    expect(it.errors).toEqual([]);
  });
});

describe('a detached call that delegates to a subagent', () => {
  async function delegated() {
    let ends: ((step: object) => void) | undefined;
    const worker = defineSubagent({ name: 'worker', instructions: instructionsOf('worker') });
    const ask = defineTool({
      name: 'ask_worker',
      description: 'Asks the worker',
      parameters: z.object({ topic: z.string() }),
      timeout: 60_000,
      detach: { afterMs: 1000 },
      async execute(args, { subagents, callId, abortSignal: signal }) {
        const task = { toolName: 'ask_worker', args, description: 'Asks' };
        const begun = subagents.spawn({ config: worker, task, caller: THE_LEAD, callId });
        if (begun.status !== 'accepted') throw new Error(begun.error.message);
        const ended = await subagents.await([begun.subagentId], THE_LEAD, { signal });
        return ended.ok ? (ended.reports[0]?.outcome?.text ?? null) : null;
      },
    });
    const it = textTalk({
      lead,
      tools: [ask],
      subagents: { worker: { script: () => new Promise((resolve) => (ends = resolve as never)) } },
    });
    await it.start();
    void it.session.sendText('use ask_worker {"topic":"flat"}');
    await it.environment.advance(1000);
    return { ...it, ends: (text: string) => ends?.({ text }) };
  }

  test("delivers the result of the call once and does not deliver the subagent's result", async () => {
    const it = await delegated();
    it.ends(RESULT);
    await it.environment.advance(5000);
    await it.type('hello');
    await it.environment.advance(5000);
    expect(it.said().filter((text) => text.includes(RESULT))).toHaveLength(1);
    expect(it.state().deliveries).toMatchObject([{ state: 'delivered', label: 'ask_worker' }]);
  });

  test('counts as one task and stops together with its subagent', async () => {
    const it = await delegated();
    await it.type('steer {"action":"status"}');
    await it.environment.advance(1500);
    expect(
      it
        .said()
        .at(-1)
        ?.match(/"task":/g),
    ).toHaveLength(1);
    await it.type('steer {"action":"stop","task":"flat"}');
    await it.environment.advance(1500);
    expect(it.said().at(-1)).toContain('stopped');
    expect(it.state().subagents).toMatchObject([{ state: 'cancelled' }]);
    expect(it.session.pendingToolCalls).toEqual([]);
    await it.environment.advance(10_000);
    expect(it.state().deliveries).toEqual([]);
  });
});

describe('the definition', () => {
  const define = (more: object) => () =>
    defineTool({
      name: 'look_up',
      description: 'Looks something up',
      parameters: z.object({}),
      execute: () => 'done',
      ...more,
    });

  test.each([
    [{ detach: { afterMs: 0 } }, 'afterMs'],
    [{ detach: { afterMs: 30_000 } }, 'below the timeout of 30000 ms'],
    [{ detach: { afterMS: 1000 } }, 'afterMS'],
    [{ detach: { onWords: 'yes' } }, 'onWords'],
    [{ detach: { afterMs: 10 }, consolidate: true }, 'consolidate'],
    [{ pendingMessage: 'On it.' }, 'pendingMessage'],
  ])('refuses %j', (more, names) => expect(define(more)).toThrow(names));

  test('reports a tool by name if `leadTools` does not run it inline', () => {
    const of = (tools: Record<string, object>, name: string) => () =>
      leadTools(tools, { detach: { [name]: { afterMs: 1000 } } });
    expect(of({}, 'look_up')).toThrow('"look_up"');
    expect(of(createParentSubagentToolset(), 'await_subagents')).toThrow('"await_subagents"');
  });
});

describe.each([
  ['a voice that is asked to speak', {}],
  ['a voice that schedules results', { schedulesToolResults: true }],
  ['a voice that answers by itself', BY_ITSELF],
  ['a voice on whose wire no call stays open', { ...BY_ITSELF, defersToolResults: false }],
] as const)('on %s', (_, capabilities) => {
  async function spoken(more: Partial<ToolDefinition> = {}) {
    const { tool, runs } = slowTool(more);
    const it = voiceTalk({ tools: [tool], transport: new FakeTransport(capabilities) });
    await it.start();
    await it.say('look it up');
    const call = { callId: 'call_1', name: 'look_up', arguments: '{"topic":"flat"}' };
    if ('responds' in capabilities)
      it.model().events.next({ type: 'tool.called', ...call, responseId: 'resp_x' });
    else it.model().call(call);
    await it.environment.settle();
    expect(runs).toHaveLength(1);
    return {
      ...it,
      runs,
      outputs: () =>
        it
          .model()
          .of('tool.answer')
          .map(({ output }) => output),
      /** Speaks as the lead agent, whether it was asked to or speaks on its own. */
      async speaks(text: string) {
        if (it.model().openRequests.length > 0) await it.speak(text);
        else await it.play(it.model().speakByItself(text));
      },
      async returns() {
        runs[0]?.returns(RESULT);
        await it.environment.settle();
        await it.environment.advance(3000);
      },
    };
  }

  test("P10: answers the user two seconds into a tool call and delivers the call's result once", async () => {
    const it = await spoken();
    await it.environment.advance(1000);
    await it.say('how are you');
    await it.environment.advance(1000);
    expect(it.outputs()).toEqual([]);
    await it.environment.advance(1000);
    expect(it.outputs()).toEqual([expect.stringContaining('still_in_progress')]);
    await it.speaks('Fine. I am still looking.');
    await it.environment.advance(1000);
    await it.returns();
    expect(it.outputs()).toHaveLength(1);
    expect(it.asked()).toContain(RESULT);
    await it.speak('It has three rooms.');
    expect(it.result()).toMatchObject({ state: 'delivered', attempts: 1 });
    await it.environment.advance(60_000);
    expect(it.model().openRequests).toEqual([]);
    expect(it.errors).toEqual([]);
  });

  test('ignores late transcripts of speech that began before the call', async () => {
    const { tool, runs } = slowTool({ detach: { onWords: true } });
    const it = voiceTalk({ tools: [tool], transport: new FakeTransport(BY_ITSELF) });
    await it.start();
    it.model().speechStarted('user_1');
    await it.environment.advance(500);
    const call = { callId: 'call_1', name: 'look_up', arguments: '{}', responseId: 'resp_x' };
    it.model().events.next({ type: 'tool.called', ...call });
    await it.environment.advance(500);
    it.model().speechEnded('user_1', 'look it up');
    await it.environment.advance(10_000);
    expect(runs).toHaveLength(1);
    expect(it.model().of('tool.answer')).toEqual([]);
  });

  test('continues a call after the model has withdrawn it, but only with `onWords: true`', async () => {
    for (const onWords of [true, false]) {
      const it = await spoken({ detach: { onWords } });
      it.model().events.next({ type: 'tool.cancelled', callId: 'call_1' });
      await it.environment.settle();
      expect(it.runs[0]?.signal.aborted).toBe(!onWords);
      await it.returns();
      await it.environment.advance(10_000);
      if (!onWords) expect(it.result()).toBeUndefined();
      else expect(it.result()).toMatchObject({ text: RESULT });
    }
  });
});
