// Values that third-party code throws or returns are treated as data: the run, the session and the process continue.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CancelledError, defineTool, OffstageError, type SubagentConfig } from '../../src/index.ts';
import type { MemoryStore } from '../../src/entries/memory.ts';
import { codeOf, isA, isError, messageOf } from '../../src/values/errors.ts';
import type { ScriptedStep } from '../../src/testing/index.ts';
import { memoryJournal } from '../../src/actors/runtime/memory-journal.ts';
import { hostile, hostileNames, isPromise } from '../support/hostile-values.ts';
import { calls, say, simpleTool, steps, subagentRuns } from '../support/subagent-runs.ts';
import { textTalk } from '../support/text-talk.ts';

describe.each(hostileNames.filter((name) => !isPromise(name)))('%s', (name) => {
  const thrown = (): never => {
    throw hostile(name);
  };
  const returned = (): unknown => hostile(name);
  const rejected = async (): Promise<never> => thrown();

  test('has a message and matches an error class only if it is an instance', () => {
    const value = hostile(name);
    expect(typeof messageOf(value)).toBe('string');
    expect(messageOf(value).length).toBeLessThanOrEqual(16_000);
    expect(codeOf(value)).toBe('INTERNAL');
    expect([isA(value, OffstageError), isA(value, CancelledError)]).toEqual([false, false]);
    expect(isError(value)).toBe(/error( |$)/.test(name));
  });

  describe.each([
    ['thrown', thrown],
    ['rejected with', rejected],
    ['returned', returned],
  ])('%s', (_, act) => {
    /** Runs a subagent and returns its outcome, which must be JSON. */
    async function outcome(config: Partial<SubagentConfig>, ...script: ScriptedStep[]) {
      const { run, environment } = subagentRuns(
        steps(...(script.length > 0 ? script : [calls(['work']), say('done')])),
      );
      const { result } = run(config);
      await environment.advance(700_000);
      const ended = await result;
      expect(JSON.parse(JSON.stringify(ended))).toEqual(ended);
      return ended;
    }

    test("fails or settles only the call when thrown by a subagent's tool", async () => {
      const ended = await outcome({ tools: { work: simpleTool(act) } });
      expect(ended).toMatchObject({ status: 'completed', text: 'done' });
      expect(ended.toolLedger.map(({ toolName }) => toolName)).toEqual(['work']);
    });

    test("fails or settles only the call when thrown by a subagent's generator tool", async () => {
      async function* work(): AsyncGenerator {
        yield await act();
      }
      expect(await outcome({ tools: { work: simpleTool(work) } })).toMatchObject({
        status: 'completed',
      });
    });

    test('fails only the call when thrown by toModelOutput, needsApproval, preApproved.when or a schema', async () => {
      for (const more of [
        { toModelOutput: act },
        {
          inputSchema: {
            jsonSchema: { type: 'object' },
            [Symbol.for('vercel.ai.schema')]: true,
            validate: act,
          },
        },
      ])
        expect(await outcome({ tools: { work: simpleTool(() => 'ok', more) } })).toMatchObject({
          status: 'completed',
        });
      expect(
        await outcome({ tools: { work: simpleTool(() => 'ok', { needsApproval: act }) } }),
      ).toMatchObject({ status: 'completed' });
      expect(
        await outcome({
          tools: { work: simpleTool(() => 'ok', { needsApproval: true }) },
          preApproved: [{ tool: 'work', when: act as never }],
        }),
      ).toMatchObject({ status: 'completed' });
    });

    test('ends the run with an outcome when thrown by createInstance or dispose', async () => {
      const config = { tools: { work: simpleTool(() => 'ok') } };
      const created = await outcome({ ...config, createInstance: act as never });
      expect(['completed', 'failed', 'timed_out']).toContain(created.status);
      expect(await outcome({ ...config, dispose: act as never })).toMatchObject({
        status: 'completed',
      });
    });

    test("does no harm when thrown by a program's handlers", async () => {
      const { run, environment } = subagentRuns(
        steps(calls(['ask_user', { question: 'Which?' }]), say('done')),
      );
      const handler = act as never;
      const { result } = run(
        { interactive: true, stream: true },
        { onQuestion: handler, onStep: handler, onProgress: handler, onError: handler },
      );
      await environment.advance(1_000_000);
      expect(await result).toMatchObject({ status: 'completed' });
    });

    test("does no harm when thrown by a session's tool, hook or memory", async () => {
      const hook = act as never;
      const memory = { facts: act, remember: act, forget: act } as unknown as MemoryStore;
      const talk = textTalk({
        memory,
        tools: [
          defineTool({
            name: 'work',
            description: 'Works',
            parameters: z.object({}),
            execute: act,
          }),
        ],
        subagents: { report: { script: () => say('reported'), config: { dispose: hook } } },
        hooks: {
          onSessionStart: hook,
          onToolCall: hook,
          onToolResult: hook,
          onToolError: hook,
          onSubagentStart: hook,
          onSubagentStep: hook,
          onSubagentEnd: hook,
          onTurnEnd: hook,
          onDelivered: hook,
          onError: hook,
          onSessionEnd: hook,
        },
        agent: { onEnter: hook, onExit: hook },
      });
      await talk.start();
      await talk.environment.advance(60_000);
      await talk.type('use work');
      await talk.environment.advance(60_000);
      await talk.type('use report');
      await talk.environment.advance(60_000);
      await talk.type('still there?');
      await talk.environment.advance(60_000);
      expect(talk.said().at(-1)).toBe('You said: still there?');
      expect(talk.state().subagents.map(({ state }) => state)).toEqual(['completed']);
      await talk.close();
      for (const event of talk.events) JSON.stringify(event);
    });
  });

  test('fails the run with a typed error when thrown by a model', async () => {
    const { run, environment } = subagentRuns(thrown);
    const { result } = run();
    await environment.advance(700_000);
    expect(await result).toMatchObject({ status: 'failed', error: { code: expect.any(String) } });
  });

  test("ends the response but not the session when thrown by the session's model", async () => {
    let isHostile = true;
    const talk = textTalk({
      lead: () => {
        if (isHostile) thrown();
        return say('Hello.');
      },
    });
    await talk.start();
    await talk.type('hello');
    await talk.environment.advance(60_000);
    expect(talk.events).toContainEqual(expect.objectContaining({ type: 'error.reported' }));
    isHostile = false;
    await talk.type('again');
    expect(talk.said()).toEqual(['Hello.']);
    await talk.close();
  });
});

/** JSON text that is nested too deeply for a recursive program. */
const deep = (levels: number): string => '{"more":'.repeat(levels) + '1' + '}'.repeat(levels);

describe.each([201, 2_000, 20_000])('JSON nested %d deep', (levels) => {
  const anything = z.record(z.string(), z.json());
  const work = (execute: () => unknown) =>
    simpleTool(execute, { inputSchema: anything, description: 'Works' });

  test('fails only the call when used as the arguments, and gives the model the reason', async () => {
    const { outcome, prompts } = subagentRuns(
      steps({ calls: [{ name: 'work', input: deep(levels) }] }, say('done')),
    );
    const ended = await outcome({ tools: { work: work(() => 'ok') } });
    expect(ended).toMatchObject({ status: 'completed', toolLedger: [{ status: 'error' }] });
    expect(JSON.stringify(prompts[1]?.prompt)).toContain('nested deeper than 200 levels');
  });

  test('fails only the call when returned by a tool or by toModelOutput', async () => {
    const nested = (): unknown => JSON.parse(deep(levels));
    for (const tool of [
      work(nested),
      simpleTool(() => 1, { toModelOutput: () => ({ type: 'json', value: nested() }) }),
    ]) {
      const { outcome } = subagentRuns(steps(calls(['work']), say('done')));
      expect(await outcome({ tools: { work: tool } })).toMatchObject({
        status: 'completed',
        toolLedger: [
          { status: 'error', output: expect.stringContaining('nested deeper than 200 levels') },
        ],
      });
    }
  });

  test('causes another request to the model when returned as the structured output', async () => {
    const { outcome } = subagentRuns(steps(say(deep(levels)), say('{"more":1}')));
    expect(await outcome({ outputSchema: anything })).toMatchObject({
      status: 'completed',
      output: { more: 1 },
    });
  });

  test('fails only the call when passed to complete_task', async () => {
    const { outcome } = subagentRuns(
      steps(
        { calls: [{ name: 'complete_task', input: `{"result":${deep(levels)}}` }] },
        calls(['complete_task', { result: 'flat' }]),
      ),
    );
    expect(await outcome({ completion: 'tool' })).toMatchObject({ output: 'flat' });
  });

  test("disappears from an answer's provider metadata", async () => {
    const runs = subagentRuns(steps(calls(['work']), say('done')));
    const { model } = runs;
    const doGenerate: typeof model.doGenerate = async (call) => {
      const answer = await model.doGenerate(call);
      const added = { provider: { nested: JSON.parse(deep(levels)) as never } };
      const content = answer.content.map((part) => ({ ...part, providerMetadata: added }));
      return { ...answer, content, providerMetadata: added };
    };
    const ended = await runs.outcome(
      { tools: { work: work(() => 'ok') } },
      { model: { ...model, doGenerate } },
    );
    expect(ended).toMatchObject({ status: 'completed', toolLedger: [{ status: 'ok' }] });
  });

  test('fails only the call when returned by an inline tool, and does not end the session', async () => {
    const journal = memoryJournal();
    const talk = textTalk({
      journal,
      lead: ({ user, prompt }) => {
        if (prompt.at(-1)?.role === 'tool') return say('Told.');
        if (user === 'args') return { calls: [{ name: 'work', input: deep(levels) }] };
        if (user === 'result') return calls(['work']);
        return say(`You said: ${user}`);
      },
      tools: [
        defineTool({
          name: 'work',
          description: 'Works',
          parameters: anything,
          execute: () => JSON.parse(deep(levels)) as unknown,
        }),
      ],
    });
    await talk.start();
    for (const words of ['args', 'result', 'still there?']) await talk.type(words);
    expect(talk.said()).toEqual(['Told.', 'Told.', 'You said: still there?']);
    expect(
      talk.events.flatMap((event) => (event.type === 'tool.answered' ? [event.status] : [])),
    ).toEqual(['invalid', 'failed']);
    await talk.close();
  });
});

describe('the token counts of a provider', () => {
  const counts = [Number.NaN, -5_000, Infinity, -Infinity, 1e300, '12', null, undefined, {}, 10n];
  test.each(counts)('count %s as 0 and let the budget use an estimate', async (count) => {
    const counting = ({ model }: ReturnType<typeof subagentRuns>) => {
      const doGenerate: typeof model.doGenerate = async (call) => ({
        ...(await model.doGenerate(call)),
        usage: {
          inputTokens: { total: count, noCache: count, cacheRead: count, cacheWrite: count },
          outputTokens: { total: count, text: count, reasoning: count },
        } as never,
      });
      return { model: { ...model, doGenerate } };
    };
    const config = { tools: { work: simpleTool(() => 'ok') } };
    const runs = subagentRuns(steps(calls(['work']), calls(['work']), say('done')));
    const { usage } = await runs.outcome(config, counting(runs));
    expect(usage).toEqual({ inputTokens: 0, outputTokens: 0, totalTokens: 0 });
    // The budget counts the text that was read and written instead, and nothing is refunded.
    const limited = subagentRuns(({ prompt }) =>
      JSON.stringify(prompt.at(-1)).includes('last answer') ? say('Half.') : calls(['work']),
    );
    const ended = await limited.outcome(
      { ...config, maxSteps: 100, budget: { tokens: 2_000 } },
      counting(limited),
    );
    expect(ended).toMatchObject({ status: 'failed', error: { code: 'BUDGET_EXHAUSTED' } });
  });
});
