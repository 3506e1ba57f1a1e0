// The tools in a session: a lead agent has the same tools as an AI SDK agent in a program.

import { topic } from '../../../src/compat/index.ts';
import { describe, expect, test } from 'vitest';
import { leadSubagents, leadTools } from '../../../src/actors/subagents/toolsets/lead-toolset.ts';
import { createParentSubagentToolset } from '../../../src/actors/subagents/toolsets/parent-toolset.ts';
import {
  createSubAgentTool,
  subAgentTools,
} from '../../../src/actors/subagents/toolsets/sub-agent-tool.ts';
import { TextSession, type TextPart, type TextSessionOptions } from '../../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type ScriptedModelOptions,
  type ScriptedPrompt,
} from '../../../src/testing/index.ts';
import { call, summarizer, summaryOf, texts } from '../../support/agents-at-work.ts';
import { simpleTool } from '../../support/subagent-runs.ts';

async function talk(
  tools: Readonly<Record<string, object>>,
  agents: NonNullable<ScriptedModelOptions['agents']>,
  options: Partial<TextSessionOptions> = {},
) {
  const environment = simulatedEnvironment();
  const session = new TextSession({
    environment,
    model: scriptedModel({ agents, environment }),
    agents: [
      {
        name: 'lead',
        instructions: 'You are the lead.',
        tools: leadTools(tools, { pendingMessage: 'On it.' }),
      },
    ],
    subagentConfigs: leadSubagents(tools),
    ...options,
  });
  const parts: TextPart[] = [];
  session.parts.subscribe((part) => parts.push(part));
  await session.start();
  await environment.settle();
  return {
    environment,
    session,
    parts,
    said: () => parts.flatMap((part) => (part.type === 'text.done' ? [part.text] : [])),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
    },
  };
}

describe('a lead agent', () => {
  test(
    'keeps talking while a subagent__ tool is working, and then reports its result',
    { tags: ['HW6'] },
    async () => {
      const helpers = subAgentTools(createSubAgentTool(summarizer, texts));
      const { session, environment, said, close } = await talk(helpers, {
        lead: ({ user, prompt }) => {
          if (user.startsWith('['))
            return { text: `Told: ${/"summary\\?":\\?"(\w+)/.exec(user)?.[1]}` };
          if (user === 'Hello?') return { text: 'Still here.' };
          return prompt.at(-1)?.role === 'tool'
            ? { text: 'One moment.' }
            : call('subagent__summarizer', { texts: ['a'] });
        },
        summarizer: [{ ...summaryOf('short'), delayMs: 5000 }],
      });
      await session.sendText('Sum up');
      await environment.settle();
      await session.sendText('Hello?');
      await environment.settle();
      expect(said()).toContain('Still here.');
      expect(said().join()).not.toContain('Told');
      await environment.advance(10_000);
      expect(said()).toContain('Told: short');
      await close();
    },
  );

  test(
    'gets an error for an unknown input, without spawning a subagent',
    { tags: ['R6'] },
    async () => {
      const { session, environment, said, close } = await talk(
        subAgentTools(createSubAgentTool(summarizer, texts)),
        {
          lead: ({ results, prompt }) =>
            prompt.at(-1)?.role === 'tool'
              ? { text: JSON.stringify(results.at(-1)) }
              : call('subagent__summarizer', { text: ['a'] }),
          summarizer: [summaryOf('short')],
        },
      );
      await session.sendText('Sum up');
      await environment.advance(10_000);
      expect(said().join()).toContain(
        '\\"texts\\" is missing; \\"text\\" is unknown, did you mean',
      );
      expect(session.subagents.list()).toEqual([]);
      await close();
    },
  );

  test(
    'P8: spawns a child through the parent toolset with the right tools and depth',
    { tags: ['M1', 'M7'] },
    async () => {
      const prompts: ScriptedPrompt[] = [];
      const tools = {
        ...createParentSubagentToolset(),
        read: { ...(simpleTool(() => 'text') as object) },
      };
      const { session, environment, said, close } = await talk(tools, {
        lead: ({ results, user }) => {
          const [output] = results;
          if (user.startsWith('[')) return { text: 'Heard.' };
          if (output) return { text: `Lead: ${JSON.stringify(output)}` };
          if (user === 'another') return call('spawn_subagent', { task: 'Other', tools: [] });
          return user === 'list'
            ? call('list_subagents')
            : call('spawn_subagent', { task: 'Count', disallowedTools: ['kill_subagent'] });
        },
        subagent: (prompt) => {
          if (prompt.user.includes('Other')) return { text: 'Never', delayMs: 1_000_000 };
          prompts.push(prompt);
          return prompts.length === 1
            ? call('list_subagents')
            : { ...call('complete_task', { result: 'x' }), delayMs: 5000 };
        },
      });
      for (const words of ['another', 'The secret is 42. Count']) {
        await session.sendText(words);
        await environment.settle();
      }
      await session.sendText('list');
      await environment.settle();
      expect(said()[1]).toBe('Lead: {"subagentId":"sub_2","status":"spawning"}');
      expect(said()[2]).toMatch(/"subagentId":"sub_2".*"status":"running","depth":1/);
      // The fork knows the conversation.
      expect(JSON.stringify(prompts[0]?.prompt)).toContain('The secret is 42');
      expect(prompts[0]?.toolNames).toContain('read');
      expect(prompts[0]?.toolNames).toContain('spawn_subagent');
      expect(prompts[0]?.toolNames).not.toContain('kill_subagent');
      // The subagent lists under its own id, not as the lead agent, so it does not see the other subagent.
      expect(prompts[1]?.results).toEqual([{ subagents: [] }]);
      await environment.advance(10_000);
      await close();
    },
  );

  test('reads each awaited result once, regardless of the order of arrival', async () => {
    const told: string[] = [];
    const { session, environment, said, close } = await talk(createParentSubagentToolset(), {
      lead: ({ results, user, prompt }) => {
        if (user.startsWith('[')) {
          told.push(user);
          return { text: 'Told.' };
        }
        if (prompt.at(-1)?.role !== 'tool')
          return {
            calls: ['fast', 'slow'].map((task) => ({
              name: 'spawn_subagent',
              input: { task, contextMode: 'fresh' },
            })),
          };
        return results.length === 2
          ? call('await_subagent', { subagentIds: ['sub_1', 'sub_2'] })
          : { text: `Lead: ${JSON.stringify(results.at(-1))}` };
      },
      subagent: ({ user }) => ({
        ...call('complete_task', { result: `Did ${user.includes('fast') ? 'A' : 'B'}` }),
        delayMs: user.includes('fast') ? 1000 : 20_000,
      }),
    });
    await session.sendText('Do both');
    await environment.advance(60_000);
    expect(said().join()).toMatch(/"result":"Did A".*"result":"Did B"/);
    expect(told).toEqual([]);
    await close();
  });

  test('does not receive a result that it has already read', async () => {
    const told: string[] = [];
    const { session, environment, said, close } = await talk(createParentSubagentToolset(), {
      lead: ({ results, user, prompt }) => {
        if (user.startsWith('[')) {
          told.push(user);
          return { text: 'Told.' };
        }
        const isAnswer = prompt.at(-1)?.role === 'tool';
        if (user === 'begin')
          return isAnswer
            ? { text: 'Begun.' }
            : call('spawn_subagent', { task: 'x', contextMode: 'fresh' });
        return isAnswer
          ? { text: `Lead: ${JSON.stringify(results.at(-1))}` }
          : { ...call('check_subagent', { subagentId: 'sub_1' }), delayMs: 5000 };
      },
      subagent: [{ ...call('complete_task', { result: 'Did it' }), delayMs: 1000 }],
    });
    await session.sendText('begin');
    await environment.settle();
    await session.sendText('How is it?');
    await environment.advance(60_000);
    expect(said().join()).toContain('"result":"Did it"');
    expect(told).toEqual([]);
    await close();
  });

  test("passes the user's request to a spawned subagent and its descendants", async () => {
    const tools = createParentSubagentToolset();
    const { session, parts, environment, close } = await talk(
      tools,
      {
        lead: ({ user, prompt }) =>
          user.startsWith('[') || prompt.at(-1)?.role === 'tool'
            ? { text: 'So be it.' }
            : user === 'Hello?'
              ? { text: 'Still here.' }
              : call('spawn_subagent', { task: 'outer', contextMode: 'fresh' }),
        subagent: ({ user, results }) => {
          const isDone = results.length > 0 || user.includes('inner');
          const result = user.includes('inner') ? 'Inner' : 'Outer';
          return isDone
            ? { ...call('complete_task', { result }), delayMs: 5000 }
            : {
                calls: [
                  { name: 'spawn_subagent', input: { task: 'inner', contextMode: 'fresh' } },
                  { name: 'await_subagent', input: { subagentId: 'sub_2' } },
                ],
              };
        },
      },
      { promptStyle: 'turn' },
    );
    const requests = new Map<string, string | null>();
    topic(session, 'subagent.result').subscribe(({ output, originatingUserRequest }) => {
      requests.set(output, originatingUserRequest);
    });
    await session.sendText('Find it out');
    await environment.settle();
    await session.sendText('Hello?');
    await environment.advance(60_000);
    expect([...requests]).toEqual([
      ['Inner', 'Find it out'],
      ['Outer', 'Find it out'],
    ]);
    const bubbles = parts.filter((part) => part.type === 'subagent.reported');
    expect(bubbles).toMatchObject([
      { kind: 'result', subagentId: 'sub_1', subagentName: 'subagent', text: 'Outer' },
    ]);
    await close();
  });

  test("does not receive a subagent's request that has already been closed", async () => {
    const told: string[] = [];
    const { session, environment, close } = await talk(createParentSubagentToolset(), {
      lead: ({ results, user, prompt }) => {
        if (user.startsWith('[')) {
          told.push(user);
          return { text: 'Told.' };
        }
        const isAnswer = prompt.at(-1)?.role === 'tool';
        if (user === 'begin')
          return isAnswer
            ? { text: 'Begun.' }
            : call('spawn_subagent', { task: 'x', contextMode: 'fresh' });
        const checked = results.find((result) => JSON.stringify(result).includes('messageId'));
        if (!isAnswer) return { ...call('check_subagent', { subagentId: 'sub_1' }), delayMs: 5000 };
        const { pendingRequest } = (checked ?? {}) as { pendingRequest?: { messageId: string } };
        return pendingRequest && results.length < 3
          ? call('send_to_subagent', {
              subagentId: 'sub_1',
              content: 'Red',
              inResponseTo: pendingRequest.messageId,
            })
          : { text: 'Answered.' };
      },
      subagent: [
        { ...call('request_input', { question: 'Which?' }), delayMs: 1000 },
        { ...call('complete_task', { result: 'Red it is' }), delayMs: 100_000 },
      ],
    });
    await session.sendText('begin');
    await environment.settle();
    await session.sendText('How is it?');
    await environment.advance(50_000);
    expect(told).toEqual([]);
    await environment.advance(100_000);
    expect(told).toEqual([expect.stringContaining('Red it is')]);
    await close();
  });
});
