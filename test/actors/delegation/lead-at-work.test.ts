// The tools in a session: what a program's AI SDK agent has, a lead agent has, too.

import { describe, expect, test } from 'vitest';
import { leadSubagents, leadTools } from '../../../src/actors/delegation/toolsets/lead-toolset.ts';
import { createParentSubagentToolset } from '../../../src/actors/delegation/toolsets/parent-toolset.ts';
import {
  createSubAgentTool,
  subAgentTools,
} from '../../../src/actors/delegation/sub-agents/sub-agent-tool.ts';
import { TextSession, type TextPart } from '../../../src/index.ts';
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
  });
  const parts: TextPart[] = [];
  session.parts.subscribe((part) => parts.push(part));
  await session.start();
  await environment.settle();
  return {
    environment,
    session,
    said: () => parts.flatMap((part) => (part.type === 'text.done' ? [part.text] : [])),
    async close() {
      const closed = session.close();
      await environment.advance(60_000);
      await closed;
    },
  };
}

describe('a lead agent', () => {
  test('[HW6] goes on talking while a subagent__ tool works, and tells its result', async () => {
    const helpers = subAgentTools(createSubAgentTool(summarizer, texts));
    const { session, environment, said, close } = await talk(helpers, {
      lead: ({ user, prompt }) => {
        if (user.startsWith('[')) return { text: `Told: ${/"summary":"(\w+)"/.exec(user)?.[1]}` };
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
  });

  test('[M1 M7] P8: spawns with the parent toolset; the child has its tools and its depth', async () => {
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
    // Forked: it knows what was said.
    expect(JSON.stringify(prompts[0]?.prompt)).toContain('The secret is 42');
    expect(prompts[0]?.toolNames).toContain('read');
    expect(prompts[0]?.toolNames).toContain('spawn_subagent');
    expect(prompts[0]?.toolNames).not.toContain('kill_subagent');
    // It asks as itself, not as the lead agent: it does not see the other one.
    expect(prompts[1]?.results).toEqual([{ subagents: [] }]);
    await environment.advance(10_000);
    await close();
  });
});
