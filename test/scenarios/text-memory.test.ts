// The work that subagents leave behind, and how the user and the lead agent of a text session learn about it.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { leadTools } from '../../src/actors/subagents/toolsets/lead-toolset.ts';
import { createWorkingMemoryToolset, workingMemory } from '../../src/entries/memory.ts';
import { defineTool } from '../../src/index.ts';
import { simulatedEnvironment, type ScriptedPrompt } from '../../src/testing/index.ts';
import { calls, never, resultsIn, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { textTalk, type ScriptedSubagent, type TalkOptions } from '../support/text-talk.ts';

async function talkOf(
  subagents: Record<string, ScriptedSubagent>,
  options: Partial<TalkOptions> = {},
) {
  const environment = simulatedEnvironment();
  const memory = workingMemory({ environment });
  const tools = createWorkingMemoryToolset({ memory });
  const prompts: { who: string; prompt: ScriptedPrompt }[] = [];
  const talk = textTalk({
    environment,
    workingMemory: memory,
    sessionId: 's1',
    tools: leadTools(tools),
    subagents: Object.fromEntries(
      Object.entries(subagents).map(([name, { config, ...subagent }]) => [
        name,
        { ...subagent, config: { ...config, tools: { ...tools, ...config?.tools } } },
      ]),
    ),
    onModelCall: (who, prompt) => prompts.push({ who, prompt }),
    ...options,
  });
  await talk.start();
  const lead = { sessionId: 's1', path: [] };
  return { ...talk, memory, prompts, lead };
}

const told = (said: readonly string[]): string =>
  said.find((text) => text.startsWith('Told')) ?? '';

describe('working memory in a session', () => {
  test(
    "lets the lead agent and the subagent write to their own namespaces and read each other's",
    { tags: ['R35', 'R37'] },
    async () => {
      let read: unknown;
      const { type, said, memory, lead, close, state } = await talkOf({
        report: {
          script: steps(
            calls(
              ['get_from_working_memory', { key: 'session/s1/plan' }],
              ['save_to_working_memory', { key: 'table', value: 'rows' }],
            ),
            (prompt) => {
              read = resultsIn(prompt)[0]?.[2];
              return say('The table is ready.');
            },
          ),
        },
      });
      await type('use save_to_working_memory {"key":"plan","value":"our plan"}');
      expect(said().join()).toContain('session/s1/plan');
      await type('use report');
      expect(read).toMatchObject({ found: true, text: 'our plan' });
      const { id = '' } = state().subagents[0] ?? {};
      expect(told(said())).toContain('More of it is in working memory');
      expect(told(said())).toContain(`"keys":["subagent/${id}/table"]`);
      await type(`use get_from_working_memory {"key":"subagent/${id}/table"}`);
      expect(said().at(-1)).toContain('rows');
      expect(await memory.list(lead)).toMatchObject({ total: 2 });
      await close();
      expect(await memory.list(lead)).toMatchObject({ total: 0 });
    },
  );

  test('delivers a large result as a summary with a reference', { tags: ['MW9'] }, async () => {
    const report = `# Flights\n\nForty were found. ${'A line of it. '.repeat(4000)}`;
    const { type, said, state, memory, lead } = await talkOf({
      report: { script: () => say(report) },
    });
    await type('use report');
    const { id = '' } = state().subagents[0] ?? {};
    const reference = `subagent/${id}/final-result`;
    expect(told(said())).toContain('Forty were found.');
    expect(told(said())).toContain(reference);
    expect(told(said()).length).toBeLessThan(2000);
    const delivery = state().deliveries.find(({ kind }) => kind === 'result');
    expect(delivery?.text).toMatch(/^Flights\. Forty were found\./);
    expect(delivery?.text.length).toBeLessThanOrEqual(400);
    expect(await memory.get(lead, reference)).toMatchObject({ entry: { text: report } });
  });

  test("shortens a large output of the lead agent's tool", { tags: ['MW9'] }, async () => {
    const rows = 'row '.repeat(100_000);
    const { type, said, memory, lead, prompts } = await talkOf(
      {},
      {
        tools: [
          defineTool({
            name: 'fetch',
            description: 'Fetches',
            parameters: z.object({}),
            execute: () => rows,
          }),
        ],
      },
    );
    await type('use fetch');
    const { results } = prompts.at(-1)?.prompt ?? {};
    expect(JSON.stringify(results).length).toBeLessThan(6000);
    expect(said().at(-1)).toContain('session/s1/outputs/fetch-');
    const listed = await memory.list(lead);
    expect(listed).toMatchObject({ entries: [{ bytes: rows.length }] });
  });

  test(
    'marks a claim without a matching call as unverified',
    { tags: ['R27', 'RW13'] },
    async () => {
      const { type, said } = await talkOf({
        mail: { script: () => say('I sent the email to Anna.') },
      });
      await type('use mail');
      expect(told(said())).toContain('the tools do not confirm as done');
      expect(told(said())).toContain('"unconfirmed":["I sent the email to Anna."]');
    },
  );

  test(
    'marks an announcement, but not a polite closing, as unfinished work',
    { tags: ['R33', 'RW13'] },
    async () => {
      const { type, said } = await talkOf({
        cut: { script: () => say('Two fit. Now let me save them.') },
        whole: { script: () => say('Two fit. Let me know if you want more.') },
      });
      await type('use cut');
      expect(told(said())).toContain('the work may not be finished');
      await type('use whole');
      expect(said().at(-1)).toContain('Let me know if you want more.');
      expect(said().at(-1)).not.toContain('may not be finished');
    },
  );

  test(
    'stores a failure record and gives its key to the lead agent',
    { tags: ['R25'] },
    async () => {
      const { environment, type, said, state, memory, lead } = await talkOf({
        slow: {
          script: () => calls(['hang']),
          config: { timeout: 1000, tools: { hang: simpleTool(never) } },
        },
      });
      await type('use slow');
      await environment.advance(2000);
      const { id = '' } = state().subagents[0] ?? {};
      const key = `subagent/${id}/failure-details`;
      expect(told(said())).toContain('failed');
      expect(told(said())).toContain(key);
      expect(await memory.get(lead, key)).toMatchObject({
        entry: { value: { reason: 'timeout', lastTool: { name: 'hang', status: 'in_flight' } } },
      });
      expect(state().subagents[0]?.outcome?.diagnostics).toMatchObject({ reference: key });
    },
  );

  test(
    "passes the earlier work and the user's request to a later subagent",
    { tags: ['R26'] },
    async () => {
      const { type, prompts } = await talkOf({
        scout: { script: () => say('Three flights: A, B, C.') },
        booker: { script: () => say('Booked nothing yet.'), config: { lineage: true } },
      });
      await type('use scout');
      await type('use booker');
      const { prompt } = prompts.findLast(({ who }) => who === 'booker')?.prompt ?? { prompt: [] };
      const text = JSON.stringify(prompt);
      expect(text).toContain('# Prior Work in This Conversation');
      expect(text).toContain('Three flights: A, B, C.');
      expect(text).toContain('The user had asked: use booker');
      expect(JSON.stringify(prompt[0])).not.toContain('# Prior Work');
    },
  );

  test('LIN-2: refuses a missing input during the call, so that the lead agent can correct it', async () => {
    let isMended = false;
    const { type, prompts, state } = await talkOf(
      {
        booker: {
          pending: null,
          script: () => say('Booked.'),
          config: { lineage: true },
        },
      },
      {
        lead: ({ prompt, results, user }) => {
          const refused = JSON.stringify(results).includes('near matches');
          if (prompt.at(-1)?.role !== 'tool')
            return user.startsWith('[')
              ? say('Told.')
              : calls(['save_to_working_memory', { key: 'sales-table', value: 'rows' }]);
          if (!refused && !isMended && !JSON.stringify(prompt).includes('sales-tabel'))
            return calls(['booker', { inputs: ['sales-tabel'] }]);
          if (!refused || isMended) return say('On it.');
          isMended = true;
          return calls(['booker', { inputs: ['session/s1/sales-table'] }]);
        },
      },
    );
    await type('Book what the table says.');
    expect(isMended).toBe(true);
    // The refused call did not start anything.
    expect(state().subagents).toHaveLength(1);
    expect(state().subagents[0]).toMatchObject({ state: 'completed' });
    const { prompt = [] } = prompts.findLast(({ who }) => who === 'booker')?.prompt ?? {};
    expect(JSON.stringify(prompt)).toContain('rows');
  });
});
