// The lead agent's tool calls: each gets exactly one answer (TOOL-CALL-1), whatever the tool does.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineTool,
  TextSession,
  type SessionEvent,
  type ToolContext,
  type ToolDefinition,
} from '../../../src/index.ts';
import { scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../../support/subagent-runs.ts';
import { agentOf, backgroundTool, configOf, LEAD, textTalk } from '../../support/text-talk.ts';

const inline = (
  name: string,
  execute: (args: Record<string, unknown>, context: ToolContext) => unknown,
  more: Partial<ToolDefinition> = {},
): ToolDefinition =>
  defineTool<Record<string, unknown>>({
    name,
    description: `Does ${name}`,
    parameters: z.record(z.string(), z.unknown()),
    execute,
    ...(more as object),
  });

describe('an inline tool', () => {
  test(
    'gets its arguments and its context, and returns its result to the model',
    { tags: ['B8', 'B9'] },
    async () => {
      const seen: unknown[] = [];
      const hooks: string[] = [];
      const { start, type, said, session } = textTalk({
        tools: [
          inline('weather', ({ city }, { callId, agentName, sessionId, abortSignal }) => {
            seen.push([city, callId, agentName, sessionId === session.id, abortSignal.aborted]);
            return { sky: 'blue' };
          }),
        ],
        hooks: {
          onToolCall: ({ name, input }) => hooks.push(`${name} ${JSON.stringify(input)}`),
          onToolResult: ({ name, output }) => hooks.push(`${name} ${JSON.stringify(output)}`),
        },
      });
      await start();
      await type('use weather {"city":"Rome"}');
      expect(seen).toEqual([['Rome', 'call_1', 'lead', true, false]]);
      expect(hooks).toEqual(['weather {"city":"Rome"}', 'weather {"sky":"blue"}']);
      expect(said()).toEqual(['Tools said: [{"sky":"blue"}]']);
    },
  );

  test('reports a failure to events, hooks and the model when it throws', async () => {
    const outputs: unknown[] = [];
    const statuses: string[] = [];
    const { start, type, events, errors } = textTalk({
      tools: [
        inline('throws', () => {
          throw new Error('no such city');
        }),
        inline('returns_an_error', () => new Error('no such street')),
        inline('returns_no_json', () => 10n),
        inline('works', () => 'fine'),
      ],
      hooks: { onToolResult: ({ name, status }) => void statuses.push(`${name} ${status}`) },
      onModelCall: (_, { prompt }) => {
        const last = prompt.at(-1);
        if (last?.role !== 'tool') return;
        for (const part of last.content) if (part.type === 'tool-result') outputs.push(part.output);
      },
    });
    await start();
    for (const name of ['throws', 'returns_an_error', 'returns_no_json', 'works', 'unknown'])
      await type(`use ${name}`);
    const expected = [
      'throws failed',
      'returns_an_error failed',
      'returns_no_json failed',
      'works result',
      'unknown invalid',
    ];
    expect(statuses).toEqual(expected);
    expect(
      events.flatMap((event) =>
        event.type === 'tool.answered' ? [`${event.name} ${event.status}`] : [],
      ),
    ).toEqual(expected);
    expect(outputs).toEqual([
      { type: 'error-json', value: { error: 'no such city' } },
      { type: 'error-json', value: { error: 'no such street' } },
      { type: 'error-json', value: { error: expect.stringContaining('BigInt') } },
      { type: 'text', value: 'fine' },
      { type: 'error-json', value: { error: expect.stringContaining('Unknown tool') } },
    ]);
    expect(errors).toEqual([]);
  });

  test(
    'still answers when it throws or rejects, or when its result is missing or not JSON',
    { tags: ['B20'] },
    async () => {
      const round: Record<string, unknown> = {};
      round['self'] = round;
      const { start, type, said, environment } = textTalk({
        tools: [
          inline('throws', () => {
            throw new Error('no such city');
          }),
          inline('rejects', () => Promise.reject(new Error('no such street'))),
          inline('nothing', () => {}),
          inline('big', () => 10n),
          inline('round', () => round),
          inline('date', () => new Date(0)),
        ],
      });
      await start();
      await type('use throws and rejects and nothing and big and round and date');
      expect(JSON.parse(said()[0]?.slice('Tools said: '.length) ?? '')).toEqual([
        { error: 'no such city' },
        { error: 'no such street' },
        null,
        { error: expect.stringContaining('not JSON') },
        { error: expect.stringContaining('not JSON') },
        '1970-01-01T00:00:00.000Z',
      ]);
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test('P7: cuts a result that is too long, and adds a note', async () => {
    const outputs: unknown[] = [];
    const { start, type, said } = textTalk({
      tools: [inline('flood', () => 'x'.repeat(1_000_000))],
      hooks: { onToolResult: ({ output }) => outputs.push(output) },
    });
    await start();
    await type('use flood');
    expect(outputs).toEqual([
      expect.objectContaining({ truncated: true, originalBytes: 1_000_000 }),
    ]);
    // The conversation stores even less of the output.
    expect(said()[0]?.length).toBeLessThan(100_000);
    expect(said()[0]).toMatch(/more characters/);
  });

  test(
    'times out after 30 s, or after its own limit, if it never settles',
    { tags: ['B9', 'B20', 'B72'] },
    async () => {
      const signals: AbortSignal[] = [];
      const hang = (_: unknown, { abortSignal }: ToolContext): Promise<never> => {
        signals.push(abortSignal);
        return never();
      };
      const doubtful: string[] = [];
      const { start, type, said, environment } = textTalk({
        tools: [
          inline('hang', hang, { idempotent: true }),
          inline('brief', hang, { timeout: 100 }),
        ],
        hooks: { onCallInDoubt: ({ toolName }) => void doubtful.push(toolName) },
      });
      await start();
      await type('use brief');
      await environment.advance(99);
      expect(said()).toEqual([]);
      await environment.advance(1);
      expect(said()).toEqual([
        expect.stringContaining('"brief\\" timed out: whether it was done is not known'),
      ]);
      await type('use hang');
      await environment.advance(29_999);
      expect(said()).toHaveLength(1);
      await environment.advance(1);
      expect(said()[1]).toContain('"hang\\" timed out');
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
      // A repeatable call does not have to be checked by a person.
      expect(doubtful).toEqual(['brief']);
      expect(environment.pendingTimers).toBe(0);
    },
  );

  test(
    'does not delay other tools when it is slow, although the model waits for every result',
    { tags: ['BW30'] },
    async () => {
      let finish: () => void = () => {};
      const done: string[] = [];
      const { start, type, said, environment } = textTalk({
        tools: [
          inline('slow', async () => {
            await new Promise<void>((resolve) => (finish = resolve));
            return 'slow';
          }),
          inline('quick', () => 'quick'),
        ],
        hooks: { onToolResult: ({ name }) => done.push(name) },
      });
      await start();
      await type('use slow and quick');
      expect(done).toEqual(['quick']);
      expect(said()).toEqual([]);
      finish();
      await environment.settle();
      expect(said()).toEqual(['Tools said: ["slow","quick"]']);
    },
  );

  test('does not run if the session closes first', async () => {
    let ran = 0;
    const { session, environment, state } = textTalk({
      tools: [inline('count', () => (ran += 1))],
    });
    await session.start();
    session.events.subscribe((event) => {
      // The tool starts after the tasks that are already waiting for the event loop.
      if (event.type === 'tool.called') environment.scheduler.yieldThen(() => void session.close());
    });
    await session.sendText('use count');
    await environment.settle();
    expect(ran).toBe(0);
    expect(state().connection).toBe('closed');
  });

  test('receives an abort signal when the session is closed', async () => {
    let signal: AbortSignal | undefined;
    const { start, type, close, environment } = textTalk({
      tools: [
        inline('hang', (_, { abortSignal }) => {
          signal = abortSignal;
          return never();
        }),
      ],
    });
    await start();
    await type('use hang');
    expect(signal?.aborted).toBe(false);
    await close();
    expect(signal?.aborted).toBe(true);
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('an invalid call', () => {
  test('returns the validation error without running anything', { tags: ['B20'] }, async () => {
    let ran = 0;
    const { start, type, said, environment } = textTalk({
      tools: [
        defineTool({
          name: 'count',
          description: 'Counts',
          parameters: z.object({ upTo: z.number() }),
          execute: () => (ran += 1),
        }),
      ],
    });
    await start();
    await type('use fly');
    await type('use count {"upTo":"ten"}');
    await environment.settle();
    expect(said()[0]).toContain('Unknown tool: fly. Available tools: count');
    expect(said()[1]).toContain('Validation failed');
    expect(ran).toBe(0);
  });

  test('returns an error when its arguments are not JSON', async () => {
    const { start, type, said } = textTalk({
      tools: [inline('count', () => 1)],
      lead: steps(calls(['count', '{"a":']), ({ results }) =>
        say(`I got ${JSON.stringify(results)}`),
      ),
    });
    await start();
    await type('count');
    expect(said()[0]).toMatch(/I got \[.*error/);
  });
});

describe('a schema', () => {
  const checkedBy = (check: () => boolean | Promise<boolean>) =>
    defineTool({
      name: 'count',
      description: 'Counts',
      parameters: z.looseObject({}).refine(check),
      execute: () => 1,
    });
  const answered = (events: readonly SessionEvent[]) =>
    events.filter((event) => event.type === 'tool.answered');

  test('returns an error to the model, whether the schema throws or refuses the arguments', async () => {
    const broken = checkedBy(() => {
      throw new Error('the check broke');
    });
    const { start, type, events } = textTalk({ tools: [broken] });
    await start();
    await type('use count');
    expect(answered(events)).toEqual([
      expect.objectContaining({
        status: 'invalid',
        output: { error: expect.stringContaining('the check broke') },
      }),
    ]);
  });

  test('does not emit an event for a call that was cancelled during validation', async () => {
    let pass: (fits: boolean) => void = () => {};
    const slow = checkedBy(() => new Promise((resolve) => (pass = resolve)));
    const told: string[] = [];
    const { start, type, session, events, environment } = textTalk({
      tools: [slow],
      hooks: { onToolCall: ({ name }) => told.push(name) },
    });
    await start();
    await type('use count');
    expect(session.cancelToolCall(session.pendingToolCalls[0] ?? '')).toBe(true);
    pass(true);
    await environment.settle();
    expect(answered(events).map(({ status }) => status)).toEqual(['cancelled']);
    expect(told).toEqual([]);
  });
});

describe('P6: a call id that is repeated', () => {
  test('counts as one call within one model answer', async () => {
    const ran: unknown[] = [];
    const { start, type, said } = textTalk({
      tools: [inline('count', (args) => ran.push(args))],
      lead: steps(
        calls(['count', { n: 1 }, 'call_0'], ['count', { n: 2 }, 'call_0']),
        ({ results }) => say(`I got ${JSON.stringify(results)}`),
      ),
    });
    await start();
    await type('count');
    expect(ran).toHaveLength(2);
    expect(said()).toEqual(['I got [1,2]']);
  });

  test('runs as a separate call in a later answer, because some providers number calls from 0', async () => {
    const ran: unknown[] = [];
    const { start, type, said } = textTalk({
      tools: [inline('count', ({ n }) => ran.push(n))],
      lead: steps(
        calls(['count', { n: 1 }, 'call_0']),
        calls(['count', { n: 2 }, 'call_0']),
        ({ results }) => say(`I got ${JSON.stringify(results)}`),
        calls(['count', { n: 3 }, 'call_0']),
        ({ results }) => say(`I got ${JSON.stringify(results)}`),
      ),
    });
    await start();
    await type('count');
    await type('once more');
    expect(ran).toEqual([1, 2, 3]);
    expect(said()).toEqual(['I got [2]', 'I got [3]']);
  });

  test('does not stop the conversation while the first call is running', async () => {
    const { start, type, said, session } = textTalk({
      subagents: {
        work: { script: () => calls(['hang']), config: { tools: { hang: simpleTool(never) } } },
      },
      lead: ({ user, prompt }) => {
        if (prompt.at(-1)?.role === 'tool') return say('On it.');
        return user.startsWith('work')
          ? calls(['work', { user }, 'call_0'])
          : say(`You said: ${user}`);
      },
    });
    await start();
    await type('work on one');
    await type('work on another');
    await type('hello?');
    expect(said()).toEqual(['On it.', 'On it.', 'You said: hello?']);
    expect(session.subagents.list()).toHaveLength(2);
  });
});

test('forces an answer from a model that otherwise only calls tools', async () => {
  let asked = 0;
  const { start, type, said } = textTalk({
    tools: [inline('count', () => 1)],
    lead: ({ toolNames }) => {
      asked += 1;
      return toolNames.length === 0 || asked > 20 ? say('Enough.') : calls(['count']);
    },
  });
  await start();
  await type('count');
  expect(asked).toBeLessThan(12);
  expect(said().length).toBeLessThanOrEqual(1);
});

describe('refuses conflicting options at construction', () => {
  const make =
    (tools: readonly unknown[], subagentConfigs = {}) =>
    () =>
      new TextSession({
        environment: simulatedEnvironment(),
        model: scriptedModel({ scripts: [{ when: LEAD, script: () => say('hello') }] }),
        agents: [{ ...agentOf({}), tools: tools as ToolDefinition[] }],
        subagentConfigs,
      });
  const fine = inline('fine', () => 1);

  test.each([
    ['a name that no provider takes', [{ ...fine, name: 'to do' }], {}, /to do/],
    ['a name that is taken', [fine, fine], {}, /"fine": the name is taken/],
    ['no description', [{ ...fine, description: '' }], {}, /description/],
    ['no parameters', [{ ...fine, parameters: undefined }], {}, /parameters/],
    ['no execute', [{ ...fine, execute: undefined }], {}, /execute/],
    ['a timeout of none', [{ ...fine, timeout: 0 }], {}, /timeout/],
    ['a background tool without a subagent', [backgroundTool('work')], {}, /"work"/],
    ['a subagent without a background tool', [fine], { work: configOf('work') }, /"work"/],
    [
      'a subagent whose tool has no schema',
      [backgroundTool('work')],
      { work: configOf('work', { tools: { bare: {} } }) },
      /work\.tools\.bare/,
    ],
    [
      'a subagent that cannot be',
      [backgroundTool('work')],
      { work: configOf('work', { maxSteps: 0 }) },
      /subagentConfigs\.work[\s\S]*maxSteps/,
    ],
  ])('%s', (_, tools, configs, message) => {
    expect(make(tools, configs)).toThrow(
      expect.objectContaining({
        name: 'ConfigurationError',
        message: expect.stringMatching(message),
      }),
    );
  });
});
