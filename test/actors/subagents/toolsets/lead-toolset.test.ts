import { tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { callerOf } from '../../../../src/actors/model/caller.ts';
import {
  leadSubagents,
  leadTools,
} from '../../../../src/actors/subagents/toolsets/lead-toolset.ts';
import { createParentSubagentToolset } from '../../../../src/actors/subagents/toolsets/parent-toolset.ts';
import { rockbotToolset } from '../../../../src/compat/rockbot-toolset.ts';
import {
  createSubAgentTool,
  subAgentTools,
} from '../../../../src/actors/subagents/toolsets/sub-agent-tool.ts';
import {
  checkLeadTools,
  checkSubagentNames,
} from '../../../../src/actors/session/lead/lead-tools.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';
import { summarizer, texts } from '../../../support/agents-at-work.ts';
import { fakeService } from '../../../support/fake-service.ts';

const helpers = subAgentTools(createSubAgentTool(summarizer, texts, { description: 'Sums up' }));

function contextOf(service = fakeService()) {
  return {
    callId: 'c1',
    agentName: 'lead',
    sessionId: 's1',
    abortSignal: new AbortController().signal,
    subagents: service,
  } as never;
}

describe('leadTools', () => {
  test('turns a subagent into a background tool with its configuration', { tags: ['HW6'] }, () => {
    const tools = leadTools(helpers, { pendingMessage: 'I am on it.' });
    expect(tools).toMatchObject([
      {
        name: 'subagent__summarizer',
        description: 'Sums up',
        execution: 'background',
        pendingMessage: 'I am on it.',
      },
    ]);
    const configs = leadSubagents({ ...helpers, other: tool({ inputSchema: z.object({}) }) });
    expect(configs).toMatchObject({ subagent__summarizer: { name: 'summarizer' } });
    // How the options of a session are validated.
    expect(() => checkLeadTools('lead', tools, configs)).not.toThrow();
    expect(() => checkSubagentNames([{ name: 'lead', tools }], configs)).not.toThrow();
  });

  test('accepts a pending message for each tool', () => {
    const [named] = leadTools(helpers, { pendingMessage: { subagent__summarizer: 'Reading.' } });
    const [silent] = leadTools(helpers);
    expect(named?.pendingMessage).toBe('Reading.');
    expect(silent && 'pendingMessage' in silent).toBe(false);
  });

  test('runs any other tool inline, and passes the caller to it', async () => {
    let options: object = {};
    const service = fakeService();
    const [echo] = leadTools({
      echo: tool({
        description: 'Says it again',
        inputSchema: z.object({ words: z.string() }),
        execute: ({ words }, given) => {
          options = given;
          return words;
        },
      }),
    });
    expect(await echo?.execute?.({ words: 'hi' } as never, contextOf(service))).toBe('hi');
    expect(options).toMatchObject({ toolCallId: 'c1' });
    expect(callerOf(options)).toMatchObject({
      sessionId: 's1',
      subagentId: null,
      depth: 0,
      idempotencyKey: 's1:c1',
      service,
    });
  });

  test(
    'accepts the parent toolset, in which only the wait tools may run for a long time',
    { tags: ['M1'] },
    async () => {
      const service = fakeService();
      const tools = leadTools(createParentSubagentToolset());
      expect(() => checkLeadTools('lead', tools, {})).not.toThrow();
      const byName = new Map(tools.map((definition) => [definition.name, definition]));
      const input = { task: 'Count', contextMode: 'fork' } as never;
      expect(await byName.get('spawn_subagent')?.execute?.(input, contextOf(service))).toEqual({
        subagentId: 'sub_1',
        status: 'spawning',
      });
      // The session knows the conversation that is forked.
      expect(service.spawned[0]).toMatchObject({ config: { context: 'fork' }, callId: 'c1' });
      expect(service.spawned[0]?.messages).toBeUndefined();
      expect(byName.get('await_subagent')?.timeout).toBeGreaterThan(300_000);
      expect(byName.get('check_subagent')?.timeout).toBeUndefined();
    },
  );

  test("returns a tool's model output to the lead agent", { tags: ['R1'] }, async () => {
    const service = fakeService();
    const { clock } = simulatedEnvironment();
    const [spawn] = leadTools(rockbotToolset({ clock }));
    const input = { description: 'x', timeout_minutes: 1 } as never;
    expect(await spawn?.execute?.(input, contextOf(service))).toMatch(/^Subagent spawned with/);
    service.refuse('SESSION_LIMIT');
    expect(await spawn?.execute?.(input, contextOf(service))).toMatch(/^Error: SESSION_LIMIT/);
  });

  test.each([
    ['a description', { inputSchema: z.object({}), execute: (): number => 1 }],
    ['an inputSchema', { description: 'x', execute: (): number => 1 }],
    ['an `execute`', { description: 'x', inputSchema: z.object({}) }],
  ])('a tool without %s is refused where it is given', (what, broken) => {
    expect(() => leadTools({ broken })).toThrow(`leadTools: "broken": expected ${what}`);
  });
});
