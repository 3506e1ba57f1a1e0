// One lead agent transfers the conversation to another in a text session.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, defineTool, TextSession, type AgentContext } from '../../src/index.ts';
import { scriptedModel, type Script, type ScriptedPrompt } from '../../src/testing/index.ts';
import { calls, never, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { LEAD, textTalk, withoutNotes, type TalkOptions } from '../support/text-talk.ts';

const hand = (to: string) => `use transfer_to_agent {"agent_name":"${to}"}`;

/** A conversation with a second agent, and a record of all events around transfers. */
function handover(options: TalkOptions = {}) {
  const prompts: [who: string, prompt: ScriptedPrompt][] = [];
  const talk = textTalk({
    others: [{ name: 'billing', description: 'knows about invoices' }],
    onModelCall: (who, prompt) => prompts.push([who, prompt]),
    ...options,
  });
  const told = () =>
    talk.events.flatMap((event) => {
      const { type } = event;
      if (type === 'agent.entered' || type === 'agent.exited')
        return [`${type} ${event.agentName}`];
      if (type === 'transfer.completed') return [`${type} ${event.from} > ${event.to}`];
      if (type === 'transfer.failed') return [`${type} ${event.code}`];
      if (type === 'tool.answered')
        return [`answered ${event.name} ${JSON.stringify(event.output)}`];
      if (type === 'connection.changed' && event.state !== 'connecting') return [event.state];
      return [];
    });
  return { ...talk, prompts, told, speakers: () => prompts.map(([who]) => who) };
}

describe('a transfer', { tags: ['B69'] }, () => {
  test(
    'runs its steps in order and is acknowledged at the end',
    { tags: ['B6', 'B21', 'B69'] },
    async () => {
      const hooks: string[] = [];
      const { start, type, told, said, speakers, prompts, state } = handover({
        agent: { onExit: (_, to) => hooks.push(`exit to ${to}`) },
        others: [{ name: 'billing', onEnter: (_, from) => hooks.push(`enter from ${from}`) }],
      });
      await start();
      expect(state().agent).toBe('lead');
      await type(hand('billing'));
      expect(told()).toEqual([
        'active',
        'agent.entered lead',
        'agent.exited lead',
        'transferring',
        'active',
        'agent.entered billing',
        'transfer.completed lead > billing',
        'answered transfer_to_agent {"status":"transferred","agent_name":"billing"}',
      ]);
      expect(hooks).toEqual(['exit to billing', 'enter from lead']);
      expect(state().agent).toBe('billing');
      // The new agent speaks about the answer to the call, using its own instructions and tools.
      expect(speakers()).toEqual(['lead', 'billing']);
      expect(said()).toHaveLength(1);
      await type('hello');
      expect(speakers().at(-1)).toBe('billing');
      expect(JSON.stringify(prompts.at(-1)?.[1].prompt)).toContain(
        String.raw`{\"from\":\"lead\",\"to\":\"billing\"}`,
      );
    },
  );

  test('offers a tool that lists the other agents if there are any', async () => {
    const { start, type, prompts } = handover();
    await start();
    await type('hello');
    expect(prompts[0]?.[1].toolNames).toEqual(['transfer_to_agent']);
    const alone = handover({ others: [] });
    await alone.start();
    await alone.type('hello');
    expect(alone.prompts[0]?.[1].toolNames).toEqual([]);
  });

  test('fails before any change if the agent does not exist', { tags: ['B69'] }, async () => {
    const exits: string[] = [];
    const { start, type, told, said } = handover({
      agent: { onExit: (_, to) => exits.push(to) },
    });
    await start();
    await type(hand('nobody'));
    expect(exits).toEqual([]);
    expect(told().slice(2)).toEqual([
      'transfer.failed UNKNOWN_AGENT',
      expect.stringContaining('There is no agent \\"nobody\\"; expected \\"billing\\"'),
    ]);
    expect(said().at(-1)).toContain('leads on.');
    await type(hand('lead'));
    expect(told().at(-2)).toBe('transfer.failed ALREADY_LEADING');
  });

  test(
    'lets the previous agent answer all the other calls in the batch',
    { tags: ['BW22'] },
    async () => {
      const agents: string[] = [];
      const look = defineTool({
        name: 'look',
        description: 'Looks',
        parameters: z.object({}),
        execute: (_, { agentName }) => {
          agents.push(agentName);
          return 'seen';
        },
      });
      const { start, type, events, speakers } = handover({ tools: [look] });
      await start();
      await type(`use look and transfer_to_agent {"agent_name":"billing"} and look and missing`);
      const answers = events.flatMap((event) =>
        event.type === 'tool.answered' ? [[event.name, event.output]] : [],
      );
      expect(answers).toHaveLength(4);
      expect(answers).toContainEqual([
        'transfer_to_agent',
        expect.objectContaining({ status: 'transferred' }),
      ]);
      expect(answers.filter(([name]) => name === 'look')).toEqual([
        ['look', 'seen'],
        ['look', 'seen'],
      ]);
      expect(answers.find(([name]) => name === 'missing')?.[1]).toMatchObject({
        error: expect.stringContaining('Unknown tool'),
      });
      expect(agents).toEqual(['lead', 'lead']);
      // TEXT-LEAD-2: the next agent speaks once the last call has been answered.
      expect(speakers()).toEqual(['lead', 'billing']);
    },
  );

  test('runs once if called twice and refuses the second call', { tags: ['BW28'] }, async () => {
    const { start, type, told } = handover({
      others: [{ name: 'billing' }, { name: 'sales' }],
    });
    await start();
    await type(`${hand('billing')} and transfer_to_agent {"agent_name":"sales"}`);
    expect(told().filter((line) => line.startsWith('answered'))).toEqual([
      expect.stringContaining('"agent_name":"billing"'),
      expect.stringContaining('NOT_LEADING'),
    ]);
    expect(told().filter((line) => line.startsWith('agent.entered'))).toEqual([
      'agent.entered lead',
      'agent.entered billing',
    ]);
  });

  test(
    'continues if hooks throw or reject and reports the errors',
    { tags: ['BW28'] },
    async () => {
      const { start, type, told, errors, session } = handover({
        agent: {
          onExit: () => {
            throw new Error('exit broke');
          },
        },
        others: [{ name: 'billing', onEnter: () => Promise.reject(new Error('enter broke')) }],
      });
      await start();
      await type(hand('billing'));
      expect(errors.map(({ where }) => where)).toEqual([
        'onExit of agent "lead"',
        'onEnter of agent "billing"',
      ]);
      expect(told()).toContain('transfer.completed lead > billing');
      expect(session.actor.getSnapshot().value.connection).toBe('active');
    },
  );

  test('waits 5 s for a hook that never settles', async () => {
    const { start, session, environment, told, errors, close } = handover({
      agent: { onExit: never },
    });
    await start();
    await session.sendText(hand('billing'));
    await environment.advance(4999);
    expect(told()).not.toContain('agent.exited lead');
    await environment.advance(1);
    expect(told()).toContain('transfer.completed lead > billing');
    expect(errors.map(({ error }) => (error as { code?: string }).code)).toEqual(['HOOK_TIMEOUT']);
    await close();
    expect(environment.pendingTimers).toBe(0);
  });

  test('does not report a hook that has finished or that the end of the session interrupts', async () => {
    const { start, session, environment, errors } = handover({
      agent: { onEnter: () => {}, onExit: never },
    });
    await start();
    await environment.advance(10_000);
    expect(errors).toEqual([]);
    const answers: unknown[] = [];
    void session.transfer('billing').then((answer) => answers.push(answer));
    await session.close();
    await environment.settle();
    expect(answers).toMatchObject([{ code: 'SESSION_CLOSED' }]);
    await environment.advance(10_000);
    expect(errors).toEqual([]);
  });

  test('answers its call and leaves nothing behind if the session closes in the meantime', async () => {
    const { start, session, environment, close } = handover({ agent: { onExit: never } });
    await start();
    await session.sendText(hand('billing'));
    await environment.settle();
    await close();
    expect(environment.pendingTimers).toBe(0);
  });
});

describe('the agents', { tags: ['B7', 'B70'] }, () => {
  test(
    'greet when they take over, in the same message that answers the call',
    { tags: ['B70'] },
    async () => {
      const greet: Script = ({ prompt }) =>
        say(JSON.stringify(prompt).includes('Say hi') ? 'Hi!' : '?');
      const { start, type, said } = handover({
        greeting: 'Welcome them',
        others: [{ name: 'billing', greeting: 'Say hi', script: greet }],
      });
      await start();
      expect(said()).toEqual([expect.stringMatching(/^Told: \[note \S+\] Welcome them$/)]);
      await type(hand('billing'));
      expect(said().slice(1)).toEqual(['Hi!']);
    },
  );

  test(
    'start another transfer after the current one, to the agent that a hook requested last',
    { tags: ['B7'] },
    async () => {
      const { start, type, told, state } = handover({
        others: [
          {
            name: 'billing',
            onEnter: (context) => [
              context.requestTransfer('nobody'),
              context.requestTransfer('sales'),
            ],
          },
          { name: 'sales' },
        ],
      });
      await start();
      await type(hand('billing'));
      expect(told().filter((line) => line.startsWith('transfer.'))).toEqual([
        'transfer.completed lead > billing',
        'transfer.completed billing > sales',
      ]);
      expect(state().agent).toBe('sales');
    },
  );

  test('transfer if the first agent requests it in onEnter', { tags: ['B7'] }, async () => {
    const { start, environment, state } = handover({
      agent: {
        onEnter(context) {
          context.requestTransfer('billing');
          return new Promise((resolve) =>
            environment.scheduler.schedule(() => resolve(null), 1000),
          );
        },
      },
    });
    await start();
    expect(state().agent).not.toBe('billing');
    await environment.advance(1000);
    expect(state().agent).toBe('billing');
  });

  test(
    'receive the last five turns in onTurnCompleted and can read history and add notes',
    { tags: ['B6', 'B7'] },
    async () => {
      const seen: { turns: string[]; agent: string }[] = [];
      let context: AgentContext | null = null;
      const { start, type, session } = handover({
        agent: {
          onTurnCompleted(given, transcript) {
            context = given;
            seen.push({ turns: transcript.map(({ content }) => content), agent: given.agentName });
          },
        },
      });
      await start();
      for (const word of ['one', 'two', 'three', 'four']) await type(word);
      expect(seen.at(-1)).toEqual({
        turns: ['You said: two', 'three', 'You said: three', 'four', 'You said: four'],
        agent: 'lead',
      });
      const given = context as unknown as AgentContext;
      expect(given.sessionId).toBe(session.id);
      expect(given.getRecentTurns(2).map(({ content }) => content)).toEqual([
        'four',
        'You said: four',
      ]);
      expect(given.getRecentTurns()).toHaveLength(8);
      expect(await given.getMemoryFacts()).toEqual([]);
    },
  );

  test("receive a hook's note without replying to it", { tags: ['B7'] }, async () => {
    const { start, type, prompts, said } = handover({
      others: [
        {
          name: 'billing',
          onEnter: async (context) => context.injectSystemMessage('They owe 7 euros.'),
        },
      ],
    });
    await start();
    await type(hand('billing'));
    expect(JSON.stringify(prompts.at(-1)?.[1].prompt)).toContain('They owe 7 euros.');
    expect(said()).toHaveLength(1);
  });

  test(
    'accept a function as instructions and put the language before its text',
    { tags: ['B6'] },
    async () => {
      let calls = 0;
      const { start, type, prompts, errors } = handover({
        agent: {
          language: 'de-AT',
          instructions: ({ agentName }) => {
            calls += 1;
            if (calls === 3) throw new Error('no words');
            return `${LEAD} ${agentName} ${calls}`;
          },
        },
      });
      await start();
      for (const word of ['one', 'two', 'three']) await type(word);
      const systems = prompts.map(([, { system }]) => withoutNotes(system));
      expect(systems[0]).toBe(
        `Speak and write Austrian German (de-AT), unless the user asks for another language.\n\n${LEAD} lead 1`,
      );
      // The last instructions stay in effect when the transfer fails.
      expect(systems.map((text) => text.at(-1))).toEqual(['1', '2', '2']);
      expect(errors.map(({ where }) => where)).toEqual(['instructions of agent "lead"']);
    },
  );

  test(
    "lose their own directives, but not the session's, when they end",
    { tags: ['B9', 'B70'] },
    async () => {
      const order = defineTool({
        name: 'order',
        description: 'Orders',
        parameters: z.object({
          key: z.string(),
          value: z.string().nullable(),
          scope: z.enum(['session', 'agent']).optional(),
        }),
        execute: ({ key, value, scope }, { setDirective }) => {
          setDirective(key, value, scope);
          return 'done';
        },
      });
      const { start, type, prompts, said } = handover({ tools: [order], agent: {} });
      const system = () => withoutNotes(prompts.at(-1)?.[1].system);
      await start();
      await type('use order {"key":"pace","value":"slow"}');
      await type('use order {"key":"tone","value":"formal\\n- pace: fast","scope":"agent"}');
      await type('hello');
      expect(system()).toBe(
        `${LEAD}\n\n# Directives\n- pace: slow\n- tone: formal\n  - pace: fast`,
      );
      await type('use order {"key":"pace","value":null}');
      await type('use order {"key":"pace","value":"calm"}');
      await type(hand('billing'));
      expect(system()).toContain('# Directives\n- pace: calm');
      expect(system()).not.toContain('tone');
      await type('use order {"key":"","value":"x"}');
      expect(said().at(-1)).toContain('Unknown tool');
    },
  );

  test(
    'refuse an invalid or excess directive and say what was expected',
    { tags: ['B9'] },
    async () => {
      const thrown: unknown[] = [];
      const order = defineTool({
        name: 'order',
        description: 'Orders',
        parameters: z.object({}),
        async execute(_, { setDirective }) {
          const attempt = (...args: unknown[]): void => {
            try {
              (setDirective as (...args: unknown[]) => void)(...args);
            } catch (error) {
              thrown.push((error as { code: string }).code);
            }
          };
          attempt('', 'x');
          attempt('k', '');
          attempt('k', 'v', 'world');
          attempt('k', 'v'.repeat(2001));
          return 'done';
        },
      });
      const { start, type } = handover({ tools: [order] });
      await start();
      await type('use order');
      expect(thrown).toEqual(Array(4).fill('INVALID_DIRECTIVE'));
    },
  );
});

test(
  'keeps subagents running and lets the new lead agent deliver their results',
  { tags: ['B35', 'BW22'] },
  async () => {
    const { start, type, environment, speakers, said, state } = handover({
      subagents: {
        report: {
          script: steps(calls(['wait']), say('Sales are up.')),
          config: {
            tools: {
              wait: simpleTool(
                () =>
                  new Promise((resolve) => {
                    environment.scheduler.schedule(() => resolve('done'), 1000);
                  }),
              ),
            },
          },
        },
      },
    });
    await start();
    await type('use report');
    await type(hand('billing'));
    expect(state().subagents[0]?.state).toBe('running');
    await environment.advance(1000);
    expect(speakers().at(-1)).toBe('billing');
    expect(said().at(-1)).toContain('Sales are up.');
  },
);

describe('an agent whose configuration is impossible', () => {
  const lead = { name: 'lead', instructions: 'You lead.' };
  const tool = {
    name: 'transfer_to_agent',
    description: 'x',
    parameters: z.object({}),
    execute: () => 1,
  };
  test.each([
    ['none', [], 'expected an array of one agent or more, got none'],
    ['two of one name', [lead, lead], 'expected names that are unique, got "lead" twice'],
    [
      'a tool that is the runtime’s',
      [
        { ...lead, tools: [tool] },
        { ...lead, name: 'b' },
      ],
      'the runtime reserves this name',
    ],
    ['a language that is none', [{ ...lead, language: 'not a tag' }], 'expected a language tag'],
    ['instructions that are none', [{ ...lead, instructions: 7 }], 'instructions'],
  ])('fails at construction: %s', (_, agents, message) => {
    const make = () =>
      new TextSession({ agents: agents as never, model: scriptedModel({ scripts: [] }) });
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(message);
  });
});
